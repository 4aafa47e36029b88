//! Tests of the generator with its two ends connected directly: every message must be accounted for. The tests assert
//! counts, never times.

#![allow(clippy::unwrap_used, reason = "helpers of tests are test code too")]

use bench::arrivals::Arrivals;
use bench::{
    Controllers, Goal, Kind, Load, Outcome, Search, Session, Setup, Slicing, Stream, Topology,
    Version,
};

fn open(change: impl FnOnce(&mut Setup), tenants: usize) -> Session {
    let controllers = Controllers::bind(tenants, "127.0.0.1:0".parse().unwrap()).unwrap();
    let mut setup = Setup::new(Topology::Direct, tenants);
    change(&mut setup);
    Session::open(setup, &controllers).unwrap()
}

fn check_whole(outcome: &Outcome, sent: u64) {
    let counts = outcome.counts();
    assert!(outcome.faults.is_empty(), "{:?}", outcome.faults.sentences());
    assert_eq!((counts.sent, counts.received, counts.blocked), (sent, sent, 0), "{counts:?}");
    assert_eq!((counts.duplicates, counts.reordered, counts.refused), (0, 0, 0), "{counts:?}");
    assert_eq!(outcome.latency().count(), sent);
    assert!(outcome.latency().percentile(99.9).is_some());
}

#[test]
fn each_message_kind_is_received_without_loss_in_both_openflow_versions() {
    for version in [Version::V1_0, Version::V1_3] {
        for threads in [1, 2] {
            let change = |setup: &mut Setup| {
                (setup.version, setup.threads) = (version, threads);
                setup.switch.table = true;
            };
            let mut session = open(change, 3);
            for kind in Kind::ALL {
                if kind == Kind::Malformed || (kind == Kind::Role && version == Version::V1_0) {
                    continue;
                }
                let load = Load::constant(kind, 3, 9000.0, 20);
                let outcome = session.run(&load, &[]).unwrap();
                check_whole(&outcome, 180);
                assert!(outcome.streams.iter().all(|stream| stream.counts.received == 60));
            }
        }
    }
}

#[test]
fn each_slicing_method_works_without_loss() {
    for slicing in [Slicing::SourcePrefix, Slicing::Vlan, Slicing::InPort] {
        let mut session = open(|setup| setup.slicing = slicing, 2);
        for kind in [Kind::PacketIn, Kind::PacketOut, Kind::FlowMod] {
            check_whole(&session.run(&Load::constant(kind, 2, 2000.0, 50), &[]).unwrap(), 100);
        }
    }
}

#[test]
fn a_thousand_tenants_receive_the_same_number_of_messages() {
    let mut session = open(|setup| setup.threads = 2, 1000);
    let load = Load::constant(Kind::PacketIn, 1000, 20_000.0, 300);
    let outcome = session.run(&load, &[]).unwrap();
    check_whole(&outcome, 6000);
    assert_eq!(outcome.streams.len(), 1000);
    assert!(outcome.streams.iter().all(|stream| stream.counts.received == 6));
}

#[test]
fn messages_of_a_mix_are_counted_by_message_kind() {
    let mut session = open(|_| {}, 1);
    let mix = vec![(Kind::PacketIn, 2), (Kind::Echo, 1), (Kind::PacketOut, 1)];
    let stream = Stream { mix, ..Stream::new(0, Kind::Echo, Arrivals::Constant { rate: 8000.0 }) };
    let outcome = session.run(&Load::new(vec![stream], 100), &[]).unwrap();
    check_whole(&outcome, 800);
    let kinds: Vec<Kind> = outcome.by_kind.iter().map(|&(kind, _)| kind).collect();
    assert_eq!(kinds, [Kind::PacketIn, Kind::PacketOut, Kind::Echo]);
    assert_eq!(outcome.by_kind.iter().map(|(_, latency)| latency.count()).sum::<u64>(), 800);
}

#[test]
fn a_background_stream_is_sent_only_in_its_period_and_counted_separately() {
    let mut session = open(|_| {}, 2);
    let subject = Stream::new(0, Kind::Echo, Arrivals::Constant { rate: 1000.0 });
    let mut neighbour =
        Stream::new(1, Kind::PacketOut, Arrivals::Burst { count: 10, every_us: 5000.0 })
            .as_background();
    (neighbour.start_ms, neighbour.stop_ms) = (50, Some(100));
    let outcome = session.run(&Load::new(vec![subject, neighbour], 200), &[]).unwrap();
    check_whole(&outcome, 200);
    assert_eq!(outcome.streams[1].counts.received, 100);
}

#[test]
fn messages_outside_the_measurement_window_are_not_counted() {
    let mut session = open(|_| {}, 1);
    let load = Load { cut_ms: 50, ..Load::constant(Kind::PacketIn, 1, 2000.0, 200) };
    check_whole(&session.run(&load, &[]).unwrap(), 200);
}

#[test]
fn the_batch_setting_gives_the_number_of_messages_per_write() {
    let mut session = open(|_| {}, 1);
    for (batch, want) in [(1, 1.0), (5, 5.0), (0, 20.0)] {
        let arrivals = Arrivals::Burst { count: 20, every_us: 10_000.0 };
        let mut load = Load::new(vec![Stream::new(0, Kind::PacketIn, arrivals)], 100);
        load.batch = batch;
        let outcome = session.run(&load, &[]).unwrap();
        check_whole(&outcome, 200);
        let got = outcome.messages_per_write;
        // If the operating system interrupts a burst, the rest of the burst may be sent with the next burst.
        assert!(got >= want && (batch == 0 || got <= want), "{got} is not {want}");
    }
}

#[test]
fn saturating_and_closed_loop_loads_lose_no_message() {
    let mut session = open(|setup| setup.threads = 2, 2);
    for load in [
        Load::saturating(Kind::PacketIn, 2, 100),
        Load::saturating(Kind::PacketOut, 2, 100),
        Load::new(vec![Stream::new(0, Kind::Barrier, Arrivals::Closed { outstanding: 4 })], 100),
    ] {
        // On a loaded machine TCP drops segments when a buffer overflows, and retransmits the segments after a wait.
        let load = Load { drain_ms: 20_000, ..load };
        let outcome = session.run(&load, &[]).unwrap();
        let counts = outcome.counts();
        assert!(counts.sent > 100 && counts.unanswered() == 0, "{counts:?}");
        assert_eq!(outcome.lag.count(), 0, "without a schedule nobody is behind it");
    }
}

#[test]
fn a_slow_switch_answers_at_its_service_rate_without_loss() {
    let mut session = open(
        |setup| {
            setup.switch.service_ns = 1_000_000;
            setup.switch.queue = 4;
        },
        1,
    );
    let load = Load { drain_ms: 5000, ..Load::constant(Kind::PortStats, 1, 2000.0, 200) };
    let outcome = session.run(&load, &[]).unwrap();
    check_whole(&outcome, 400);
    // The schedule has 400 messages of a millisecond each within 200 ms, so the last message waits about 200 ms.
    assert!(outcome.latency().percentile(100.0) >= Some(190_000_000));
    assert!((0.01..=1.001).contains(&outcome.switch_busy), "{}", outcome.switch_busy);
}

#[test]
fn each_arrival_process_sends_the_expected_number_of_messages() {
    let mut session = open(|_| {}, 1);
    for (arrivals, want) in [
        (Arrivals::Constant { rate: 2000.0 }, 400),
        (Arrivals::Burst { count: 7, every_us: 20_000.0 }, 70),
        (Arrivals::OnOff { rate: 2000.0, on_ms: 20.0, off_ms: 30.0 }, 160),
        (Arrivals::Ramp { from: 1000.0, to: 3000.0, over_s: 0.2 }, 400),
        (Arrivals::Steps { steps: vec![(0.0, 1000.0), (0.1, 0.0), (0.15, 2000.0)] }, 200),
        (Arrivals::Trace { times_ns: vec![0, 1_000_000, 1_000_000, 90_000_000], file: None }, 4),
    ] {
        let stream = Stream::new(0, Kind::Echo, arrivals.clone());
        let outcome = session.run(&Load::new(vec![stream], 200), &[]).unwrap();
        let sent = outcome.counts().sent;
        // A ramp's last message may be before or after the end.
        assert!(sent.abs_diff(want) <= 1, "{arrivals:?}: {sent} is not {want}");
        check_whole(&outcome, sent);
    }
}

/// Both goals have rates below the upper bound. A loss-free search passes only trials without lost or late messages.
#[test]
fn a_rate_search_on_a_slow_switch_passes_only_trials_that_meet_the_goal() {
    // The switch handles 5,000 messages per second. Messages above this rate wait in its queue and are late.
    let mut session = open(|setup| setup.switch.service_ns = 200_000, 1);
    let search = |goal| Search {
        kind: Kind::Barrier,
        tenants: 1,
        low: 50.0,
        high: 50_000.0,
        resolution: 0.5,
        trial_ms: 100,
        goal,
    };
    for goal in [Goal::Highest, Goal::LossFree] {
        let found = search(goal).run(&mut session, &mut |_| {}).unwrap();
        assert!(
            !found.at_upper_bound && found.rate.is_none_or(|rate| rate < 20_000.0),
            "{found:?}"
        );
        assert!(found.trials.len() >= 2 && found.table().to_string().lines().count() > 2);
        let passed = found.trials.iter().filter(|trial| trial.passed);
        for trial in passed {
            assert!(goal == Goal::Highest || (trial.lost, trial.late) == (0, 0), "{trial:?}");
        }
        let failed: Vec<_> = found.trials.iter().filter(|trial| !trial.passed).collect();
        assert!(failed.iter().any(|trial| trial.asked > 20_000.0 && trial.lost > 0), "{failed:?}");
    }
    let bad = Search { low: 5.0, high: 4.0, ..search(Goal::Highest) };
    assert!(bad.run(&mut session, &mut |_| {}).unwrap_err().to_string().contains("highest rate"));
}

#[test]
fn data_packets_show_the_rule_delay_that_early_barrier_replies_hide() {
    const LIE: u64 = 40_000_000;
    for slicing in [Slicing::SourcePrefix, Slicing::Vlan] {
        for (version, threads) in [(Version::V1_0, 1), (Version::V1_3, 2)] {
            let change = |setup: &mut Setup| {
                (setup.version, setup.threads, setup.slicing) = (version, threads, slicing);
                (setup.switch.table, setup.switch.lies_ns) = (true, LIE);
            };
            let mut session = open(change, 2);
            let run = |session: &mut Session, kind| {
                let outcome = session.run(&Load::constant(kind, 2, 400.0, 100), &[]).unwrap();
                check_whole(&outcome, 40);
                outcome.latency().percentile(0.0).unwrap()
            };
            // Barriers make the switch seem fast. Packets show the real speed of the switch.
            let (barrier, packet) =
                (run(&mut session, Kind::FlowMod), run(&mut session, Kind::FlowModPacket));
            // Histograms have values with three digits, rounded down.
            assert!(barrier < LIE && packet >= LIE - LIE / 1000, "{barrier} {packet}");
        }
    }
}
