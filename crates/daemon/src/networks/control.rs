//! Reads and changes networks for REST.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use fabric::embedding::{
    Carries, Changes, Embedding, Routed, Spec, TrunkStatus, VirtualPortId, Wire,
};
use fabric::{Dpid, MacAddress, TenantId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::document::Document;
use super::edits::{Edits, SetAside};
use super::error::{ChangeError, refused};
use super::inner::{Inner, wanted};
use super::operation::Operation;
use super::own;
use super::parts::{self, Assigned, PartOutcome, Parts};
use super::shared::Shared;
use crate::config::Maxima;
use crate::refused::Refused;
use crate::store::StoreError;
use crate::topology::{Snapshot, Watch};

/// Access to the networks, to read and change them from any thread.
#[derive(Clone)]
pub struct Control(Arc<Shared>);

/// A tenant's network: the request, and its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NetworkView {
    /// The tenant.
    pub tenant: String,
    /// Whether the network is as in the file; otherwise it was changed through REST.
    pub as_configured: bool,
    /// The requested network.
    pub network: Document,
    /// Addresses that Weir gave to hosts whose request names none.
    pub assigned: Vec<Assigned>,
    /// All ports of the network.
    pub ports: Vec<PortView>,
    /// The paths of its links, and of the tunnels in its big switches.
    pub paths: Vec<PathView>,
}

/// A port of a virtual switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PortView {
    /// The port, such as `00:00:00:00:00:00:0a:01 port 1`.
    pub port: String,
    /// Whether the tenant sees the port up.
    pub up: bool,
    /// Whether the port is down because the physical switch refuses its ingress rule.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub refused: bool,
}

/// The path of a link, or of a tunnel in a big switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PathView {
    /// `link` or `inside`.
    pub carries: String,
    /// The virtual ports of a link, or the members of a big switch.
    #[schema(min_items = 2, max_items = 2)]
    pub between: [String; 2],
    /// The physical links of the path, in order; empty without a path.
    pub path: Vec<Passed>,
    /// The backup path.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub backup: Vec<Passed>,
    /// The reason why there is no path.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub trouble: Option<String>,
}

/// A physical link on a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Passed {
    /// The sending port.
    pub from: String,
    /// The receiving port.
    pub to: String,
    /// The VLAN ids of packets on this link, in both directions; for a big switch for each port.
    pub tags: Vec<u16>,
}

/// The result of a change, or of a dry run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "dry_run": false,
    "parts": [{"tenant": "red", "part": "port 00:00:00:00:00:00:00:a1 port 2", "is": "at 00:00:00:00:00:00:00:01 port 2"}],
    "switches": ["00:00:00:00:00:00:00:01"],
    "ports": [{"tenant": "red", "port": "00:00:00:00:00:00:00:a1 port 2", "is": false}],
    "paths": []
})))]
pub struct Outcome {
    /// Whether this was a dry run.
    pub dry_run: bool,
    /// Parts of the requested network that are added, removed or changed.
    #[serde(default)]
    pub parts: Vec<PartOutcome>,
    /// Physical switches whose rules change.
    pub switches: Vec<String>,
    /// Virtual ports that are added or removed, or go up or down.
    pub ports: Vec<PortOutcome>,
    /// Paths that are added, removed or moved.
    pub paths: Vec<PathOutcome>,
}

/// The change of a virtual port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PortOutcome {
    /// The tenant.
    pub tenant: String,
    /// Which.
    pub port: String,
    /// Whether the port was up; absent if it did not exist.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub was: Option<bool>,
    /// Whether the port is up; absent if it does not exist any more.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub is: Option<bool>,
}

/// The change of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PathOutcome {
    /// The tenant.
    pub tenant: String,
    /// `link` or `inside`.
    pub carries: String,
    /// The virtual ports of a link, or the members of a big switch.
    #[schema(min_items = 2, max_items = 2)]
    pub between: [String; 2],
    /// The sending physical ports of the old path; empty if there was none.
    pub was: Vec<String>,
    /// The sending physical ports of the new path; empty if there is none.
    pub is: Vec<String>,
}

/// The options of a change.
pub struct How<'a> {
    /// Compute the result, and change nothing.
    pub dry_run: bool,
    /// Whether the tenant itself asks: then the reasons do not name other tenants.
    pub for_tenant: bool,
    /// Called with the result before the change is stored; if it returns an error, the change is not made.
    pub before: &'a dyn Fn(&Outcome) -> Result<(), StoreError>,
}

impl How<'_> {
    /// A change by the operator, without a call before it is stored.
    pub fn plain(dry_run: bool) -> How<'static> {
        How { dry_run, for_tenant: false, before: &|_| Ok(()) }
    }
}

impl Control {
    pub(super) fn new(shared: Arc<Shared>) -> Control {
        Control(shared)
    }

    /// All networks, by tenant number.
    pub fn list(&self) -> Vec<NetworkView> {
        self.show(Picture::views)
    }

    /// Copies all networks under the lock, which takes a fraction of the time to write them as JSON.
    pub(super) fn show<T>(&self, written: impl FnOnce(&Picture) -> T) -> T {
        let _turn = self.0.viewing();
        let picture = self.0.lock().picture();
        written(&picture)
    }

    /// A number that grows with each change of any network, and the tenants with a network.
    pub fn brief(&self) -> (u64, BTreeSet<String>) {
        let inner = self.0.lock();
        let having = inner.embedding.wanted().keys().filter_map(|id| inner.names.get(id).cloned());
        (inner.number, having.collect())
    }

    /// Changes through REST that were set aside at a start, by tenant name.
    pub fn set_aside(&self) -> Vec<SetAside> {
        let edits = self.0.lock().edits.clone();
        edits.aside()
    }

    /// A tenant's network.
    pub fn get(&self, tenant: &str) -> Result<NetworkView, ChangeError> {
        let inner = self.0.lock();
        let id = inner.id(tenant)?;
        let spec = inner.embedding.wanted().get(&id);
        let spec = spec.ok_or_else(|| no_network(tenant))?;
        Ok(inner.shown().view(id, spec))
    }

    /// Replaces a tenant's network by the document; `None`: removes the network.
    pub fn put(
        &self,
        tenant: &str,
        document: Option<&Document>,
        how: &How<'_>,
    ) -> Result<Outcome, ChangeError> {
        let spec = document.map(Document::spec).transpose()?;
        self.make(tenant, how, |network| {
            if spec.is_none() && network.is_none() {
                return Err(no_network(tenant));
            }
            network.clone_from(&spec);
            Ok(())
        })
    }

    /// Makes all these changes of a tenant's network, or none of them.
    pub fn change(
        &self,
        tenant: &str,
        operations: &[Operation],
        how: &How<'_>,
    ) -> Result<Outcome, ChangeError> {
        self.make(tenant, how, |network| {
            operations.iter().try_for_each(|operation| operation.make(network))
        })
    }

    /// A change is tried and stored without the lock, because placing a large network and storing it may take a while,
    /// and the reaction to failures needs the lock. If the networks have changed meanwhile, the change is tried once
    /// more under the lock.
    ///
    /// The change is stored first and made then, because a change that is not stored would be lost.
    fn make(
        &self,
        tenant: &str,
        how: &How<'_>,
        change: impl Fn(&mut Option<Spec>) -> Result<(), ChangeError>,
    ) -> Result<Outcome, ChangeError> {
        let _turn = self.0.turn();
        let trial = self.0.lock().trial(tenant, how)?;
        let mut number = trial.number;
        let mut made = trial.make(&change);
        if how.dry_run {
            return Ok(Outcome { dry_run: true, ..made?.outcome });
        }
        if made.is_err() {
            let inner = self.0.lock();
            if inner.number != number {
                number = inner.number;
                made = inner.trial(tenant, how)?.make(&change);
            }
        }
        let made = made?;
        (how.before)(&made.outcome).map_err(ChangeError::Store)?;
        self.0.save_edits(&made.edits).map_err(ChangeError::Store)?;
        let mut inner = self.0.lock();
        // The second trial has the same edits, because nobody else has changed them.
        let made = match inner.number == number {
            true => Ok(made),
            false => inner.trial(tenant, how).and_then(|trial| trial.make(&change)),
        };
        let outcome = made.map(|made| inner.take_over(made));
        inner.are_edits_unsaved |= outcome.is_err();
        drop(inner);
        self.0.save();
        outcome
    }
}

fn no_network(tenant: &str) -> ChangeError {
    ChangeError::Missing(format!("tenant \"{tenant}\" has no network of its own"))
}

impl Inner {
    fn id(&self, tenant: &str) -> Result<TenantId, ChangeError> {
        let found = self.names.iter().find(|(_, name)| *name == tenant).map(|(&id, _)| id);
        found.ok_or_else(|| ChangeError::Missing(format!("there is no tenant \"{tenant}\"")))
    }

    /// A trial of a change of a tenant's network.
    fn trial(&self, tenant: &str, how: &How<'_>) -> Result<Trial, ChangeError> {
        let id = self.id(tenant)?;
        let sliced = |it: &&hypervisor::policy::Tenant| it.id == id && !it.flowspace.is_empty();
        if self.base.policy.tenants.iter().find(sliced).is_some() {
            let reason =
                format!("tenant \"{tenant}\" has a flowspace: a slice, and no network of its own");
            return Err(ChangeError::Refused(vec![reason]));
        }
        Ok(Trial {
            number: self.number,
            tenant: tenant.to_owned(),
            id,
            for_tenant: how.for_tenant,
            maxima: self.maxima.get(tenant).cloned().unwrap_or_default(),
            embedding: self.embedding.clone(),
            names: self.names.clone(),
            edits: self.edits.clone(),
            file: self.file.clone(),
            topology: self.watch.as_ref().map(Watch::current).unwrap_or_default(),
        })
    }

    fn take_over(&mut self, made: Made) -> Outcome {
        let Made { embedding, edits, changes, outcome } = made;
        self.edits = edits;
        self.follow(|all| {
            *all = embedding;
            changes
        });
        self.configure_edges();
        // The placement is stored also if no switch changes, because hosts may have got addresses.
        self.is_unsaved = true;
        outcome
    }

    fn shown(&self) -> Shown<'_> {
        let Inner { embedding, names, edits, refused, .. } = self;
        Shown { embedding, names, edits, refused }
    }

    fn picture(&self) -> Picture {
        Picture {
            embedding: self.embedding.clone(),
            names: self.names.clone(),
            edits: self.edits.clone(),
            refused: Arc::clone(&self.refused),
        }
    }
}

/// All networks as they were at one moment.
pub(super) struct Picture {
    embedding: Embedding,
    names: BTreeMap<TenantId, String>,
    edits: Edits,
    refused: Arc<Refused>,
}

impl Picture {
    pub(super) fn views(&self) -> Vec<NetworkView> {
        let Picture { embedding, names, edits, refused } = self;
        let shown = Shown { embedding, names, edits, refused };
        embedding.wanted().iter().map(|(&id, spec)| shown.view(id, spec)).collect()
    }
}

/// The data to show a network.
struct Shown<'a> {
    embedding: &'a Embedding,
    names: &'a BTreeMap<TenantId, String>,
    edits: &'a Edits,
    refused: &'a Refused,
}

impl Shown<'_> {
    fn name(&self, id: TenantId) -> String {
        self.names.get(&id).cloned().unwrap_or_default()
    }

    fn view(&self, id: TenantId, spec: &Spec) -> NetworkView {
        let tenant = self.name(id);
        let paths = self.embedding.trunks(id).map(|(trunk, status)| path(&trunk.carries, &status));
        NetworkView {
            as_configured: self.edits.get(&tenant).is_none(),
            network: Document::new(spec),
            assigned: assigned(self.embedding, id),
            ports: self.ports(id),
            paths: paths.collect(),
            tenant,
        }
    }

    fn ports(&self, id: TenantId) -> Vec<PortView> {
        let mut ports: BTreeMap<VirtualPortId, (bool, bool)> = BTreeMap::new();
        for (&here, map) in self.embedding.switch_maps() {
            let Some(member) = map.members.get(&id) else { continue };
            for (&number, port) in &member.ports {
                // Each member of a big switch has all its ports, and any member may refuse the rules of a port: packets
                // enter on the port's own member, and reach the port from the others.
                let port_id = VirtualPortId { switch: member.datapath, number };
                let (up, refused) = ports.entry(port_id).or_insert((port.up, false));
                *refused |= *up && self.refused.has_port(here, id, number);
            }
        }
        let view = |(port, (up, refused)): (VirtualPortId, (bool, bool))| PortView {
            port: port.to_string(),
            up: up && !refused,
            refused,
        };
        ports.into_iter().map(view).collect()
    }
}

/// A change that is tried on a copy of all networks.
struct Trial {
    /// The number of the copied state.
    number: u64,
    tenant: String,
    id: TenantId,
    for_tenant: bool,
    maxima: Maxima,
    embedding: Embedding,
    names: BTreeMap<TenantId, String>,
    edits: Edits,
    file: BTreeMap<String, Spec>,
    topology: Arc<Snapshot>,
}

/// The result of a trial.
struct Made {
    embedding: Embedding,
    edits: Edits,
    changes: Changes,
    outcome: Outcome,
}

impl Trial {
    fn make(
        self,
        change: impl Fn(&mut Option<Spec>) -> Result<(), ChangeError>,
    ) -> Result<Made, ChangeError> {
        let Trial {
            tenant,
            id,
            for_tenant,
            maxima,
            mut embedding,
            names,
            mut edits,
            file,
            topology,
            ..
        } = self;
        let mut spec = embedding.wanted().get(&id).cloned();
        change(&mut spec)?;
        if let Some(spec) = &spec {
            let over = maxima.exceeded(embedding.wanted().get(&id), spec);
            let mut over: Vec<_> = over.into_iter().map(|it| format!("{tenant}: {it}")).collect();
            if for_tenant {
                let known = [embedding.wanted().get(&id), file.get(&tenant)];
                over.extend(own::ports_elsewhere(&tenant, spec, known, &maxima));
            }
            if !over.is_empty() {
                return Err(ChangeError::Refused(over));
            }
        }
        edits.set(&tenant, file.get(&tenant), spec);
        let before = parts_of(&embedding, id);
        let changes =
            embedding.apply(&topology.network, &wanted(&names, &file, &edits)).map_err(|all| {
                match for_tenant {
                    true => ChangeError::Refused(own::reasons(id, &tenant, &all)),
                    false => refused(&names, &all),
                }
            })?;
        let parts = parts::differences(&tenant, &before, &parts_of(&embedding, id));
        let name = |id| names.get(&id).cloned().unwrap_or_default();
        let outcome = Outcome { parts, ..outcome(&changes, name) };
        Ok(Made { embedding, edits, changes, outcome })
    }
}

fn outcome(changes: &Changes, name: impl Fn(TenantId) -> String) -> Outcome {
    let ports = changes.ports.iter().map(|change| PortOutcome {
        tenant: name(change.tenant),
        port: change.port.to_string(),
        was: change.was,
        is: change.is,
    });
    let left_by = |wires: &[Wire]| wires.iter().map(|wire| wire.from.to_string()).collect();
    let paths = changes.moves.iter().map(|it| {
        let (carries, between) = carried(&it.trunk.carries);
        let (was, is) = (left_by(&it.from), left_by(&it.to));
        PathOutcome { tenant: name(it.trunk.tenant), carries, between, was, is }
    });
    Outcome {
        switches: changes.switches.iter().map(Dpid::to_string).collect(),
        ports: ports.collect(),
        paths: paths.collect(),
        ..Outcome::default()
    }
}

fn assigned(embedding: &Embedding, id: TenantId) -> Vec<Assigned> {
    let text = |(mac, address): (MacAddress, IpAddr)| Assigned {
        mac: mac.to_string(),
        address: address.to_string(),
    };
    embedding.assigned(id).map(text).collect()
}

fn parts_of(embedding: &Embedding, id: TenantId) -> Parts {
    let network = embedding.wanted().get(&id).map(Document::new);
    let parts = |network| parts::parts(&network, &assigned(embedding, id));
    network.map(parts).unwrap_or_default()
}

fn carried(carries: &Carries) -> (String, [String; 2]) {
    match carries {
        Carries::Link(ends) => ("link".to_owned(), ends.map(|end| end.to_string())),
        Carries::Inside { members, .. } => {
            ("inside".to_owned(), members.map(|member| member.to_string()))
        }
    }
}

fn path(carries: &Carries, status: &TrunkStatus<'_>) -> PathView {
    let (carries, between) = carried(carries);
    let passed = |routed: Option<&Routed>| -> Vec<Passed> {
        let wires = routed.map(|routed| {
            routed.wires.iter().enumerate().map(|(at, wire)| {
                let mut lanes: Vec<_> = routed.tags.iter().collect();
                lanes.sort_by_key(|(lane, _)| !lane.forth);
                let tags = lanes.iter().filter_map(|(_, tags)| tags.get(at));
                let mut tags: Vec<u16> = tags.map(|tag| tag.get()).collect();
                tags.dedup();
                let (from, to) = (wire.from.to_string(), wire.to.to_string());
                Passed { from, to, tags }
            })
        });
        wires.into_iter().flatten().collect()
    };
    PathView {
        carries,
        between,
        path: passed(status.active),
        backup: passed(status.backup),
        trouble: status.trouble.map(|trouble| trouble.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::embedding::{Lane, Tag, VirtualPortId};
    use fabric::{PortId, PortNumber};

    #[test]
    fn a_path_has_the_tags_of_both_directions() {
        let port = |dpid, number| PortId::new(Dpid(dpid), PortNumber::new(number).unwrap());
        let mut routed =
            Routed { wires: vec![Wire { from: port(1, 3), to: port(3, 1) }], ..Routed::default() };
        for (forth, tag) in [(true, 7), (false, 5)] {
            routed.tags.insert(Lane { forth, port: 0 }, vec![Tag::new(tag).unwrap()]);
        }
        let status = TrunkStatus {
            active: Some(&routed),
            backup: None,
            leaving: None,
            is_held: false,
            trouble: None,
        };
        let end = |switch| VirtualPortId { switch: Dpid(switch), number: 1 };
        let view = path(&Carries::Link([end(1), end(2)]), &status);
        assert_eq!(view.path[0].tags, [7, 5]);
        assert!(view.backup.is_empty());
    }
}
