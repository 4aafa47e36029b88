//! Output of verdicts: tables, JSON or a folder.

use crate::exit::Exit;
use crate::out::Output;
use bench::{Ruling, Verdict};
use report::Finding;
use std::path::Path;

/// Writes a verdict, as tables of systems and of criteria.
pub fn give(output: &Output, verdict: &Verdict) -> anyhow::Result<Exit> {
    let mut text = verdict.table().to_string();
    if !verdict.criteria.is_empty() {
        text += &format!("\n{}", verdict.criteria_table());
    }
    give_as(output, verdict, &text, |out| Ok(verdict.write(out)?))
}

/// Writes a verdict, as this text.
pub fn give_as(
    output: &Output,
    verdict: &Verdict,
    text: &str,
    write: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<Exit> {
    let text = format!("{text}{}", findings(&verdict.results.findings));
    output.give(&text, || verdict.results.to_json(), write)?;
    Ok(match verdict.ruling() {
        _ if verdict.results.is_partial() => Exit::Interrupted,
        Ruling::Met => Exit::Success,
        Ruling::NotMet => Exit::Finding,
        Ruling::Undecided => Exit::Undecided,
    })
}

/// The first finding of each kind in full, and the number of further findings of this kind. On a busy machine every
/// point has the same finding.
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
    fn findings_with_the_same_code_are_printed_once_with_a_count() {
        let finding =
            |code: &str, text: &str| Finding { code: code.to_owned(), text: text.to_owned() };
        assert_eq!(findings(&[]), "");
        let all = [finding("late", "a"), finding("leak", "b"), finding("late", "c")];
        let expected =
            "\nlate: a\n  and 1 more of this kind; --json or --out gives all\n\nleak: b\n";
        assert_eq!(findings(&all), expected);
    }
}
