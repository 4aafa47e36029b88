//! One message of a controller on its way through a switch.

use openflow::Header;

use crate::session::SessionId;

/// One message being handled: what its handler needs beside the switch.
pub(crate) struct Request<'a> {
    pub(crate) now: u64,
    pub(crate) session: SessionId,
    pub(crate) header: Header,
    pub(crate) frame: &'a [u8],
}
