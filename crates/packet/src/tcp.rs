//! TCP segments of this machine's connections, asked of the kernel over `sock_diag` netlink.

use std::os::fd::OwnedFd;

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// A connection, and its segments with data so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpConnection {
    /// Port on this side.
    pub local_port: u16,
    /// Port on the other.
    pub remote_port: u16,
    /// Segments that came.
    pub data_in: u64,
    /// Segments that went.
    pub data_out: u64,
}

/// Calls `each` with every established connection of this network namespace; `None` when the kernel does not say.
pub fn tcp_connections(mut each: impl FnMut(TcpConnection)) -> Option<()> {
    let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
    let socket =
        rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, Some(SOCK_DIAG)).ok()?;
    for family in [AddressFamily::INET, AddressFamily::INET6] {
        dump(&socket, family, &mut each)?;
    }
    Some(())
}

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST_DUMP: u16 = 0x301;
const DONE: u16 = 3;
const ERROR: u16 = 2;
const INET_DIAG_INFO: u16 = 2;
const TCP: u8 = 6;
const ESTABLISHED: u32 = 1 << 1;
/// `struct nlmsghdr` and `struct inet_diag_msg`.
const NLMSG_LEN: usize = 16;
const DIAG_LEN: usize = 72;
/// Where `struct tcp_info` has its counts of segments with data.
const DATA_SEGS_IN: usize = 152;
const DATA_SEGS_OUT: usize = 156;

/// Asks for all established TCP connections of a family.
fn dump(
    socket: &OwnedFd,
    family: AddressFamily,
    each: &mut impl FnMut(TcpConnection),
) -> Option<()> {
    let mut request = Vec::with_capacity(NLMSG_LEN + 56);
    request.extend_from_slice(&(NLMSG_LEN as u32 + 56).to_ne_bytes());
    request.extend_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend_from_slice(&REQUEST_DUMP.to_ne_bytes());
    request.extend_from_slice(&[0; 8]);
    request.extend_from_slice(&[family.as_raw() as u8, TCP, 1 << (INET_DIAG_INFO - 1), 0]);
    request.extend_from_slice(&ESTABLISHED.to_ne_bytes());
    request.resize(NLMSG_LEN + 56, 0);
    let kernel = SocketAddrNetlink::new(0, 0);
    rustix::net::sendto(socket, &request, SendFlags::empty(), &kernel).ok()?;
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let (count, _) = rustix::net::recv(socket, &mut buffer[..], RecvFlags::empty()).ok()?;
        let mut rest = buffer.get(..count)?;
        while rest.len() >= NLMSG_LEN {
            let length = ne32(rest, 0)? as usize;
            match ne16(rest, 4)? {
                DONE => return Some(()),
                ERROR => return None,
                _ => {
                    if let Some(connection) = rest.get(..length).and_then(connection) {
                        each(connection);
                    }
                }
            }
            rest = rest.get(length.next_multiple_of(4).max(NLMSG_LEN)..).unwrap_or_default();
        }
    }
}

fn connection(message: &[u8]) -> Option<TcpConnection> {
    let diag = message.get(NLMSG_LEN..)?;
    let port = |at: usize| Some(u16::from_be_bytes(*diag.get(at..)?.first_chunk()?));
    let mut attributes = diag.get(DIAG_LEN..)?;
    while let (Some(length), Some(kind)) = (ne16(attributes, 0), ne16(attributes, 2)) {
        let length = usize::from(length);
        if kind == INET_DIAG_INFO {
            let info = attributes.get(4..length)?;
            return Some(TcpConnection {
                local_port: port(4)?,
                remote_port: port(6)?,
                data_in: u64::from(ne32(info, DATA_SEGS_IN)?),
                data_out: u64::from(ne32(info, DATA_SEGS_OUT)?),
            });
        }
        attributes = attributes.get(length.next_multiple_of(4).max(4)..)?;
    }
    None
}

fn ne16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_ne_bytes(*b))
}

fn ne32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_ne_bytes(*b))
}
