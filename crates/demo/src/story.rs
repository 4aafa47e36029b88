//! Shows two tenants on one switch: the hosts that can reach each other, and the requests that a tenant may not send.

use crate::intruder::{Answer, Intruder, Rule, Session};
use crate::network::{self, ADDRESSES, Emulated, Network, Real};
use crate::peers::Peer;
use crate::screen::Screen;
use crate::settings::Settings;
use lab::Interrupt;
use lab::programs::Weir;
use openflow::Version;
use std::path::Path;
use std::time::{Duration, Instant};

/// The hosts of each tenant, counted from 0.
const RED: [usize; 2] = [0, 1];
const BLUE: [usize; 2] = [2, 3];

/// The longest time for which a ping of one tenant is repeated. In this time controllers start, connect and learn.
const PATIENCE: Duration = Duration::from_secs(15);
/// The longest wait for the answer to a single ping.
const ATTEMPT: Duration = Duration::from_millis(700);
/// The time without an answer after which a ping counts as unanswered.
const SILENCE: Duration = Duration::from_millis(400);

/// Runs the story. All processes and sockets of the story end before this function returns.
pub(crate) fn run(
    screen: &mut Screen,
    interrupt: &Interrupt,
    settings: &Settings,
    work: &Path,
) -> anyhow::Result<()> {
    let version = settings.version;
    let mut network = choose_network(screen, settings)?;
    interrupt.check()?;
    let red = Peer::os_ken(version, work)?;
    let blue = Peer::testcontroller(version, work)?;
    let intruder = Intruder::listen(version)?;
    let config = format!(
        "[listen]\nopenflow = \"{}:0\"\napi = \"off\"\n\n\
         [reconnect]\nmin = \"100ms\"\nmax = \"500ms\"\n\n{}{}",
        network.controller_host(),
        tenant("red", &[red.address, intruder.address()], RED),
        tenant("blue", &[blue.address], BLUE),
    );
    let weir = Weir::serve(&config, work)?;
    screen.line(&format!("The switch: {}; {}.", network.name(), settings.version_name()))?;
    introduce(screen, "red ", RED, &red.name)?;
    introduce(screen, "blue", BLUE, &blue.name)?;
    screen.line(&format!("Between them: weir serve, process {}.", weir.id()))?;
    network.connect(weir.address())?;
    let mut intruder = intruder.accept()?;

    let mut scene = Scene { screen, interrupt, network: network.as_mut() };
    scene.inside()?;
    scene.across()?;
    scene.refusals(&mut intruder)?;
    scene.confinement(&mut intruder, version == Version::V1_0 && red.is_exact)
}

fn choose_network(screen: &mut Screen, settings: &Settings) -> anyhow::Result<Box<dyn Network>> {
    let version = settings.version;
    if settings.emulated {
        return Ok(Box::new(Emulated::new(version)));
    }
    let missing = network::missing();
    if missing.is_empty() {
        return Ok(Box::new(Real::up(version)?));
    }
    screen.line("Open vSwitch cannot be used here, so the switch is emulated:")?;
    for one in missing {
        screen.line(&format!("  {one}"))?;
    }
    screen.blank()?;
    Ok(Box::new(Emulated::new(version)))
}

fn tenant(name: &str, controllers: &[std::net::SocketAddr], hosts: [usize; 2]) -> String {
    let controllers: Vec<String> =
        controllers.iter().map(|address| format!("\"tcp:{address}\"")).collect();
    let entries: String = hosts
        .iter()
        .map(|host| format!("[[tenants.flowspace]]\nmatch = \"in_port={}\"\n", host + 1))
        .collect();
    format!(
        "[[tenants]]\nname = \"{name}\"\ncontrollers = [{}]\n{entries}\n",
        controllers.join(", ")
    )
}

fn introduce(
    screen: &mut Screen,
    tenant: &str,
    hosts: [usize; 2],
    controller: &str,
) -> anyhow::Result<()> {
    let [first, second] = hosts;
    screen.line(&format!("{tenant}: {} and {};", place(first), place(second)))?;
    Ok(screen.quote(&format!("its controller: {controller}."))?)
}

/// The address of a host, and its port.
fn place(host: usize) -> String {
    format!("{} at port {}", address(host), host + 1)
}

fn address(host: usize) -> String {
    ADDRESSES.get(host).map(ToString::to_string).unwrap_or_default()
}

/// The parts that each act of the story needs.
struct Scene<'a> {
    screen: &'a mut Screen,
    interrupt: &'a Interrupt,
    network: &'a mut dyn Network,
}

impl Scene<'_> {
    fn inside(&mut self) -> anyhow::Result<()> {
        self.screen.heading("Hosts of one tenant reach each other, by their own controller:")?;
        for [a, b] in [RED, BLUE] {
            self.reaches(a, b, PATIENCE)?;
            self.reaches(b, a, PATIENCE)?;
        }
        Ok(())
    }

    fn across(&mut self) -> anyhow::Result<()> {
        self.screen.heading("Hosts of different tenants do not:")?;
        for (from, to) in [(0, 2), (1, 3), (2, 1), (3, 0)] {
            self.interrupt.check()?;
            let answer = self.network.ping(from, to, SILENCE)?;
            let text = self.ping_line(from, to, answer);
            self.screen.verdict(answer.is_none(), &text)?;
        }
        Ok(())
    }

    fn refusals(&mut self, intruder: &mut Session) -> anyhow::Result<()> {
        self.screen.heading("A tenant cannot touch the other's traffic. Red asks the switch:")?;
        let theft = Rule { delete: false, in_port: Some(3), output: Some(1) };
        self.screen
            .line("    FLOW_MOD in_port=3 actions=output:1  (take what blue's host sends)")?;
        self.refused_or_harmless(intruder, theft)?;
        let intrusion = Rule { delete: false, in_port: Some(1), output: Some(3) };
        self.screen.line("    FLOW_MOD in_port=1 actions=output:3  (send to blue's host)")?;
        self.refused(&intruder.ask(intrusion)?)?;
        let [first, second] = BLUE;
        self.reaches(first, second, ATTEMPT * 3)
    }

    /// Checks that a rule is refused or has no effect. On OpenFlow 1.0, the intersection of the rule and the slice is
    /// empty, so the rule is refused. On 1.3, tenants' rules match a metadata value that table 0 gives only to the
    /// tenant's own packets. So the rule may be installed, and matches no packet.
    fn refused_or_harmless(&mut self, intruder: &mut Session, theft: Rule) -> anyhow::Result<()> {
        let before = self.network.rules()?;
        let answer = intruder.ask(theft)?;
        let after = self.network.rules()?;
        if answer.error.is_some() {
            self.refused(&answer)?;
            let text = format!("the switch has the same {} rules as before", before.len());
            return Ok(self.screen.verdict(sorted(before) == sorted(after), &text)?);
        }
        let new: Vec<String> = after.into_iter().filter(|rule| !before.contains(rule)).collect();
        let harmless = !new.is_empty() && new.iter().all(|rule| rule.contains("metadata=0x"));
        let text = "harmless: it stands behind red's metadata, which blue's packets lack:";
        self.screen.verdict(harmless, text)?;
        Ok(new.iter().try_for_each(|rule| self.screen.quote(rule))?)
    }

    fn refused(&mut self, answer: &Answer) -> anyhow::Result<()> {
        let Answer { error, xid, is_faithful } = answer;
        let text = match error {
            None => format!("xid {xid}: ACCEPTED"),
            Some(name) if *is_faithful => {
                format!("refused: ERROR {name}, with red's xid {xid} and red's bytes")
            }
            Some(name) => format!("refused: ERROR {name}, but not with what red sent"),
        };
        Ok(self.screen.verdict(error.is_some() && *is_faithful, &text)?)
    }

    /// Checks that a rule that matches everything is limited to red's slice. If red's rules are above every priority,
    /// these rules are deleted first.
    fn confinement(&mut self, intruder: &mut Session, outranks: bool) -> anyhow::Result<()> {
        self.screen
            .heading("What is more than its own shrinks to its own. Red asks the switch:")?;
        if outranks {
            self.screen.line("    FLOW_MOD delete, match everything  (rules without wildcards")?;
            self.screen
                .line("    outrank every priority on OpenFlow 1.0, so red's have to go first)")?;
            intruder.ask(Rule { delete: true, in_port: None, output: None })?;
        }
        self.screen.line("    FLOW_MOD priority=40000, match everything, actions=drop")?;
        let before = self.network.rules()?;
        let answer = intruder.ask(Rule { delete: false, in_port: None, output: None })?;
        let accepted = answer.error.is_none();
        self.screen.verdict(accepted, "accepted; what reached the switch:")?;
        let after = self.network.rules()?;
        for rule in after.iter().filter(|rule| !before.contains(rule)) {
            self.screen.quote(rule)?;
        }
        let [first, second] = RED;
        self.falls_silent(first, second, ATTEMPT * 3)?;
        let [first, second] = BLUE;
        self.reaches(first, second, ATTEMPT * 3)?;
        self.screen.line("    FLOW_MOD delete, match everything")?;
        intruder.ask(Rule { delete: true, in_port: None, output: None })?;
        self.reaches(first, second, ATTEMPT * 3)
    }

    /// Checks that one of several pings gets an answer.
    fn reaches(&mut self, from: usize, to: usize, patience: Duration) -> anyhow::Result<()> {
        self.pings_until(from, to, (ATTEMPT, patience), |answer| answer.is_some())
    }

    /// Checks that one of several pings gets no answer. Open vSwitch needs a moment to apply a new rule to its cached
    /// flows.
    fn falls_silent(&mut self, from: usize, to: usize, patience: Duration) -> anyhow::Result<()> {
        self.pings_until(from, to, (SILENCE, patience), |answer| answer.is_none())
    }

    /// Repeats a ping. `each` is the longest wait for the answer to one ping.
    fn pings_until(
        &mut self,
        from: usize,
        to: usize,
        (each, patience): (Duration, Duration),
        is_wanted: impl Fn(&Option<Duration>) -> bool,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + patience;
        let answer = loop {
            self.interrupt.check()?;
            let answer = self.network.ping(from, to, each)?;
            if is_wanted(&answer) || Instant::now() > deadline {
                break answer;
            }
        };
        let text = self.ping_line(from, to, answer);
        Ok(self.screen.verdict(is_wanted(&answer), &text)?)
    }

    fn ping_line(&self, from: usize, to: usize, answer: Option<Duration>) -> String {
        let what = match answer {
            Some(time) => format!("an answer after {:.1} ms", time.as_secs_f64() * 1e3),
            None => "no answer".to_owned(),
        };
        format!("ping {} -> {}: {what}", address(from), address(to))
    }
}

fn sorted(mut rules: Vec<String>) -> Vec<String> {
    rules.sort();
    rules
}
