//! Executes GROUP_MOD and METER_MOD (1.3, sections 7.3.4.4 and 7.3.4.5).

use openflow::ErrorCode;
use openflow::error::v13 as code;
use openflow::v13::{
    Bucket as WireBucket, GROUP_ALL, GROUP_MAX, GroupMod, GroupModCommand, GroupType, METER_ALL,
    METER_MAX, MeterBand, MeterFlags, MeterMod, MeterModCommand, PortNo,
};

use super::actions;
use crate::action::{ANY_GROUP, port};
use crate::datapath::MAX_BANDS;
use crate::effects::Effects;
use crate::groups::{Bucket, Group, GroupKind};
use crate::meters::{Band, BandKind, Meter};
use crate::state::State;

/// Executes a GROUP_MOD.
pub(super) fn change(
    switch: &mut State,
    now: u64,
    body: &GroupMod<'_>,
    effects: &mut Effects,
) -> Result<(), ErrorCode> {
    let id = body.group_id;
    if switch.faults.refuses_group_mod() {
        return Err(code::GROUP_MOD_FAILED_OUT_OF_GROUPS);
    }
    match body.command {
        GroupModCommand::DELETE if id == GROUP_ALL => switch.datapath.groups_clear(now, effects),
        GroupModCommand::DELETE => return switch.datapath.group_delete(now, id, effects),
        GroupModCommand::ADD | GroupModCommand::MODIFY if id > GROUP_MAX => {
            return Err(code::GROUP_MOD_FAILED_INVALID_GROUP);
        }
        GroupModCommand::ADD => {
            let group = chainable(switch, group(now, body)?)?;
            return switch.datapath.group_add(id, group);
        }
        GroupModCommand::MODIFY => {
            let group = chainable(switch, group(now, body)?)?;
            return switch.datapath.group_modify(id, group);
        }
        _ => return Err(code::GROUP_MOD_FAILED_BAD_COMMAND),
    }
    Ok(())
}

fn chainable(switch: &State, group: Group) -> Result<Group, ErrorCode> {
    match switch.faults.refuses_chaining() && group.references().next().is_some() {
        true => Err(code::GROUP_MOD_FAILED_CHAINING_UNSUPPORTED),
        false => Ok(group),
    }
}

fn group(now: u64, body: &GroupMod<'_>) -> Result<Group, ErrorCode> {
    let kind = match body.type_ {
        GroupType::ALL => GroupKind::All,
        GroupType::SELECT => GroupKind::Select,
        GroupType::INDIRECT => GroupKind::Indirect,
        GroupType::FF => GroupKind::FastFailover,
        _ => return Err(code::GROUP_MOD_FAILED_BAD_TYPE),
    };
    let buckets =
        body.buckets.iter().map(|wire| bucket(kind, &wire)).collect::<Result<Vec<_>, _>>()?;
    if kind == GroupKind::Indirect && buckets.len() != 1 {
        return Err(code::GROUP_MOD_FAILED_INVALID_GROUP);
    }
    Ok(Group { kind, buckets, created: now, packets: 0, bytes: 0 })
}

fn bucket(kind: GroupKind, wire: &WireBucket<'_>) -> Result<Bucket, ErrorCode> {
    if wire.weight != 0 && kind != GroupKind::Select {
        return Err(code::GROUP_MOD_FAILED_INVALID_GROUP);
    }
    let watches = wire.watch_port != PortNo::ANY || wire.watch_group != ANY_GROUP;
    if kind == GroupKind::FastFailover && !watches {
        return Err(code::GROUP_MOD_FAILED_INVALID_GROUP);
    }
    let is_port = matches!(wire.watch_port.0, 1..=port::MAX | port::LOCAL | port::ANY);
    if !is_port {
        return Err(code::GROUP_MOD_FAILED_BAD_WATCH);
    }
    Ok(Bucket {
        weight: wire.weight,
        watch_port: wire.watch_port.0,
        watch_group: wire.watch_group,
        actions: actions::read(wire.actions)?,
        packets: 0,
        bytes: 0,
    })
}

/// Executes a METER_MOD.
pub(super) fn change_meter(
    switch: &mut State,
    now: u64,
    body: &MeterMod<'_>,
    effects: &mut Effects,
) -> Result<(), ErrorCode> {
    let id = body.meter_id;
    let is_possible = (1..=METER_MAX).contains(&id);
    match body.command {
        MeterModCommand::DELETE if id == METER_ALL => {
            switch.datapath.meter_delete(now, None, effects);
            Ok(())
        }
        MeterModCommand::ADD | MeterModCommand::MODIFY | MeterModCommand::DELETE
            if !is_possible =>
        {
            Err(code::METER_MOD_FAILED_INVALID_METER)
        }
        MeterModCommand::DELETE => {
            switch.datapath.meter_delete(now, Some(id), effects);
            Ok(())
        }
        MeterModCommand::ADD => {
            let meter = meter(now, body)?;
            switch.datapath.meter_add(id, meter)
        }
        MeterModCommand::MODIFY => {
            let meter = meter(now, body)?;
            switch.datapath.meter_modify(id, meter)
        }
        _ => Err(code::METER_MOD_FAILED_BAD_COMMAND),
    }
}

fn meter(now: u64, body: &MeterMod<'_>) -> Result<Meter, ErrorCode> {
    let both = MeterFlags::KBPS | MeterFlags::PKTPS;
    const KNOWN_FLAGS: MeterFlags = MeterFlags(0xf);
    if body.flags.contains(both) || !KNOWN_FLAGS.contains(body.flags) {
        return Err(code::METER_MOD_FAILED_BAD_FLAGS);
    }
    if body.bands.count() > MAX_BANDS {
        return Err(code::METER_MOD_FAILED_OUT_OF_BANDS);
    }
    let bands = body.bands.iter().map(|wire| band(&wire)).collect::<Result<_, _>>()?;
    Ok(Meter::new(now, body.flags.0, bands))
}

fn band(wire: &MeterBand<'_>) -> Result<Band, ErrorCode> {
    if wire.rate() == 0 {
        return Err(code::METER_MOD_FAILED_BAD_RATE);
    }
    let kind = match *wire {
        MeterBand::Drop { .. } => BandKind::Drop,
        MeterBand::DscpRemark { prec_level, .. } => BandKind::DscpRemark(prec_level),
        _ => return Err(code::METER_MOD_FAILED_BAD_BAND),
    };
    Ok(Band::new(kind, wire.rate(), wire.burst_size()))
}
