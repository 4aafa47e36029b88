//! A list of actions in a slice: packets may leave by the slice's ports only, and only with headers inside the slice's
//! flowspace.
//!
//! Packets in a tenant's tables belong to the tenant: table 0 ensures this on 1.3, the match of each rule on 1.0.
//! Before packets leave or go to another table, the compiler checks that their changed headers are inside the
//! flowspace. So packets in a tenant's tables always belong to the tenant. Action sets are merged from several tables,
//! so in a set each single change has to keep all packets of the flowspace inside the flowspace.

use crate::action_set::{order_in_set, sends};
use crate::context::{Context, Slice};
use crate::ownership::exactly;
use crate::packet_in_len;
use crate::refusal::{Reason, Refused, not_own};
use crate::rule::check_length;
use crate::wire::{Action, Actions, Verb};
use alloc::vec::Vec;
use core::cell::OnceCell;
use flowspace::{Field, Key, Match};
use openflow::error::v13 as code;
use openflow::v13::{self, PortNo};
use openflow::{Encode, List};

/// The packets of a list.
#[derive(Clone, Copy)]
pub enum Packets<'a> {
    /// The packets of these regions.
    Regions(&'a [Match]),
    /// The packets of the tenant's space that match. Most lists change no packets, and then nobody asks for the
    /// regions.
    Matching(&'a Match),
    /// One packet that a controller sends, and the packet's ingress port, if any.
    One(&'a Key, Option<u32>),
}

/// The place of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A list that is carried out in order.
    List,
    /// An action set or a bucket: it has at most one output, so FLOOD cannot become several outputs.
    Set,
}

impl Packets<'_> {
    fn regions(self, cx: &Context<'_>, slice: Slice<'_>) -> Vec<Match> {
        match self {
            Packets::Regions(regions) => regions.to_vec(),
            Packets::Matching(match_) => regions(cx, slice, match_),
            Packets::One(key, _) => Vec::from([exactly(key)]),
        }
    }

    /// The Ethernet type of the packets, if all have the same.
    fn dl_type(self, cx: &Context<'_>, slice: Slice<'_>) -> Option<u128> {
        match self {
            Packets::Regions(regions) => common_dl_type(regions),
            Packets::Matching(match_) => common_dl_type(&regions(cx, slice, match_)),
            Packets::One(key, _) => Some(key.get(Field::DlType)),
        }
    }
}

fn common_dl_type(regions: &[Match]) -> Option<u128> {
    let mut types = regions.iter().map(|region| region.exact_value(Field::DlType));
    let first = types.next()?;
    first.filter(|_| types.all(|other| other == first))
}

/// A list on its way to the switch.
struct Lister<'c, 'a> {
    cx: &'c Context<'a>,
    slice: Slice<'a>,
    packets: Packets<'c>,
    /// The Ethernet type of the packets, once an action has asked for it.
    dl_type: OnceCell<Option<u128>>,
    place: Place,
    /// The packets after the changes of the list, if the list has changed them.
    images: Option<Vec<Match>>,
    /// Whether the changed packets are known to be inside the flowspace.
    is_inside: bool,
}

/// Appends a list in the form for the switch.
pub fn list(
    cx: &Context<'_>,
    slice: Slice<'_>,
    packets: Packets<'_>,
    actions: Actions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    let mut lister = Lister::new(cx, slice, packets, Place::List);
    match actions {
        Actions::V10(list) => list.iter().try_for_each(|action| lister.write(&action, out))?,
        Actions::V13(list) => list.iter().try_for_each(|action| lister.write(&action, out))?,
    }
    match packets {
        // Packets that go to other tables have to be inside the flowspace, too.
        Packets::One(..) => Ok(()),
        _ if cx.target.has_metadata() => lister.check_images(),
        _ => Ok(()),
    }
}

/// Appends an action set, which is merged with others and carried out at the end of the pipeline.
pub fn set(
    cx: &Context<'_>,
    slice: Slice<'_>,
    actions: List<'_, v13::Action<'_>>,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    let whole = regions(cx, slice, &Match::ANY);
    for action in actions {
        let mut lister = Lister::new(cx, slice, Packets::Regions(&whole), Place::Set);
        if action.verb() != Verb::Stay {
            lister.send(&action, action.verb(), out)?;
            continue;
        }
        cx.check(&action)?;
        lister.follow(&action);
        lister.check_images()?;
        action.write(out);
    }
    Ok(())
}

/// Appends a bucket of a group: its actions are carried out as a set, on a copy of any of the tenant's packets.
pub fn bucket(
    cx: &Context<'_>,
    slice: Slice<'_>,
    group: u32,
    actions: List<'_, v13::Action<'_>>,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    let whole = regions(cx, slice, &Match::ANY);
    let mut lister = Lister::new(cx, slice, Packets::Regions(&whole), Place::Set);
    let mut sorted: Vec<v13::Action<'_>> = actions.iter().collect();
    sorted.sort_by_key(order_in_set);
    for action in sorted.into_iter().filter(|action| !sends(action)) {
        cx.check(&action)?;
        lister.follow(&action);
    }
    lister.check_images()?;
    for action in actions {
        if action == v13::Action::Group(group) {
            return Err(code::GROUP_MOD_FAILED_LOOP.into());
        }
        match sends(&action) {
            true => {
                let lister = Lister::new(cx, slice, Packets::Regions(&whole), Place::Set);
                lister.send(&action, action.verb(), out)?;
            }
            false => action.write(out),
        }
    }
    Ok(())
}

/// Appends the list for a link probe of a tenant that does not own LLDP: the probe may leave by the slice's ports, and
/// no other action is allowed.
pub fn probe(
    cx: &Context<'_>,
    slice: Slice<'_>,
    actions: Actions<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    let mut write = |action: &dyn Encode, verb| match verb {
        Verb::Output { port, .. }
            if port.is_physical() && slice.ownership.may_output(cx.tenant, port.0) =>
        {
            action.write(out);
            Ok(())
        }
        Verb::Output { port, .. } => Err(not_own(port)),
        _ => Err(Reason::ProbeChanged.with(code::BAD_ACTION_EPERM)),
    };
    match actions {
        Actions::V10(list) => list.iter().try_for_each(|it| write(&it, it.verb())),
        Actions::V13(list) => list.iter().try_for_each(|it| write(&it, it.verb())),
    }
}

/// The parts of the tenant's space that a match overlaps. The metadata of the match make no difference.
fn regions(cx: &Context<'_>, slice: Slice<'_>, match_: &Match) -> Vec<Match> {
    let match_ = match_.without(Field::Metadata);
    let Some(space) = slice.ownership.space(cx.tenant) else { return Vec::new() };
    space.write.iter().filter_map(|own| own.match_.intersect(&match_)).collect()
}

impl<'c, 'a> Lister<'c, 'a> {
    fn new(
        cx: &'c Context<'a>,
        slice: Slice<'a>,
        packets: Packets<'c>,
        place: Place,
    ) -> Lister<'c, 'a> {
        Lister {
            cx,
            slice,
            packets,
            dl_type: OnceCell::new(),
            place,
            images: None,
            is_inside: true,
        }
    }

    /// Appends an action.
    #[inline]
    fn write(&mut self, action: &impl Action, out: &mut Vec<u8>) -> Result<(), Refused> {
        match action.verb() {
            Verb::Stay => {
                self.cx.check(action)?;
                self.follow(action);
                action.write(out);
                Ok(())
            }
            verb => {
                self.check_images()?;
                self.send(action, verb, out)?;
                check_length(out)
            }
        }
    }

    /// Notes how an action changes the packets.
    fn follow(&mut self, action: &impl Action) {
        if action.changes_headers() {
            let before =
                self.images.take().unwrap_or_else(|| self.packets.regions(self.cx, self.slice));
            self.images = Some(before.iter().map(|region| action.image(region)).collect());
            self.is_inside = false;
        }
    }

    /// Whether the packets, if they were changed since the last check, are inside the tenant's space.
    fn check_images(&mut self) -> Result<(), Refused> {
        if self.is_inside {
            return Ok(());
        }
        for image in self.images.iter().flatten() {
            // A packet that entered by no port has no port to be checked.
            let port = image.exact_value(Field::InPort);
            let is_nowhere = [PortNo::CONTROLLER, PortNo::ANY].map(|port| Some(port.0.into()));
            let image = match is_nowhere.contains(&port) {
                true => image.without(Field::InPort),
                false => *image,
            };
            if !self.slice.ownership.wins_everywhere(self.cx.tenant, &image)
                && !self.wins_at_own_ports(&image)
            {
                return Err(code::BAD_ACTION_EPERM.into());
            }
        }
        self.is_inside = true;
        Ok(())
    }

    /// Whether a region without ingress port belongs to the tenant at one of the tenant's ports.
    fn wins_at_own_ports(&self, region: &Match) -> bool {
        let Slice { ownership, ports } = self.slice;
        let tenant = self.cx.tenant;
        let wins = |port: &u32| {
            let there = region.with(Field::InPort, u128::from(*port));
            ownership.sees_port(tenant, *port) && ownership.wins_everywhere(tenant, &there)
        };
        region.is_wild(Field::InPort) && ports.keys().any(wins)
    }

    /// Appends an action that sends packets out.
    fn send(&self, action: &impl Action, verb: Verb, out: &mut Vec<u8>) -> Result<(), Refused> {
        let Slice { ownership, ports } = self.slice;
        let (cx, tenant) = (self.cx, self.cx.tenant);
        let (port, max_len) = match verb {
            Verb::Output { port, max_len } => (port, max_len),
            Verb::Enqueue { port, queue } => {
                if port != PortNo::IN_PORT
                    && !(port.is_physical() && ownership.may_output(tenant, port.0))
                {
                    return Err(not_own(port));
                }
                if !cx.queues.contains(&queue) {
                    return Err(code::BAD_ACTION_BAD_QUEUE.into());
                }
                action.write(out);
                return Ok(());
            }
            Verb::Group(group) => {
                let instances = cx.groups.instances(group).ok_or(code::BAD_ACTION_BAD_OUT_GROUP)?;
                v13::Action::Group(instances.id()).write(out);
                return Ok(());
            }
            Verb::Stay => return Err(code::BAD_ACTION_BAD_TYPE.into()),
        };
        match port {
            PortNo::FLOOD | PortNo::ALL if !ownership.may_output_everywhere(tenant) => {
                if self.place == Place::Set {
                    return Err(Reason::FloodInSet.with(code::BAD_ACTION_BAD_OUT_PORT));
                }
                let entered = match self.packets {
                    Packets::One(_, in_port) => in_port,
                    Packets::Regions(_) | Packets::Matching(_) => None,
                };
                for (&number, known) in ports {
                    if (port == PortNo::ALL || !known.no_flood)
                        && number != PortNo::LOCAL.0
                        && Some(number) != entered
                        && ownership.may_output(tenant, number)
                    {
                        cx.target.wire.output(PortNo(number), max_len, out)?;
                    }
                }
            }
            PortNo::TABLE => {
                // TABLE: the packet goes through the tables, where it has to match its own tenant's rules and no rules
                // of other tenants.
                let Packets::One(key, in_port) = self.packets else { return Err(not_own(port)) };
                if ownership.owner(key) != Some(tenant) {
                    return Err(Reason::ForeignInTables.with(code::BAD_ACTION_EPERM));
                }
                if self.images.is_some() && in_port.is_none() {
                    return Err(Reason::ChangedFromNowhere.with(code::BAD_ACTION_EPERM));
                }
                action.write(out);
            }
            PortNo::CONTROLLER => {
                let dl_type = self.dl_type.get_or_init(|| self.packets.dl_type(cx, self.slice));
                let max_len = packet_in_len::length(max_len, *dl_type);
                cx.target.wire.output(port, max_len, out)?;
            }
            PortNo::FLOOD | PortNo::ALL | PortNo::IN_PORT => action.write(out),
            // NORMAL would use the switch's own forwarding, which does not separate tenants.
            PortNo::NORMAL | PortNo::ANY => return Err(not_own(port)),
            port if ownership.may_output(tenant, port.0) => action.write(out),
            _ => return Err(not_own(port)),
        }
        Ok(())
    }
}
