//! `/api/v1/tenants/{name}/why`: the tenant's last refused requests, each with the refusing side and the reason.
//!
//! The cores of the switches keep the last refusals of each tenant on each switch ([`hypervisor::refusals`]). When a
//! switch disconnects, its shard keeps the refusals (`shard::past`).

use std::time::{Duration, UNIX_EPOCH};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use axum::{Extension, Router};
use hypervisor::RefusedBy;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::{Elsewhere, Failure, Name, Unnamed, error, unanswered};
use super::bounds::Bounds;
use super::sources::Sources;
use crate::dpid::Dpid;
use crate::shard::shown::RefusalShown;

/// The longest wait for a shard.
const PATIENCE: Duration = Duration::from_secs(2);

/// A tenant's last refused requests.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = RefusedRequests)]
pub struct Why {
    /// The tenant.
    pub tenant: String,
    /// The refusals, newest first: for each switch the last 32 since it connected, and the last 32 before; at most 128.
    pub refusals: Vec<Refused>,
}

/// A request that was refused.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = RefusedRequest, examples(json!({
    "time_ms": 1_764_000_000_000_u64, "switch": "00:00:00:00:00:00:00:01", "xid": 5, "request": "FLOW_MOD ADD priority=9,in_port=1",
    "error": "OFPFMFC_EPERM", "by": "weir", "excerpt": "010e004800000005",
    "reason": "the match has nothing in common with the tenant's flowspace entries that have write permission"
})))]
pub struct Refused {
    /// The time of the refusal, in milliseconds since 1970.
    pub time_ms: u64,
    /// The switch; a big switch by the datapath id that its tenant sees.
    pub switch: String,
    /// The request's transaction id.
    pub xid: u32,
    /// The type of the request, and the entry as far as the request's first bytes show it.
    pub request: String,
    /// The OpenFlow error that the controller got.
    pub error: String,
    /// The refusing side: `weir`, `switch`, or `silence` if the switch did not answer in time.
    pub by: String,
    /// The reason in words. If a member of a big switch refused, the words have the datapath id of the member's
    /// physical switch.
    pub reason: String,
    /// The request's first 64 bytes, in hexadecimal digits.
    pub excerpt: String,
}

impl Refused {
    fn new(shown: RefusalShown) -> Refused {
        let since = shown.at.duration_since(UNIX_EPOCH).unwrap_or_default();
        Refused {
            time_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            switch: Dpid(shown.dpid).to_string(),
            xid: shown.xid,
            request: shown.request,
            error: shown.error,
            by: match shown.by {
                RefusedBy::Weir => "weir",
                RefusedBy::Switch => "switch",
                RefusedBy::Silence => "silence",
            }
            .to_owned(),
            reason: shown.reason,
            excerpt: shown.excerpt.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

pub(super) fn routes() -> Router<Sources> {
    Router::new().route("/api/v1/tenants/{name}/why", get(why))
}

/// A tenant's last refused requests, with the reasons.
#[utoipa::path(
    get,
    path = "/api/v1/tenants/{name}/why",
    params(("name" = String, Path, description = "the tenant's name")),
    responses(
        (status = 200, description = "refused requests", body = Why),
        (status = 503, description = "others ask, or a switch's thread does not answer", body = Failure),
        Unnamed,
        Elsewhere,
    )
)]
pub(super) async fn why(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
    Name(tenant): Name,
) -> Response {
    if !sources.current.get().tenants.iter().any(|known| known.name == tenant) {
        return error(StatusCode::NOT_FOUND, "there is no tenant of this name");
    }
    let work = move || match sources.reader.refusals(&tenant, PATIENCE) {
        Ok(shown) => {
            let refusals = shown.into_iter().map(Refused::new).collect();
            Json(Why { tenant, refusals }).into_response()
        }
        Err(why) => unanswered(why, "a switch's thread does not answer"),
    };
    bounds.page(work).await
}
