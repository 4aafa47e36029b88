//! The options for the duration and number of runs, and for the two emulated ends.

use super::values::{self, OpenFlow};
use super::work::Work;
use bench::{Identity, Options, Setup, System, TlsSides, Topology};

/// How long, how often.
#[derive(clap::Args)]
pub struct Effort {
    #[command(flatten)]
    pub times: Times,
    /// Three runs of three seconds, half a second cut at each end: a quick look, too short for conclusions
    #[arg(long)]
    pub quick: bool,
}

/// What may be said of runs one by one.
#[derive(clap::Args)]
pub struct Times {
    /// How often each case is measured, in turn with the others, 1 to 1000 [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: Option<u16>,
    /// Seconds of sending per run, 0.1 to 86400 [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    duration: Option<u64>,
    /// Seconds at each end of a run that results leave out [default: 5]
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    cut: Option<u64>,
    /// Seed for random choices [default: 1]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

/// How the two ends are played.
#[derive(clap::Args)]
pub struct Ends {
    /// The OpenFlow version
    #[arg(long, value_name = "VERSION", default_value = "1.0")]
    openflow: OpenFlow,
    /// The generator's threads: 1 for both sides, or 2, one for each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    threads: u8,
    /// Do not pin to CPUs; by default one thread of the generator runs on the first CPU, and a system that the command
    /// starts runs on the other CPUs
    #[arg(long)]
    any_cpu: bool,
    /// Leave Nagle's algorithm on at the generator's sockets (AGG in place of ND)
    #[arg(long)]
    nagle: bool,
    /// Use TLS between the emulated switches and Weir, with these PEM files of the switches, as for `ovs-vsctl set-ssl`
    #[arg(long, value_name = "KEY,CERT,CA", value_parser = values::identity)]
    switch_tls: Option<Identity>,
    /// Use TLS between the emulated controllers and Weir, with these PEM files of the controllers
    #[arg(long, value_name = "KEY,CERT,CA", value_parser = values::identity)]
    controller_tls: Option<Identity>,
    /// Weir's own PEM files [default: the controllers' files, else the switches']
    #[arg(long, value_name = "KEY,CERT,CA", value_parser = values::identity)]
    weir_tls: Option<Identity>,
}

impl Ends {
    pub fn version(&self) -> bench::Version {
        self.openflow.version()
    }

    pub fn setup(&self) -> Setup {
        let version = self.openflow.version();
        let threads = usize::from(self.threads);
        let (switches, controllers) = (self.switch_tls.clone(), self.controller_tls.clone());
        let own = [&self.weir_tls, &controllers, &switches].into_iter().flatten().next().cloned();
        let tls = TlsSides { switches, controllers, system: own };
        let (nodelay, apart) = (!self.nagle, !self.any_cpu);
        Setup { version, threads, apart, nodelay, tls, ..Setup::new(Topology::Direct, 1) }
    }
}

impl Times {
    /// Writes these values over the values of `options`.
    pub fn apply(&self, options: &mut Options) {
        options.runs = self.runs.map_or(options.runs, usize::from);
        options.duration_ms = self.duration.unwrap_or(options.duration_ms);
        // Without an explicit value, a short run has short cut-off ends.
        options.cut_ms = self.cut.unwrap_or(options.cut_ms.min(options.duration_ms / 6));
        options.seed = self.seed.unwrap_or(options.seed);
    }
}

impl Effort {
    /// The options of a comparison.
    pub fn options(&self, work: &Work, ends: &Ends, subject: System) -> Options {
        let mut options =
            Options { stop: work.stop(), ..Options::new(subject, work.path().to_owned()) };
        if self.quick {
            options = options.quick();
        }
        self.times.apply(&mut options);
        options.setup = ends.setup();
        options
    }
}
