//! Groups and meters: each tenant numbers its own; on the switch they are numbered for all.

use crate::ids::TenantIndex;
use crate::network::Network;
use crate::pending::Awaits;
use crate::policy::TenantId;
use crate::queue::{Class, Item};
use crate::store::{Kind, StoreKey, StoreOp};
use crate::switch::{Request, Switch};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use hashbrown::HashMap;
use openflow::error::v13 as code;
use openflow::v13::{
    Bucket, BucketCounter, GROUP_ALL, GROUP_ANY, GROUP_MAX, GroupDesc, GroupMod, GroupModCommand,
    GroupType, METER_ALL, METER_MAX, MeterBand, MeterConfig, MeterMod, MeterModCommand, PortNo,
};
use openflow::{ErrorCode, List, ListBuf, TooLong};

/// Groups of one tenant on one switch.
const MAX_GROUPS: usize = 1024;
/// Meters of one tenant on one switch.
const MAX_METERS: usize = 256;

/// A tenant's numbers, of groups or of meters.
#[derive(Default)]
pub(crate) struct Numbers(HashMap<u32, Numbered>);

/// One group or meter.
#[derive(Clone)]
pub(crate) struct Numbered {
    /// Its number on the switch.
    pub physical: u32,
    /// The body of the GROUP_MOD or METER_MOD by which the tenant last described it.
    pub body: Box<[u8]>,
}

impl Numbers {
    pub(crate) fn get(&self, number: u32) -> Option<&Numbered> {
        self.0.get(&number)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The tenant's number of a physical one.
    pub(crate) fn of_physical(&self, physical: u32) -> Option<u32> {
        self.0.iter().find(|(_, known)| known.physical == physical).map(|(number, _)| *number)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Numbered)> {
        self.0.iter().map(|(number, known)| (*number, known))
    }

    fn all(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.0.keys().copied().collect();
        all.sort_unstable();
        all
    }
}

/// Numbers in use on the switch, whoever uses them.
#[derive(Default)]
pub(crate) struct Used {
    pub groups: BTreeSet<u32>,
    pub meters: BTreeSet<u32>,
}

/// The lowest number that is free: some switches number few.
fn lowest_free(used: &BTreeSet<u32>) -> u32 {
    let mut free = 1;
    for &number in used {
        if number > free {
            break;
        }
        free = free.max(number.saturating_add(1));
    }
    free
}

impl Switch {
    /// A tenant changes its groups.
    pub(crate) fn group_mod_v13(&mut self, request: &Request<'_>) -> Result<(), ErrorCode> {
        let group = GroupMod::parse(request.body()).map_err(super::unreadable)?;
        let tenant = request.tenant;
        let known = self.numbers(tenant, Kind::Group).get(group.group_id).cloned();
        match group.command {
            GroupModCommand::ADD if known.is_some() => Err(code::GROUP_MOD_FAILED_GROUP_EXISTS),
            GroupModCommand::ADD => {
                if group.group_id > GROUP_MAX {
                    return Err(code::GROUP_MOD_FAILED_INVALID_GROUP);
                }
                if self.numbers(tenant, Kind::Group).len() >= MAX_GROUPS {
                    return Err(code::GROUP_MOD_FAILED_OUT_OF_GROUPS);
                }
                let physical = lowest_free(&self.used.groups);
                self.put_group(request, &group, physical)
            }
            GroupModCommand::MODIFY => {
                let known = known.ok_or(code::GROUP_MOD_FAILED_UNKNOWN_GROUP)?;
                self.put_group(request, &group, known.physical)
            }
            GroupModCommand::DELETE => {
                let gone = match group.group_id {
                    GROUP_ALL => self.numbers(tenant, Kind::Group).all(),
                    number => Vec::from([number]),
                };
                for number in gone {
                    self.delete_number(request, Kind::Group, number)?;
                }
                Ok(())
            }
            _ => Err(code::GROUP_MOD_FAILED_BAD_COMMAND),
        }
    }

    /// A tenant changes its meters.
    pub(crate) fn meter_mod_v13(&mut self, request: &Request<'_>) -> Result<(), ErrorCode> {
        let meter = MeterMod::parse(request.body()).map_err(super::unreadable)?;
        let tenant = request.tenant;
        let known = self.numbers(tenant, Kind::Meter).get(meter.meter_id).cloned();
        if meter
            .bands
            .iter()
            .any(|band| !matches!(band, MeterBand::Drop { .. } | MeterBand::DscpRemark { .. }))
        {
            return Err(code::METER_MOD_FAILED_BAD_BAND);
        }
        match meter.command {
            MeterModCommand::ADD if known.is_some() => Err(code::METER_MOD_FAILED_METER_EXISTS),
            MeterModCommand::ADD => {
                if meter.meter_id == 0 || meter.meter_id > METER_MAX {
                    return Err(code::METER_MOD_FAILED_INVALID_METER);
                }
                if self.numbers(tenant, Kind::Meter).len() >= MAX_METERS {
                    return Err(code::METER_MOD_FAILED_OUT_OF_METERS);
                }
                let physical = lowest_free(&self.used.meters);
                self.put_meter(request, &meter, physical)
            }
            MeterModCommand::MODIFY => {
                let known = known.ok_or(code::METER_MOD_FAILED_UNKNOWN_METER)?;
                self.put_meter(request, &meter, known.physical)
            }
            MeterModCommand::DELETE => {
                let gone = match meter.meter_id {
                    METER_ALL => self.numbers(tenant, Kind::Meter).all(),
                    number => Vec::from([number]),
                };
                for number in gone {
                    self.delete_number(request, Kind::Meter, number)?;
                }
                Ok(())
            }
            _ => Err(code::METER_MOD_FAILED_BAD_COMMAND),
        }
    }

    /// A group as it has to be on the switch.
    fn translate_buckets(
        &self,
        tenant: TenantIndex,
        network: Option<&Network>,
        group: &GroupMod<'_>,
    ) -> Result<ListBuf<Bucket<'static>>, ErrorCode> {
        let mut out = ListBuf::<Bucket<'static>>::new();
        for bucket in group.buckets {
            let watch_port = match (bucket.watch_port, network) {
                (PortNo::ANY, _) => PortNo::ANY,
                (watched, Some(network)) if !network.ports.contains_key(&watched.0) => {
                    return Err(code::GROUP_MOD_FAILED_BAD_WATCH);
                }
                (_, Some(network)) if is_left_out(network, group.type_, &bucket) => continue,
                (watched, Some(network)) => match network.physical(watched.0) {
                    Some(physical) if network.is_live(watched.0) => PortNo(physical),
                    _ => PortNo::ANY,
                },
                (watched, None) if self.view.sees_port(tenant, watched.0) => watched,
                _ => return Err(code::GROUP_MOD_FAILED_BAD_WATCH),
            };
            let watch_group = match bucket.watch_group {
                GROUP_ANY => GROUP_ANY,
                number => {
                    let known = self.numbers(tenant, Kind::Group).get(number);
                    known.ok_or(code::GROUP_MOD_FAILED_BAD_WATCH)?.physical
                }
            };
            let mut actions = Vec::new();
            match network {
                Some(network) => {
                    let (group, list) = (group.group_id, bucket.actions);
                    self.network_bucket_v13(tenant, network, group, list, &mut actions)?;
                }
                None => {
                    let (group, list) = (group.group_id, bucket.actions);
                    self.translate_bucket_v13(tenant, group, list, &mut actions)?;
                }
            }
            let actions = List::parse(&actions).map_err(super::unreadable)?;
            out.push(Bucket { watch_port, watch_group, actions, ..bucket });
        }
        Ok(out)
    }

    fn put_group(
        &mut self,
        request: &Request<'_>,
        group: &GroupMod<'_>,
        physical: u32,
    ) -> Result<(), ErrorCode> {
        let mut message = Vec::new();
        self.write_group(request.tenant, group, group.command, physical, &mut message)?;
        self.put_number(request, Kind::Group, group.group_id, physical, &message);
        Ok(())
    }

    fn write_group(
        &self,
        tenant: TenantIndex,
        group: &GroupMod<'_>,
        command: GroupModCommand,
        physical: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        let network = self.tenants[tenant.0 as usize].network.as_deref();
        self.write_group_in(tenant, network, group, (command, physical), out)
    }

    /// The same in a network that the tenant has, or is about to have.
    fn write_group_in(
        &self,
        tenant: TenantIndex,
        network: Option<&Network>,
        group: &GroupMod<'_>,
        (command, physical): (GroupModCommand, u32),
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        if let Some(open) = network.and_then(Network::open) {
            self.translate_buckets(tenant, Some(open), group)?;
        }
        let buckets = self.translate_buckets(tenant, network, group)?;
        GroupMod { command, type_: group.type_, group_id: physical, buckets: buckets.as_list() }
            .write_message(0, out)
            .map_err(|_| code::GROUP_MOD_FAILED_OUT_OF_BUCKETS)
    }

    fn put_meter(
        &mut self,
        request: &Request<'_>,
        meter: &MeterMod<'_>,
        physical: u32,
    ) -> Result<(), ErrorCode> {
        let mut message = Vec::new();
        MeterMod { meter_id: physical, ..*meter }
            .write_message(0, &mut message)
            .map_err(|_| code::METER_MOD_FAILED_OUT_OF_BANDS)?;
        self.put_number(request, Kind::Meter, meter.meter_id, physical, &message);
        Ok(())
    }

    fn put_number(
        &mut self,
        request: &Request<'_>,
        kind: Kind,
        number: u32,
        physical: u32,
        message: &[u8],
    ) {
        let numbered = Numbered { physical, body: request.body().into() };
        let before = self.replace_number(request.tenant, kind, number, Some(numbered));
        self.submit_number(request, kind, number, before, message);
    }

    fn delete_number(
        &mut self,
        request: &Request<'_>,
        kind: Kind,
        number: u32,
    ) -> Result<(), ErrorCode> {
        // Deleting what is not there is not an error (specification sections 6.5 and 6.6).
        let Some(before) = self.replace_number(request.tenant, kind, number, None) else {
            return Ok(());
        };
        let mut message = Vec::new();
        write_deletion(kind, before.physical, &mut message)
            .map_err(|_| code::BAD_REQUEST_BAD_LEN)?;
        self.submit_number(request, kind, number, Some(before), &message);
        Ok(())
    }

    /// Sends a change of a group or meter, as an operation that can be undone.
    fn submit_number(
        &mut self,
        request: &Request<'_>,
        kind: Kind,
        number: u32,
        before: Option<Numbered>,
        message: &[u8],
    ) {
        let operation = self.begin(request.tenant);
        self.remember_number(operation, kind, number, before);
        let item = Item {
            origin: Some(request.origin()),
            awaits: Awaits::Nothing,
            operation: Some(operation),
            class: Class::Modification,
            cost: 1,
            gate: self.journal.gate(),
            arrived: request.now,
        };
        self.submit(request.tenant, item, message);
    }

    /// Sets or removes a group or meter of a tenant, in memory and in the store; gives what was there. The number on the
    /// switch stays in use until [`free_number`](Self::free_number).
    pub(crate) fn replace_number(
        &mut self,
        tenant: TenantIndex,
        kind: Kind,
        number: u32,
        numbered: Option<Numbered>,
    ) -> Option<Numbered> {
        let state = &mut self.tenants[tenant.0 as usize];
        let key = StoreKey::new(state.id, kind, number);
        let (numbers, used) = match kind {
            Kind::Meter => (&mut state.meters, &mut self.used.meters),
            _ => (&mut state.groups, &mut self.used.groups),
        };
        if kind == Kind::Group {
            state.flows.touch_all();
        }
        match numbered {
            Some(numbered) => {
                let mut bytes = numbered.physical.to_be_bytes().to_vec();
                bytes.extend_from_slice(&numbered.body);
                self.journal.push(StoreOp::Put(key, bytes));
                used.insert(numbered.physical);
                numbers.0.insert(number, numbered)
            }
            None => {
                let before = numbers.0.remove(&number)?;
                self.journal.push(StoreOp::Delete(key));
                Some(before)
            }
        }
    }

    /// A number on the switch may be given out again, unless somebody has it or may get it back.
    pub(crate) fn free_number(&mut self, kind: Kind, physical: u32) {
        let held = |numbers: &Numbers| numbers.of_physical(physical).is_some();
        let is_held = self.tenants.iter().any(|tenant| match kind {
            Kind::Meter => held(&tenant.meters),
            _ => held(&tenant.groups),
        });
        if !is_held && !self.may_return(kind, physical) {
            match kind {
                Kind::Meter => self.used.meters.remove(&physical),
                _ => self.used.groups.remove(&physical),
            };
        }
    }

    /// Deletes what the switch has refused to delete once: its owner has something else by now.
    pub(crate) fn delete_number_again(&mut self, kind: Kind, physical: u32, now: Instant) {
        let mut message = Vec::new();
        // It fits: a deletion is a few bytes.
        let _ = write_deletion(kind, physical, &mut message);
        self.send_own(Awaits::Nothing, Class::Modification, &message, now);
    }

    /// The tenant's groups or meters.
    pub(crate) fn numbers(&self, tenant: TenantIndex, kind: Kind) -> &Numbers {
        let state = &self.tenants[tenant.0 as usize];
        match kind {
            Kind::Meter => &state.meters,
            _ => &state.groups,
        }
    }

    /// From the store.
    pub(crate) fn restore_number(&mut self, kind: Kind, id: TenantId, number: u32, bytes: &[u8]) {
        let parts = bytes.split_first_chunk::<4>();
        match (self.tenant_of(id), parts) {
            (Some(tenant), Some((physical, body))) => {
                let physical = u32::from_be_bytes(*physical);
                let state = &mut self.tenants[tenant.0 as usize];
                let (numbers, used) = match kind {
                    Kind::Meter => (&mut state.meters, &mut self.used.meters),
                    _ => (&mut state.groups, &mut self.used.groups),
                };
                used.insert(physical);
                numbers.0.insert(number, Numbered { physical, body: body.into() });
            }
            _ => self.journal.push(StoreOp::Delete(StoreKey::new(id, kind, number))),
        }
    }

    /// The messages that make a network's groups what they have to be in another form of it.
    pub(crate) fn changed_groups(
        &self,
        tenant: TenantIndex,
        before: &Network,
        after: &Network,
    ) -> Result<Vec<Vec<u8>>, ErrorCode> {
        let groups = self.numbers(tenant, Kind::Group);
        let mut messages = Vec::new();
        for number in groups.all() {
            let Some(known) = groups.get(number) else { continue };
            let Ok(group) = GroupMod::parse(&known.body) else { continue };
            let told = (GroupModCommand::MODIFY, known.physical);
            let (mut was, mut is) = (Vec::new(), Vec::new());
            self.write_group_in(tenant, Some(after), &group, told, &mut is)?;
            let written = self.write_group_in(tenant, Some(before), &group, told, &mut was);
            if written.is_err() || was != is {
                messages.push(is);
            }
        }
        Ok(messages)
    }

    /// A group's counts as its tenant knows its buckets: those that are left out on the switch count nothing.
    pub(crate) fn bucket_counters(
        &self,
        tenant: TenantIndex,
        group: u32,
        counted: List<'_, BucketCounter>,
    ) -> ListBuf<BucketCounter> {
        let network = self.tenants[tenant.0 as usize].network.as_deref();
        let known = self.numbers(tenant, Kind::Group).get(group);
        let known = known.and_then(|known| GroupMod::parse(&known.body).ok());
        let mut counted = counted.iter();
        let mut counters = ListBuf::<BucketCounter>::new();
        if let (Some(network), Some(known)) = (network, known) {
            for bucket in known.buckets {
                match is_left_out(network, known.type_, &bucket) {
                    true => counters.push(BucketCounter::default()),
                    false => counted.next().into_iter().for_each(|next| counters.push(next)),
                }
            }
        }
        counted.for_each(|rest| counters.push(rest));
        counters
    }

    /// The policy or the ports have changed: what a group may send to is checked anew, and a tenant that is gone leaves
    /// none behind.
    pub(crate) fn resync_numbers(&mut self, now: Instant) {
        let mut messages = Vec::new();
        for at in 0..self.tenants.len() {
            let tenant = TenantIndex(at as u32);
            let present = self.tenants[at].present;
            for number in self.numbers(tenant, Kind::Group).all() {
                let Some(known) = self.numbers(tenant, Kind::Group).get(number) else { continue };
                let physical = known.physical;
                let mut message = Vec::new();
                let stays = present
                    && GroupMod::parse(&known.body).is_ok_and(|group| {
                        let command = GroupModCommand::MODIFY;
                        self.write_group(tenant, &group, command, physical, &mut message).is_ok()
                    });
                if !stays {
                    message.clear();
                    self.replace_number(tenant, Kind::Group, number, None);
                    self.free_number(Kind::Group, physical);
                    // It fits: a deletion is a few bytes.
                    let _ = write_deletion(Kind::Group, physical, &mut message);
                }
                messages.push(message);
            }
            let gone = if present { Vec::new() } else { self.numbers(tenant, Kind::Meter).all() };
            for number in gone {
                if let Some(known) = self.replace_number(tenant, Kind::Meter, number, None) {
                    self.free_number(Kind::Meter, known.physical);
                    let mut message = Vec::new();
                    let _ = write_deletion(Kind::Meter, known.physical, &mut message);
                    messages.push(message);
                }
            }
        }
        for message in messages {
            self.send_own(Awaits::Nothing, Class::Modification, &message, now);
        }
    }

    /// Installs what is missing. A group or meter that nobody's table knows may be somebody else's, who shares the
    /// switch with the hypervisor: its number is not given out.
    pub(crate) fn reconcile_numbers(&mut self, groups: &[u8], meters: &[u8], now: Instant) {
        let held_groups: BTreeSet<u32> = List::<GroupDesc<'_>>::parse(groups)
            .unwrap_or_default()
            .iter()
            .map(|group| group.group_id)
            .collect();
        let held_meters: BTreeSet<u32> = List::<MeterConfig<'_>>::parse(meters)
            .unwrap_or_default()
            .iter()
            .map(|meter| meter.meter_id)
            .collect();
        let mut messages = Vec::new();
        for at in 0..self.tenants.len() {
            let tenant = TenantIndex(at as u32);
            for number in self.numbers(tenant, Kind::Group).all() {
                let Some(known) = self.numbers(tenant, Kind::Group).get(number) else { continue };
                let Ok(group) = GroupMod::parse(&known.body) else { continue };
                let command = if held_groups.contains(&known.physical) {
                    GroupModCommand::MODIFY
                } else {
                    GroupModCommand::ADD
                };
                let mut message = Vec::new();
                let written =
                    self.write_group(tenant, &group, command, known.physical, &mut message);
                if written.is_ok() {
                    messages.push(message);
                }
            }
            for number in self.numbers(tenant, Kind::Meter).all() {
                let Some(known) = self.numbers(tenant, Kind::Meter).get(number) else { continue };
                let Ok(meter) = MeterMod::parse(&known.body) else { continue };
                if !held_meters.contains(&known.physical) {
                    let command = MeterModCommand::ADD;
                    let mut message = Vec::new();
                    let wanted = MeterMod { meter_id: known.physical, command, ..meter };
                    if wanted.write_message(0, &mut message).is_ok() {
                        messages.push(message);
                    }
                }
            }
        }
        self.used.groups.extend(held_groups);
        self.used.meters.extend(held_meters);
        for message in messages {
            self.send_own(Awaits::Nothing, Class::Modification, &message, now);
        }
    }
}

/// Whether a bucket is not written: its group is for failing over, and it watches nothing but a port that is not live,
/// though what that stands on may be.
fn is_left_out(network: &Network, type_: GroupType, bucket: &Bucket<'_>) -> bool {
    type_ == GroupType::FF
        && bucket.watch_group == GROUP_ANY
        && bucket.watch_port != PortNo::ANY
        && !network.is_live(bucket.watch_port.0)
}

fn write_deletion(kind: Kind, physical: u32, out: &mut Vec<u8>) -> Result<(), TooLong> {
    match kind {
        Kind::Meter => MeterMod {
            command: MeterModCommand::DELETE,
            flags: Default::default(),
            meter_id: physical,
            bands: List::EMPTY,
        }
        .write_message(0, out),
        _ => GroupMod {
            command: GroupModCommand::DELETE,
            type_: GroupType::ALL,
            group_id: physical,
            buckets: List::EMPTY,
        }
        .write_message(0, out),
    }
}
