//! Measures a quiet tenant beside hostile tenants (`weir bench hostile`).

use super::comparing::Comparing;
use super::output;
use super::values;
use super::work::own_serve;
use crate::exit::Exit;
use crate::out::Output;
use crate::talk;
use bench::{Attack, Hostile, System, hostile};
use values::Wanted;

/// One quiet tenant beside 19 hostile tenants and hostile strangers: each attack in turn, and all together
///
/// The quiet tenant's ECHO and PACKET_IN (500/s each) are measured alone and beside each attack. Hostile tenants send
/// 100/s FLOW_MODs each that modify all rules, add with CHECK_OVERLAP, delete nothing, or delete by an unknown cookie.
/// Their controllers send requests and do not read the answers, send HELLO and close, fill the store or a small table,
/// or are many. Strangers act as switches whose statistics never end or whose ports become ever more, open silent
/// connections, and send half requests and event subscriptions to the REST interface.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir bench hostile --quick
  weir bench hostile --attack modify-all,all --openflow 1.3 --switch openvswitch
  weir bench hostile --system flowvisor=127.0.0.1:6633/4711 --openflow 1.0

The criteria are in docs/bench.md.")]
pub struct HostileCommand {
    /// Attacks: modify-all, check-overlap, delete-nothing, delete-cookie, slow-readers, hello-and-close, fill-store,
    /// fill-table, many-controllers, endless-statistics, new-ports, silent, api, all [default: each]
    #[arg(long = "attack", value_name = "ATTACKS", value_delimiter = ',')]
    attacks: Vec<Attack>,
    /// Systems under test: weir, weir-networks, or NAME=IP:PORT[+CONTROLLERBASE][/PID or /cgroup:FOLDER] for a system
    /// that runs already; the criteria judge the first system
    #[arg(long = "system", value_name = "SYSTEMS", value_delimiter = ',', default_value = "weir", value_parser = values::system)]
    systems: Vec<Wanted>,
    /// Rules of each hostile tenant, 0 to 60000 [default: 9900, with --quick 500]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=60_000))]
    rules: Option<u32>,
    #[command(flatten)]
    comparing: Comparing,
    #[command(flatten)]
    output: Output,
}

impl HostileCommand {
    pub fn run(self) -> anyhow::Result<Exit> {
        if let Some(wrong) = self.comparing.switch.wrong() {
            return Ok(Exit::usage(&wrong));
        }
        let serve = own_serve()?;
        let quick = self.comparing.is_quick();
        let plan = Hostile {
            attacks: if self.attacks.is_empty() { Attack::ALL.to_vec() } else { self.attacks },
            systems: self.systems.into_iter().map(|wanted| wanted.system(&serve)).collect(),
            rules: self.rules.unwrap_or(if quick { 500 } else { 9_900 }),
        };
        let verdict = self.comparing.run(System::Direct, |options| {
            plan.comparison(options)?.run(options, &mut talk::progress)
        })?;
        let text = format!("{}\n{}", hostile::table(&verdict), verdict.criteria_table());
        output::give_as(&self.output, &verdict, &text, |out| Ok(verdict.write(out)?))
    }
}
