//! Who may ask: without passwords, a page in somebody's browser must reach nothing here.
//!
//! Such a page can send requests to an address or name that leads here, and read the answers where the name is its own (DNS
//! rebinding). So what is asked for must be an address or `localhost`, in the header `Host`, and a request that a browser
//! says to come from a page must come from a page of Weir's own, in the header `Origin`. Both for reading as for changing.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use super::answers::error;
use super::clients::{Client, Peer};
use crate::access::{Reach, Role};
use crate::metrics::{ApiRefusal, Registry};

/// What is asked of.
#[derive(Clone)]
pub(super) struct Guard {
    pub(super) metrics: Arc<Registry>,
    /// Whether changes are taken by TCP.
    pub(super) tcp_changes: bool,
}

/// Refuses what is asked for from elsewhere, and changes where none are taken.
pub(super) async fn guard(
    State(Guard { metrics, tcp_changes }): State<Guard>,
    mut request: Request,
    next: Next,
) -> Response {
    // No browser speaks to a socket in the file system.
    let peer = request.extensions().get::<Arc<Client>>().map(|client| client.peer());
    let judged = match peer {
        Some(Peer::Unix(_)) => Ok(()),
        _ => match judge(request.headers()) {
            Err(message) => Err((ApiRefusal::Elsewhere, message)),
            Ok(()) if tcp_changes || request.method().is_safe() => Ok(()),
            Ok(()) => Err((ApiRefusal::ReadOnly, READ_ONLY)),
        },
    };
    match judged {
        Ok(()) => {
            // Without an account, who may change things is everybody who may do anything.
            let may_change = tcp_changes || matches!(peer, Some(Peer::Unix(_)));
            let role = if may_change { Role::Admin } else { Role::Operator };
            request.extensions_mut().insert(Reach::All(role));
            next.run(request).await
        }
        Err((why, message)) => {
            metrics.process.api.refused(why).increment();
            error(StatusCode::FORBIDDEN, message)
        }
    }
}

const READ_ONLY: &str = "changes are taken by the socket in the file system alone, as `weir ctl --api unix:PATH` asks for them ([listen] api, api_changes)";

fn judge(headers: &HeaderMap) -> Result<(), &'static str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
    if hosts.next().is_some() || !is_here(host) {
        return Err("ask by an address or localhost, not by a name");
    }
    for origin in headers.get_all(header::ORIGIN) {
        let origin = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
        if !origin.is_some_and(|origin| origin.eq_ignore_ascii_case(host)) {
            return Err("a page of another site may not ask");
        }
    }
    Ok(())
}

/// Whether a host, perhaps with a port, is an address or `localhost`.
fn is_here(host: &str) -> bool {
    let bare = match host.rsplit_once(':') {
        Some((bare, port)) if !port.is_empty() && port.bytes().all(|c| c.is_ascii_digit()) => bare,
        _ => host,
    };
    let v6 = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    bare.eq_ignore_ascii_case("localhost")
        || v6.unwrap_or(bare).parse::<IpAddr>().is_ok_and(|it| it.is_ipv4() || v6.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn pages_of_other_sites_are_refused_whatever_they_ask() {
        let own = "127.0.0.1:8080";
        for (hosts, origins, may) in [
            (&[own][..], &[][..], true),
            (&["localhost"], &[], true),
            (&["LOCALHOST:1"], &[], true),
            (&["[::1]:8080"], &[], true),
            (&["[::1]"], &[], true),
            (&[own], &["http://127.0.0.1:8080"], true),
            // A name that its owner lets lead here: DNS rebinding.
            (&["weir.example"], &[], false),
            (&["weir.example:8080"], &["http://weir.example:8080"], false),
            (&["localhost.example:8080"], &[], false),
            (&["127.0.0.1.example"], &[], false),
            (&["127.0.0.1:8080:8080"], &[], false),
            (&["::1"], &[], false),
            (&[], &[], false),
            (&[own, "weir.example"], &[], false),
            // A page that knows the address.
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
            assert_eq!(judge(&headers).is_ok(), may, "{hosts:?} {origins:?}");
        }
    }
}
