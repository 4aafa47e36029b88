//! One message of a controller, while it is handled.

use crate::ids::{ControllerIndex, TenantIndex};
use crate::south::pending::{Excerpt, Origin};
use crate::time::Instant;
use openflow::Header;

/// One message of a controller, while it is handled.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub tenant: TenantIndex,
    pub controller: ControllerIndex,
    pub header: Header,
    pub frame: &'a [u8],
    pub now: Instant,
}

impl<'a> Request<'a> {
    /// The message without its header.
    pub(crate) fn body(&self) -> &'a [u8] {
        self.frame.get(Header::LEN..).unwrap_or_default()
    }

    /// The parts of the request that a later answer needs.
    pub(crate) fn origin(&self) -> Origin {
        Origin {
            tenant: self.tenant,
            controller: self.controller,
            xid: self.header.xid,
            excerpt: Excerpt::of(self.frame),
        }
    }
}
