//! REST for people and programs: what is configured, what is connected, how it fares; `/metrics` and `/healthz`.
//!
//! | path | answer |
//! |---|---|
//! | `GET /healthz` | 200 with counts when every shard answers within a second, else 503 |
//! | `GET /metrics` | Prometheus text |
//! | `GET /api/v1/tenants` | tenants as configured, and what each counts on each switch |
//! | `GET /api/v1/tenants/{name}` | one of them, or 404 |
//! | `GET /api/v1/switches` | connected switches, and what their tenants count |
//! | `GET /api/v1/tenants/{name}/labels` | what is left of links, as the tenant was told last; 404 if it is told nothing |
//! | `GET /api/v1/tenants/{name}/labels/events` | the same as server-sent events, as it is told |
//! | `GET /api/v1/labels` | how many flows are followed, how many labels were told |
//! | `GET /api/v1/topology` | the physical network as it is known: switches, ports, links |
//! | `GET /api/v1/networks` | the tenants' own networks, and where they lie |
//! | `GET`, `PUT`, `DELETE /api/v1/networks/{tenant}` | one of them |
//! | `POST /api/v1/networks/{tenant}/changes` | changes of its parts, all or none |
//! | `GET /api/v1/openapi.json` | all of this, as an OpenAPI document generated from the code |
//!
//! Without passwords, hence bound to the loopback by default. Numbers are at most a quarter of a
//! second old. Everything runs on the one control thread; nothing here is on the forwarding path.
//!
//! Start reading at [`router`]; [`http`] is the server under it, [`view`] the JSON.

pub mod http;
pub mod labels;
pub mod networks;
pub mod topology;
pub mod view;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::sse::KeepAlive;
use axum::response::{IntoResponse, Json, Response, Sse};
use axum::routing::get;
use serde_json::json;
use utoipa::OpenApi;

use crate::metrics::{self, Registry};
use crate::networks::Control;
use crate::reload::Current;
use crate::topology::{Board, Watch};

/// Asks all shards for a sign of life: the number of connected switches, or `None` if one does not answer within the
/// time. Blocks for that long at most.
pub type Pulse = Arc<dyn Fn(Duration) -> Option<usize> + Send + Sync>;

/// What the answers are made of.
#[derive(Clone)]
pub struct Sources {
    /// Counters.
    pub metrics: Arc<Registry>,
    /// The configuration in force.
    pub current: Current,
    /// The shards.
    pub pulse: Pulse,
    /// The physical network.
    pub topology: Watch,
    /// What is left of links.
    pub labels: Board,
    /// The tenants' own networks.
    pub networks: Control,
}

/// How long a shard may take to answer before the process counts as sick. A turn of its loop takes well under a
/// millisecond.
const PATIENCE: Duration = Duration::from_secs(1);

/// All routes.
pub fn router(sources: Sources) -> Router {
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
        .route("/api/v1/openapi.json", get(openapi))
        .merge(networks::routes())
        .fallback(|| async { error(StatusCode::NOT_FOUND, "there is nothing at this path") })
        .method_not_allowed_fallback(|| async {
            error(StatusCode::METHOD_NOT_ALLOWED, "this path takes another method")
        })
        .with_state(sources)
}

/// Whether every shard answers.
#[utoipa::path(
    get,
    path = "/healthz",
    responses((status = 200, description = "all is well"), (status = 503, description = "a shard does not answer"))
)]
async fn health(State(sources): State<Sources>) -> Response {
    let pulse = Arc::clone(&sources.pulse);
    let answer = tokio::task::spawn_blocking(move || pulse(PATIENCE)).await;
    let tenants = sources.current.get().tenants.len();
    match answer {
        Ok(Some(switches)) => {
            Json(json!({ "status": "ok", "switches": switches, "tenants": tenants }))
                .into_response()
        }
        _ => {
            let body = json!({ "status": "a shard does not answer", "tenants": tenants });
            (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
        }
    }
}

/// Metrics as Prometheus text.
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, description = "metrics"))
)]
async fn prometheus(State(sources): State<Sources>) -> Response {
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], sources.metrics.encode()).into_response()
}

/// Tenants as configured, and what each counts on each switch.
#[utoipa::path(
    get,
    path = "/api/v1/tenants",
    responses((status = 200, description = "all tenants"))
)]
async fn tenants(State(sources): State<Sources>) -> Response {
    let (config, switches) = (sources.current.get(), sources.metrics.switches());
    let tenants: Vec<_> =
        config.tenants.iter().map(|tenant| view::Tenant::new(tenant, &switches)).collect();
    Json(json!({ "tenants": tenants })).into_response()
}

/// One tenant.
#[utoipa::path(
    get,
    path = "/api/v1/tenants/{name}",
    params(("name" = String, Path, description = "the tenant's name")),
    responses((status = 200, description = "the tenant"), (status = 404, description = "there is no such tenant, or it is told nothing"))
)]
async fn tenant(State(sources): State<Sources>, Path(name): Path<String>) -> Response {
    let config = sources.current.get();
    match config.tenants.iter().find(|tenant| tenant.name == name) {
        Some(tenant) => {
            Json(view::Tenant::new(tenant, &sources.metrics.switches())).into_response()
        }
        None => error(StatusCode::NOT_FOUND, "there is no tenant of this name"),
    }
}

/// Connected switches, and what their tenants count.
#[utoipa::path(
    get,
    path = "/api/v1/switches",
    responses((status = 200, description = "all switches"))
)]
async fn switches(State(sources): State<Sources>) -> Response {
    let switches: Vec<_> =
        sources.metrics.switches().iter().map(|switch| view::Switch::new(switch)).collect();
    Json(json!({ "switches": switches })).into_response()
}

/// The physical network as it is known.
#[utoipa::path(
    get,
    path = "/api/v1/topology",
    responses((status = 200, description = "switches, ports, links"))
)]
async fn topology_now(State(sources): State<Sources>) -> Response {
    Json(topology::Topology::new(&sources.topology)).into_response()
}

/// How many flows are followed, and how many labels were told.
#[utoipa::path(
    get,
    path = "/api/v1/labels",
    responses((status = 200, description = "counts"))
)]
async fn label_counts(State(sources): State<Sources>) -> Response {
    let counts = sources.labels.counts();
    Json(json!({
        "flows": counts.flows,
        "lost_flows": counts.lost_flows,
        "labels_told": counts.told,
        "labels_replaced": counts.replaced,
    }))
    .into_response()
}

/// What is left of links, as the tenant was told last.
#[utoipa::path(
    get,
    path = "/api/v1/tenants/{name}/labels",
    params(("name" = String, Path, description = "the tenant's name")),
    responses((status = 200, description = "labels"), (status = 404, description = "there is no such tenant, or it is told nothing"))
)]
async fn tenant_labels(State(sources): State<Sources>, Path(name): Path<String>) -> Response {
    match sources.labels.tenant(&name) {
        Some(tenant) => {
            Json(json!({ "labels": labels::LabelOf::all(&sources.labels, tenant) })).into_response()
        }
        None => error(StatusCode::NOT_FOUND, NO_LABELS),
    }
}

/// The same as server-sent events, as it is told.
#[utoipa::path(
    get,
    path = "/api/v1/tenants/{name}/labels/events",
    params(("name" = String, Path, description = "the tenant's name")),
    responses((status = 200, description = "events"), (status = 404, description = "there is no such tenant, or it is told nothing"))
)]
async fn label_events(State(sources): State<Sources>, Path(name): Path<String>) -> Response {
    match sources.labels.tenant(&name) {
        Some(tenant) => {
            let events = labels::Events::new(sources.labels.clone(), tenant);
            // A comment now and then keeps proxies from closing a quiet stream.
            Sse::new(events).keep_alive(KeepAlive::default()).into_response()
        }
        None => error(StatusCode::NOT_FOUND, NO_LABELS),
    }
}

/// All of this, as a document for programs. A test holds it against the routes.
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
        networks::list,
        networks::show,
        networks::put,
        networks::remove,
        networks::change,
    )
)]
struct Document;

/// This document.
#[utoipa::path(get, path = "/api/v1/openapi.json", responses((status = 200, description = "OpenAPI 3.1")))]
async fn openapi() -> Response {
    Json(Document::openapi()).into_response()
}

const NO_LABELS: &str = "there is no tenant of this name that is told labels";

fn error(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({ "error": message }))).into_response()
}
