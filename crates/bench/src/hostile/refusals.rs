//! Checks whether an attack on the REST interface has reached a limit. Weir counts the clients that Weir refuses.

use crate::rest;
use std::net::SocketAddr;
use std::time::Duration;

/// The counter of refused clients, by reason.
const COUNTER: &str = "weir_api_refused_total";
/// The reasons that are limits. Requests that Weir refuses for other reasons, such as a wrong host name, reach no
/// limit.
const LIMITS: [&str; 6] = ["connections", "slow", "listeners", "bodies", "answers", "rate"];
/// The number of readings that may fail, and the time between two readings: just after an attack the interface may
/// still refuse clients.
const READINGS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(2);

/// The clients that the REST interface has refused because of a limit so far.
pub(super) fn so_far(api: SocketAddr) -> Option<f64> {
    (0..READINGS).find_map(|_| {
        // Weir copies its counters to the metrics every 250 ms.
        std::thread::sleep(PAUSE);
        let (status, text) = rest::text(api, "GET", "/metrics", "", PATIENCE).ok()?;
        (status == 200).then(|| by_limits(&text)).flatten()
    })
}

/// The sum over the reasons that are limits. `None` if the system has no such counter.
fn by_limits(text: &str) -> Option<f64> {
    text.lines().any(|line| line.starts_with(COUNTER)).then(|| {
        LIMITS.map(|reason| rest::sum(text, COUNTER, &format!("reason=\"{reason}\""))).iter().sum()
    })
}

/// The effect of the attack on the counter.
#[derive(Debug, PartialEq)]
pub(super) struct Reached {
    /// The refused clients, if the counter was read before and after the attack.
    pub(super) refused: Option<f64>,
    /// The fault of the attack, if the attack reached no limit.
    pub(super) fault: Option<&'static str>,
}

impl Reached {
    /// Computes the effect from the counter before and after the attack.
    pub(super) fn between(before: Option<f64>, after: Option<f64>) -> Self {
        let refused = before.zip(after).map(|(before, after)| after - before);
        let fault = match refused {
            Some(refused) if refused > 0.0 => None,
            Some(_) => Some("the REST interface refused no client: the attack reached no limit"),
            None => {
                Some("the counter of refused clients was not read: no limit is known to be reached")
            }
        };
        Self { refused, fault }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attack_without_a_new_refusal_is_reported_as_a_fault() {
        let fault = |before, after| Reached::between(before, after).fault.is_some();
        assert!(fault(Some(3.0), Some(3.0)), "what was refused before is no part of the attack");
        assert!(!fault(Some(3.0), Some(4.0)));
        assert_eq!(Reached::between(Some(3.0), Some(4.0)).refused, Some(1.0));
        assert!(fault(None, Some(4.0)) && fault(Some(3.0), None), "nothing is known");
        assert_eq!(Reached::between(None, Some(4.0)).refused, None);
    }

    #[test]
    fn only_rest_refusals_caused_by_a_limit_are_counted() {
        let text = "# TYPE weir_api_refused_total counter\n\
                    weir_api_refused_total{reason=\"elsewhere\"} 5\n\
                    weir_api_refused_total{reason=\"bodies\"} 2\n\
                    weir_api_refused_total{reason=\"listeners\"} 1\n";
        assert_eq!(by_limits(text), Some(3.0));
        assert_eq!(by_limits("weir_connections_total 1\n"), None, "another system");
    }
}
