//! Connects both ends of the systems whose latency is compared: switch-only, Weir for 2 tenants, Weir for 20 tenants.
//!
//! With emulated switches, each system has its own switch. With Open vSwitch, each system has a bridge of the same
//! process:
//!
//! ```text
//!   h1 ── s1 ─────────────────► the generator's one controller
//!   h2 ── s2 ──► weir serve ──► the generator's 2 controllers
//!   h3 ── s3 ──► weir serve ──► the generator's 20 controllers
//! ```

use anyhow::Context;
use bench::system::{Target, weir_config};
use bench::{Controllers, DataPort, Session, Setup, Topology, Version};
use lab::programs::{Weir, own_program};
use lab::{FailMode, Lab, LabGuard};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;

/// The number of systems.
pub(crate) const SYSTEMS: usize = 3;

const TENANTS: [usize; 2] = [2, 20];

/// The longest time of all handshakes, in ms.
const HANDSHAKE_MS: u64 = 5_000;

/// The OpenFlow version and the folder of the comparison.
pub(crate) struct Place {
    pub(crate) version: openflow::Version,
    pub(crate) work: PathBuf,
}

impl Place {
    fn setup(&self, topology: Topology, tenants: usize) -> Setup {
        let version = match self.version {
            openflow::Version::V1_0 => Version::V1_0,
            _ => Version::V1_3,
        };
        Setup { version, handshake_ms: HANDSHAKE_MS, ..Setup::new(topology, tenants) }
    }

    fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.work.join(name);
        std::fs::create_dir_all(&folder).context("cannot make a folder for a measurement")?;
        Ok(folder)
    }
}

/// A system under test.
pub(crate) struct System {
    /// The name in results.
    pub(crate) name: &'static str,
    pub(crate) tenants: usize,
    /// The two ends of the system. The session is dropped before the owner of the system.
    pub(crate) session: Session,
    /// The processes to observe.
    pub(crate) pids: Vec<u32>,
    _owner: Owner,
}

/// The owner of the processes or of the lab that the system needs. These end with the system.
enum Owner {
    Emulated { _target: Target },
    Real { _weir: Option<Weir>, _lab: Rc<LabGuard> },
}

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Opens the systems with emulated switches.
pub(crate) fn emulated(place: &Place) -> anyhow::Result<Vec<System>> {
    let serve = vec![own_program()?.display().to_string(), "serve".to_owned()];
    let weir = bench::System::Weir {
        command: serve,
        extra: String::new(),
        tenancy: bench::Tenancy::default(),
    };
    let open = |system: &bench::System, name: &'static str, tenants: usize| {
        let controllers = Controllers::bind(tenants, SocketAddr::new(LOOPBACK, 0))?;
        let folder = place.folder(&format!("emulated-{name}-{tenants}"))?;
        let setup = place.setup(Topology::Direct, tenants);
        let target = system.start(&setup, &controllers, &folder, None)?;
        let setup = Setup { topology: target.topology.clone(), ..setup };
        let session = Session::open(setup, &controllers)?;
        let pids = target.pids.clone();
        anyhow::Ok(System {
            name,
            tenants,
            session,
            pids,
            _owner: Owner::Emulated { _target: target },
        })
    };
    let mut systems = vec![open(&bench::System::Direct, "direct", 1)?];
    for tenants in TENANTS {
        systems.push(open(&weir, "weir", tenants)?);
    }
    Ok(systems)
}

/// Opens the systems with Open vSwitch.
pub(crate) fn real(place: &Place) -> anyhow::Result<Vec<System>> {
    let lab = Rc::new(bridges(place.version)?);
    let here = lab.controller_address().context("the lab has no switch")?;
    let controllers = Controllers::bind(1, SocketAddr::new(here.into(), 0))?;
    let mut systems = vec![over(place, &lab, 1, &controllers, 1, None)?];
    for (number, tenants) in (2..).zip(TENANTS) {
        let controllers = Controllers::bind(tenants, SocketAddr::new(LOOPBACK, 0))?;
        let setup = place.setup(Topology::Direct, tenants);
        let switch_address = SocketAddr::new(here.into(), 0);
        let api = SocketAddr::new(LOOPBACK, 0);
        let config = weir_config(
            &setup,
            switch_address,
            api,
            controllers.addresses(),
            ("", bench::Tenancy::default()),
        );
        let weir = Weir::serve(&config, &place.folder(&format!("openvswitch-weir-{tenants}"))?)?;
        systems.push(over(place, &lab, number, &controllers, tenants, Some(weir))?);
    }
    Ok(systems)
}

/// Makes one bridge with one host for each system.
fn bridges(version: openflow::Version) -> anyhow::Result<LabGuard> {
    let mut topology = lab::Topology::builder();
    for number in 1..=SYSTEMS {
        let (switch, host) = (format!("s{number}"), format!("h{number}"));
        topology.switch(&switch)?;
        topology.host(&host)?;
        topology.link(&switch, &host, None)?;
    }
    let protocol = match version {
        openflow::Version::V1_0 => lab::Protocol::OPENFLOW10,
        _ => lab::Protocol::OPENFLOW13,
    };
    let options = lab::Options {
        name: Some(format!("demo{}", std::process::id())),
        protocols: vec![protocol],
        fail_mode: Some(FailMode::Secure),
        ephemeral: true,
        ..lab::Options::default()
    };
    Ok(LabGuard::new(Lab::up(&topology.build()?, &options)?))
}

/// Opens the system at bridge `number`: Weir, or switch-only.
fn over(
    place: &Place,
    lab: &Rc<LabGuard>,
    number: usize,
    controllers: &Controllers,
    tenants: usize,
    weir: Option<Weir>,
) -> anyhow::Result<System> {
    let own = controllers.addresses().first().context("no controller")?;
    let dialled = weir.as_ref().map_or(*own, Weir::address);
    let target: lab::Controller = format!("tcp:{dialled}").parse()?;
    lab.set_controllers_of(&[(&format!("s{number}"), &[target])])?;
    let port = DataPort {
        interface: "eth0".to_owned(),
        namespace: Some(lab.namespace(&format!("h{number}"))?),
        switch_port: 1,
    };
    let topology = Topology::Interfaces { ports: vec![port], switches: 1, dpid: 1 };
    let session = Session::open(place.setup(topology, tenants), controllers)?;
    let pids = weir.iter().map(Weir::id).collect();
    let name = if weir.is_some() { "weir" } else { "direct" };
    let _owner = Owner::Real { _weir: weir, _lab: Rc::clone(lab) };
    Ok(System { name, tenants, session, pids, _owner })
}
