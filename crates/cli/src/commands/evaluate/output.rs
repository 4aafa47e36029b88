//! What becomes of results.

use crate::exit::Exit;
use evaluate::Evaluation;
use report::Extras;
use std::io::Write;
use std::path::PathBuf;

/// What becomes of the results.
#[derive(clap::Args)]
pub struct Output {
    /// Write result.json, raw histograms, CSV and report.html here
    #[arg(long, value_name = "DIR", value_parser = crate::out::folder)]
    pub out: Option<PathBuf>,
    /// Print result.json instead of tables
    #[arg(long)]
    pub json: bool,
}

impl Output {
    /// Prints and writes what was found.
    pub fn give(&self, evaluation: &Evaluation) -> anyhow::Result<Exit> {
        self.give_with(evaluation, Extras::default())
    }

    /// The same with tables and figures of its own.
    pub fn give_with(&self, evaluation: &Evaluation, extras: Extras) -> anyhow::Result<Exit> {
        crate::talk::wipe();
        let mut stdout = std::io::stdout().lock();
        if self.json {
            write!(stdout, "{}", evaluation.results.to_json())?;
        } else {
            for (heading, table) in &extras.tables {
                writeln!(stdout, "{heading}\n{table}")?;
            }
            write!(stdout, "{}", evaluation.table())?;
            for finding in &evaluation.results.findings {
                writeln!(stdout, "\n{}: {}", finding.code, finding.text)?;
            }
        }
        self.write(evaluation, extras)?;
        Ok(Exit::of_results(&evaluation.results))
    }

    /// Writes the results directory, if one was asked for.
    pub fn write(&self, evaluation: &Evaluation, extras: Extras) -> anyhow::Result<()> {
        if let Some(out) = &self.out {
            evaluation.write(out, extras)?;
            writeln!(std::io::stderr(), "results: {}", out.join("report.html").display())?;
        }
        Ok(())
    }
}
