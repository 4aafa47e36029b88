//! The tenants' own networks, kept on the physical one as that is known.
//!
//! ```text
//!   topology ── Subscription ──▶ thread "networks" ──┐
//!                                                    ├─▶ Inner: Embedding ──▶ Command::Maps ──▶ shards
//!   reload, REST ────────────────────────────────────┘        └──▶ thread "networks-save" ──▶ Documents: where all is
//! ```
//!
//! Whoever has a change makes it under one lock, and tells the shards before giving that back: so they hear of changes in
//! their order. What REST asks for is tried on a copy first, without the lock, and stored without it, as places are: a
//! disk may take long, or fail. Only the newest state matters to a shard, and a map that did not change is the same one; so a failure
//! costs the switches that it concerns something and the others nothing.
//!
//! **File and REST.** A tenant's network is what its `[tenants.network]` says, until it is changed through REST. Then it is
//! what that made of it, also after a restart, until the file says something else of this tenant than it did then, or,
//! at the start, contradicts it in what it says of others.
//!
//! Start reading at [`Networks`], then [`Control`]; `document` is a network as JSON, `operation` a change of one.

mod changes;
mod control;
mod document;
mod edits;
mod number;
mod object;
mod operation;
mod own;
mod parts;
mod rounds;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fabric::embedding::{Changes, Embedding, Oversubscribed, Reason, Refusal, Spec};
use fabric::{PortId, TenantId};
use hypervisor::Policy;

use crate::big_switches;
use crate::config::{self, Config, Maxima};
use crate::refused::Refused;
use crate::shard::{Command, Handle, Snapshot};
use crate::store::{Documents, StoreError};
use crate::threads::Thread;
use crate::topology::{Inbox, Setup, Watch};
use edits::Edits;
use rounds::Rounds;

pub use changes::{BackupChange, HostChange, LinkChange, PortChange, SwitchChange};
pub use control::{
    Assigned, Control, How, NetworkView, Outcome, Passed, PathOutcome, PathView, PortOutcome,
    PortView,
};
pub use document::{
    Backup, Choice, Document, DocumentError, HostDocument, LinkDocument, PortDocument,
    RouteDocument, SwitchDocument,
};
pub use edits::SetAside;
pub use number::NumberDocument;
pub use operation::{Ends, Operation, Target};
pub use parts::PartOutcome;

/// Between two looks at the clock when nothing happens.
const TICK: Duration = Duration::from_millis(100);

/// How long after the start everything stays where it was before, if the network has not said otherwise: switches come
/// back within some seconds, and links are found within some more.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long after a link was found that had not been known others may follow, by which virtual links go a better way.
const GROWING: Duration = Duration::from_secs(30);

/// Where placements are stored.
const PLACES: &str = "networks/places";

/// The running actor. Dropping it ends its thread.
pub struct Networks {
    shared: Arc<Shared>,
    threads: Vec<Thread>,
}

struct Shared {
    inner: Mutex<Inner>,
    /// Held by who tries a change, so that one copy of all networks is made for that at most, and by whoever else changes edits.
    /// Taken before the others.
    trying: Mutex<()>,
    /// Held by who stores anything, so that nothing older takes a newer one's place. Taken before `inner`.
    saving: Mutex<()>,
    /// Held by who shows all networks, so that there is one copy more of them at most. Taken before `inner`.
    viewing: Mutex<()>,
    documents: Documents,
    stop: AtomicBool,
}

struct Inner {
    embedding: Embedding,
    /// Counts up with each change of anything that a change of a network is made of.
    number: u64,
    /// What the shards have, but for the maps.
    base: Snapshot,
    names: BTreeMap<TenantId, String>,
    edits: Edits,
    /// What the file says, by the tenants' names.
    file: BTreeMap<String, Spec>,
    /// How large the networks may be, likewise.
    maxima: BTreeMap<String, Maxima>,
    /// What the topology has been told, but for the networks' edge ports.
    following: Setup,
    /// The edge ports that it has been told.
    edges: Vec<PortId>,
    inbox: Arc<Inbox>,
    watch: Option<Watch>,
    shards: Vec<Handle>,
    joiner: big_switches::Handle,
    refused: Arc<Refused>,
    documents: Documents,
    started: Instant,
    /// In which switches follow what others wait for.
    rounds: Rounds,
    /// When a link was found last that had not been known, if that is not long ago.
    grew: Option<Instant>,
    /// Where everything is, is not stored yet.
    is_unsaved: bool,
    /// What is stored of changes through REST is something else than [`Inner::edits`].
    are_edits_unsaved: bool,
}

/// What comes of a file that contradicts what was made of networks through REST.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contradiction {
    /// All stays as it is: while Weir runs.
    Refuses,
    /// The file's network takes the place of what was made of it: at the start, when there is nothing that could stay.
    SetsEditsAside,
}

/// Why networks are not changed. Then nothing of them is.
#[derive(Debug, PartialEq)]
pub enum ChangeError {
    /// There is no such tenant, or no such part of its network.
    Missing(String),
    /// It contradicts itself or finds no place; each reason names its part.
    Refused(Vec<String>),
    /// The store.
    Store(StoreError),
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeError::Missing(what) => f.write_str(what),
            ChangeError::Refused(reasons) => f.write_str(&reasons.join("; ")),
            ChangeError::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ChangeError {}

/// Why a part cannot be, with the tenants' names.
pub(crate) fn why(reason: &Reason, name: impl Fn(TenantId) -> String) -> String {
    match *reason {
        Reason::PortTaken(port, by) => {
            format!("{port} is taken by \"{}\"; all who have it must say `shared = true`", name(by))
        }
        Reason::HostTaken(by) => {
            format!("\"{}\" has a host of that address at the same physical port", name(by))
        }
        ref other => other.to_string(),
    }
}

impl Networks {
    /// Takes up where the store says that everything was. `snapshot` is what the shards are to start with; it comes back
    /// with the maps.
    pub fn prepare(
        config: &Config,
        snapshot: &mut Snapshot,
        following: Setup,
        documents: Documents,
        inbox: Arc<Inbox>,
        joiner: big_switches::Handle,
        refused: Arc<Refused>,
    ) -> Result<Networks, ChangeError> {
        let [least, most] = config.topology.tags;
        let mut embedding = Embedding::new(least, most);
        match documents.get(PLACES) {
            Ok(Some(saved)) => {
                if let Err(error) = embedding.restore(&saved) {
                    tracing::error!(%error, "the virtual networks are placed anew");
                }
            }
            Ok(None) => {}
            Err(error) => return Err(ChangeError::Store(error)),
        }
        let edits = Edits::load(&documents).map_err(ChangeError::Store)?;
        let mut inner = Inner {
            embedding,
            number: 0,
            base: snapshot.clone(),
            names: BTreeMap::new(),
            edits,
            file: BTreeMap::new(),
            maxima: BTreeMap::new(),
            following: following.clone(),
            edges: Vec::new(),
            inbox,
            watch: None,
            shards: Vec::new(),
            joiner,
            refused,
            documents: documents.clone(),
            started: Instant::now(),
            rounds: Rounds::default(),
            grew: None,
            is_unsaved: false,
            are_edits_unsaved: false,
        };
        inner.configure(config, snapshot.clone(), following, Contradiction::SetsEditsAside)?;
        *snapshot = inner.snapshot();
        let shared = Shared {
            inner: Mutex::new(inner),
            trying: Mutex::new(()),
            saving: Mutex::new(()),
            viewing: Mutex::new(()),
            documents,
            stop: AtomicBool::new(false),
        };
        Ok(Networks { shared: Arc::new(shared), threads: Vec::new() })
    }

    /// Begins to follow the topology, and to tell the shards.
    pub fn start(&mut self, watch: Watch, shards: Vec<Handle>) -> io::Result<()> {
        let subscription = watch.subscribe();
        {
            let mut inner = self.shared.lock();
            inner.watch = Some(watch);
            inner.shards = shards;
        }
        let shared = Arc::clone(&self.shared);
        let run = move || {
            while !shared.stop.load(Ordering::Relaxed) {
                let change = subscription.wait(TICK);
                let mut inner = shared.lock();
                if change.is_some() {
                    inner.follow_topology();
                }
                inner.tick();
            }
        };
        self.threads.push(Thread::start("networks", run)?);
        let shared = Arc::clone(&self.shared);
        let save = move || {
            while !shared.stop.load(Ordering::Relaxed) {
                std::thread::park_timeout(TICK);
                shared.save();
            }
        };
        self.threads.push(Thread::start("networks-save", save)?);
        Ok(())
    }

    /// Takes over another configuration: all of it, telling the shards, or nothing.
    pub fn configure(
        &self,
        config: &Config,
        snapshot: Snapshot,
        following: Setup,
    ) -> Result<(), ChangeError> {
        let (_turn, _saving) = (self.shared.turn(), self.shared.saving());
        let contradiction = Contradiction::Refuses;
        self.shared.lock().configure(config, snapshot, following, contradiction).map(|_| ())
    }

    /// A way to see and change the networks.
    pub fn control(&self) -> Control {
        Control::new(Arc::clone(&self.shared))
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(Thread::join);
        self.shared.save();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.trying.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores where everything is. What cannot be stored now is tried again with the next tick.
    fn save(&self) {
        let _saving = self.saving();
        let (places, edits) = self.lock().take_unsaved();
        let places = places.map(|places| self.documents.put(PLACES, places));
        let edits = edits.map(|edits| edits.save(&self.documents));
        let failed = |it: Option<Result<(), StoreError>>| it.and_then(Result::err);
        let (places, edits) = (failed(places), failed(edits));
        if let Some(error) = places.as_ref().or(edits.as_ref()) {
            // The store says itself what is wrong with it.
            tracing::debug!(%error, "virtual networks are not stored yet");
            let mut inner = self.lock();
            inner.is_unsaved |= places.is_some();
            inner.are_edits_unsaved |= edits.is_some();
        }
    }

    /// Stores changes through REST before they are made. Who does has the turn.
    fn save_edits(&self, edits: &Edits) -> Result<(), StoreError> {
        let _saving = self.saving();
        edits.save(&self.documents)?;
        self.lock().are_edits_unsaved = false;
        Ok(())
    }

    fn saving(&self) -> MutexGuard<'_, ()> {
        self.saving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn configure(
        &mut self,
        config: &Config,
        base: Snapshot,
        following: Setup,
        contradiction: Contradiction,
    ) -> Result<Changes, ChangeError> {
        let ids = base.policy.tenants.iter().map(|tenant| (tenant.id, tenant.name.clone()));
        let names: BTreeMap<TenantId, String> = ids.collect();
        let said = |tenant: &config::Tenant| {
            Some((tenant.name.clone(), tenant.network.as_ref()?.spec.clone()))
        };
        let file: BTreeMap<String, Spec> = config.tenants.iter().filter_map(said).collect();
        let slices: BTreeSet<&str> = config
            .tenants
            .iter()
            .filter(|tenant| !tenant.flowspace.is_empty())
            .map(|tenant| tenant.name.as_str())
            .collect();
        let mut edits = self.edits.clone();
        edits.follow_file(&file, |name| {
            names.values().any(|other| other == name) && !slices.contains(name)
        });
        let network = self.watch.as_ref().map(Watch::current);
        let nothing = fabric::Network::default();
        let network = network.as_ref().map_or(&nothing, |snapshot| &snapshot.network);
        let mut next = self.embedding.clone();
        let changes = loop {
            let all = match next.apply(network, &wanted(&names, &file, &edits)) {
                Ok(changes) => break changes,
                Err(all) => all,
            };
            if contradiction == Contradiction::Refuses || !edits.set_aside(&names, &all) {
                return Err(refused(&names, &all));
            }
        };
        if edits != self.edits {
            edits.save(&self.documents).map_err(ChangeError::Store)?;
            self.are_edits_unsaved = false;
        }
        self.embedding = next;
        self.number += 1;
        (self.names, self.file, self.edits, self.base) = (names, file, edits, base);
        let maxima =
            config.tenants.iter().map(|tenant| (tenant.name.clone(), tenant.maxima.clone()));
        self.maxima = maxima.collect();
        self.following = following;
        self.note(&changes);
        self.is_unsaved = true;
        self.tell_all();
        self.tell_topology();
        self.log(&changes);
        Ok(changes)
    }

    /// What the shards enforce.
    fn snapshot(&self) -> Snapshot {
        Snapshot { policy: Arc::new(self.policy()), ..self.base.clone() }
    }

    fn policy(&self) -> Policy {
        let maps = self.embedding.switch_maps().iter();
        let [least, most] = self.embedding.tag_range();
        Policy {
            tenants: self.base.policy.tenants.clone(),
            maps: maps.map(|(dpid, map)| (dpid.0, Arc::clone(map))).collect(),
            tags: (!self.embedding.wanted().is_empty()).then(|| least.get()..=most.get()),
            sheets: self.base.policy.sheets.clone(),
            any_sheet: self.base.policy.any_sheet.clone(),
        }
    }

    /// Where tenants have ports there are hosts, whom probes are none of their business and who must not make links.
    fn edges(&self) -> Vec<PortId> {
        let topology = &self.following.topology;
        let declared: BTreeSet<PortId> = topology.links.iter().flat_map(|it| it.between).collect();
        let specs = self.embedding.wanted().values();
        let edges = specs.flat_map(|spec| spec.ports.iter().map(|port| port.at));
        let mut all: BTreeSet<PortId> = edges.filter(|at| !declared.contains(at)).collect();
        all.extend(&topology.edges);
        all.into_iter().collect()
    }

    fn tell_topology(&mut self) {
        let mut following = self.following.clone();
        self.edges = self.edges();
        following.topology.edges.clone_from(&self.edges);
        self.inbox.configure(following);
    }

    /// For the topology to be told is to become another, to all who follow it, though it be the same.
    fn tell_edges(&mut self) {
        if self.edges() != self.edges {
            self.tell_topology();
        }
    }

    fn tell_all(&self) {
        self.inbox.maps(self.policy().maps);
        if !self.shards.is_empty() {
            let snapshot = self.snapshot();
            self.joiner.plan(&snapshot.policy);
            for shard in &self.shards {
                shard.send(Command::Apply(snapshot.clone()));
            }
        }
    }

    /// Makes a change and tells the shards whose switches it concerns.
    fn follow(&mut self, change: impl FnOnce(&mut Embedding) -> Changes) -> Changes {
        let reserved = !self.embedding.wanted().is_empty();
        let begun = Instant::now();
        let changes = change(&mut self.embedding);
        self.number += 1;
        self.note(&changes);
        if changes.is_empty() {
            return changes;
        }
        if reserved == self.embedding.wanted().is_empty() {
            self.tell_all();
        } else if !changes.switches.is_empty() {
            let policy = Arc::new(self.policy());
            self.inbox.maps(policy.maps.clone());
            // Who joins hears of it first, so that members find it when they come.
            self.joiner.plan(&policy);
            let switches = Arc::new(changes.switches.iter().map(|dpid| dpid.0).collect());
            for shard in &self.shards {
                shard.send(Command::Maps(Arc::clone(&policy), Arc::clone(&switches)));
            }
        }
        self.is_unsaved = true;
        self.log(&changes);
        tracing::debug!(took = ?begun.elapsed(), "virtual networks followed a change");
        changes
    }

    /// What is the newest under the lock, not what was when it was told: REST and reload may have placed networks meanwhile on links
    /// that were not known then.
    fn follow_topology(&mut self) {
        let Some(watch) = &self.watch else { return };
        let topology = watch.current();
        self.follow(|embedding| embedding.handle_changes(&topology.network));
    }

    fn note(&mut self, changes: &Changes) {
        if changes.parted {
            self.rounds.run(Instant::now());
        }
        if changes.grew {
            self.grew = Some(Instant::now());
        }
        for Oversubscribed { at, reserved, capacity } in &changes.oversubscribed {
            tracing::warn!(link = %at, %reserved, %capacity, "a physical link can carry less than is set aside on it");
        }
    }

    fn tick(&mut self) {
        self.go_around_refused();
        if self.rounds.end(Instant::now()) {
            let Some(watch) = &self.watch else { return };
            let topology = watch.current();
            self.follow(|embedding| embedding.rejoin(&topology.network));
        }
        if self.grew.take_if(|since| since.elapsed() > GROWING).is_some() {
            self.embedding.stop_growing();
            self.number += 1;
        }
        if self.embedding.is_holding() && self.started.elapsed() > PATIENCE {
            let Some(watch) = &self.watch else { return };
            let topology = watch.current();
            self.follow(|embedding| embedding.stop_waiting(&topology.network));
        }
    }

    /// What switches do not let pass goes another way.
    fn go_around_refused(&mut self) {
        let Some(watch) = &self.watch else { return };
        let refused = self.refused.take_transits();
        if refused.is_empty() {
            return;
        }
        let topology = watch.current();
        for (dpid, transits) in refused {
            tracing::warn!(%dpid, refused = transits.len(), "the switch does not let all virtual links pass");
            self.follow(|it| it.handle_refused(&topology.network, dpid, &transits));
        }
    }

    /// What is to be stored: where everything is, and changes through REST.
    fn take_unsaved(&mut self) -> (Option<Vec<u8>>, Option<Edits>) {
        let places = std::mem::take(&mut self.is_unsaved).then(|| self.embedding.export());
        let edits = std::mem::take(&mut self.are_edits_unsaved).then(|| self.edits.clone());
        (places, edits)
    }

    fn log(&self, changes: &Changes) {
        let switches = changes.switches.len();
        let moved = changes.moves.len();
        if moved > 0 {
            tracing::info!(
                moved,
                switches,
                "virtual links and insides of big switches were placed"
            );
        }
        for change in &changes.ports {
            let tenant = self.names.get(&change.tenant).map_or("", String::as_str);
            match (change.was, change.is) {
                (Some(true), Some(false)) => {
                    tracing::warn!(tenant, port = %change.port, "a virtual port went down");
                }
                (_, Some(true)) => {
                    tracing::debug!(tenant, port = %change.port, "a virtual port is up");
                }
                _ => {}
            }
        }
    }
}

/// What all tenants are to have, by their numbers.
fn wanted(
    names: &BTreeMap<TenantId, String>,
    file: &BTreeMap<String, Spec>,
    edits: &Edits,
) -> BTreeMap<TenantId, Spec> {
    let spec = |name: &String| match edits.get(name) {
        Some(edited) => edited.cloned(),
        None => file.get(name).cloned(),
    };
    names.iter().filter_map(|(&id, name)| Some((id, spec(name)?))).collect()
}

fn refused(names: &BTreeMap<TenantId, String>, all: &[Refusal]) -> ChangeError {
    ChangeError::Refused(all.iter().map(|refusal| say(names, refusal)).collect())
}

fn say(names: &BTreeMap<TenantId, String>, refusal: &Refusal) -> String {
    let name = |id: TenantId| names.get(&id).cloned().unwrap_or_default();
    format!("{}: {}: {}", name(refusal.tenant), refusal.part, why(&refusal.why, name))
}

#[cfg(test)]
mod tests;
