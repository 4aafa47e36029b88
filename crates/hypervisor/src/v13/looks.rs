//! What packets look like, as far as a group may have a [form](super::groups) of its own for them: by which port they came,
//! which tag they bear, and for whom they are.

use crate::network::{Entered, Entrance, MULTICAST, Unsaid, is_for_many, number_of};
use fabric::MacAddress;
use flowspace::{Field, Match};
use openflow::error::v13 as code;
use openflow::v13::{Action, OxmField};

/// Packets for which a group may have a form of its own; by default those for which it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Look {
    /// They came by this port, at this port of the switch.
    pub came: Option<Entrance>,
    pub bears: Bears,
    pub to: To,
}

/// Whether packets bear a VLAN tag, where that says what becomes of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Bears {
    #[default]
    NoTag,
    Tag,
}

/// For whom packets are, where that says what becomes of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum To {
    /// For no host that has a form of its own.
    #[default]
    Nobody,
    /// For one of the tenant's hosts.
    Host(MacAddress),
    /// Broadcast or multicast.
    Many,
}

/// What is known of the destination address of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Unknown,
    /// Nobody can know it: other tables may write another, or what is written does not say.
    Unforeseen,
    /// It is broadcast or multicast.
    Many,
    /// It is none of those, nor one of the tenant's hosts'.
    Nobody,
    /// It is this one; in a group's form, one that stands for theirs.
    Is(u128),
}

impl Destination {
    /// Of the packets that a match means.
    pub(super) fn of_match(match_: &Match) -> Destination {
        let (address, mask) = match_.get(Field::DlDst);
        match match_.exact_value(Field::DlDst) {
            Some(address) => Destination::Is(address),
            None if address & mask & MULTICAST != 0 => Destination::Many,
            None => Destination::Unknown,
        }
    }

    /// Whether it is known what becomes of packets with it, wherever they are sent.
    pub(super) fn is_told(self) -> bool {
        matches!(self, Destination::Is(_) | Destination::Nobody)
    }

    /// What it is after an action.
    pub(super) fn follow(&mut self, action: &Action<'_>) {
        if let Action::SetField(oxm) = action
            && oxm.basic() == Some(OxmField::ETH_DST)
        {
            *self = oxm.number().map_or(Destination::Unforeseen, Destination::Is);
        }
    }

    /// For whom packets with it are.
    pub(super) fn to(self) -> Result<To, Unsaid> {
        match self {
            Destination::Unknown => Err(Unsaid::NeedsDestination),
            Destination::Unforeseen => Err(code::BAD_ACTION_BAD_OUT_PORT.into()),
            Destination::Many => Ok(To::Many),
            Destination::Nobody => Ok(To::Nobody),
            Destination::Is(address) => Ok(To::of(address)),
        }
    }
}

impl Look {
    pub(crate) fn new(entered: Entered, bears: Bears, to: To) -> Look {
        let came = match entered {
            Entered::Way(came) => Some(came),
            // Where it mattered, it would be known.
            Entered::Anywhere | Entered::Port(_) | Entered::Nowhere => None,
        };
        Look { came, bears, to }
    }

    /// How its packets have come.
    pub(crate) fn entered(self) -> Entered {
        self.came.map_or(Entered::Nowhere, Entered::Way)
    }
}

impl Bears {
    /// As it is stored.
    pub(super) fn to_number(self) -> u32 {
        match self {
            Bears::NoTag => 0,
            Bears::Tag => 1,
        }
    }

    pub(super) fn from_number(number: u32) -> Option<Bears> {
        match number {
            0 => Some(Bears::NoTag),
            1 => Some(Bears::Tag),
            _ => None,
        }
    }
}

/// What nobody has for an address, and what everybody has.
const ZERO: u128 = 0;
const BROADCAST: u128 = 0xffff_ffff_ffff;

impl To {
    /// Packets with this destination address.
    pub(crate) fn of(dl_dst: u128) -> To {
        let [.., a, b, c, d, e, f] = dl_dst.to_be_bytes();
        match MacAddress::new([a, b, c, d, e, f]) {
            _ if is_for_many(dl_dst) => To::Many,
            Ok(host) => To::Host(host),
            Err(_) => To::Nobody,
        }
    }

    /// A destination address that such packets may have.
    pub(super) fn address(self) -> u128 {
        match self {
            To::Nobody => ZERO,
            To::Host(host) => number_of(host),
            To::Many => BROADCAST,
        }
    }

    /// As it is stored.
    pub(super) fn to_numbers(self) -> [u32; 2] {
        let address = self.address();
        [(address >> 32) as u32, address as u32]
    }

    pub(super) fn from_numbers([high, low]: [u32; 2]) -> Option<To> {
        let address = u128::from(high) << 32 | u128::from(low);
        Some(To::of(address)).filter(|to| to.address() == address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_for_whom_packets_are() {
        let host = MacAddress::new([2, 0, 0, 0, 0x10, 1]).unwrap();
        for (address, to) in [
            (0x0200_0000_1001, To::Host(host)),
            (BROADCAST, To::Many),
            (0x3333_0000_0001, To::Many),
            (0x0100_5e00_0001, To::Many),
            (0, To::Nobody),
        ] {
            assert_eq!(To::of(address), to, "{address:x}");
            assert_eq!(To::of(to.address()), to);
            assert_eq!(To::from_numbers(to.to_numbers()), Some(to));
        }
        // What is stored is one of those that are written.
        assert_eq!(To::from_numbers([0x3333, 1]), None);
        assert_eq!(To::from_numbers([u32::MAX, u32::MAX]), None);
    }
}
