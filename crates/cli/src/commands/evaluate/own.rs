//! Runs a user's own experiment, which is a script (`weir evaluate run`).

use super::effort::Effort;
use super::measure::measure;
use super::output;
use super::target::Target;
use crate::exit::Exit;
use crate::out::Output;
use evaluate::{Experiment, Script};
use std::path::PathBuf;

/// Run an experiment of your own: a TOML file with parameters, and a Rhai script that handles events
///
/// --rate and --length are those of the reference measurement without the switch; the experiment has its own parameters.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir evaluate run examples/experiments/insert.toml --set rules=500 --switch emulated

docs/evaluate.md lists the events and what a script may call.")]
pub struct Run {
    /// The experiment file
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Another value for one of the experiment's parameters
    #[arg(long = "set", value_name = "NAME=VALUE")]
    values: Vec<String>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    effort: Effort,
    #[command(flatten)]
    output: Output,
}

impl Run {
    pub fn run(self) -> anyhow::Result<Exit> {
        if let Some(wrong) = self.target.wrong() {
            return Ok(Exit::usage(&wrong));
        }
        let script = match self.read() {
            Ok(script) => script,
            Err(error) => return Ok(Exit::usage(&error)),
        };
        let tool = format!("evaluate {}", script.name());
        let evaluation =
            measure(&tool, &self.target, &self.effort, &self.effort.floor(), &[Box::new(script)])?;
        output::give(&self.output, &evaluation)
    }

    fn read(&self) -> evaluate::Result<Script> {
        let mut script = Script::read(&self.file)?;
        for value in &self.values {
            let (name, value) = value.split_once('=').ok_or_else(|| {
                evaluate::Error::parameter("--set", format!("{value:?} is not NAME=VALUE"))
            })?;
            script.set(name, value)?;
        }
        if let Some(repetitions) = self.effort.repetitions {
            script.set_repetitions(repetitions);
        }
        Ok(script)
    }
}
