//! `/api/v1/summary`, `/api/v1/log`, and the stream of both, `/api/v1/events`.
//!
//! ```text
//!   maker (while anybody looks) ──every second──► latest summary ──► viewer ──► its connection
//!                                                 last log lines ──┘  one for each stream
//! ```
//!
//! Weir makes a summary once for all viewers, and less often the larger it is. A slow viewer misses events in between,
//! and at most one event waits for it. So the cost of viewers does not depend on the number of events.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use axum::{Extension, Router};
use serde::Serialize;
use tokio::sync::{mpsc, watch};
use utoipa::ToSchema;

use super::answers::{Elsewhere, Failure, Pieces, error};
use super::bounds::{Bounds, Listener};
use super::sources::Sources;
use super::summary::{Before, Summary};
use crate::access::caller::Caller;
use crate::lock::lock;
use crate::logging::recent;
use crate::metrics::ApiRefusal;
use crate::system::now_ms;

/// The time between two summaries, and the largest age of a requested summary.
const PERIOD: Duration = Duration::from_secs(1);
/// The average bytes per second for a viewer.
const BYTES_PER_SECOND: u64 = 40_000;
/// The shortest time of the latency figures; the longest is twice this time.
const RECENT: Duration = Duration::from_secs(10);
/// The log lines that a new viewer gets.
const FIRST_LINES: usize = 100;

/// The shared data of all viewers. Cheap to clone.
#[derive(Clone)]
pub(super) struct Live(Arc<Shared>);

struct Shared {
    sources: Sources,
    started_ms: u64,
    making: Mutex<Making>,
    latest: watch::Sender<Option<Arc<Made>>>,
    /// Whether the maker is running.
    is_made: Mutex<bool>,
}

/// The latency histograms to compare with, and the newer ones that replace them later.
struct Making {
    before: Before,
    next: Before,
    since: Instant,
}

/// A summary, and its event.
struct Made {
    at: Instant,
    summary: Summary,
    event: Bytes,
}

/// Lines of the log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LogLines)]
struct Lines {
    /// The lines, oldest first. Weir keeps the last 500.
    lines: Vec<Line>,
}

/// A line of the log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LogLine)]
struct Line {
    /// The number of the line since Weir started, from 1; for a tenant, the number among the lines that name the
    /// tenant.
    number: u64,
    /// Milliseconds of Unix time.
    time_ms: u64,
    /// `info`, `warn` or `error`.
    level: &'static str,
    /// The text of the log line.
    message: String,
    /// The fields of the line: `tenant`, `switch`, `dpid`, `reason` and others.
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    fields: std::collections::BTreeMap<&'static str, String>,
}

impl Lines {
    /// The lines after this number; for a tenant, the lines that name the tenant.
    fn after(number: u64, tenant: Option<&str>) -> Lines {
        let line = |line: recent::Line| {
            let recent::Line { number, of_tenant, time_ms, level, message, fields } = line;
            let number = if tenant.is_some() { of_tenant } else { number };
            Line { number, time_ms, level, message, fields }
        };
        Lines { lines: recent::lines_after(number, tenant).into_iter().map(line).collect() }
    }
}

impl Live {
    pub(super) fn new(sources: Sources) -> Live {
        let making = Making { before: Before::new(), next: Before::new(), since: Instant::now() };
        Live(Arc::new(Shared {
            sources,
            started_ms: now_ms(),
            making: Mutex::new(making),
            latest: watch::Sender::new(None),
            is_made: Mutex::new(false),
        }))
    }

    /// The latest summary, or a new one if the latest is too old. This takes a millisecond or more.
    fn summary(&self) -> Arc<Made> {
        let mut making = lock(&self.0.making);
        let latest = self.0.latest.borrow().clone();
        if let Some(latest) = latest.filter(|latest| latest.at.elapsed() < PERIOD / 2) {
            return latest;
        }
        let (mut summary, histograms) = Summary::new(&self.0.sources, &making.before);
        if making.since.elapsed() >= RECENT {
            making.before = std::mem::replace(&mut making.next, histograms);
            making.since = Instant::now();
        }
        summary.time_ms = now_ms();
        summary.started_ms = self.0.started_ms;
        let event = event("summary", &summary);
        let made = Arc::new(Made { at: Instant::now(), summary, event });
        self.0.latest.send_replace(Some(Arc::clone(&made)));
        made
    }

    /// Starts the maker, if it is not running.
    fn keep_up(&self) {
        let mut is_made = lock(&self.0.is_made);
        if !std::mem::replace(&mut *is_made, true) {
            tokio::spawn(self.clone().make());
        }
    }

    async fn make(self) {
        loop {
            let live = self.clone();
            let made = tokio::task::spawn_blocking(move || live.summary()).await;
            let length = made.map_or(0, |made| made.event.len() as u64);
            let pause = Duration::from_millis(length * 1000 / BYTES_PER_SECOND).max(PERIOD);
            tokio::time::sleep(pause).await;
            let mut is_made = lock(&self.0.is_made);
            if self.0.latest.receiver_count() == 0 {
                *is_made = false;
                return;
            }
        }
    }

    /// The events of one viewer, which uses this place.
    fn events(&self, tenant: Option<String>, viewer: Listener) -> Pieces<Sent, Listener> {
        let (sender, events) = mpsc::channel(1);
        let latest = self.0.latest.subscribe();
        self.keep_up();
        tokio::spawn(send_events(latest, tenant, sender));
        Pieces { pieces: events, _held: viewer }
    }
}

/// Sends events to one viewer until the viewer disconnects.
async fn send_events(
    mut latest: watch::Receiver<Option<Arc<Made>>>,
    tenant: Option<String>,
    sender: mpsc::Sender<Sent>,
) {
    let mut last_sent = None;
    loop {
        let made = latest.borrow_and_update().clone();
        // A summary that is too old is replaced by a new one.
        if let Some(made) = made.filter(|made| made.at.elapsed() < 2 * PERIOD) {
            let mut log = Lines::after(last_sent.unwrap_or(0), tenant.as_deref());
            if last_sent.is_none() {
                let from = log.lines.len().saturating_sub(FIRST_LINES);
                log.lines.drain(..from);
            }
            let summary = match &tenant {
                None => made.event.clone(),
                Some(tenant) => event("summary", &made.summary.of(tenant)),
            };
            if sender.send(Ok(summary)).await.is_err() {
                return;
            }
            if let Some(last) = log.lines.last() {
                last_sent = Some(last.number);
                if sender.send(Ok(event("log", &log))).await.is_err() {
                    return;
                }
            }
        }
        tokio::select! {
            changed = latest.changed() => if changed.is_err() { return },
            () = sender.closed() => return,
        }
    }
}

/// A server-sent event of a viewer.
type Sent = Result<Bytes, Infallible>;

/// An event in text form. The JSON has no line ends.
fn event(name: &str, data: &impl Serialize) -> Bytes {
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n").into()
}

pub(super) fn routes<S: Clone + Send + Sync + 'static>(live: Live) -> Router<S> {
    Router::new()
        .route("/api/v1/summary", get(summary))
        .route("/api/v1/log", get(log))
        .route("/api/v1/events", get(events))
        .layer(Extension(live))
}

/// A summary of switches, tenants and links; for a tenant's account, of this tenant.
#[utoipa::path(
    get,
    path = "/api/v1/summary",
    responses((status = 200, description = "counts and gauges", body = Summary), Elsewhere)
)]
pub(super) async fn summary(
    Extension(live): Extension<Live>,
    Extension(bounds): Extension<Bounds>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let work = move || {
        let made = live.summary();
        match caller.reach.tenant() {
            None => Json(&made.summary).into_response(),
            Some(tenant) => Json(made.summary.of(tenant)).into_response(),
        }
    };
    bounds.off_thread(work).await
}

/// The last lines of the log; for a tenant's account, the lines that name the tenant.
#[utoipa::path(
    get,
    path = "/api/v1/log",
    params(("after" = Option<u64>, Query, description = "lines with larger numbers only")),
    responses(
        (status = 200, description = "lines", body = Lines),
        (status = 400, description = "the query cannot be read", body = Failure),
        Elsewhere,
    )
)]
pub(super) async fn log(Extension(caller): Extension<Caller>, uri: Uri) -> Response {
    let after = match uri.query() {
        None => Some(0),
        Some(query) => query.strip_prefix("after=").and_then(|number| number.parse().ok()),
    };
    match after {
        Some(after) => Json(Lines::after(after, caller.reach.tenant())).into_response(),
        None => {
            let message = "all that can stand behind the ? is after= and the number of a line";
            error(StatusCode::BAD_REQUEST, message)
        }
    }
}

/// Summaries and log lines as server-sent events, every second or less often: `event: summary` has the answer of
/// `/api/v1/summary`, `event: log` has the lines since the last such event.
#[utoipa::path(
    get,
    path = "/api/v1/events",
    responses(
        (status = 200, description = "events", body = String, content_type = "text/event-stream"),
        (status = 503, description = "too many look already", body = Failure),
        Elsewhere,
    )
)]
pub(super) async fn events(
    Extension(live): Extension<Live>,
    Extension(bounds): Extension<Bounds>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let tenant = caller.reach.tenant();
    match bounds.viewer(tenant) {
        Some(viewer) => {
            let events = live.events(tenant.map(str::to_owned), viewer);
            let headers =
                [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
            (headers, Body::from_stream(events)).into_response()
        }
        None => bounds.refuse(ApiRefusal::Listeners, "too many look already"),
    }
}
