//! Actions and instructions: what a tenant may do with its packets, and how that is said to the switch.
//!
//! Packets in a tenant's tables are the tenant's: table 0 saw to it. They stay so by induction: each rewrite is checked
//! to lead from the tenant's space into the tenant's space before anything is sent or another table is entered. Action
//! sets are merged from several tables, so there each rewrite has to keep the *whole* space inside, by itself.

use crate::flows::check_length;
use crate::ids::TenantIndex;
use crate::store::Kind;
use crate::switch::Switch;
use crate::told;
use alloc::vec::Vec;
use flowspace::field::ethertype;
use flowspace::frame::is_vlan;
use flowspace::{Field, Key, Match};
use openflow::error::v13 as code;
use openflow::v13::{Action, Instruction, PortNo};
use openflow::{ErrorCode, List};

/// The packets that a list is applied to.
#[derive(Clone, Copy)]
pub(crate) enum Packets<'a> {
    /// Those of these regions.
    Regions(&'a [Match]),
    /// One packet that is sent out; the port it entered by, if it did.
    One(&'a Key, Option<u32>),
}

impl Packets<'_> {
    /// Their Ethernet type, where it is the same for all.
    fn dl_type(&self) -> Option<u128> {
        match self {
            Packets::Regions(regions) => {
                let mut types = regions.iter().map(|region| region.exact_value(Field::DlType));
                let first = types.next()?;
                first.filter(|_| types.all(|other| other == first))
            }
            Packets::One(key, _) => Some(key.get(Field::DlType)),
        }
    }
}

/// Where a list stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Carried out in order.
    List,
    /// An action set, or a bucket: one output at most, so FLOOD cannot become several.
    Set,
}

impl Switch {
    /// The instructions of an entry as they have to be on the switch.
    pub(crate) fn translate_instructions_v13(
        &self,
        tenant: TenantIndex,
        table: u8,
        match_: &Match,
        instructions: List<'_, Instruction<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        let regions = self.regions(tenant, match_);
        for instruction in instructions {
            match instruction {
                Instruction::ApplyActions(list) => {
                    let mut actions = Vec::new();
                    let packets = Packets::Regions(&regions);
                    self.translate_actions_v13(tenant, packets, list, &mut actions)?;
                    let list = List::parse(&actions).map_err(super::unreadable)?;
                    Instruction::ApplyActions(list).write(out);
                }
                Instruction::WriteActions(list) => {
                    let mut actions = Vec::new();
                    self.translate_set_v13(tenant, list, &mut actions)?;
                    let list = List::parse(&actions).map_err(super::unreadable)?;
                    Instruction::WriteActions(list).write(out);
                }
                other => self.plain_instruction_v13(tenant, table, other, out)?,
            }
        }
        Ok(())
    }

    /// An instruction without actions: the same for slices and networks.
    pub(crate) fn plain_instruction_v13(
        &self,
        tenant: TenantIndex,
        table: u8,
        instruction: Instruction<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        match instruction {
            Instruction::GotoTable(next) => {
                if next <= table || next >= self.tenant_tables(tenant) {
                    return Err(code::BAD_INSTRUCTION_BAD_TABLE_ID);
                }
                Instruction::GotoTable(next + self.first_table()).write(out);
            }
            Instruction::WriteMetadata { mask, .. } if mask & self.metadata_kept(tenant) != 0 => {
                return Err(code::BAD_INSTRUCTION_UNSUP_METADATA_MASK);
            }
            Instruction::WriteMetadata { .. } | Instruction::ClearActions => instruction.write(out),
            Instruction::Meter(number) => {
                let known = self.numbers(tenant, Kind::Meter).get(number);
                let known = known.ok_or(code::METER_MOD_FAILED_UNKNOWN_METER)?;
                Instruction::Meter(known.physical).write(out);
            }
            Instruction::Experimenter { experimenter, .. } => {
                if !self.tenants[tenant.0 as usize].experimenters.contains(&experimenter) {
                    return Err(code::BAD_INSTRUCTION_BAD_EXPERIMENTER);
                }
                instruction.write(out);
            }
            Instruction::ApplyActions(_)
            | Instruction::WriteActions(_)
            | Instruction::Unknown { .. } => {
                return Err(code::BAD_INSTRUCTION_UNKNOWN_INST);
            }
        }
        Ok(())
    }

    /// A list that is carried out in order.
    pub(crate) fn translate_actions_v13(
        &self,
        tenant: TenantIndex,
        packets: Packets<'_>,
        actions: List<'_, Action<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        let mut images: Option<Vec<Match>> = None;
        let mut inside = true;
        for action in actions {
            if sends(&action) {
                self.check_images(tenant, &images, &mut inside)?;
                let lone = matches!(packets, Packets::One(_, None)) && images.is_some();
                self.translate_sending(tenant, packets, lone, Place::List, action, out)?;
                check_length(out)?;
            } else {
                self.check_action(tenant, &action)?;
                if rewrites(&action) {
                    let before = images.take().unwrap_or_else(|| regions_of(packets));
                    images = Some(before.iter().map(|region| region.image_v13(&action)).collect());
                    inside = false;
                }
                action.write(out);
            }
        }
        // What goes on to other tables has to be inside too; a packet that was sent out by hand goes nowhere else.
        match packets {
            Packets::Regions(_) => self.check_images(tenant, &images, &mut inside),
            Packets::One(..) => Ok(()),
        }
    }

    /// An action set: merged with others, carried out at the end of the pipeline.
    fn translate_set_v13(
        &self,
        tenant: TenantIndex,
        actions: List<'_, Action<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        let whole = self.regions(tenant, &Match::ANY);
        for action in actions {
            if sends(&action) {
                let packets = Packets::Regions(&whole);
                self.translate_sending(tenant, packets, false, Place::Set, action, out)?;
                continue;
            }
            self.check_action(tenant, &action)?;
            if rewrites(&action) {
                let images: Vec<Match> = whole.iter().map(|r| r.image_v13(&action)).collect();
                self.check_images(tenant, &Some(images), &mut false)?;
            }
            action.write(out);
        }
        Ok(())
    }

    /// A bucket: its actions are carried out as a set, on a copy of any of the tenant's packets.
    pub(crate) fn translate_bucket_v13(
        &self,
        tenant: TenantIndex,
        group: u32,
        actions: List<'_, Action<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        let whole = self.regions(tenant, &Match::ANY);
        let mut images = whole.clone();
        let mut sorted: Vec<Action<'_>> = actions.iter().collect();
        sorted.sort_by_key(order_in_set);
        for action in &sorted {
            if !sends(action) {
                self.check_action(tenant, action)?;
                images = images.iter().map(|region| region.image_v13(action)).collect();
            }
        }
        let changed = sorted.iter().any(rewrites);
        self.check_images(tenant, &changed.then_some(images), &mut false)?;
        for action in actions {
            if let Action::Group(number) = action
                && number == group
            {
                return Err(code::GROUP_MOD_FAILED_LOOP);
            }
            if sends(&action) {
                let packets = Packets::Regions(&whole);
                self.translate_sending(tenant, packets, false, Place::Set, action, out)?;
            } else {
                action.write(out);
            }
        }
        Ok(())
    }

    /// Actions by which a packet leaves: OUTPUT and GROUP; and QUEUE, which says how.
    fn translate_sending(
        &self,
        tenant: TenantIndex,
        packets: Packets<'_>,
        lone_and_changed: bool,
        place: Place,
        action: Action<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        let (port, max_len) = match action {
            Action::Group(number) => {
                let known = self.numbers(tenant, Kind::Group).get(number);
                let known = known.ok_or(code::BAD_ACTION_BAD_OUT_GROUP)?;
                Action::Group(known.physical).write(out);
                return Ok(());
            }
            Action::Output { port, max_len } => (port, max_len),
            _ => return Err(code::BAD_ACTION_BAD_TYPE),
        };
        match port {
            PortNo::FLOOD | PortNo::ALL if !self.view.may_output_everywhere(tenant) => {
                if place == Place::Set {
                    return Err(code::BAD_ACTION_BAD_OUT_PORT);
                }
                let entered = match packets {
                    Packets::One(_, in_port) => in_port,
                    Packets::Regions(_) => None,
                };
                for number in self.ports.keys() {
                    if *number != PortNo::LOCAL.0
                        && Some(*number) != entered
                        && self.view.may_output(tenant, *number)
                    {
                        Action::Output { port: PortNo(*number), max_len }.write(out);
                    }
                }
                Ok(())
            }
            PortNo::TABLE => {
                let Packets::One(key, _) = packets else {
                    return Err(code::BAD_ACTION_BAD_OUT_PORT);
                };
                if self.view.owner(key) != Some(tenant) || lone_and_changed {
                    return Err(code::BAD_ACTION_EPERM);
                }
                action.write(out);
                Ok(())
            }
            PortNo::CONTROLLER => {
                let max_len = told::length(max_len, packets.dl_type());
                Action::Output { port, max_len }.write(out);
                Ok(())
            }
            PortNo::FLOOD | PortNo::ALL | PortNo::IN_PORT => {
                action.write(out);
                Ok(())
            }
            PortNo::NORMAL | PortNo::ANY => Err(code::BAD_ACTION_BAD_OUT_PORT),
            port if self.view.may_output(tenant, port.0) => {
                action.write(out);
                Ok(())
            }
            _ => Err(code::BAD_ACTION_BAD_OUT_PORT),
        }
    }

    pub(crate) fn check_action(
        &self,
        tenant: TenantIndex,
        action: &Action<'_>,
    ) -> Result<(), ErrorCode> {
        let state = &self.tenants[tenant.0 as usize];
        match action {
            Action::SetQueue(queue) if !state.queues.contains(queue) => {
                Err(code::BAD_ACTION_BAD_QUEUE)
            }
            Action::Experimenter { experimenter, .. }
                if !state.experimenters.contains(experimenter) =>
            {
                Err(code::BAD_ACTION_BAD_EXPERIMENTER)
            }
            Action::Unknown { .. } => Err(code::BAD_ACTION_BAD_TYPE),
            // Anything else would make tags and shims of what is not looked at as such.
            Action::PushVlan(type_) if !is_vlan(*type_) => Err(code::BAD_ACTION_BAD_ARGUMENT),
            Action::PushMpls(type_)
                if !matches!(*type_, ethertype::MPLS | ethertype::MPLS_MULTICAST) =>
            {
                Err(code::BAD_ACTION_BAD_ARGUMENT)
            }
            Action::PushPbb(type_) if *type_ != ethertype::PBB => {
                Err(code::BAD_ACTION_BAD_ARGUMENT)
            }
            // By addresses and tags that come to light nobody could say whose a network's packets are, and for whom.
            Action::PopMpls(type_) if state.network.is_some() && is_vlan(*type_) => {
                Err(code::BAD_ACTION_BAD_ARGUMENT)
            }
            Action::PushPbb(_) | Action::PopPbb if state.network.is_some() => {
                Err(code::BAD_ACTION_BAD_TYPE)
            }
            // Where the packet came from and whose it is are not the tenant's to say.
            Action::SetField(oxm)
                if matches!(
                    oxm.basic(),
                    None | Some(
                        openflow::v13::OxmField::IN_PORT
                            | openflow::v13::OxmField::IN_PHY_PORT
                            | openflow::v13::OxmField::METADATA
                    )
                ) =>
            {
                Err(code::BAD_ACTION_BAD_SET_TYPE)
            }
            Action::SetField(oxm) if oxm.has_mask() => Err(code::BAD_ACTION_BAD_SET_ARGUMENT),
            _ => Ok(()),
        }
    }

    fn check_images(
        &self,
        tenant: TenantIndex,
        images: &Option<Vec<Match>>,
        inside: &mut bool,
    ) -> Result<(), ErrorCode> {
        if *inside {
            return Ok(());
        }
        for image in images.iter().flatten() {
            let nowhere =
                image.exact_value(Field::InPort) == Some(u128::from(PortNo::CONTROLLER.0));
            let image = if nowhere { image.without(Field::InPort) } else { *image };
            if !self.view.wins_everywhere(tenant, &image) && !self.wins_at_own_ports(tenant, &image)
            {
                return Err(code::BAD_ACTION_EPERM);
            }
        }
        *inside = true;
        Ok(())
    }

    /// The parts of the tenant's space that a match meets, whatever the match says of metadata.
    fn regions(&self, tenant: TenantIndex, match_: &Match) -> Vec<Match> {
        let match_ = match_.without(Field::Metadata);
        let Some(space) = self.view.space(tenant) else { return Vec::new() };
        space.write.iter().filter_map(|own| own.match_.intersect(&match_)).collect()
    }
}

/// Whether two lists of instructions do the same: a switch may report a length limit that it does not use.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    let parse = |bytes| List::<Instruction<'_>>::parse(bytes);
    let (Ok(a), Ok(b)) = (parse(a), parse(b)) else { return false };
    let mut b: Vec<Instruction<'_>> = b.iter().collect();
    // The order of instructions in an entry means nothing (specification section 5.9).
    a.iter().all(|x| match b.iter().position(|y| same_instruction(&x, y)) {
        Some(at) => {
            b.swap_remove(at);
            true
        }
        None => false,
    }) && b.is_empty()
}

fn same_instruction(a: &Instruction<'_>, b: &Instruction<'_>) -> bool {
    match (a, b) {
        (Instruction::ApplyActions(a), Instruction::ApplyActions(b))
        | (Instruction::WriteActions(a), Instruction::WriteActions(b)) => {
            a.iter().map(shortened).eq(b.iter().map(shortened))
        }
        _ => a == b,
    }
}

fn shortened(action: Action<'_>) -> Action<'_> {
    match action {
        Action::Output { port, .. } if port != PortNo::CONTROLLER => {
            Action::Output { port, max_len: 0 }
        }
        other => other,
    }
}

fn sends(action: &Action<'_>) -> bool {
    matches!(action, Action::Output { .. } | Action::Group(_))
}

/// Whether headers that a flowspace can tell may change.
fn rewrites(action: &Action<'_>) -> bool {
    matches!(
        action,
        Action::SetField(_)
            | Action::PushVlan(_)
            | Action::PopVlan
            | Action::PushMpls(_)
            | Action::PopMpls(_)
            | Action::PushPbb(_)
            | Action::PopPbb
    )
}

/// The order in which the actions of a set are carried out (specification section 5.10).
pub(super) fn order_in_set(action: &Action<'_>) -> u8 {
    match action {
        Action::CopyTtlIn => 0,
        Action::PopVlan | Action::PopMpls(_) | Action::PopPbb => 1,
        Action::PushMpls(_) => 2,
        Action::PushPbb(_) => 3,
        Action::PushVlan(_) => 4,
        Action::CopyTtlOut => 5,
        Action::DecMplsTtl | Action::DecNwTtl => 6,
        Action::SetField(_) | Action::SetNwTtl(_) | Action::SetMplsTtl(_) => 7,
        Action::SetQueue(_) => 8,
        Action::Group(_) => 9,
        _ => 10,
    }
}

fn regions_of(packets: Packets<'_>) -> Vec<Match> {
    match packets {
        Packets::Regions(regions) => regions.to_vec(),
        Packets::One(key, _) => Vec::from([crate::view::exactly(key)]),
    }
}
