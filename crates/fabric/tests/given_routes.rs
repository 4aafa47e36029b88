//! Tests of links with impossible given routes, with connected and with disconnected switches.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::spec::*;
use common::walk::port;
use fabric::embedding::{Part, Reason, Refusal, Route, Step};
use fabric::{Dpid, Network};

#[test]
fn a_given_route_that_misses_an_end_of_its_link_is_refused() {
    let to = |dpid| Step::Switch(Dpid(dpid));
    let out = |dpid, number| Step::Port(port(dpid, number));
    for (steps, may_be) in [
        (vec![to(1), to(2), to(3)], true),
        (vec![to(3), to(2), to(1)], true),
        (vec![out(1, 2), out(2, 2)], true),
        (vec![to(3), out(3, 2), to(4), to(1)], true),
        (vec![], false),
        (vec![to(1)], false),
        (vec![to(7), to(9)], false),
        (vec![to(1), to(2)], false),
        (vec![to(2), to(3)], false),
        (vec![to(1), to(2), to(1)], false),
        (vec![out(2, 2)], false),
    ] {
        let mut spec = two();
        spec.links[0].route = Route::Given(steps.clone());
        for network in [Network::default(), ring()] {
            let result = embedding().apply(&network, &wanted(&[(RED, &spec)]));
            let (part, why) = (Part::Link(spec.links[0].ends), Reason::RouteBeside);
            match may_be {
                true => assert!(result.is_ok(), "{steps:?}: {result:?}"),
                false => {
                    assert_eq!(result, Err(vec![Refusal { tenant: RED, part, why }]), "{steps:?}");
                }
            }
        }
    }
}
