//! The result of a paper's experiment, ready for display and for files.

use anyhow::Context;
use report::{Extras, Results, Table};
use std::path::Path;
use std::time::Duration;

/// The result of an experiment.
#[derive(Debug)]
pub struct Reproduction {
    /// The points and the findings.
    pub results: Results,
    /// The figures, and the tables of published and measured values.
    pub extras: Extras,
    /// The text below the tables.
    pub remarks: String,
    /// The table of samples, and the name of its file.
    pub samples: Option<(&'static str, Table)>,
}

impl Reproduction {
    /// The tables and remarks as text for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let tables = self.extras.tables.iter();
        let text: String = tables.map(|(heading, table)| format!("{heading}\n{table}\n")).collect();
        text + self.remarks.as_str()
    }

    /// Writes the results directory; the folder `figures/` contains the figures.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, dir: &Path) -> anyhow::Result<()> {
        self.results.write_with(dir, &[], Duration::ZERO, &self.extras)?;
        if let Some((name, table)) = &self.samples {
            let file = dir.join(name);
            std::fs::write(&file, table.to_csv())
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(())
    }
}

/// The remarks: one line for each finding.
pub(crate) fn remarks(results: &Results) -> String {
    results.findings.iter().map(|finding| format!("! {}\n", finding.text)).collect()
}
