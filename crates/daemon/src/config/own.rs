//! Weir's own addresses, which must not be a controller's address: Weir would connect to itself as its own switch.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use super::settings::Listen;

/// The addresses where Weir listens.
pub(super) struct Own<'a> {
    listen: &'a Listen,
    is_here: fn(IpAddr) -> bool,
}

impl<'a> Own<'a> {
    /// `is_here`: whether an address belongs to this machine.
    pub(super) fn new(listen: &'a Listen, is_here: fn(IpAddr) -> bool) -> Own<'a> {
        Own { listen, is_here }
    }

    /// Whether a connection to this address reaches Weir.
    pub(super) fn is(&self, address: SocketAddr) -> bool {
        let openflow = self.listen.openflow.iter().map(|listener| listener.addr);
        let api = self.listen.api.tcp.into_iter().chain(self.listen.api.tls);
        openflow.chain(api).any(|listener| self.reaches(address, listener))
    }

    fn reaches(&self, address: SocketAddr, listener: SocketAddr) -> bool {
        let (to, at) = (address.ip().to_canonical(), listener.ip().to_canonical());
        address.port() == listener.port()
            && match at.is_unspecified() {
                true => to.is_unspecified() || to.is_loopback() || (self.is_here)(to),
                // A connection to 0.0.0.0 or :: reaches this machine.
                false => to == at || to.is_unspecified() && at.is_loopback(),
            }
    }
}

/// Whether an address belongs to this machine: then packets to the address have it as their source address, too. The
/// function sends no packet.
pub(super) fn is_here(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((address, 9))?;
        socket.local_addr()
    };
    source().is_ok_and(|source| source.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_address_of_weir_itself_is_recognised() {
        for (listens, controller, is_own) in [
            ("127.0.0.1:6653", "127.0.0.1:6653", true),
            ("127.0.0.1:6653", "127.0.0.1:6654", false),
            ("127.0.0.1:6653", "127.0.0.2:6653", false),
            ("127.0.0.1:6653", "0.0.0.0:6653", true),
            ("192.0.2.1:6653", "0.0.0.0:6653", false),
            ("127.0.0.1:6653", "[::ffff:127.0.0.1]:6653", true),
            ("0.0.0.0:6653", "127.0.0.9:6653", true),
            ("0.0.0.0:6653", "192.0.2.1:6653", true),
            ("0.0.0.0:6653", "192.0.2.2:6653", false),
            ("[::]:6653", "[::1]:6653", true),
            ("[::1]:6653", "[::1]:6653", true),
        ] {
            let listen = Listen { openflow: vec![listens.parse().unwrap()], ..Listen::default() };
            let own = Own::new(&listen, |address| address == IpAddr::from([192, 0, 2, 1]));
            assert_eq!(own.is(controller.parse().unwrap()), is_own, "{listens} {controller}");
            assert!(own.is(([127, 0, 0, 1], 8080).into()));
        }
    }

    #[test]
    fn a_loopback_address_is_local_and_a_documentation_address_is_not() {
        assert!(is_here(Ipv4Addr::LOCALHOST.into()));
        // The address 192.0.2.1 is for documentation (RFC 5737), and no machine has the address.
        assert!(!is_here([192, 0, 2, 1].into()));
    }
}
