//! What messages of a switch are to a controller, in either version.

/// A PACKET_IN in either version.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketIn<'a> {
    pub(super) buffer_id: u32,
    pub(super) in_port: u32,
    pub(super) data: &'a [u8],
}

/// What a message of a switch is to a controller.
pub(super) enum Heard<'a> {
    Features { dpid: u64 },
    PacketIn(PacketIn<'a>),
    EchoRequest(&'a [u8]),
    Other,
}
