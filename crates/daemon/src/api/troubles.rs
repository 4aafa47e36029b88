//! `/api/v1/controllers` and `/api/v1/refusals`: connections to controllers, and refusals, of all tenants.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use axum::{Extension, Router};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::Elsewhere;
use super::bounds::Bounds;
use super::sources::Sources;
use super::view::Contact;
use crate::access::Reach;
use crate::access::caller::Caller;
use crate::dpid::Dpid;
use crate::metrics::{Registry, SwitchMetrics, TenantMetrics};

/// All connections to tenants' controllers.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Controllers {
    /// The connections by switch, then by tenant.
    pub controllers: Vec<ControllerOf>,
}

/// A connection to a tenant's controller, for one switch.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ControllerOfTenant, examples(json!({
    "tenant": "red", "switch": "00:00:00:00:00:00:00:01", "address": "tcp:127.0.0.1:6701", "connected": true, "dials": 1
})))]
pub struct ControllerOf {
    /// The tenant.
    pub tenant: String,
    /// The switch; a big switch by the datapath id that its tenant sees.
    pub switch: String,
    /// The connection.
    #[serde(flatten)]
    pub contact: Contact,
}

/// Refused requests, dropped PACKET_INs and failed connections. Requests and PACKET_INs count since the switch
/// connected.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Refusals {
    /// Requests of tenants that Weir answered with an error.
    pub requests: Vec<OfTenant>,
    /// PACKET_INs that did not reach their tenants.
    pub packet_ins: Vec<OfTenant>,
    /// Failed connections of switches and to controllers since Weir started; empty for a tenant.
    pub connections: Vec<OfPeer>,
}

/// A count of one tenant on one switch.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = RefusedOfTenant, examples(json!({
    "tenant": "red", "switch": "00:00:00:00:00:00:00:01", "reason": "OFPBRC_EPERM", "count": 2
})))]
pub struct OfTenant {
    /// The tenant.
    pub tenant: String,
    /// The switch; a big switch by the datapath id that its tenant sees.
    pub switch: String,
    /// The OpenFlow error, or the reason.
    pub reason: String,
    /// How many.
    pub count: u64,
}

/// A count of connections.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = RefusedOfPeer)]
pub struct OfPeer {
    /// `switch` or `controller`.
    pub peer: String,
    /// Why not.
    pub reason: String,
    /// How many.
    pub count: u64,
}

impl Controllers {
    fn new(metrics: &Registry, reach: &Reach) -> Controllers {
        let mut controllers = Vec::new();
        for switch in metrics.switches() {
            for tenant in seen(&switch, reach) {
                controllers.extend(tenant.contacts.all().into_iter().map(|contact| ControllerOf {
                    tenant: tenant.name.clone(),
                    switch: Dpid(switch.known_as()).to_string(),
                    contact: Contact::new(contact),
                }));
            }
        }
        Controllers { controllers }
    }
}

impl Refusals {
    fn new(metrics: &Registry, reach: &Reach) -> Refusals {
        let (mut requests, mut packet_ins) = (Vec::new(), Vec::new());
        for switch in metrics.switches() {
            for tenant in seen(&switch, reach) {
                let of_tenant = |(reason, count): (String, u64)| OfTenant {
                    tenant: tenant.name.clone(),
                    switch: Dpid(switch.known_as()).to_string(),
                    reason,
                    count,
                };
                requests.extend(tenant.refused_by_error(switch.version).into_iter().map(of_tenant));
                packet_ins.extend(tenant.dropped_by_reason().into_iter().map(of_tenant));
            }
        }
        // The tenant of a failed connection is not known.
        let connections = match reach.tenant() {
            None => metrics.process.rejected_by_reason(),
            Some(_) => Vec::new(),
        };
        let connections = connections.into_iter().map(|(peer, reason, count)| OfPeer {
            peer: peer.to_owned(),
            reason: reason.to_owned(),
            count,
        });
        Refusals { requests, packet_ins, connections: connections.collect() }
    }
}

/// The tenants of a switch that a caller sees.
fn seen(switch: &SwitchMetrics, reach: &Reach) -> Vec<Arc<TenantMetrics>> {
    let mut tenants = switch.tenants();
    tenants.retain(|tenant| reach.sees(&tenant.name));
    tenants
}

pub(super) fn routes() -> Router<Sources> {
    Router::new()
        .route("/api/v1/controllers", get(controllers))
        .route("/api/v1/refusals", get(refusals))
}

/// All connections to tenants' controllers.
#[utoipa::path(
    get,
    path = "/api/v1/controllers",
    responses((status = 200, description = "all connections", body = Controllers), Elsewhere)
)]
pub(super) async fn controllers(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let work = move || Json(Controllers::new(&sources.metrics, &caller.reach)).into_response();
    bounds.off_thread(work).await
}

/// The counts of refusals.
#[utoipa::path(
    get,
    path = "/api/v1/refusals",
    responses((status = 200, description = "counts", body = Refusals), Elsewhere)
)]
pub(super) async fn refusals(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let work = move || Json(Refusals::new(&sources.metrics, &caller.reach)).into_response();
    bounds.off_thread(work).await
}
