//! The messages of a switch that a controller evaluates, in one form for both versions.

/// A PACKET_IN of 1.0 or 1.3.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketIn<'a> {
    pub(super) buffer_id: u32,
    pub(super) in_port: u32,
    pub(super) data: &'a [u8],
}

/// A message of a switch, for a controller.
pub(super) enum Heard<'a> {
    Features { dpid: u64 },
    PacketIn(PacketIn<'a>),
    EchoRequest(&'a [u8]),
    Other,
}
