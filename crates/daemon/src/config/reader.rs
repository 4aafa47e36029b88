//! Reads a parsed TOML document: accepts known keys, and collects an error for everything else.
//!
//! Serde would stop at the first error, and does not keep the place of a value. An operator needs all errors of a file
//! at once, each with its line.

use std::cell::RefCell;
use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::diagnostic::{Diagnostic, Position, Source};
use crate::unsupported;

/// The collected errors.
pub(super) struct Reader<'s> {
    pub(super) source: Source<'s>,
    errors: RefCell<Vec<Diagnostic>>,
}

impl<'s> Reader<'s> {
    pub(super) fn new(source: Source<'s>) -> Self {
        Reader { source, errors: RefCell::default() }
    }

    pub(super) fn error(
        &self,
        span: Range<usize>,
        key: &str,
        message: impl Into<String>,
        help: Option<String>,
    ) {
        self.errors.borrow_mut().push(self.source.diagnostic(span, key, message.into(), help));
    }

    /// Whether there was no error so far.
    pub(super) fn is_content(&self) -> bool {
        self.errors.borrow().is_empty()
    }

    pub(super) fn into_errors(self) -> Vec<Diagnostic> {
        let mut errors = self.errors.into_inner();
        errors.sort_by_key(|error| error.at);
        errors
    }
}

/// A table whose keys are read one by one; keys that nobody has read at the end are unknown keys.
pub(super) struct Table<'r, 's> {
    reader: &'r Reader<'s>,
    entries: &'r DeTable<'s>,
    span: Range<usize>,
    path: String,
    known: Vec<&'static str>,
}

impl<'r, 's> Table<'r, 's> {
    pub(super) fn root(reader: &'r Reader<'s>, document: &'r Spanned<DeTable<'s>>) -> Self {
        Table {
            reader,
            entries: document.get_ref(),
            span: 0..0,
            path: String::new(),
            known: Vec::new(),
        }
    }

    /// The start of the table.
    pub(super) fn position(&self) -> Position {
        self.reader.source.position(self.span.start)
    }

    /// The place in the file, for errors that are found later.
    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The text of a key, if it is a string; otherwise `None`, without an error. The key has still to be
    /// [read](Table::get).
    pub(super) fn text(&self, key: &str) -> Option<&'r str> {
        self.entries.get(key)?.get_ref().as_str()
    }

    /// Reports an error in the table.
    pub(super) fn refuse(&self, span: Range<usize>, message: &str, help: Option<String>) {
        self.reader.error(span, &self.path, message, help);
    }

    /// Reads a key if it exists; `None` also if `read` has reported an error in the value.
    pub(super) fn get<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Value<'r, 's>) -> Option<T>,
    ) -> Option<T> {
        self.known.push(key);
        let value = self.entries.get(key)?;
        let path =
            if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        read(&Value { reader: self.reader, value, path })
    }

    /// Reads the table under a key.
    pub(super) fn table<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Table<'r, 's>) -> T,
    ) -> Option<T> {
        self.get(key, |value| value.table(read))
    }

    /// Reads a key as [`Table::get`] does; an absent key is an error.
    pub(super) fn require<T>(
        &mut self,
        key: &'static str,
        example: &str,
        read: impl FnOnce(&Value<'r, 's>) -> Option<T>,
    ) -> Option<T> {
        if !self.entries.contains_key(key) {
            let help = format!("add, for example, `{key} = {example}`");
            self.reader.error(
                self.span.clone(),
                &self.path,
                format!("`{key}` is missing"),
                Some(help),
            );
        }
        self.get(key, read)
    }

    /// Reports the keys that nobody has read.
    pub(super) fn end(self) {
        for key in self.entries.keys().filter(|key| !self.known.contains(&key.get_ref().as_ref())) {
            let name = key.get_ref().as_ref();
            if let Some(reason) = unsupported::reason(name) {
                let message = format!("`{name}` is not supported: {reason}");
                self.reader.error(key.span(), &self.path, message, None);
                continue;
            }
            let help = match nearest(name, self.known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known keys here: {}", self.known.join(", ")),
            };
            self.reader.error(key.span(), &self.path, format!("unknown key `{name}`"), Some(help));
        }
    }
}

/// A value and its key.
pub(super) struct Value<'r, 's> {
    reader: &'r Reader<'s>,
    value: &'r Spanned<DeValue<'s>>,
    path: String,
}

impl<'r, 's> Value<'r, 's> {
    pub(super) fn position(&self) -> Position {
        self.reader.source.position(self.value.span().start)
    }

    /// The place in the file, for errors that are found later.
    pub(super) fn span(&self) -> Range<usize> {
        self.value.span()
    }

    /// Reports an error in the value.
    pub(super) fn refuse<T>(&self, message: impl Into<String>, help: Option<String>) -> Option<T> {
        self.reader.error(self.value.span(), &self.path, message, help);
        None
    }

    /// Reports an error in the bytes `part` of a string. If the text in the file differs from the value (escapes,
    /// several lines), the whole string is marked.
    pub(super) fn refuse_part<T>(
        &self,
        part: Range<usize>,
        message: impl Into<String>,
        help: Option<String>,
    ) -> Option<T> {
        let whole = self.value.span();
        let literal = self.value.get_ref().as_str().and_then(|value| {
            let raw = self.reader.source.text.get(whole.clone())?;
            (raw.len() == value.len() + 2 && raw.get(1..raw.len() - 1)? == value).then_some(())
        });
        let span = match literal {
            Some(()) => {
                let start = (whole.start + 1 + part.start).min(whole.end - 1);
                start..(whole.start + 1 + part.end).clamp(start, whole.end - 1)
            }
            None => whole,
        };
        self.reader.error(span, &self.path, message, help);
        None
    }

    fn mistyped<T>(&self, expected: &str) -> Option<T> {
        self.refuse(format!("expected {expected}, found {}", kind(self.value.get_ref())), None)
    }

    pub(super) fn string(&self) -> Option<&'r str> {
        self.value.get_ref().as_str().or_else(|| self.mistyped("a string"))
    }

    /// The value if it is a string; otherwise `None`, without an error.
    pub(super) fn maybe_string(&self) -> Option<&'r str> {
        self.value.get_ref().as_str()
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        self.value.get_ref().as_bool().or_else(|| self.mistyped("true or false"))
    }

    /// The number of elements of an array.
    pub(super) fn length(&self) -> Option<usize> {
        self.value.get_ref().as_array().map(|array| array.len())
    }

    pub(super) fn is_empty_list(&self) -> bool {
        self.value.get_ref().as_array().is_some_and(|array| array.is_empty())
    }

    pub(super) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    pub(super) fn is_integer(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::Integer(_))
    }

    /// An integer in a range, which `T` holds.
    pub(super) fn integer<T: TryFrom<u64>>(&self, range: RangeInclusive<u64>) -> Option<T> {
        let DeValue::Integer(integer) = self.value.get_ref() else {
            return self.mistyped("an integer");
        };
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        let number = number.filter(|number| range.contains(number));
        number.and_then(|number| T::try_from(number).ok()).or_else(|| {
            let help = format!("it must be between {} and {}", range.start(), range.end());
            self.refuse(format!("{integer} is out of range"), Some(help))
        })
    }

    /// The path of a file; see [`beside`](Self::beside).
    pub(super) fn file(&self) -> Option<PathBuf> {
        self.string().map(|path| self.beside(path))
    }

    /// The path of a file; a relative path starts at the folder of the configuration file.
    pub(super) fn beside(&self, path: &str) -> PathBuf {
        Path::new(self.reader.source.name).parent().unwrap_or(Path::new("")).join(path)
    }

    /// A string that parses as `T`.
    pub(super) fn parsed<T: FromStr<Err: Display>>(&self) -> Option<T> {
        self.string()?
            .parse()
            .map_or_else(|error: T::Err| self.refuse(error.to_string(), None), Some)
    }

    pub(super) fn socket_address(&self) -> Option<SocketAddr> {
        let text = self.string()?;
        let help =
            || Some("expected IP:PORT, such as \"127.0.0.1:8080\" or \"[::1]:8080\"".to_owned());
        text.parse().ok().or_else(|| self.refuse(format!("bad address \"{text}\""), help()))
    }

    /// A duration such as `"500ms"`, within bounds.
    pub(super) fn duration(&self, range: RangeInclusive<Duration>) -> Option<Duration> {
        let text = self.string()?;
        let Some(duration) = parse_duration(text) else {
            let help = "a number with a unit: us, ms, s, m or h, such as \"500ms\"".to_owned();
            return self.refuse(format!("bad duration \"{text}\""), Some(help));
        };
        if !range.contains(&duration) {
            let help = format!("it must be between {:?} and {:?}", range.start(), range.end());
            return self.refuse(format!("\"{text}\" is out of range"), Some(help));
        }
        Some(duration)
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&'static str, T)]) -> Option<T> {
        let text = self.string()?;
        if let Some((_, choice)) = choices.iter().find(|(word, _)| *word == text) {
            return Some(*choice);
        }
        let words: Vec<String> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let help = match nearest(text, choices.iter().map(|(word, _)| *word)) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("it must be {}", words.join(" or ")),
        };
        self.refuse(format!("unknown value \"{text}\""), Some(help))
    }

    /// Reads each element of an array; wrong elements are reported and left out.
    pub(super) fn list<T>(
        &self,
        mut read: impl FnMut(&Value<'r, 's>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Some(array) = self.value.get_ref().as_array() else { return self.mistyped("an array") };
        let values = array.iter().enumerate();
        let values = values.map(|(i, value)| Value {
            reader: self.reader,
            value,
            path: format!("{}[{i}]", self.path),
        });
        Some(values.filter_map(|value| read(&value)).collect())
    }

    /// The tables of an array.
    pub(super) fn tables<T>(
        &self,
        mut read: impl FnMut(&mut Table<'r, 's>) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.list(|value| value.table(&mut read).flatten())
    }

    /// One value, or an array of them.
    pub(super) fn one_or_list<T>(
        &self,
        mut read: impl FnMut(&Value<'r, 's>) -> Option<T>,
    ) -> Option<Vec<T>> {
        if self.value.get_ref().is_array() {
            return self.list(read);
        }
        Some(read(self).into_iter().collect())
    }

    /// Reads a whole table: keys that `read` does not read are errors.
    pub(super) fn table<T>(&self, read: impl FnOnce(&mut Table<'r, 's>) -> T) -> Option<T> {
        let Some(entries) = self.value.get_ref().as_table() else {
            return self.mistyped("a table");
        };
        let mut table = Table {
            reader: self.reader,
            entries,
            span: self.value.span(),
            path: self.path.clone(),
            known: Vec::new(),
        };
        let read = read(&mut table);
        table.end();
        Some(read)
    }
}

/// Whether a section has a key, or is no table. The section reports errors in its values; the places that need the key
/// do not report them again.
pub(super) fn has(document: &DeTable<'_>, section: &str, key: &str) -> bool {
    let section = document.get(section).map(|section| section.get_ref());
    section.is_some_and(|it| it.as_table().is_none_or(|table| table.contains_key(key)))
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

/// The known word that is nearest to a misspelt word.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate));
    scored
        .min()
        .filter(|&(distance, candidate)| distance <= 1 + candidate.len() / 4)
        .map(|(_, candidate)| candidate)
}

fn parse_duration(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let number: u64 = number.parse().ok()?;
    let micros: u64 = match unit {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        _ => return None,
    };
    number.checked_mul(micros).map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_numbers_with_a_unit() {
        for (text, micros) in [
            ("0s", Some(0)),
            ("250us", Some(250)),
            ("15ms", Some(15_000)),
            ("1s", Some(1_000_000)),
            ("2m", Some(120_000_000)),
            ("1h", Some(3_600_000_000)),
            ("", None),
            ("5", None),
            ("s", None),
            ("1.5s", None),
            ("-1s", None),
            ("1 s", None),
            ("99999999999999999999s", None),
            ("18446744073709551615h", None),
        ] {
            assert_eq!(parse_duration(text), micros.map(Duration::from_micros), "{text:?}");
        }
    }

    #[test]
    fn only_a_similar_key_is_suggested_for_an_unknown_key() {
        let known = ["name", "weight", "controllers", "flowspace"];
        for (word, near) in [
            ("wieght", Some("weight")),
            ("controler", Some("controllers")),
            ("nam", Some("name")),
            ("colour", None),
        ] {
            assert_eq!(nearest(word, known.into_iter()), near, "{word}");
        }
    }
}
