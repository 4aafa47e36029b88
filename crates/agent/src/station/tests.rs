//! Tests of a station on a machine that only stores its commands.

use super::*;
use sampling::control::Share;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

#[derive(Default)]
struct Commanded {
    interfaces: BTreeSet<String>,
    /// The pairs of a port and the destination of its filters.
    filters: BTreeSet<(String, String)>,
    receiving: BTreeSet<String>,
    /// The machine fails once at a line with this text.
    fail_at: Option<&'static str>,
}

#[derive(Clone, Default)]
struct Paper(Rc<RefCell<Commanded>>);

struct Reading(Paper, String);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.0.borrow_mut().receiving.remove(&self.1);
    }
}

impl Commanded {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if self.fail_at.is_some_and(|text| line.contains(text)) {
            self.fail_at = None;
            return Err(format!("no: {line}"));
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["link", "add", name, ..] => assert!(self.interfaces.insert(name.to_owned()), "{name}"),
            ["link", "delete", name] if !self.interfaces.remove(name) => return Err("none".into()),
            ["link", "delete" | "set", ..] => {}
            ["qdisc", "del", "dev", port, ..] => self.filters.retain(|(of, _)| of != port),
            ["qdisc", "add", ..] => {}
            ["filter", "add", "dev", port, .., to] => {
                assert!(self.interfaces.contains(to), "{line}");
                assert!(self.filters.insert((port.to_owned(), to.to_owned())), "{line}");
            }
            _ => panic!("{line}"),
        }
        Ok(())
    }
}

impl Machine for Paper {
    type Receiver = Reading;

    fn ip(&mut self, script: &str) -> Result<(), String> {
        script.lines().try_for_each(|line| self.0.borrow_mut().line(line))
    }

    fn tc(&mut self, script: &str) -> Result<(), String> {
        self.ip(script)
    }

    fn receive(&mut self, interface: &str, _: &Import) -> Result<Reading, String> {
        self.0.borrow_mut().receiving.insert(interface.to_owned());
        Ok(Reading(self.clone(), interface.to_owned()))
    }
}

fn station() -> (Station<Paper>, Paper) {
    let port = |name: &str, tenant| Port { name: name.to_owned(), tenant: Some(tenant) };
    let setup = Setup {
        index: 0,
        address: [192, 0, 2, 1].into(),
        peers: vec![(1, [192, 0, 2, 2].into()), (2, [192, 0, 2, 3].into())],
        ports: vec![port("vm0", 0), port("vm1", 1)],
        tenants: Vec::new(),
        collector: ([127, 0, 0, 1], 6343).into(),
        processing: Processing::default(),
    };
    let paper = Paper::default();
    (Station::new(setup, paper.clone()).unwrap(), paper)
}

fn plan(epoch: Epoch, sends: &[(usize, Option<usize>)], receives: &[usize]) -> Assignment {
    let share = |(to, tenant): &(usize, Option<usize>)| Share {
        to: *to,
        tenant: *tenant,
        rate: 0.25,
        one_in: 4.0,
    };
    let import = |from: &usize| Import { from: *from, one_in: vec![(None, 4.0)] };
    Assignment {
        epoch,
        generation: (epoch % 2) as u8,
        sends: sends.iter().map(share).collect(),
        receives: receives.iter().map(import).collect(),
    }
}

fn filters(paper: &Paper) -> Vec<String> {
    paper.0.borrow().filters.iter().map(|(port, to)| format!("{port}>{to}")).collect()
}

fn receiving(paper: &Paper) -> Vec<String> {
    paper.0.borrow().receiving.iter().cloned().collect()
}

#[test]
fn a_plan_is_prepared_committed_and_replaced() {
    let (mut station, paper) = station();
    station.prepare(&plan(1, &[(0, None), (2, None)], &[0, 1])).unwrap();
    assert_eq!(
        (filters(&paper).len(), receiving(&paper)),
        (0, vec!["weirc1".into(), "weiri1x1".into()])
    );
    station.step(Step::Commit(1)).unwrap();
    station.step(Step::Retire(1)).unwrap();
    assert_eq!(filters(&paper), ["vm0>weirh1", "vm0>weiro1x2", "vm1>weirh1", "vm1>weiro1x2"]);
    // The next plan separates tenants. The receivers of both plans exist until the step that retires the old plan.
    station.prepare(&plan(2, &[(1, Some(0)), (2, Some(1))], &[])).unwrap();
    station.step(Step::Commit(2)).unwrap();
    assert_eq!(filters(&paper), ["vm0>weiro0x1", "vm1>weiro0x2"]);
    assert_eq!(receiving(&paper).len(), 2);
    station.step(Step::Retire(2)).unwrap();
    assert_eq!(receiving(&paper).len(), 0);
    assert_eq!(paper.0.borrow().interfaces.iter().collect::<Vec<_>>(), ["weiro0x1", "weiro0x2"]);
    drop(station);
    assert!(paper.0.borrow().interfaces.is_empty() && filters(&paper).is_empty());
}

#[test]
fn restore_after_a_commit_or_a_failed_step_returns_to_the_previous_plan() {
    let (mut station, paper) = station();
    station.prepare(&plan(1, &[(1, None)], &[])).unwrap();
    station.step(Step::Commit(1)).unwrap();
    station.step(Step::Retire(1)).unwrap();
    let before = filters(&paper);
    // The plan is dropped, both with and without a commit before.
    for is_committed in [true, false] {
        station.prepare(&plan(2, &[(2, None)], &[1])).unwrap();
        if is_committed {
            station.step(Step::Commit(2)).unwrap();
            assert_ne!(filters(&paper), before);
        }
        station.step(Step::Restore(2)).unwrap();
        assert_eq!(filters(&paper), before);
        assert_eq!(receiving(&paper).len(), 1);
        station.step(Step::Drop(2)).unwrap();
        assert_eq!((filters(&paper), receiving(&paper).len()), (before.clone(), 0));
    }
    // A failed step changes nothing.
    for (fail_at, is_prepared) in [("weiri0x1", false), ("mirror dev weiro0x2", true)] {
        paper.0.borrow_mut().fail_at = Some(fail_at);
        let prepared = station.prepare(&plan(2, &[(2, None)], &[1]));
        assert_eq!(prepared.is_ok(), is_prepared);
        assert!(station.step(Step::Commit(2)).is_err());
        assert_eq!(filters(&paper), before);
        station.step(Step::Restore(2)).unwrap();
        station.step(Step::Drop(2)).unwrap();
        assert_eq!((filters(&paper), receiving(&paper).len()), (before.clone(), 0));
    }
    assert!(station.step(Step::Commit(7)).is_err());
    assert!(station.prepare(&plan(3, &[], &[])).is_err(), "its generation is in use");
}

#[test]
fn no_filter_sends_to_a_server_that_is_cut_off() {
    let (mut station, paper) = station();
    station.prepare(&plan(1, &[(0, None), (1, None), (2, None)], &[0])).unwrap();
    station.step(Step::Commit(1)).unwrap();
    station.prepare(&plan(2, &[(1, None), (2, None)], &[])).unwrap();
    station.cut_off(1).unwrap();
    assert_eq!(filters(&paper), ["vm0>weirh1", "vm0>weiro1x2", "vm1>weirh1", "vm1>weiro1x2"]);
    station.step(Step::Commit(2)).unwrap();
    assert_eq!(filters(&paper), ["vm0>weiro0x2", "vm1>weiro0x2"]);
    station.step(Step::Restore(2)).unwrap();
    assert_eq!(filters(&paper).iter().filter(|one| one.ends_with("x1")).count(), 0);
    assert!(station.is_sending());
    station.stop().unwrap();
    assert_eq!(filters(&paper).len(), 0);
    // After the stop, a commit of the prepared plan installs no filter.
    station.step(Step::Commit(2)).unwrap();
    assert_eq!(filters(&paper).len(), 0);
}
