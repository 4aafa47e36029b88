//! Compares results directories, and draws their reports again (`weir report`).

use crate::exit::Exit;
use anyhow::Context;
use report::{Compared, Results, Verdict, compare};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Compare results of measurements, and draw them again
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  weir report compare before/ after/\n  weir report draw results/"
)]
pub struct Report {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Compare(Compare),
    Draw(Draw),
}

/// Draw the report of results again: report.html, and the figures with their data
///
/// Reads result.json (or result.json.gz) and, where it is there, figures.json; writes report.html and figures/ beside
/// them. Nothing is measured. So reports of older versions of Weir get the form of this one.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  weir report draw results/")]
struct Draw {
    /// Results directories
    #[arg(required = true, value_name = "DIR")]
    results: Vec<PathBuf>,
}

impl Draw {
    fn run(self) -> anyhow::Result<Exit> {
        for dir in &self.results {
            let results = Results::read(dir)?;
            let extras = Results::read_extras(dir)?.unwrap_or_default();
            results.write_page(dir, &extras)?;
            writeln!(std::io::stderr(), "drawn: {}", dir.join("report.html").display())?;
        }
        Ok(Exit::Success)
    }
}

/// Compare the same points and metrics of several results
///
/// The first is compared with each of the others. A verdict is given where the 95 % confidence interval of the
/// difference excludes zero; what shows no difference is counted, unless --all or --metric asks for it. What only one
/// of the results has is named. Exit status 1 if something became worse.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir bench relay --quick --out before/
  weir bench relay --quick --out after/
  weir report compare before/ after/ --metric p50_us --metric p99_us")]
struct Compare {
    /// Results directories (or their result.json, or result.json.gz), at least two
    #[arg(required = true, num_args = 2..)]
    results: Vec<PathBuf>,
    /// Only metrics of this name, such as p50_us; may be repeated
    #[arg(long = "metric", value_name = "NAME")]
    metrics: Vec<String>,
    /// Also show metrics without a difference
    #[arg(long)]
    all: bool,
    /// Print CSV: all comparisons, in plain numbers
    #[arg(long)]
    csv: bool,
    /// Print JSON: all comparisons, and the points that only one result has
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write compare.json, compare.csv and, for each metric that differs, figures/METRIC.svg and .png here
    #[arg(long, value_name = "DIR", value_parser = crate::out::folder)]
    out: Option<PathBuf>,
}

impl Report {
    pub fn run(self) -> anyhow::Result<Exit> {
        match self.command {
            Command::Compare(compare) => compare.run(),
            Command::Draw(draw) => draw.run(),
        }
    }
}

impl Compare {
    fn run(self) -> anyhow::Result<Exit> {
        let read = |path: &PathBuf| Ok((path.display().to_string(), Results::read(path)?));
        let results = self.results.iter().map(read).collect::<Result<Vec<_>, report::Error>>()?;
        let mut compared = compare(&results);
        let is_wanted = |metric: &String| self.metrics.is_empty() || self.metrics.contains(metric);
        compared.lines.retain(|line| is_wanted(&line.metric));
        compared.unmatched.retain(|one| one.metric.as_ref().is_none_or(is_wanted));
        if let Some(out) = &self.out {
            write(&compared, out)?;
        }
        let mut stdout = std::io::stdout().lock();
        if self.json {
            writeln!(stdout, "{}", serde_json::to_string_pretty(&compared)?)?;
        } else if self.csv {
            write!(stdout, "{}", compare::csv(&compared.lines))?;
        } else {
            write!(stdout, "{}", self.text(&compared))?;
        }
        if compared.lines.is_empty() {
            let names = if self.metrics.is_empty() { "" } else { " of these names" };
            writeln!(
                std::io::stderr(),
                "the results have no points with metrics{names} in common"
            )?;
            return Ok(Exit::Finding);
        }
        let is_worse = |line: &report::Comparison| line.verdict == Verdict::Worse;
        Ok(if compared.lines.iter().any(is_worse) { Exit::Finding } else { Exit::Success })
    }

    fn text(&self, compared: &Compared) -> String {
        let shows_all = self.all || !self.metrics.is_empty();
        let is_shown = |line: &&report::Comparison| shows_all || line.verdict != Verdict::Same;
        let shown: Vec<_> = compared.lines.iter().filter(is_shown).cloned().collect();
        let mut text = String::new();
        if !shown.is_empty() {
            text += &compare::table(&shown).to_string();
        }
        let (left_off, count) = (compared.lines.len() - shown.len(), compared.lines.len());
        if left_off > 0 {
            text +=
                &format!("{left_off} of {count} metrics show no difference (--all lists them)\n");
        }
        for sentence in compared.unmatched_sentences() {
            text += &format!("{sentence}\n");
        }
        text
    }
}

fn write(compared: &Compared, out: &Path) -> anyhow::Result<()> {
    let put = |name: &str, bytes: &[u8]| {
        let path = out.join(name);
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    };
    let figures = out.join("figures");
    fs::create_dir_all(&figures).with_context(|| format!("cannot make {}", figures.display()))?;
    put("compare.json", serde_json::to_string_pretty(compared)?.as_bytes())?;
    put("compare.csv", compare::csv(&compared.lines).as_bytes())?;
    for report::Figure { name, drawing, .. } in compared.figures() {
        // The name of a metric may contain any character.
        let name = name.replace('/', "_");
        put(&format!("figures/{name}.svg"), drawing.svg().as_bytes())?;
        #[cfg(feature = "png")]
        if let Some(png) = drawing.png() {
            put(&format!("figures/{name}.png"), &png)?;
        }
    }
    Ok(())
}
