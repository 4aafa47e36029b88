//! Ports for programs that must be given one and cannot say which one the kernel gave them.

use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// A port that nobody has, of TCP and of UDP, for a program that binds the port in a moment. No two calls of a process
/// return the same port, until all 22,000 were returned.
///
/// The ports are below those that Linux gives to connections (32,768 and above, unless `ip_local_port_range` says
/// otherwise): a port that the kernel chose with `bind` to port 0 can become the near end of another program's
/// connection before the program binds the port.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`] if all are taken.
pub fn free_port() -> io::Result<u16> {
    const FIRST: u16 = 10_000;
    const COUNT: u16 = 22_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Processes that run side by side start at different ports.
    let start = process::id().wrapping_mul(97) % u32::from(COUNT);
    for _ in 0..COUNT {
        let number = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = FIRST + (number % u32::from(COUNT)) as u16;
        let everywhere = (Ipv4Addr::UNSPECIFIED, port);
        if TcpListener::bind(everywhere).is_ok() && UdpSocket::bind(everywhere).is_ok() {
            return Ok(port);
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_returned_once_and_not_while_somebody_has_it() {
        let first = free_port().unwrap();
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, first + 1));
        let next: Vec<u16> = (0..3).map(|_| free_port().unwrap()).collect();
        assert!(!next.contains(&first), "{first} and {next:?}");
        assert!(held.is_err() || !next.contains(&(first + 1)), "{first} and {next:?}");
    }
}
