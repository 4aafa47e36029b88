//! Memory that is used again for each message, so that the forwarding path allocates nothing.

use alloc::vec::Vec;
use openflow::v13::MatchBuf;

/// Memory that is taken is empty. Memory that is not put back is allocated again at the next use.
#[derive(Default)]
pub(crate) struct Scratch {
    message: Vec<u8>,
    match_: MatchBuf,
}

impl Scratch {
    /// Memory for a message.
    #[inline]
    pub(crate) fn take_message(&mut self) -> Vec<u8> {
        let mut message = core::mem::take(&mut self.message);
        message.clear();
        message
    }

    /// Puts memory back after [`take_message`](Self::take_message).
    #[inline]
    pub(crate) fn put_message(&mut self, message: Vec<u8>) {
        self.message = message;
    }

    /// Memory for the fields of a match (1.3).
    #[inline]
    pub(crate) fn take_match(&mut self) -> MatchBuf {
        let mut match_ = core::mem::take(&mut self.match_);
        match_.clear();
        match_
    }

    /// Puts memory back after [`take_match`](Self::take_match).
    #[inline]
    pub(crate) fn put_match(&mut self, match_: MatchBuf) {
        self.match_ = match_;
    }
}
