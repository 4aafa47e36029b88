//! `/api/v1/networks`: the tenants' own networks, seen and changed. A request that changes something is one transaction.

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Sources;
use super::answers::{Body, Failure, Name, Unchanged, Unnamed, Unread, error};
use crate::networks::{ChangeError, Document, NetworkView, Operation, Outcome, SetAside};

/// A document of a thousand links has some 200 kB.
const LARGEST: usize = 16 << 20;

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
        .layer(DefaultBodyLimit::max(LARGEST))
        .layer(middleware::from_fn(from_here))
}

/// Without passwords, a page in somebody's browser must not reach this by a name of its own that leads here: what is
/// asked for must be an address, or `localhost`.
async fn from_here(request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let name = host.unwrap_or_default();
    let bare = match name.rsplit_once(':') {
        Some((bare, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => bare,
        _ => name,
    };
    let is_address = bare.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
    if request.method().is_safe() || is_address || bare == "localhost" {
        return next.run(request).await;
    }
    error(StatusCode::FORBIDDEN, "changes are asked for by an address or localhost, not by a name")
}

/// All networks, and where they lie.
#[utoipa::path(
    get,
    path = "/api/v1/networks",
    responses(
        (status = 200, description = "all networks", body = Networks),
        (status = 500, description = "the request failed by a fault of Weir's", body = Failure),
    )
)]
pub(super) async fn list(State(sources): State<Sources>) -> Response {
    off_thread(move || {
        let (networks, set_aside) = (sources.networks.list(), sources.networks.set_aside());
        Json(Networks { networks, set_aside }).into_response()
    })
    .await
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
    )
)]
pub(super) async fn show(State(sources): State<Sources>, Name(tenant): Name) -> Response {
    off_thread(move || answer(sources.networks.get(&tenant))).await
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
    )
)]
pub(super) async fn put(
    State(sources): State<Sources>,
    Name(tenant): Name,
    uri: Uri,
    Body(document): Body<Document>,
) -> Response {
    match dry_run(&uri) {
        Ok(dry_run) => {
            off_thread(move || answer(sources.networks.put(&tenant, Some(&document), dry_run)))
                .await
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
    )
)]
pub(super) async fn remove(
    State(sources): State<Sources>,
    Name(tenant): Name,
    uri: Uri,
) -> Response {
    match dry_run(&uri) {
        Ok(dry_run) => {
            off_thread(move || answer(sources.networks.put(&tenant, None, dry_run))).await
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
    )
)]
pub(super) async fn change(
    State(sources): State<Sources>,
    Name(tenant): Name,
    uri: Uri,
    Body(operations): Body<Vec<Operation>>,
) -> Response {
    match dry_run(&uri) {
        Ok(dry_run) => {
            off_thread(move || answer(sources.networks.change(&tenant, &operations, dry_run))).await
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

/// Placing a large network takes a while, and so may the store.
async fn off_thread(work: impl FnOnce() -> Response + Send + 'static) -> Response {
    match tokio::task::spawn_blocking(work).await {
        Ok(response) => response,
        Err(_) => error(StatusCode::INTERNAL_SERVER_ERROR, "the request failed"),
    }
}
