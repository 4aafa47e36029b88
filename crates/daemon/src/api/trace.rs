//! `/api/v1/tenants/{name}/switches/{switch}/trace/{flow}`, and the path without a tenant: the path of a packet, with
//! the reasons.
//!
//! The core of a switch says what happens there ([`hypervisor::trace`]). This module follows the packet from switch to
//! switch, by the links of the physical network (`walk`). A tenant sees only its own entries and ports, not the
//! physical network (`words`).

mod document;
mod walk;
mod words;

use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use axum::{Extension, Router};
use flowspace::{Field, Match};

use super::answers::{Elsewhere, Failure, Name, Unnamed, error, unanswered};
use super::bounds::Bounds;
use super::flows::{NOWHERE, switch};
use super::sources::Sources;
use crate::access::caller::Caller;
use crate::shard::shown::{NotPassed, Start};
use walk::Walk;

pub use document::{Hop, Trace, TraceOutput, TraceStep};
pub use words::wrapped;

/// The longest wait for all switches together.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn routes() -> Router<Sources> {
    Router::new()
        .route("/api/v1/tenants/{name}/switches/{switch}/trace/{flow}", get(of_tenant))
        .route("/api/v1/switches/{switch}/trace/{flow}", get(of_anybody))
}

/// The path of a packet that enters a switch as the tenant sees this switch.
#[utoipa::path(
    get,
    operation_id = "trace_of_tenant",
    path = "/api/v1/tenants/{name}/switches/{switch}/trace/{flow}",
    params(
        ("name" = String, Path, description = "the tenant's name"),
        ("switch" = String, Path, description = "a datapath id, as the tenant sees it or as the switch has it, or the name of a listed switch"),
        ("flow" = String, Path, description = "the packet, in the syntax of `ovs-appctl ofproto/trace`; `in_port` has to be there"),
    ),
    responses(
        (status = 200, description = "where the packet goes", body = Trace),
        (status = 503, description = "others ask, or a switch's thread does not answer", body = Failure),
        Unnamed,
        Elsewhere,
    )
)]
pub(super) async fn of_tenant(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
    Extension(caller): Extension<Caller>,
    Name((tenant, name, flow)): Name<(String, String, String)>,
) -> Response {
    bounds.page(move || trace(&sources, &caller, Some(tenant), &name, &flow)).await
}

/// The path of a packet of any tenant that enters at a port of a physical switch.
#[utoipa::path(
    get,
    operation_id = "trace_of_anybody",
    path = "/api/v1/switches/{switch}/trace/{flow}",
    params(
        ("switch" = String, Path, description = "the switch's datapath id, or the name of a listed switch"),
        ("flow" = String, Path, description = "the packet, in the syntax of `ovs-appctl ofproto/trace`; `in_port` has to be there"),
    ),
    responses(
        (status = 200, description = "where the packet goes", body = Trace),
        (status = 503, description = "others ask, or a switch's thread does not answer", body = Failure),
        Unnamed,
        Elsewhere,
    )
)]
pub(super) async fn of_anybody(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
    Extension(caller): Extension<Caller>,
    Name((name, flow)): Name<(String, String)>,
) -> Response {
    bounds.page(move || trace(&sources, &caller, None, &name, &flow)).await
}

fn trace(
    sources: &Sources,
    caller: &Caller,
    tenant: Option<String>,
    name: &str,
    text: &str,
) -> Response {
    let config = sources.current.get();
    if tenant.as_ref().is_some_and(|name| config.tenants.iter().all(|known| known.name != *name)) {
        return error(StatusCode::NOT_FOUND, "there is no tenant of this name");
    }
    let is_tenant = caller.reach.tenant().is_some();
    let dpid = match switch(&config, name, is_tenant) {
        Ok(dpid) => dpid,
        Err(refused) => return *refused,
    };
    let (flow, port, frame) = match packet(text) {
        Ok(packet) => packet,
        Err(wrong) => return error(StatusCode::BAD_REQUEST, &wrong),
    };
    let snapshot = sources.topology.current();
    let walk = Walk {
        reader: &sources.reader,
        network: &snapshot.network,
        deadline: Instant::now() + PATIENCE,
    };
    let of_switch = || Start::Switch { dpid, port, frame: frame.clone() };
    let of_tenant = |tenant: &String| Start::Tenant {
        tenant: tenant.clone(),
        dpid,
        port,
        frame: frame.clone(),
    };
    let found = match &tenant {
        None => walk.from(of_switch(), None),
        Some(tenant) => match walk.from(of_tenant(tenant), caller.reach.tenant()) {
            // For an operator, the id may mean the physical switch.
            Err(NotPassed::Nowhere) if !is_tenant => walk.from(of_switch(), None),
            found => found,
        },
    };
    let status = StatusCode::NOT_FOUND;
    match found {
        Ok(journey) => {
            let view = words::View { tenant: caller.reach.tenant(), config: &config };
            Json(view.describe(&flow, &journey)).into_response()
        }
        Err(NotPassed::Nowhere) => error(status, NOWHERE),
        Err(NotPassed::NoPort) => error(status, &format!("the switch has no port {port} there")),
        Err(NotPassed::NoPath) => error(status, &format!("port {port} has no path at present")),
        Err(NotPassed::NoAnswer(why)) => unanswered(why, "a switch's thread does not answer"),
    }
}

/// The flow, its ingress port, and a frame with its headers; or the error in the flow.
fn packet(text: &str) -> Result<(Match, u32, Vec<u8>), String> {
    let flow: Match = text.parse().map_err(|wrong: flowspace::ParseError| {
        let known = wrong.known_fields().map(|known| format!("; known: {}", known.join(", ")));
        format!("the flow cannot be read: {wrong}{}", known.unwrap_or_default())
    })?;
    let port = flow.exact_value(Field::InPort);
    let port = port.ok_or("the flow has to say by which port the packet comes in: in_port=…")?;
    let frame = flow.to_frame().map_err(|wrong| format!("the flow is no packet: {wrong}"))?;
    Ok((flow, port as u32, frame))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_flow_becomes_a_packet_or_is_refused_with_the_reason() {
        let (flow, port, frame) = packet("in_port=3,tcp,nw_dst=10.0.0.1,tp_dst=80").unwrap();
        assert_eq!((port, frame.len() >= 60), (3, true));
        assert_eq!(flow.to_string(), "tcp,in_port=3,nw_dst=10.0.0.1,tp_dst=80");
        let check = |text: &str, says: &str| {
            let wrong = packet(text).unwrap_err();
            assert!(wrong.contains(says), "{text}: {wrong}");
        };
        check("tcp", "in_port");
        check("in_port=1,nw_scr=10.0.0.1", "unknown field `nw_scr`; did you mean `nw_src`?");
        check("in_port=1,nonsense=1", "known: in_port, in_phy_port, metadata");
        check("in_port=1,ip,nw_src=10.0.0.0/8", "`nw_src` has a mask");
        check("in_port=1,metadata=5", "`metadata`");
        check("in_port=one", "`one` is not a port number or name");
        check("in_port=1,priority=5", "the priority is not part of the match");
    }
}
