//! A message of a controller, with the data that its handler needs.

use openflow::Header;

use crate::session::SessionId;

/// A message of a controller, with its session and the time.
pub(crate) struct Request<'a> {
    pub(crate) now: u64,
    pub(crate) session: SessionId,
    pub(crate) header: Header,
    pub(crate) frame: &'a [u8],
}
