//! Measures hypervisors' control latency against rate, tenants and message (`weir reproduce basta2017`).

use crate::commands::bench::values::{self, OpenFlow};
use crate::commands::bench::{Times, Work, give_as, own_serve};
use crate::commands::switches::OpenVSwitches;
use crate::exit::Exit;
use crate::out::Output;
use crate::talk;
use bench::{Options, RealSwitches, Setup, System, Tenancy, Topology};
use lab::Requirements;
use papers::basta2017::{Figure, Plan};
use std::fmt::Write;
use std::sync::Arc;

/// Logically Isolated, Actually Unpredictable? (2017): control latency of hypervisors
///
/// Measures switch-only, Weir's slices, Weir's networks of the tenants' own, and hypervisors that run already, in turn:
/// PACKET_IN and PORT_STATS against rate, PACKET_IN and PACKET_OUT against tenants with Nagle's algorithm on (AGG) and
/// off (ND) at the controllers. As in the paper, the switch is an Open vSwitch; where that cannot be had (it needs
/// root), it is emulated, and the figures say so. A full run takes hours: 10 runs of 30 s of every case.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir reproduce basta2017 --quick --out results/
  weir reproduce basta2017 3a 3b --runs 3 --duration 10
  weir reproduce basta2017 4 5 6 --external flowvisor=6633,6701

A hypervisor given as --external must know the tenants' slices (10.1.0.0/16, 10.2.0.0/16, ... by source address) and
controllers (at CONTROLLERBASE, CONTROLLERBASE + 1, ... of 127.0.0.1).
See docs/reproduce/basta2017.md.")]
pub struct Basta2017 {
    /// Figures: 3a, 3b, 3c, 4, 5, 6, or table1 for the row that the paper does not draw [default: all]
    #[arg(value_name = "FIGURE")]
    figures: Vec<Figure>,
    /// Two runs of a second and fewer numbers of tenants: less than five minutes for all; said on every figure
    #[arg(long)]
    quick: bool,
    /// A hypervisor that runs on this machine already, once or several times
    #[arg(long = "external", value_name = "NAME=SWITCHPORT,CONTROLLERBASE[/PID]", value_parser = values::external_by_ports)]
    externals: Vec<System>,
    /// The switch: a real Open vSwitch, an emulated one, or the first if it can be had
    #[arg(long, value_name = "SWITCH", default_value = "auto")]
    switch: Wanted,
    /// Send each millisecond's messages at once, as the paper's generator does, rather than evenly
    #[arg(long)]
    bursts: bool,
    /// The OpenFlow version
    #[arg(long, value_name = "VERSION", default_value = "1.0")]
    openflow: OpenFlow,
    #[command(flatten)]
    times: Times,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Wanted {
    Auto,
    Openvswitch,
    Emulated,
}

impl Basta2017 {
    pub fn run(self) -> anyhow::Result<Exit> {
        let switches = self.switches()?;
        let also = switches.clone();
        let work = Work::beside(move || also.iter().for_each(RealSwitches::down))?;
        let reproduction =
            self.plan()?.run(&self.options(&work, switches.as_ref()), &mut talk::progress);
        if let Some(switches) = &switches {
            switches.down();
        }
        let reproduction = reproduction?;
        let mut text = String::new();
        for (heading, table) in &reproduction.extras.tables {
            write!(text, "{heading}\n{table}\n")?;
        }
        // The last table has its own line end.
        text.pop();
        if !reproduction.verdict.criteria.is_empty() {
            write!(text, "\n{}", reproduction.verdict.criteria_table())?;
        }
        give_as(&self.output, &reproduction.verdict, &text, |out| Ok(reproduction.write(out)?))
    }

    fn switches(&self) -> anyhow::Result<Option<OpenVSwitches>> {
        let needed = Requirements { switches: true, rates: false };
        match self.switch {
            Wanted::Emulated => return Ok(None),
            Wanted::Openvswitch => needed.require()?,
            Wanted::Auto => {
                if let Some(missing) = needed.check().first() {
                    talk::progress(&format!("the switch is emulated, because of {missing}"));
                    return Ok(None);
                }
            }
        }
        OpenVSwitches::new(self.openflow.version()).map(Some)
    }

    fn plan(&self) -> anyhow::Result<Plan> {
        let weir = System::Weir {
            command: own_serve()?,
            extra: String::new(),
            tenancy: Tenancy::default(),
        };
        let networks = weir.clone().with_networks();
        let figures = if self.figures.is_empty() { &Figure::ALL[..] } else { &self.figures };
        Ok(Plan {
            figures: figures.to_vec(),
            systems: [System::Direct, weir, networks]
                .into_iter()
                .chain(self.externals.clone())
                .collect(),
            quick: self.quick,
            bursts: self.bursts,
        })
    }

    fn options(&self, work: &Work, switches: Option<&OpenVSwitches>) -> Options {
        let options = Options::new(System::Direct, work.path().to_owned());
        let mut options = Options { stop: work.stop(), ..options };
        if self.quick {
            (options.runs, options.duration_ms, options.cut_ms) = (2, 1_000, 100);
        }
        self.times.apply(&mut options);
        let version = self.openflow.version();
        options.setup = Setup { version, apart: true, ..Setup::new(Topology::Direct, 1) };
        options.switches =
            switches.map(|switches| Arc::new(switches.clone()) as Arc<dyn RealSwitches>);
        options
    }
}
