//! Logs on stderr: text for people, or JSON lines for collectors.
//!
//! `WEIR_LOG` chooses levels, as in `WEIR_LOG=info,daemon::store=debug`; the default is `info`.

use std::fmt;
use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// How log lines look (`--log-format`).
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
    /// It is set up already.
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

/// Sets up logging for the process; `filter` is the value of `WEIR_LOG`, if any.
pub fn init(format: Format, filter: Option<&str>) -> Result<(), LogError> {
    let subscriber = subscriber(format, filter, io::stderr)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| LogError::Twice)
}

fn subscriber<W>(
    format: Format,
    filter: Option<&str>,
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
        // Of a line that cannot be written it would tell by a macro that panics if that cannot be, either.
        .log_internal_errors(false);
    Ok(match format {
        Format::Text => Box::new(builder.finish()),
        Format::Json => Box::new(builder.json().flatten_event(true).finish()),
    })
}

#[cfg(test)]
mod tests {
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
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let subscriber = subscriber(format, filter, move || writer.clone()).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            tracing::debug!("too fine");
            tracing::info!(dpid = 7, "a \"switch\" connected");
        });
        let bytes = buffer.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn text_and_json_say_the_same() {
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
    fn weir_log_chooses_levels() {
        assert_eq!(logged(Format::Text, Some("debug")).lines().count(), 2);
        assert_eq!(logged(Format::Text, Some("error")), "");
        assert!(matches!(
            subscriber(Format::Text, Some("info,=="), io::sink).err(),
            Some(LogError::Filter(_))
        ));
    }
}
