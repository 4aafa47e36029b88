//! Puts a virtual interface into a VLAN. Frames that the interface sends get the tag; frames that the interface
//! receives lose the tag.
//!
//! ```text
//!   guest ── frames without tags ── [push] ── its queueing, the wire, the switch     clsact, egress
//!   guest ◀───────────────────────── [pop] ── frames with the tag; others are dropped  clsact, ingress
//! ```
//!
//! The result is the same as with a VLAN interface of the kernel. Kernels of small machines lack VLAN interfaces, and
//! here the guest's interface stays unchanged. Like a [shaper](crate::shaper), the programs are where frames leave
//! their origin. The shaper sees frames with the tag, and counts the lengths of the frames without the tag.

use crate::error::{Error, Result};
use crate::netlink::Socket;
use crate::netlink::traffic::{Hook, delete_hooks, new_hooks, new_program};
use nix::errno::Errno;
use packet::{Interface, VlanProgram};
use std::os::fd::AsFd;

/// Holds an interface in a VLAN until dropped.
pub struct Tagging {
    socket: Socket,
    interface: Interface,
}

impl Tagging {
    /// Puts an interface of the calling thread's network namespace into a VLAN.
    ///
    /// # Errors
    /// [`Error::Packet`] when the interface or VLAN does not exist, or the kernel accepts no programs;
    /// [`Error::Shaping`] when the interface already has filters of another program (`clsact`), or the kernel lacks a
    /// feature. An error leaves nothing behind.
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
        // From here on, dropping `tagging` removes the hooks and filters.
        let mut tagging = Tagging { socket, interface: interface.clone() };
        for (hook, program) in &programs {
            let name = format!("vlan {vlan}");
            let filter = new_program(interface.index, *hook, &name, program.as_fd());
            let added = tagging.socket.request(filter);
            added
                .map_err(|errno| refused("add a filter (cls_bpf, CONFIG_NET_CLS_BPF) to", errno))?;
        }
        Ok(tagging)
    }
}

impl Drop for Tagging {
    fn drop(&mut self) {
        // The hooks and filters disappear with the interface.
        let _ = self.socket.request(delete_hooks(self.interface.index));
    }
}
