//! What an interface is and whether it can be used.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::error::{Error, Result};
use crate::system;

/// An interface of the calling thread's network namespace, as it was when asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Such as `eth0`.
    pub name: String,
    /// The kernel's number for it, unique in its namespace.
    pub index: u32,
    /// Hardware address.
    pub mac: [u8; 6],
    /// Longest packet, in bytes without the Ethernet header.
    pub mtu: u32,
    /// Whether it is administratively up.
    pub is_up: bool,
    /// Whether it has a carrier: a cable with a live other end.
    pub is_running: bool,
}

impl Interface {
    /// Looks the interface up; [`Error::NoSuchInterface`] when there is none of that name.
    pub fn find(name: &str) -> Result<Interface> {
        let missing = || Error::NoSuchInterface(name.to_owned());
        let index = if_nametoindex(name).map_err(|errno| match errno {
            Errno::ENODEV | Errno::ENXIO | Errno::EINVAL => missing(),
            other => Error::system(format!("look up interface {name}"), other),
        })?;
        let any: OwnedFd =
            socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
                .map_err(|errno| Error::system("open a socket", errno))?;
        let facts =
            system::interface_facts(&any, name).map_err(|error| match error.raw_os_error() {
                Some(libc::ENODEV) => missing(),
                _ => Error::system(format!("ask about interface {name}"), error),
            })?;
        Ok(Interface {
            name: name.to_owned(),
            index,
            mac: facts.mac,
            mtu: facts.mtu,
            is_up: facts.flags & libc::IFF_UP != 0,
            is_running: facts.flags & libc::IFF_RUNNING != 0,
        })
    }

    /// Brings it up or takes it down, as `ip link set` does; needs CAP_NET_ADMIN.
    ///
    /// Taking one end of a veth pair down takes the carrier from the other.
    pub fn set_up(name: &str, up: bool) -> Result<()> {
        Interface::find(name)?;
        let any: OwnedFd =
            socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
                .map_err(|errno| Error::system("open a socket", errno))?;
        let way = if up { "up" } else { "down" };
        system::set_interface_up(&any, name, up)
            .map_err(|error| Error::system(format!("set interface {name} {way}"), error))
    }

    /// Looks it up and insists that it is up.
    pub fn usable(name: &str) -> Result<Interface> {
        let interface = Interface::find(name)?;
        if interface.is_up { Ok(interface) } else { Err(Error::InterfaceDown(name.to_owned())) }
    }
}
