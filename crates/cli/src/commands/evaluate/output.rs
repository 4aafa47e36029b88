//! Output of evaluations: tables, JSON or a folder.

use crate::exit::Exit;
use crate::out::Output;
use evaluate::Evaluation;
use report::Extras;

/// Writes an evaluation.
pub fn give(output: &Output, evaluation: &Evaluation) -> anyhow::Result<Exit> {
    give_with(output, evaluation, Extras::default())
}

/// Writes an evaluation, with more tables and figures.
pub fn give_with(output: &Output, evaluation: &Evaluation, extras: Extras) -> anyhow::Result<Exit> {
    let tables = extras.tables.iter();
    let mut text: String = tables.map(|(heading, table)| format!("{heading}\n{table}\n")).collect();
    text += &evaluation.table().to_string();
    for finding in &evaluation.results.findings {
        text += &format!("\n{}: {}\n", finding.code, finding.text);
    }
    let json = || evaluation.results.to_json();
    output.give(&text, json, |out| Ok(evaluation.write(out, extras)?))?;
    Ok(Exit::of_results(&evaluation.results))
}
