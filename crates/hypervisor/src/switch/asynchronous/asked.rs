//! What the switch was asked for (1.3, SET_ASYNC).

/// What the switch was asked for, beside what is always wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// To tell of packets whose time to live is over.
    invalid_ttl: bool,
    /// Whether a barrier behind that is on its way. Until then nothing else is asked for: however often controllers change their minds,
    /// the switch hears of it once in its own time.
    is_open: bool,
    /// Whether somebody may want something else since.
    maybe_others: bool,
}

impl Asked {
    /// Somebody may want something else.
    pub(crate) fn suspect(&mut self) {
        self.maybe_others = true;
    }

    /// A barrier of the hypervisor's own is back.
    pub(crate) fn barrier_returned(&mut self) {
        self.is_open = false;
    }

    /// Whether to look what is wanted.
    pub(super) fn is_due(&self) -> bool {
        self.maybe_others && !self.is_open
    }

    /// This is wanted now. Says whether the switch has to be asked for it.
    pub(super) fn want(&mut self, invalid_ttl: bool) -> bool {
        let is_other = invalid_ttl != self.invalid_ttl;
        *self = Asked { invalid_ttl, is_open: is_other, maybe_others: false };
        is_other
    }
}
