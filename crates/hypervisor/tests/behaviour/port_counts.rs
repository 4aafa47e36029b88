//! Port statistics of tenants' own networks: what has come and gone by each port, and never anybody else's.

use crate::networks::{big, two};
use crate::support::*;

const V13: Version = Version::V1_3;

fn say(stage: &mut Stage, tenant: usize, switch: u64, words: &str) {
    assert_eq!(stage.say(tenant, switch, words), Vec::<String>::new(), "{words}");
}

/// Of two(): blue's frames from its port 1 of the first switch cross its link to the third, red's go to the second.
fn forwarding(version: Version) -> Stage {
    let mut stage = Stage::new(version, two());
    for (tenant, switch, rule) in [
        (0, 1, "match=in_port=1 prio=5 actions=output:10"),
        (0, 2, "match=in_port=10 prio=5 actions=output:1"),
        (1, 1, "match=in_port=1 prio=5 actions=output:11"),
        (1, 3, "match=in_port=11 prio=5 actions=output:1"),
        (1, 3, "match=in_port=1 prio=5 actions=output:11"),
        (1, 1, "match=in_port=11 prio=5 actions=output:1"),
    ] {
        say(&mut stage, tenant, switch, &format!("flow add {rule}"));
    }
    stage
}

fn send(stage: &mut Stage, tenant: usize, switch: u64, times: usize) {
    for _ in 0..times {
        let seen = stage.send(tenant, switch, 1, &frame());
        assert_eq!(seen.delivered.len(), 1, "{seen:?}");
    }
}

fn frame() -> Vec<u8> {
    packet("10.0.0.1>10.0.0.2")
}

/// So many of these frames.
fn frames_of(packets: u64) -> Option<(u64, u64)> {
    Some((packets, packets * frame().len() as u64))
}

#[track_caller]
fn check(stage: &mut Stage, (tenant, switch, port): (usize, u64, u32), received: u64, sent: u64) {
    let counted = stage.counted(tenant, switch, port);
    assert_eq!(counted, (frames_of(received), frames_of(sent)), "{tenant} {switch} {port}");
}

#[test]
fn a_link_has_received_what_came_by_it_and_sent_what_arrived() {
    for version in VERSIONS {
        let mut stage = forwarding(version);
        send(&mut stage, 1, 1, 3);
        send(&mut stage, 1, 3, 2);
        check(&mut stage, (1, 1, 11), 2, 3);
        check(&mut stage, (1, 3, 11), 3, 2);
        // The same tenant's other links, one of them on the same physical ports.
        check(&mut stage, (1, 1, 10), 0, 0);
        check(&mut stage, (1, 2, 10), 0, 0);
        // What passes through a switch does not come in there.
        check(&mut stage, (1, 2, 11), 0, 0);
    }
}

#[test]
fn anothers_packets_do_not_show() {
    for version in VERSIONS {
        let mut stage = forwarding(version);
        send(&mut stage, 1, 1, 3);
        let red = [(1, 10), (2, 10), (2, 11), (3, 10)];
        for (switch, port) in red {
            check(&mut stage, (0, switch, port), 0, 0);
        }
        send(&mut stage, 0, 1, 5);
        for (switch, port, received, sent) in [(1, 10, 0, 5), (2, 10, 5, 0), (2, 11, 0, 0)] {
            check(&mut stage, (0, switch, port), received, sent);
        }
        check(&mut stage, (1, 1, 11), 0, 3);
        check(&mut stage, (1, 2, 10), 0, 0);
    }
}

#[test]
fn a_controllers_own_packets_count_as_any_others() {
    for version in VERSIONS {
        let mut stage = forwarding(version);
        stage.out(1, 1, "out in_port=controller actions=output:11 data=10.0.0.1>10.0.0.2");
        check(&mut stage, (1, 1, 11), 0, 1);
        check(&mut stage, (1, 3, 11), 1, 0);
    }
}

#[test]
fn counts_go_on_where_a_link_moves_or_has_no_way_for_a_time() {
    for version in VERSIONS {
        let mut stage = forwarding(version);
        send(&mut stage, 1, 1, 3);
        let mut sent = 3;
        for (round, first) in [3000, 2500, 2000].into_iter().enumerate() {
            let (mut maps, tags) = Stage::maps_from(first, &two());
            if round == 1 {
                for (switch, map) in &mut maps {
                    if [1, 3].contains(switch) {
                        let far = map.members[&hypervisor::TenantId(2)].ports[&11].kind.clone();
                        cut(map, hypervisor::TenantId(2), 11);
                        keep_far_end(map, far);
                    }
                }
                stage.set_maps(&maps, 2000..=tags);
                check(&mut stage, (1, 1, 11), 0, sent);
                check(&mut stage, (1, 3, 11), sent, 0);
                continue;
            }
            stage.set_maps(&maps, 2000..=tags);
            // Nothing is lost on the way, asked or not.
            check(&mut stage, (1, 3, 11), sent, 0);
            send(&mut stage, 1, 1, 2);
            sent += 2;
            check(&mut stage, (1, 1, 11), 0, sent);
            check(&mut stage, (1, 3, 11), sent, 0);
            send(&mut stage, 1, 1, 1);
            sent += 1;
        }
    }
}

/// A link that has no way still has two ends.
fn keep_far_end(map: &mut fabric::embedding::SwitchMap, was: fabric::embedding::PortKind) {
    use fabric::embedding::PortKind;
    let member = map.members.get_mut(&hypervisor::TenantId(2)).unwrap();
    let port = &mut member.ports.get_mut(&11).unwrap().kind;
    if let (PortKind::Link { far, .. }, PortKind::Link { far: was, .. }) = (port, was) {
        *far = was;
    }
}

#[test]
fn counts_outlive_connections() {
    let mut stage = forwarding(V13);
    send(&mut stage, 1, 1, 3);
    let (maps, tags) = Stage::maps_from(3000, &two());
    stage.set_maps(&maps, 2000..=tags);
    send(&mut stage, 1, 1, 2);
    for switch in [3, 1] {
        stage.reconnect(switch);
        check(&mut stage, (1, 3, 11), 5, 0);
        check(&mut stage, (1, 1, 11), 0, 5);
    }
    // What was to be removed while the switch was away is removed when it is back, and counts.
    send(&mut stage, 1, 1, 1);
    let (maps, tags) = Stage::maps_from(2000, &two());
    stage.set_maps_while_away(3, &maps, 2000..=tags);
    check(&mut stage, (1, 3, 11), 6, 0);
    check(&mut stage, (1, 1, 11), 0, 6);
    send(&mut stage, 1, 1, 1);
    check(&mut stage, (1, 1, 11), 0, 7);
}

/// On real switches the last word on an entry comes late.
#[test]
fn nothing_is_taken_back_while_an_entry_goes() {
    let mut stage = forwarding(V13);
    stage.plant(3, vec![emulate::Fault::BarrierLies { by: 10_000_000_000 }]);
    for (first, is_away, sum) in [(3000, false, 3), (2000, true, 6)] {
        send(&mut stage, 1, 1, 3);
        check(&mut stage, (1, 3, 11), sum, 0);
        let (maps, tags) = Stage::maps_from(first, &two());
        match is_away {
            true => stage.set_maps_while_away(3, &maps, 2000..=tags),
            false => stage.set_maps(&maps, 2000..=tags),
        }
        for _ in 0..2 {
            check(&mut stage, (1, 3, 11), sum, 0);
            check(&mut stage, (1, 1, 11), 0, sum);
            stage.wait(12);
        }
    }
}

/// The last word on an entry is lost with the connection, whether the entry is gone or not.
#[test]
fn nothing_is_taken_back_when_the_last_word_is_lost() {
    for is_told in [true, false] {
        let mut stage = forwarding(V13);
        let mut sum = 0;
        for first in [3000, 2000] {
            send(&mut stage, 1, 1, 3);
            sum += 3;
            check(&mut stage, (1, 3, 11), sum, 0);
            let (maps, tags) = Stage::maps_from(first, &two());
            stage.set_maps_and_lose(3, is_told, &maps, 2000..=tags);
            check(&mut stage, (1, 3, 11), sum, 0);
            check(&mut stage, (1, 1, 11), 0, sum);
        }
        stage.reconnect(3);
        check(&mut stage, (1, 3, 11), sum, 0);
    }
}

#[test]
fn a_port_that_is_taken_away_counts_from_nothing_when_it_is_back() {
    for version in VERSIONS {
        let mut stage = forwarding(version);
        send(&mut stage, 1, 1, 3);
        let (maps, tags) = Stage::maps_from(2000, &two());
        let mut less = maps.clone();
        for switch in [1, 3] {
            let member = less.get_mut(&switch).unwrap().members.get_mut(&hypervisor::TenantId(2));
            member.unwrap().ports.remove(&11);
        }
        stage.set_maps(&less, 2000..=tags);
        stage.set_maps(&maps, 2000..=tags);
        check(&mut stage, (1, 3, 11), 0, 0);
        check(&mut stage, (1, 1, 11), 0, 0);
    }
}

#[test]
fn a_port_that_is_configured_otherwise_goes_on_counting() {
    for version in VERSIONS {
        let mut stage = forwarding(version);
        send(&mut stage, 1, 1, 3);
        // The other end is not told of it, so what arrives has been sent.
        for (config, lets_in) in [("1", false), ("0", true), ("4", false), ("0", true)] {
            say(&mut stage, 1, 3, &format!("port_mod port=11 config={config} mask=5"));
            let before = stage.counted(1, 3, 11).0.unwrap().0;
            let seen = stage.send(1, 1, 1, &frame());
            assert_eq!(seen.delivered.len(), usize::from(lets_in));
            check(&mut stage, (1, 3, 11), before + 1, 0);
            check(&mut stage, (1, 1, 11), 0, before + 1);
        }
    }
}

#[test]
fn the_silence_of_one_switch_does_not_hold_up_the_answer_of_another() {
    for version in VERSIONS {
        let mut stage = forwarding(version);
        stage.deafen(3, true);
        send(&mut stage, 1, 1, 3);
        send(&mut stage, 1, 3, 2);
        // It is waited for once, and a quarter of a second; what it has not told is not counted.
        assert_eq!(stage.counted_at_once(1, 1, 11), None);
        stage.wait(1);
        for _ in 0..2 {
            stage.wait(1);
            let told = stage.counted_at_once(1, 1, 11);
            assert_eq!(told, Some((frames_of(2), None)));
        }
        stage.deafen(3, false);
        stage.counted(1, 1, 11);
        check(&mut stage, (1, 1, 11), 2, 3);
        // What it told last is told until it is heard again.
        stage.deafen(3, true);
        send(&mut stage, 1, 1, 4);
        check(&mut stage, (1, 1, 11), 2, 3);
        check(&mut stage, (1, 1, 10), 0, 0);
        stage.deafen(3, false);
        stage.counted(1, 1, 11);
        check(&mut stage, (1, 1, 11), 2, 7);
    }
}

#[test]
fn a_switch_is_asked_for_others_a_few_times_a_second_and_only_while_somebody_asks() {
    let mut stage = forwarding(V13);
    check(&mut stage, (1, 1, 11), 0, 0);
    let before = stage.asked_for_statistics(3);
    for _ in 0..100 {
        stage.counted_at_once(1, 1, 11);
    }
    let quarters = stage.quarters_passed();
    let asked = stage.asked_for_statistics(3) - before;
    assert!(asked <= quarters, "{asked} questions in {quarters} quarters of a second");
    let before = stage.asked_for_statistics(3);
    stage.wait(30);
    assert_eq!(stage.asked_for_statistics(3), before);
}

/// On 1.0 the tenants' entries count, and what they do not: what meets none, and what only goes through the table.
#[test]
fn on_1_0_what_comes_in_counts_once_whatever_becomes_of_it() {
    for buffers in [0, 16] {
        let mut stage = Stage::with_buffers(Version::V1_0, two(), buffers);
        let rule = "match=in_port=1 prio=5 actions=output:11";
        say(&mut stage, 1, 1, &format!("flow add {rule}"));
        // Nobody has asked before: what misses counts all the same.
        for _ in 0..3 {
            stage.send(1, 1, 1, &frame());
        }
        check(&mut stage, (1, 3, 11), 3, 0);
        check(&mut stage, (1, 1, 11), 0, 3);
        // One that is put in its own place counts anew, and so does one that is put beside it.
        let far = "match=in_port=11 prio=5 actions=output:1";
        for (sum, words) in [
            (5, format!("flow add {far}")),
            (7, format!("flow add {far}")),
            (9, format!("flow modify {far}")),
            (11, "flow add match=ip,in_port=11 prio=7 actions=drop".to_owned()),
            (13, "flow delete match=ip,in_port=11".to_owned()),
            (15, "flow delete".to_owned()),
        ] {
            say(&mut stage, 1, 3, &words);
            for _ in 0..2 {
                stage.send(1, 1, 1, &frame());
            }
            check(&mut stage, (1, 3, 11), sum, 0);
            check(&mut stage, (1, 1, 11), 0, sum);
        }
        // What a controller puts through the table as if it had come by the link does not come in.
        let table = "out in_port=11 actions=table data=10.0.0.1>10.0.0.2";
        stage.out(1, 3, table);
        check(&mut stage, (1, 3, 11), 15, 0);
        say(&mut stage, 1, 3, &format!("flow add {far}"));
        stage.out(1, 3, table);
        check(&mut stage, (1, 3, 11), 15, 0);
        stage.send(1, 1, 1, &frame());
        check(&mut stage, (1, 3, 11), 16, 0);
        // By the other link nothing has come.
        check(&mut stage, (1, 3, 10), 0, 0);
    }
}

/// A packet that a switch of 1.0 keeps has come in when the rule that is to have it takes it.
#[test]
fn on_1_0_a_packet_that_is_kept_counts_once() {
    let mut stage = Stage::with_buffers(Version::V1_0, two(), 16);
    say(&mut stage, 1, 1, "flow add match=in_port=1 prio=5 actions=output:11");
    stage.send(1, 1, 1, &frame());
    check(&mut stage, (1, 3, 11), 1, 0);
    stage.say(1, 3, "flow add match=in_port=11 prio=5 actions=output:1 buffer=0");
    check(&mut stage, (1, 3, 11), 1, 0);
    stage.send(1, 1, 1, &frame());
    check(&mut stage, (1, 3, 11), 2, 0);
}

/// What was told is not taken back when a connection is lost, whatever it was that had counted it.
#[test]
fn on_1_0_a_connection_goes_on_with_what_was_told() {
    let far = "match=in_port=11 prio=5 actions=output:1";
    for before in [
        // What stands; an entry in its own place; one that is gone, so that packets miss; and what a controller put through.
        vec![],
        vec![format!("flow add {far}")],
        vec!["flow delete".to_owned()],
        vec!["flow delete".to_owned(), format!("flow add {far}")],
        vec!["out in_port=11 actions=table data=10.0.0.1>10.0.0.2".to_owned()],
    ] {
        let mut stage = forwarding(Version::V1_0);
        send(&mut stage, 1, 1, 3);
        check(&mut stage, (1, 3, 11), 3, 0);
        for words in &before {
            match words.starts_with("out") {
                true => drop(stage.out(1, 3, words)),
                false => say(&mut stage, 1, 3, words),
            }
        }
        let mut sum = 3;
        for _ in 0..2 {
            stage.send(1, 1, 1, &frame());
            sum += 1;
            check(&mut stage, (1, 3, 11), sum, 0);
            stage.reconnect(3);
            check(&mut stage, (1, 3, 11), sum, 0);
            stage.send(1, 1, 1, &frame());
            sum += 1;
            check(&mut stage, (1, 3, 11), sum, 0);
        }
        check(&mut stage, (1, 1, 11), 0, sum);
    }
    // What had counted it is gone when the switch is back: the link has moved meanwhile.
    let mut stage = forwarding(Version::V1_0);
    for (first, sum) in [(3000, 3), (2000, 6)] {
        send(&mut stage, 1, 1, 3);
        check(&mut stage, (1, 3, 11), sum, 0);
        let (maps, tags) = Stage::maps_from(first, &two());
        stage.set_maps_while_away(3, &maps, 2000..=tags);
        check(&mut stage, (1, 3, 11), sum, 0);
        check(&mut stage, (1, 1, 11), 0, sum);
    }
    // With the port goes what is stored of it.
    let (maps, tags) = Stage::maps_from(2000, &two());
    let mut less = maps.clone();
    let member = less.get_mut(&3).unwrap().members.get_mut(&hypervisor::TenantId(2));
    member.unwrap().ports.remove(&11);
    stage.set_maps(&less, 2000..=tags);
    stage.reconnect(3);
    stage.set_maps(&maps, 2000..=tags);
    check(&mut stage, (1, 3, 11), 0, 0);
}

#[test]
fn of_what_another_switch_tells_of_another_tenant_nothing_is_told() {
    let mut stage = forwarding(Version::V1_0);
    stage.deafen(3, true);
    stage.counted(1, 1, 11);
    stage.tell_counts(1, 3, 1, &[(11, 3, 180), (12, 9, 900)]);
    assert_eq!(stage.counted(1, 1, 11), (Some((0, 0)), Some((3, 180))));
    assert_eq!(stage.counted(0, 1, 10), (Some((0, 0)), Some((0, 0))));
}

#[test]
fn a_shared_edge_port_has_received_what_the_tenants_hosts_sent() {
    for version in VERSIONS {
        let host = |n: u8| [0x02, 0, 0, 0, 0x10, n];
        let plan = |n| Plan {
            edges: vec![(2, u32::from(n) + 1, 1)],
            shared: vec![(1, 4, 7, host(n))],
            links: vec![[(1, 10), (2, 10)]],
            ..Plan::default()
        };
        let mut stage = Stage::new(version, vec![plan(0), plan(1)]);
        let from = |host: [u8; 6]| {
            let mut frame = frame();
            frame[6..12].copy_from_slice(&host);
            frame
        };
        for (n, times) in [(0, 2), (1, 5), (9, 1)] {
            for _ in 0..times {
                stage.send(0, 1, 7, &from(host(n)));
            }
        }
        for (tenant, received) in [(0, 2), (1, 5)] {
            assert_eq!(stage.counted(tenant, 1, 7), (frames_of(received), None));
        }
    }
}

/// The tenants' hosts behind their shared ports, the last of blue's behind its second one.
fn host(n: u8) -> [u8; 6] {
    [0x02, 0, 0, 0, 0x10, n]
}

/// Two that share ports 4 and 5 of the first switch, with two hosts each; red has two ports at one wire.
fn sharing() -> Vec<Plan> {
    let plan = |n: u8| Plan {
        edges: vec![(2, u32::from(n) + 1, 1)],
        shared: vec![(1, 4, 7, host(2 * n)), (1, 3, 8, host(2 * n + 1))],
        links: vec![[(1, 10), (2, 10)]],
        ..Plan::default()
    };
    vec![plan(0), plan(1)]
}

fn addressed(from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
    let mut frame = frame();
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&from);
    frame
}

#[test]
fn what_has_left_by_a_shared_edge_port_is_counted_where_the_switch_can() {
    for version in VERSIONS {
        shared_ports_count_what_they_send(version);
    }
}

fn shared_ports_count_what_they_send(version: Version) {
    let mut stage = Stage::resubmitting(version, sharing());
    let broadcast = [0xff; 6];
    let check = |stage: &mut Stage, tenant, sent: [u64; 2]| {
        for (port, sent) in [7, 8].into_iter().zip(sent) {
            let counted = stage.counted(tenant, 1, port).1;
            assert_eq!(counted, frames_of(sent), "{version:?}: {tenant} {port}");
        }
    };
    say(&mut stage, 0, 1, "flow add prio=5 actions=flood");
    say(&mut stage, 0, 2, "flow add prio=5 actions=flood");
    check(&mut stage, 0, [0, 0]);
    // From its port 7 to that behind 8, to all, to itself, and to nobody.
    for to in [host(1), broadcast, host(0), host(9)] {
        stage.send(0, 1, 7, &addressed(host(0), to));
    }
    check(&mut stage, 0, [0, 2]);
    // By the link: its tag is not in the bytes.
    for to in [host(0), host(0), host(1), broadcast, host(2)] {
        stage.send(0, 2, 1, &addressed(host(9), to));
    }
    check(&mut stage, 0, [3, 4]);
    // What leaves for the other tenant is the other's.
    check(&mut stage, 1, [0, 0]);
    say(&mut stage, 1, 1, "flow add prio=5 match=in_port=8 actions=output:7,in_port");
    stage.send(1, 1, 8, &addressed(host(3), host(2)));
    stage.send(1, 1, 8, &addressed(host(3), host(3)));
    check(&mut stage, 1, [1, 1]);
    check(&mut stage, 0, [3, 4]);
    // Out of a controller's hands: by lists and groups, from nowhere, the port itself, and a link.
    let data = "data=10.0.0.1>10.0.0.2";
    let to = |n: u8| format!("mod_dl_dst:02.00.00.00.10.0{n}");
    let mut sent = [1, 1];
    let mut out = vec![
        ("controller", format!("{},output:7", to(2)), [1, 0]),
        ("7", format!("{},output:7", to(2)), [0, 0]),
        ("7", format!("{},in_port", to(2)), [1, 0]),
        ("8", format!("{},output:7", to(2)), [1, 0]),
        ("10", format!("{},flood", to(3)), [0, 1]),
    ];
    if version == V13 {
        let buckets = format!("output:7|{},output:8", to(3));
        say(&mut stage, 1, 1, &format!("group add id=1 type=all buckets={buckets}"));
        out.push(("controller", format!("{},group:1", to(2)), [1, 1]));
        out.push(("8", format!("{},group:1", to(2)), [1, 0]));
    }
    for (in_port, actions, more) in out {
        let in_port = if version == V13 || in_port != "controller" { in_port } else { "none" };
        stage.out(1, 1, &format!("out in_port={in_port} actions={actions} {data}"));
        sent = [sent[0] + more[0], sent[1] + more[1]];
        check(&mut stage, 1, sent);
    }
    // Over a lost connection, and while the port is down, also if the switch is given other entries then.
    stage.reconnect(1);
    check(&mut stage, 1, sent);
    say(&mut stage, 0, 1, "port_mod port=7 config=1 mask=1");
    check(&mut stage, 0, [3, 4]);
    stage.send(0, 2, 1, &addressed(host(9), host(0)));
    let (maps, tags) = Stage::maps_from(3000, &sharing());
    stage.set_maps(&maps, 2000..=tags);
    check(&mut stage, 0, [3, 4]);
    say(&mut stage, 0, 1, "port_mod port=7 config=0 mask=1");
    stage.send(0, 2, 1, &addressed(host(9), host(0)));
    check(&mut stage, 0, [4, 4]);
    // And while there is no way by it.
    let mut less = maps.clone();
    let member = less.get_mut(&1).unwrap().members.get_mut(&hypervisor::TenantId(1));
    member.unwrap().ports.get_mut(&7).unwrap().up = false;
    for maps in [&less, &maps] {
        stage.set_maps(maps, 2000..=tags);
        check(&mut stage, 0, [4, 4]);
    }
    stage.send(0, 2, 1, &addressed(host(9), host(0)));
    check(&mut stage, 0, [5, 4]);
}

#[test]
fn the_end_of_a_big_switchs_link_counts_for_the_whole() {
    for version in VERSIONS {
        let mut stage = Stage::new(version, big());
        for (switch, rule) in [
            (1, "match=in_port=1 prio=5 actions=output:10"),
            (1, "match=in_port=10 prio=5 actions=output:1"),
            (3, "match=in_port=10 prio=5 actions=output:1"),
            (3, "match=in_port=1 prio=5 actions=output:10"),
        ] {
            say(&mut stage, 1, switch, &format!("flow add {rule}"));
        }
        send(&mut stage, 1, 1, 3);
        send(&mut stage, 1, 3, 2);
        check(&mut stage, (1, 1, 10), 2, 3);
        check(&mut stage, (1, 3, 10), 3, 2);
        // The link's end is on another of its members now.
        let mut plans = big();
        plans[1].links[0] = [(1, 10), (3, 10)];
        let (maps, tags) = Stage::maps_from(3000, &plans);
        stage.set_maps(&maps, 2000..=tags);
        check(&mut stage, (1, 1, 10), 2, 3);
        send(&mut stage, 1, 1, 1);
        send(&mut stage, 1, 3, 4);
        check(&mut stage, (1, 1, 10), 6, 4);
        check(&mut stage, (1, 3, 10), 4, 6);
        // The member where it was is lost.
        stage.lose(1, 1, 2);
        check(&mut stage, (1, 1, 10), 6, 4);
        stage.find(1, 1, 2);
        check(&mut stage, (1, 1, 10), 6, 4);
        check(&mut stage, (1, 1, 11), 0, 0);
    }
}
