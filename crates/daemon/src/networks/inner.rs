//! The state of the networks, and their reaction to the file, the topology and refused rules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fabric::embedding::{Changes, Embedding, Oversubscribed, Spec};
use fabric::{PortId, TenantId};
use hypervisor::Policy;

use super::edits::Edits;
use super::error::{ChangeError, refused};
use super::rounds::Rounds;
use crate::big_switches;
use crate::config::{self, Config, Maxima};
use crate::refused::Refused;
use crate::shard::{Command, Handle, Snapshot};
use crate::store::Documents;
use crate::topology::{Inbox, Setup, Watch};

/// How long after the start all networks stay in their saved places, unless the physical network contradicts them:
/// switches return within some seconds, and links are discovered within some more.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long after the discovery of a new link further links may follow, which give virtual links better paths.
const GROWING: Duration = Duration::from_secs(30);

/// The place of placements in the store.
pub(super) const PLACES: &str = "networks/places";

/// The state of the networks.
pub(super) struct Inner {
    pub(super) embedding: Embedding,
    /// Grows with each change of the data on which a change of a network depends.
    pub(super) number: u64,
    /// The shards' snapshot without the maps.
    pub(super) base: Snapshot,
    pub(super) names: BTreeMap<TenantId, String>,
    pub(super) edits: Edits,
    /// The networks in the file, by tenant name.
    pub(super) file: BTreeMap<String, Spec>,
    /// The maxima of the networks, by tenant name.
    pub(super) maxima: BTreeMap<String, Maxima>,
    /// The topology's setup without the networks' edge ports.
    following: Setup,
    /// The edge ports that the topology has.
    edges: Vec<PortId>,
    inbox: Arc<Inbox>,
    pub(super) watch: Option<Watch>,
    shards: Vec<Handle>,
    joiner: big_switches::Handle,
    pub(super) refused: Arc<Refused>,
    documents: Documents,
    started: Instant,
    /// The rounds in which switches follow a change.
    rounds: Rounds,
    /// The time of the last discovery of a new link, if it is recent.
    grew: Option<Instant>,
    /// Whether the present placement is not stored yet.
    pub(super) is_unsaved: bool,
    /// Whether the stored changes through REST differ from [`Inner::edits`].
    pub(super) are_edits_unsaved: bool,
}

/// The reaction to a file that contradicts changes through REST.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Contradiction {
    /// The file is refused: while Weir runs.
    Refuses,
    /// The file's network replaces the change: at the start, when there is no earlier state that could stay.
    SetsEditsAside,
}

impl Inner {
    /// Restores the stored placement. `base`: the shards' snapshot without the maps.
    pub(super) fn restore(
        config: &Config,
        base: Snapshot,
        following: Setup,
        documents: Documents,
        inbox: Arc<Inbox>,
        joiner: big_switches::Handle,
        refused: Arc<Refused>,
    ) -> Result<Inner, ChangeError> {
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
            base: base.clone(),
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
            documents,
            started: Instant::now(),
            rounds: Rounds::default(),
            grew: None,
            is_unsaved: false,
            are_edits_unsaved: false,
        };
        inner.configure(config, base, following, Contradiction::SetsEditsAside)?;
        Ok(inner)
    }

    /// Begins to follow the topology, and to inform the shards.
    pub(super) fn begin(&mut self, watch: Watch, shards: Vec<Handle>) {
        self.watch = Some(watch);
        self.shards = shards;
    }

    pub(super) fn configure(
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
        self.send_policy();
        self.configure_topology();
        self.log(&changes);
        Ok(changes)
    }

    /// The snapshot for the shards.
    pub(super) fn snapshot(&self) -> Snapshot {
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

    /// The edge ports of networks: hosts are there, which must get no probes and must not make links.
    fn edges(&self) -> Vec<PortId> {
        let topology = &self.following.topology;
        let declared: BTreeSet<PortId> = topology.links.iter().flat_map(|it| it.between).collect();
        let specs = self.embedding.wanted().values();
        let edges = specs.flat_map(|spec| spec.ports.iter().map(|port| port.at));
        let mut all: BTreeSet<PortId> = edges.filter(|at| !declared.contains(at)).collect();
        all.extend(&topology.edges);
        all.into_iter().collect()
    }

    fn configure_topology(&mut self) {
        let mut following = self.following.clone();
        self.edges = self.edges();
        following.topology.edges.clone_from(&self.edges);
        self.inbox.configure(following);
    }

    /// Informs the topology only of real changes, because each call counts as a change for all who follow the topology.
    pub(super) fn configure_edges(&mut self) {
        if self.edges() != self.edges {
            self.configure_topology();
        }
    }

    fn send_policy(&self) {
        self.inbox.maps(self.policy().maps);
        if !self.shards.is_empty() {
            let snapshot = self.snapshot();
            self.joiner.plan(&snapshot.policy);
            for shard in &self.shards {
                shard.send(Command::Apply(Box::new(snapshot.clone())));
            }
        }
    }

    /// Makes a change, and informs the shards whose switches it concerns.
    pub(super) fn follow(&mut self, change: impl FnOnce(&mut Embedding) -> Changes) -> Changes {
        let reserved = !self.embedding.wanted().is_empty();
        let begun = Instant::now();
        let changes = change(&mut self.embedding);
        self.number += 1;
        self.note(&changes);
        if changes.is_empty() {
            return changes;
        }
        if reserved == self.embedding.wanted().is_empty() {
            self.send_policy();
        } else if !changes.switches.is_empty() {
            let policy = Arc::new(self.policy());
            self.inbox.maps(policy.maps.clone());
            // The thread of big switches gets the change first, so that it knows the big switch when its members
            // connect.
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

    /// Reads the newest topology under the lock, not the one of the notification: REST and reload may have placed
    /// networks meanwhile on newer links.
    pub(super) fn follow_topology(&mut self) {
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

    pub(super) fn tick(&mut self) {
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

    /// Moves trunks away from switches that refuse their transit.
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

    /// The data to store: the placement, and changes through REST.
    pub(super) fn take_unsaved(&mut self) -> (Option<Vec<u8>>, Option<Edits>) {
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

/// The requests of all tenants, by number.
pub(super) fn wanted(
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
