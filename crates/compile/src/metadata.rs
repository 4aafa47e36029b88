//! The metadata of OpenFlow 1.3: table 0 writes the owner of a packet to the metadata.
//!
//! ```text
//!   63          48 47             32 31             17 16              0
//!  +--------------+-----------------+---------------------------------+
//!  |    tenant    | network: virtual | the tenant's own; on the way to the last table of |
//!  |              | port, else own   | the switch: by which shared ports a packet leaves |
//!  +--------------+-----------------+---------------------------------+
//! ```

use crate::refusal::{Reason, Refused};
use core::ops::RangeInclusive;
use fabric::{PortNumber, TenantId};
use flowspace::{Field, Match};
use openflow::error::v13 as code;
use openflow::v10;

/// The bits that name the tenant. In a slice all other bits are the tenant's own.
pub const TENANT: u64 = 0xffff << 48;

/// The bits that name the tenant and the virtual port by which a packet came, in a network.
pub const PORT: u64 = 0xffff_ffff << 32;

/// The bits that are the tenant's own in a network.
pub const OWN: u64 = !PORT;

/// In place of a virtual port: a controller sent the packet into the tables.
pub const NO_PORT: u32 = 0;

/// A tenant's number in the metadata.
pub fn of_tenant(tenant: TenantId) -> u64 {
    u64::from(tenant.0) << 48
}

/// A tenant's number and its virtual port in the metadata.
pub fn of_port(tenant: TenantId, port: u32) -> u64 {
    of_tenant(tenant) | to_16_bits(port).map_or(0, u64::from) << 32
}

/// The tenant whose number is in the metadata.
pub fn tenant(metadata: u64) -> TenantId {
    TenantId((metadata >> 48) as u16)
}

/// The virtual port in the metadata.
pub fn port(metadata: u64) -> u32 {
    from_16_bits((metadata >> 32) as u16)
}

/// A tenant's match without the bits that are not the tenant's own. The tenant sees these bits as 0, so a match on 0 in
/// these bits has no effect, and a match on 1 is an error.
pub fn own_part(match_: &Match, kept: u64) -> Result<Match, Refused> {
    let (value, mask) = match_.get(Field::Metadata);
    if value & u128::from(kept) != 0 {
        return Err(Reason::WeirsMetadata.with(code::BAD_MATCH_BAD_MASK));
    }
    Ok(match_.with_masked(Field::Metadata, value, mask & !u128::from(kept)))
}

/// A network's port in 16 bits. LOCAL has the number that LOCAL has on 1.0, which is higher than all other ports of a
/// network.
pub fn to_16_bits(port: u32) -> Option<u16> {
    if port == PortNumber::LOCAL.get() {
        return Some(v10::PortNo::LOCAL.0);
    }
    u16::try_from(port).ok().filter(|port| *port != v10::PortNo::LOCAL.0)
}

/// The inverse of [`to_16_bits`].
pub fn from_16_bits(port: u16) -> u32 {
    if port == v10::PortNo::LOCAL.0 { PortNumber::LOCAL.get() } else { port.into() }
}

/// The label that identifies the tenant of a packet from a controller on the way into the tables (1.3). This label is
/// one of the labels that are reserved for links, at a port where no link ends. `None` if the tenant's number is higher
/// than the number of labels.
pub fn controller_label(labels: Option<&RangeInclusive<u16>>, id: TenantId) -> Option<u16> {
    let labels = labels?;
    let label = labels.start().checked_add(id.0.checked_sub(1)?)?;
    labels.contains(&label).then_some(label)
}
