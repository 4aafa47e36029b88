//! Objects that an agent has: their identifiers and values.

use std::fmt;
use std::str::FromStr;

/// An object's identifier, such as `1.3.6.1.2.1.1.3.0`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Oid(Vec<u64>);

/// Parts that an identifier has at most (RFC 2578, section 3.5).
const MAX_PARTS: usize = 128;

impl Oid {
    /// This one with one more part.
    pub(crate) fn child(&self, part: u64) -> Oid {
        Oid(self.0.iter().copied().chain([part]).collect())
    }

    pub(crate) fn of(parts: &[u64]) -> Oid {
        Oid(parts.to_vec())
    }

    pub(crate) fn parts(&self) -> &[u64] {
        &self.0
    }
}

impl FromStr for Oid {
    type Err = String;

    fn from_str(text: &str) -> Result<Oid, String> {
        let wrong = || format!("{text:?} is no object identifier such as 1.3.6.1.2.1.1.3.0");
        let parts = text.strip_prefix('.').unwrap_or(text).split('.');
        let parts: Option<Vec<u64>> =
            parts.map(|part| part.parse::<u32>().ok().map(u64::from)).collect();
        let parts = parts.ok_or_else(wrong)?;
        // The first two share a byte (X.690, section 8.19.4).
        let right = matches!(parts.as_slice(), [0 | 1, 0..=39, ..] | [2, ..]);
        if !right || !(2..=MAX_PARTS).contains(&parts.len()) {
            return Err(wrong());
        }
        Ok(Oid(parts))
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(u64::to_string).collect();
        f.write_str(&parts.join("."))
    }
}

/// What an agent answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Counters, gauges, integers, and time in hundredths of a second.
    Number(f64),
    /// Texts; what is no UTF-8 in them is replaced. Identifiers and addresses as they are written.
    Text(String),
}

impl Value {
    /// The number, also of a text that is one, as load averages are told.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Text(text) => text.trim().parse().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers() {
        for (text, shown) in [
            (".1.3.6.1.2.1.1.3.0", Some("1.3.6.1.2.1.1.3.0")),
            ("1.3", Some("1.3")),
            ("1", None),
            ("", None),
            ("1.40", None),
            ("3.1", None),
            ("1.3.-1", None),
            ("1.3.4294967296", None),
            ("1..3", None),
        ] {
            let oid = text.parse::<Oid>().ok().map(|oid| oid.to_string());
            assert_eq!(oid.as_deref(), shown, "{text}");
        }
    }
}
