//! A switch's data sheet: measured figures of a switch, and a tenant's share.
//!
//! A sheet has two figures for each class of messages: the *safe rate*, at which the switch loses nothing and queues
//! nothing, and the *cost*, the time for which one message keeps the switch busy. By its weight a tenant gets a share
//! of each safe rate, and a share of the switch's time. The second share is for mixtures: a tenant that uses its whole
//! share of one class has no time left for another class.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;

/// A class of messages that are measured and limited together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageClass {
    /// PACKET_OUT.
    PacketOut,
    /// FLOW_MOD, GROUP_MOD, METER_MOD, PORT_MOD.
    FlowMod,
    /// Statistics (multipart) requests.
    Statistics,
    /// Barriers, and all other requests that have an answer.
    Other,
    /// PACKET_IN: the switch sends these.
    PacketIn,
}

impl MessageClass {
    /// All classes.
    pub const ALL: [MessageClass; 5] = [
        MessageClass::PacketOut,
        MessageClass::FlowMod,
        MessageClass::Statistics,
        MessageClass::Other,
        MessageClass::PacketIn,
    ];
}

/// A figure of a sheet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// The name of the figure in the sheet, such as `safe_rates.echo`.
    pub name: String,
    /// The experiment that measured the figure.
    pub experiment: String,
    /// The value.
    pub value: f64,
}

/// The measured figures of a class of messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The safe rate: messages per second, above 0.
    pub rate: Figure,
    /// For how long one message keeps the switch busy, ns; at least 1.
    pub cost: u64,
}

/// How many rules a table holds.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSize {
    /// Rules.
    pub rules: u32,
    /// The figure for this size.
    pub figure: Figure,
}

/// A data sheet, as far as limits need it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// The file of the sheet.
    pub file: String,
    /// When the switch was measured.
    pub measured: String,
    /// The datapath id of the measured switch.
    pub dpid: Option<u64>,
    /// Manufacturer, hardware and software of the measured switch, by its description.
    pub description: Option<[String; 3]>,
    /// How many rules the switch's table holds, if the table was full once.
    pub table: Option<TableSize>,
    /// The measured classes.
    pub classes: BTreeMap<MessageClass, Measured>,
}

/// Whether the operator names a sheet for a switch, and whether the sheet is of this switch.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Standing {
    /// The operator names no sheet.
    #[default]
    None,
    /// Limits come from this sheet.
    Holds(Arc<Sheet>),
    /// This sheet is of another switch, and is not used.
    OfAnother(Arc<Sheet>),
}

/// The source of a limit on messages.
#[derive(Clone, Debug, PartialEq)]
pub enum RateBy {
    /// The operator.
    Operator,
    /// The switch's data sheet.
    Sheet(Measured),
}

/// How many messages of a class a tenant may send, or get.
#[derive(Clone, Debug, PartialEq)]
pub struct RateShare {
    /// The class.
    pub class: MessageClass,
    /// Messages per second.
    pub per_second: f64,
    /// Messages that may come at once after a silence.
    pub burst: u32,
    /// The source of the limit.
    pub by: RateBy,
}

/// What Weir knows of a switch itself.
#[derive(Debug, Default)]
pub(crate) struct Described {
    asked: bool,
    /// Whether the switch has answered, or refused.
    answered: bool,
    /// Manufacturer, hardware, software.
    description: Option<[String; 3]>,
    standing: Standing,
}

/// The most expensive message counts as this many of the cheapest messages in the scheduler.
const DEAREST: u64 = 256;

impl Described {
    /// Manufacturer, hardware, software, if the switch has reported them.
    pub(crate) fn description(&self) -> Option<&[String; 3]> {
        self.description.as_ref()
    }

    /// Whether there is a sheet, and whether the sheet is of this switch.
    pub(crate) fn standing(&self) -> &Standing {
        &self.standing
    }

    /// The sheet from which limits are computed.
    pub(crate) fn in_force(&self) -> Option<&Arc<Sheet>> {
        match &self.standing {
            Standing::Holds(sheet) => Some(sheet),
            Standing::None | Standing::OfAnother(_) => None,
        }
    }

    /// Finds out whether a sheet is of the switch, as far as Weir knows. Returns whether the sheet turns out to be of
    /// another switch.
    pub(crate) fn judge(&mut self, sheet: Option<&Arc<Sheet>>, dpid: u64) -> bool {
        let holds = |sheet: &Sheet| {
            let may_be = !self.answered && sheet.description.is_some();
            may_be || sheet.is_of(dpid, self.description.as_ref())
        };
        let standing = match sheet {
            None => Standing::None,
            Some(sheet) if holds(sheet) => Standing::Holds(sheet.clone()),
            Some(sheet) => Standing::OfAnother(sheet.clone()),
        };
        let is_other = standing != self.standing;
        self.standing = standing;
        is_other && matches!(self.standing, Standing::OfAnother(_))
    }

    /// Whether Weir has to ask for the description of the switch, because a data sheet is only for switches of one
    /// description. After this call Weir counts the question as asked.
    pub(crate) fn ask(&mut self) -> bool {
        let is_wanted = !self.asked && self.standing != Standing::None;
        self.asked |= is_wanted;
        is_wanted
    }

    /// The switch has answered the question for its description, or has refused the question.
    pub(crate) fn answered(&mut self, description: Option<[&str; 3]>) {
        self.answered = true;
        self.description = description.map(|words| words.map(Into::into));
    }
}

impl Sheet {
    /// Whether the sheet is of the switch with this datapath id and description. The description decides: switches of
    /// one kind are alike, and a switch with other software is another switch. If one of the descriptions is unknown,
    /// the datapath id decides.
    pub fn is_of(&self, dpid: u64, description: Option<&[String; 3]>) -> bool {
        match (&self.description, description) {
            (Some(sheet), Some(switch)) => sheet == switch,
            _ => self.dpid == Some(dpid),
        }
    }

    /// The scheduler's cost of a message of a class: how many of the cheapest messages take as long.
    pub(crate) fn units(&self, class: MessageClass) -> u32 {
        let by_tenants = self.classes.iter().filter(|(class, _)| **class != MessageClass::PacketIn);
        let costs = by_tenants.map(|(_, measured)| measured.cost);
        match (self.classes.get(&class), costs.min()) {
            (Some(measured), Some(least)) => {
                (measured.cost / least.max(1)).clamp(1, DEAREST) as u32
            }
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::ToOwned;

    fn measured(value: f64, cost: u64) -> Measured {
        Measured { rate: Figure { value, ..Figure::default() }, cost }
    }

    #[test]
    fn a_sheet_is_assigned_by_the_description_or_else_by_the_datapath_id() {
        let words = |software: &str| ["maker", "box", software].map(str::to_owned);
        let sheet = Sheet { dpid: Some(7), description: Some(words("1.0")), ..Sheet::default() };
        assert!(sheet.is_of(7, Some(&words("1.0"))) && sheet.is_of(8, Some(&words("1.0"))));
        assert!(!sheet.is_of(7, Some(&words("2.0"))));
        assert!(sheet.is_of(7, None) && !sheet.is_of(8, None));
        let old = Sheet { description: None, ..sheet };
        assert!(old.is_of(7, Some(&words("2.0"))) && !old.is_of(8, Some(&words("1.0"))));
        assert!(!Sheet::default().is_of(7, None));
    }

    #[test]
    fn a_slow_message_class_costs_up_to_256_units() {
        let mut sheet = Sheet::default();
        assert_eq!(sheet.units(MessageClass::FlowMod), 1);
        sheet.classes.insert(MessageClass::PacketIn, measured(1e9, 1));
        sheet.classes.insert(MessageClass::Other, measured(10_000.0, 100_000));
        sheet.classes.insert(MessageClass::Statistics, measured(10.0, 20_000_000));
        sheet.classes.insert(MessageClass::FlowMod, measured(1.0, 1_000_000_000));
        let units = [MessageClass::Other, MessageClass::Statistics, MessageClass::FlowMod];
        assert_eq!(units.map(|class| sheet.units(class)), [1, 200, 256]);
        assert_eq!(sheet.units(MessageClass::PacketOut), 1, "what was not measured");
    }
}
