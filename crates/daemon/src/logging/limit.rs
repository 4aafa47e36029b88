//! A bound on log lines, so that repeated lines cannot fill a disk.
//!
//! A kind of line is its place in the code and, if the line names a tenant, this tenant. The first lines of each kind
//! in ten seconds are written. If a kind has more lines, one line in ten seconds is written, and then the number of
//! omitted lines. All tenants together have a bound for each place: beyond this bound each tenant has one line. Lines
//! below INFO are not bounded, because somebody has asked for them.
//!
//! [`Limit`] has no clock and writes nothing; [`Limiter`] is the layer before the subscriber.

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::lock::lock;

/// The time in which lines of one kind are counted together.
pub(super) const WINDOW: Duration = Duration::from_secs(10);
/// The number of first lines of a kind.
const FIRST: u32 = 14;
/// The number of first lines of a place for all tenants together.
const FIRST_OF_PLACE: u32 = 20;
/// The most kinds with a count of their own; all others count as one kind.
const KINDS: usize = 4096;
/// The target of lines with the number of omitted lines.
pub(super) const LEFT_OUT: &str = "weir::left_out";

/// The kind of a line.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Kind {
    place: Option<Identifier>,
    tenant: String,
}

/// The counts of a kind.
struct Lines {
    began: Instant,
    written: u32,
    quota: u32,
    /// Whether this window has more lines than were written.
    over: bool,
    left_out: u64,
    /// The time of the first omitted line.
    since: Instant,
    /// The message of the line.
    message: String,
}

/// The lines of a place in a window, of all tenants together.
struct Place {
    began: Instant,
    written: u32,
}

impl Place {
    /// Whether there is room for a line that is not its kind's first one.
    fn has_room(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.began) >= WINDOW {
            (self.began, self.written) = (now, 0);
        }
        self.written < FIRST_OF_PLACE
    }
}

/// The number of omitted lines of one kind.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) tenant: String,
    pub(super) message: String,
    pub(super) lines: u64,
}

/// Counts lines by kind.
#[derive(Default)]
pub(super) struct Limit {
    kinds: HashMap<Kind, Lines>,
    /// As many as the program has places with log lines.
    places: HashMap<Option<Identifier>, Place>,
}

impl Limit {
    /// Whether a line may be written.
    fn admits(&mut self, mut kind: Kind, message: &str, now: Instant) -> bool {
        if self.kinds.len() >= KINDS && !self.kinds.contains_key(&kind) {
            kind = Kind { place: None, tenant: String::new() };
        }
        let new = || Place { began: now, written: 0 };
        let place = self.places.entry(kind.place.clone()).or_insert_with(new);
        let has_room = place.has_room(now);
        let lines = self.kinds.entry(kind).or_insert_with(|| Lines::new(now));
        let is_written = lines.admits(message, has_room, now);
        place.written += u32::from(is_written);
        is_written
    }

    /// The omitted lines of a whole window that were not reported yet; forgets kinds without further lines.
    fn left_out(&mut self, now: Instant) -> Vec<LeftOut> {
        let mut left_out = Vec::new();
        self.kinds.retain(|kind, lines| {
            if lines.left_out > 0 && now.saturating_duration_since(lines.since) >= WINDOW {
                left_out.push(LeftOut {
                    tenant: kind.tenant.clone(),
                    message: std::mem::take(&mut lines.message),
                    lines: std::mem::take(&mut lines.left_out),
                });
            }
            lines.left_out > 0 || now.saturating_duration_since(lines.began) < WINDOW * 2
        });
        left_out
    }
}

impl Lines {
    fn new(now: Instant) -> Lines {
        Lines {
            began: now,
            written: 0,
            quota: FIRST,
            over: false,
            left_out: 0,
            since: now,
            message: String::new(),
        }
    }

    /// Whether a line may be written; `has_room`: whether there is room for more lines of all tenants.
    fn admits(&mut self, message: &str, has_room: bool, now: Instant) -> bool {
        let age = now.saturating_duration_since(self.began);
        if age >= WINDOW {
            let busy = self.over && age < WINDOW * 2;
            (self.began, self.written, self.over) = (now, 0, false);
            self.quota = if busy { 1 } else { FIRST };
        }
        if self.written < self.quota && (has_room || self.written == 0) {
            self.written += 1;
            return true;
        }
        if self.left_out == 0 {
            self.since = now;
            self.message = message.to_owned();
        }
        self.over = true;
        self.left_out += 1;
        false
    }
}

/// The layer before the subscriber that writes lines.
#[derive(Clone, Default)]
pub(super) struct Limiter(Arc<Mutex<Limit>>);

impl Limiter {
    /// The omitted lines of ten seconds that were not reported yet.
    pub(super) fn left_out(&self, now: Instant) -> Vec<LeftOut> {
        lock(&self.0).left_out(now)
    }
}

impl<S: Subscriber> Layer<S> for Limiter {
    fn event_enabled(&self, event: &Event<'_>, _context: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if *metadata.level() > Level::INFO || metadata.target() == LEFT_OUT {
            return true;
        }
        let mut said = Said::default();
        event.record(&mut said);
        let kind = Kind { place: Some(metadata.callsite()), tenant: said.tenant };
        let mut limit = lock(&self.0);
        limit.admits(kind, &said.message, Instant::now())
    }
}

/// The fields of an event that matter here.
#[derive(Default)]
struct Said {
    tenant: String,
    message: String,
}

impl Visit for Said {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "tenant" {
            value.clone_into(&mut self.tenant);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = match field.name() {
            "tenant" => &mut self.tenant,
            "message" => &mut self.message,
            _ => return,
        };
        // Writing to a String cannot fail.
        let _ = write!(text, "{value:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(tenant: &str) -> Kind {
        Kind { place: None, tenant: tenant.to_owned() }
    }

    #[test]
    fn repeated_lines_are_written_every_10_seconds_and_omitted_lines_counted() {
        let (mut limit, began) = (Limit::default(), Instant::now());
        let (mut written, mut left_out) = (0, 0);
        // The program logs a line every millisecond for 35 s, and asks for the number of omitted lines every half
        // second.
        for millisecond in 0..35_000 {
            let now = began + Duration::from_millis(millisecond);
            if limit.admits(kind(""), "again", now) {
                written += 1;
            }
            if millisecond % 500 == 0 {
                left_out += limit.left_out(now).iter().map(|left| left.lines).sum::<u64>();
            }
        }
        assert_eq!(written, 14 + 3);
        let late = began + Duration::from_secs(60);
        let last = limit.left_out(late);
        assert_eq!(last.len(), 1);
        assert_eq!(last[0].message, "again");
        assert_eq!(written + left_out + last[0].lines, 35_000, "none is forgotten");
    }

    #[test]
    fn many_log_lines_of_a_tenant_do_not_hide_lines_of_another_tenant() {
        let (mut limit, now) = (Limit::default(), Instant::now());
        let flood = (0..1000).filter(|_| limit.admits(kind("red"), "again", now)).count();
        assert_eq!(flood, 14);
        assert!(limit.admits(kind("blue"), "again", now));
    }

    #[test]
    fn tenants_share_a_limit_of_log_lines_and_each_tenant_gets_a_line() {
        const TENANTS: u32 = 100;
        let (mut limit, began) = (Limit::default(), Instant::now());
        for window in 0..3 {
            let now = began + WINDOW * window;
            let mut written = HashMap::new();
            for tenant in (0..TENANTS).cycle().take(TENANTS as usize * 30) {
                let is_written = limit.admits(kind(&tenant.to_string()), "again", now);
                *written.entry(tenant).or_insert(0) += u32::from(is_written);
            }
            assert!(written.values().all(|lines| *lines >= 1), "{written:?}");
            let all: u32 = written.values().sum();
            assert!(all <= 20 + TENANTS, "{all} lines in window {window}");
            // The number of omitted lines is reported for each tenant.
            let left_out = limit.left_out(now + WINDOW);
            assert_eq!(left_out.len(), TENANTS as usize);
        }
    }

    #[test]
    fn after_a_quiet_period_line_kinds_are_removed_and_the_limit_starts_again() {
        let (mut limit, began) = (Limit::default(), Instant::now());
        for _ in 0..100 {
            limit.admits(kind(""), "again", began);
        }
        let later = began + WINDOW * 3;
        assert_eq!(limit.left_out(later).len(), 1);
        assert!(limit.kinds.is_empty());
        let again = (0..100).filter(|_| limit.admits(kind(""), "again", later)).count();
        assert_eq!(again, 14);
    }

    #[test]
    fn the_number_of_log_line_kinds_is_bounded() {
        let (mut limit, now) = (Limit::default(), Instant::now());
        for tenant in 0..KINDS * 2 {
            limit.admits(kind(&tenant.to_string()), "again", now);
        }
        assert!(limit.kinds.len() <= KINDS + 1);
    }
}
