//! Faults that a test plants in a switch, to see whether others notice.

/// One planted fault. Several can be planted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Barriers are answered at once, but each FLOW_MOD takes effect this many ns after it came.
    BarrierLies {
        /// By how much, ns.
        by: u64,
    },
    /// Every nth FLOW_MOD that would add is refused as if the table were full.
    RefuseFlowMods {
        /// The n, from 1.
        every: u32,
    },
    /// Every nth GROUP_MOD is refused as if there were no room.
    RefuseGroupMods {
        /// The n, from 1.
        every: u32,
    },
    /// One FLOW_MOD that would add, or GROUP_MOD, is refused, and no other: the requests that restore the state before are accepted.
    RefuseOnce {
        /// The n, from 1, of those of both kinds since the fault was planted.
        nth: u32,
    },
    /// Groups that send to groups are refused, as by a switch that has no chaining and says so.
    RefuseChaining,
    /// Tables report a size of one million entries, whatever their real size is.
    HideTableSizes,
    /// Messages of this type (the header's type field) are swallowed.
    NeverAnswers {
        /// Message type.
        message_type: u8,
    },
    /// Statistics are told in small parts with pauses.
    PaceStatistics {
        /// Entries in one part at most, from 1.
        entries: usize,
        /// ns before each part.
        interval: u64,
    },
    /// Packets whose bytes an action changed are lost.
    DropChangedPackets,
    /// What is in the action set of a packet that meets no entry of a table is done, as Open vSwitch has it; by the specification
    /// (1.3, section 5.1) such a packet is dropped with its set.
    RunSetOnMiss,
    /// Every packet leaves by its port's queue 0, whatever an action said.
    IgnoreQueues,
    /// The connection is cut in the middle of the answer to the nth message.
    DisconnectInReply {
        /// The n, from 1, HELLO counted.
        message: u64,
    },
    /// After the answer to the nth message come bytes that are no OpenFlow.
    Garbage {
        /// The n, from 1, HELLO counted.
        message: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Every nth answer is sent twice.
    ReplyTwice {
        /// The n, from 1.
        every: u32,
    },
    /// Every nth answer has another transaction id.
    WrongXid {
        /// The n, from 1.
        every: u32,
    },
}

/// The planted faults, and how far they have counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    planted: Vec<Fault>,
    messages: u64,
    additions: u32,
    group_mods: u32,
    replies: u32,
}

/// What is to happen to an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spoiled {
    pub(crate) twice: bool,
    pub(crate) wrong_xid: bool,
    pub(crate) cut: bool,
    pub(crate) garbage: Vec<u8>,
}

impl Faults {
    pub(crate) fn new(planted: Vec<Fault>) -> Faults {
        Faults { planted, ..Faults::default() }
    }

    pub(crate) fn planted(&self) -> &[Fault] {
        &self.planted
    }

    /// Counts a message; whether it is to be swallowed.
    pub(crate) fn swallows(&mut self, type_: u8) -> bool {
        self.messages += 1;
        let swallows =
            |f: &Fault| matches!(f, Fault::NeverAnswers { message_type } if *message_type == type_);
        self.planted.iter().any(swallows)
    }

    /// How late FLOW_MODs take effect, ns.
    pub(crate) fn flow_mod_delay(&self) -> Option<u64> {
        self.planted.iter().find_map(|fault| match fault {
            Fault::BarrierLies { by } => Some(*by),
            _ => None,
        })
    }

    /// Counts a FLOW_MOD that would add; whether it is to be refused.
    pub(crate) fn refuses_addition(&mut self) -> bool {
        self.additions = self.additions.wrapping_add(1);
        let count = self.additions;
        self.planted
            .iter()
            .any(|fault| matches!(fault, Fault::RefuseFlowMods { every } if is_nth(count, *every)))
            || self.refuses_once()
    }

    /// Counts a GROUP_MOD; whether it is to be refused.
    pub(crate) fn refuses_group_mod(&mut self) -> bool {
        self.group_mods = self.group_mods.wrapping_add(1);
        let count = self.group_mods;
        self.planted
            .iter()
            .any(|fault| matches!(fault, Fault::RefuseGroupMods { every } if is_nth(count, *every)))
            || self.refuses_once()
    }

    /// Whether groups cannot send to groups.
    pub(crate) fn refuses_chaining(&self) -> bool {
        self.planted.contains(&Fault::RefuseChaining)
    }

    /// The size that a table reports, in entries, if it has room for `fit` entries.
    pub(crate) fn reported_size(&self, fit: usize) -> u32 {
        let hides = self.planted.contains(&Fault::HideTableSizes);
        if hides { 1_000_000 } else { fit.try_into().unwrap_or(u32::MAX) }
    }

    fn refuses_once(&self) -> bool {
        let count = self.additions.wrapping_add(self.group_mods);
        self.planted.contains(&Fault::RefuseOnce { nth: count })
    }

    /// Entries per part of statistics, and ns before each part.
    pub(crate) fn statistics_pace(&self) -> Option<(usize, u64)> {
        self.planted.iter().find_map(|fault| match fault {
            Fault::PaceStatistics { entries, interval } => Some(((*entries).max(1), *interval)),
            _ => None,
        })
    }

    pub(crate) fn ignores_queues(&self) -> bool {
        self.planted.contains(&Fault::IgnoreQueues)
    }

    pub(crate) fn runs_set_on_miss(&self) -> bool {
        self.planted.contains(&Fault::RunSetOnMiss)
    }

    pub(crate) fn drops_changed_packets(&self) -> bool {
        self.planted.contains(&Fault::DropChangedPackets)
    }

    /// Counts an answer, if there was one, and says how it is spoiled.
    pub(crate) fn spoil(&mut self, answered: bool) -> Spoiled {
        self.replies = self.replies.wrapping_add(u32::from(answered));
        let (replies, messages) = (self.replies, self.messages);
        let mut spoiled = Spoiled::default();
        for fault in &self.planted {
            match fault {
                Fault::ReplyTwice { every } => spoiled.twice |= answered && is_nth(replies, *every),
                Fault::WrongXid { every } => {
                    spoiled.wrong_xid |= answered && is_nth(replies, *every)
                }
                Fault::DisconnectInReply { message } => spoiled.cut |= *message == messages,
                Fault::Garbage { message, bytes } if *message == messages => {
                    spoiled.garbage.extend_from_slice(bytes);
                }
                _ => {}
            }
        }
        spoiled
    }
}

fn is_nth(count: u32, every: u32) -> bool {
    count.checked_rem(every) == Some(0)
}
