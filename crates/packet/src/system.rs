//! The system calls that neither std nor nix wraps, each behind a safe function.
//!
//! All `unsafe` of the crate that is a system call is here; the ring itself is in `receive`.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

use nix::libc::{self, c_int, c_uint, c_ulong, socklen_t};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::error::{Error, Result};

/// A packet socket that receives nothing until it is bound.
pub(crate) fn packet_socket() -> Result<OwnedFd> {
    socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)
        .map_err(|errno| Error::system("open a packet socket", errno))
}

/// Binds it to one interface; with `receive` it gets every frame there, else none.
pub(crate) fn bind(socket: impl AsFd, index: u32, receive: bool) -> io::Result<()> {
    let protocol = if receive { (libc::ETH_P_ALL as u16).to_be() } else { 0 };
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol,
        sll_ifindex: index as c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of::<libc::sockaddr_ll>() as socklen_t;
    // SAFETY: the pointer is to a whole sockaddr_ll of that length, which the kernel only reads.
    check(unsafe { libc::bind(socket.as_fd().as_raw_fd(), (&raw const address).cast(), length) })
}

/// The index of the interface that it is bound to, while that is there.
pub(crate) fn bound_to(socket: impl AsFd) -> io::Result<Option<u32>> {
    let mut address = MaybeUninit::<libc::sockaddr_ll>::zeroed();
    let mut length = size_of::<libc::sockaddr_ll>() as socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, which are the address's.
    check(unsafe {
        let address = address.as_mut_ptr().cast();
        libc::getsockname(socket.as_fd().as_raw_fd(), address, &raw mut length)
    })?;
    // SAFETY: it was all zeros, which is a valid address, and what the kernel has written of it is plain data.
    let address = unsafe { address.assume_init() };
    // The kernel writes -1 when the interface goes.
    Ok(u32::try_from(address.sll_ifindex).ok().filter(|index| *index > 0))
}

/// Has the interface accept frames for any hardware address while the socket is open.
pub(crate) fn join_promiscuous(socket: impl AsFd, index: u32) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: index as c_int,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    // SAFETY: packet_mreq is an int, two shorts and eight bytes: plain data without padding.
    unsafe { set(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP as c_int, &membership) }
}

/// An option whose value is an int.
pub(crate) fn set_option(
    socket: impl AsFd,
    level: c_int,
    name: c_int,
    value: c_int,
) -> io::Result<()> {
    // SAFETY: an int is plain data without padding.
    unsafe { set(socket, level, name, &value) }
}

/// Asks for a TPACKET_V3 receive ring.
pub(crate) fn set_receive_ring(socket: impl AsFd, request: &libc::tpacket_req3) -> io::Result<()> {
    // SAFETY: tpacket_req3 is seven unsigned ints: plain data without padding.
    unsafe { set(socket, libc::SOL_PACKET, libc::PACKET_RX_RING as c_int, request) }
}

/// Attaches a socket filter, in place of the one that it had.
pub(crate) fn set_filter(socket: impl AsFd, program: &[libc::sock_filter]) -> io::Result<()> {
    let length = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // The type wants a mutable pointer; the kernel only reads through it.
    let request = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: the request points to `length` instructions, alive until the call returns; the
    // kernel ignores the padding between length and pointer.
    unsafe { set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &request) }
}

/// # Safety
/// `T` must be what the option takes, valid for the kernel to read.
unsafe fn set<T>(socket: impl AsFd, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as socklen_t;
    // SAFETY: pointer and length describe `value`, which the kernel only reads; the caller vouches
    // for its meaning.
    check(unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const *value).cast(),
            length,
        )
    })
}

/// Packets and drops since the last call: reading resets them.
pub(crate) fn statistics(socket: impl AsFd) -> io::Result<libc::tpacket_stats_v3> {
    let mut statistics = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
    let mut length = size_of::<libc::tpacket_stats_v3>() as socklen_t;
    let name = libc::PACKET_STATISTICS as c_int;
    // SAFETY: the kernel writes at most `length` bytes into three plain unsigned ints.
    check(unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_PACKET,
            name,
            (&raw mut statistics).cast(),
            &raw mut length,
        )
    })?;
    Ok(statistics)
}

/// Sends frames from one buffer of equal slots: `lengths[i]` bytes of slot i. Returns how many
/// the kernel took.
pub(crate) fn send_slots(
    socket: impl AsFd,
    slots: &mut [u8],
    slot: usize,
    lengths: &[usize],
    messages: &mut Messages,
) -> io::Result<usize> {
    messages.0.clear();
    messages.1.clear();
    for (bytes, length) in slots.chunks_exact_mut(slot).zip(lengths) {
        let bytes = bytes.get_mut(..*length).ok_or(io::ErrorKind::InvalidInput)?;
        messages.0.push(libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() });
    }
    for vector in &mut messages.0 {
        // SAFETY: every field of mmsghdr and msghdr may be zero (null pointers, no lengths).
        let mut message: libc::mmsghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        message.msg_hdr.msg_iov = vector;
        message.msg_hdr.msg_iovlen = 1;
        messages.1.push(message);
    }
    let count = messages.1.len() as c_uint;
    // SAFETY: `count` messages, each with one iovec that describes bytes of `slots`; all of them
    // live until the call returns.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_fd().as_raw_fd(),
            messages.1.as_mut_ptr(),
            count,
            // A signed number for glibc, and an unsigned one for musl.
            libc::MSG_DONTWAIT as _,
        )
    };
    check(sent)?;
    Ok(sent as usize)
}

/// Room for [`send_slots`] to describe a batch in, kept between calls.
#[derive(Default)]
pub(crate) struct Messages(Vec<libc::iovec>, Vec<libc::mmsghdr>);

// SAFETY: the pointers inside are only followed during `send_slots`, which fills them afresh.
unsafe impl Send for Messages {}

/// What the kernel says about an interface of the calling thread's namespace.
pub(crate) struct InterfaceFacts {
    pub(crate) flags: c_int,
    pub(crate) mtu: u32,
    pub(crate) mac: [u8; 6],
}

/// An ifreq with that name, all else zero.
fn named_request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: an ifreq of zeros is a valid one.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

pub(crate) fn interface_facts(socket: impl AsFd, name: &str) -> io::Result<InterfaceFacts> {
    let mut request = named_request(name)?;
    // `libc::Ioctl` is what ioctl takes, which is another type for glibc than for musl.
    let mut ask = |what: c_ulong| {
        let what = what as libc::Ioctl;
        // SAFETY: these three requests take an ifreq with a NUL-terminated name (checked above)
        // and write into its union.
        check(unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), what, &raw mut request) })
            .map(|()| request.ifr_ifru)
    };
    // SAFETY: each request fills the member of the union that is read after it.
    let (flags, mtu, mac) = unsafe {
        let flags = ask(libc::SIOCGIFFLAGS)?.ifru_flags;
        let mtu = ask(libc::SIOCGIFMTU)?.ifru_mtu;
        (flags, mtu, ask(libc::SIOCGIFHWADDR)?.ifru_hwaddr.sa_data)
    };
    let mac = [mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]].map(|byte| byte as u8);
    Ok(InterfaceFacts { flags: c_int::from(flags), mtu: u32::try_from(mtu).unwrap_or(0), mac })
}

/// Sets or clears the interface's IFF_UP.
pub(crate) fn set_interface_up(socket: impl AsFd, name: &str, up: bool) -> io::Result<()> {
    let flags = interface_facts(&socket, name)?.flags;
    let flags = if up { flags | libc::IFF_UP } else { flags & !libc::IFF_UP };
    let mut request = named_request(name)?;
    // The kernel's field has sixteen bits, and the flags above them cannot be set.
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: the request takes an ifreq with a NUL-terminated name and its flags, and only reads it.
    check(unsafe {
        libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCSIFFLAGS as libc::Ioctl, &raw mut request)
    })
}

/// Gives the calling thread the lowest of the real-time priorities (SCHED_FIFO), and those that it starts none.
pub(crate) fn set_real_time() -> io::Result<()> {
    // The kernel's `sched_param` is a priority.
    let priority: c_int = 1;
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // By number, since musl's own function refuses. SAFETY: the pointer is to a whole sched_param, which the kernel
    // only reads.
    let set =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    check(set as c_int)
}

/// Has the kernel check and load a program for its traffic control, as instructions of eBPF.
pub(crate) fn load_traffic_program(instructions: &[u64]) -> io::Result<OwnedFd> {
    const PROG_LOAD: c_int = 5;
    const SCHED_CLS: u32 = 3;
    /// The first fields of `union bpf_attr` for BPF_PROG_LOAD; the kernel takes those that it is not given for zero.
    #[repr(C)]
    struct Request {
        kind: u32,
        count: u32,
        instructions: u64,
        license: u64,
    }
    let count = u32::try_from(instructions.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // Pointers go as numbers of 64 bits, whatever the machine's.
    let request = Request {
        kind: SCHED_CLS,
        count,
        instructions: instructions.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
    };
    let length = size_of::<Request>() as c_uint;
    // SAFETY: the request is two ints and two pointers, without padding: to `count` instructions and to a text that
    // ends in NUL. All live until the call returns, and the kernel only reads them.
    let descriptor = unsafe { libc::syscall(libc::SYS_bpf, PROG_LOAD, &raw const request, length) };
    let descriptor = c_int::try_from(descriptor).map_err(|_| io::ErrorKind::Other)?;
    check(descriptor)?;
    // SAFETY: a descriptor that the kernel has just given to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Memory that the kernel shares with us, unmapped when dropped.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and Mapping hands out no references.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the ring of a packet socket.
    pub(crate) fn new(socket: impl AsFd, length: usize) -> io::Result<Mapping> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                protection,
                libc::MAP_SHARED,
                socket.as_fd().as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::Other)?;
        Ok(Mapping { start, length })
    }

    /// The first byte; `length` bytes follow for as long as the mapping lives.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what mmap returned, and nobody borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast::<c_void>(), self.length) };
    }
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
