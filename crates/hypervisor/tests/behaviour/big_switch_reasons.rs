//! Tests of the refusal that Weir records when a member of a big switch refuses a request. The record has the reason
//! and the datapath id of the member.

use crate::support::big_switches::testbed;
use crate::support::*;
use hypervisor::RefusedBy;
use hypervisor::refusals::Reason;
use openflow::ErrorCode;
use openflow::error::{v10, v13};

const RED: usize = 0;
const PACKET: &str = "data=10.0.0.1>10.0.0.2";
const FLOW_MOD: u8 = 14;

/// Red sends this request, and Weir records exactly one refusal. The result is the side that refused, the member, the
/// reason and the text.
fn refused(testbed: &mut Testbed, words: &str) -> (RefusedBy, Option<u64>, Reason, String) {
    let version = testbed.version(1);
    let (before, at_members) = testbed.errors_counted(RED, 1);
    let received = testbed.say(RED, 1, words);
    assert!(
        received.len() == 1 && received[0].starts_with("7 ERROR"),
        "{version:?} {words}: {received:?}"
    );
    let counted = (before + 1, at_members);
    assert_eq!(testbed.errors_counted(RED, 1), counted, "{version:?} {words}");
    let refusal = testbed.last_refusal(RED, 1).expect("a refusal");
    assert!(received[0].contains(&refusal.code().display(version).to_string()), "{received:?}");
    (refusal.by(), refusal.member(), refusal.check(), refusal.reason(version))
}

#[test]
fn a_refusal_by_weir_on_a_member_is_recorded_with_member_and_reason() {
    let port_9 = "an action sends to port 9, which is not the tenant's";
    let flow_mod = "flow add match=ip prio=5 actions=output:9";
    let packet_out = format!("out in_port=3 actions=output:9 {PACKET}");
    let port_mod = "port_mod port=4 config=1 mask=1 mac=02:00:00:00:00:09";
    let group_mod = "group add id=1 buckets=output:9";
    let both = [
        (1, Reason::OutPort, flow_mod, port_9),
        (2, Reason::OutPort, &packet_out, port_9),
        (1, Reason::ByCode, port_mod, "the address is not the port's"),
    ];
    let since_13 = [(1, Reason::OutPort, group_mod, port_9)];
    for version in VERSIONS {
        let later = since_13.iter().filter(|_| version == Version::V1_3);
        for &(member, reason, words, why) in both.iter().chain(later) {
            let why = format!("on the member switch 00:00:00:00:00:00:00:0{member}, {why}");
            let expected = (RefusedBy::Weir, Some(member), reason, why);
            assert_eq!(refused(&mut testbed(version), words), expected, "{version:?} {words}");
        }
    }
}

/// Only the tenant's part of the store of member 2 is full.
#[test]
fn a_refusal_by_the_full_store_of_one_member_is_recorded_with_this_member() {
    let requests = [
        (Version::V1_0, "flow add match=ip prio=5 actions=output:4"),
        (Version::V1_3, "flow add match=ip prio=5 actions=output:4"),
        (Version::V1_3, "group add id=1 buckets=output:4"),
        (Version::V1_3, "meter add id=1 rate=1000"),
    ];
    for (version, words) in requests {
        let mut testbed = testbed(version);
        testbed.fill_store(RED, 2);
        let why = "on the member switch 00:00:00:00:00:00:00:02, the tenant's part of the store is full: see \
                   `weir ctl limits`";
        let expected = (RefusedBy::Weir, Some(2), Reason::StoreFull, why.to_owned());
        assert_eq!(refused(&mut testbed, words), expected, "{version:?}");
    }
}

#[test]
fn a_refusal_by_a_physical_switch_is_recorded_with_member_and_error() {
    let flow_mod = "flow add match=ip prio=5 actions=output:4";
    let packet_out = &format!("out in_port=3 actions=output:3 {PACKET}");
    let requests: [(Version, u8, ErrorCode, &str, &str); 6] = [
        (
            Version::V1_0,
            FLOW_MOD,
            v10::FLOW_MOD_FAILED_UNSUPPORTED,
            "OFPFMFC_UNSUPPORTED",
            flow_mod,
        ),
        (Version::V1_0, 13, v10::BAD_REQUEST_BUFFER_EMPTY, "OFPBRC_BUFFER_EMPTY", packet_out),
        (Version::V1_3, FLOW_MOD, v13::FLOW_MOD_FAILED_UNKNOWN, "OFPFMFC_UNKNOWN", flow_mod),
        (
            Version::V1_3,
            15,
            v13::GROUP_MOD_FAILED_WEIGHT_UNSUPPORTED,
            "OFPGMFC_WEIGHT_UNSUPPORTED",
            "group add id=1 buckets=output:4",
        ),
        (
            Version::V1_3,
            29,
            v13::METER_MOD_FAILED_BAD_RATE,
            "OFPMMFC_BAD_RATE",
            "meter add id=1 rate=1000",
        ),
        (Version::V1_3, 13, v13::BAD_REQUEST_BUFFER_EMPTY, "OFPBRC_BUFFER_EMPTY", packet_out),
    ];
    for (version, type_, code, name, words) in requests {
        let mut testbed = testbed(version);
        testbed.refuse_next(2, type_, code);
        let why = format!("the member switch 00:00:00:00:00:00:00:02 refused: {name}");
        let expected = (RefusedBy::Switch, Some(2), Reason::ByCode, why);
        assert_eq!(refused(&mut testbed, words), expected, "{version:?}");
    }
}
