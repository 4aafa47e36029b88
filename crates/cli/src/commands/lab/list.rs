//! Lists the networks (`weir lab list`).

use super::which::State;
use crate::exit::Exit;
use lab::{Lab, Phase, Summary};
use report::Table;
use serde_json::json;
use std::io::Write;
use std::time::UNIX_EPOCH;

/// List the networks that are up
#[derive(clap::Args)]
#[command(after_help = "Example:\n  weir lab list --json | jq -r '.[].name'")]
pub struct List {
    /// Print a JSON list
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: State,
}

impl List {
    pub fn run(self) -> anyhow::Result<Exit> {
        let labs = Lab::list(&self.state.directory())?;
        let mut stdout = std::io::stdout().lock();
        if self.json {
            let labs: Vec<_> = labs.iter().map(as_json).collect();
            writeln!(stdout, "{:#}", serde_json::Value::from(labs))?;
        } else if labs.is_empty() {
            writeln!(std::io::stderr(), "no lab is up")?;
        } else {
            let mut table = Table::new(["lab", "switches", "hosts", "controllers", ""]);
            for lab in &labs {
                table.row([
                    lab.name.clone(),
                    lab.switches.to_string(),
                    lab.hosts.to_string(),
                    lab.controllers.join(" "),
                    note(lab).to_owned(),
                ]);
            }
            write!(stdout, "{table}")?;
        }
        Ok(Exit::Success)
    }
}

fn note(lab: &Summary) -> &'static str {
    match (lab.abandoned, lab.phase) {
        (true, _) => "left by a process that is gone; take it down",
        (_, Phase::Starting) => "being made",
        (_, Phase::Up) => "",
    }
}

fn as_json(lab: &Summary) -> serde_json::Value {
    let created = lab.created.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    json!({
        "name": lab.name,
        "switches": lab.switches,
        "hosts": lab.hosts,
        "controllers": lab.controllers,
        "up": lab.phase == Phase::Up,
        "abandoned": lab.abandoned,
        "created": created,
    })
}
