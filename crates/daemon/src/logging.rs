//! Logs on stderr: text for people, or JSON lines for collectors.
//!
//! `WEIR_LOG` chooses levels, as in `WEIR_LOG=info,daemon::store=debug`; the default is `info`. `limit` bounds the
//! number of lines of one kind; [`recent`] keeps the last lines.

mod limit;
pub mod recent;

use std::fmt;
use std::io;
use std::sync::OnceLock;
use std::time::Instant;

use limit::Limiter;
use recent::Recorder;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

/// The format of log lines (`--log-format`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One readable line per event.
    #[default]
    Text,
    /// One JSON object per event.
    Json,
}

/// Logging cannot be set up.
#[derive(Debug, PartialEq, Eq)]
pub enum LogError {
    /// The value of `WEIR_LOG` cannot be read.
    Filter(String),
    /// Logging is set up already.
    Twice,
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogError::Filter(why) => {
                write!(f, "WEIR_LOG: {why} (expected, for example, `info,daemon::store=debug`)")
            }
            LogError::Twice => f.write_str("logging is set up already"),
        }
    }
}

impl std::error::Error for LogError {}

/// The limit of the process's log lines.
static LIMITER: OnceLock<Limiter> = OnceLock::new();

/// Sets up logging for the process; `filter` is the value of `WEIR_LOG`, if any.
pub fn init(format: Format, filter: Option<&str>) -> Result<(), LogError> {
    let limiter = LIMITER.get_or_init(Limiter::default);
    let subscriber = subscriber(format, filter, limiter.clone(), io::stderr)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| LogError::Twice)
}

/// Logs the number of omitted lines of each kind with too many lines. The caller calls this function regularly.
pub fn log_left_out() {
    LIMITER.get().into_iter().for_each(|limiter| log_left_out_of(limiter, Instant::now()));
}

fn log_left_out_of(limiter: &Limiter, now: Instant) {
    for limit::LeftOut { tenant, message, lines } in limiter.left_out(now) {
        if tenant.is_empty() {
            tracing::warn!(target: limit::LEFT_OUT, lines, "lines were left out that said: {message}");
        } else {
            tracing::warn!(
                target: limit::LEFT_OUT, lines, tenant, "lines were left out that said: {message}"
            );
        }
    }
}

fn subscriber<W>(
    format: Format,
    filter: Option<&str>,
    limiter: Limiter,
    writer: W,
) -> Result<Box<dyn tracing::Subscriber + Send + Sync>, LogError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let filter = EnvFilter::try_new(filter.unwrap_or("info"))
        .map_err(|error| LogError::Filter(error.to_string()))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(false)
        // The subscriber would report a failed write with a macro that panics if the report fails as well.
        .log_internal_errors(false);
    Ok(match format {
        Format::Text => Box::new(builder.finish().with(Recorder).with(limiter)),
        Format::Json => {
            Box::new(builder.json().flatten_event(true).finish().with(Recorder).with(limiter))
        }
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: Format, filter: Option<&str>) -> String {
        logged_of(format, filter, || {
            tracing::debug!("too fine");
            tracing::info!(dpid = 7, "a \"switch\" connected");
        })
    }

    pub(crate) fn logged_of(format: Format, filter: Option<&str>, log: impl FnOnce()) -> String {
        logged_within(format, filter, Limiter::default(), log)
    }

    fn logged_within(
        format: Format,
        filter: Option<&str>,
        limiter: Limiter,
        log: impl FnOnce(),
    ) -> String {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let subscriber = subscriber(format, filter, limiter, move || writer.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, log);
        let bytes = buffer.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn repeated_log_lines_are_limited_and_different_lines_are_written() {
        let text = logged_of(Format::Text, None, || {
            for number in 0..10_000 {
                tracing::warn!(number, "too many");
                tracing::info!(number, tenant = "red", "controller connected");
                tracing::info!(number, "switch connected");
            }
            tracing::warn!("something else");
        });
        let of = |words: &str| text.lines().filter(|line| line.contains(words)).count() as u32;
        assert_eq!(of("too many"), 14);
        assert_eq!(of("controller connected"), 14);
        assert_eq!(of("switch connected"), 14);
        assert_eq!(of("something else"), 1);
    }

    /// Ten seconds later, one line for each kind has the number of omitted lines, the tenant, and the message.
    #[test]
    fn the_number_of_omitted_log_lines_is_logged_for_each_kind() {
        let limiter = Limiter::default();
        let text = logged_within(Format::Text, None, limiter.clone(), || {
            let began = Instant::now();
            for number in 0..100 {
                tracing::warn!(number, "too many");
                tracing::info!(number, tenant = "red", "controller connected");
            }
            log_left_out_of(&limiter, began);
            log_left_out_of(&limiter, Instant::now() + std::time::Duration::from_secs(10));
        });
        let summaries: Vec<&str> =
            text.lines().filter(|line| line.contains("lines were left out that said: ")).collect();
        assert_eq!(summaries.len(), 2, "{summaries:#?}");
        let line = |words: &str| summaries.iter().find(|line| line.contains(words)).unwrap();
        let many = line("said: too many");
        assert!(many.contains("WARN") && many.ends_with("lines=86"), "{many}");
        let connected = line("said: controller connected");
        assert!(connected.ends_with("lines=86 tenant=\"red\""), "{connected}");
    }

    #[test]
    fn text_and_json_logs_have_the_same_message_and_fields() {
        let text = logged(Format::Text, None);
        assert!(text.contains("INFO") && text.contains("a \"switch\" connected dpid=7"), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        let json: serde_json::Value = serde_json::from_str(&logged(Format::Json, None)).unwrap();
        assert_eq!(
            (json["message"].as_str(), json["dpid"].as_u64()),
            (Some("a \"switch\" connected"), Some(7))
        );
    }

    #[test]
    fn the_weir_log_variable_selects_log_levels() {
        assert_eq!(logged(Format::Text, Some("debug")).lines().count(), 2);
        assert_eq!(logged(Format::Text, Some("error")), "");
        assert!(matches!(
            subscriber(Format::Text, Some("info,=="), Limiter::default(), io::sink).err(),
            Some(LogError::Filter(_))
        ));
    }
}
