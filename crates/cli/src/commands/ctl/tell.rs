//! How answers are told: as JSON or in words, or why there is none.

use super::client::Answer;
use crate::exit::Exit;
use anyhow::Context;
use serde::de::DeserializeOwned;
use std::io::Write;

/// A printer for answers that are refusals.
pub fn no_answer(_: &mut dyn Write, (): &()) -> std::io::Result<()> {
    Ok(())
}

/// How answers are told.
pub struct Tell {
    pub json: bool,
}

impl Tell {
    pub fn found<T: DeserializeOwned>(
        &self,
        answer: Answer,
        print: impl FnOnce(&mut dyn Write, &T) -> std::io::Result<()>,
    ) -> anyhow::Result<Exit> {
        match answer {
            Answer::Done(text) => {
                let mut stdout = std::io::stdout().lock();
                if self.json {
                    let value: serde_json::Value = serde_json::from_str(&text)?;
                    writeln!(stdout, "{value:#}")?;
                } else {
                    let found = serde_json::from_str(&text).context("an answer of another Weir")?;
                    print(&mut stdout, &found)?;
                }
                Ok(Exit::Success)
            }
            Answer::Refused(failure) => {
                let mut text = failure.error;
                for reason in failure.reasons {
                    text.push_str(&format!("\n  {reason}"));
                }
                Ok(Exit::finding(&text))
            }
        }
    }
}
