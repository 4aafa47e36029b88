//! Chooses the addresses of the control channel: one /30 of 198.18.0.0/15 for each lab.
//!
//! The range is reserved for benchmarking networks (RFC 2544, appendix C.2.2), so the addresses conflict neither with
//! the internet nor with office networks.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::command::{program, run};
use crate::error::{Error, Result};

/// The veth pair between the caller's namespace and the switches'.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlLink {
    /// The interface at the end in the caller's namespace.
    pub interface: String,
    /// The address of that end, on which a controller on this machine must listen.
    pub host: Ipv4Addr,
    /// The address from which the switches connect.
    pub switches: Ipv4Addr,
}

/// Length of the prefix of both addresses.
pub(crate) const PREFIX: u8 = 30;
/// Name of the interface at the end in the switches' namespace.
pub(crate) const INNER: &str = "control";

const FIRST: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
const COUNT: u32 = 1 << 15;

impl ControlLink {
    fn number(index: u32) -> ControlLink {
        let base = FIRST.to_bits() + 4 * index;
        ControlLink {
            interface: format!("weir-ctl{index}"),
            host: Ipv4Addr::from_bits(base + 1),
            switches: Ipv4Addr::from_bits(base + 2),
        }
    }
}

/// Finds the first control link with a name and addresses that are free in the caller's namespace.
///
/// `_turn` proves that no other process chooses at the same time.
pub(crate) fn free_control_link(_turn: &Turn) -> Result<ControlLink> {
    let listing = run(program("ip").args(["-oneline", "addr", "show"]))?;
    let interfaces = run(program("ip").args(["-oneline", "link", "show"]))?;
    choose(&listing, &interfaces)
        .ok_or_else(|| Error::Occupied("every address of 198.18.0.0/15".to_owned()))
}

/// The pure part of [`free_control_link`]. The arguments are the output of `ip -oneline addr` and
/// `ip -oneline link`.
fn choose(addresses: &str, interfaces: &str) -> Option<ControlLink> {
    let taken: HashSet<u32> =
        addresses.lines().filter_map(|line| index_of(line.split(" inet ").nth(1)?)).collect();
    let names: HashSet<&str> = interfaces
        .lines()
        .filter_map(|line| line.split([':', '@']).nth(1))
        .map(str::trim)
        .collect();
    let free = |link: &ControlLink| !names.contains(&*link.interface);
    (0..COUNT).filter(|index| !taken.contains(index)).map(ControlLink::number).find(free)
}

fn index_of(inet: &str) -> Option<u32> {
    let address: Ipv4Addr = inet.split(['/', ' ']).next()?.parse().ok()?;
    let offset = address.to_bits().checked_sub(FIRST.to_bits())?;
    Some(offset / 4).filter(|index| *index < COUNT)
}

/// The right to choose addresses and names. Only one process at a time has this right in a network
/// namespace.
///
/// A listening abstract socket is the lock. The socket belongs to the namespace of the addresses, and leaves no file.
/// The kernel releases the socket when its process ends.
pub(crate) struct Turn {
    _held: UnixListener,
}

impl Turn {
    pub(crate) fn wait(patience: Duration) -> Result<Turn> {
        let deadline = Instant::now() + patience;
        let name = SocketAddr::from_abstract_name(b"weir-lab-addresses")
            .map_err(Error::io("name a socket"))?;
        loop {
            match UnixListener::bind_addr(&name) {
                Ok(_held) => return Ok(Turn { _held }),
                Err(error) if error.kind() != std::io::ErrorKind::AddrInUse => {
                    return Err(Error::io("take the lab's address lock")(error));
                }
                Err(_) if Instant::now() >= deadline => {
                    return Err(Error::Timeout {
                        what: "another lab's bring-up".to_owned(),
                        after: patience,
                    });
                }
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_free_control_link_is_chosen() {
        let lo = "1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever\n";
        let cases = [
            (String::new(), "", Some("weir-ctl0 198.18.0.1 198.18.0.2")),
            (
                lo.to_owned(),
                "1: lo: <LOOPBACK> mtu 65536\n",
                Some("weir-ctl0 198.18.0.1 198.18.0.2"),
            ),
            (
                format!("{lo}5: x    inet 198.18.0.2/30 scope global x\\"),
                "",
                Some("weir-ctl1 198.18.0.5 198.18.0.6"),
            ),
            (
                "5: x    inet 198.18.0.6 peer 1.2.3.4/32 x".to_owned(),
                "",
                Some("weir-ctl0 198.18.0.1 198.18.0.2"),
            ),
            (
                "5: x    inet 198.20.0.1/24 x".to_owned(),
                "7: weir-ctl0@if6: <UP>",
                Some("weir-ctl1 198.18.0.5 198.18.0.6"),
            ),
            (
                (0..COUNT)
                    .map(|i| format!("x inet {}/30\n", ControlLink::number(i).host))
                    .collect(),
                "",
                None,
            ),
        ];
        for (addresses, interfaces, expected) in cases {
            let found = choose(&addresses, interfaces);
            let found =
                found.map(|link| format!("{} {} {}", link.interface, link.host, link.switches));
            assert_eq!(found.as_deref(), expected);
        }
    }

    #[test]
    fn the_longest_control_link_name_fits_an_interface_name() {
        let last = ControlLink::number(COUNT - 1);
        assert_eq!(
            (last.interface.len() <= 15, last.switches),
            (true, Ipv4Addr::new(198, 19, 255, 254))
        );
    }
}
