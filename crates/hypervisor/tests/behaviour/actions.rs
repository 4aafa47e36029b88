//! Tests of actions in slices. A rewrite is accepted if the rewritten packet stays inside the tenant's flowspace, and
//! refused if not. An output, FLOOD too, reaches only ports of the slice.

use crate::support::*;

/// Flowspaces of red, one or two for each field that 1.0 can rewrite, with a rewrite that stays inside the flowspace
/// and a rewrite that leaves it.
const NARROW: &[(&str, &str, &str)] = &[
    // flowspace, rewrite that stays inside, rewrite that leaves
    ("dl_src=02:00:00:00:00:01", "mod_dl_src:02.00.00.00.00.01", "mod_dl_src:02.00.00.00.00.02"),
    ("dl_dst=02:00:00:00:00:01", "mod_dl_dst:02.00.00.00.00.01", "mod_dl_dst:02.00.00.00.00.02"),
    ("dl_vlan=5", "mod_vlan_vid:5", "mod_vlan_vid:6"),
    ("dl_vlan=5,dl_vlan_pcp=3", "mod_vlan_pcp:3", "mod_vlan_pcp:4"),
    ("dl_vlan=5", "mod_dl_src:02.00.00.00.00.02", "strip_vlan"),
    ("ip,nw_src=10.1.0.0/16", "mod_nw_src:10.1.9.9", "mod_nw_src:10.2.9.9"),
    ("ip,nw_dst=10.1.0.0/16", "mod_nw_dst:10.1.9.9", "mod_nw_dst:10.2.9.9"),
    ("ip,nw_tos=32", "mod_nw_tos:32", "mod_nw_tos:36"),
    ("udp,tp_src=53", "mod_tp_src:53", "mod_tp_src:54"),
    ("udp,tp_dst=53", "mod_tp_dst:53", "mod_tp_dst:54"),
];

#[test]
fn each_rewrite_is_allowed_inside_the_flowspace_and_refused_outside() {
    for (space, stays, leaves) in NARROW {
        both(
            &format!("red: {space}"),
            &format!(
                "
            red> 1 flow add match={space} actions={stays},output:2
            red> 2 flow add match={space} prio=7 actions={leaves},output:2
            red< 2 ERROR OFPBAC_EPERM of type 14 xid 2
            count= 1
        "
            ),
        );
    }
}

#[test]
fn the_flowspace_check_uses_the_packet_headers_at_the_output() {
    // On 1.3, a rewrite in an action list also applies in the next table. So the packet must also be inside the
    // flowspace at the end of the list.
    both("red: ip,nw_src=10.1.0.0/16", "
        red> 1 flow add match=ip,nw_src=10.1.0.1 actions=output:2,mod_nw_src:10.2.0.1
        [1.3] red< 1 ERROR OFPBAC_EPERM of type 14 xid 1
        [1.3] red> 1 flow add match=ip,nw_src=10.1.0.1 actions=output:2
        red> 2 flow add match=ip,nw_src=10.1.0.2 actions=mod_nw_src:10.2.0.1,mod_nw_src:10.1.0.9,output:2
        red> 3 flow add match=ip,nw_src=10.1.0.3 actions=mod_nw_src:10.2.0.1,output:2
        red< 3 ERROR OFPBAC_EPERM of type 14 xid 3
        wire> 1 10.1.0.1>10.9.0.1
        wire< 2
        count= 2
    ");
}

/// POP_MPLS removes the MPLS header. If its argument is the Ethernet type of a VLAN tag, the bytes after the MPLS
/// header become a VLAN tag.
#[test]
fn actions_that_produce_a_vlan_tag_outside_the_flowspace_are_refused() {
    for tag in ["8100", "88a8"] {
        for (space, refused) in [
            ("red: in_port=1,dl_vlan=0xffff\nred: in_port=2,dl_vlan=0xffff\nblue: dl_vlan=6", true),
            ("red: any", false),
        ] {
            let refusal = if refused { "red< 1 ERROR OFPBAC_EPERM of type 14 xid 1" } else { "" };
            play_on(
                Version::V1_3,
                space,
                &format!(
                    "
                red> 1 flow add match=in_port=1,dl_vlan=0xffff,dl_type=0x8847 actions=pop_mpls:{tag},output:2
                {refusal}
                red> 2 flow add match=in_port=1,dl_vlan=0xffff,dl_type=0x8847 actions=pop_mpls:0800,output:2
            "
                ),
            );
        }
    }
    // If VLAN tags identify links, the actions are also refused when no other tenant uses the VLAN.
    let mut setup = Setup::new(Version::V1_3, "red: any");
    setup.policy.tags = Some(2000..=3999);
    let mut world = World::new(setup);
    let red = world.connect("red");
    for (xid, actions) in
        [(1, "pop_mpls:8100,output:2"), (2, "push_vlan:8100,mod_vlan_vid:2000,output:2")]
    {
        world.say(
            red,
            xid,
            &format!("flow add match=in_port=1,dl_vlan=0xffff,dl_type=0x8847 actions={actions}"),
        );
        assert_eq!(
            world.heard(red),
            [format!("{xid} ERROR OFPBAC_EPERM of type 14 xid {xid}")],
            "{actions}"
        );
    }
}

#[test]
fn push_and_pop_actions_with_a_wrong_ethernet_type_are_refused() {
    for actions in ["push_vlan:0800", "push_mpls:8100", "push_pbb:8100"] {
        play_on(
            Version::V1_3,
            "red: any",
            &format!(
                "
            red> 1 flow add match=in_port=1 actions={actions},output:2
            red< 1 ERROR OFPBAC_BAD_ARGUMENT of type 14 xid 1
        "
            ),
        );
    }
    Testbed::new(Version::V1_3, networks::two_networks()).play(
        "
        only red@1> flow add match=in_port=1,dl_type=0x8847 actions=pop_mpls:8100,output:2 -> ERROR OFPBAC_BAD_ARGUMENT
        only red@1> flow add match=in_port=1,dl_type=0x8847 actions=push_pbb:88e7,output:2 -> ERROR OFPBAC_BAD_TYPE
    ",
    );
}

#[test]
fn outputs_other_than_to_ports_of_the_slice_are_refused() {
    for (action, code) in [
        ("output:3", "OFPBAC_BAD_OUT_PORT"),
        ("normal", "OFPBAC_BAD_OUT_PORT"),
        ("local", "OFPBAC_BAD_OUT_PORT"),
        ("output:2,output:3", "OFPBAC_BAD_OUT_PORT"),
        ("table", "OFPBAC_BAD_OUT_PORT"),
        ("unknown:77", "OFPBAC_BAD_TYPE"),
    ] {
        both(
            "
            red: in_port=1
            red: in_port=2
            blue: in_port=3
        ",
            &format!(
                "
            red> 1 flow add match=in_port=1 actions={action}
            red< 1 ERROR {code} of type 14 xid 1
            red> 2 out in_port=1 actions={action} data=10.0.0.1>10.0.0.2
            {}
            left
            count= 0
        ",
                if action == "table" {
                    // A PACKET_OUT may output to TABLE. On 1.0, the table miss causes a PACKET_IN.
                    "[1.0] red< PACKET_IN 1 NO_MATCH 10.0.0.1>10.0.0.2".to_owned()
                } else {
                    format!("red< 2 ERROR {code} of type 13 xid 2")
                }
            ),
        );
    }
}

#[test]
fn flood_in_an_entry_sends_to_the_ports_of_the_slice() {
    both(
        "
        red: in_port=1
        red: in_port=2
        red: in_port=4
        blue: in_port=3
    ",
        "
        red> 1 flow add match=in_port=1 actions=flood cookie=9
        wire> 1 10.0.0.1>10.0.0.2
        wire< 2 4
        red> 2 stats flow
        red< 2 STATS flow prio=32768 in_port=1 cookie=0x9 n=1 flood
        port remove 4
        red< PORT_STATUS DELETE 4
        wire> 1 10.0.0.1>10.0.0.2
        wire< 2
    ",
    );
}

#[test]
fn flood_sends_to_a_port_that_is_added_later() {
    both(
        "
        red: in_port=1
        red: in_port=2
        red: in_port=5
        blue: in_port=3
    ",
        "
        red> 1 flow add match=in_port=1 actions=flood
        wire> 1 10.0.0.1>10.0.0.2
        wire< 2
        port add 5
        red< PORT_STATUS ADD 5
        wire> 1 10.0.0.1>10.0.0.2
        wire< 2 5
    ",
    );
}

#[test]
fn invalid_action_arguments_are_refused_by_the_hypervisor() {
    for action in ["mod_vlan_vid:4096", "mod_vlan_pcp:8", "mod_nw_tos:1"] {
        play_on(
            Version::V1_0,
            "red: any",
            &format!(
                "
            red> 1 flow add match=ip actions={action},output:1
            red< 1 ERROR OFPBAC_BAD_ARGUMENT of type 14 xid 1
        "
            ),
        );
    }
}
