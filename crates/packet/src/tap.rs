//! A packet socket without a ring: a system call and a whole copy per frame.
//!
//! What programs do that know nothing better. It is here to be compared with [`crate::Capture`].

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{MsgFlags, recv, setsockopt, sockopt};

use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::interface::Interface;
use crate::system;

/// A socket that receives what comes in on one interface.
pub struct Tap {
    socket: OwnedFd,
}

impl Tap {
    /// Opens it on that interface of the calling thread's network namespace. `memory` bytes of frames may wait, by the kernel's
    /// own count.
    pub fn open(interface: &str, filter: &Filter, memory: usize) -> Result<Tap> {
        let Interface { index, name, .. } = Interface::usable(interface)?;
        let action = |what: &'static str| move |error| Error::system(what, error);
        let socket = system::packet_socket()?;
        system::set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)
            .map_err(action("ignore outgoing frames"))?;
        system::set_filter(&socket, filter).map_err(action("attach a socket filter"))?;
        let set = setsockopt(&socket, sockopt::RcvBufForce, &memory)
            .map_err(|errno| Error::system("make room for frames", errno));
        set?;
        system::bind(&socket, index, true)
            .map_err(|error| Error::system(format!("receive on {name}"), error))?;
        Ok(Tap { socket })
    }

    /// The next frame that waits, cut to the buffer; `None` when none does.
    pub fn receive<'a>(&mut self, buffer: &'a mut [u8]) -> Result<Option<&'a [u8]>> {
        match recv(self.socket.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT) {
            Ok(length) => Ok(buffer.get(..length)),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
            Err(errno) => Err(Error::system("receive a frame", io::Error::from(errno))),
        }
    }

    /// Frames that there was no room for since this was last asked.
    pub fn drops(&mut self) -> Result<u64> {
        let statistics = system::statistics(&self.socket)
            .map_err(|error| Error::system("read the socket's counters", error))?;
        Ok(u64::from(statistics.tp_drops))
    }
}
