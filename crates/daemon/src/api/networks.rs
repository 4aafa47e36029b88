//! `/api/v1/networks`: reads and changes the tenants' own networks. A request that changes something is one
//! transaction.

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::{Elsewhere, Failure, Name, Unchanged, Unnamed, Unread, error};
use super::body::Body;
use super::bounds::Bounds;
use super::by::By;
use super::own;
use super::sources::Sources;
use crate::access::caller::Caller;
use crate::networks::{
    ChangeError, Document, How, NetworkView, Operation, Outcome, PartOutcome, SetAside,
};

/// All networks.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Networks {
    /// The networks by tenant number.
    pub networks: Vec<NetworkView>,
    /// Changes through REST that contradicted the file at a start, so that the file's networks replaced them.
    #[serde(default)]
    pub set_aside: Vec<SetAside>,
}

pub(super) fn routes() -> Router<Sources> {
    Router::new()
        .route("/api/v1/networks", get(list))
        .route("/api/v1/networks/{tenant}", get(show).put(put).delete(remove))
        .route("/api/v1/networks/{tenant}/changes", post(change))
}

/// All networks, and their places.
#[utoipa::path(
    get,
    operation_id = "list_networks",
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
    Extension(caller): Extension<Caller>,
) -> Response {
    let work = move || {
        if let Some(tenant) = caller.reach.tenant() {
            let view = sources.networks.get(tenant).map(own::network);
            let mut set_aside = sources.networks.set_aside();
            set_aside.retain(|aside| aside.tenant == tenant);
            // The reason may name other tenants.
            let hide_reason =
                |aside: &mut SetAside| aside.reason = "it did not fit any more".to_owned();
            set_aside.iter_mut().for_each(hide_reason);
            let networks = view.into_iter().collect();
            return Json(Networks { networks, set_aside }).into_response();
        }
        let (networks, set_aside) = (sources.networks.list(), sources.networks.set_aside());
        Json(Networks { networks, set_aside }).into_response()
    };
    bounds.off_thread(work).await
}

/// A tenant's network, and its place.
#[utoipa::path(
    get,
    operation_id = "show_network",
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
    Extension(caller): Extension<Caller>,
    Name(tenant): Name,
) -> Response {
    let work = move || {
        let found = sources.networks.get(&tenant);
        answer(match caller.reach.tenant() {
            None => found,
            Some(_) => found.map(own::network),
        })
    };
    bounds.off_thread(work).await
}

/// Replaces a tenant's network by the network in the body.
#[utoipa::path(
    put,
    operation_id = "put_network",
    path = "/api/v1/networks/{tenant}",
    params(("tenant" = String, Path, description = "the tenant's name"), ("dry_run" = Option<bool>, Query, description = "say what would change, and change nothing")),
    request_body(content = Document, example = json!({
        "addresses": "10.0.0.0/24",
        "switches": [{"dpid": "0xa1", "on": ["1"]}, {"dpid": "0xa2", "on": ["2"]}],
        "ports": [{"switch": "0xa1", "number": 1, "at": "1 port 5"}],
        "links": [{"between": ["0xa1 port 2", "0xa2 port 2"], "bandwidth": "5Mbit"}],
        "hosts": [{"mac": "02:00:00:00:00:01", "at": "0xa1 port 1"}]
    })),
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
    by: By,
    Name(tenant): Name,
    uri: Uri,
    Body(document): Body<Document>,
) -> Response {
    let change =
        move |tenant: &str, how: &How<'_>| sources.networks.put(tenant, Some(&document), how);
    make(by, "set", tenant, &uri, bounds, change).await
}

/// Removes a tenant's network.
#[utoipa::path(
    delete,
    operation_id = "remove_network",
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
    by: By,
    Name(tenant): Name,
    uri: Uri,
) -> Response {
    let change = move |tenant: &str, how: &How<'_>| sources.networks.put(tenant, None, how);
    make(by, "remove", tenant, &uri, bounds, change).await
}

/// Makes all changes of a network's parts in the body, or none of them.
#[utoipa::path(
    post,
    operation_id = "change_network",
    path = "/api/v1/networks/{tenant}/changes",
    params(("tenant" = String, Path, description = "the tenant's name"), ("dry_run" = Option<bool>, Query, description = "say what would change, and change nothing")),
    request_body(content = Vec<Operation>, example = json!([
        {"put-switch": {"dpid": "0xa3", "on": ["3"], "name": "far"}},
        {"put-link": {"between": ["0xa1 port 3", "0xa3 port 1"], "bandwidth": "5Mbit"}},
        {"change-port": {"switch": "0xa1", "number": 1, "at": "1 port 6"}},
        {"stop": {"link": ["0xa1 port 2", "0xa2 port 2"]}}
    ])),
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
    by: By,
    Name(tenant): Name,
    uri: Uri,
    Body(operations): Body<Vec<Operation>>,
) -> Response {
    let change =
        move |tenant: &str, how: &How<'_>| sources.networks.change(tenant, &operations, how);
    make(by, "change", tenant, &uri, bounds, change).await
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

/// Makes a change as the query says, and logs its caller.
async fn make(
    by: By,
    what: &'static str,
    tenant: String,
    uri: &Uri,
    bounds: Bounds,
    change: impl FnOnce(&str, &How<'_>) -> Result<Outcome, ChangeError> + Send + 'static,
) -> Response {
    let dry_run = match uri.query() {
        None | Some("dry_run=false") => false,
        Some("dry_run=true") => true,
        Some(_) => {
            let message = "all that can stand behind the ? is dry_run=true or dry_run=false";
            return error(StatusCode::BAD_REQUEST, message);
        }
    };
    let change = move || {
        let change = |how: &How<'_>| change(&tenant, how);
        answer(logged(&by, what, &tenant, dry_run, change))
    };
    bounds.off_thread(change).await
}

/// Makes a change, and logs its caller.
fn logged(
    by: &By,
    what: &str,
    tenant: &str,
    dry_run: bool,
    change: impl FnOnce(&How<'_>) -> Result<Outcome, ChangeError>,
) -> Result<Outcome, ChangeError> {
    let for_tenant = by.caller.reach.tenant().is_some();
    let for_caller = |done: Result<Outcome, ChangeError>| match for_tenant {
        true => done.map(|outcome| own::outcome(outcome, tenant)),
        false => done,
    };
    if dry_run {
        return for_caller(change(&How { for_tenant, ..How::plain(true) }));
    }
    let done = by.change(&format!("{what} network"), |before| {
        let before = |outcome: &Outcome| {
            let parts = outcome.parts.iter().map(serde_json::to_value);
            before(Some(tenant), parts.collect::<Result<_, _>>().unwrap_or_default())
        };
        change(&How { dry_run, for_tenant, before: &before })
    });
    let (peer, account) = (by.peer, &by.caller.known);
    match &done {
        Ok(outcome) => {
            let changes = difference(outcome);
            tracing::info!(%peer, by = %account, tenant, what, changes, "a network was changed by REST");
        }
        Err(refused) => {
            tracing::info!(%peer, by = %account, tenant, what, %refused, "a change by REST was refused");
        }
    }
    for_caller(done)
}

/// The most parts that a log line names.
const NAMED: usize = 20;

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
