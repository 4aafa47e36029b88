//! The identifiers and values of an agent's objects.

use std::fmt;
use std::str::FromStr;

/// The identifier of an object, such as `1.3.6.1.2.1.1.3.0`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Oid(Vec<u64>);

/// The most parts of an identifier (RFC 2578, section 3.5).
const MAX_PARTS: usize = 128;

impl Oid {
    /// This identifier with one more part.
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
        // The first two parts share a byte (X.690, section 8.19.4).
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

/// The value of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A counter, a gauge, an integer, or a time in hundredths of a second.
    Number(f64),
    /// A text, an identifier or an address. Bytes that are not UTF-8 are replaced; identifiers and
    /// addresses have their usual notation.
    Text(String),
}

impl Value {
    /// The number; also the number in a text, because agents give load averages as texts.
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
    fn object_identifiers_are_parsed_and_invalid_text_is_refused() {
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
