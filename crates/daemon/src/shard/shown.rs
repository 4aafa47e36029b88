//! What people are shown of what the cores keep: pages of tenants' flow tables, refused requests, the way of a packet.
//! Each answer is bounded, and made
//! between two turns of the event loop.

use super::Shard;
use super::command::{Command, Handle};
use super::question::Question;
use hypervisor::trace::{NoEntrance, Owner};
use hypervisor::{FlowPage, Known, TenantId};
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant, SystemTime};

pub use super::question::{FlowsAsked, NotPassed, Passed, RefusalShown, Start};

/// Who can ask all shards, from any thread. Cheap to clone. By default there are none.
#[derive(Clone, Default)]
pub struct Reader(Arc<[Handle]>);

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

/// A shard has not answered in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silent;

impl Shard {
    /// Answers a question. Who asked may have stopped waiting.
    pub(super) fn answer(&self, question: Question) {
        match question {
            Question::Flows { flows, known, reply } => {
                let _ = reply.send(self.flow_page(&flows, known));
            }
            Question::Passage { start, reply } => {
                let _ = reply.send(self.passage(&start));
            }
            Question::Refusals { tenant, reply } => {
                let _ = reply.send(self.refusals(&tenant));
            }
        }
    }

    fn tenant_named(&self, name: &str) -> Option<TenantId> {
        let all = &self.snapshot.policy.tenants;
        all.iter().find(|tenant| tenant.name == name).map(|tenant| tenant.id)
    }

    fn flow_page(&self, flows: &FlowsAsked, known: Known) -> Option<FlowPage> {
        let tenant = self.tenant_named(&flows.tenant)?;
        let mut cores = self.sessions.iter().flatten().map(|session| &session.core);
        let core = cores.find(|core| core.is_known(tenant, flows.dpid, known))?;
        core.flow_page(tenant, flows.side, flows.after)
    }

    fn passage(&self, start: &Start) -> Result<Passed, NotPassed> {
        let tenant = match start {
            Start::Tenant { tenant, .. } => {
                Some(self.tenant_named(tenant).ok_or(NotPassed::Nowhere)?)
            }
            Start::Switch { .. } => None,
        };
        let mut why = NotPassed::Nowhere;
        for core in self.sessions.iter().flatten().map(|session| &session.core) {
            let entrance = match (start, tenant) {
                (Start::Tenant { dpid, port, frame, .. }, Some(tenant)) => {
                    core.entrance(tenant, *dpid, *port, frame)
                }
                (
                    Start::Switch { dpid, port, frame } | Start::Tenant { dpid, port, frame, .. },
                    _,
                ) => core.entrance_of_switch(*dpid, *port, frame),
            };
            match entrance {
                Ok(packet) => {
                    let passage = core.passage(&packet);
                    let tenant = match passage.owner {
                        Owner::Tenant(id, _) => self.name_of(id),
                        Owner::Transit | Owner::Nobody => None,
                    };
                    return Ok(Passed { dpid: core.dpid(), packet, passage, tenant });
                }
                Err(NoEntrance::Elsewhere) => {}
                // Another member of a big switch may have the port.
                Err(NoEntrance::NoPort) if why == NotPassed::Nowhere => why = NotPassed::NoPort,
                Err(NoEntrance::NoPort) => {}
                Err(NoEntrance::NoPath) => why = NotPassed::NoPath,
            }
        }
        Err(why)
    }

    fn name_of(&self, id: TenantId) -> Option<String> {
        let mut all = self.snapshot.policy.tenants.iter();
        all.find(|tenant| tenant.id == id).map(|tenant| tenant.name.clone())
    }

    fn refusals(&self, tenant: &str) -> Vec<RefusalShown> {
        let Some(tenant) = self.tenant_named(tenant) else { return Vec::new() };
        let (now, clock) = (self.now(), SystemTime::now());
        let mut shown = Vec::new();
        for session in self.sessions.iter().flatten() {
            let version = session.core.version();
            shown.extend(session.core.refusals(tenant).map(|refusal| RefusalShown {
                at: clock - Duration::from_nanos((now - refusal.at()).0),
                dpid: session.core.known_as(),
                xid: refusal.xid(),
                request: refusal.request(version),
                excerpt: refusal.excerpt().to_vec(),
                error: refusal.code().display(version).to_string(),
                by: refusal.by(),
                reason: refusal.reason(version),
            }));
        }
        shown
    }
}

impl Reader {
    /// Asks these.
    pub fn new(shards: &[Handle]) -> Reader {
        Reader(shards.into())
    }

    /// A page of a flow table, by shard after shard. A datapath id that a tenant sees comes before one that the network has: they
    /// may be the same, of different switches.
    pub fn flows(&self, flows: &FlowsAsked, within: Duration) -> Shown {
        let deadline = Instant::now() + within;
        for known in [Known::ByTenant, Known::BySwitch] {
            for shard in &*self.0 {
                let question = |reply| Question::Flows { flows: flows.clone(), known, reply };
                match ask(shard, question, deadline) {
                    Ok(Some(page)) => return Shown::Page(page),
                    Ok(None) => {}
                    Err(Silent) => return Shown::Silence,
                }
            }
        }
        Shown::Nowhere
    }

    /// What becomes of a packet on the switch to which it comes first.
    pub fn passage(&self, start: &Start, deadline: Instant) -> Result<Passed, NotPassed> {
        let (Start::Tenant { dpid, .. } | Start::Switch { dpid, .. }) = start;
        let mut why = NotPassed::Nowhere;
        // A physical switch is on the shard that its datapath id names.
        let first = (dpid % self.0.len().max(1) as u64) as usize;
        let (before, after) = self.0.split_at(first.min(self.0.len()));
        for shard in after.iter().chain(before) {
            let question = |reply| Question::Passage { start: start.clone(), reply };
            match ask(shard, question, deadline) {
                Ok(Err(NotPassed::Nowhere)) => {}
                Ok(Err(other)) => why = other,
                Ok(passed) => return passed,
                Err(Silent) => return Err(NotPassed::Silence),
            }
        }
        Err(why)
    }

    /// A tenant's last refused requests on all switches, the newest first.
    pub fn refusals(&self, tenant: &str, within: Duration) -> Result<Vec<RefusalShown>, Silent> {
        let deadline = Instant::now() + within;
        let mut all = Vec::new();
        for shard in &*self.0 {
            let question = |reply| Question::Refusals { tenant: tenant.to_owned(), reply };
            all.extend(ask(shard, question, deadline)?);
        }
        all.sort_by_key(|shown| Reverse(shown.at));
        Ok(all)
    }
}

fn ask<T>(
    shard: &Handle,
    question: impl FnOnce(Sender<T>) -> Question,
    deadline: Instant,
) -> Result<T, Silent> {
    let (reply, answer) = channel();
    if !shard.send(Command::Ask(Box::new(question(reply)))) {
        return Err(Silent);
    }
    answer.recv_timeout(deadline.saturating_duration_since(Instant::now())).map_err(|_| Silent)
}
