//! One run of one case: a fresh system, the start of a network on this system, and in some cases the failure of a link.

use super::case::{Case, Phase, Provisioning};
use super::fabric::{Changed, Fabric};
use super::shape::{Shape, Wanted, crossing};
use super::tenant::{Listening, Tenant};
use crate::error::Error;
use crate::observe;
use crate::plan::{Setup, Topology};
use crate::rest;
use crate::system::{Target, start_weir};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

/// The time without a change after which tables are complete.
const QUIET: Duration = Duration::from_millis(700);
/// The longest wait for any event. This limit is far above the limits of the criteria, so that a slow system has
/// figures, too.
const LIMIT: Duration = Duration::from_secs(60);
/// The only tenant.
const TENANT: &str = "tenant0";
const NETWORK: &str = "/api/v1/networks/tenant0";

/// The result of a run.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The figures by name, with units in their names; `None` for an event that did not occur.
    pub(super) figures: Vec<(&'static str, Option<f64>)>,
    /// CPU time by thread of the system under test in ms, and of this program.
    pub(super) cpu: BTreeMap<String, f64>,
    /// The faults in the final state.
    pub(super) wrong: Vec<String>,
}

/// A system with connected switches and a known topology, and a tenant without a network.
struct Stage {
    // The fields are dropped in this order: the switches first, so that the system sees their connections close.
    fabric: Fabric,
    tenant: Tenant,
    target: Target,
    api: SocketAddr,
    shape: Shape,
}

/// The used CPU time at one moment.
struct Cpu {
    of: Vec<(&'static str, u32)>,
    before: BTreeMap<String, u64>,
}

pub(super) fn run(plan: &Provisioning, case: Case, seed: u64, dir: &Path) -> Result<Found, Error> {
    let mut stage = Stage::set(plan, dir)?;
    let found = match case.phase {
        Phase::Start => {
            let wanted = Wanted::anywhere(&stage.shape, plan.links, case.backups, seed);
            stage.start(plan, &wanted)
        }
        Phase::Reroute => {
            let wanted = Wanted::across(&stage.shape, plan.reroute, case.backups);
            stage.reroute(plan, &wanted)
        }
    };
    if !stage.target.is_alive() {
        return Err(Error::System("it ended during the run".to_owned()));
    }
    found
}

impl Stage {
    fn set(plan: &Provisioning, dir: &Path) -> Result<Stage, Error> {
        std::fs::create_dir_all(dir).map_err(Error::io(dir.display().to_string()))?;
        // The state that an earlier run stored is removed.
        let _ = std::fs::remove_dir_all(dir.join("state"));
        let shape = Shape::new(plan.switches);
        let listening = Listening::bind()?;
        let setup = Setup { version: plan.version, ..Setup::new(Topology::Direct, 1) };
        let extra = shape.declared();
        let what = (plan.command.as_slice(), extra.as_str(), crate::Tenancy::Nothing);
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let target = start_weir(what, &setup, &[listening.address()], dir, loopback)?;
        let (Topology::Shared { switch_address, .. }, Some(api)) = (&target.topology, target.api)
        else {
            return Err(Error::Internal("a hypervisor without addresses"));
        };
        let fabric = Fabric::raise(&shape, plan.version, *switch_address)?;
        let tenant = listening.start(plan.version, fabric.clock())?;
        let stage = Stage { fabric, tenant, target, api, shape };
        stage.wait_for_links()?;
        stage.fabric.settle(QUIET, LIMIT);
        Ok(stage)
    }

    fn wait_for_links(&self) -> Result<(), Error> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let topology = self.ask("GET", "/api/v1/topology", None)?;
            let links = topology.get("links").and_then(Value::as_array);
            let is_up = |link: &&Value| link.get("up").and_then(Value::as_bool) == Some(true);
            let up = links.map_or(0, |links| links.iter().filter(is_up).count());
            if up == self.shape.links() {
                return Ok(());
            }
            if Instant::now() > deadline {
                let wanted = self.shape.links();
                return Err(Error::System(format!("it knows {up} of {wanted} links")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        let (status, answer) =
            rest::ask(self.api, method, path, body, LIMIT).map_err(Error::System)?;
        if status == 200 {
            return Ok(answer);
        }
        let mut said = answer.to_string();
        if let Some((cut, _)) = said.char_indices().nth(300) {
            said.truncate(cut);
        }
        Err(Error::System(format!("{method} {path}: status {status}: {said}")))
    }

    /// Measures the time from the request until the request is answered, all rules are in the tables, and the tenant
    /// sees all ports up.
    fn start(&self, plan: &Provisioning, wanted: &Wanted) -> Result<Found, Error> {
        let document = wanted.document();
        self.tenant.want(wanted.switches(), wanted.ports());
        self.fabric.forget();
        let cpu = Cpu::look(&self.target);
        let began = self.fabric.now();
        self.ask("PUT", NETWORK, Some(&document))?;
        let replied = self.fabric.now();
        let changed = self.settle_started()?;
        let used = cpu.since();
        let ms = |at: u64| at.saturating_sub(began) as f64 / 1e6;
        let seen = self.tenant.view();
        let rules = (changed.open == 0 && changed.changes > 0).then(|| ms(changed.done));
        let ports = seen.complete.map(ms);
        let mut found = Found { cpu: used, ..Found::default() };
        found.figures = vec![
            ("total ms", rules.zip(ports).map(|(rules, ports)| rules.max(ports))),
            ("reply ms", Some(ms(replied))),
            ("first rule ms", changed.first.map(ms)),
            ("rules ms", rules),
            ("controller ms", ports),
        ];
        found.count(changed);
        if ports.is_none() {
            let (switches, ports) = seen.counts();
            found.wrong.push(format!(
                "the tenant sees {switches} of {} switches and {ports} of {} ports up",
                wanted.switches(),
                wanted.ports()
            ));
        }
        let view = self.check(plan, wanted, &mut found)?;
        let nowhere = crossing(&view, self.shape.trunk()[0]).1;
        if nowhere > 0 {
            found.wrong.push(format!("{nowhere} links have no path"));
        }
        self.tenant.install(wanted.rules(plan.version), LIMIT)?;
        self.deliver(wanted, &mut found)?;
        Ok(found)
    }

    /// Measures the time from the failure of the trunk until all rules of the new paths are in the tables.
    fn reroute(&self, plan: &Provisioning, wanted: &Wanted) -> Result<Found, Error> {
        self.tenant.want(wanted.switches(), wanted.ports());
        self.ask("PUT", NETWORK, Some(&wanted.document()))?;
        self.settle_started()?;
        self.tenant.install(wanted.rules(plan.version), LIMIT)?;
        self.fabric.settle(QUIET, LIMIT);
        let mut found = Found::default();
        self.deliver(wanted, &mut found)?;
        let trunk = self.shape.trunk()[0];
        let (crossed, _) = crossing(&self.ask("GET", NETWORK, None)?, trunk);
        self.fabric.settle(QUIET, LIMIT);
        self.fabric.forget();
        let cpu = Cpu::look(&self.target);
        let began = self.fabric.cut(trunk)?;
        let changed = self.fabric.settle(QUIET, LIMIT);
        found.cpu = cpu.since();
        let ms = |at: u64| at.saturating_sub(began) as f64 / 1e6;
        let rules = (changed.open == 0 && changed.changes > 0).then(|| ms(changed.done));
        found.figures = vec![
            ("total ms", rules),
            ("first rule ms", changed.first.map(ms)),
            ("last rule ms", (changed.changes > 0).then(|| ms(changed.last))),
        ];
        found.count(changed);
        let view = self.check(plan, wanted, &mut found)?;
        let (crossing, nowhere) = crossing(&view, trunk);
        found.figures.push(("moved", Some(crossed.saturating_sub(crossing) as f64)));
        if crossed != wanted.links.len() {
            found.wrong.push(format!("only {crossed} links crossed the one that failed"));
        }
        if crossing > 0 || nowhere > 0 {
            found.wrong.push(format!(
                "{crossing} links still cross the one that failed, and {nowhere} have no path"
            ));
        }
        let down = wanted.ports().saturating_sub(self.tenant.view().counts().1);
        if down > 0 {
            found.wrong.push(format!("{down} of the tenant's ports are down"));
        }
        self.deliver(wanted, &mut found)?;
        Ok(found)
    }

    /// Waits until the tables do not change any more and the tenant sees all switches and ports.
    fn settle_started(&self) -> Result<Changed, Error> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let changed = self.fabric.settle(QUIET, LIMIT);
            if self.tenant.view().complete.is_some() || Instant::now() > deadline {
                return Ok(changed);
            }
        }
    }

    /// Checks whether the tables have the entries that the paths need, and returns the paths.
    fn check(
        &self,
        plan: &Provisioning,
        wanted: &Wanted,
        found: &mut Found,
    ) -> Result<Value, Error> {
        let view = self.ask("GET", NETWORK, None)?;
        let tagged = Wanted::tagged(&view, plan.version);
        let count = tagged.len();
        let (entries, missing) = self.fabric.entries(tagged)?;
        found.figures.push(("entries", Some(entries as f64)));
        if missing > 0 || count < wanted.links.len() {
            found.wrong.push(format!("the switches lack {missing} of {count} entries for tags"));
        }
        Ok(view)
    }

    /// Sends a packet over each link in each direction.
    fn deliver(&self, wanted: &Wanted, found: &mut Found) -> Result<(), Error> {
        let packets = wanted.packets();
        let count = packets.len();
        let delivered = self.fabric.deliver(packets)?;
        if delivered < count {
            found.wrong.push(format!(
                "{delivered} of {count} packets, one for each direction of each link of {TENANT}, arrived"
            ));
        }
        Ok(())
    }
}

impl Found {
    fn count(&mut self, changed: Changed) {
        self.figures.push(("changes", Some(changed.changes as f64)));
        self.figures.push(("switches changed", Some(changed.switches as f64)));
        if changed.open > 0 {
            self.wrong.push(format!("{} changes were never acknowledged", changed.open));
        }
        if changed.errors > 0 {
            self.wrong.push(format!("switches refused {} requests", changed.errors));
        }
    }
}

impl Cpu {
    fn look(target: &Target) -> Cpu {
        let system = target.pids.iter().map(|&pid| ("system", pid));
        let of: Vec<_> = system.chain([("generator", std::process::id())]).collect();
        let before = now(&of);
        Cpu { of, before }
    }

    /// The CPU time since this moment, in ms: for each thread of the system by name, and for this program as a whole.
    fn since(&self) -> BTreeMap<String, f64> {
        let after = now(&self.of);
        let used = after.into_iter().map(|(name, after)| {
            let before = self.before.get(&name).copied().unwrap_or(0);
            (name, after.saturating_sub(before) as f64 / 1e6)
        });
        used.collect()
    }
}

fn now(of: &[(&'static str, u32)]) -> BTreeMap<String, u64> {
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    for &(who, pid) in of {
        for (thread, ns) in observe::cpu_by_thread(pid) {
            let name = if who == "system" { format!("{who} {thread}") } else { who.to_owned() };
            *all.entry(name).or_default() += ns;
        }
    }
    all
}
