//! The placement as bytes that survive a restart.
//!
//! Numbers are big-endian, and lists begin with their length (32 bits). The bytes may come from a broken disk: only
//! complete records that fit the requests are used.

use super::check::Assigned;
use super::map::Tag;
use super::spec::{Route, Spec, Step, VirtualPortId};
use super::tags::Tags;
use super::trunk::{Carries, Lane, Routed, Trunk, TrunkId, Want, Wire};
use crate::paths::Disjoint;
use crate::units::{Dpid, MacAddress, PortId, PortNumber, TenantId};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

/// The first byte. Weir does not read another format.
const FORMAT: u8 = 8;

/// The data that [`Embedding::restore`](super::Embedding::restore) reads.
pub(super) struct Restored {
    pub remembered: Remembered,
    pub assigned: Assigned,
    pub next_tag: u16,
    /// The switches that handle only one tag.
    pub single: BTreeSet<Dpid>,
    /// Tags that were released last or were about to be released, by the sending port: switches may not have followed
    /// yet.
    pub resting: Vec<(PortId, Vec<Tag>)>,
}

/// The bytes for [`Embedding::restore`](super::Embedding::restore) were not written by
/// [`Embedding::export`](super::Embedding::export).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedError {
    /// The number of bytes that could be read.
    pub at: usize,
}

impl fmt::Display for SavedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "what is stored of the virtual networks cannot be read at byte {}", self.at)
    }
}

impl core::error::Error for SavedError {}

/// The saved places of trunks, with the requests of that time.
#[derive(Clone, Debug, Default)]
pub(super) struct Remembered(BTreeMap<TrunkId, Saved>);

#[derive(Clone, Debug)]
struct Saved {
    want: Vec<u8>,
    home: Vec<Wire>,
    active: Routed,
    backup: Option<Routed>,
}

impl Remembered {
    /// The saved trunk, if its request is the same.
    pub(super) fn take(&mut self, id: TrunkId, want: &Want) -> Option<Trunk> {
        let Saved { want: wanted, home, active, backup } = self.0.remove(&id)?;
        let is_end = |routed: &Routed| {
            let (first, last) = (routed.wires.first(), routed.wires.last());
            let from = first.is_some_and(|wire| want.ends[0].contains(&wire.from.dpid));
            from && last.is_some_and(|wire| want.ends[1].contains(&wire.to.dpid))
        };
        let fits = wanted == want_bytes(want) && is_end(&active);
        let backup = backup.filter(is_end);
        fits.then(|| Trunk { home, active: Some(active), backup, ..Trunk::new(want.clone()) })
    }

    /// The tags of all paths, and the ports that sent them.
    pub(super) fn held(&self) -> impl Iterator<Item = (PortId, Tag)> {
        self.0
            .values()
            .flat_map(|saved| saved.active.held().chain(saved.backup.iter().flat_map(Routed::held)))
    }
}

pub(super) fn export(
    wanted: &BTreeMap<TenantId, Spec>,
    assigned: &Assigned,
    trunks: &BTreeMap<TrunkId, Trunk>,
    tags: &Tags,
    single: &BTreeSet<Dpid>,
) -> Vec<u8> {
    let mut out = Writer(Vec::from([FORMAT]));
    out.u16(tags.next());
    let placed = trunks.iter().filter_map(|(id, trunk)| Some((id, trunk, trunk.active.as_ref()?)));
    let placed: Vec<_> = placed.collect();
    out.list(&placed, |out, (id, trunk, active)| {
        out.trunk_id(id);
        out.list(&want_bytes(&trunk.want), |out, byte| out.u8(*byte));
        out.list(&trunk.home, Writer::wire);
        out.routed(active);
        out.u8(u8::from(trunk.backup.is_some()));
        trunk.backup.iter().for_each(|backup| out.routed(backup));
    });
    let all = assigned.iter().flat_map(|(tenant, all)| all.iter().map(move |it| (tenant, it)));
    out.list(&all.collect::<Vec<_>>(), |out, (tenant, (mac, address))| {
        out.u16(tenant.0);
        out.0.extend(mac.octets());
        out.address(address);
    });
    // No network depends on other switches.
    let switches = wanted.values().flat_map(|spec| &spec.switches);
    let members: BTreeSet<_> = switches.flat_map(|switch| &switch.members).collect();
    let single: Vec<_> = single.iter().filter(|dpid| members.contains(dpid)).collect();
    out.list(&single, |out, dpid| out.u64(dpid.0));
    let mut resting = tags.resting();
    let leaving = trunks.values().filter_map(|trunk| trunk.leaving.as_ref());
    for (port, tag) in leaving.filter_map(|it| it.route.as_ref()).flat_map(Routed::held) {
        resting.entry(port).or_default().push(tag);
    }
    out.list(&resting.into_iter().collect::<Vec<_>>(), |out, (port, tags)| {
        out.port(*port);
        out.list(tags, |out, tag| out.u16(tag.get()));
    });
    out.0
}

pub(super) fn read(saved: &[u8]) -> Result<Restored, SavedError> {
    let mut reader = Reader { all: saved, at: 0 };
    reader.whole().ok_or(SavedError { at: reader.at })
}

/// The request of a trunk as bytes, to compare requests.
fn want_bytes(want: &Want) -> Vec<u8> {
    let mut out = Writer(Vec::new());
    for ends in &want.ends {
        out.list(ends, |out, dpid| out.u64(dpid.0));
    }
    out.u64(want.bandwidth.bits_per_second());
    match &want.route {
        Route::Shortest => out.u8(0),
        Route::Widest => out.u8(1),
        Route::Given(steps) => {
            out.u8(2);
            out.list(steps, |out, step| match step {
                Step::Switch(dpid) => {
                    out.u8(0);
                    out.u64(dpid.0);
                }
                Step::Port(port) => {
                    out.u8(1);
                    out.port(*port);
                }
            });
        }
    }
    out.u8(match want.protection {
        None => 0,
        Some(Disjoint::Links) => 1,
        Some(Disjoint::Switches) => 2,
    });
    out.u8(u8::from(want.reverts));
    out.0
}

struct Writer(Vec<u8>);

impl Writer {
    fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    fn u16(&mut self, value: u16) {
        self.0.extend(value.to_be_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend(value.to_be_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend(value.to_be_bytes());
    }

    fn list<T>(&mut self, items: &[T], mut one: impl FnMut(&mut Writer, &T)) {
        self.u32(items.len() as u32);
        items.iter().for_each(|item| one(self, item));
    }

    fn port(&mut self, port: PortId) {
        self.u64(port.dpid.0);
        self.u32(port.port.get());
    }

    fn virtual_port(&mut self, port: VirtualPortId) {
        self.u64(port.switch.0);
        self.u32(port.number);
    }

    fn wire(&mut self, wire: &Wire) {
        self.port(wire.from);
        self.port(wire.to);
    }

    fn trunk_id(&mut self, id: &TrunkId) {
        self.u16(id.tenant.0);
        match id.carries {
            Carries::Link(ends) => {
                self.u8(0);
                ends.into_iter().for_each(|end| self.virtual_port(end));
            }
            Carries::Inside { switch, members } => {
                self.u8(1);
                [switch, members[0], members[1]].into_iter().for_each(|dpid| self.u64(dpid.0));
            }
        }
    }

    fn routed(&mut self, routed: &Routed) {
        self.list(&routed.wires, Writer::wire);
        let lanes: Vec<_> = routed.tags.iter().collect();
        self.list(&lanes, |out, (lane, tags)| {
            out.u8(u8::from(lane.forth));
            out.u32(lane.port);
            out.list(tags, |out, tag| out.u16(tag.get()));
        });
    }

    fn address(&mut self, address: &IpAddr) {
        match address {
            IpAddr::V4(address) => {
                self.u8(4);
                self.0.extend(address.octets());
            }
            IpAddr::V6(address) => {
                self.u8(6);
                self.0.extend(address.octets());
            }
        }
    }
}

/// Reads values. Every method returns `None` at the end of the bytes, and for invalid bytes.
struct Reader<'a> {
    all: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn whole(&mut self) -> Option<Restored> {
        if self.u8()? != FORMAT {
            return None;
        }
        let next_tag = self.u16()?;
        let trunks = self.list(|from| {
            let id = from.trunk_id()?;
            let want = from.list(Reader::u8)?;
            let home = from.wires()?;
            let active = from.routed()?;
            let backup = if from.flag()? { Some(from.routed()?) } else { None };
            Some((id, Saved { want, home, active, backup }))
        })?;
        let mut assigned = Assigned::new();
        let addresses = self.list(|from| {
            let tenant = TenantId(from.u16()?);
            Some((tenant, MacAddress::new(from.octets()?).ok()?, from.address()?))
        })?;
        for (tenant, mac, address) in addresses {
            assigned.entry(tenant).or_default().insert(mac, address);
        }
        let single = self.list(Reader::dpid)?.into_iter().collect();
        let resting = self.list(|from| Some((from.port()?, from.tags()?)))?;
        let is_end = self.at == self.all.len();
        let remembered = Remembered(trunks.into_iter().collect());
        is_end.then_some(Restored { remembered, assigned, next_tag, single, resting })
    }

    fn octets<const N: usize>(&mut self) -> Option<[u8; N]> {
        let octets = self.all.get(self.at..)?.first_chunk::<N>()?;
        self.at += N;
        Some(*octets)
    }

    fn u8(&mut self) -> Option<u8> {
        self.octets::<1>().map(|[octet]| octet)
    }

    fn u16(&mut self) -> Option<u16> {
        self.octets().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.octets().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.octets().map(u64::from_be_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// The list grows with the values that are read, independent of the claimed length.
    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = self.u32()?;
        let mut items = Vec::new();
        for _ in 0..length {
            items.push(one(self)?);
        }
        Some(items)
    }

    fn dpid(&mut self) -> Option<Dpid> {
        self.u64().map(Dpid)
    }

    fn port(&mut self) -> Option<PortId> {
        Some(PortId::new(self.dpid()?, PortNumber::new(self.u32()?).ok()?))
    }

    fn virtual_port(&mut self) -> Option<VirtualPortId> {
        Some(VirtualPortId { switch: self.dpid()?, number: self.u32()? })
    }

    fn tags(&mut self) -> Option<Vec<Tag>> {
        self.list(|from| Tag::new(from.u16()?).ok())
    }

    fn trunk_id(&mut self) -> Option<TrunkId> {
        let tenant = TenantId(self.u16()?);
        let carries = match self.u8()? {
            0 => Carries::Link([self.virtual_port()?, self.virtual_port()?]),
            1 => Carries::Inside { switch: self.dpid()?, members: [self.dpid()?, self.dpid()?] },
            _ => return None,
        };
        Some(TrunkId { tenant, carries })
    }

    /// Wires that follow one another, at least one.
    fn wires(&mut self) -> Option<Vec<Wire>> {
        let wires = self.list(|from| Some(Wire { from: from.port()?, to: from.port()? }))?;
        let follow = wires.windows(2).all(|two| two[0].to.dpid == two[1].from.dpid);
        (follow && !wires.is_empty()).then_some(wires)
    }

    fn routed(&mut self) -> Option<Routed> {
        let wires = self.wires()?;
        let lanes = self.list(|from| {
            let (forth, port) = (from.flag()?, from.u32()?);
            let lane = Lane { forth, port };
            let tags = from.tags()?;
            (tags.len() == wires.len()).then_some((lane, tags))
        })?;
        Some(Routed { wires, tags: lanes.into_iter().collect() })
    }

    fn address(&mut self) -> Option<IpAddr> {
        match self.u8()? {
            4 => self.octets::<4>().map(IpAddr::from),
            6 => self.octets::<16>().map(IpAddr::from),
            _ => None,
        }
    }
}
