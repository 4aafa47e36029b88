//! What becomes of a paper's results.

use crate::exit::Exit;
use papers::Reproduction;
use std::io::Write;
use std::path::PathBuf;

/// What becomes of the results.
#[derive(clap::Args)]
pub struct Output {
    /// Write result.json, CSV, report.html and figures/ here
    #[arg(long, value_name = "DIR", value_parser = crate::out::folder)]
    out: Option<PathBuf>,
    /// Print result.json instead of tables
    #[arg(long)]
    json: bool,
}

impl Output {
    /// Prints and writes them.
    pub fn give(&self, reproduction: &Reproduction) -> anyhow::Result<Exit> {
        let results = &reproduction.results;
        let text = if self.json { results.to_json() } else { reproduction.text() };
        write!(std::io::stdout().lock(), "{text}")?;
        if let Some(out) = &self.out {
            reproduction.write(out)?;
            writeln!(std::io::stderr(), "results: {}", out.join("report.html").display())?;
        }
        Ok(Exit::of_results(results))
    }
}

/// Says on stderr what is being done.
pub fn talk(text: &str) {
    // If stderr is gone there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{text}");
}
