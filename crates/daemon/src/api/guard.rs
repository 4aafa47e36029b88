//! The check of each request before the routes: who may use the interface.
//!
//! ```text
//! from where? ──► Host and Origin ──► who? token, certificate, or being here ──► the table (`access`) ──► the route
//!                      │ 403                │ 401                     │ 429          │ 401, 403, 404, 405
//! ```
//!
//! A page of another site in a browser can send requests to Weir's address, and can read the answers if the page's own
//! host name resolves to this address (DNS rebinding). So the header `Host` must be an IP address, `localhost` or one
//! of Weir's names, and the header `Origin` of a browser must name a page of Weir itself. Both checks apply to reading
//! and to changes.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{MatchedPath, RawPathParams, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use super::access::{Decision, decide};
use super::answers::{NOTHING, OTHER_METHOD, error};
use super::clients::{Client, Peer};
use crate::access::caller::{Account, Caller, Known};
use crate::access::rates::{Rates, origin};
use crate::access::tokens::{PREFIX, Tokens, now};
use crate::access::{Reach, Role};
use crate::config::Access;
use crate::metrics::{ApiRefusal, Registry};
use crate::reload::Current;

/// Requests of one address without an account: per second, and burst.
const STRANGERS: (u32, u32) = (20, 100);

/// Traces of one account: per second, and burst. A trace through thousands of entries takes milliseconds of an event
/// loop.
const TRACES: (u32, u32) = (10, 20);

/// The data for the check.
#[derive(Clone)]
pub(super) struct Guard(Arc<Inner>);

struct Inner {
    metrics: Arc<Registry>,
    current: Current,
    tokens: Arc<Tokens>,
    /// Whether changes by TCP need no account.
    tcp_changes: bool,
    accounts: Rates<Account>,
    traces: Rates<Account>,
    strangers: Rates<Option<IpAddr>>,
}

/// The reason for a refusal.
struct Refused {
    /// The reason in the metrics, if the refusal is counted.
    why: Option<ApiRefusal>,
    status: StatusCode,
    message: &'static str,
}

impl Guard {
    pub(super) fn new(
        metrics: Arc<Registry>,
        current: Current,
        tokens: Arc<Tokens>,
        tcp_changes: bool,
    ) -> Guard {
        let (per_second, now) = (current.get().access.requests, Instant::now());
        let accounts = Rates::new(per_second, per_second.saturating_mul(2), now);
        let strangers = Rates::new(STRANGERS.0, STRANGERS.1, now);
        let traces = Rates::new(TRACES.0, TRACES.1, now);
        Guard(Arc::new(Inner {
            metrics,
            current,
            tokens,
            tcp_changes,
            accounts,
            traces,
            strangers,
        }))
    }
}

/// Refuses requests from other sites, without a valid account, above the rate, or with a role that may not use the
/// path.
pub(super) async fn guard(
    State(Guard(guard)): State<Guard>,
    params: Result<RawPathParams, RawPathParamsRejection>,
    mut request: Request,
    next: Next,
) -> Response {
    let client = request.extensions().get::<Arc<Client>>().cloned();
    let path = request.extensions().get::<MatchedPath>().cloned();
    let named = params.as_ref().ok().and_then(|params| {
        let mut params = params.iter();
        params.find(|(name, _)| ["name", "tenant"].contains(name)).map(|(_, value)| value)
    });
    let path = path.as_ref().map(MatchedPath::as_str);
    let caller = match guard.judge(client.as_deref(), &request, path, named) {
        Ok(caller) => caller,
        Err(refused) => return guard.refuse(&refused),
    };
    if let Some(caller) = caller {
        if let Some(client) = &client {
            client.shows(&caller);
            if !client.may_work() {
                return guard.refuse(&too_much());
            }
        }
        request.extensions_mut().insert(caller);
    }
    next.run(request).await
}

impl Inner {
    fn judge(
        &self,
        client: Option<&Client>,
        request: &Request,
        path: Option<&str>,
        named: Option<&str>,
    ) -> Result<Option<Caller>, Refused> {
        let peer = client.map(Client::peer);
        let access = &self.current.get().access;
        let headers = request.headers();
        // Browsers do not connect to sockets in the file system.
        if !matches!(peer, Some(Peer::Unix(_))) {
            let scheme = if matches!(peer, Some(Peer::Tls(_))) { "https://" } else { "http://" };
            let elsewhere =
                |message| Refused::new(ApiRefusal::Elsewhere, StatusCode::FORBIDDEN, message);
            is_asked_here(headers, scheme, &access.hosts).map_err(elsewhere)?;
        }
        // Requests that everybody may make do not count for the rate of clients without an account.
        if decide(request.method(), path, None, None) == Decision::Answer {
            return Ok(None);
        }
        let caller = self.caller(client, headers, access);
        let is_stranger = !matches!(caller, Ok(Some(_)));
        let address = match peer {
            Some(Peer::Tcp(address) | Peer::Tls(address)) => Some(origin(address.ip())),
            _ => None,
        };
        if is_stranger && !self.strangers.take(address, Instant::now()) {
            return Err(too_often(TOO_OFTEN));
        }
        let caller = caller?;
        if let Some(account) = caller.as_ref().and_then(Caller::account) {
            let now = Instant::now();
            if !self.accounts.take(account.clone(), now) {
                return Err(too_often(TOO_OFTEN));
            }
            if path.is_some_and(|path| path.contains("/trace/")) && !self.traces.take(account, now)
            {
                return Err(too_often(TOO_MANY_TRACES));
            }
        }
        let reach = caller.as_ref().map(|caller| &caller.reach);
        let forbidden = |why, message| Refused::new(why, StatusCode::FORBIDDEN, message);
        let refused = match decide(request.method(), path, reach, named) {
            Decision::Answer => return Ok(caller),
            Decision::NoPath => Refused::plain(StatusCode::NOT_FOUND, NOTHING),
            Decision::NoMethod => Refused::plain(StatusCode::METHOD_NOT_ALLOWED, OTHER_METHOD),
            Decision::Hide => Refused::new(ApiRefusal::Role, StatusCode::NOT_FOUND, NO_TENANT),
            Decision::Ask => stranger(NO_ACCOUNT),
            Decision::Forbid => match caller.map(|caller| caller.known) {
                Some(Known::Here) if request.method().is_safe() => {
                    forbidden(ApiRefusal::Role, SOCKET_ONLY)
                }
                Some(Known::Here) => forbidden(ApiRefusal::ReadOnly, READ_ONLY),
                _ => forbidden(ApiRefusal::Role, NO_RIGHT),
            },
        };
        Err(refused)
    }

    /// The caller; `None`: no valid account.
    fn caller(
        &self,
        client: Option<&Client>,
        headers: &HeaderMap,
        access: &Access,
    ) -> Result<Option<Caller>, Refused> {
        let mut shown = headers.get_all(header::AUTHORIZATION).iter();
        if let Some(first) = shown.next() {
            let token = bearer(first).filter(|_| shown.next().is_none());
            let token = token.and_then(|text| self.tokens.find(text, now()));
            let token = token.ok_or_else(|| stranger(WRONG_TOKEN))?;
            let reach = token.reach().clone();
            return Ok(Some(Caller { reach, known: Known::Token(token) }));
        }
        let here = |role| Caller { reach: Reach::All(role), known: Known::Here };
        let is_open = access.loopback_is_open;
        Ok(match client.map(Client::peer) {
            Some(Peer::Unix(_)) => Some(here(Role::Admin)),
            Some(Peer::Tls(_)) => client.and_then(Client::certificate).and_then(|shown| {
                let (name, reach) = access.certificates.iter().find(|(name, _)| shown.is(name))?;
                let known = Known::Certificate(name.to_string());
                Some(Caller { reach: reach.clone(), known })
            }),
            _ if !is_open => None,
            _ if self.tcp_changes => Some(here(Role::Admin)),
            _ => Some(here(Role::Operator)),
        })
    }

    fn refuse(&self, refused: &Refused) -> Response {
        if let Some(why) = refused.why {
            self.metrics.process.api.refused(why).increment();
        }
        let mut response = error(refused.status, refused.message);
        let (name, value) = match refused.status {
            StatusCode::UNAUTHORIZED => (header::WWW_AUTHENTICATE, "Bearer realm=\"weir\""),
            StatusCode::TOO_MANY_REQUESTS => (header::RETRY_AFTER, "1"),
            _ => return response,
        };
        response.headers_mut().insert(name, HeaderValue::from_static(value));
        response
    }
}

impl Refused {
    fn new(why: ApiRefusal, status: StatusCode, message: &'static str) -> Refused {
        Refused { why: Some(why), status, message }
    }

    fn plain(status: StatusCode, message: &'static str) -> Refused {
        Refused { why: None, status, message }
    }
}

/// The error for another tenant, and for a tenant that does not exist.
const NO_TENANT: &str = "there is no tenant of this name";
const NO_ACCOUNT: &str =
    "this takes an account: send the header Authorization: Bearer TOKEN (weir ctl token create)";
const WRONG_TOKEN: &str = "the header Authorization has no token that is in force";
const NO_RIGHT: &str = "the role of this account may not do that";
const TOO_OFTEN: &str = "too many requests in a second";
const TOO_MANY_AT_ONCE: &str = "too many requests are in progress";
const TOO_MANY_TRACES: &str = "an account may ask for 10 traces in a second";
const SOCKET_ONLY: &str =
    "without an account this is answered by the socket in the file system alone ([listen] api)";
const READ_ONLY: &str = "changes are taken by the socket in the file system, as `weir ctl --api unix:PATH` asks for them, or with a token that may change things ([listen] api, api_changes)";

fn stranger(message: &'static str) -> Refused {
    Refused::new(ApiRefusal::Stranger, StatusCode::UNAUTHORIZED, message)
}

fn too_often(message: &'static str) -> Refused {
    Refused::new(ApiRefusal::Rate, StatusCode::TOO_MANY_REQUESTS, message)
}

/// Other requests in progress use the connections that are for requests.
fn too_much() -> Refused {
    Refused::new(ApiRefusal::Connections, StatusCode::TOO_MANY_REQUESTS, TOO_MANY_AT_ONCE)
}

/// The token in the header `Authorization`.
fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    let is_token = scheme.eq_ignore_ascii_case("bearer") && token.starts_with(PREFIX);
    is_token.then_some(token)
}

/// Whether the request uses an address, `localhost` or one of these names, and comes from no page of another site.
fn is_asked_here(headers: &HeaderMap, scheme: &str, names: &[String]) -> Result<(), &'static str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
    if hosts.next().is_some() || !is_here(host, names) {
        return Err("ask by an address, localhost or a name in [api] hosts");
    }
    for origin in headers.get_all(header::ORIGIN) {
        let origin = origin.to_str().ok().and_then(|origin| origin.strip_prefix(scheme));
        if !origin.is_some_and(|origin| origin.eq_ignore_ascii_case(host)) {
            return Err("a page of another site may not ask");
        }
    }
    Ok(())
}

/// Whether a host, with or without port, is an address, `localhost` or one of these names.
fn is_here(host: &str, names: &[String]) -> bool {
    let bare = match host.rsplit_once(':') {
        Some((bare, port)) if !port.is_empty() && port.bytes().all(|c| c.is_ascii_digit()) => bare,
        _ => host,
    };
    let v6 = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    bare.eq_ignore_ascii_case("localhost")
        || names.iter().any(|name| bare.eq_ignore_ascii_case(name))
        || v6.unwrap_or(bare).parse::<IpAddr>().is_ok_and(|it| it.is_ipv4() || v6.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn requests_with_a_foreign_host_or_origin_are_refused() {
        let own = "127.0.0.1:8080";
        for (hosts, origins, may) in [
            (&[own][..], &[][..], true),
            (&["localhost"], &[], true),
            (&["LOCALHOST:1"], &[], true),
            (&["[::1]:8080"], &[], true),
            (&["[::1]"], &[], true),
            (&[own], &["http://127.0.0.1:8080"], true),
            // A foreign name that resolves to Weir's address: DNS rebinding.
            (&["weir.example"], &[], false),
            (&["weir.example:8080"], &["http://weir.example:8080"], false),
            (&["localhost.example:8080"], &[], false),
            (&["127.0.0.1.example"], &[], false),
            (&["127.0.0.1:8080:8080"], &[], false),
            (&["::1"], &[], false),
            (&[], &[], false),
            (&[own, "weir.example"], &[], false),
            // The request is from a page of another site, and the page knows Weir's address.
            (&[own], &["http://weir.example"], false),
            (&[own], &["https://127.0.0.1:8080"], false),
            (&[own], &["http://127.0.0.1:9"], false),
            (&[own], &["null"], false),
            (&[own], &["http://127.0.0.1:8080", "http://weir.example"], false),
        ] {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, HeaderValue::from_static(host));
            }
            for origin in origins {
                headers.append(header::ORIGIN, HeaderValue::from_static(origin));
            }
            let judged = is_asked_here(&headers, "http://", &[]);
            assert_eq!(judged.is_ok(), may, "{hosts:?} {origins:?}");
        }
    }

    #[test]
    fn over_tls_a_configured_host_or_ip_address_needs_the_same_https_origin() {
        let names = ["weir.example".to_owned()];
        for (host, origin, may) in [
            ("weir.example", "https://weir.example", true),
            ("WEIR.example:8443", "https://weir.example:8443", true),
            ("weir.example:8443", "http://weir.example:8443", false),
            ("weir.example:8443", "https://weir.example", false),
            ("other.example", "https://other.example", false),
            ("192.0.2.1:8443", "https://192.0.2.1:8443", true),
        ] {
            let mut headers = HeaderMap::new();
            headers.append(header::HOST, HeaderValue::from_static(host));
            headers.append(header::ORIGIN, HeaderValue::from_static(origin));
            assert_eq!(is_asked_here(&headers, "https://", &names).is_ok(), may, "{host} {origin}");
        }
    }

    #[test]
    fn a_token_is_read_only_from_a_valid_bearer_header() {
        let check = |text: &'static str, token| {
            assert_eq!(bearer(&HeaderValue::from_static(text)), token, "{text}");
        };
        check("Bearer weir_12", Some("weir_12"));
        check("bearer  weir_12 ", Some("weir_12"));
        for text in ["", "Bearer", "Bearer ", "weir_12", "Basic weir_12", "Bearer 12"] {
            check(text, None);
        }
    }
}
