//! Shapes an interface: an HTB with one class for the VNIC, and one class per destination below the VNIC's class.
//!
//! ```text
//!   egress of the VNIC's interface: root, or below the leaf of another program's HTB
//!     5745: htb
//!       └─ 5745:1   the VNIC: rate = ceiling = its bandwidth
//!            ├─ 5745:2     other frames (groups, gateways): the VNIC's bandwidth
//!            ├─ 5745:10    to the first destination: at most its grant, else the VNIC's bandwidth
//!            └─ 5745:11    to the second, ...                  each with a queue of its own, in bytes
//! ```
//!
//! **Why the host's side of the VNIC.** Frames have to wait before the switch receives the frames. On a switch port
//! that Open vSwitch's userspace datapath reads, the ingress is too late: the packet socket of the datapath receives a
//! frame before an ingress filter could redirect the frame to an IFB. Therefore the shaper is where the frame leaves
//! its origin: at the egress of the veth end in the host's namespace, or of the tap's backend. The operator, not the
//! tenant, has to control that end.
//!
//! **Existing queueing stays.** The shaper replaces a root that the kernel chose itself, and the kernel restores that
//! root when the shaper is removed. Below a root HTB (such as the HTB of a lab's link rate) the shaper goes under the
//! default class, so both rates apply. The shaper refuses any other root. All parts of the shaper are below the one
//! queueing discipline `5745:`. Removing that queueing discipline removes all parts, and the number shows that an agent
//! made the queueing discipline.

use crate::error::{Error, Result};
use crate::netlink::Socket;
use crate::netlink::traffic::{
    ClassRates, Place, Qdisc, ROOT, change_class, delete_qdisc, get_classes, get_counters,
    get_qdiscs, new_class, new_filter, new_htb, new_queue, read_class, read_qdisc, read_received,
};
use fabric::{Bandwidth, MacAddress};
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::{Duration, Instant};

pub use crate::netlink::traffic::Counters;

/// The letters "WE": the major number of the agent's queueing discipline.
const MAJOR: u32 = 0x5745_0000;
const VNIC: u32 = MAJOR | 1;
const ELSEWHERE: u32 = MAJOR | 2;
const FIRST: u32 = MAJOR | 0x10;
/// The bucket of a u32 filter has room for 2,047 filters, and the kernel compares each frame with one filter after
/// another.
pub const MOST_DESTINATIONS: usize = 1024;

const LONGEST_FRAME: u64 = 1514;
/// The timeout for another agent to release an interface.
const TURN: Duration = Duration::from_millis(500);

/// The shape of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The interface's name, in the calling thread's network namespace.
    pub interface: String,
    /// The VNIC's bandwidth.
    pub bandwidth: Bandwidth,
    /// The destinations with their own class; at most 1,024.
    pub destinations: Vec<MacAddress>,
}

/// A shaper on an interface.
pub struct Shaper {
    socket: Socket,
    shape: Shape,
    index: u32,
    parent: u32,
    /// The lock for one agent per interface. The socket name belongs to the network namespace and disappears with the
    /// process.
    _turn: UnixListener,
}

impl Shaper {
    /// Puts a shaper on an interface; replaces a shaper that another agent left behind.
    ///
    /// # Errors
    /// [`Error::Shaping`] when another agent shapes the interface, the queueing of another program cannot be kept, or
    /// the kernel lacks a feature; [`Error::Packet`] when the interface does not exist. An error leaves no shaper
    /// behind.
    pub fn install(shape: Shape) -> Result<Shaper> {
        if shape.destinations.len() > MOST_DESTINATIONS {
            return Err(Error::Option(format!(
                "{} has {} destinations; {MOST_DESTINATIONS} is the most",
                shape.interface,
                shape.destinations.len()
            )));
        }
        let mut shaper = Shaper::open(shape)?;
        shaper.remove()?;
        shaper.parent = shaper.find_parent()?;
        match shaper.make() {
            Ok(()) => Ok(shaper),
            Err(error) => {
                // The caller gets the first error.
                let _ = shaper.remove();
                Err(error)
            }
        }
    }

    /// Gives every destination on an interface the VNIC's whole bandwidth, if an agent that no longer runs left a
    /// shaper there. Returns whether there was a shaper.
    ///
    /// # Errors
    /// As [`Shaper::install`].
    pub fn fall_back(shape: Shape) -> Result<bool> {
        let mut shaper = Shaper::open(shape)?;
        if shaper.leftover()?.is_none() {
            return Ok(false);
        }
        for number in 0..shaper.shape.destinations.len() {
            shaper.set_ceiling(number, shaper.shape.bandwidth)?;
        }
        Ok(true)
    }

    /// Sets the ceiling of a destination; `destination` is its index in the list.
    ///
    /// # Errors
    /// [`Error::Shaping`] when the class does not exist.
    pub fn set_ceiling(&mut self, destination: usize, most: Bandwidth) -> Result<()> {
        let place = self.place(FIRST + destination as u32, VNIC);
        let rates = self.rates(most);
        self.request("change a class of", change_class(place, rates))
    }

    /// The counters of each destination, in the order of the list.
    ///
    /// # Errors
    /// [`Error::Shaping`] when the shaper does not exist.
    pub fn counters(&mut self) -> Result<Vec<Counters>> {
        let mut found: Vec<Option<Counters>> = vec![None; self.shape.destinations.len()];
        let mut vnic = false;
        let classes = get_classes(self.index, MAJOR);
        let asked = self.socket.ask(classes, |message| {
            let Some((class, counters)) = read_class(message) else { return };
            vnic |= class.handle == VNIC;
            let number = class.handle.checked_sub(FIRST).map(|number| number as usize);
            if let Some(place) = number.and_then(|number| found.get_mut(number)) {
                *place = Some(counters);
            }
        });
        asked.map_err(|errno| self.refused("read the classes of", errno))?;
        let counters: Option<Vec<Counters>> = found.into_iter().collect();
        counters.filter(|_| vnic).ok_or_else(|| {
            Error::Shaping(format!("somebody removed the shaper of {}", self.shape.interface))
        })
    }

    /// The bytes that the interface received, with Ethernet headers.
    ///
    /// # Errors
    /// [`Error::Shaping`] when the interface does not exist.
    pub fn received(&mut self) -> Result<u64> {
        let mut received = None;
        let asked = self.socket.ask(get_counters(self.index), |message| {
            received = read_received(message).or(received);
        });
        let refused = asked.err().unwrap_or(Errno::ENODATA);
        received.ok_or_else(|| self.refused("read the counters of", refused))
    }

    /// Removes all parts of the shaper; the kernel restores its own queueing discipline.
    ///
    /// # Errors
    /// [`Error::Shaping`] when the kernel refuses.
    pub fn remove(&mut self) -> Result<()> {
        match self.leftover()? {
            Some(qdisc) => self.request("remove the shaper of", delete_qdisc(qdisc.place)),
            None => Ok(()),
        }
    }

    fn open(shape: Shape) -> Result<Shaper> {
        let index = packet::Interface::find(&shape.interface)?.index;
        let turn = take_turn(&shape.interface)?;
        Ok(Shaper { socket: Socket::open()?, shape, index, parent: ROOT, _turn: turn })
    }

    /// Finds the queueing discipline that an agent left on the interface.
    fn leftover(&mut self) -> Result<Option<Qdisc>> {
        let qdiscs = self.qdiscs()?;
        Ok(qdiscs.into_iter().find(|qdisc| qdisc.place.handle == MAJOR && qdisc.kind == "htb"))
    }

    fn qdiscs(&mut self) -> Result<Vec<Qdisc>> {
        let mut found = Vec::new();
        let index = self.index;
        let asked = self.socket.ask(get_qdiscs(index), |message| found.extend(read_qdisc(message)));
        asked.map_err(|errno| self.refused("read the queueing of", errno))?;
        found.retain(|qdisc: &Qdisc| qdisc.place.interface == index);
        Ok(found)
    }

    /// Finds a parent for the shaper that takes nothing away from another program.
    fn find_parent(&mut self) -> Result<u32> {
        let qdiscs = self.qdiscs()?;
        let root = qdiscs.iter().find(|qdisc| qdisc.place.parent == ROOT);
        // A queueing discipline that the kernel chose itself has no handle.
        let Some(root) = root.filter(|root| root.place.handle != 0) else { return Ok(ROOT) };
        let name = &self.shape.interface;
        let refuse = |why: String| {
            Err(Error::Shaping(format!(
                "cannot shape {name}: its queueing discipline {} {:x}: {why}; remove it first",
                root.kind,
                root.place.handle >> 16
            )))
        };
        let Some(default) = root.default.filter(|default| *default != 0) else {
            return refuse(
                "is somebody else's, and there is no HTB with a default class to stand under"
                    .to_owned(),
            );
        };
        let class = root.place.handle | default;
        let mut classes = Vec::new();
        let asked = self.socket.ask(get_classes(self.index, root.place.handle), |message| {
            classes.extend(read_class(message).map(|(class, _)| class));
        });
        asked.map_err(|errno| self.refused("read the classes of", errno))?;
        let is_there = classes.iter().any(|one| one.handle == class);
        let is_leaf = classes.iter().all(|one| one.parent != class);
        let is_taken = qdiscs.iter().any(|one| one.place.parent == class && one.place.handle != 0);
        if !is_there || !is_leaf || is_taken {
            return refuse(format!("has no free default class {default:x}"));
        }
        Ok(class)
    }

    fn make(&mut self) -> Result<()> {
        let qdisc = Place { interface: self.index, handle: MAJOR, parent: self.parent };
        self.request("put an HTB on", new_htb(qdisc, ELSEWHERE & 0xffff))?;
        let whole = self.shape.bandwidth.bits_per_second();
        let quantum = LONGEST_FRAME as u32;
        let vnic = ClassRates { rate: whole, ceiling: whole, quantum };
        self.request("add a class to", new_class(self.place(VNIC, MAJOR), vnic))?;
        self.leaf(ELSEWHERE)?;
        for number in 0..self.shape.destinations.len() {
            self.leaf(FIRST + number as u32)?;
        }
        for (number, destination) in self.shape.destinations.clone().into_iter().enumerate() {
            let filter =
                new_filter(self.place(0, MAJOR), destination.octets(), FIRST + number as u32);
            self.request("add a filter to", filter)?;
        }
        Ok(())
    }

    fn leaf(&mut self, class: u32) -> Result<()> {
        let rates = self.rates(self.shape.bandwidth);
        self.request("add a class to", new_class(self.place(class, VNIC), rates))?;
        // The limit is 100 ms at the VNIC's bandwidth, and at least the size of a socket's send buffer. Linux's TCP
        // does not see a frame that was dropped before the frame left as lost, and then waits for a timer instead of an
        // acknowledgement.
        let bytes = self.shape.bandwidth.bits_per_second() / 8 / 10;
        let limit = u32::try_from(bytes.max(200 * LONGEST_FRAME)).unwrap_or(u32::MAX);
        self.request("add a queue to", new_queue(self.place(0, class), limit))
    }

    fn rates(&self, ceiling: Bandwidth) -> ClassRates {
        let whole = self.shape.bandwidth.bits_per_second();
        let ceiling = ceiling.bits_per_second().clamp(8_000, whole.max(8_000));
        // HTB guarantees the rates of classes even above the parent's rate, so the sum of the rates has to stay below
        // the parent's rate. The parent lends the rest.
        let classes = self.shape.destinations.len() as u64 + 1;
        let rate = (whole / classes).clamp(8_000, ceiling);
        // Each class gets lent bandwidth in proportion to its quantum.
        let quantum = LONGEST_FRAME * (8 * ceiling / whole.max(1)).clamp(1, 8);
        ClassRates { rate, ceiling, quantum: quantum as u32 }
    }

    fn place(&self, handle: u32, parent: u32) -> Place {
        Place { interface: self.index, handle, parent }
    }

    fn request(&mut self, doing: &str, message: crate::netlink::Message) -> Result<()> {
        self.socket.request(message).map_err(|errno| self.refused(doing, errno))
    }

    fn refused(&self, doing: &str, errno: Errno) -> Error {
        refusal(&format!("{doing} {}", self.shape.interface), errno)
    }
}

/// Whether this process may shape, and the kernel has all features for shaping. The check uses a new network namespace
/// that no other process sees and that disappears, so a missing feature leaves no interface half configured.
///
/// # Errors
/// [`Error::Shaping`] names the missing feature.
pub fn check_kernel() -> Result<()> {
    let try_out = || -> Result<()> {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| match errno {
            Errno::EPERM => {
                Error::Shaping("shaping needs root (CAP_NET_ADMIN and CAP_SYS_ADMIN)".to_owned())
            }
            _ => {
                Error::io("try out the kernel's traffic control in a new network namespace", errno)
            }
        })?;
        let mut socket = Socket::open()?;
        let interface = packet::Interface::find("lo")?.index;
        let place = |handle, parent| Place { interface, handle, parent };
        let rates = ClassRates { rate: 8_000, ceiling: 8_000, quantum: LONGEST_FRAME as u32 };
        let attempts = [
            ("HTB (sch_htb, CONFIG_NET_SCH_HTB)", new_htb(place(MAJOR, ROOT), 2)),
            ("HTB's classes (sch_htb)", new_class(place(VNIC, MAJOR), rates)),
            ("bfifo (sch_fifo, CONFIG_NET_SCH_FIFO)", new_queue(place(0, VNIC), 1 << 16)),
            (
                "u32 filters (cls_u32, CONFIG_NET_CLS_U32)",
                new_filter(place(0, MAJOR), [2, 0, 0, 0, 0, 1], VNIC),
            ),
        ];
        for (what, message) in attempts {
            socket.request(message).map_err(|errno| {
                Error::Shaping(format!("this kernel does not offer {what}: {}", errno.desc()))
            })?;
        }
        let mut classes = 0;
        let asked = socket.ask(get_classes(interface, MAJOR), |message| {
            classes += usize::from(read_class(message).is_some());
        });
        match asked {
            Ok(()) if classes == 1 => Ok(()),
            _ => Err(Error::Shaping(
                "this kernel does not report the counters of classes".to_owned(),
            )),
        }
    };
    // The thread is new: the namespace disappears at the end of the thread.
    std::thread::scope(|scope| scope.spawn(try_out).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn refusal(doing: &str, errno: Errno) -> Error {
    Error::Shaping(match errno {
        Errno::EPERM | Errno::EACCES => format!("cannot {doing}: it needs root (CAP_NET_ADMIN)"),
        Errno::ENODEV => format!("cannot {doing}: the interface is gone"),
        _ => format!("cannot {doing}: {}", errno.desc()),
    })
}

/// Locks the interface for this process.
fn take_turn(interface: &str) -> Result<UnixListener> {
    let name = SocketAddr::from_abstract_name(format!("weir-agent/{interface}"))
        .map_err(|error| Error::io(format!("name a socket after {interface}"), error))?;
    let start = Instant::now();
    loop {
        match UnixListener::bind_addr(&name) {
            Ok(turn) => return Ok(turn),
            Err(error) if error.kind() != ErrorKind::AddrInUse => {
                return Err(Error::io(format!("take {interface} for this agent"), error));
            }
            Err(_) if start.elapsed() > TURN => {
                return Err(Error::Shaping(format!("another weir agent shapes {interface}")));
            }
            // The process beside a killed agent releases the lock in a moment.
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
