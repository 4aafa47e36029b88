//! Tenants' virtual interfaces (VNICs): the packets from one to another, and the interfaces that an entry can concern.

use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Range;

use fabric::{Bandwidth, Dpid, PortId, TenantId};
use flowspace::field::{VLAN_PRESENT, ethertype};
use flowspace::{Field, Match};

use crate::config;
use crate::topology::trace::Station;

/// A sender and a receiver, by their places among the VNICs.
pub(super) type Pair = (u32, u32);

/// A virtual interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Vnic {
    pub(super) tenant: TenantId,
    pub(super) port: PortId,
    pub(super) mac: u128,
    /// The IP addresses; empty: any address.
    addresses: Vec<IpAddr>,
    vlan: Option<u16>,
    pub(super) bandwidth: Bandwidth,
}

/// All interfaces; those of one tenant are adjacent.
#[derive(Default)]
pub(super) struct Vnics {
    all: Vec<Vnic>,
    by_mac: HashMap<(TenantId, u128), u32>,
    by_address: HashMap<(TenantId, IpAddr), Vec<u32>>,
    tenants: HashMap<TenantId, Own>,
}

/// The interfaces of one tenant, by their indices.
#[derive(Default)]
struct Own {
    all: Range<u32>,
    by_switch: HashMap<Dpid, Vec<u32>>,
    /// The interfaces without known addresses.
    nameless: Vec<u32>,
}

/// The interfaces of a tenant that a match allows at one end of a pair.
#[derive(Clone, Copy)]
pub(super) enum Who<'a> {
    /// All interfaces.
    Any,
    /// The interfaces with the address, and those without known addresses.
    These(&'a [u32], &'a [u32]),
}

impl Who<'_> {
    /// The number of interfaces, if not all.
    pub(super) fn count(self) -> Option<usize> {
        match self {
            Who::Any => None,
            Who::These(known, nameless) => Some(known.len() + nameless.len()),
        }
    }

    pub(super) fn has(self, vnic: u32) -> bool {
        match self {
            Who::Any => true,
            Who::These(known, nameless) => known.contains(&vnic) || nameless.contains(&vnic),
        }
    }

    /// These interfaces, from all interfaces of the tenant.
    pub(super) fn iter(self, all: Range<u32>) -> impl Iterator<Item = u32> {
        let (all, these) = match self {
            Who::Any => (all, [&[][..], &[]]),
            Who::These(known, nameless) => (0..0, [known, nameless]),
        };
        all.chain(these.into_iter().flatten().copied())
    }
}

impl Vnics {
    pub(super) fn new<'a>(tenants: impl Iterator<Item = (TenantId, &'a [config::Vnic])>) -> Vnics {
        let mut vnics = Vnics::default();
        for (tenant, own) in tenants {
            let first = vnics.all.len() as u32;
            let mut known = Own { all: first..first + own.len() as u32, ..Own::default() };
            for (at, vnic) in (first..).zip(own) {
                let mac = number(vnic.mac.octets());
                vnics.by_mac.insert((tenant, mac), at);
                for address in &vnic.ip {
                    vnics.by_address.entry((tenant, *address)).or_default().push(at);
                }
                known.by_switch.entry(vnic.port.dpid).or_default().push(at);
                if vnic.ip.is_empty() {
                    known.nameless.push(at);
                }
                vnics.all.push(Vnic {
                    tenant,
                    port: vnic.port,
                    mac,
                    addresses: vnic.ip.clone(),
                    vlan: vnic.vlan,
                    bandwidth: vnic.bandwidth,
                });
            }
            vnics.tenants.insert(tenant, known);
        }
        vnics
    }

    pub(super) fn all(&self) -> &[Vnic] {
        &self.all
    }

    pub(super) fn pair(&self, pair: Pair) -> Option<(&Vnic, &Vnic)> {
        Some((self.all.get(pair.0 as usize)?, self.all.get(pair.1 as usize)?))
    }

    pub(super) fn by_mac(&self, tenant: TenantId, mac: u128) -> Option<u32> {
        self.by_mac.get(&(tenant, mac)).copied()
    }

    /// All interfaces of a tenant.
    pub(super) fn of(&self, tenant: TenantId) -> Range<u32> {
        self.tenants.get(&tenant).map_or(0..0, |own| own.all.clone())
    }

    /// The interfaces of a tenant at a switch.
    pub(super) fn at(&self, tenant: TenantId, dpid: Dpid) -> &[u32] {
        let own = self.tenants.get(&tenant).and_then(|own| own.by_switch.get(&dpid));
        own.map_or(&[], Vec::as_slice)
    }

    /// The senders and receivers whose unchanged packets an entry can concern.
    pub(super) fn ends(&self, tenant: TenantId, match_: &Match) -> (Who<'_>, Who<'_>) {
        let from = self.who(tenant, match_, Field::DlSrc, Field::NwSrc, Field::Ipv6Src);
        (from, self.who(tenant, match_, Field::DlDst, Field::NwDst, Field::Ipv6Dst))
    }

    fn who(&self, tenant: TenantId, match_: &Match, mac: Field, v4: Field, v6: Field) -> Who<'_> {
        if let Some(mac) = match_.exact_value(mac) {
            let known = self.by_mac.get(&(tenant, mac));
            return Who::These(known.map_or(&[], std::slice::from_ref), &[]);
        }
        let v4 = match_.exact_value(v4).map(|it| IpAddr::V4((it as u32).into()));
        let address = v4.or_else(|| Some(IpAddr::V6(match_.exact_value(v6)?.into())));
        let Some(address) = address else { return Who::Any };
        let known = self.by_address.get(&(tenant, address));
        let nameless = self.tenants.get(&tenant).map_or(&[][..], |own| &own.nameless);
        Who::These(known.map_or(&[], Vec::as_slice), nameless)
    }
}

impl Vnic {
    pub(super) fn station(&self) -> Station {
        Station { port: self.port, mac: self.mac }
    }

    /// The packets to another interface: a set for each pair of their addresses of one kind, or, without known
    /// addresses, a set for each kind.
    pub(super) fn packets(&self, to: &Vnic) -> Vec<Match> {
        let mut packets = Match::exact(Field::InPort, u128::from(self.port.port.get()))
            .with(Field::DlSrc, self.mac)
            .with(Field::DlDst, to.mac);
        match self.vlan {
            Some(0) => packets = packets.with(Field::VlanVid, 0),
            Some(vlan) => {
                packets = packets.with(Field::VlanVid, u128::from(vlan) | VLAN_PRESENT);
            }
            None => {}
        }
        let mut sets = Vec::new();
        let kinds = [
            (ethertype::IP, Field::NwSrc, Field::NwDst),
            (ethertype::IPV6, Field::Ipv6Src, Field::Ipv6Dst),
        ];
        for (kind, source, destination) in kinds {
            let packets = packets.with(Field::DlType, u128::from(kind));
            for from in self.addresses_of(kind) {
                for to in to.addresses_of(kind) {
                    let set = from.map_or(packets, |from| packets.with(source, from));
                    sets.push(to.map_or(set, |to| set.with(destination, to)));
                }
            }
        }
        sets
    }

    /// The addresses of this kind; one unknown address if the interface has no known addresses.
    fn addresses_of(&self, kind: u16) -> impl Iterator<Item = Option<u128>> {
        let known = self.addresses.iter().filter_map(move |address| match address {
            IpAddr::V4(address) if kind == ethertype::IP => Some(u32::from(*address).into()),
            IpAddr::V6(address) if kind == ethertype::IPV6 => Some(u128::from(*address)),
            _ => None,
        });
        let unknown = self.addresses.is_empty().then_some(None);
        known.map(Some).chain(unknown)
    }
}

/// Hardware addresses are numbers in matches.
pub(super) fn number(octets: [u8; 6]) -> u128 {
    octets.iter().fold(0, |number, octet| number << 8 | u128::from(*octet))
}
