//! Groups: a tenant's group becomes one group on the switch, or several *instances* (1.3).
//!
//! A switch sends a packet back by its physical ingress port only if the output is IN_PORT. Weir never sends a packet
//! back by its virtual ingress port. So if several virtual ports are on one physical port, the right action of a bucket
//! depends on the ingress port, but a bucket cannot match the ingress port. Such a group has one instance for each
//! [`Variant`] of packets: for each ingress port that matters and, because the end of a link may receive at several
//! physical ports, for each of these physical ports.
//!
//! ```text
//!   the tenant's buckets         for packets by 10      by 11                by others, or from a controller
//!   output:10                    does nothing           label of 10, IN_PORT label of 10, OUTPUT 5
//!   output:11                    label of 11, IN_PORT   does nothing         label of 11, OUTPUT 5
//!   output:1                     OUTPUT 1               OUTPUT 1             OUTPUT 1
//! ```
//! A bucket that sends by a link with a remote end on 1.0 depends on the VLAN tag in the same way: the group has an
//! instance for tagged frames, which do not pass this link.
//!
//! ```text
//!   the tenant's bucket         without a tag             with one
//!   output:10                   label of 10, OUTPUT 5     does nothing
//! ```
//! A bucket that does nothing is still written, because a bucket has a weight, counters, and a watched port or group. A
//! bucket that names another group names the instance of that group for the same packets. So a group has the variants
//! of all groups that the group names. An entry that uses a group with variants becomes one rule per ingress port, like
//! other entries that send to hairpin ports.
//!
//! ```text
//!   the tenant's bucket          on the switch
//!   output:10                    label of 10, OUTPUT 5
//!   VLAN 7, output:10            VLAN 7, GROUP of the egress group for 10
//!   VLAN 7, output:1             VLAN 7, OUTPUT 1
//!   flood                        GROUP of the egress group for FLOOD; ALL the same
//!   eth_dst of a host, output:7  eth_dst of the host, OUTPUT 4 if the host is behind that port, a shared edge
//! ```
//! Only a bucket that writes one host's address sends by a shared edge port, because a bucket cannot match the
//! destination.

use crate::action_set::{order_in_set, sends, sent_by};
use crate::class::{PacketClass, TagState};
use crate::context::{Context, Space};
use crate::egress_group;
use crate::instances::{Instances, Variant};
use crate::list::{ListWriter, check_set};
use crate::network::{Ingress, Network, Stop, is_for_many};
use crate::refusal::{Reason, Refused};
use crate::rule::is_reportable;
use crate::slice;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use openflow::error::v13 as code;
use openflow::v13::{self, Bucket, GROUP_ANY, GroupMod, GroupType, PortNo};
use openflow::{List, ListBuf};

/// The variants for which a group needs an instance of its own.
pub fn variants(cx: &Context<'_>, group: &GroupMod<'_>) -> BTreeSet<Variant> {
    let Space::Network(network) = cx.space else { return BTreeSet::new() };
    let (mut ingress, mut is_by_tag) = (BTreeSet::from([None]), false);
    for bucket in group.buckets {
        match sent_by(bucket.actions) {
            Some(v13::Action::Output { port, .. }) => {
                let meant = || egress_group::ports_of(network, port);
                for number in meant() {
                    match port {
                        PortNo::IN_PORT => ingress.extend(network.received_at(number).map(Some)),
                        _ => ingress.extend(network.hairpins(number).map(Some)),
                    }
                    if egress_group::is_for_several(port) {
                        ingress.extend(network.received_elsewhere(number).map(Some));
                    }
                }
                is_by_tag |= meant().any(|port| network.leads_to_single_tags(port));
            }
            Some(v13::Action::Group(number)) => {
                let named = cx.groups.instances(number);
                let variants = named.into_iter().flat_map(|it| it.variants().keys());
                ingress.extend(variants.map(|variant| variant.ingress));
                is_by_tag |= named.is_some_and(Instances::depend_on_tag);
            }
            _ => {}
        }
    }
    let mut tags = Vec::from([TagState::Untagged]);
    if is_by_tag {
        tags.push(TagState::Tagged);
    }
    let mut variants = BTreeSet::new();
    for ingress in ingress {
        variants.extend(tags.iter().map(|&tag| Variant { ingress, tag }));
    }
    variants.remove(&Variant::default());
    variants
}

/// Whether a group makes Open vSwitch recirculate packets. Open vSwitch needs a second pass for the hash by which
/// SELECT chooses a bucket, and for the headers behind an MPLS header.
pub fn recirculates(cx: &Context<'_>, group: &GroupMod<'_>) -> bool {
    let mut actions = group.buckets.into_iter().flat_map(|bucket| bucket.actions);
    group.type_ == GroupType::SELECT || actions.any(|action| recirculates_by(cx, &action))
}

/// Whether an action makes Open vSwitch recirculate packets.
pub(crate) fn recirculates_by(cx: &Context<'_>, action: &v13::Action<'_>) -> bool {
    match action {
        v13::Action::PopMpls(_) => true,
        v13::Action::Group(number) => {
            cx.groups.instances(*number).is_some_and(Instances::recirculates)
        }
        _ => false,
    }
}

/// The buckets on the switch of a group's instance for a variant. The compiler also refuses a bucket that would be
/// impossible with all ports of the network in use, because ports can come into use again.
pub fn buckets(
    cx: &Context<'_>,
    group: &GroupMod<'_>,
    variant: Variant,
) -> Result<ListBuf<Bucket<'static>>, Refused> {
    if cx.network().is_none() && egress_group::is_egress_group(group.group_id) {
        return Err(code::BAD_ACTION_BAD_OUT_PORT.into());
    }
    if let Some(open) = cx.network().and_then(Network::open) {
        write_buckets(&cx.within(open), group, variant)?;
    }
    let buckets = write_buckets(cx, group, variant)?;
    check_buckets(buckets.as_list())?;
    Ok(buckets)
}

/// An error if a statistics reply has no room for these buckets: too many, or too long.
pub fn check_buckets(buckets: List<'_, Bucket<'_>>) -> Result<(), Refused> {
    let is_reportable = is_reportable(buckets.as_bytes().len(), buckets.iter().count());
    is_reportable.then_some(()).ok_or(code::GROUP_MOD_FAILED_OUT_OF_BUCKETS.into())
}

/// The instance of the group that a bucket watches, if the group exists. All instances watch the same ports and groups.
pub fn watched(cx: &Context<'_>, group: u32) -> Option<u32> {
    cx.groups.instances(group).map(Instances::id)
}

/// Whether a bucket is left out: its group is a fast-failover group, and the bucket watches only a virtual port that is
/// not live (the physical port may be live), or a deleted group. A group may be deleted while other groups watch it;
/// the id on the switch may then belong to another group, perhaps of another tenant.
pub fn is_left_out(cx: &Context<'_>, type_: GroupType, bucket: &Bucket<'_>) -> bool {
    let Bucket { watch_port: port, watch_group: group, .. } = *bucket;
    let may_live = port != PortNo::ANY && cx.network().is_none_or(|it| it.is_live(port.0))
        || watched(cx, group).is_some();
    type_ == GroupType::FF && !may_live && (port != PortNo::ANY || group != GROUP_ANY)
}

fn write_buckets(
    cx: &Context<'_>,
    group: &GroupMod<'_>,
    variant: Variant,
) -> Result<ListBuf<Bucket<'static>>, Refused> {
    let mut out = ListBuf::<Bucket<'static>>::new();
    let own = cx.network().and_then(|network| egress_group::buckets(network, group));
    for bucket in own.as_ref().map_or(group.buckets, ListBuf::as_list) {
        let watch_port = match (bucket.watch_port, cx.space) {
            (PortNo::ANY, _) => PortNo::ANY,
            (port, Space::Network(network)) if network.has_port(port.0) => {
                let physical = network.physical(port.0).map(PortNo);
                physical.filter(|_| network.is_live(port.0)).unwrap_or(PortNo::ANY)
            }
            (port, Space::Slice(slice)) if slice.ownership.sees_port(cx.tenant, port.0) => port,
            (port, _) => {
                return Err(Reason::WatchedPort.of(port.0, code::GROUP_MOD_FAILED_BAD_WATCH));
            }
        };
        if is_left_out(cx, group.type_, &bucket) {
            continue;
        }
        let watch_group = watched(cx, bucket.watch_group).unwrap_or(GROUP_ANY);
        let (number, list) = (group.group_id, bucket.actions);
        let mut actions = Vec::new();
        match cx.space {
            Space::Network(network) => {
                network_bucket(cx, network, number, variant, list, &mut actions)?;
            }
            Space::Slice(slice) => slice::bucket(cx, slice, number, list, &mut actions)?,
        }
        let actions = cx.target.wire.list(&actions)?;
        out.push(Bucket { watch_port, watch_group, actions, ..bucket });
    }
    Ok(out)
}

fn network_bucket(
    cx: &Context<'_>,
    network: &Network,
    group: u32,
    variant: Variant,
    actions: List<'_, v13::Action<'_>>,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    if actions.iter().any(|action| action == v13::Action::Group(group)) {
        return Err(code::GROUP_MOD_FAILED_LOOP.into());
    }
    check_set(cx, network, actions)?;
    actions.iter().filter(|action| !sends(action)).for_each(|action| action.write(out));
    let mut class = variant.class();
    let mut changes: Vec<v13::Action<'_>> = actions.iter().collect();
    changes.sort_by_key(order_in_set);
    changes.into_iter().for_each(|action| class.follow(&action));
    let destination = class.destination;
    let sent = sent_by(actions);
    if let Some(v13::Action::Output { port, .. }) = sent
        && egress_group::ports_of(network, port).any(|number| network.is_shared_edge(number))
        && (egress_group::is_for_several(port) || destination.is_none_or(is_for_many))
    {
        return Err(Reason::SharedEdge.with(code::BAD_ACTION_BAD_OUT_PORT));
    }
    let by_group =
        egress_group::output_of(network, actions).filter(|_| !egress_group::is_egress_group(group));
    let mut writer = ListWriter::new(cx, network, class.clone(), out);
    let done = match (sent, by_group) {
        (_, Some(output)) => {
            let instances = cx.groups.egress(output).ok_or(code::BAD_ACTION_BAD_OUT_PORT)?;
            writer.group(instances)
        }
        (Some(v13::Action::Group(number)), _) => {
            let instances = cx.groups.instances(number).ok_or(code::BAD_ACTION_BAD_OUT_GROUP)?;
            writer.group(instances)
        }
        (Some(v13::Action::Output { port, max_len }), _) => {
            return send_by_bucket(cx, network, class, port, max_len, out);
        }
        _ => Ok(()),
    };
    done.map_err(Stop::refusal)
}

fn send_by_bucket(
    cx: &Context<'_>,
    network: &Network,
    class: PacketClass,
    port: PortNo,
    max_len: u16,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    if port == PortNo::IN_PORT && class.ingress == Ingress::Controller {
        // A packet from a controller has no ingress port to go back by.
        return Ok(());
    }
    let mut leaving = Vec::new();
    match ListWriter::new(cx, network, class, &mut leaving).output(port, max_len) {
        // A packet in this tag state cannot pass the link.
        Err(Stop::Refused(refused)) if refused.reason() == Reason::TagOnLink => return Ok(()),
        done => done.map_err(Stop::refusal)?,
    }
    for action in cx.target.wire.list::<v13::Action<'_>>(&leaving)? {
        action.write(out);
        if matches!(action, v13::Action::Output { .. }) {
            // The bucket works on a copy of the packet, so the label need not be removed again.
            break;
        }
    }
    Ok(())
}
