//! Implements the few netlink requests that shaping needs: queueing disciplines, classes, filters, counters.
//!
//! Weir needs only eight messages. The generated bindings of a library would add forty thousand lines, and sockets of
//! their own with `unsafe`.
//!
//! [`Socket`] sends requests and waits for replies; [`traffic`] writes and reads the messages of traffic control
//! (`linux/pkt_sched.h`); [`message`] encodes and decodes the bytes.

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

/// `NLMSG_ERROR`; an acknowledgement is an `NLMSG_ERROR` with the number 0.
const ERROR: u16 = 2;
/// `NLMSG_DONE`: the end of a dump.
const DONE: u16 = 3;
/// The kernel fills at most this many bytes at once (`netlink_dump`).
const BUFFER: usize = 1 << 16;
/// The timeout for the kernel; the kernel replies before `send` returns.
const PATIENCE: TimeVal = TimeVal::new(2, 0);

/// A socket of the kernel's routing netlink, in the network namespace of the thread that opened the socket.
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

    /// Sends a request and waits for the acknowledgement. The error is the error of the kernel.
    pub(crate) fn request(&mut self, message: Message) -> Result<(), Errno> {
        self.ask(message, |_| ())
    }

    /// Sends a request and hands each message of the reply to `take`, until the acknowledgement or the end of the dump.
    pub(crate) fn ask(
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
                // The reply belongs to an earlier request that nobody waits for.
                if one.sequence != self.sequence {
                    continue;
                }
                if !matches!(one.kind, ERROR | DONE) {
                    take(one);
                    continue;
                }
                // The end of a failed dump has the error number as well.
                let number = u32_at(one.body, 0).unwrap_or_default() as i32;
                return match number {
                    ..0 => Err(Errno::from_raw(number.wrapping_neg())),
                    _ => Ok(()),
                };
            }
        }
    }
}
