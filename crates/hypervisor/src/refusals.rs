//! The last refused requests of each tenant on one switch, for the operator and the tenant.
//!
//! A tenant can cause refusals at a high rate, so keeping a refusal is a copy of some hundred bytes into a ring. The
//! ring is made with the first refusal. Start reading at [`Refusal`]; `words` has the reasons in words, and `carried`
//! brings the refusal of a member of a big switch to the big switch.

mod carried;
mod words;

use crate::south::pending::{Excerpt, Origin};
use crate::time::Instant;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
pub use compile::Reason;
use compile::Refused;
use fabric::Dpid;
use openflow::{ErrorCode, Header, Version};

/// The most refusals that are kept for one tenant on one switch.
pub const KEPT: usize = 32;

/// Who refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedBy {
    /// Weir: the request, or what the tenant has, is not allowed.
    Weir,
    /// The switch, to which Weir had passed the request on.
    Switch,
    /// Weir, since the switch did not answer in time.
    Silence,
}

/// Who refused a request, and on which member of a big switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refuser {
    who: RefusedBy,
    /// The datapath id of the member's physical switch. `None` if the refusing switch itself keeps the refusal.
    member: Option<u64>,
}

/// An error for a tenant, and who refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub refused: Refused,
    pub by: Refuser,
}

impl From<Refused> for Verdict {
    fn from(refused: Refused) -> Verdict {
        Verdict::of(refused, RefusedBy::Weir)
    }
}

impl From<ErrorCode> for Verdict {
    fn from(code: ErrorCode) -> Verdict {
        Refused::from(code).into()
    }
}

impl Verdict {
    const fn of(refused: Refused, who: RefusedBy) -> Verdict {
        Verdict { refused, by: Refuser { who, member: None } }
    }

    /// A verdict of the switch, with the switch's error.
    pub(crate) const fn by_switch(code: ErrorCode) -> Verdict {
        Verdict::of(Reason::ByCode.with(code), RefusedBy::Switch)
    }

    /// Whether Weir itself has refused.
    pub(crate) fn is_by_weir(&self) -> bool {
        self.by.who == RefusedBy::Weir
    }

    /// A verdict because the switch has not answered.
    pub(crate) const fn by_silence(code: ErrorCode) -> Verdict {
        Verdict::of(Reason::ByCode.with(code), RefusedBy::Silence)
    }
}

/// A request that was refused.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    at: Instant,
    xid: u32,
    verdict: Verdict,
    excerpt: Excerpt,
}

impl Refusal {
    /// When the request was refused.
    pub fn at(&self) -> Instant {
        self.at
    }

    /// The request's transaction id.
    pub fn xid(&self) -> u32 {
        self.xid
    }

    /// The error that the controller got.
    pub fn code(&self) -> ErrorCode {
        self.verdict.refused.code()
    }

    /// The check in Weir that refused the request.
    pub fn check(&self) -> Reason {
        self.verdict.refused.reason()
    }

    /// Who refused.
    pub fn by(&self) -> RefusedBy {
        self.verdict.by.who
    }

    /// The datapath id of the physical switch on which a member of a big switch was refused. `None` if the switch is no
    /// big switch, or if Weir sent the request to no member.
    pub fn member(&self) -> Option<u64> {
        self.verdict.by.member
    }

    /// The request's first 64 bytes, or all of a shorter one.
    pub fn excerpt(&self) -> &[u8] {
        self.excerpt.as_bytes()
    }

    /// The name of the request's type, and the entry in the request's first bytes. `version` is the version of the
    /// connection.
    pub fn request(&self, version: Version) -> String {
        words::request(self.excerpt(), version)
    }

    /// The reason in words.
    pub fn reason(&self, version: Version) -> String {
        let Verdict { refused, by: Refuser { who, member } } = self.verdict;
        let type_ = Header::parse(self.excerpt()).map_or(0, |header| header.type_);
        let switch = match member {
            Some(dpid) => format!("the member switch {}", Dpid(dpid)),
            None => "the switch".to_string(),
        };
        match who {
            RefusedBy::Weir => {
                let why = words::weirs_own(refused, type_, version);
                if member.is_some() { format!("on {switch}, {why}") } else { why }
            }
            RefusedBy::Switch => format!("{switch} refused: {}", refused.code().display(version)),
            RefusedBy::Silence => format!("{switch} did not answer in time"),
        }
    }
}

/// The ring of one tenant.
#[derive(Debug, Default)]
pub(crate) struct Refusals(VecDeque<Refusal>);

impl Refusals {
    /// All refusals, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Refusal> {
        self.0.iter()
    }

    /// Keeps a refusal. The oldest refusal is forgotten if there are too many.
    pub(crate) fn add(&mut self, origin: &Origin, verdict: Verdict, at: Instant) {
        let Origin { xid, excerpt, .. } = *origin;
        if self.0.capacity() == 0 {
            self.0.reserve_exact(KEPT);
        }
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back(Refusal { at, xid, verdict, excerpt });
    }
}
