//! `/api/v1/pins`: the pinned certificates of switches, listed, and removed by admins.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{delete, get};
use axum::{Extension, Router};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::{Elsewhere, Failure, Name, error};
use super::bounds::Bounds;
use super::by::By;
use super::sources::Sources;
use crate::dpid::Dpid;
use crate::pins::Pin;

/// All pins.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Pins)]
pub struct List {
    /// By their datapath ids.
    pub pins: Vec<Pin>,
}

pub(super) fn routes() -> Router<Sources> {
    Router::new().route("/api/v1/pins", get(list)).route("/api/v1/pins/{switch}", delete(remove))
}

/// All pinned certificates of switches.
#[utoipa::path(
    get,
    operation_id = "list_pins",
    path = "/api/v1/pins",
    responses((status = 200, description = "all pins", body = List), Elsewhere)
)]
pub(super) async fn list(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
) -> Response {
    let work = move || Json(List { pins: sources.pins.list() }).into_response();
    bounds.off_thread(work).await
}

/// Removes a pin: the next certificate with which the switch connects is pinned.
#[utoipa::path(
    delete,
    operation_id = "remove_pin",
    path = "/api/v1/pins/{switch}",
    params(("switch" = String, Path, description = "a datapath id")),
    responses(
        (status = 200, description = "the pin that was removed", body = Pin),
        (status = 400, description = "the datapath id cannot be read", body = Failure),
        (status = 404, description = "the switch has no pin", body = Failure),
        (status = 503, description = "the change cannot be stored, or not be written down; the pin is still there", body = Failure),
        Elsewhere,
    )
)]
pub(super) async fn remove(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
    by: By,
    Name(switch): Name,
) -> Response {
    let Ok(Dpid(dpid)) = switch.parse() else {
        return error(StatusCode::BAD_REQUEST, "a pin is named by a datapath id");
    };
    let removed = move || {
        by.change("remove pin", |before| {
            sources.pins.remove(dpid, |pin| {
                let (peer, account) = (by.peer, &by.caller.known);
                tracing::info!(%peer, by = %account, dpid = %pin.dpid, certificate = %pin.certificate, "a pin is removed");
                before(None, serde_json::to_value(pin).into_iter().collect())
            })
        })
    };
    let work = move || match removed() {
        Ok(Some(pin)) => Json(pin).into_response(),
        Ok(None) => error(StatusCode::NOT_FOUND, "the switch has no pin"),
        Err(why) => {
            let message = format!("the pin is still there: {why}");
            error(StatusCode::SERVICE_UNAVAILABLE, &message)
        }
    };
    bounds.off_thread(work).await
}
