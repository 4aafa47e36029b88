//! Programs beside a lab's switches: `weir serve` and tenants' controllers, as an operator would run them. Dropping the
//! handle of a program ends the program.

mod os_ken;
mod process;

pub use crate::command::find_program;
pub use os_ken::{no_os_ken, os_ken_python};
pub use process::{Process, Weir, own_program};

use crate::error::{Error, Result};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// A port of the loopback interface that was free a moment ago, for programs that do not say which one they got.
///
/// # Errors
/// [`Error::Io`].
pub fn free_address() -> Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(Error::io("find a free port"))
}
