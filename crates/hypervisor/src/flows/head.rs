//! The fields in the first bytes of a FLOW_MOD.

use flowspace::Match;

/// See the module.
pub(crate) struct Head {
    /// The name of the command.
    pub command: &'static str,
    /// The table (1.3).
    pub table: Option<u8>,
    pub priority: u16,
    /// The match, if these bytes have all of it.
    pub match_: Option<Match>,
}
