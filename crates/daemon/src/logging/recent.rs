//! The last lines of the log, for people who look at the page instead of a terminal.
//!
//! The module keeps lines of INFO and above that pass `WEIR_LOG` and the bound on lines, the same as on stderr. Their
//! number and their length are bounded.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Write};
use std::sync::Mutex;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::lock::lock;
use crate::system::now_ms;

/// The number of kept lines.
const KEPT: usize = 500;
/// The most bytes of a message, and of a field's value.
const LONGEST: usize = 400;
/// The most fields of a line.
const FIELDS: usize = 12;
/// The most tenants whose lines are counted; there are never more tenants.
const TENANTS: usize = 4096;

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The number of the line, from 1.
    pub number: u64,
    /// The number of the line among the lines that name the same tenant: a tenant does not learn the number of other
    /// lines.
    pub of_tenant: u64,
    /// Milliseconds of Unix time.
    pub time_ms: u64,
    /// `info`, `warn` or `error`.
    pub level: &'static str,
    /// The text of the log line.
    pub message: String,
    /// The fields of the line, with their names in the log.
    pub fields: BTreeMap<&'static str, String>,
}

/// The last lines.
#[derive(Debug)]
pub(super) struct Recent(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    lines: VecDeque<Line>,
    number: u64,
    of_tenants: BTreeMap<String, u64>,
}

/// The last lines of the process.
static RECENT: Recent = Recent::new();

/// The lines of the process after the line with this number, oldest first; for a tenant, the lines that name the
/// tenant.
pub fn lines_after(number: u64, tenant: Option<&str>) -> Vec<Line> {
    RECENT.after(number, tenant)
}

/// Keeps the lines of the process.
pub(super) struct Recorder;

impl<S: Subscriber> Layer<S> for Recorder {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        RECENT.record(event);
    }
}

impl Recent {
    const fn new() -> Recent {
        let of_tenants = BTreeMap::new();
        Recent(Mutex::new(Kept { lines: VecDeque::new(), number: 0, of_tenants }))
    }

    fn record(&self, event: &Event<'_>) {
        let level = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warn",
            Level::INFO => "info",
            _ => return,
        };
        let mut said = Said::default();
        event.record(&mut said);
        let time_ms = now_ms();
        let mut kept = lock(&self.0);
        kept.number += 1;
        let of_tenant = said.fields.get("tenant").map_or(0, |tenant| kept.count(tenant));
        let Said { message, fields } = said;
        let line = Line { number: kept.number, of_tenant, time_ms, level, message, fields };
        if kept.lines.len() >= KEPT {
            kept.lines.pop_front();
        }
        kept.lines.push_back(line);
    }

    fn after(&self, number: u64, tenant: Option<&str>) -> Vec<Line> {
        let kept = lock(&self.0);
        let is_wanted = |line: &&Line| match tenant {
            None => line.number > number,
            Some(tenant) => {
                let names = line.fields.get("tenant").is_some_and(|it| it == tenant);
                names && line.of_tenant > number
            }
        };
        kept.lines.iter().filter(is_wanted).cloned().collect()
    }
}

impl Kept {
    /// The next number among a tenant's lines.
    fn count(&mut self, tenant: &str) -> u64 {
        if !self.of_tenants.contains_key(tenant) {
            if self.of_tenants.len() >= TENANTS {
                self.of_tenants.clear();
            }
            self.of_tenants.insert(tenant.to_owned(), 0);
        }
        self.of_tenants.get_mut(tenant).map_or(0, |count| {
            *count += 1;
            *count
        })
    }
}

/// The fields of an event.
#[derive(Default)]
struct Said {
    message: String,
    fields: BTreeMap<&'static str, String>,
}

impl Visit for Said {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = Short(String::new());
        // Writing ends early if the text is too long.
        let _ = write!(text, "{value:?}");
        match field.name() {
            "message" => self.message = text.0,
            _ if self.fields.len() >= FIELDS => {}
            name => drop(self.fields.insert(name, text.0)),
        }
    }
}

/// The beginning of a text.
struct Short(String);

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = LONGEST.saturating_sub(self.0.len());
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        let end = (0..=room).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        self.0.push_str(&text[..end]);
        self.0.push('…');
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    struct Here(Arc<Recent>);

    impl<S: Subscriber> Layer<S> for Here {
        fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
            self.0.record(event);
        }
    }

    fn recorded(log: impl FnOnce()) -> Arc<Recent> {
        let recent = Arc::new(Recent::new());
        let subscriber = tracing_subscriber::registry().with(Here(Arc::clone(&recent)));
        tracing::subscriber::with_default(subscriber, log);
        recent
    }

    #[test]
    fn warnings_are_kept_with_fields_and_debug_lines_are_not_kept() {
        let recent = recorded(|| {
            tracing::debug!("too fine");
            tracing::warn!(tenant = "red", ports = 3, why = %"<b>", "no way");
        });
        let lines = recent.after(0, None);
        let [line] = lines.as_slice() else { panic!("{lines:?}") };
        assert_eq!((line.number, line.level, line.message.as_str()), (1, "warn", "no way"));
        let fields: Vec<_> = line.fields.iter().map(|(k, v)| (*k, v.as_str())).collect();
        assert_eq!(fields, [("ports", "3"), ("tenant", "red"), ("why", "<b>")]);
    }

    #[test]
    fn recent_log_lines_are_bounded_in_number_and_length() {
        let long = "ä".repeat(10 * LONGEST);
        let recent = recorded(|| {
            (0..KEPT + 7).for_each(|number| tracing::info!(number, long, "{long}"));
        });
        let lines = recent.after(0, None);
        assert_eq!((lines.len(), lines[0].number), (KEPT, 8));
        assert!(lines[0].message.len() <= LONGEST + 3 && lines[0].message.ends_with("ä…"));
        assert_eq!(recent.after(KEPT as u64 + 5, None).len(), 2);
        assert_eq!(recent.after(u64::MAX, None).len(), 0);
    }

    #[test]
    fn a_tenant_sees_only_own_log_lines_with_a_separate_numbering() {
        let recent = recorded(|| {
            tracing::info!(tenant = "blue", "first");
            (0..7).for_each(|number| tracing::info!(number, tenant = "red", "again"));
            tracing::info!("switch connected, for red and blue");
            tracing::info!(tenant = "blue", "second");
        });
        let lines = recent.after(0, Some("blue"));
        let shown: Vec<_> = lines.iter().map(|it| (it.of_tenant, it.message.as_str())).collect();
        assert_eq!(shown, [(1, "first"), (2, "second")]);
        assert_eq!(recent.after(1, Some("blue")).len(), 1);
        assert_eq!(recent.after(0, Some("nobody")).len(), 0);
    }
}
