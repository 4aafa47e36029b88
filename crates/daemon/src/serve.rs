//! The daemon as a whole: listeners, shards and store, started together, reconfigured as one, stopped together.

use crate::admission::{Admission, Unlisted};
use crate::agents::{self, Agents};
use crate::big_switches;
use crate::config::{Certificate, Config};
use crate::descriptors::{self, Descriptors};
use crate::identity::Identity;
use crate::memory;
use crate::metrics::Registry;
use crate::networks::{ChangeError, Control, Networks};
use crate::pins::Pins;
use crate::refused::Refused;
use crate::shard::shown::Reader;
use crate::shard::{Command, Handle, Setup, SetupError, Shard, Snapshot};
use crate::store::{Documents, Quota, Store, StoreError};
use crate::threads::{Priority, Thread};
use crate::topology::{self, Inbox, LabelFeed, Topology, Watch};
use channel::{Address, Listener, Options, Scheme};
pub use hypervisor::Installation;
use hypervisor::{LldpKey, Settings, TenantId};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Instant;

/// The options of `weir serve` outside the configuration file.
#[derive(Clone, Debug, Default)]
pub struct ServeOptions {
    /// The state folder; without it no state survives the process.
    pub state: Option<PathBuf>,
    /// A backup that fills the state folder first; the folder must have no state.
    pub restore: Option<PathBuf>,
    /// Event loops; 0 is one per core.
    pub threads: usize,
    /// A lost installation in whose place the state is made first, which must not be there.
    pub adopts: Option<Installation>,
    /// The other installation whose rules are deleted from switches that connect.
    pub takes_over: Option<Installation>,
}

/// A running hypervisor.
pub struct Daemon {
    shards: Vec<Handle>,
    threads: Vec<Thread>,
    topology: Topology,
    networks: Networks,
    agents: Agents,
    joiner: big_switches::Joiner,
    store: Store,
    metrics: Arc<Registry>,
    addresses: Vec<Address>,
    descriptors: Descriptors,
    pins: Pins,
}

impl Daemon {
    /// Starts to serve. When this returns, switches can connect.
    pub fn start(config: &Config, options: &ServeOptions) -> Result<Daemon, StartError> {
        memory::use_small_pages();
        let metrics = Registry::new();
        let descriptors = Descriptors::new(descriptors::raise());
        if let (Some(dir), Some(backup)) = (&options.state, &options.restore) {
            Store::restore(dir, backup).map_err(StartError::Store)?;
            tracing::info!(backup = %backup.display(), "the state was restored");
        }
        if let (Some(dir), Some(installation)) = (&options.state, options.adopts) {
            Store::adopt(dir, installation).map_err(StartError::Store)?;
            tracing::info!(%installation, "the state takes the place of a lost one");
        }
        let store = match &options.state {
            Some(dir) => Store::open(dir, config.store.sync, metrics.clone()),
            None => Store::memory(),
        }
        .map_err(StartError::Store)?;
        let pins = Pins::load(store.documents()).map_err(StartError::Store)?;
        if options.state.is_none() && pins_any(config) {
            tracing::warn!(
                "pinned certificates of switches last until Weir ends: there is no --state"
            );
        }
        let (ids, identity) = identity(config, &store)?;
        metrics.process.certificate_not_after.set(identity.not_after());
        let listeners = config
            .listen
            .openflow
            .iter()
            .map(|address| {
                let tls = identity.switches.as_ref().filter(|_| address.scheme == Scheme::Ssl);
                Listener::bind(address, tls, Options::default()).map_err(StartError::Channel)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let addresses = listeners.iter().map(Listener::address).collect();
        let (origin, inbox) = (Instant::now(), Arc::new(Inbox::default()));
        let lldp = LldpKey(store.secret());
        let mut snapshot = snapshot(config, &ids, identity);
        let following = topology::Setup::new(config, snapshot.policy.clone());
        let (joiner, handle) = big_switches::Prepared::new(origin).map_err(StartError::Channel)?;
        let refused = Arc::new(Refused::default());
        let mut networks = Networks::prepare(
            config,
            &mut snapshot,
            following.clone(),
            store.documents(),
            inbox.clone(),
            handle.clone(),
            refused.clone(),
        )
        .map_err(StartError::Networks)?;
        let measuring = agents::Setup::new(config, &ids).map_err(StartError::Key)?;
        handle.plan(&snapshot.policy);
        let setup = Setup {
            snapshot,
            lldp,
            takes_over: options.takes_over,
            adopts: store.adopts().map_err(StartError::Store)?,
            origin,
            // A store in memory confirms changes at once.
            volatile: options.state.is_none(),
            metrics: metrics.clone(),
            topology: inbox.clone(),
            joiner: handle,
            refused,
            descriptors: descriptors.clone(),
            unlisted: Unlisted::default(),
            pins: pins.clone(),
        };
        let count = match options.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        };
        let mut shards = Vec::with_capacity(count);
        let mut handles = Vec::with_capacity(count);
        for number in 0..count {
            let (shard, handle) =
                Shard::new(number, setup.clone(), &store).map_err(StartError::Setup)?;
            shards.push(shard);
            handles.push(handle);
        }
        if let Some(first) = shards.first_mut() {
            for listener in listeners {
                first.listen(listener).map_err(StartError::Setup)?;
            }
        }
        let no_thread = |error| StartError::Setup(SetupError::Thread(error));
        let mut threads = Vec::with_capacity(count);
        for (number, mut shard) in shards.into_iter().enumerate() {
            shard.set_peers(handles.clone());
            let thread =
                Thread::start(&format!("shard-{number}"), Priority::Normal, move || shard.run())
                    .map_err(no_thread)?;
            threads.push(thread);
        }
        let agents =
            Agents::start(measuring, inbox.clone(), metrics.clone()).map_err(StartError::Agents)?;
        let joiner = joiner.start(handles.clone()).map_err(no_thread)?;
        let topology =
            Topology::start(following, lldp, origin, inbox, handles.clone(), metrics.clone())
                .map_err(no_thread)?;
        networks.start(topology.watch(), handles.clone()).map_err(no_thread)?;
        Ok(Daemon {
            topology,
            networks,
            agents,
            joiner,
            shards: handles,
            threads,
            store,
            metrics,
            addresses,
            descriptors,
            pins,
        })
    }

    /// The addresses for switches, with the real ports if the configuration has port 0.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// The file descriptors and their users.
    pub fn descriptors(&self) -> Descriptors {
        self.descriptors.clone()
    }

    /// The stored documents.
    pub fn documents(&self) -> Documents {
        self.store.documents()
    }

    /// Pinned certificates of switches.
    pub fn pins(&self) -> Pins {
        self.pins.clone()
    }

    /// What is counted.
    pub fn metrics(&self) -> Arc<Registry> {
        self.metrics.clone()
    }

    /// The known physical network, and its changes.
    pub fn topology(&self) -> Watch {
        self.topology.watch()
    }

    /// The link labels of tenants.
    pub fn labels(&self) -> LabelFeed {
        self.topology.label_feed()
    }

    /// The tenants' own networks.
    pub fn networks(&self) -> Control {
        self.networks.control()
    }

    /// Applies a new configuration as a whole, or keeps the old one.
    pub fn apply(&self, config: &Config) -> Result<(), StartError> {
        let (ids, identity) = identity(config, &self.store)?;
        let until = identity.not_after();
        let snapshot = snapshot(config, &ids, identity);
        let following = topology::Setup::new(config, snapshot.policy.clone());
        let measuring = agents::Setup::new(config, &ids).map_err(StartError::Key)?;
        // The networks inform the shards and the topology.
        self.networks.configure(config, snapshot, following).map_err(StartError::Networks)?;
        self.agents.configure(measuring);
        self.metrics.process.certificate_not_after.set(until);
        let is_configured = |name: &str| config.tenants.iter().any(|tenant| tenant.name == name);
        self.metrics.totals.keep(is_configured);
        Ok(())
    }

    /// A function that asks the shards for a sign of life, from any thread: it returns the number of connected
    /// switches, if all shards answer in time.
    pub fn pulse(&self) -> impl Fn(std::time::Duration) -> Option<usize> + Send + Sync + 'static {
        let shards = self.shards.clone();
        move |within| ping(&shards, within)
    }

    /// A reader of the data in the shards' cores, for any thread.
    pub fn reader(&self) -> Reader {
        Reader::new(&self.shards)
    }

    /// Closes all connections and ends. Rules stay on the switches.
    pub fn stop(self) {
        drop(self.agents);
        drop(self.networks);
        drop(self.topology);
        drop(self.joiner);
        for shard in &self.shards {
            shard.send(Command::Stop);
        }
        self.threads.into_iter().for_each(Thread::join);
        // Dropping the store writes the last changes.
        drop(self.store);
    }
}

/// Whether the certificate of any switch is to be pinned.
fn pins_any(config: &Config) -> bool {
    config.switches.iter().any(|switch| switch.certificate == Some(Certificate::Pin))
}

fn ping(shards: &[Handle], within: std::time::Duration) -> Option<usize> {
    let (sender, answers) = channel();
    let deadline = Instant::now() + within;
    for shard in shards {
        if !shard.send(Command::Ping(sender.clone())) {
            return None;
        }
    }
    let mut switches = 0;
    for _ in shards {
        let left = deadline.saturating_duration_since(Instant::now());
        switches += answers.recv_timeout(left).ok()?;
    }
    Some(switches)
}

/// The tenants' numbers, and Weir's identities.
fn identity(config: &Config, store: &Store) -> Result<(Vec<TenantId>, Identity), StartError> {
    let names: Vec<&str> = config.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
    let ids = store.tenant_ids(&names).map_err(StartError::Store)?;
    let quotas = ids
        .iter()
        .zip(&config.tenants)
        .map(|(id, tenant)| (*id, Quota { name: tenant.name.clone(), bytes: tenant.state_bytes }));
    store.set_quotas(quotas.collect());
    let identity = Identity::load(config, &ids).map_err(StartError::Channel)?;
    Ok((ids, identity))
}

fn snapshot(config: &Config, ids: &[TenantId], identity: Identity) -> Snapshot {
    let controllers = ids
        .iter()
        .zip(&config.tenants)
        .map(|(id, tenant)| (*id, tenant.controllers.clone()))
        .collect();
    let scheduler = &config.scheduler;
    let policy = Arc::new(config.policy(ids));
    Snapshot {
        tracks_flows: topology::Setup::new(config, policy.clone()).tracks_flows(),
        policy,
        controllers: Arc::new(controllers),
        settings: Settings {
            tenant_backlog: scheduler.tenant_backlog,
            controller_bytes: scheduler.controller_buffer,
            controller_bytes_limit: scheduler.controller_buffer_limit,
            switch_bytes: scheduler.switch_buffer,
            reply_timeout: scheduler.reply_timeout,
            ..Settings::default()
        },
        keepalive: config.keepalive,
        reconnect: config.reconnect,
        admission: Arc::new(Admission::new(config)),
        identity,
    }
}

/// The reason why the daemon cannot start, or cannot apply a configuration.
#[derive(Debug)]
pub enum StartError {
    /// The store.
    Store(StoreError),
    /// Weir cannot listen on an address, or cannot use a certificate.
    Channel(channel::Error),
    /// A shard cannot start.
    Setup(SetupError),
    /// The tenants' own networks.
    Networks(ChangeError),
    /// The agents' key cannot be used, in words.
    Key(String),
    /// Weir cannot listen to agents, or cannot start their thread.
    Agents(std::io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Store(error) => error.fmt(f),
            StartError::Channel(error) => error.fmt(f),
            StartError::Setup(error) => error.fmt(f),
            StartError::Networks(error) => error.fmt(f),
            StartError::Key(error) => error.fmt(f),
            StartError::Agents(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {}
