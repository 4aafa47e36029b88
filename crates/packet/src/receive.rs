//! Capture through a TPACKET_V3 ring: memory shared with the kernel, no system call per frame.
//!
//! ```text
//!   ring:  │ block 0 │ block 1 │ ... │       each block:  header │ frame │ frame │ ...
//!          the kernel fills a block, then sets its status to USER; we read it, then set it to KERNEL
//! ```
//!
//! A block is handed over when it is full, or a timeout after its first frame; a frame's timestamp
//! is taken when it arrives, so that wait is not in it.

#![allow(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::interface::Interface;
use crate::probe::{ADDRESSES, VLAN, tag_in_place};
use crate::system::{self, Mapping};
use crate::timestamp::Timestamp;

/// How to capture.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// Which frames to take; all when `None`.
    pub filter: Option<Filter>,
    /// Whether to see what this machine sends on the interface, too.
    pub outgoing: bool,
    /// Whether to see frames for other hardware addresses.
    pub promiscuous: bool,
    /// Bytes per block: a power of two and a multiple of the page size.
    pub block_size: usize,
    /// Number of blocks.
    pub blocks: usize,
    /// How long after its first frame a block is handed over at the latest; whole milliseconds.
    pub block_timeout: Duration,
    /// Whether [`Frame::timestamp`] is of the arrival, which the kernel then takes of every frame on the machine. If
    /// not, it is of the copy into the ring, an instant later, and costs frames that are not taken nothing.
    pub arrival_stamps: bool,
}

impl Default for CaptureOptions {
    /// Everything that arrives for anybody; 512 blocks of 32 KiB, handed over within 1 ms.
    ///
    /// Many small blocks rather than few large ones: a block is used up by its timeout as well as
    /// by its size, so a reader may be away for half a second at any rate below 30 MB/s.
    fn default() -> Self {
        CaptureOptions {
            filter: None,
            outgoing: false,
            promiscuous: true,
            block_size: 1 << 15,
            blocks: 512,
            block_timeout: Duration::from_millis(1),
            arrival_stamps: true,
        }
    }
}

/// A running capture on one interface.
pub struct Capture {
    // Unmapped before the socket is closed: fields are dropped in this order.
    ring: Mapping,
    socket: OwnedFd,
    interface: String,
    block_size: usize,
    blocks: usize,
    next: usize,
    statistics: Statistics,
}

/// What the ring counted since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Frames that passed the filter, dropped ones included.
    pub packets: u64,
    /// Frames that were lost because the ring was full.
    pub drops: u64,
    /// How often the ring was full.
    pub freezes: u64,
}

/// A captured frame.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its bytes, from the Ethernet header, VLAN tags included: the outermost is four bytes more than a filter keeps.
    pub data: &'a [u8],
    /// When it arrived, by the kernel.
    pub timestamp: Timestamp,
    /// Its length on the wire.
    pub length: usize,
}

impl Capture {
    /// Starts to capture on that interface of the calling thread's network namespace.
    pub fn open(interface: &str, options: &CaptureOptions) -> Result<Capture> {
        let Interface { index, name, .. } = Interface::usable(interface)?;
        let length = options.block_size.checked_mul(options.blocks).filter(|length| *length > 0);
        let (Some(length), true) =
            (length, options.block_size.is_power_of_two() && options.block_size >= 4096)
        else {
            return Err(Error::Invalid(
                "a ring needs blocks, their size a power of two of at least 4096".to_owned(),
            ));
        };
        let action = |what: &'static str| move |error| Error::system(what, error);
        let socket = system::packet_socket()?;
        let set = |name, value| system::set_option(&socket, libc::SOL_PACKET, name, value);
        set(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V3 as i32)
            .map_err(action("choose TPACKET_V3"))?;
        // Makes the kernel stamp frames when they arrive, and put that stamp into the ring.
        if options.arrival_stamps {
            let stamps = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
            system::set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, stamps as i32)
                .and_then(|()| set(libc::PACKET_TIMESTAMP, libc::SOF_TIMESTAMPING_SOFTWARE as i32))
                .map_err(action("ask for the kernel's timestamps"))?;
        }
        if !options.outgoing {
            set(libc::PACKET_IGNORE_OUTGOING, 1).map_err(action("ignore outgoing frames"))?;
        }
        if let Some(filter) = &options.filter {
            system::set_filter(&socket, filter.program())
                .map_err(action("attach a socket filter"))?;
        }
        // Room before each frame for the VLAN tag that the kernel takes out of it.
        set(libc::PACKET_RESERVE, VLAN as i32).map_err(action("keep room for VLAN tags"))?;
        let request = request(options);
        system::set_receive_ring(&socket, &request).map_err(action("make a receive ring"))?;
        let ring = Mapping::new(&socket, length).map_err(action("map the receive ring"))?;
        if options.promiscuous {
            system::join_promiscuous(&socket, index)
                .map_err(action("see frames for other addresses"))?;
        }
        system::bind(&socket, index, true)
            .map_err(|error| Error::system(format!("capture on {name}"), error))?;
        Ok(Capture {
            ring,
            socket,
            interface: name,
            block_size: options.block_size,
            blocks: options.blocks,
            next: 0,
            statistics: Statistics::default(),
        })
    }

    /// The next block of frames, oldest first; `None` when none came within `patience`.
    ///
    /// While the block is held the kernel cannot refill it: drop it soon.
    pub fn next_block(&mut self, patience: Duration) -> Result<Option<Block<'_>>> {
        let deadline = Instant::now() + patience;
        loop {
            if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0 {
                return Ok(Some(Block { capture: self }));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            // Rounded up, so that the last fraction of a millisecond is not spun away.
            let timeout =
                PollTimeout::try_from(left.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX);
            let mut waiting =
                [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN | PollFlags::POLLERR)];
            match poll(&mut waiting, timeout) {
                Ok(0) if left.is_zero() => return Ok(None),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(Error::system("wait for frames", errno)),
            }
            if waiting[0].revents().is_some_and(|events| events.contains(PollFlags::POLLERR)) {
                return Err(self.socket_error());
            }
        }
    }

    /// What the ring counted since it was opened.
    pub fn statistics(&mut self) -> Result<Statistics> {
        let fresh = system::statistics(&self.socket)
            .map_err(|error| Error::system("read the ring's counters", error))?;
        self.statistics.packets += u64::from(fresh.tp_packets);
        self.statistics.drops += u64::from(fresh.tp_drops);
        self.statistics.freezes += u64::from(fresh.tp_freeze_q_cnt);
        Ok(self.statistics)
    }

    fn socket_error(&self) -> Error {
        match nix::sys::socket::getsockopt(&self.socket, nix::sys::socket::sockopt::SocketError) {
            // By its name another interface might be found, or none: the caller may be in another namespace.
            Ok(libc::ENETDOWN) => match system::bound_to(&self.socket) {
                Ok(Some(_)) => Error::InterfaceDown(self.interface.clone()),
                _ => Error::InterfaceGone(self.interface.clone()),
            },
            Ok(0) => Error::InterfaceGone(self.interface.clone()),
            Ok(code) => Error::system(
                format!("capture on {}", self.interface),
                std::io::Error::from_raw_os_error(code),
            ),
            Err(errno) => Error::system("read the socket's error", errno),
        }
    }

    /// The block whose turn it is.
    fn block(&self) -> NonNull<libc::tpacket_block_desc> {
        debug_assert!((self.next + 1) * self.block_size <= self.ring.length());
        // SAFETY: `next` is below `blocks`, and the mapping is `blocks` times `block_size` long.
        unsafe { self.ring.start().add(self.next * self.block_size).cast() }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: the block starts page-aligned with its descriptor, whose status is an aligned u32
        // inside the mapping, which lives as long as `self`. The kernel changes it concurrently,
        // hence the atomic.
        unsafe { AtomicU32::from_ptr(&raw mut (*self.block().as_ptr()).hdr.bh1.block_status) }
    }
}

impl AsFd for Capture {
    /// Readable when a block is ready.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn request(options: &CaptureOptions) -> libc::tpacket_req3 {
    // In version 3 frames have any length; the kernel wants a nominal one that divides the block.
    let frame_size = 2048;
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    libc::tpacket_req3 {
        tp_block_size: number(options.block_size),
        tp_block_nr: number(options.blocks),
        tp_frame_size: frame_size,
        tp_frame_nr: number(options.block_size / frame_size as usize * options.blocks),
        tp_retire_blk_tov: number(options.block_timeout.as_millis().max(1) as usize),
        tp_sizeof_priv: 0,
        tp_feature_req_word: 0,
    }
}

/// Frames that the kernel has handed over; goes back to the kernel when dropped.
pub struct Block<'a> {
    capture: &'a mut Capture,
}

impl Block<'_> {
    /// Its frames, oldest first.
    pub fn frames(&self) -> Frames<'_> {
        let block = self.capture.block();
        // SAFETY: the status said that the block is ours (acquire), so the kernel leaves the
        // descriptor alone until we give it back.
        let header = unsafe { (*block.as_ptr()).hdr.bh1 };
        Frames { block: self, left: header.num_pkts, at: header.offset_to_first_pkt as usize }
    }
}

impl Drop for Block<'_> {
    fn drop(&mut self) {
        self.capture.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.capture.next = (self.capture.next + 1) % self.capture.blocks;
    }
}

/// The frames of a block.
pub struct Frames<'a> {
    block: &'a Block<'a>,
    left: u32,
    at: usize,
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        self.left = self.left.checked_sub(1)?;
        let size = self.block.capture.block_size;
        let start = self.block.capture.block().cast::<u8>();
        if self.at.checked_add(size_of::<libc::tpacket3_hdr>())? > size {
            return None;
        }
        // SAFETY: the header lies within the block (just checked), is 16-aligned by the kernel's
        // layout (read unaligned all the same), and is ours while the Block lives.
        let mut header: libc::tpacket3_hdr = unsafe { start.add(self.at).cast().read_unaligned() };
        let end =
            self.at.checked_add(header.tp_mac.into())?.checked_add(header.tp_snaplen as usize);
        if end? > size {
            return None;
        }
        if header.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
            self.put_tag_back(&mut header);
        }
        let (from, length) = (self.at + usize::from(header.tp_mac), header.tp_snaplen as usize);
        // SAFETY: those bytes lie within the block (just checked), are initialised by the kernel,
        // and nobody writes them while the Block, which this borrows, lives.
        let data = unsafe { std::slice::from_raw_parts(start.add(from).as_ptr(), length) };
        self.at += header.tp_next_offset as usize;
        Some(Frame {
            data,
            timestamp: Timestamp(
                u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
            ),
            length: header.tp_len as usize,
        })
    }
}

impl Frames<'_> {
    /// The kernel takes the outermost VLAN tag out of every frame that comes in, and says it beside. Puts it back in
    /// its place, once: `header` is that of the frame at `self.at`, which lies within the block.
    fn put_tag_back(&self, header: &mut libc::tpacket3_hdr) {
        let has_room = usize::from(header.tp_mac) >= size_of::<libc::tpacket3_hdr>() + VLAN;
        if !has_room || (header.tp_snaplen as usize) < ADDRESSES {
            return;
        }
        let says_protocol = header.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let protocol = says_protocol.then_some(header.hv1.tp_vlan_tpid);
        let tag = tag_in_place(protocol, header.hv1.tp_vlan_tci as u16);
        header.tp_status &= !libc::TP_STATUS_VLAN_VALID;
        header.tp_mac -= VLAN as u16;
        header.tp_snaplen += VLAN as u32;
        header.tp_len += VLAN as u32;
        let place = self.block.capture.block().cast::<u8>();
        // SAFETY: the caller has checked that the frame lies within the block, and its head was just seen to have room
        // for the tag behind its header. The block is ours while the Block lives, and is used by this thread only
        // (neither Block nor Capture is Sync). No reference to these bytes exists yet: the status that is cleared here
        // was still set, so the frame has not been given out.
        unsafe {
            let header_place = place.add(self.at);
            let new = header_place.add(header.tp_mac.into());
            new.copy_from(new.add(VLAN), ADDRESSES);
            new.add(ADDRESSES).copy_from_nonoverlapping(NonNull::from(&tag).cast(), VLAN);
            header_place.cast().write_unaligned(*header);
        }
    }
}
