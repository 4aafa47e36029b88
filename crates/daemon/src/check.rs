//! `weir check`: the effects of a valid configuration, and the effects that are probably not intended.
//!
//! The check is offline: it reads the configuration alone (and whether its PEM files exist), and contacts no switch.
//! The result is data ([`Report`]) and its text form; the command chooses the exit code. Start reading at [`check`].

mod access;
mod networks;
mod ports;
mod shares;
mod sheets;
mod trunks;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use channel::Address;
use flowspace::{Classifier, Match, covered_by};
use hypervisor::policy::{Permission, Switches};
use serde::Serialize;

use crate::access::tokens::now;
use crate::config::{Certificate, Config, Entry, Listed, Position, Tenant};
use crate::expiry;
pub use shares::{Share, ShareOfRate, Shared, shares};

/// Whether a remark should stop an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Probably not intended.
    Finding,
    /// Worth knowing.
    Note,
}

/// The topic of a remark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    /// Write entries of two tenants share packets at the same priority; the order in the file decides.
    EqualPriority,
    /// Write entries of two tenants share packets; the higher priority owns them.
    Overlap,
    /// A write entry owns no packet: higher entries own all its packets.
    Unreachable,
    /// A tenant has no flowspace, or no controller.
    Incomplete,
    /// An entry cannot be matched by an OpenFlow 1.0 switch.
    OpenFlow10,
    /// A read entry, and the owners of the packets that it shows.
    ReadOnly,
    /// Two tenants name the same controller.
    SharedController,
    /// Several slices use a port, whose counters count the packets of all of them.
    SharedPort,
    /// A tenant may use experimenter messages and actions, which Weir does not check.
    Experimenters,
    /// A slice of ports on several switches, without a link between its ports.
    Trunk,
    /// A network's link, and its path.
    Network,
    /// The REST interface accepts changes from every user of this machine, or requires accounts.
    OpenApi,
    /// An account of a tenant that does not exist.
    Account,
    /// A file of `[tls]` or `[api]` cannot be read.
    TlsFile,
    /// Weir's own certificate has expired, or will soon.
    Certificate,
    /// Certificates of switches are pinned.
    Pin,
    /// A data sheet, and what it says.
    DataSheet,
    /// Weir cannot listen to agents, or no agent measures an interface.
    Agents,
}

/// One remark about a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// The severity.
    pub severity: Severity,
    /// The topic.
    pub topic: Topic,
    /// The line in the file; 0 without a line.
    pub line: usize,
    /// Column in the file.
    pub column: usize,
    /// The tenant; empty without a tenant.
    pub tenant: String,
    /// The text.
    pub message: String,
}

/// The result of [`check`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The file name that the user gave.
    pub file: String,
    /// The number of tenants.
    pub tenants: usize,
    /// The number of flowspace entries.
    pub entries: usize,
    /// The remarks, by position in the file.
    pub remarks: Vec<Remark>,
    /// The number of overlaps beyond the first [`MAX_OVERLAPS`], which are not listed.
    pub overlaps_left_off: usize,
}

/// The most overlaps that are listed. The number of overlaps can be the square of the number of entries.
pub const MAX_OVERLAPS: usize = 200;

/// The most notes of one topic in the text; the data has all notes.
const MAX_NOTES: usize = 20;

/// The most parts of an entry in the check whether other entries cover it; beyond this number the entry counts as
/// reachable.
const PIECES: usize = 256;

impl Report {
    /// The number of findings.
    pub fn findings(&self) -> usize {
        self.remarks.iter().filter(|remark| remark.severity == Severity::Finding).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut notes: BTreeMap<Topic, usize> = BTreeMap::new();
        for Remark { severity, topic, line, column, tenant, message } in &self.remarks {
            if *severity == Severity::Note {
                let count = notes.entry(*topic).or_default();
                *count += 1;
                if *count > MAX_NOTES {
                    continue;
                }
            }
            write!(f, "{}", self.file)?;
            if *line > 0 {
                write!(f, ":{line}:{column}")?;
            }
            write!(f, ": {}: ", if *severity == Severity::Finding { "finding" } else { "note" })?;
            if !tenant.is_empty() {
                write!(f, "{tenant}: ")?;
            }
            writeln!(f, "{message}")?;
        }
        let left_off: usize = notes.values().map(|count| count.saturating_sub(MAX_NOTES)).sum();
        if left_off > 0 {
            writeln!(f, "{}: and {left_off} more notes of these kinds; --json has all", self.file)?;
        }
        if self.overlaps_left_off > 0 {
            writeln!(f, "{}: and {} more overlaps", self.file, self.overlaps_left_off)?;
        }
        let findings = self.findings();
        let notes = self.remarks.len() - findings;
        let count =
            |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        write!(
            f,
            "{}: {}, {}: {}, {}",
            self.file,
            count(self.tenants, "tenant", "tenants"),
            count(self.entries, "flowspace entry", "flowspace entries"),
            count(findings, "finding", "findings"),
            count(notes, "note", "notes"),
        )
    }
}

/// Examines a configuration.
pub fn check(config: &Config) -> Report {
    let mut checker = Checker::new(config);
    checker.process();
    checker.pins();
    checker.sheets();
    checker.agents();
    checker.tenants();
    checker.overlaps();
    checker.unreachable();
    checker.openflow10();
    checker.trunks();
    checker.shared_ports();
    checker.networks();
    let Checker { mut remarks, overlaps_left_off, .. } = checker;
    remarks.sort_by_key(|remark| (remark.line, remark.column, remark.topic));
    let entries = config.tenants.iter().map(|tenant| tenant.flowspace.len()).sum();
    Report {
        file: config.file.clone(),
        tenants: config.tenants.len(),
        entries,
        remarks,
        overlaps_left_off,
    }
}

/// An entry with its owner and its place in the order that breaks ties.
#[derive(Clone, Copy)]
struct Owned<'a> {
    tenant: &'a Tenant,
    owner: usize,
    order: usize,
    entry: &'a Entry,
}

impl Owned<'_> {
    /// Whether this entry owns the packets that both entries match.
    fn beats(&self, other: &Owned<'_>) -> bool {
        (self.entry.priority, other.order) > (other.entry.priority, self.order)
    }

    fn named(&self) -> String {
        let text = if self.entry.text.is_empty() { "everything" } else { &self.entry.text };
        format!(
            "\"{}\" in line {} ({text}, priority {})",
            self.tenant.name, self.entry.at.line, self.entry.priority
        )
    }
}

struct Checker<'a> {
    config: &'a Config,
    writes: Vec<Owned<'a>>,
    reads: Vec<Owned<'a>>,
    index: Classifier<usize>,
    remarks: Vec<Remark>,
    overlaps_left_off: usize,
}

impl<'a> Checker<'a> {
    fn new(config: &'a Config) -> Self {
        let all = config.tenants.iter().enumerate().flat_map(|(owner, tenant)| {
            tenant.flowspace.iter().map(move |entry| (owner, tenant, entry))
        });
        let all = all.enumerate().map(|(order, (owner, tenant, entry))| Owned {
            tenant,
            owner,
            order,
            entry,
        });
        let (writes, reads): (Vec<_>, Vec<_>) =
            all.partition(|owned| owned.entry.permission == Permission::Write);
        let mut index = Classifier::new();
        for (i, owned) in writes.iter().enumerate() {
            index.insert(owned.entry.match_, u32::from(owned.entry.priority), i);
        }
        Checker { config, writes, reads, index, remarks: Vec::new(), overlaps_left_off: 0 }
    }

    fn say(
        &mut self,
        severity: Severity,
        topic: Topic,
        at: Position,
        tenant: &str,
        message: String,
    ) {
        let (line, column) = (at.line, at.column);
        self.remarks.push(Remark {
            severity,
            topic,
            line,
            column,
            tenant: tenant.to_owned(),
            message,
        });
    }

    fn process(&mut self) {
        self.access();
        if let Some(tls) = &self.config.tls {
            self.files("tls", tls.files(), &tls.certificate);
        }
    }

    /// Reports files of a section that cannot be read, and a certificate that expires.
    fn files<'p>(
        &mut self,
        section: &str,
        files: impl Iterator<Item = &'p PathBuf>,
        certificate: &Path,
    ) {
        let nowhere = Position::default();
        for path in files {
            if let Err(error) = std::fs::File::open(path) {
                let message = format!("[{section}]: {} cannot be read: {error}", path.display());
                self.say(Severity::Finding, Topic::TlsFile, nowhere, "", message);
            }
        }
        if let Ok(Some(not_after)) = channel::certificates_not_after(certificate)
            && let Some(warning) = expiry::warning(not_after, now())
        {
            let path = certificate.display();
            let message = format!("[{section}]: the certificate {path} {warning}");
            self.say(Severity::Finding, Topic::Certificate, nowhere, "", message);
        }
    }

    /// Without `--state` pins are forgotten, which the file does not say.
    fn pins(&mut self) {
        let is_pinned = |switch: &&Listed| switch.certificate == Some(Certificate::Pin);
        if let Some(first) = self.config.switches.iter().find(is_pinned) {
            let message = "the first certificate of such switches is pinned; pins outlast Weir only with `weir serve --state`".to_owned();
            self.say(Severity::Note, Topic::Pin, first.at, "", message);
        }
    }

    /// Whether agents can be listened to, and what nobody measures.
    fn agents(&mut self) {
        let Some(agents) = &self.config.agents else { return };
        if let Err(message) = crate::agents::load_key(&agents.key) {
            self.say(Severity::Finding, Topic::Agents, Position::default(), "", message);
        }
        let count = agents.servers.len();
        for tenant in &self.config.tenants {
            for vnic in tenant.vnics.iter().filter(|vnic| vnic.agent.is_none()) {
                let message = format!(
                    "virtual interface {}: it names none of {count} agents, so its flows count as what it bought",
                    vnic.mac
                );
                self.say(Severity::Note, Topic::Agents, vnic.at, &tenant.name, message);
            }
        }
    }

    fn tenants(&mut self) {
        let mut controllers: BTreeMap<Address, Vec<&Tenant>> = BTreeMap::new();
        if self.config.tenants.is_empty() {
            let message = "there is no tenant: nobody will see a switch".to_owned();
            self.say(Severity::Finding, Topic::Incomplete, Position::default(), "", message);
        }
        for tenant in &self.config.tenants {
            if tenant.flowspace.is_empty() && tenant.network.is_none() {
                let message =
                    "has no flowspace: its controllers will see switches without ports".to_owned();
                self.say(Severity::Finding, Topic::Incomplete, tenant.at, &tenant.name, message);
            }
            if tenant.controllers.is_empty() {
                let message = "has no controller: its packets will be dropped".to_owned();
                self.say(Severity::Finding, Topic::Incomplete, tenant.at, &tenant.name, message);
            }
            if !tenant.experimenters.is_empty() {
                let ids = tenant.experimenters.iter().map(|id| format!("{id:#010x}"));
                let ids = ids.collect::<Vec<_>>().join(", ");
                let message = format!(
                    "what it does by messages and actions of {ids} is not confined: the switch gets them as they are"
                );
                self.say(Severity::Note, Topic::Experimenters, tenant.at, &tenant.name, message);
            }
            for address in &tenant.controllers {
                let named = controllers.entry(*address).or_default();
                if named.last().is_some_and(|last| last.name == tenant.name) {
                    let message = format!("names its controller {address} twice");
                    let topic = Topic::SharedController;
                    self.say(Severity::Finding, topic, tenant.at, &tenant.name, message);
                } else {
                    named.push(tenant);
                }
            }
        }
        // One remark for all tenants that share the controller: further remarks would repeat the first.
        for (address, tenants) in controllers {
            let [first, tenant, more @ ..] = tenants.as_slice() else { continue };
            let others = [*first].into_iter().chain(more.iter().copied());
            let others: Vec<&str> = others.map(|other| other.name.as_str()).collect();
            let message = format!("shares its controller {address} with {}", quoted(&others));
            let topic = Topic::SharedController;
            self.say(Severity::Note, topic, tenant.at, &tenant.name, message);
        }
        for read in self.reads.clone() {
            self.read_only(&read);
        }
    }

    fn read_only(&mut self, read: &Owned<'_>) {
        let mut seen: Vec<&str> = self
            .sharing(read)
            .filter(|other| other.owner != read.owner)
            .map(|other| other.tenant.name.as_str())
            .collect();
        seen.sort_unstable();
        seen.dedup();
        let message = match seen.as_slice() {
            [] => "read-only, and no other tenant owns what it matches".to_owned(),
            names => format!("read-only: sees PACKET_INs and statistics of {}", quoted(names)),
        };
        self.say(Severity::Note, Topic::ReadOnly, read.entry.at, &read.tenant.name, message);
    }

    /// Write entries that share packets with this entry on some switch (including the entry itself, if it is a write
    /// entry).
    fn sharing(&self, owned: &Owned<'a>) -> impl Iterator<Item = &Owned<'a>> {
        let (entry, found) = (owned.entry, self.index.overlapping(&owned.entry.match_));
        let found = found.filter_map(|hit| self.writes.get(*hit.value));
        found.filter(move |other| share_a_switch(&other.entry.switches, &entry.switches))
    }

    fn overlaps(&mut self) {
        let mut listed = 0;
        for owned in self.writes.clone() {
            let pairs = self
                .sharing(&owned)
                .filter(|other| other.owner != owned.owner && other.beats(&owned));
            // Ordered by the place of the winner, so that the report is the same each time.
            let winners: BTreeMap<usize, Owned<'_>> =
                pairs.map(|winner| (winner.order, *winner)).collect();
            for winner in winners.values() {
                if listed == MAX_OVERLAPS {
                    self.overlaps_left_off += 1;
                    continue;
                }
                listed += 1;
                self.overlap(winner, &owned);
            }
        }
    }

    fn overlap(&mut self, winner: &Owned<'_>, loser: &Owned<'_>) {
        let shared =
            winner.entry.match_.intersect(&loser.entry.match_).unwrap_or(winner.entry.match_);
        let shared = printed(&shared);
        let (severity, topic, why) = if winner.entry.priority == loser.entry.priority {
            (
                Severity::Finding,
                Topic::EqualPriority,
                "only by its place in the file: give one a higher priority",
            )
        } else {
            (Severity::Note, Topic::Overlap, "by its priority")
        };
        let message =
            format!("overlaps {}, which owns what both match ({shared}) {why}", winner.named());
        self.say(severity, topic, loser.entry.at, &loser.tenant.name, message);
    }

    fn unreachable(&mut self) {
        for owned in self.writes.clone() {
            let mut above: Vec<Owned<'_>> = self
                .sharing(&owned)
                .filter(|other| other.order != owned.order && other.beats(&owned))
                .filter(|other| includes(&other.entry.switches, &owned.entry.switches))
                .copied()
                .collect();
            above.sort_by_key(|other| (std::cmp::Reverse(other.entry.priority), other.order));
            let matches = above.iter().map(|other| &other.entry.match_);
            if !covered_by(&owned.entry.match_, matches, PIECES) {
                continue;
            }
            let mut owners: Vec<&str> =
                above.iter().map(|other| other.tenant.name.as_str()).collect();
            owners.sort_unstable();
            owners.dedup();
            let (at, tenant) = (owned.entry.at, owned.tenant.name.as_str());
            let message = match owners == [tenant] {
                true => {
                    "changes nothing: entries of the same tenant above it match all of its packets"
                        .to_owned()
                }
                false => {
                    let owners = quoted(&owners);
                    format!("owns no packet: entries above it, of {owners}, match all of them")
                }
            };
            self.say(Severity::Finding, Topic::Unreachable, at, tenant, message);
        }
    }

    fn openflow10(&mut self) {
        for owned in self.writes.iter().chain(&self.reads).copied().collect::<Vec<_>>() {
            if let Err(error) = owned.entry.match_.to_v10() {
                let message = format!("has no effect on OpenFlow 1.0 switches: {error}");
                let (at, tenant) = (owned.entry.at, &owned.tenant.name);
                self.say(Severity::Note, Topic::OpenFlow10, at, tenant, message);
            }
        }
    }
}

fn share_a_switch(a: &Switches, b: &Switches) -> bool {
    match (a, b) {
        (Switches::Only(a), Switches::Only(b)) => a.iter().any(|dpid| b.contains(dpid)),
        (Switches::Any, Switches::Only(some)) | (Switches::Only(some), Switches::Any) => {
            !some.is_empty()
        }
        (Switches::Any, Switches::Any) => true,
    }
}

/// Whether `outer` contains every switch of `inner`.
fn includes(outer: &Switches, inner: &Switches) -> bool {
    match (outer, inner) {
        (Switches::Any, _) => true,
        (Switches::Only(_), Switches::Any) => false,
        (Switches::Only(outer), Switches::Only(inner)) => {
            inner.iter().all(|dpid| outer.contains(dpid))
        }
    }
}

fn printed(match_: &Match) -> String {
    let text = match_.to_string();
    if text.is_empty() { "everything".to_owned() } else { text }
}

fn quoted(names: &[&str]) -> String {
    some_of(names.iter().map(|name| format!("\"{name}\"")).collect())
}

/// The first of these, and the number of the others.
fn some_of(mut all: Vec<String>) -> String {
    const SHOWN: usize = 5;
    if all.len() > SHOWN {
        let others = all.len() - SHOWN;
        all.truncate(SHOWN);
        all.push(format!("{others} others"));
    }
    all.join(", ")
}

#[cfg(test)]
mod tests;
