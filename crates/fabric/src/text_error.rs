//! The error of a text that has another form than expected.

use core::fmt;

/// The text has another form; prints the expected form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextError(pub(crate) &'static str);

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.0)
    }
}

impl core::error::Error for TextError {}
