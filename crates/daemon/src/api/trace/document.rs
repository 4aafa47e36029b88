//! The JSON of a trace.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The path of a packet.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = PacketTrace)]
pub struct Trace {
    /// The packet, as a flow of `ovs-ofctl`.
    pub flow: String,
    /// The switches that the packet reaches, in order.
    pub hops: Vec<Hop>,
    /// The ends of the path in words, each once.
    pub ends: Vec<String>,
    /// The whole trace in lines of 80 characters.
    pub text: Vec<String>,
}

/// The packet on one switch. A tenant with a network does not see the physical switch and port.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = TraceHop, examples(json!({
    "switch": "00:00:00:00:00:00:00:01", "in_port": 1, "openflow": "1.3", "tenant": "red",
    "whose": "red's, by the flowspace entry ip,nw_src=10.1.0.0/16 with priority 100",
    "steps": [{"text": "table 0: priority=9,ip actions=output:2",
        "rule": "table=1, send_flow_rem priority=9,ip,metadata=0x1000000000000/0xffff000000000000 actions=output:2"}],
    "outputs": [{"text": "leaves by port 2", "port": 2, "next": 2}]
})))]
pub struct Hop {
    /// The physical switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// The name of the switch in the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The physical port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_port: Option<u32>,
    /// The OpenFlow version of the switch.
    pub openflow: String,
    /// The tenant that owns the packet on this switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The owner in words, with the entry of the flowspace or the port of the network.
    pub whose: String,
    /// The steps of the packet, in order.
    pub steps: Vec<TraceStep>,
    /// The outputs of the packet.
    pub outputs: Vec<TraceOutput>,
}

/// A step of the packet.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct TraceStep {
    /// The step in words; a tenant's entry in the form that the tenant wrote.
    pub text: String,
    /// The rule on the switch for this step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// An output of the packet.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct TraceOutput {
    /// The output in words.
    pub text: String,
    /// The port, in the tenant's or in the switch's numbering.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
    /// The number of the next hop, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<usize>,
}
