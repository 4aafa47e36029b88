//! Tests of the labels that tenants get, and of the information that labels reveal.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod common;

use common::{megabits, network};
use fabric::labels::{Labels, Notice, Privacy, Settings};
use fabric::usage::{Flow, FlowId, Usage};
use fabric::{Bandwidth, Duration, Error, Instant, LinkId, Network, TenantId};
use proptest::prelude::*;
use std::collections::BTreeMap;

const RED: TenantId = TenantId(1);
const BLUE: TenantId = TenantId(2);

fn flow(tenant: TenantId, rate: u64, links: &[LinkId]) -> Flow {
    Flow { tenant, rate: megabits(rate), links: links.into() }
}

/// A chain of four switches, 10 Mbit/s; its links from left to right.
fn chain() -> (Network, Vec<LinkId>) {
    let network = network(4, &[(0, 1, 10), (1, 2, 10), (2, 3, 10)]);
    let links = network.links().map(|(id, _)| id).step_by(2).collect();
    (network, links)
}

#[derive(Clone, Debug)]
enum Change {
    Add { id: u64, tenant: u16, rate: u64, links: Vec<usize> },
    Remove { id: u64 },
    Rate { id: u64, rate: u64 },
    Reroute { id: u64, links: Vec<usize> },
}

fn change() -> impl Strategy<Value = Change> {
    let links = || proptest::sample::subsequence(vec![0, 1, 2], 0..4);
    prop_oneof![
        (0_u64..6, 1_u16..4, 0_u64..8, links()).prop_map(|(id, tenant, rate, links)| Change::Add {
            id,
            tenant,
            rate,
            links
        }),
        (0_u64..6).prop_map(|id| Change::Remove { id }),
        (0_u64..6, 0_u64..8).prop_map(|(id, rate)| Change::Rate { id, rate }),
        (0_u64..6, links()).prop_map(|(id, links)| Change::Reroute { id, links }),
    ]
}

proptest! {
    /// Conservation: for every link and tenant, at every instant, label + use by others = capacity.
    #[test]
    fn label_plus_use_by_other_tenants_equals_the_capacity(changes in proptest::collection::vec(change(), 1..60)) {
        let (network, all) = chain();
        let pick = |places: &[usize]| places.iter().map(|&place| all[place]).collect::<Vec<_>>();
        let mut usage = Usage::default();
        let mut model: BTreeMap<u64, Flow> = BTreeMap::new();
        for change in changes {
            let (known, done) = match change {
                Change::Add { id, tenant, rate, links } => {
                    let flow = flow(TenantId(tenant), rate, &pick(&links));
                    let known = model.contains_key(&id);
                    model.entry(id).or_insert_with(|| flow.clone());
                    (!known, usage.add(&network, FlowId(id), flow).is_ok())
                }
                Change::Remove { id } => {
                    (model.remove(&id).is_some(), usage.remove(FlowId(id)).is_ok())
                }
                Change::Rate { id, rate } => {
                    let known = model.get_mut(&id).map(|flow| flow.rate = megabits(rate));
                    (known.is_some(), usage.set_rate(&network, FlowId(id), megabits(rate)).is_ok())
                }
                Change::Reroute { id, links } => {
                    let links = pick(&links);
                    let known = model.get_mut(&id).map(|flow| flow.links = links.clone().into());
                    (known.is_some(), usage.reroute(&network, FlowId(id), links.into()).is_ok())
                }
            };
            prop_assert_eq!(known, done);
            for &link in &all {
                let capacity = network.link(link).capacity;
                for tenant in (1..5).map(TenantId) {
                    let others: u64 = model
                        .values()
                        .filter(|flow| flow.tenant != tenant && flow.links.contains(&link))
                        .map(|flow| flow.rate.bits_per_second())
                        .sum();
                    let others = Bandwidth::from_bits_per_second(others);
                    prop_assert_eq!(usage.others(link, tenant), others);
                    let label = usage.label(&network, link, tenant);
                    prop_assert_eq!(label.checked_add(others.min(capacity)), Some(capacity));
                }
            }
            prop_assert_eq!(usage.len(), model.len());
        }
    }

    /// No tenant gets labels more often than the interval allows. When no load changes, no label differs by more than
    /// the hysteresis.
    #[test]
    fn label_updates_keep_the_interval_and_end_within_the_hysteresis(
        hysteresis in 1_u64..5,
        interval in 1_u64..50,
        changes in proptest::collection::vec((0_u64..20, change()), 1..60),
    ) {
        let (network, all) = chain();
        let settings = Settings {
            hysteresis: megabits(hysteresis),
            minimum_interval: Duration::from_millis(interval),
            privacy: Privacy::default(),
        };
        let mut labels = Labels::new(settings);
        let mut usage = Usage::default();
        let mut now = Instant(0);
        let mut last: BTreeMap<(TenantId, LinkId), Instant> = BTreeMap::new();
        for &link in &all {
            labels.subscribe(RED, link, now);
            labels.subscribe(BLUE, link, now);
        }
        for (pause, change) in changes.into_iter().chain([(1_000, Change::Remove { id: 99 })]) {
            now = now + Duration::from_millis(pause);
            let notices = labels.poll(&network, &usage, now);
            for Notice { tenant, link, label, .. } in notices {
                let before = last.insert((tenant, link), now);
                prop_assert!(before.is_none_or(|before| now - before >= Duration::from_millis(interval)));
                prop_assert_eq!(label, usage.label(&network, link, tenant));
            }
            let pick = |links: &[usize]| links.iter().map(|&place| all[place]).collect::<Vec<_>>();
            // Refused changes have no effect; the other property test checks this.
            let _ = match change {
                Change::Add { id, tenant, rate, links } => {
                    usage.add(&network, FlowId(id), flow(TenantId(tenant), rate, &pick(&links)))
                }
                Change::Remove { id } => usage.remove(FlowId(id)).map(drop),
                Change::Rate { id, rate } => usage.set_rate(&network, FlowId(id), megabits(rate)),
                Change::Reroute { id, links } => {
                    usage.reroute(&network, FlowId(id), pick(&links).into())
                }
            };
            labels.touch(usage.take_touched(), now);
        }
        labels.poll(&network, &usage, now + Duration::from_secs(1));
        prop_assert_eq!(labels.next_due(), None);
        for (&link, tenant) in all.iter().flat_map(|link| [(link, RED), (link, BLUE)]) {
            let (sent, label) = (labels.last_sent(tenant, link).unwrap(), usage.label(&network, link, tenant));
            let off = sent.max(label).saturating_sub(sent.min(label));
            prop_assert!(off < megabits(hysteresis), "{} is sent as {}", label, sent);
        }
    }

    #[test]
    fn a_blurred_label_stays_near_the_true_label_and_within_the_capacity(
        label in 0_u64..=10_000, step in 0_u64..4_000, noise in 0_u64..4_000, seed: [u8; 16],
    ) {
        let (_, links) = chain();
        let bits = Bandwidth::from_bits_per_second;
        let privacy = Privacy { step: bits(step), noise: bits(noise), seed, ..Privacy::default() };
        let seen = privacy.blur(RED, links[0], bits(label), bits(10_000)).bits_per_second();
        prop_assert!(seen <= 10_000 && seen.is_multiple_of(step.max(1)));
        prop_assert!(seen <= label + noise && seen + noise + 2 * step.max(1) > label);
        let again = privacy.blur(RED, links[0], bits(label), bits(10_000)).bits_per_second();
        prop_assert_eq!(seen, again);
    }
}

#[test]
fn invalid_flows_are_refused_and_leave_the_usage_unchanged() {
    let (mut network, all) = chain();
    let mut usage = Usage::default();
    let most = Bandwidth::from_bits_per_second(u64::MAX);
    usage.add(&network, FlowId(1), flow(RED, 3, &all)).unwrap();
    let gone = all[2];
    network.unplug(common_port(&network, gone)).unwrap();
    let cases = [
        (FlowId(1), flow(RED, 1, &[]), Error::DuplicateId(1)),
        (FlowId(2), flow(RED, 1, &[all[0], all[1], all[0]]), Error::RepeatedLink(all[0])),
        (FlowId(2), flow(RED, 1, &[all[0], gone]), Error::UnknownLink(gone)),
        (FlowId(2), Flow { rate: most, ..flow(BLUE, 0, &[all[1], all[0]]) }, Error::Overflow),
    ];
    for (id, flow, error) in cases {
        assert_eq!(usage.add(&network, id, flow), Err(error));
        assert!(all.iter().all(|&link| usage.total(link) == megabits(3)), "{error}");
    }
    // Flows on a removed link count until they are moved or removed.
    assert_eq!(usage.label(&network, gone, BLUE), Bandwidth::ZERO);
    assert_eq!(usage.set_rate(&network, FlowId(1), megabits(4)), Err(Error::UnknownLink(gone)));
    usage.reroute(&network, FlowId(1), all[..2].into()).unwrap();
    assert_eq!(usage.total(gone), Bandwidth::ZERO);
    assert_eq!(usage.remove(FlowId(2)), Err(Error::UnknownId(2)));
}

fn common_port(network: &Network, link: LinkId) -> fabric::PortId {
    match network.link(link).from {
        fabric::End::Switch { port, .. } | fabric::End::Hosts(port) => port,
    }
}

#[test]
fn labels_are_still_sent_after_a_clock_jump() {
    let (network, all) = chain();
    let mut usage = Usage::default();
    let mut labels = Labels::new(Settings::default());
    labels.subscribe(RED, all[0], Instant(u64::MAX / 2));
    assert_eq!(labels.poll(&network, &usage, Instant(u64::MAX / 2)).len(), 1);
    usage.add(&network, FlowId(1), flow(BLUE, 5, &all)).unwrap();
    labels.touch(usage.take_touched(), Instant(1_000));
    let notices = labels.poll(&network, &usage, Instant(1_000));
    assert_eq!(notices.iter().map(|it| it.label).collect::<Vec<_>>(), [megabits(5)]);
}

/// The error of an observer who estimates a neighbour's load as capacity − label: root mean square, in Mbit/s, over all
/// loads of a link in steps of 0.1. The observer averages a thousand labels for each load.
fn inference_error(privacy: &Privacy) -> f64 {
    let (_, all) = chain();
    let capacity = megabits(10);
    let mut squares = 0.0;
    let loads: Vec<u64> = (0..=100).collect();
    for load in &loads {
        let label = capacity.saturating_sub(Bandwidth::from_kilobits_per_second(load * 100));
        let seen = |_| privacy.blur(RED, all[0], label, capacity).bits_per_second() as f64 / 1e6;
        let mean = (0..1_000).map(seen).sum::<f64>() / 1_000.0;
        squares += (10.0 - mean - *load as f64 / 10.0).powi(2);
    }
    (squares / loads.len() as f64).sqrt()
}

#[test]
fn privacy_settings_hide_the_exact_load_of_another_tenant() {
    let seed = *b"an operator's...";
    let (none, some) = (Bandwidth::ZERO, megabits(2));
    let exact = inference_error(&Privacy::default());
    let stepped = inference_error(&Privacy { step: some, noise: none, seed, ..Privacy::default() });
    let noisy = inference_error(&Privacy { step: none, noise: some, seed, ..Privacy::default() });
    let both = inference_error(&Privacy { step: some, noise: some, seed, ..Privacy::default() });
    println!(
        "error of an observer, Mbit/s: {exact:.2} exact, {stepped:.2} stepped, {noisy:.2} noisy, {both:.2} both"
    );
    assert!(exact < 1e-9, "an exact label is the neighbour's load");
    // A step of s hides a value that is uniformly spread over s: the error is s/√12 about the mean and s/√3 about the
    // lower end.
    assert!((1.0..1.4).contains(&stepped), "{stepped}");
    // Uniform noise of ±n has a deviation of n/√3, and a thousand labels do not average the noise away.
    assert!((0.8..1.4).contains(&noisy), "{noisy}");
    assert!(both > stepped.max(noisy) * 0.9, "{both}");
}

#[test]
fn each_tenant_gets_different_noise_on_the_same_label() {
    let (_, all) = chain();
    let privacy =
        Privacy { step: Bandwidth::ZERO, noise: megabits(2), seed: [3; 16], ..Privacy::default() };
    let seen = |tenant| privacy.blur(TenantId(tenant), all[0], megabits(5), megabits(10));
    let different: std::collections::BTreeSet<_> = (0..20).map(seen).collect();
    assert!(different.len() > 15, "each tenant has noise of its own");
}

/// Blue signals `bits` with its load, each bit for `length`: 8 of 10 Mbit/s for 1, and no load for 0. Returns the
/// labels that red gets during this time, with their times.
fn overheard(privacy: &Privacy, bits: &[bool], length: Duration) -> Vec<(Instant, Notice)> {
    let (network, all) = chain();
    let settings = Settings { privacy: privacy.clone(), ..Settings::default() };
    let (mut labels, mut usage) = (Labels::new(settings), Usage::default());
    let mut heard = Vec::new();
    labels.subscribe(RED, all[0], Instant(0));
    usage.add(&network, FlowId(1), flow(BLUE, 0, &all[..1])).unwrap();
    for (number, bit) in bits.iter().enumerate() {
        let now = Instant(0) + length * number as u32;
        usage.set_rate(&network, FlowId(1), megabits(if *bit { 8 } else { 0 })).unwrap();
        labels.touch(usage.take_touched(), now);
        let mut poll = now;
        while poll < now + length {
            heard.extend(labels.poll(&network, &usage, poll).into_iter().map(|one| (poll, one)));
            poll = labels.next_due().unwrap_or(now + length);
        }
    }
    heard
}

/// Bits per second that red reads if blue signals at this rate and red reads the label at the end of each bit: the
/// capacity of a symmetric channel with the measured error rate.
fn leak(privacy: &Privacy, rate: f64) -> f64 {
    let length = Duration::from_nanos((1e9 / rate) as u64);
    let mut state = 7_u64;
    let bits: Vec<bool> = (0..2_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 63 == 1
        })
        .collect();
    let heard = overheard(privacy, &bits, length);
    let read = |number: usize| {
        let end = Instant(0) + length * (number as u32 + 1);
        let last = heard.iter().rev().find(|(at, _)| *at < end).map(|(_, notice)| notice.label);
        last.is_some_and(|label| label < megabits(6))
    };
    let wrong = (0..bits.len()).filter(|&number| read(number) != bits[number]).count();
    let error = (wrong as f64 / bits.len() as f64).clamp(1e-9, 1.0 - 1e-9);
    rate * (1.0 + error * error.log2() + (1.0 - error) * (1.0 - error).log2())
}

/// docs/labels.md has the printed values.
#[test]
fn held_labels_limit_the_covert_channel_between_tenants_to_the_stated_rate() {
    let (step, noise, seed) = (megabits(5), megabits(1), *b"an operator's...");
    let stepped = Privacy { step: megabits(2), noise: megabits(2), seed, ..Privacy::default() };
    let held = Privacy { step, noise, seed, hold: Duration::from_secs(30) };
    let best = |privacy: &Privacy| {
        let rates = [4.0, 1.0, 0.2, 0.1, 0.05, 0.02, 0.01];
        rates.map(|rate| leak(privacy, rate)).into_iter().fold(0.0, f64::max)
    };
    let leaks = [&Privacy::default(), &stepped, &held].map(best);
    let [exact, blurred, bounded] = leaks;
    println!("bit/s: {exact:.3} exact, {blurred:.3} with step and noise, {bounded:.4} held");
    assert!(exact > 3.9 && blurred > 3.9, "neither step nor noise hides signals: {leaks:?}");
    // Three labels are possible, and one label is sent in 30 s.
    assert!(bounded > 0.0 && bounded < 3.0_f64.log2() / 30.0, "{leaks:?}");
}

#[test]
fn held_labels_change_only_at_random_instants_per_tenant() {
    let (_, all) = chain();
    let hold = Duration::from_secs(30);
    let privacy = Privacy { hold, seed: [5; 16], ..Privacy::default() };
    let bits: Vec<bool> = (0..5_000).map(|number| number % 3 == 0).collect();
    let heard = overheard(&privacy, &bits, Duration::from_millis(730));
    assert!(heard.len() > 20, "{}", heard.len());
    for (at, notice) in &heard[1..] {
        assert_eq!(privacy.next_look(RED, all[0], *at), *at, "{notice:?}");
        let bit = bits[(at.0 / 730_000_000) as usize];
        assert_eq!(notice.label, megabits(if bit { 2 } else { 10 }));
    }
    let looks = |tenant| privacy.next_look(tenant, all[0], Instant(0) + hold * 9);
    assert_ne!(looks(RED), looks(BLUE));
}
