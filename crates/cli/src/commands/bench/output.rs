//! What becomes of results.

use crate::exit::Exit;
use crate::talk;
use bench::{Ruling, Verdict};
use report::Finding;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What becomes of the results.
#[derive(clap::Args)]
pub struct Output {
    /// Write result.json, raw histograms, CSV and report.html here
    #[arg(long, value_name = "DIR", value_parser = crate::out::folder)]
    out: Option<PathBuf>,
    /// Print result.json instead of tables
    #[arg(long)]
    json: bool,
}

impl Output {
    /// Prints and writes what was found.
    pub fn give(&self, verdict: &Verdict) -> anyhow::Result<Exit> {
        let mut text = verdict.table().to_string();
        if !verdict.criteria.is_empty() {
            text += &format!("\n{}", verdict.criteria_table());
        }
        self.give_as(verdict, &text, |out| verdict.write(out))
    }

    /// The same, told in other words.
    pub fn give_as(
        &self,
        verdict: &Verdict,
        text: &str,
        write: impl FnOnce(&Path) -> Result<(), bench::Error>,
    ) -> anyhow::Result<Exit> {
        talk::wipe();
        let mut stdout = std::io::stdout().lock();
        if self.json {
            write!(stdout, "{}", verdict.results.to_json())?;
        } else {
            write!(stdout, "{text}{}", findings(&verdict.results.findings))?;
        }
        if let Some(out) = &self.out {
            write(out)?;
            writeln!(std::io::stderr(), "results: {}", out.join("report.html").display())?;
        }
        Ok(match verdict.ruling() {
            _ if verdict.results.is_partial() => Exit::Interrupted,
            Ruling::Met => Exit::Success,
            Ruling::NotMet => Exit::Finding,
            Ruling::Undecided => Exit::Undecided,
        })
    }
}

/// The first of each kind in full, and how many more there are: a busy machine makes the same remark at every point.
fn findings(all: &[Finding]) -> String {
    let mut codes: Vec<&str> = all.iter().map(|finding| finding.code.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    let mut text = String::new();
    for code in codes {
        let alike: Vec<_> = all.iter().filter(|finding| finding.code == code).collect();
        if let Some(first) = alike.first() {
            text += &format!("\n{code}: {}\n", first.text);
        }
        if alike.len() > 1 {
            text += &format!(
                "  and {} more of this kind; --json or --out gives all\n",
                alike.len() - 1
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_a_kind_are_told_once() {
        let finding =
            |code: &str, text: &str| Finding { code: code.to_owned(), text: text.to_owned() };
        assert_eq!(findings(&[]), "");
        let all = [finding("late", "a"), finding("leak", "b"), finding("late", "c")];
        let expected =
            "\nlate: a\n  and 1 more of this kind; --json or --out gives all\n\nleak: b\n";
        assert_eq!(findings(&all), expected);
    }
}
