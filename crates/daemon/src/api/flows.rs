//! `/api/v1/tenants/{name}/switches/{switch}/flows`: a tenant's flow table on a switch, a page at a time.
//!
//! One page is made at a time for all clients, and a page is bounded ([`hypervisor::FlowPage`]), so the forwarding path
//! is not delayed. The page shows Weir's own data; the switch is not asked.

use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use axum::{Extension, Router};
use flowspace::FlowText;
use hypervisor::{FlowPage, FlowPlace, Side};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::{Elsewhere, Failure, Name, Unnamed, error, unanswered};
use super::bounds::Bounds;
use super::sources::Sources;
use crate::access::caller::Caller;
use crate::config::Config;
use crate::dpid::Dpid;
use crate::shard::shown::FlowsAsked;

pub(super) const NOWHERE: &str = "the switch is not connected, or the tenant has no part of it";

/// The longest wait for a shard.
const PATIENCE: Duration = Duration::from_secs(2);

/// Some entries of a tenant's flow table on a switch.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Flows {
    /// The tenant.
    pub tenant: String,
    /// The switch's datapath id as the tenant sees it.
    pub switch: String,
    /// The negotiated OpenFlow version.
    pub openflow: String,
    /// `tenant`: entries as the tenant wrote them; `switch`: the rules on the switch for these entries.
    pub side: String,
    /// The entries in the order of the tenant's cookies.
    pub flows: Vec<Flow>,
    /// The value of `after=` for the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// One entry.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = FlowEntry, examples(json!({
    "cookie": "0x5", "table": 0, "priority": 9, "idle_timeout": 700, "hard_timeout": 0, "flags": [],
    "match": "ip,nw_dst=10.1.0.2", "actions": "output:2",
    "text": "cookie=0x5, idle_timeout=700, priority=9,ip,nw_dst=10.1.0.2 actions=output:2"
})))]
pub struct Flow {
    /// The cookie as `0x` and hexadecimal digits.
    pub cookie: String,
    /// The table; 0 on OpenFlow 1.0.
    pub table: u8,
    /// The priority.
    pub priority: u16,
    /// Seconds, 0 for none.
    pub idle_timeout: u16,
    /// Seconds, 0 for none.
    pub hard_timeout: u16,
    /// Names of flags, as in `ovs-ofctl`.
    pub flags: Vec<String>,
    /// The match in the syntax of `ovs-ofctl`.
    pub r#match: String,
    /// Actions (1.0) or instructions (1.3) in the syntax of `ovs-ofctl`.
    pub actions: String,
    /// The entry as `ovs-ofctl --no-stats dump-flows` prints it.
    pub text: String,
}

impl Flow {
    fn new(frame: &[u8]) -> Option<Flow> {
        let flow = FlowText::of_flow_mod(frame)?;
        let text = flow.to_string();
        let FlowText {
            cookie,
            table,
            priority,
            idle_timeout,
            hard_timeout,
            flags,
            match_,
            actions,
        } = flow;
        Some(Flow {
            cookie: format!("{cookie:#x}"),
            table,
            priority,
            idle_timeout,
            hard_timeout,
            flags: flags.into_iter().map(str::to_owned).collect(),
            r#match: match_,
            actions,
            text,
        })
    }
}

impl Flows {
    fn new(asked: FlowsAsked, page: &FlowPage) -> Flows {
        Flows {
            tenant: asked.tenant,
            switch: Dpid(page.seen_as).to_string(),
            openflow: page.version.to_string(),
            side: if asked.side == Side::Tenant { "tenant" } else { "switch" }.to_owned(),
            flows: page.flow_mods.iter().filter_map(|frame| Flow::new(frame)).collect(),
            next: page.next.map(written),
        }
    }
}

fn written(place: FlowPlace) -> String {
    format!("{:x}.{:x}.{:x}", place.cookie, place.number, place.shown)
}

fn place(text: &str) -> Option<FlowPlace> {
    let mut parts = text.split('.').map(|part| u64::from_str_radix(part, 16).ok());
    let (cookie, number, shown) = (parts.next()??, parts.next()??, parts.next()??);
    let (number, shown) = (u32::try_from(number).ok()?, u32::try_from(shown).ok()?);
    parts.next().is_none().then_some(FlowPlace { cookie, number, shown })
}

/// The parameters in the query.
fn query(uri: &Uri) -> Option<(Side, Option<FlowPlace>)> {
    let (mut side, mut after) = (Side::Tenant, None);
    for part in uri.query().unwrap_or_default().split('&').filter(|part| !part.is_empty()) {
        match part.split_once('=')? {
            ("side", "tenant") => side = Side::Tenant,
            ("side", "switch") => side = Side::Switch,
            ("after", text) => after = Some(place(text)?),
            _ => return None,
        }
    }
    Some((side, after))
}

/// A switch by its name in the configuration, or by its datapath id.
pub(super) fn switch(config: &Config, text: &str, is_tenant: bool) -> Result<u64, Box<Response>> {
    let named = config.switches.iter().find(|listed| listed.name.as_deref() == Some(text));
    let dpid = named.map(|it| it.dpid).or_else(|| text.parse::<Dpid>().ok().map(|dpid| dpid.0));
    dpid.ok_or_else(|| {
        let message = "the switch is neither a datapath id nor the name of one in [[switches]]";
        Box::new(match is_tenant {
            // A tenant does not learn the names of switches.
            true => error(StatusCode::NOT_FOUND, NOWHERE),
            false => error(StatusCode::BAD_REQUEST, message),
        })
    })
}

pub(super) fn routes() -> Router<Sources> {
    Router::new().route("/api/v1/tenants/{name}/switches/{switch}/flows", get(show))
}

/// A tenant's flow table on a switch.
#[utoipa::path(
    get,
    operation_id = "show_flows",
    path = "/api/v1/tenants/{name}/switches/{switch}/flows",
    params(
        ("name" = String, Path, description = "the tenant's name"),
        ("switch" = String, Path, description = "a datapath id, as the tenant sees it or as the switch has it, or the name of a listed switch"),
        ("side" = Option<String>, Query, description = "`tenant` (default): entries as the tenant wrote them; `switch`: what stands for them on the switch"),
        ("after" = Option<String>, Query, description = "`next` of the page before"),
    ),
    responses(
        (status = 200, description = "some entries", body = Flows),
        (status = 503, description = "others ask, or the switch's thread does not answer", body = Failure),
        Unnamed,
        Elsewhere,
    )
)]
pub(super) async fn show(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
    Extension(caller): Extension<Caller>,
    Name((tenant, name)): Name<(String, String)>,
    uri: Uri,
) -> Response {
    let Some((side, after)) = query(&uri) else {
        let message = "all that can stand behind the ? is side=tenant or side=switch, and after= with what `next` was";
        return error(StatusCode::BAD_REQUEST, message);
    };
    let is_tenant = caller.reach.tenant().is_some();
    if is_tenant && side == Side::Switch {
        // Numbers and tags in rules reveal other tenants.
        let message = "what stands on the switch is not shown to tenants";
        return error(StatusCode::FORBIDDEN, message);
    }
    let config = sources.current.get();
    if !config.tenants.iter().any(|known| known.name == tenant) {
        return error(StatusCode::NOT_FOUND, "there is no tenant of this name");
    }
    let dpid = match switch(&config, &name, is_tenant) {
        Ok(dpid) => dpid,
        Err(refused) => return *refused,
    };
    let asked = FlowsAsked { tenant, dpid, side, after };
    let work = move || match sources.reader.flows(&asked, PATIENCE) {
        Ok(Some(page)) => Json(Flows::new(asked, &page)).into_response(),
        Ok(None) => error(StatusCode::NOT_FOUND, NOWHERE),
        Err(why) => unanswered(why, "the switch's thread does not answer"),
    };
    bounds.page(work).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_flow_page_round_trips_and_invalid_text_is_refused() {
        let places = [(0, 0, 0), (u64::MAX, u32::MAX, u32::MAX), (0xa, 0xb, 0xc)];
        for (cookie, number, shown) in places {
            let end = FlowPlace { cookie, number, shown };
            assert_eq!(place(&written(end)), Some(end));
        }
        for text in ["", "1", "1.2", "1.2.3.4", "1.2.x", "1.100000000.1", "-1.0.0", "1..1"] {
            assert_eq!(place(text), None, "{text}");
        }
    }

    #[test]
    fn query_parameters_of_flow_requests_are_parsed_or_refused() {
        let read = |text: &str| query(&text.parse().unwrap());
        assert_eq!(read("/x"), Some((Side::Tenant, None)));
        assert_eq!(read("/x?side=switch&after=1.2.3").unwrap().0, Side::Switch);
        for text in ["/x?side=both", "/x?side", "/x?after=", "/x?else=1", "/x?after=1.2"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
