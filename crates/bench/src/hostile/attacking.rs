//! Runs an attack during a run of the load.

use super::attack::Attack;
use super::crowd::Crowd;
use super::orders::Orders;
use super::refusals::{self, Reached};
use super::watch::Watcher;
use crate::Error;
use crate::cpus::Cpus;
use crate::measure::Collector;
use crate::plan::{Setup, Topology};
use crate::session::Controllers;
use crate::system::Target;
use report::Better;
use std::net::SocketAddr;
use std::time::Duration;

/// The time that a real switch has to delete the rules of the previous case.
const SETTLING: Duration = Duration::from_secs(1);

/// The finding about an attack on the REST interface that reached no limit.
const NO_LIMIT: &str = "no-limit-reached";

/// An attack during a run.
#[derive(Debug)]
pub(crate) struct Attacking {
    attack: Attack,
    crowd: Crowd,
    watcher: Option<Watcher>,
    since: std::time::Instant,
    before: u64,
    /// The REST interface, if the attack includes the interface, and its refused clients before the
    /// attack.
    refused: Option<(SocketAddr, Option<f64>)>,
}

impl Attacking {
    /// Takes all controllers except the first. The hostile tenants behave well until the attack
    /// begins.
    pub(crate) fn prepare(
        (attack, rules): (Attack, u32),
        setup: &Setup,
        controllers: &mut Controllers,
        target: &Target,
    ) -> Result<Self, Error> {
        let Some(switch_address) = target.switch_address else {
            let why = "hostile tenants need a hypervisor: there is none";
            return Err(Error::System(why.to_owned()));
        };
        // Real switches use any CPU, so the generator uses any CPU, too.
        let is_real = matches!(target.topology, Topology::Interfaces { .. });
        let cpus = Cpus::of(setup).filter(|_| !is_real);
        let (api, setup) = (target.api, setup.clone());
        let orders = Orders { attack, rules, switch_address, api, cpus, setup };
        let crowd = Crowd::start(orders, controllers.split_off(1))?;
        let since = std::time::Instant::now();
        Ok(Self { attack, crowd, watcher: None, since, before: 0, refused: None })
    }

    /// Begins the attack when all switches and controllers are connected.
    pub(crate) fn begin(&mut self, target: &Target) -> Result<(), Error> {
        if matches!(target.topology, Topology::Interfaces { .. }) {
            std::thread::sleep(SETTLING);
        }
        let api = target.api.filter(|_| self.attack.includes(Attack::Api));
        self.refused = api.map(|api| (api, refusals::so_far(api)));
        self.crowd.attack()?;
        self.before = self.crowd.done();
        self.since = std::time::Instant::now();
        let log = target.log().map(ToOwned::to_owned);
        self.watcher = Watcher::start(target.pids.clone(), target.api, log);
        Ok(())
    }

    /// Ends the attack. The observations go to `collector`, if the run counts.
    pub(crate) fn finish(mut self, collector: Option<&mut Collector>) {
        let seen = self.watcher.take().map(Watcher::finish).unwrap_or_default();
        let done = (self.crowd.done() - self.before) as f64;
        let lasted = self.since.elapsed().as_secs_f64();
        let Some(collector) = collector else { return };
        // The hostile clients of the REST interface end first, so that the client that reads the
        // counter gets a connection.
        drop(self.crowd);
        let reached =
            self.refused.map(|(api, before)| Reached::between(before, refusals::so_far(api)));
        let mut sample = |name, unit, value: Option<f64>| {
            if let Some(value) = value {
                collector.sample(name, unit, Better::Lower, value);
            }
        };
        sample("attacks_per_s", "1/s", Some(done / lasted.max(1e-3)));
        sample("descriptors", "", seen.descriptors.map(|count| count as f64));
        sample("log_lines_per_s", "1/s", seen.log_lines_per_s);
        let health = seen.health.as_ref();
        sample("health_unanswered", "", health.map(|health| health.unanswered as f64));
        sample("health_max_ms", "ms", health.map(|health| health.slowest.as_secs_f64() * 1e3));
        let Some(reached) = reached else { return };
        if let Some(refused) = reached.refused {
            collector.sample("api_refused", "", Better::Neither, refused);
        }
        // The attack on the REST interface is judged alone, because each attack is slower beside
        // other attacks.
        if let Some(fault) = reached.fault.filter(|_| self.attack == Attack::Api) {
            collector.remark(NO_LIMIT, fault);
        }
    }
}
