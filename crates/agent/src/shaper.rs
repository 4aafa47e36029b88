//! An interface's shaper: an HTB with one class per destination, below one class for the VNIC.
//!
//! ```text
//!   egress of the VNIC's interface: root, or below the leaf of somebody else's HTB
//!     5745: htb
//!       └─ 5745:1   the VNIC: rate = ceiling = its bandwidth
//!            ├─ 5745:2     what goes elsewhere (groups, gateways): the VNIC's bandwidth
//!            ├─ 5745:10    to the first destination: at most its grant, else the VNIC's bandwidth
//!            └─ 5745:11    to the second, ...                  each with a queue of its own, in bytes
//! ```
//!
//! **Why the host's side of the VNIC.** Frames have to wait before the switch has them. On a switch port that Open
//! vSwitch's userspace datapath reads, the ingress is too late: its packet socket sees a frame before any ingress filter
//! could redirect it to an IFB. So the shaper stands where the frame leaves its origin: at the egress of the veth end in
//! the host's namespace, or of the tap's backend; that end has to be the operator's, not the tenant's.
//!
//! **What was there stays.** A root that the kernel chose itself is replaced, and comes back when ours goes. Below a root
//! HTB (such as a lab's link rate) ours goes under its default class, so both rates hold. Any other root is refused.
//! Everything of ours is below the one queueing discipline `5745:`: removing that removes all, and its number says
//! that an agent left it.

use crate::error::{Error, Result};
use crate::netlink::Socket;
use crate::netlink::traffic::{
    ClassCounters, ClassRates, Place, Qdisc, ROOT, change_class, delete_qdisc, get_classes,
    get_counters, get_qdiscs, new_class, new_filter, new_htb, new_queue, read_class, read_counters,
    read_qdisc,
};
use fabric::{Bandwidth, MacAddress};
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::{Duration, Instant};

/// "WE": what of an interface's queueing is ours.
const MAJOR: u32 = 0x5745_0000;
const VNIC: u32 = MAJOR | 1;
const ELSEWHERE: u32 = MAJOR | 2;
const FIRST: u32 = MAJOR | 0x10;
/// A u32 filter's bucket has place for 2,047, and each frame is compared with one after the other.
pub const MOST_DESTINATIONS: usize = 1024;

const LONGEST_FRAME: u64 = 1514;
/// How long to wait for another agent to let go of an interface.
const TURN: Duration = Duration::from_millis(500);

/// What an interface is to be shaped to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The interface's name, in the calling thread's network namespace.
    pub interface: String,
    /// The VNIC's bandwidth.
    pub bandwidth: Bandwidth,
    /// Who gets a class of their own; 1,024 at the most.
    pub destinations: Vec<MacAddress>,
}

/// What goes to one destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes that were sent, Ethernet header included.
    pub bytes: u64,
    /// Bytes that wait.
    pub backlog: u32,
    /// Frames that the full queue lost.
    pub dropped: u32,
    /// How often the class had to wait because it was at its ceiling; wraps.
    pub throttled: u32,
}

/// A shaper on an interface.
pub struct Shaper {
    socket: Socket,
    shape: Shape,
    index: u32,
    parent: u32,
    /// One agent per interface; the name belongs to the network namespace and vanishes with its holder.
    _turn: UnixListener,
}

impl Shaper {
    /// Puts a shaper on an interface, in place of one that another agent left behind.
    ///
    /// # Errors
    /// [`Error::Shaping`] when an agent is at work there, somebody else's queueing cannot be kept, or the kernel lacks
    /// something; [`Error::Packet`] when there is no such interface. Whatever was made until then is removed.
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
                // The first error is the one to tell.
                let _ = shaper.remove();
                Err(error)
            }
        }
    }

    /// Gives every destination on an interface the VNIC's whole bandwidth, if an agent that is no more left a shaper
    /// there; whether one was there.
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

    /// Lets that destination (its place in the list) have at most so much.
    ///
    /// # Errors
    /// [`Error::Shaping`] when the class is gone.
    pub fn set_ceiling(&mut self, destination: usize, most: Bandwidth) -> Result<()> {
        let place = self.place(FIRST + destination as u32, VNIC);
        let rates = self.rates(most);
        self.told("change a class of", change_class(place, rates))
    }

    /// What went to each destination, in the order of the list.
    ///
    /// # Errors
    /// [`Error::Shaping`] when the shaper is gone.
    pub fn counters(&mut self) -> Result<Vec<Counters>> {
        let mut found: Vec<Option<Counters>> = vec![None; self.shape.destinations.len()];
        let mut vnic = false;
        let classes = get_classes(self.index, MAJOR);
        let asked = self.socket.ask(classes, |message| {
            let Some(class) = read_class(message) else { return };
            vnic |= class.place.handle == VNIC;
            let number = class.place.handle.checked_sub(FIRST).map(|number| number as usize);
            if let Some(place) = number.and_then(|number| found.get_mut(number)) {
                *place = Some(Counters::from(class));
            }
        });
        asked.map_err(|errno| self.refused("read the classes of", errno))?;
        let counters: Option<Vec<Counters>> = found.into_iter().collect();
        counters.filter(|_| vnic).ok_or_else(|| {
            Error::Shaping(format!("somebody removed the shaper of {}", self.shape.interface))
        })
    }

    /// Bytes that the interface received, Ethernet headers included.
    ///
    /// # Errors
    /// [`Error::Shaping`] when the interface is gone.
    pub fn received(&mut self) -> Result<u64> {
        let mut received = None;
        let asked = self.socket.ask(get_counters(self.index), |message| {
            received = read_counters(message).map(|(received, _)| received).or(received);
        });
        let refused = asked.err().unwrap_or(Errno::ENODATA);
        received.ok_or_else(|| self.refused("read the counters of", refused))
    }

    /// Removes everything that is ours; the kernel brings back what it had before.
    ///
    /// # Errors
    /// [`Error::Shaping`] when the kernel refuses.
    pub fn remove(&mut self) -> Result<()> {
        match self.leftover()? {
            Some(qdisc) => self.told("remove the shaper of", delete_qdisc(qdisc.place)),
            None => Ok(()),
        }
    }

    fn open(shape: Shape) -> Result<Shaper> {
        let index = packet::Interface::find(&shape.interface)?.index;
        let turn = take_turn(&shape.interface)?;
        Ok(Shaper { socket: Socket::open()?, shape, index, parent: ROOT, _turn: turn })
    }

    /// What an agent left here.
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

    /// Below what ours can stand without taking anything of somebody else's away.
    fn find_parent(&mut self) -> Result<u32> {
        let qdiscs = self.qdiscs()?;
        let root = qdiscs.iter().find(|qdisc| qdisc.place.parent == ROOT);
        // What the kernel chose itself has no handle.
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
            classes.extend(read_class(message));
        });
        asked.map_err(|errno| self.refused("read the classes of", errno))?;
        let is_there = classes.iter().any(|one| one.place.handle == class);
        let is_leaf = classes.iter().all(|one| one.place.parent != class);
        let is_taken = qdiscs.iter().any(|one| one.place.parent == class && one.place.handle != 0);
        if !is_there || !is_leaf || is_taken {
            return refuse(format!("has no free default class {default:x}"));
        }
        Ok(class)
    }

    fn make(&mut self) -> Result<()> {
        let qdisc = Place { interface: self.index, handle: MAJOR, parent: self.parent };
        self.told("put an HTB on", new_htb(qdisc, ELSEWHERE & 0xffff))?;
        let whole = self.shape.bandwidth.bits_per_second();
        let quantum = LONGEST_FRAME as u32;
        let vnic = ClassRates { rate: whole, ceiling: whole, quantum };
        self.told("add a class to", new_class(self.place(VNIC, MAJOR), vnic))?;
        self.leaf(ELSEWHERE)?;
        for number in 0..self.shape.destinations.len() {
            self.leaf(FIRST + number as u32)?;
        }
        for (number, destination) in self.shape.destinations.clone().into_iter().enumerate() {
            let filter =
                new_filter(self.place(0, MAJOR), destination.octets(), FIRST + number as u32);
            self.told("add a filter to", filter)?;
        }
        Ok(())
    }

    fn leaf(&mut self, class: u32) -> Result<()> {
        let rates = self.rates(self.shape.bandwidth);
        self.told("add a class to", new_class(self.place(class, VNIC), rates))?;
        // 100 ms at the VNIC's bandwidth, and never less than what a socket's send buffer holds: a frame that is dropped
        // before it left is no loss to Linux' TCP, which then waits for a timer instead of an acknowledgement.
        let bytes = self.shape.bandwidth.bits_per_second() / 8 / 10;
        let limit = u32::try_from(bytes.max(200 * LONGEST_FRAME)).unwrap_or(u32::MAX);
        self.told("add a queue to", new_queue(self.place(0, class), limit))
    }

    fn rates(&self, ceiling: Bandwidth) -> ClassRates {
        let whole = self.shape.bandwidth.bits_per_second();
        let ceiling = ceiling.bits_per_second().clamp(8_000, whole.max(8_000));
        // Rates are guaranteed beyond the parent's, so their sum has to stay below; the rest is lent.
        let classes = self.shape.destinations.len() as u64 + 1;
        let rate = (whole / classes).clamp(8_000, ceiling);
        // Of what is lent each gets in proportion to this.
        let quantum = LONGEST_FRAME * (8 * ceiling / whole.max(1)).clamp(1, 8);
        ClassRates { rate, ceiling, quantum: quantum as u32 }
    }

    fn place(&self, handle: u32, parent: u32) -> Place {
        Place { interface: self.index, handle, parent }
    }

    fn told(&mut self, doing: &str, message: crate::netlink::Message) -> Result<()> {
        self.socket.request(message).map_err(|errno| self.refused(doing, errno))
    }

    fn refused(&self, doing: &str, errno: Errno) -> Error {
        refusal(&format!("{doing} {}", self.shape.interface), errno)
    }
}

impl From<ClassCounters> for Counters {
    fn from(class: ClassCounters) -> Counters {
        let ClassCounters { bytes, backlog, dropped, throttled, .. } = class;
        Counters { bytes, backlog, dropped, throttled }
    }
}

/// Whether this process may shape, and the kernel has everything for it: tried out in a network namespace that nobody
/// else sees and that vanishes, so that no interface is half configured when something is missing.
///
/// # Errors
/// [`Error::Shaping`] that names what is missing.
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
            _ => Err(Error::Shaping("this kernel does not tell what classes count".to_owned())),
        }
    };
    // A thread of its own: it takes the namespace with it when it ends.
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

/// Takes the interface for this process.
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
            // The guard of an agent that was killed lets go in a moment.
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}
