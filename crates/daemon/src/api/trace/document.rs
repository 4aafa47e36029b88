//! A packet's way as it is answered.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where a packet goes.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = PacketTrace)]
pub struct Trace {
    /// The packet, as `ovs-ofctl` writes a flow.
    pub flow: String,
    /// The switches that it comes to, in the order in which it does.
    pub hops: Vec<Hop>,
    /// Where it ends: each place once, in words.
    pub ends: Vec<String>,
    /// All of that in lines of 80 characters.
    pub text: Vec<String>,
}

/// What happens to the packet on one switch. A tenant with a network is not told what is below it.
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
    /// What the configuration calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The physical port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_port: Option<u32>,
    /// The version that the switch speaks.
    pub openflow: String,
    /// Whose the packet is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Whose, and by which entry of the flowspace or which port of the network.
    pub whose: String,
    /// What it meets, in order.
    pub steps: Vec<TraceStep>,
    /// Where it leaves.
    pub outputs: Vec<TraceOutput>,
}

/// Something that happens to the packet.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct TraceStep {
    /// In words; an entry of the tenant's as the tenant wrote the entry.
    pub text: String,
    /// The rule on the switch that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// Where the packet leaves the switch.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct TraceOutput {
    /// In words.
    pub text: String,
    /// The port, as the tenant or as the switch has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
    /// At which of the hops it goes on, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<usize>,
}
