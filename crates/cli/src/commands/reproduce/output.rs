//! How a paper's results are told.

use crate::exit::Exit;
use crate::out::Output;
use papers::Reproduction;

/// Gives them.
pub fn give(output: &Output, reproduction: &Reproduction) -> anyhow::Result<Exit> {
    let results = &reproduction.results;
    output.give(&reproduction.text(), || results.to_json(), |out| reproduction.write(out))?;
    Ok(Exit::of_results(results))
}
