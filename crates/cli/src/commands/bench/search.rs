//! Finds the highest rate that a system sustains (`weir bench search`).

use super::options::Ends;
use super::output;
use super::values;
use super::work::{Work, own_serve};
use crate::exit::Exit;
use crate::out::Output;
use crate::talk;
use bench::{Goal, Kind, Search, Session, Setup, Version};
use report::pace::readable;
use std::time::Duration;
use values::Wanted;

/// Find the highest rate that a system serves, by bisection
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir bench search --message packet-out --tenants 20 --loss-free")]
pub struct SearchCommand {
    /// The system: direct, weir, haproxy, or NAME=IP:PORT for one that runs already
    #[arg(long, value_name = "SYSTEM", default_value = "weir", value_parser = values::system)]
    system: Wanted,
    /// The message
    #[arg(long, value_name = "MESSAGE", default_value = "packet-in")]
    message: Kind,
    /// The number of tenants that share the rate, 1 to 2046
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=2046))]
    tenants: u16,
    /// The lowest rate of interest
    #[arg(long, value_name = "RATE", default_value = "1000")]
    low: f64,
    /// The highest rate of interest
    #[arg(long, value_name = "RATE", default_value = "2000000")]
    high: f64,
    /// Stop when the two bounds are this close
    #[arg(long, value_name = "FRACTION", default_value = "0.05")]
    resolution: f64,
    /// Seconds per rate
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = values::seconds)]
    trial: u64,
    /// Every message must be served, and in time; else 98 % of them
    #[arg(long)]
    loss_free: bool,
    #[command(flatten)]
    ends: Ends,
    #[command(flatten)]
    output: Output,
}

impl SearchCommand {
    pub fn run(self) -> anyhow::Result<Exit> {
        let work = Work::new()?;
        let tenants = usize::from(self.tenants);
        let search = Search {
            kind: self.message,
            tenants,
            low: self.low,
            high: self.high,
            resolution: self.resolution,
            trial_ms: self.trial,
            goal: if self.loss_free { Goal::LossFree } else { Goal::Highest },
        };
        let setup = self.ends.setup();
        let switch = setup.switch.for_kinds([self.message]);
        let system = self.system.system(&own_serve()?);
        let setup = system.fit(&Setup { tenants, switch, ..setup });
        let controllers = system.controllers(&setup, None)?;
        talk::progress(&format!("starting {}", system.name()));
        let target = system.start(&setup, &controllers, work.path(), None)?;
        let setup_version = setup.version;
        let setup = Setup { topology: target.topology.clone(), ..setup };
        let mut session = Session::open_until(setup, &controllers, work.stop())?;
        let (most, each) = (search.most_trials(), Duration::from_millis(self.trial));
        talk::progress(&format!("searching: at most {most} trials, {}", readable(each * most)));
        let found = search.run(&mut session, &mut talk::progress)?;
        let number = report::table::number;
        let what = match found.rate {
            None => format!("not even {}/s", number(self.low)),
            Some(rate) if found.at_upper_bound => {
                format!("at least {}/s: look higher with --high", number(rate))
            }
            Some(rate) => format!("{}/s", number(rate)),
        };
        let text = format!("{}{}: {what}\n", found.table(), system.name());
        let version = if setup_version == Version::V1_0 { "1.0" } else { "1.3" };
        let verdict = found.verdict(&search, system.name(), &[("openflow", version.into())]);
        output::give_as(&self.output, &verdict, &text, |out| Ok(verdict.write(out)?))
    }
}
