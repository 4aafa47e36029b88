//! `weir report`: what results directories say.

use crate::exit::Exit;
use report::{Results, compare};
use std::io::Write;
use std::path::PathBuf;

/// Compare results of measurements
#[derive(clap::Args)]
#[command(after_help = "Example:\n  weir report compare before/ after/")]
pub struct Report {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Compare(Compare),
}

/// Compare the same points and metrics of several results
///
/// The first is compared with each of the others. A verdict is given where the 95 % confidence interval of the
/// difference excludes zero. Exit status 1 if something became worse.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir bench relay --quick --out before/
  weir bench relay --quick --out after/
  weir report compare before/ after/ --metric p50_us --metric p99_us")]
struct Compare {
    /// Results directories (or their result.json), at least two
    #[arg(required = true, num_args = 2..)]
    results: Vec<PathBuf>,
    /// Only metrics of this name, such as p50_us; several times for several
    #[arg(long = "metric", value_name = "NAME")]
    metrics: Vec<String>,
    /// Print CSV
    #[arg(long)]
    csv: bool,
}

impl Report {
    pub fn run(self) -> anyhow::Result<Exit> {
        match self.command {
            Command::Compare(compare) => compare.run(),
        }
    }
}

impl Compare {
    fn run(self) -> anyhow::Result<Exit> {
        let read = |path: &PathBuf| Ok((path.display().to_string(), Results::read(path)?));
        let results = self.results.iter().map(read).collect::<Result<Vec<_>, report::Error>>()?;
        let mut lines = compare(&results);
        lines.retain(|line| self.metrics.is_empty() || self.metrics.contains(&line.metric));
        if lines.is_empty() {
            let names = if self.metrics.is_empty() { "" } else { " of these names" };
            writeln!(
                std::io::stderr(),
                "the results have no points with metrics{names} in common"
            )?;
            return Ok(Exit::Finding);
        }
        let table = compare::table(&lines);
        let mut stdout = std::io::stdout().lock();
        if self.csv { write!(stdout, "{}", table.to_csv()) } else { write!(stdout, "{table}") }?;
        let is_worse = |line: &report::Comparison| line.verdict == report::Verdict::Worse;
        Ok(if lines.iter().any(is_worse) { Exit::Finding } else { Exit::Success })
    }
}
