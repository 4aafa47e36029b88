//! A packet socket without a ring: a system call and a whole copy per frame.
//!
//! What programs do that know nothing better. It is here to be compared with [`crate::Capture`].

use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, RecvMsg, recvmsg, setsockopt, sockopt};

use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::interface::Interface;
use crate::probe::{ADDRESSES, VLAN, tag_in_place};
use crate::system;

/// A socket that receives what comes in on one interface.
pub struct Tap {
    socket: OwnedFd,
}

impl Tap {
    /// Opens it on that interface of the calling thread's network namespace. `memory` bytes of frames may wait, by the
    /// kernel's own count.
    pub fn open(interface: &str, filter: &Filter, memory: usize) -> Result<Tap> {
        let Interface { index, name, .. } = Interface::usable(interface)?;
        let action = |what: &'static str| move |error| Error::system(what, error);
        let socket = system::packet_socket()?;
        system::set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)
            .map_err(action("ignore outgoing frames"))?;
        system::set_option(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, 1)
            .map_err(action("ask for VLAN tags"))?;
        system::set_filter(&socket, filter.program()).map_err(action("attach a socket filter"))?;
        let set = setsockopt(&socket, sockopt::RcvBufForce, &memory)
            .map_err(|errno| Error::system("make room for frames", errno));
        set?;
        system::bind(&socket, index, true)
            .map_err(|error| Error::system(format!("receive on {name}"), error))?;
        Ok(Tap { socket })
    }

    /// The next frame that waits, cut to the buffer; `None` when none does.
    pub fn receive<'a>(&mut self, buffer: &'a mut [u8]) -> Result<Option<&'a [u8]>> {
        let mut beside = nix::cmsg_space!(libc::tpacket_auxdata);
        let mut room = [IoSliceMut::new(buffer)];
        let (socket, flags) = (self.socket.as_raw_fd(), MsgFlags::MSG_DONTWAIT);
        let (length, tag) = match recvmsg::<()>(socket, &mut room, Some(&mut beside), flags) {
            Ok(message) => (message.bytes, tag_of(&message)),
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(errno) => return Err(Error::system("receive a frame", io::Error::from(errno))),
        };
        let Some(tag) = tag.filter(|_| length >= ADDRESSES) else {
            return Ok(buffer.get(..length));
        };
        // The tag back in its place; what it moves out of the buffer is cut off.
        let end = (length + VLAN).min(buffer.len());
        if let Some(rest) = buffer.get_mut(ADDRESSES..end) {
            rest.rotate_right(VLAN.min(rest.len()));
            rest.iter_mut().zip(tag).for_each(|(place, byte)| *place = byte);
        }
        Ok(buffer.get(..end))
    }

    /// Frames that there was no room for since this was last asked.
    pub fn drops(&mut self) -> Result<u64> {
        let statistics = system::statistics(&self.socket)
            .map_err(|error| Error::system("read the socket's counters", error))?;
        Ok(u64::from(statistics.tp_drops))
    }
}

/// The outermost VLAN tag, which the kernel takes out of a frame and says beside it: `struct tpacket_auxdata`.
fn tag_of(message: &RecvMsg<'_, '_, ()>) -> Option<[u8; VLAN]> {
    let beside = message.cmsgs().ok()?.find_map(|one| match one {
        ControlMessageOwned::Unknown(one) if one.cmsg_header.cmsg_level == libc::SOL_PACKET => {
            Some(one.data_bytes)
        }
        _ => None,
    })?;
    let status = u32::from_ne_bytes(*beside.first_chunk()?);
    let control = u16::from_ne_bytes(*beside.get(16..)?.first_chunk()?);
    let protocol = u16::from_ne_bytes(*beside.get(18..)?.first_chunk()?);
    let has = |flag| status & flag != 0;
    let protocol = has(libc::TP_STATUS_VLAN_TPID_VALID).then_some(protocol);
    has(libc::TP_STATUS_VLAN_VALID).then(|| tag_in_place(protocol, control))
}
