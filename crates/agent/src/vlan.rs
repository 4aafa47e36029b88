//! A virtual interface in a VLAN. Frames that the interface sends get the tag; frames that the interface receives lose the
//! tag.
//!
//! ```text
//!   guest ── frames without tags ── [push] ── its queueing, the wire, the switch     clsact, egress
//!   guest ◀───────────────────────── [pop] ── frames with the tag; others are dropped  clsact, ingress
//! ```
//!
//! As a VLAN interface of the kernel does, but without one: kernels of small machines lack them, and here the guest's
//! interface stays what it is. Like a [shaper](crate::shaper) it stands where frames leave their origin, and the shaper sees
//! frames with the tag; their lengths are reckoned without it.

use crate::error::{Error, Result};
use crate::netlink::Socket;
use crate::netlink::traffic::{Hook, delete_hooks, new_hooks, new_program};
use nix::errno::Errno;
use packet::{Interface, VlanProgram};
use std::os::fd::AsFd;

/// Holds an interface in a VLAN; dropping it lets go.
pub struct Tagging {
    socket: Socket,
    interface: Interface,
}

impl Tagging {
    /// Of an interface in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::Packet`] when there is no such interface or VLAN, or the kernel takes no programs; [`Error::Shaping`] when
    /// somebody's filters are there already (`clsact`), or the kernel lacks something. Whatever was made until then is
    /// removed.
    pub fn start(interface: &str, vlan: u16) -> Result<Tagging> {
        let interface = Interface::find(interface)?;
        let programs =
            [(Hook::Egress, VlanProgram::push(vlan)?), (Hook::Ingress, VlanProgram::pop(vlan)?)];
        let mut socket = Socket::open()?;
        let refused = |what: &str, errno: Errno| {
            let Interface { name, .. } = &interface;
            Error::Shaping(format!("cannot {what} {name}: {}", errno.desc()))
        };
        socket.request(new_hooks(interface.index)).map_err(|errno| match errno {
            Errno::EEXIST => Error::Shaping(format!(
                "cannot put {} into a VLAN: somebody has filters there; see: tc qdisc show dev {}",
                interface.name, interface.name
            )),
            _ => refused("add clsact (sch_ingress, CONFIG_NET_SCH_INGRESS) to", errno),
        })?;
        // From here on dropping it removes what is there.
        let mut tagging = Tagging { socket, interface: interface.clone() };
        for (hook, program) in &programs {
            let name = format!("vlan {vlan}");
            let filter = new_program(interface.index, *hook, &name, program.as_fd());
            let told = tagging.socket.request(filter);
            told.map_err(|errno| refused("add a filter (cls_bpf, CONFIG_NET_CLS_BPF) to", errno))?;
        }
        Ok(tagging)
    }
}

impl Drop for Tagging {
    fn drop(&mut self) {
        // Where the interface is gone, so is everything on it.
        let _ = self.socket.request(delete_hooks(self.interface.index));
    }
}
