//! The asynchronous messages that Weir has asked the switch for (1.3, SET_ASYNC).

/// The messages that Weir has asked for, in addition to those that it always needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// PACKET_INs for packets with an invalid TTL.
    invalid_ttl: bool,
    /// Whether a barrier behind the last SET_ASYNC is in flight. Until its reply Weir sends no other SET_ASYNC: however
    /// often controllers change their minds, the switch gets one message at a time.
    is_open: bool,
    /// Whether a controller may want other messages since then.
    maybe_others: bool,
}

impl Asked {
    /// A controller may want other messages.
    pub(crate) fn suspect(&mut self) {
        self.maybe_others = true;
    }

    /// A barrier of Weir's own is answered.
    pub(crate) fn barrier_returned(&mut self) {
        self.is_open = false;
    }

    /// Whether Weir has to find out what controllers want.
    pub(super) fn is_due(&self) -> bool {
        self.maybe_others && !self.is_open
    }

    /// Sets what controllers want now. Returns whether Weir has to ask the switch for it.
    pub(super) fn want(&mut self, invalid_ttl: bool) -> bool {
        let is_other = invalid_ttl != self.invalid_ttl;
        *self = Asked { invalid_ttl, is_open: is_other, maybe_others: false };
        is_other
    }
}
