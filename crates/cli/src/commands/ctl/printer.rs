//! Prints answers as JSON or as text, or prints the reason why there is no answer.

use super::client::Answer;
use crate::exit::Exit;
use anyhow::Context;
use serde::de::DeserializeOwned;
use std::io::Write;

/// A printer for answers without a document.
pub fn no_answer(_: &mut dyn Write, (): &()) -> std::io::Result<()> {
    Ok(())
}

/// The form in which answers are printed.
pub struct Printer {
    pub json: bool,
}

impl Printer {
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
