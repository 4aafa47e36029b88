//! A transaction that puts a plan into force on all servers or on none.
//!
//! ```text
//!                 all done              all done             all done
//!   Preparing ─────────────▶ Committing ────────▶ Retiring ──────────▶ Enacted
//!       │ one fails, vanishes     │
//!       │ or is late              ▼       all done            all done
//!       └───────────────────▶ Restoring ────────▶ Dropping ──────────▶ RolledBack
//! ```
//!
//! *Prepare* makes the receivers (samplers, tunnels), *commit* switches the senders, *retire* removes the receivers of
//! the previous plan. So no server ever sends to a server that does not listen: receivers exist before the first sender
//! switches, and until the last sender has switched. *Restore* makes all senders use the previous plan again, whether
//! they have switched or not. After that, *drop* removes the new receivers.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// The number of a plan; each enactment has a higher number than all before.
pub type Epoch = u64;

/// A step of a server; the server answers each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Step {
    /// Make the receivers of this plan; send nothing yet.
    Prepare(Epoch),
    /// Send by this plan, and no longer by the previous one.
    Commit(Epoch),
    /// Remove the receivers of the plan before this one.
    Retire(Epoch),
    /// Send by the plan before this one again.
    Restore(Epoch),
    /// Remove the receivers of this plan.
    Drop(Epoch),
}

/// The outcome of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every remaining server samples by the new plan.
    Enacted,
    /// Every remaining server samples by the previous plan.
    RolledBack {
        /// The server that failed, and its failure.
        server: usize,
        /// The failure in words.
        why: String,
    },
}

/// A transaction under way.
#[derive(Clone, Debug)]
pub struct Enactment {
    epoch: Epoch,
    /// The step that the servers are doing; `None` once the transaction has ended.
    step: Option<Step>,
    members: BTreeSet<usize>,
    waiting: BTreeSet<usize>,
    orders: VecDeque<(usize, Step)>,
    deadline: Duration,
    patience: Duration,
    fault: Option<(usize, String)>,
}

impl Enactment {
    /// Starts a transaction; each phase may take `patience`.
    pub fn start(
        now: Duration,
        epoch: Epoch,
        members: impl IntoIterator<Item = usize>,
        patience: Duration,
    ) -> Enactment {
        let mut enactment = Enactment {
            epoch,
            step: None,
            members: members.into_iter().collect(),
            waiting: BTreeSet::new(),
            orders: VecDeque::new(),
            deadline: now,
            patience,
            fault: None,
        };
        enactment.enter(now, Some(Step::Prepare(epoch)));
        enactment
    }

    /// The plan of this transaction.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The next step to send to a server.
    pub fn poll_order(&mut self) -> Option<(usize, Step)> {
        self.orders.pop_front()
    }

    /// When [`Enactment::handle_timeout`] is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        self.step.map(|_| self.deadline)
    }

    /// The outcome, once the transaction has ended.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        match (self.step, self.fault.clone()) {
            (Some(_), _) => None,
            (None, Some((server, why))) => Some(Outcome::RolledBack { server, why }),
            (None, None) => Some(Outcome::Enacted),
        }
    }

    /// A server has done its step, or has failed to. Answers to other steps are ignored.
    pub fn handle_answer(
        &mut self,
        now: Duration,
        server: usize,
        step: Step,
        result: Result<(), String>,
    ) {
        if self.step != Some(step) || !self.waiting.contains(&server) {
            return;
        }
        match result {
            Err(why) if self.may_fail() => self.restore(now, server, why),
            // A receiver that could not be removed does no harm: no server sends to this receiver any more.
            _ => self.settle(now, server),
        }
    }

    /// A server cannot take part in the transaction, for example because it has no headroom left. Once all servers have
    /// switched, this has no effect.
    pub fn handle_fault(&mut self, now: Duration, server: usize, why: String) {
        if self.may_fail() {
            self.restore(now, server, why);
        }
    }

    /// A server has vanished and takes no further part.
    pub fn handle_gone(&mut self, now: Duration, server: usize) {
        if !self.members.remove(&server) {
            return;
        }
        self.orders.retain(|(of, _)| *of != server);
        if self.may_fail() {
            self.restore(now, server, "it vanished".to_owned());
        } else {
            self.settle(now, server);
        }
    }

    /// Time has passed. Returns the servers that did not answer in time. The caller must report them as gone with
    /// [`Enactment::handle_gone`].
    pub fn handle_timeout(&mut self, now: Duration) -> Vec<usize> {
        if self.step.is_none() || now < self.deadline {
            return Vec::new();
        }
        self.waiting.iter().copied().collect()
    }

    /// Whether a failed server makes all servers return to the previous plan.
    fn may_fail(&self) -> bool {
        matches!(self.step, Some(Step::Prepare(_) | Step::Commit(_)))
    }

    fn restore(&mut self, now: Duration, server: usize, why: String) {
        self.fault.get_or_insert((server, why));
        // A server that got the order to prepare or commit, and has not answered, gets the order to restore after this
        // order.
        self.enter(now, Some(Step::Restore(self.epoch)));
    }

    fn settle(&mut self, now: Duration, server: usize) {
        self.waiting.remove(&server);
        if !self.waiting.is_empty() {
            return;
        }
        let next = match self.step {
            Some(Step::Prepare(epoch)) => Some(Step::Commit(epoch)),
            Some(Step::Commit(epoch)) => Some(Step::Retire(epoch)),
            Some(Step::Restore(epoch)) => Some(Step::Drop(epoch)),
            Some(Step::Retire(_) | Step::Drop(_)) | None => None,
        };
        self.enter(now, next);
    }

    fn enter(&mut self, now: Duration, step: Option<Step>) {
        self.step = step.filter(|_| !self.members.is_empty());
        self.deadline = now + self.patience;
        self.waiting.clear();
        let Some(step) = self.step else { return };
        self.waiting.clone_from(&self.members);
        self.orders.extend(self.members.iter().map(|server| (*server, step)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A server, as the transaction sees it.
    #[derive(Clone, Default)]
    struct Station {
        /// The plan by which the server sends; 0 for none.
        sends: Epoch,
        before: Epoch,
        /// The plans for which the server has receivers.
        receives: BTreeSet<Epoch>,
        is_gone: bool,
    }

    impl Station {
        fn carry_out(&mut self, step: Step) {
            match step {
                Step::Prepare(epoch) => drop(self.receives.insert(epoch)),
                Step::Commit(epoch) => {
                    self.before = self.sends;
                    self.sends = epoch;
                }
                Step::Retire(epoch) => self.receives.retain(|one| *one == epoch),
                Step::Restore(epoch) => {
                    if self.sends == epoch {
                        self.sends = self.before;
                    }
                }
                Step::Drop(epoch) => drop(self.receives.remove(&epoch)),
            }
        }
    }

    /// The next event of a server that has an order.
    #[derive(Clone, Copy, Debug)]
    enum Fate {
        Obeys,
        Fails,
        Vanishes,
        IsLate,
    }

    /// Runs one transaction to its end. Events are drawn in turn; when no events are left, every server obeys.
    fn run(stations: &mut [Station], epoch: Epoch, fates: &[(usize, Fate)]) -> Outcome {
        let members = (0..stations.len()).filter(|index| !stations[*index].is_gone);
        let members: Vec<usize> = members.collect();
        let mut now = Duration::ZERO;
        let patience = Duration::from_secs(1);
        let mut enactment = Enactment::start(now, epoch, members, patience);
        let mut orders: Vec<(usize, Step)> = Vec::new();
        let mut fates = fates.iter();
        for _ in 0..1000 {
            while let Some(order) = enactment.poll_order() {
                orders.push(order);
            }
            if let Some(outcome) = enactment.outcome() {
                return outcome;
            }
            let (pick, fate) = fates.next().copied().unwrap_or((0, Fate::Obeys));
            // Servers answer in any order, but each in its own order.
            let servers: BTreeSet<usize> = orders.iter().map(|(server, _)| *server).collect();
            let server = servers.iter().nth(pick % servers.len().max(1)).copied();
            let gone = match (server, fate) {
                (Some(server), Fate::Vanishes) => vec![server],
                (None, _) | (_, Fate::IsLate) => {
                    now += patience;
                    enactment.handle_timeout(now)
                }
                (Some(server), _) => {
                    let at = orders.iter().position(|(of, _)| *of == server).unwrap();
                    let (_, step) = orders.remove(at);
                    // A server either carries out the orders restore, retire and drop, or has vanished.
                    let may_fail = matches!(step, Step::Prepare(_) | Step::Commit(_));
                    let fails = may_fail && matches!(fate, Fate::Fails);
                    let result = if fails { Err("no".to_owned()) } else { Ok(()) };
                    if !fails {
                        stations[server].carry_out(step);
                    }
                    enactment.handle_answer(now, server, step, result);
                    Vec::new()
                }
            };
            for server in gone {
                stations[server].is_gone = true;
                orders.retain(|(of, _)| *of != server);
                enactment.handle_gone(now, server);
            }
            // Each server that has not vanished has a receiver for all traffic that is sent to this server.
            let there = || stations.iter().filter(|one| !one.is_gone);
            for sender in there().filter(|one| one.sends > 0) {
                assert!(there().all(|one| one.receives.contains(&sender.sends)), "{epoch}");
            }
        }
        panic!("it does not end");
    }

    fn fate() -> impl Strategy<Value = Fate> {
        prop_oneof![12 => Just(Fate::Obeys), 1 => Just(Fate::Fails), 1 => Just(Fate::Vanishes), 1 => Just(Fate::IsLate)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// In every case the remaining servers send by one plan, and no server ever sends to a server without a
        /// receiver.
        #[test]
        fn remaining_servers_always_send_by_the_same_plan(
            count in 1..6_usize,
            plans in prop::collection::vec(prop::collection::vec((0..6_usize, fate()), 0..30), 1..5),
        ) {
            let mut stations = vec![Station::default(); count];
            let mut last = 0;
            for (epoch, fates) in (1..).zip(&plans) {
                let outcome = run(&mut stations, epoch, fates);
                if outcome == Outcome::Enacted {
                    last = epoch;
                }
                let there: Vec<&Station> = stations.iter().filter(|one| !one.is_gone).collect();
                prop_assert!(there.iter().all(|one| one.sends == last), "{outcome:?}");
                prop_assert!(there.iter().all(|one| one.receives.iter().all(|of| *of == last)));
            }
        }
    }

    #[test]
    fn a_rollback_names_the_server_that_failed() {
        let mut stations = vec![Station::default(); 3];
        // All servers prepare; the second server fails to commit.
        let mut fates = vec![(0, Fate::Obeys); 4];
        fates.push((0, Fate::Fails));
        let outcome = run(&mut stations, 1, &fates);
        assert_eq!(outcome, Outcome::RolledBack { server: 1, why: "no".to_owned() });
        assert_eq!(run(&mut stations, 2, &[]), Outcome::Enacted);
        assert!(stations.iter().all(|one| one.sends == 2));
    }
}
