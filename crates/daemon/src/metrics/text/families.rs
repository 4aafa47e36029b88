//! Names and help texts of the families of tenants' series: the same for sums and for each switch.

use std::sync::Arc;

use super::super::series::TenantMetrics;

/// A switch's tenants.
pub(super) type Tenants = Vec<Arc<TenantMetrics>>;

pub(super) const MESSAGES: &str = "weir_messages_total";
pub(super) const MESSAGES_HELP: &str = "Messages of a tenant, by OpenFlow type and direction.";
pub(super) const REFUSED: &str = "weir_refused_total";
pub(super) const REFUSED_HELP: &str =
    "Requests of a tenant that Weir answered with an ERROR, by OpenFlow error.";
pub(super) const DROPPED: &str = "weir_packet_in_dropped_total";
pub(super) const DROPPED_HELP: &str =
    "PACKET_INs of a tenant that reached none of its controllers, by reason.";
pub(super) const QUEUE: &str = "weir_queue_messages";
pub(super) const QUEUE_HELP: &str =
    "Messages of a tenant that wait for switches, or for its controllers.";
pub(super) const CONTROLLERS: &str = "weir_controllers";
pub(super) const CONTROLLERS_HELP: &str =
    "Connections to controllers of a tenant, one for each switch.";
pub(super) const FLOWS: &str = "weir_flows";
pub(super) const FLOWS_HELP: &str = "Entries in a tenant's virtual flow tables.";
pub(super) const ENTRIES: &str = "weir_entries";
pub(super) const ENTRIES_HELP: &str =
    "Entries on switches that stand for those of a tenant's virtual flow tables.";
pub(super) const HELD: &str = "weir_held_bytes";
pub(super) const HELD_HELP: &str =
    "Bytes that are held for requests of a tenant that are not finished.";
pub(super) const EXAMINED: &str = "weir_examined_entries_total";
pub(super) const EXAMINED_HELP: &str =
    "Work inside Weir for the requests of a tenant, in examined entries of flow tables.";
pub(super) const ADDED: &str = "weir_added_latency_seconds";
pub(super) const ADDED_HELP: &str =
    "From reading a message until it is in the send buffer towards its receiver.";
/// The directions: towards switches and towards controllers.
pub(super) const TOWARDS: [&str; 2] = ["south", "north"];
