//! What operators are shown of tenants' flow tables: one page at a time, made between two turns of the event loop.

use super::{Command, Handle, Shard};
use hypervisor::{FlowPage, FlowPlace, Known, Side};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// Which page of which table is asked for.
#[derive(Clone, Debug)]
pub struct FlowsAsked {
    /// The tenant's name.
    pub tenant: String,
    /// The switch, as the tenant or as the network knows it.
    pub dpid: u64,
    /// The tenant's entries, or what stands for them.
    pub side: Side,
    /// Where the page before ended.
    pub after: Option<FlowPlace>,
}

/// A question to one shard.
pub struct Asked {
    flows: FlowsAsked,
    known: Known,
    reply: Sender<Option<FlowPage>>,
}

/// What came of a question.
#[derive(Debug)]
pub enum Shown {
    /// A page.
    Page(FlowPage),
    /// The switch is not connected, or the tenant has no part of it.
    Nowhere,
    /// A shard did not answer in time.
    Silence,
}

impl Shard {
    pub(super) fn show_flows(&self, asked: &Asked) {
        let Asked { flows, known, reply } = asked;
        let all = &self.snapshot.policy.tenants;
        let tenant = all.iter().find(|tenant| tenant.name == flows.tenant).map(|tenant| tenant.id);
        let page = tenant.and_then(|tenant| {
            let mut cores = self.sessions.iter().flatten().map(|session| &session.core);
            let core = cores.find(|core| core.is_known(tenant, flows.dpid, *known))?;
            core.flow_page(tenant, flows.side, flows.after)
        });
        // Who asked may have stopped waiting.
        let _ = reply.send(page);
    }
}

/// Asks shard after shard. A datapath id that a tenant sees comes before one that the network has: they may be the same, of
/// different switches.
pub(crate) fn ask(shards: &[Handle], flows: &FlowsAsked, within: Duration) -> Shown {
    let deadline = Instant::now() + within;
    for known in [Known::ByTenant, Known::BySwitch] {
        for shard in shards {
            let (reply, answer) = channel();
            let asked = Box::new(Asked { flows: flows.clone(), known, reply });
            if !shard.send(Command::Flows(asked)) {
                return Shown::Silence;
            }
            match answer.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Some(page)) => return Shown::Page(page),
                Ok(None) => {}
                Err(_) => return Shown::Silence,
            }
        }
    }
    Shown::Nowhere
}
