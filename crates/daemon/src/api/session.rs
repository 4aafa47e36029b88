//! `/api/v1/session`: the caller as Weir sees it. A page or program learns from the answer what to offer.

use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use axum::{Extension, Router};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::Elsewhere;
use super::sources::Sources;
use crate::access::caller::Caller;
use crate::access::{Reach, Role};

/// The caller and its role.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({"role": "tenant", "tenant": "red", "may_change": true})))]
pub struct Session {
    /// The role of the caller.
    pub role: Role,
    /// The tenant of the role `tenant`, else null.
    pub tenant: Option<String>,
    /// Whether the caller may change networks; with the role `tenant`, the network of its tenant.
    pub may_change: bool,
}

impl Session {
    fn new(reach: &Reach) -> Session {
        let role = reach.role();
        Session {
            role,
            tenant: reach.tenant().map(str::to_owned),
            may_change: matches!(role, Role::Admin | Role::Tenant),
        }
    }
}

pub(super) fn routes() -> Router<Sources> {
    Router::new().route("/api/v1/session", get(session))
}

/// Returns the caller's role.
#[utoipa::path(
    get,
    path = "/api/v1/session",
    responses((status = 200, description = "the caller's role", body = Session), Elsewhere)
)]
pub(super) async fn session(Extension(caller): Extension<Caller>) -> Response {
    Json(Session::new(&caller.reach)).into_response()
}
