//! How the sockets and buffers of connections are set up.

use std::io;

use mio::net::TcpStream;
use nix::sys::socket::{setsockopt, sockopt};

use crate::Error;

/// How connections are set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// `true` (default): TCP_NODELAY, each write leaves at once (ND). `false`: Nagle's algorithm
    /// (AGG).
    pub nodelay: bool,
    /// `true`: the kernel acknowledges received bytes at once (TCP_QUICKACK). A peer that uses Nagle's algorithm keeps
    /// its next small segment back until the acknowledgement. `false` (default): the kernel may send acknowledgements
    /// later, together with data.
    pub acknowledge_reads: bool,
    /// The most bytes that wait in the send buffer before frames are refused. Default 256 KiB.
    pub send_buffer: usize,
    /// The most bytes that are read and not taken. At least 64 KiB, the largest frame; default
    /// 256 KiB.
    pub receive_buffer: usize,
    /// The kernel's send buffer (SO_SNDBUF), in bytes; `None` leaves it to the kernel. A small one
    /// keeps the queue in our hands, where it is fair.
    pub socket_send_buffer: Option<usize>,
    /// The kernel's receive buffer (SO_RCVBUF), in bytes; `None` leaves it to the kernel.
    pub socket_receive_buffer: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            nodelay: true,
            acknowledge_reads: false,
            send_buffer: 256 << 10,
            receive_buffer: 256 << 10,
            socket_send_buffer: None,
            socket_receive_buffer: None,
        }
    }
}

impl Options {
    pub(crate) fn apply(&self, stream: &TcpStream) -> Result<(), Error> {
        let failed = |what: &'static str| move |error: io::Error| Error::io(what, error);
        stream.set_nodelay(self.nodelay).map_err(failed("set TCP_NODELAY"))?;
        if let Some(bytes) = self.socket_send_buffer {
            setsockopt(stream, sockopt::SndBuf, &bytes)
                .map_err(|errno| failed("set SO_SNDBUF")(errno.into()))?;
        }
        if let Some(bytes) = self.socket_receive_buffer {
            setsockopt(stream, sockopt::RcvBuf, &bytes)
                .map_err(|errno| failed("set SO_RCVBUF")(errno.into()))?;
        }
        Ok(())
    }
}
