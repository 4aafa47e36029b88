//! Answers questions about the cores: pages of tenants' flow tables, refused requests, the passage of a packet. Each
//! answer is bounded, and computed between two turns of the event loop.

use super::Shard;
use super::budget::{AT_ONCE, Budget, thread_time};
use super::command::{Command, Handle};
use super::question::{Question, Reply};
use hypervisor::trace::{NoEntrance, Owner};
use hypervisor::{FlowPage, Known, TenantId};
use std::cmp::Reverse;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use crate::lock::lock;

pub use super::question::{FlowsAsked, NoAnswer, NotPassed, Passed, REFUSALS, RefusalShown, Start};

/// Asks all shards, from any thread. Cheap to clone. The default has no shards.
#[derive(Clone)]
pub struct Reader {
    shards: Arc<[Handle]>,
    budget: Arc<Mutex<Budget>>,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader::new(&[])
    }
}

impl Shard {
    /// Answers a question. The asking thread may have stopped waiting.
    pub(super) fn answer(&self, question: Question) {
        let began = thread_time();
        let took = || thread_time().saturating_sub(began);
        match question {
            Question::Flows { flows, known, reply } => {
                let page = self.flow_page(&flows, known);
                let _ = reply.send((page, took()));
            }
            Question::Passage { start, reply } => {
                let passed = self.passage(&start);
                let _ = reply.send((passed, took()));
            }
            Question::Refusals { tenant, reply } => {
                let refusals = self.refusals(&tenant);
                let _ = reply.send((refusals, took()));
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
        let present = self.sessions.iter().flatten().flat_map(|session| {
            let (dpid, version) = (session.core.known_as(), session.core.version());
            session.core.refusals(tenant).map(move |refusal| (dpid, version, refusal))
        });
        let past = self.past.of(tenant).map(|(dpid, it)| (dpid, it.version, &it.refusal));
        let mut newest: Vec<_> = past.chain(present).collect();
        newest.sort_unstable_by_key(|(.., refusal)| Reverse(refusal.at()));
        newest.truncate(REFUSALS);
        let shown = newest.into_iter().map(|(dpid, version, refusal)| RefusalShown {
            at: clock - (now - refusal.at()),
            dpid,
            xid: refusal.xid(),
            request: refusal.request(version),
            excerpt: refusal.excerpt().to_vec(),
            error: refusal.code().display(version).to_string(),
            by: refusal.by(),
            reason: refusal.reason(version),
        });
        shown.collect()
    }
}

impl Reader {
    /// A reader that asks these shards.
    pub fn new(shards: &[Handle]) -> Reader {
        let budget = Arc::new(Mutex::new(Budget::new(Instant::now())));
        Reader { shards: shards.into(), budget }
    }

    /// A page of a flow table; the reader asks one shard after the other. A datapath id of the tenant comes before a
    /// physical datapath id: both may have the same value, for different switches. `None`: the switch is not connected,
    /// or the tenant has no part of it.
    pub fn flows(
        &self,
        flows: &FlowsAsked,
        within: Duration,
    ) -> Result<Option<FlowPage>, NoAnswer> {
        let deadline = Instant::now() + within;
        for known in [Known::ByTenant, Known::BySwitch] {
            for shard in &*self.shards {
                let question = |reply| Question::Flows { flows: flows.clone(), known, reply };
                if let Some(page) = self.ask(shard, question, deadline)? {
                    return Ok(Some(page));
                }
            }
        }
        Ok(None)
    }

    /// The passage of a packet through its first switch.
    pub fn passage(&self, start: &Start, deadline: Instant) -> Result<Passed, NotPassed> {
        let (Start::Tenant { dpid, .. } | Start::Switch { dpid, .. }) = start;
        let mut why = NotPassed::Nowhere;
        // The datapath id of a physical switch selects its shard.
        let first = (dpid % self.shards.len().max(1) as u64) as usize;
        let (before, after) = self.shards.split_at(first.min(self.shards.len()));
        for shard in after.iter().chain(before) {
            let question = |reply| Question::Passage { start: start.clone(), reply };
            match self.ask(shard, question, deadline).map_err(NotPassed::NoAnswer)? {
                Err(NotPassed::Nowhere) => {}
                Err(other) => why = other,
                passed => return passed,
            }
        }
        Err(why)
    }

    /// A tenant's last refused requests on all switches, newest first: at most [`REFUSALS`].
    pub fn refusals(&self, tenant: &str, within: Duration) -> Result<Vec<RefusalShown>, NoAnswer> {
        let deadline = Instant::now() + within;
        let mut all = Vec::new();
        for shard in &*self.shards {
            let question = |reply| Question::Refusals { tenant: tenant.to_owned(), reply };
            all.extend(self.ask(shard, question, deadline)?);
        }
        all.sort_by_key(|shown| Reverse(shown.at));
        all.truncate(REFUSALS);
        Ok(all)
    }

    /// Asks a shard as soon as earlier questions are paid for.
    fn ask<T>(
        &self,
        shard: &Handle,
        question: impl FnOnce(Reply<T>) -> Question,
        deadline: Instant,
    ) -> Result<T, NoAnswer> {
        loop {
            let now = Instant::now();
            let wait = lock(&self.budget).wait(now);
            if wait.is_zero() {
                break;
            }
            if now + wait > deadline {
                return Err(NoAnswer::Busy);
            }
            std::thread::sleep(wait);
        }
        let (reply, answer) = channel();
        if !shard.send(Command::Ask(Box::new(question(reply)))) {
            return Err(NoAnswer::Silence);
        }
        let answered = answer.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        // A late answer does not report its processor time.
        let took = answered.as_ref().map_or(AT_ONCE, |(_, took)| *took);
        lock(&self.budget).charge(took);
        answered.map(|(answer, _)| answer).map_err(|_| NoAnswer::Silence)
    }
}

#[cfg(test)]
impl Reader {
    /// Charges the processor time of questions.
    pub(super) fn charge(&self, took: Duration) {
        lock(&self.budget).charge(took);
    }
}
