//! The kinds of counted events, each with a counter of its own.

/// The place where a message was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Direction {
    /// Messages from the switch.
    FromSwitch,
    /// Messages in the switch's send buffer.
    ToSwitch,
    /// Messages from one of the tenant's controllers.
    FromController,
    /// Messages in a controller's send buffer; a message to three controllers counts three times.
    ToController,
}

impl Direction {
    /// In the order of the discriminants, with the values of labels.
    pub const ALL: [(Direction, &str); 4] = [
        (Direction::FromSwitch, "from_switch"),
        (Direction::ToSwitch, "to_switch"),
        (Direction::FromController, "from_controller"),
        (Direction::ToController, "to_controller"),
    ];

    /// The label's value.
    pub fn name(self) -> &'static str {
        Direction::ALL[self as usize].1
    }
}

/// The reason why a PACKET_IN did not reach a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DropReason {
    /// No tenant owns the packet.
    NoTenant,
    /// The tenant has no controller connected.
    TenantAbsent,
    /// The tenant's northbound queue is full: its controller reads too slowly.
    QueueFull,
    /// The tenant's `packet_in` limit.
    RateLimited,
    /// The tenant has configured NO_PACKET_IN on the port of its own network.
    PortConfig,
}

impl DropReason {
    /// In the order of the discriminants, with the values of labels.
    pub const ALL: [(DropReason, &str); 5] = [
        (DropReason::NoTenant, "no_tenant"),
        (DropReason::TenantAbsent, "tenant_absent"),
        (DropReason::QueueFull, "queue_full"),
        (DropReason::RateLimited, "rate_limited"),
        (DropReason::PortConfig, "port_config"),
    ];
}

/// The reason why a connection was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Rejection {
    /// TLS failed: no certificate, one of another authority, plain text.
    Tls,
    /// HELLO or FEATURES failed: no common version, or invalid bytes.
    Handshake,
    /// The handshake took too long.
    Timeout,
    /// Another connection holds this dpid.
    DuplicateDpid,
    /// The bound on connections is reached: the connection that has waited longest is closed.
    TooMany,
    /// The controller refuses connections, or cannot be reached.
    Unreachable,
    /// No file descriptors are left.
    Descriptors,
    /// The datapath id is not among `[[switches]]`, or there are too many of these.
    Unlisted,
    /// The datapath id is listed with another address or certificate.
    Impostor,
    /// An auxiliary connection of a switch: Weir uses main connections only.
    Auxiliary,
    /// The datapath id is one of those that Weir reserves for big switches.
    ReservedDpid,
}

impl Rejection {
    /// In the order of the discriminants, with the values of labels.
    pub const ALL: [(Rejection, &str); 11] = [
        (Rejection::Tls, "tls"),
        (Rejection::Handshake, "handshake"),
        (Rejection::Timeout, "timeout"),
        (Rejection::DuplicateDpid, "duplicate_dpid"),
        (Rejection::TooMany, "too_many"),
        (Rejection::Unreachable, "unreachable"),
        (Rejection::Descriptors, "descriptors"),
        (Rejection::Unlisted, "unlisted"),
        (Rejection::Impostor, "impostor"),
        (Rejection::Auxiliary, "auxiliary"),
        (Rejection::ReservedDpid, "reserved_dpid"),
    ];
}

/// The peer of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A switch.
    Switch,
    /// A tenant's controller.
    Controller,
}

impl Kind {
    /// In the order of the discriminants, with the values of labels.
    pub const ALL: [(Kind, &str); 2] = [(Kind::Switch, "switch"), (Kind::Controller, "controller")];
}
