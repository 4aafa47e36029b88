//! `/api/v1/networks`: the tenants' own networks, seen and changed. A request that changes something is one transaction.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::{Body, Elsewhere, Failure, Name, Unchanged, Unnamed, Unread, error};
use super::bounds::Bounds;
use super::clients::{Client, Peer};
use super::sources::Sources;
use crate::networks::{
    ChangeError, Document, NetworkView, Operation, Outcome, PartOutcome, SetAside,
};

/// All networks.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Networks {
    /// By their tenants' numbers.
    pub networks: Vec<NetworkView>,
    /// What was made of networks through REST and the file replaced at a start, since it contradicted it.
    #[serde(default)]
    pub set_aside: Vec<SetAside>,
}

/// Whether `?dry_run=true` stands behind the path.
fn dry_run(uri: &Uri) -> Result<bool, Box<Response>> {
    match uri.query() {
        None | Some("dry_run=false") => Ok(false),
        Some("dry_run=true") => Ok(true),
        Some(_) => {
            let message = "all that can stand behind the ? is dry_run=true or dry_run=false";
            Err(Box::new(error(StatusCode::BAD_REQUEST, message)))
        }
    }
}

pub(super) fn routes() -> Router<Sources> {
    Router::new()
        .route("/api/v1/networks", get(list))
        .route("/api/v1/networks/{tenant}", get(show).put(put).delete(remove))
        .route("/api/v1/networks/{tenant}/changes", post(change))
}

/// All networks, and where they lie.
#[utoipa::path(
    get,
    path = "/api/v1/networks",
    responses(
        (status = 200, description = "all networks", body = Networks),
        (status = 500, description = "the request failed by a fault of Weir's", body = Failure),
        Elsewhere,
    )
)]
pub(super) async fn list(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
) -> Response {
    let work = move || {
        let (networks, set_aside) = (sources.networks.list(), sources.networks.set_aside());
        Json(Networks { networks, set_aside }).into_response()
    };
    bounds.off_thread(work).await
}

/// A tenant's network, and where it lies.
#[utoipa::path(
    get,
    path = "/api/v1/networks/{tenant}",
    params(("tenant" = String, Path, description = "the tenant's name")),
    responses(
        (status = 200, description = "the network", body = NetworkView),
        (status = 500, description = "the request failed by a fault of Weir's", body = Failure),
        Unnamed,
        Elsewhere,
    )
)]
pub(super) async fn show(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
    Name(tenant): Name,
) -> Response {
    bounds.off_thread(move || answer(sources.networks.get(&tenant))).await
}

/// Makes a tenant's network what the document says.
#[utoipa::path(
    put,
    path = "/api/v1/networks/{tenant}",
    params(("tenant" = String, Path, description = "the tenant's name"), ("dry_run" = Option<bool>, Query, description = "say what would change, and change nothing")),
    request_body = Document,
    responses(
        (status = 200, description = "what changed, or would change", body = Outcome),
        Unchanged,
        Unread,
        Elsewhere,
    )
)]
pub(super) async fn put(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
    Extension(client): Extension<Arc<Client>>,
    Name(tenant): Name,
    uri: Uri,
    Body(document): Body<Document>,
) -> Response {
    match dry_run(&uri) {
        Ok(dry_run) => {
            let work = move || {
                let done = sources.networks.put(&tenant, Some(&document), dry_run);
                tell(client.peer(), "set", &tenant, dry_run, &done);
                answer(done)
            };
            bounds.off_thread(work).await
        }
        Err(refused) => *refused,
    }
}

/// Removes a tenant's network.
#[utoipa::path(
    delete,
    path = "/api/v1/networks/{tenant}",
    params(("tenant" = String, Path, description = "the tenant's name"), ("dry_run" = Option<bool>, Query, description = "say what would change, and change nothing")),
    responses(
        (status = 200, description = "what changed, or would change", body = Outcome),
        Unchanged,
        Elsewhere,
    )
)]
pub(super) async fn remove(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
    Extension(client): Extension<Arc<Client>>,
    Name(tenant): Name,
    uri: Uri,
) -> Response {
    match dry_run(&uri) {
        Ok(dry_run) => {
            let work = move || {
                let done = sources.networks.put(&tenant, None, dry_run);
                tell(client.peer(), "remove", &tenant, dry_run, &done);
                answer(done)
            };
            bounds.off_thread(work).await
        }
        Err(refused) => *refused,
    }
}

/// Makes all these changes of a network's parts, or none of them.
#[utoipa::path(
    post,
    path = "/api/v1/networks/{tenant}/changes",
    params(("tenant" = String, Path, description = "the tenant's name"), ("dry_run" = Option<bool>, Query, description = "say what would change, and change nothing")),
    request_body = Vec<Operation>,
    responses(
        (status = 200, description = "what changed, or would change", body = Outcome),
        Unchanged,
        Unread,
        Elsewhere,
    )
)]
pub(super) async fn change(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
    Extension(client): Extension<Arc<Client>>,
    Name(tenant): Name,
    uri: Uri,
    Body(operations): Body<Vec<Operation>>,
) -> Response {
    match dry_run(&uri) {
        Ok(dry_run) => {
            let work = move || {
                let done = sources.networks.change(&tenant, &operations, dry_run);
                tell(client.peer(), "change", &tenant, dry_run, &done);
                answer(done)
            };
            bounds.off_thread(work).await
        }
        Err(refused) => *refused,
    }
}

fn answer<T: Serialize>(result: Result<T, ChangeError>) -> Response {
    match result {
        Ok(found) => Json(found).into_response(),
        Err(ChangeError::Missing(what)) => error(StatusCode::NOT_FOUND, &what),
        Err(ChangeError::Refused(reasons)) => {
            let error = "refused; nothing was changed".to_owned();
            (StatusCode::CONFLICT, Json(Failure { error, reasons })).into_response()
        }
        Err(ChangeError::Store(refused)) => {
            error(StatusCode::SERVICE_UNAVAILABLE, &refused.to_string())
        }
    }
}

/// Parts that a log line names one by one.
const NAMED: usize = 20;

/// Tells the log who has changed what.
fn tell(peer: Peer, what: &str, tenant: &str, dry_run: bool, done: &Result<Outcome, ChangeError>) {
    match done {
        _ if dry_run => {}
        Ok(outcome) => {
            let changes = difference(outcome);
            tracing::info!(%peer, tenant, what, changes, "a network was changed by REST");
        }
        Err(refused) => {
            tracing::info!(%peer, tenant, what, %refused, "a change by REST was refused");
        }
    }
}

fn difference(outcome: &Outcome) -> String {
    let part = |it: &PartOutcome| match (&it.was, &it.is) {
        (None, Some(is)) => format!("+ {}: {is}", it.part),
        (Some(was), None) => format!("- {}: {was}", it.part),
        (Some(was), Some(is)) => format!("{}: {was} -> {is}", it.part),
        (None, None) => it.part.clone(),
    };
    let mut parts: Vec<String> = outcome.parts.iter().take(NAMED).map(part).collect();
    let more = outcome.parts.len().saturating_sub(NAMED);
    if more > 0 {
        parts.push(format!("and {more} more"));
    }
    parts.join("; ")
}
