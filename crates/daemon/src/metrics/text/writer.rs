//! Writing of single series.

use std::fmt::Write;

use super::super::instruments::{Histogram, Snapshot};
use super::super::names;
use super::super::series::Messages;

/// The bytes that are given to the receiver at a time.
const PIECE: usize = 32 << 10;

/// The text so far, and its receiver.
pub(super) struct Text<'a> {
    text: String,
    take: &'a mut dyn FnMut(String) -> bool,
    /// Whether the receiver still accepts text.
    is_wanted: bool,
}

impl<'a> Text<'a> {
    pub(super) fn new(take: &'a mut dyn FnMut(String) -> bool) -> Text<'a> {
        Text { text: String::new(), take, is_wanted: true }
    }
}

impl Text<'_> {
    /// Gives the text to the receiver, if it has more than this number of bytes.
    pub(super) fn hand_over(&mut self, more_than: usize) {
        if self.text.len() > more_than {
            let piece = std::mem::take(&mut self.text);
            self.is_wanted = self.is_wanted && (self.take)(piece);
        }
    }

    pub(super) fn messages(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        version: u8,
        messages: &Messages,
    ) {
        let mut unknown = 0;
        let mut labels = labels.to_vec();
        labels.push(("type", ""));
        let last = labels.len() - 1;
        for (message_type, count) in messages.seen() {
            match message_type.and_then(|t| names::message_type(version, t)) {
                Some(known) => {
                    labels[last].1 = known;
                    self.sample(name, &labels, count);
                }
                // Several types may be unknown to the version, and a series may be printed only once.
                None => unknown += count,
            }
        }
        if unknown > 0 {
            labels[last].1 = "unknown";
            self.sample(name, &labels, unknown);
        }
    }

    pub(super) fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
        self.snapshot(name, labels, &histogram.snapshot());
    }

    pub(super) fn snapshot(&mut self, name: &str, labels: &[(&str, &str)], snapshot: &Snapshot) {
        let count = snapshot.count();
        if count == 0 {
            return;
        }
        let (bucket, sum, total) =
            (format!("{name}_bucket"), format!("{name}_sum"), format!("{name}_count"));
        for (bound, cumulative) in snapshot.octaves() {
            let bound = seconds(bound);
            self.sample(&bucket, &[labels, &[("le", &bound)]].concat(), cumulative);
        }
        self.sample(&bucket, &[labels, &[("le", "+Inf")]].concat(), count);
        self.sample(&sum, labels, seconds(snapshot.sum_nanos));
        self.sample(&total, labels, count);
    }

    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    pub(super) fn sample(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        value: impl std::fmt::Display,
    ) {
        if !self.is_wanted {
            return;
        }
        self.text.push_str(name);
        for (i, (label, text)) in labels.iter().enumerate() {
            self.line(format_args!("{}{label}=\"", if i == 0 { '{' } else { ',' }));
            self.escaped(text);
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        self.line(format_args!(" {value}\n"));
        self.hand_over(PIECE);
    }

    fn escaped(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '\\' => self.text.push_str("\\\\"),
                '"' => self.text.push_str("\\\""),
                '\n' => self.text.push_str("\\n"),
                c => self.text.push(c),
            }
        }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(line);
    }
}

pub(super) fn dpid(dpid: u64) -> String {
    crate::dpid::Dpid(dpid).to_string()
}

/// Nanoseconds as exact decimal seconds: a float would print 0.000001 as 1e-6, and round large sums.
pub(super) fn seconds(nanos: u64) -> String {
    let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
