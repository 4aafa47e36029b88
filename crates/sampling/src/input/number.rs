//! The checks that every number of a problem must pass.

use crate::error::{Error, Result};

/// A volume, capacity or cost in text.
pub(super) fn number(place: impl FnOnce() -> String, text: &str) -> Result<f64> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Error::input(place(), "the value is missing"));
    }
    let value: Option<f64> = text.parse().ok();
    let value = value.ok_or_else(|| format!("{text:?} is not a number"));
    value.and_then(usable).map_err(|message| Error::input(place(), message))
}

/// The checks for every number of a problem. Ranges of single values are checked later.
pub(super) fn usable(value: f64) -> std::result::Result<f64, String> {
    if !value.is_finite() {
        Err(format!("{value} is not a finite number"))
    } else if value < 0.0 {
        Err(format!("{value} is negative"))
    } else if value > crate::problem::LARGEST_VOLUME {
        Err(format!("{value:e} is absurd: more than 10^13"))
    } else {
        Ok(value)
    }
}
