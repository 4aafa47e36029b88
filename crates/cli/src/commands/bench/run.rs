//! Measures every requested combination of systems, messages, rates and tenants (`weir bench run`).

use super::comparing::Comparing;
use super::output;
use super::values;
use super::work::own_serve;
use crate::exit::Exit;
use crate::out::Output;
use crate::talk;
use bench::{Kind, Matrix, Shape, System};
use values::Wanted;

/// Measure every combination of systems, messages, rates and numbers of tenants
///
/// Messages: packet-in, packet-out, echo, features, port-stats, flow-stats, barrier, flow-mod (until the reply to a
/// barrier after the FLOW_MOD), flow-mod-packet (until the rule forwards a packet), role (1.3); a mix with weights is
/// written echo:3+barrier:1. The rate is messages per second of all tenants together.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir bench run --message packet-in,packet-out --rate 10000,40000 --tenants 1,20 --quick
  weir bench run --system direct,weir,flowvisor=127.0.0.1:6633/4711 --message port-stats
  weir bench run --switch openvswitch --system direct,haproxy,weir,weir-networks --message echo,flow-mod-packet --rate 100
  weir bench run --switch br0 --channel veth1=1 --channel veth2=2 --message packet-out,flow-mod")]
pub struct Run {
    /// Systems under test: direct, weir, weir-networks, haproxy, or NAME=IP:PORT[+CONTROLLERBASE][/PID or
    /// /cgroup:FOLDER] for one that runs already
    #[arg(long = "system", value_name = "SYSTEMS", value_delimiter = ',', default_value = "direct,weir", value_parser = values::system)]
    systems: Vec<Wanted>,
    /// The messages
    #[arg(long = "message", value_name = "MESSAGES", value_delimiter = ',', default_value = "packet-in", value_parser = values::mix)]
    messages: Vec<Mix>,
    /// Messages per second, or max for the system's highest rate
    #[arg(long = "rate", value_name = "RATES", value_delimiter = ',', default_value = "10000", value_parser = values::rate)]
    rates: Vec<f64>,
    /// Numbers of tenants, 1 to 2046
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u16).range(1..=2046))]
    tenants: Vec<u16>,
    /// How messages are spaced: constant, poisson or burst:N
    #[arg(long, value_name = "SHAPE", default_value = "constant", value_parser = values::shape)]
    shape: Shape,
    /// The most messages per write; 0: all messages that are due
    #[arg(long, value_name = "N", default_value_t = 0)]
    batch: usize,
    #[command(flatten)]
    comparing: Comparing,
    #[command(flatten)]
    output: Output,
}

/// With a type of this name, clap takes the list as one value.
type Mix = Vec<(Kind, u32)>;

impl Run {
    pub fn run(self) -> anyhow::Result<Exit> {
        if let Some(wrong) = self.comparing.switch.wrong() {
            return Ok(Exit::usage(&wrong));
        }
        let serve = own_serve()?;
        let matrix = Matrix {
            systems: self.systems.into_iter().map(|wanted| wanted.system(&serve)).collect(),
            mixes: self.messages,
            rates: self.rates,
            tenants: self.tenants.into_iter().map(usize::from).collect(),
            shape: self.shape,
            batch: self.batch,
        };
        let verdict = self.comparing.run(System::Direct, |options| {
            matrix.comparison(options)?.run(options, &mut talk::progress)
        })?;
        output::give(&self.output, &verdict)
    }
}
