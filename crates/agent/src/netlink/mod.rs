//! The few netlink requests that shaping needs: queueing disciplines, classes, filters, counters.
//!
//! Written here rather than taken from a library: it is eight messages. The generated bindings that there are bring forty
//! thousand lines for them, and sockets of their own, with `unsafe`.
//!
//! [`Socket`] sends and waits; [`traffic`] writes and reads the messages of traffic control (`linux/pkt_sched.h`);
//! [`message`] is the bytes.

mod message;
pub(crate) mod traffic;

pub(crate) use message::Message;

use crate::error::{Error, Result};
use message::{Received, messages, u32_at};
use nix::errno::Errno;
use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, sendto,
    setsockopt, socket,
};
use nix::sys::time::TimeVal;
use std::os::fd::{AsRawFd, OwnedFd};

/// `NLMSG_ERROR`: also what an acknowledgement is, with the number 0.
const ERROR: u16 = 2;
/// `NLMSG_DONE`: the end of a dump.
const DONE: u16 = 3;
/// The kernel fills no more than this at once (`netlink_dump`).
const BUFFER: usize = 1 << 16;
/// How long the kernel may take; it answers before `send` returns.
const PATIENCE: TimeVal = TimeVal::new(2, 0);

/// A socket to the kernel's routing netlink, in the network namespace of the thread that opened it.
pub(crate) struct Socket {
    descriptor: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Socket {
    pub(crate) fn open() -> Result<Socket> {
        let fail = |errno: Errno| Error::io("open a netlink socket", errno);
        let descriptor = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkRoute,
        )
        .map_err(fail)?;
        bind(descriptor.as_raw_fd(), &NetlinkAddr::new(0, 0)).map_err(fail)?;
        setsockopt(&descriptor, ReceiveTimeout, &PATIENCE).map_err(fail)?;
        Ok(Socket { descriptor, sequence: 0, buffer: vec![0; BUFFER] })
    }

    /// Sends a request and waits for its acknowledgement; what the kernel has against it otherwise.
    pub(crate) fn request(&mut self, message: Message) -> Result<(), Errno> {
        self.exchange(message, |_| ())
    }

    /// Sends a question and hands each message of the answer to `take`.
    pub(crate) fn ask(
        &mut self,
        message: Message,
        take: impl FnMut(Received<'_>),
    ) -> Result<(), Errno> {
        self.exchange(message, take)
    }

    /// Until the acknowledgement, or the end of the dump.
    fn exchange(
        &mut self,
        message: Message,
        mut take: impl FnMut(Received<'_>),
    ) -> Result<(), Errno> {
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = message.finish(self.sequence);
        let descriptor = self.descriptor.as_raw_fd();
        sendto(descriptor, &bytes, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
        loop {
            let length = recv(descriptor, &mut self.buffer, MsgFlags::empty())?;
            for one in messages(self.buffer.get(..length).unwrap_or_default()) {
                // An answer to an earlier question that nobody waited for any more.
                if one.sequence != self.sequence {
                    continue;
                }
                match one.kind {
                    ERROR => {
                        let number = u32_at(one.body, 0).unwrap_or_default() as i32;
                        return if number == 0 {
                            Ok(())
                        } else {
                            Err(Errno::from_raw(number.wrapping_neg()))
                        };
                    }
                    DONE => {
                        // A dump that failed half-way says so here.
                        let number = u32_at(one.body, 0).unwrap_or_default() as i32;
                        return if number < 0 {
                            Err(Errno::from_raw(number.wrapping_neg()))
                        } else {
                            Ok(())
                        };
                    }
                    _ => take(one),
                }
            }
        }
    }
}
