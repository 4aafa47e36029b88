//! Sends requests to the REST interface of a system under test, and reads the answers.

use rest::Request;
use serde_json::Value;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The most bytes of an answer that are read.
const MOST: u64 = 64 << 20;

/// Sends a request, and returns the status and the answer, as JSON.
///
/// # Errors
/// The error, as a sentence.
pub(crate) fn ask(
    api: SocketAddr,
    method: &str,
    path: &str,
    body: Option<&Value>,
    limit: Duration,
) -> Result<(u16, Value), String> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let (status, text) = text(api, method, path, &body, limit)?;
    Ok((status, serde_json::from_str(&text).unwrap_or(Value::Null)))
}

/// Sends a request with a text, and returns the answer as a text.
///
/// # Errors
/// The error, as a sentence.
pub(crate) fn text(
    api: SocketAddr,
    method: &str,
    path: &str,
    body: &str,
    limit: Duration,
) -> Result<(u16, String), String> {
    let ask = || {
        let stream = TcpStream::connect_timeout(&api, limit)?;
        stream.set_read_timeout(Some(limit))?;
        stream.set_nodelay(true)?;
        let host = api.to_string();
        let answer = rest::ask(stream, &Request::new(method, path, &host).json(body))?;
        Ok((answer.status, answer.text(MOST)?))
    };
    ask().map_err(|error: std::io::Error| format!("{method} {path}: {error}"))
}

/// The sum of a metric's samples in Prometheus' text format, over the samples whose labels contain
/// `label`.
pub(crate) fn sum(text: &str, name: &str, label: &str) -> f64 {
    let value = |line: &str| {
        let rest = line.strip_prefix(name)?;
        let (labels, value) = rest.rsplit_once(' ')?;
        let is_it = labels.is_empty() || labels.starts_with('{');
        (is_it && labels.contains(label)).then(|| value.parse::<f64>().ok()).flatten()
    };
    text.lines().filter_map(value).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_metric_are_added_up_over_labels() {
        let text = "# TYPE a counter\na{switch=\"1\",direction=\"to_switch\"} 3\n\
                    a{switch=\"2\",direction=\"from_switch\"} 4\nab{direction=\"to_switch\"} 9\nb 1e3\n";
        assert_eq!(sum(text, "a", "to_switch"), 3.0);
        assert_eq!(
            (sum(text, "a", ""), sum(text, "b", ""), sum(text, "c", "")),
            (7.0, 1000.0, 0.0)
        );
    }
}
