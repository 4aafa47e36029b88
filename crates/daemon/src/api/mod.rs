//! REST for people and programs: configuration, connections and state; `/metrics` and `/healthz`.
//!
//! [`router`] has all paths, and each path's function says what the answer is. `GET /api/v1/openapi.json` is the same
//! as a document, generated from the code.
//!
//! `access` has the rights of roles. `guard`, which all requests pass, identifies the caller. Without an account,
//! clients can read by the loopback, and change by a socket in the file system. Numbers are at most a quarter of a
//! second old. All input and output is on the one control thread, and slow work on other threads; nothing here is on
//! the forwarding path. [`http`] bounds each connection, and `bounds` all clients together.
//!
//! Each refusal is one JSON object ([`Failure`]) for all paths, as the document says. For input that is no HTTP, or a
//! header that is too long, the server refuses without such an object.
//!
//! Start reading at [`router`]; [`http`] is the server under it, [`view`] the JSON.

mod access;
mod answers;
mod backup;
mod body;
mod bounds;
mod by;
pub mod clients;
pub mod flows;
mod guard;
pub mod http;
pub mod labels;
pub mod limits;
mod live;
pub mod networks;
mod own;
mod page;
pub mod pins;
mod session;
mod sources;
pub mod summary;
pub mod tls;
pub mod tokens;
pub mod topology;
pub mod trace;
pub mod troubles;
pub mod view;
pub mod why;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware;
use axum::response::sse::KeepAlive;
use axum::response::{IntoResponse, Json, Response, Sse};
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde::{Deserialize, Serialize};
use utoipa::{OpenApi, ToSchema};

use crate::access::audit::Audit;
use crate::access::caller::Caller;
use crate::access::tokens::Tokens;
use crate::metrics::{self, ApiRefusal, Detail};
use answers::{Elsewhere, NOTHING, Name, OTHER_METHOD, Unnamed, error};
use bounds::Bounds;
pub(crate) use bounds::THREADS;

pub use answers::Failure;
pub use session::Session;
pub use sources::{Pulse, Sources};

/// The longest wait for a shard before the process counts as unhealthy. A turn of an event loop takes well under a
/// millisecond.
const PATIENCE: Duration = Duration::from_secs(1);

/// Weir's health.
#[derive(Serialize, ToSchema)]
#[schema(examples(json!({"status": "ok", "switches": 2, "tenants": 3})))]
struct Health {
    /// `ok`, `degraded`, or the problem.
    status: &'static str,
    /// The reason for `degraded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The number of connected switches; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    switches: Option<usize>,
    /// The number of configured tenants; absent for a tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    tenants: Option<usize>,
}

/// All tenants.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct Tenants {
    /// The tenants in the order of the file.
    pub tenants: Vec<view::Tenant>,
}

/// All connected switches.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct Switches {
    /// The switches by datapath id.
    pub switches: Vec<view::Switch>,
}

/// A tenant's link labels.
#[derive(Serialize, ToSchema)]
struct Labels {
    /// The newest label of each link.
    labels: Vec<labels::LabelOf>,
}

/// All routes. `tcp_changes`: whether changes by TCP need no account.
pub fn router(
    sources: Sources,
    tokens: Arc<Tokens>,
    audit: Arc<Audit>,
    tcp_changes: bool,
) -> Router {
    let (metrics, current) = (Arc::clone(&sources.metrics), sources.current.clone());
    let bounds = Bounds::new(Arc::clone(&metrics), current.get().access.subscribers);
    let guard = guard::Guard::new(metrics, current, Arc::clone(&tokens), tcp_changes);
    let live = live::Live::new(sources.clone());
    Router::new()
        .route("/healthz", get(health))
        .route("/metrics", get(prometheus))
        .route("/api/v1/tenants", get(tenants))
        .route("/api/v1/tenants/{name}", get(tenant))
        .route("/api/v1/switches", get(switches))
        .route("/api/v1/topology", get(topology_now))
        .route("/api/v1/labels", get(label_counts))
        .route("/api/v1/tenants/{name}/labels", get(tenant_labels))
        .route("/api/v1/tenants/{name}/labels/events", get(label_events))
        .route("/api/v1/backup", post(backup::backup))
        .route("/api/v1/openapi.json", get(openapi))
        .merge(networks::routes())
        .merge(flows::routes())
        .merge(limits::routes())
        .merge(troubles::routes())
        .merge(why::routes())
        .merge(trace::routes())
        .merge(session::routes())
        .merge(tokens::routes())
        .merge(pins::routes())
        .merge(live::routes(live))
        .merge(page::routes())
        .fallback(|| async { error(StatusCode::NOT_FOUND, NOTHING) })
        .method_not_allowed_fallback(|| async {
            error(StatusCode::METHOD_NOT_ALLOWED, OTHER_METHOD)
        })
        .layer(middleware::from_fn(bounds::answers))
        .layer(middleware::from_fn_with_state(guard, guard::guard))
        .layer(Extension(bounds))
        .layer(Extension(tokens))
        .layer(Extension(audit))
        .with_state(sources)
}

/// Whether every shard answers.
#[utoipa::path(
    get,
    path = "/healthz",
    responses(
        (status = 200, description = "all is well, or what tenants add is refused since it cannot be stored", body = Health),
        (status = 503, description = "a shard does not answer", body = Health),
        Elsewhere,
    )
)]
async fn health(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let pulse = Arc::clone(&sources.pulse);
    let answer = bounds.pulse(move || pulse(PATIENCE)).await;
    let tenants = sources.current.get().tenants.len();
    let reason = sources
        .metrics
        .store_full()
        .map(|why| format!("state cannot be stored, so what tenants add is refused: {why}"));
    let (code, status) = match (answer, &reason) {
        // A restart, which some supervisors do at a 503, would not help.
        (Some(_), Some(_)) => (StatusCode::OK, "degraded"),
        (Some(_), None) => (StatusCode::OK, "ok"),
        (None, _) => (StatusCode::SERVICE_UNAVAILABLE, "a shard does not answer"),
    };
    let health = match caller.reach.tenant() {
        None => Health { status, reason, switches: answer, tenants: Some(tenants) },
        Some(_) => Health { status, reason: None, switches: None, tenants: None },
    };
    (code, Json(health)).into_response()
}

/// Metrics as Prometheus text: per tenant and per switch, or each tenant on each switch.
#[utoipa::path(
    get,
    path = "/metrics",
    params(("detail" = Option<String>, Query, description = "`product`: each tenant on each switch, which are many series")),
    responses(
        (status = 200, description = "metrics", body = String, content_type = "text/plain"),
        (status = 400, description = "the query cannot be read", body = Failure),
        (status = 503, description = "such an answer is being made for somebody else", body = Failure),
        Elsewhere,
    )
)]
async fn prometheus(Extension(bounds): Extension<Bounds>, uri: Uri) -> Response {
    let detail = match uri.query() {
        None => Detail::Sums,
        Some("detail=product") => Detail::Product,
        Some(_) => {
            let message = "all that can stand behind the ? is detail=product";
            return error(StatusCode::BAD_REQUEST, message);
        }
    };
    match bounds.metrics(detail).await {
        Some(body) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], body).into_response(),
        None => {
            bounds.refuse(ApiRefusal::Answers, "such an answer is being made for somebody else")
        }
    }
}

/// Tenants as configured, with their counters on each switch.
#[utoipa::path(
    get,
    path = "/api/v1/tenants",
    responses((status = 200, description = "all tenants", body = Tenants), Elsewhere)
)]
async fn tenants(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let work = move || {
        let (config, switches) = (sources.current.get(), sources.metrics.switches());
        let seen = config.tenants.iter().filter(|tenant| caller.reach.sees(&tenant.name));
        let tenants = seen.map(|tenant| view::Tenant::new(tenant, &switches));
        Json(Tenants { tenants: tenants.collect() }).into_response()
    };
    bounds.off_thread(work).await
}

/// One tenant.
#[utoipa::path(
    get,
    path = "/api/v1/tenants/{name}",
    params(("name" = String, Path, description = "the tenant's name")),
    responses((status = 200, description = "the tenant", body = view::Tenant), Unnamed, Elsewhere)
)]
async fn tenant(State(sources): State<Sources>, Name(name): Name) -> Response {
    let config = sources.current.get();
    match config.tenants.iter().find(|tenant| tenant.name == name) {
        Some(tenant) => {
            Json(view::Tenant::new(tenant, &sources.metrics.switches())).into_response()
        }
        None => error(StatusCode::NOT_FOUND, "there is no tenant of this name"),
    }
}

/// Connected switches, with the counters of their tenants.
#[utoipa::path(
    get,
    path = "/api/v1/switches",
    responses((status = 200, description = "all switches", body = Switches), Elsewhere)
)]
async fn switches(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
) -> Response {
    let work = move || {
        let (config, switches) = (sources.current.get(), sources.metrics.switches());
        let switches = switches.iter().map(|switch| view::Switch::new(switch, &config)).collect();
        Json(Switches { switches }).into_response()
    };
    bounds.off_thread(work).await
}

/// The known physical network.
#[utoipa::path(
    get,
    path = "/api/v1/topology",
    responses(
        (status = 200, description = "switches, ports, links", body = topology::Topology),
        Elsewhere,
    )
)]
async fn topology_now(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Response {
    let work = move || {
        let topology = topology::Topology::new(&sources.topology);
        let seen = match caller.reach.tenant() {
            None => topology,
            Some(_) => topology.without_others(),
        };
        answers::compressed(&headers, &seen)
    };
    bounds.off_thread(work).await
}

/// The numbers of followed flows and of sent labels.
#[utoipa::path(
    get,
    path = "/api/v1/labels",
    responses((status = 200, description = "counts", body = labels::Counts), Elsewhere)
)]
async fn label_counts(State(sources): State<Sources>) -> Response {
    Json(labels::Counts::new(&sources.metrics.process.labels)).into_response()
}

/// The last labels of a tenant.
#[utoipa::path(
    get,
    path = "/api/v1/tenants/{name}/labels",
    params(("name" = String, Path, description = "the tenant's name")),
    responses((status = 200, description = "labels", body = Labels), Unnamed, Elsewhere)
)]
async fn tenant_labels(State(sources): State<Sources>, Name(name): Name) -> Response {
    match sources.labels.tenant(&name) {
        Some(tenant) => {
            let labels = labels::LabelOf::all(&sources.labels, tenant);
            Json(Labels { labels }).into_response()
        }
        None => error(StatusCode::NOT_FOUND, NO_LABELS),
    }
}

/// Sends the tenant's link labels as server-sent events.
#[utoipa::path(
    get,
    path = "/api/v1/tenants/{name}/labels/events",
    params(("name" = String, Path, description = "the tenant's name")),
    responses(
        (status = 200, description = "events", body = String, content_type = "text/event-stream"),
        (status = 503, description = "too many listen already", body = Failure),
        Unnamed,
        Elsewhere,
    )
)]
async fn label_events(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
    Name(name): Name,
) -> Response {
    match sources.labels.tenant(&name) {
        Some(tenant) => {
            let Some(listener) = bounds.listener(&name) else {
                return bounds.refuse(ApiRefusal::Listeners, "too many listen to events already");
            };
            let events = labels::events(sources.labels.clone(), tenant, listener);
            // A regular comment keeps proxies from closing a quiet stream.
            Sse::new(events).keep_alive(KeepAlive::default()).into_response()
        }
        None => error(StatusCode::NOT_FOUND, NO_LABELS),
    }
}

/// The REST interface as a document for programs. A test compares the document with the routes.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Weir",
        description = "What is configured, connected and counted; the tenants' own networks."
    ),
    paths(
        health,
        prometheus,
        tenants,
        tenant,
        switches,
        topology_now,
        label_counts,
        tenant_labels,
        label_events,
        openapi,
        backup::backup,
        networks::list,
        networks::show,
        networks::put,
        networks::remove,
        networks::change,
        flows::show,
        limits::limits,
        troubles::controllers,
        troubles::refusals,
        why::why,
        trace::of_tenant,
        trace::of_anybody,
        session::session,
        live::summary,
        live::log,
        live::events,
        tokens::list,
        tokens::make,
        tokens::revoke,
        pins::list,
        pins::remove,
    )
)]
struct Document;

/// The document.
fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// This document.
#[utoipa::path(get, path = "/api/v1/openapi.json", responses((status = 200, description = "OpenAPI 3.1", body = Object), Elsewhere))]
async fn openapi() -> Response {
    Json(document()).into_response()
}

const NO_LABELS: &str = "there is no tenant of this name that gets labels";
