//! Encodes matches and ports for OpenFlow 1.3.

use flowspace::Match;
use openflow::text::Name;
use openflow::v13::{MatchBuf, Port as WirePort, PortConfig, PortFeatures, PortNo, PortState};

use crate::ports::Port;

/// Encodes a match for 1.3. Returns `None` if 1.3 has no form for the match, which only a 1.0 controller can have
/// added.
pub(super) fn match_(match_: &Match) -> Option<MatchBuf> {
    let mut wire = MatchBuf::new();
    match_.to_v13(&mut wire).ok()?;
    Some(wire)
}

/// Encodes a port for 1.3.
pub(super) fn port(port: &Port) -> WirePort {
    let rate = match port.made.speed_kbps {
        ..100_000 => PortFeatures::RATE_10MB_FD,
        100_000..1_000_000 => PortFeatures::RATE_100MB_FD,
        1_000_000..10_000_000 => PortFeatures::RATE_1GB_FD,
        10_000_000..40_000_000 => PortFeatures::RATE_10GB_FD,
        40_000_000..100_000_000 => PortFeatures::RATE_40GB_FD,
        100_000_000.. => PortFeatures::RATE_100GB_FD,
    };
    /// The configuration bits of 1.0 that 1.3 has too.
    const KNOWN: u32 = 0b110_0101;
    WirePort {
        port_no: PortNo(port.made.number),
        hw_addr: port.made.hw_addr,
        name: Name::new(&port.made.name),
        config: PortConfig(port.config & KNOWN),
        state: if port.link_up { PortState::LIVE } else { PortState::LINK_DOWN },
        curr: rate | PortFeatures::COPPER,
        advertised: PortFeatures::NONE,
        supported: rate | PortFeatures::COPPER,
        peer: PortFeatures::NONE,
        curr_speed: port.made.speed_kbps,
        max_speed: port.made.speed_kbps,
    }
}
