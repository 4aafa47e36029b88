//! Faults that a test plants in a switch, to see whether a peer detects them.

/// One planted fault. Several can be planted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The switch answers barriers at once, but executes each FLOW_MOD some time after its arrival.
    BarrierLies {
        /// The time from the arrival to the execution, ns.
        by: u64,
    },
    /// The switch refuses every nth FLOW_MOD that adds an entry, with the error of a full table.
    RefuseFlowMods {
        /// The number n, from 1.
        every: u32,
    },
    /// The switch refuses every nth GROUP_MOD, with the error of a full group table.
    RefuseGroupMods {
        /// The number n, from 1.
        every: u32,
    },
    /// The switch refuses one request: a FLOW_MOD that adds an entry, or a GROUP_MOD. The switch accepts the requests
    /// that restore the state before the refused request.
    RefuseOnce {
        /// The number of the refused request, from 1, among the requests of both kinds since the
        /// fault was planted.
        nth: u32,
    },
    /// The switch refuses groups that send to groups, and reports no support for chaining.
    RefuseChaining,
    /// The switch reports a size of one million entries for every table.
    HideTableSizes,
    /// The switch ignores messages of this type (the type field of the header).
    NeverAnswers {
        /// Message type.
        message_type: u8,
    },
    /// The switch sends statistics in small parts with pauses.
    PaceStatistics {
        /// The maximum number of entries in one part, from 1.
        entries: usize,
        /// The pause before each part, ns.
        interval: u64,
    },
    /// The switch drops packets that an action changed.
    DropChangedPackets,
    /// The switch executes the action set of a packet that matches no entry of a table, as Open vSwitch does. By the
    /// specification (1.3, section 5.1) the switch drops such a packet with its action set.
    RunSetOnMiss,
    /// Every packet leaves through queue 0 of its port. The switch ignores the queue of the action.
    IgnoreQueues,
    /// The switch closes the connection in the middle of its reply to the nth message.
    DisconnectInReply {
        /// The number n, from 1. HELLO counts as a message.
        message: u64,
    },
    /// After the reply to the nth message the switch sends bytes that are no OpenFlow message.
    Garbage {
        /// The number n, from 1. HELLO counts as a message.
        message: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The switch sends every nth reply twice.
    ReplyTwice {
        /// The number n, from 1.
        every: u32,
    },
    /// Every nth reply has a wrong transaction id.
    WrongXid {
        /// The number n, from 1.
        every: u32,
    },
}

/// The planted faults and their counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    planted: Vec<Fault>,
    messages: u64,
    additions: u32,
    group_mods: u32,
    replies: u32,
}

/// The changes that the faults make to a reply.
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

    /// Counts a message. Returns whether the switch must ignore the message.
    pub(crate) fn swallows(&mut self, type_: u8) -> bool {
        self.messages += 1;
        let swallows =
            |f: &Fault| matches!(f, Fault::NeverAnswers { message_type } if *message_type == type_);
        self.planted.iter().any(swallows)
    }

    /// The delay of FLOW_MODs, ns.
    pub(crate) fn flow_mod_delay(&self) -> Option<u64> {
        self.planted.iter().find_map(|fault| match fault {
            Fault::BarrierLies { by } => Some(*by),
            _ => None,
        })
    }

    /// Counts a FLOW_MOD that adds an entry. Returns whether the switch must refuse the FLOW_MOD.
    pub(crate) fn refuses_addition(&mut self) -> bool {
        self.additions = self.additions.wrapping_add(1);
        let count = self.additions;
        self.planted
            .iter()
            .any(|fault| matches!(fault, Fault::RefuseFlowMods { every } if is_nth(count, *every)))
            || self.refuses_once()
    }

    /// Counts a GROUP_MOD. Returns whether the switch must refuse the GROUP_MOD.
    pub(crate) fn refuses_group_mod(&mut self) -> bool {
        self.group_mods = self.group_mods.wrapping_add(1);
        let count = self.group_mods;
        self.planted
            .iter()
            .any(|fault| matches!(fault, Fault::RefuseGroupMods { every } if is_nth(count, *every)))
            || self.refuses_once()
    }

    /// Whether the switch refuses groups that send to groups.
    pub(crate) fn refuses_chaining(&self) -> bool {
        self.planted.contains(&Fault::RefuseChaining)
    }

    /// The size, in entries, that the switch reports for a table that has room for `fit` entries.
    pub(crate) fn reported_size(&self, fit: usize) -> u32 {
        let hides = self.planted.contains(&Fault::HideTableSizes);
        if hides { 1_000_000 } else { fit.try_into().unwrap_or(u32::MAX) }
    }

    fn refuses_once(&self) -> bool {
        let count = self.additions.wrapping_add(self.group_mods);
        self.planted.contains(&Fault::RefuseOnce { nth: count })
    }

    /// The number of entries in one part of statistics, and the pause before each part, ns.
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

    /// Counts a reply, if the switch sent one, and returns how the faults change the reply.
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
