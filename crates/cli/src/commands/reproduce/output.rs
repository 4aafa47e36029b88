//! Writes the results of a paper's measurements.

use crate::exit::Exit;
use crate::out::Output;
use papers::Reproduction;

/// Writes the results.
pub fn give(output: &Output, reproduction: &Reproduction) -> anyhow::Result<Exit> {
    let results = &reproduction.results;
    output.give(&reproduction.text(), || results.to_json(), |out| reproduction.write(out))?;
    Ok(Exit::of_results(results))
}
