//! What a paper's experiment came to, ready to be shown and written.

use anyhow::Context;
use report::{Extras, Results, Table};
use std::path::Path;
use std::time::Duration;

/// What came out.
#[derive(Debug)]
pub struct Reproduction {
    /// The points and what was found.
    pub results: Results,
    /// Figures, and tables with published beside measured values.
    pub extras: Extras,
    /// What is said below the tables.
    pub remarks: String,
    /// Samples, and the name of the file that they are written to.
    pub samples: Option<(&'static str, Table)>,
}

impl Reproduction {
    /// Tables and remarks, for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let tables = self.extras.tables.iter();
        let text: String = tables.map(|(heading, table)| format!("{heading}\n{table}\n")).collect();
        text + self.remarks.as_str()
    }

    /// Writes the results directory; the figures are in `figures/`.
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

/// A line for each finding.
pub(crate) fn remarks(results: &Results) -> String {
    results.findings.iter().map(|finding| format!("! {}\n", finding.text)).collect()
}
