//! *Exits*, by which some [buckets](super::buckets) and some lists send: groups of Weir's own, whose buckets send as the
//! tenant's OUTPUT says, in place of that.
//!
//! ```text
//!   the tenant's bucket        instead         the exit, of type INDIRECT or, for FLOOD and ALL, ALL
//!   VLAN 7, output:10          GROUP 7         tag of 10, OUTPUT 5
//!   flood                      GROUP 9         one bucket for each port
//! ```
//! By shared edge ports only what is for one of the tenant's hosts leaves. An exit that sends there has copies for each of
//! them, and one for what is for many, of type ALL, which has one bucket for each, with its address. In a list it stands for what
//! is for many where these have several addresses:
//!
//! ```text
//!   the tenant writes          for a host at 7       for many                 for anybody else
//!   output:7, goto 1           OUTPUT 4, GOTO 1      GROUP 11, GOTO 1         GOTO 1
//! ```
//! An exit is kept among the tenant's [groups](crate::v13::groups), under a number that tenants cannot use, and has copies,
//! is stored, and follows the network as they do. It is made when an entry or a group first [needs](super::needed) it, and goes with its port
//! or the network, or a while after the last that [needs](super::unused) it; the tenant is never told of it. If the switch
//! refuses it, the entries and groups that need it are taken back, and each is refused.

use super::buckets::outputs_by_exits;
use super::set;
use crate::flows::Flow;
use crate::ids::TenantIndex;
use crate::network::{Network, is_entry, number_of};
use crate::store::Kind;
use crate::switch::{Cause, NumberBefore, Request, Switch};
use crate::time::Instant;
use crate::v13::looks::{Look, To};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use fabric::MacAddress;
use fabric::embedding::VirtualPort;
use flowspace::Match;
use openflow::error::v13 as code;
use openflow::v13::{
    Action, Bucket, GROUP_ALL, GROUP_ANY, GROUP_MAX, GroupMod, GroupModCommand, GroupType,
    OxmField, PortNo,
};
use openflow::{ErrorCode, Header, List, ListBuf};

/// The port of an output in whose place an exit stands.
pub(crate) type Output = PortNo;

/// Whether an output stands for several ports.
pub(crate) fn is_for_several(port: PortNo) -> bool {
    matches!(port, PortNo::FLOOD | PortNo::ALL)
}

/// The ports by which an output may send. 1.3 has no bit that tells FLOOD and ALL apart.
pub(crate) fn ports_of(network: &Network, port: PortNo) -> impl Iterator<Item = u32> {
    let numbers = match port {
        port if port == PortNo::IN_PORT || is_for_several(port) => 0..=u32::MAX,
        PortNo(number) => number..=number,
    };
    let is_meant = move |it: &VirtualPort| match port {
        PortNo::IN_PORT => is_entry(it),
        _ => true,
    };
    network.ports.range(numbers).filter(move |(_, it)| is_meant(it)).map(|(&number, _)| number)
}

/// Whether it depends on the destination what becomes of packets.
pub(crate) fn needs_destination(network: &Network, port: PortNo) -> bool {
    ports_of(network, port).any(|number| network.is_shared_edge(number))
}

/// Whether packets leave by an action of a set.
pub(super) fn sends(action: &Action<'_>) -> bool {
    matches!(action, Action::Output { .. } | Action::Group(_))
}

/// The action of a set by which packets leave: the last group or, if there is none, the last output.
pub(crate) fn sent_by<'a>(written: List<'a, Action<'a>>) -> Option<Action<'a>> {
    let mut sent = None;
    for action in written {
        match (action, sent) {
            (Action::Group(_), _) => sent = Some(action),
            (Action::Output { .. }, None | Some(Action::Output { .. })) => sent = Some(action),
            _ => {}
        }
    }
    sent
}

/// Whether a number is one that tenants cannot use.
pub(crate) fn is_exit(number: u32) -> bool {
    number > GROUP_MAX
}

/// The buckets of an exit as a tenant would have written them for such packets; `None` if they are as it is described.
pub(crate) fn buckets(
    network: &Network,
    group: &GroupMod<'_>,
    look: Look,
) -> Option<ListBuf<Bucket<'static>>> {
    let output = group.buckets.iter().next().and_then(|bucket| sent_by(bucket.actions));
    let Some(Action::Output { port, .. }) = output.filter(|_| is_exit(group.group_id)) else {
        return None;
    };
    let ports: Vec<PortNo> = match port {
        port if is_for_several(port) => ports_of(network, port).map(PortNo).collect(),
        _ if look.to == To::Many => Vec::from([port]),
        _ => return None,
    };
    let mut buckets = ListBuf::<Bucket<'static>>::new();
    let mut add = |host: Option<MacAddress>, port| {
        let mut actions = Vec::new();
        if let Some(host) = host {
            set(OxmField::ETH_DST, number_of(host), &mut actions);
        }
        Action::Output { port, max_len: 0 }.write(&mut actions);
        let actions = List::parse(&actions).unwrap_or_default();
        buckets.push(Bucket { actions, ..Bucket::default() });
    };
    for port in ports {
        let number = if port == PortNo::IN_PORT { look.entered().port() } else { Some(port.0) };
        let hosts = number.map(|number| network.hosts_behind(number)).unwrap_or_default();
        match look.to {
            To::Many if !hosts.is_empty() => hosts.iter().for_each(|host| add(Some(*host), port)),
            _ => add(None, port),
        }
    }
    Some(buckets)
}

/// The type of a group's form for such packets: an exit's may have several buckets though the exit is described with one.
pub(crate) fn type_of(group: &GroupMod<'_>, look: Look) -> GroupType {
    match look.to {
        To::Many if is_exit(group.group_id) => GroupType::ALL,
        _ => group.type_,
    }
}

impl Switch {
    /// An entry is about to come in this table that does this: there are the exits [that it needs](super::needed), whose numbers
    /// are given.
    pub(crate) fn ready_exits(
        &mut self,
        request: &Request<'_>,
        at: (u8, &Match),
        instructions: &[u8],
    ) -> Result<Vec<u32>, ErrorCode> {
        let network = self.tenants[request.tenant.0 as usize].network.as_deref();
        let outputs = network.map(|network| self.exits_for(network, at, instructions));
        let outputs = outputs.unwrap_or_default();
        // What is asked for is an entry.
        let is_full = |refused| match refused {
            code::GROUP_MOD_FAILED_OUT_OF_GROUPS => code::FLOW_MOD_FAILED_TABLE_FULL,
            other => other,
        };
        let ready = outputs.iter().map(|output| self.ready(request, *output, &outputs));
        ready.collect::<Result<_, _>>().map_err(is_full)
    }

    /// The same of a group and its buckets, which may need several.
    pub(crate) fn ready_exits_of_group(
        &mut self,
        request: &Request<'_>,
        group: &GroupMod<'_>,
    ) -> Result<Vec<u32>, ErrorCode> {
        let network = self.tenants[request.tenant.0 as usize].network.as_deref();
        let outputs = network.map(|network| outputs_by_exits(network, group)).unwrap_or_default();
        outputs.iter().map(|output| self.ready(request, *output, &outputs)).collect()
    }

    /// There is an exit for one of the outputs that are wanted.
    fn ready(
        &mut self,
        request: &Request<'_>,
        output: Output,
        wanted: &BTreeSet<Output>,
    ) -> Result<u32, ErrorCode> {
        let tenant = request.tenant;
        if let Some(known) = self.numbers(tenant, Kind::Group).exit(output) {
            return Ok(known);
        }
        let (change, messages) = match self.make_exit(tenant, output) {
            Err(code::GROUP_MOD_FAILED_OUT_OF_GROUPS) => {
                self.collect_exits(tenant, wanted, request.now);
                self.make_exit(tenant, output)?
            }
            made => made?,
        };
        let cause = Cause { direct: false, ..Cause::own(tenant, request.now) };
        let cause = self.begin_unasked(&cause);
        let number = change.number;
        if let Some(operation) = cause.operation {
            self.remember_numbers(operation, Vec::from([change]));
        }
        messages.iter().for_each(|message| self.submit_change(&cause, message));
        Ok(number)
    }

    /// The exits that a group's buckets send to, as far as they are there.
    pub(crate) fn exits_of(&self, tenant: TenantIndex, group: &GroupMod<'_>) -> Vec<u32> {
        let network = self.tenants[tenant.0 as usize].network.as_deref();
        let outputs = network.map(|network| outputs_by_exits(network, group)).unwrap_or_default();
        let groups = self.numbers(tenant, Kind::Group);
        outputs.into_iter().filter_map(|output| groups.exit(output)).collect()
    }

    /// The exits that entries need and that are not there: the messages that make them.
    pub(crate) fn missing_exits(&mut self, tenant: TenantIndex) -> Vec<(u32, Vec<u8>)> {
        let flows = &self.tenants[tenant.0 as usize].flows;
        let outputs = self.outputs_by_exits(tenant, flows.iter().map(|(_, flow)| flow));
        self.make_missing(tenant, outputs)
    }

    /// The same of entries that are about to be restored, each with whose it is: the network may be another than it was.
    pub(crate) fn restore_exits<'a>(
        &mut self,
        flows: impl Iterator<Item = &'a (TenantIndex, Flow)>,
        now: Instant,
    ) {
        let mut wanted = BTreeMap::<TenantIndex, BTreeSet<Output>>::new();
        for (tenant, flow) in flows {
            let outputs = self.outputs_by_exits(*tenant, core::iter::once(flow));
            wanted.entry(*tenant).or_default().extend(outputs);
        }
        for (tenant, outputs) in wanted {
            let messages = self.make_missing(tenant, outputs);
            self.bring(&Cause::own(tenant, now), &messages);
        }
    }

    fn outputs_by_exits<'a>(
        &self,
        tenant: TenantIndex,
        flows: impl Iterator<Item = &'a Flow>,
    ) -> BTreeSet<Output> {
        let Some(network) = self.tenants[tenant.0 as usize].network.as_deref() else {
            return BTreeSet::new();
        };
        let of = |flow: &Flow| self.exits_for(network, (flow.table, &flow.match_), &flow.actions);
        flows.flat_map(of).collect()
    }

    /// The same of groups.
    pub(crate) fn missing_exits_of_groups(&mut self, tenant: TenantIndex) -> Vec<(u32, Vec<u8>)> {
        let mut outputs = BTreeSet::new();
        if let Some(network) = self.tenants[tenant.0 as usize].network.as_deref() {
            for (_, known) in self.numbers(tenant, Kind::Group).iter() {
                let group = GroupMod::parse(&known.body);
                outputs.extend(
                    group.map(|group| outputs_by_exits(network, &group)).unwrap_or_default(),
                );
            }
        }
        self.make_missing(tenant, outputs)
    }

    fn make_missing(
        &mut self,
        tenant: TenantIndex,
        outputs: BTreeSet<Output>,
    ) -> Vec<(u32, Vec<u8>)> {
        let state = &self.tenants[tenant.0 as usize];
        let mut messages = Vec::new();
        if !state.present || state.network.is_none() {
            return messages;
        }
        for output in outputs {
            // An entry or a group without its exit is given up.
            if self.numbers(tenant, Kind::Group).exit(output).is_none()
                && let Ok((exit, made)) = self.make_exit(tenant, output)
            {
                messages.extend(made.into_iter().map(|message| (exit.number, message)));
            }
        }
        messages
    }

    fn make_exit(
        &mut self,
        tenant: TenantIndex,
        output: Output,
    ) -> Result<(NumberBefore, Vec<Vec<u8>>), ErrorCode> {
        let known = self.numbers(tenant, Kind::Group);
        let number = numbers().find(|number| known.any(*number).is_none());
        let number = number.ok_or(code::GROUP_MOD_FAILED_OUT_OF_GROUPS)?;
        self.make_group(tenant, number, body(output))
    }
}

/// The numbers of exits.
fn numbers() -> impl Iterator<Item = u32> {
    GROUP_MAX + 1..GROUP_ALL
}

/// The output in whose place an exit stands that is described so.
pub(crate) fn output_of(body: &[u8]) -> Option<Output> {
    let group = GroupMod::parse(body).ok()?;
    match group.buckets.iter().next()?.actions.iter().next()? {
        Action::Output { port, .. } => Some(port),
        _ => None,
    }
}

/// An exit, as a tenant would have described it; for FLOOD and ALL the [buckets] depend on the network.
fn body(port: Output) -> Box<[u8]> {
    let actions = ListBuf::from([Action::Output { port, max_len: 0 }]);
    let mut buckets = ListBuf::<Bucket<'static>>::new();
    buckets.push(Bucket { actions: actions.as_list(), ..Bucket::default() });
    let type_ = if is_for_several(port) { GroupType::ALL } else { GroupType::INDIRECT };
    let command = GroupModCommand::ADD;
    let mut message = Vec::new();
    // It fits: it is one bucket with one action.
    let _ = GroupMod { command, type_, group_id: GROUP_ANY, buckets: buckets.as_list() }
        .write_message(0, &mut message);
    message.get(Header::LEN..).unwrap_or_default().into()
}
