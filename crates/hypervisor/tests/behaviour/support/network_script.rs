//! Scenarios of tenants with networks of their own, as text, one step a line.
//!
//! ```text
//! red@1> flow add match=in_port=1 actions=output:10    red's controller sends to red's switch 1, with xid 7
//! red@1< 7 ERROR OFPBAC_EPERM of type 14 xid 7         the next message that the controller has received from there
//! red,blue@1,2> flow add actions=flood                 each tenant sends to each of the switches
//! red@1:2> 10.0.0.1>10.0.0.2 dl_dst=ff:ff:ff:ff:ff:ff  the host at port 2 of physical switch 1 sends a packet
//! wire< red@3:1 blue@2:local                           the packet has reached these hosts (nothing: none)
//! wire< red@3:1[10.0.0.9>10.0.0.2,dl_dst=…]            the packet has this name and address there, not those sent
//! same                                                 something was received, by hosts or controllers
//! cut blue 1:11-3:11                                   of blue's links only these have no path (nothing: all have one)
//! tags 3000                                            all links get tags from this number on
//! lose blue@1 2 | find blue@1 2                        a member of a big switch is lost, and comes back
//! wait 5                                               seconds pass
//! note | as noted | not as noted 1                     the entries of physical switches: all, all, and one of them
//! groups 6 0 0                                         how many groups the physical switches have
//! ports blue@1 1 10 11                                 the ports of blue's switch 1 that are up
//! ```
//! Each step is also made in the tenant's reference network, and must have the same result there: the same packets at
//! the same hosts, and the same messages. After `only`, a step is made on the stage alone. `[1.0]` and `[1.3]` begin
//! lines for one version. What hosts and controllers receive must be named before the next step.

use super::script::Lines;
use super::{LOCAL, Plan, Seen, Stage, VERSIONS, packet};
use openflow::Version;

const TENANTS: [&str; 3] = ["red", "blue", "green"];

/// Plays a scenario on networks of both versions.
#[track_caller]
pub fn both_networks(plans: &[Plan], script: &str) {
    for version in VERSIONS {
        play_network(&mut Stage::new(version, plans.to_vec()), script);
    }
}

/// Goes on with a stage.
#[track_caller]
pub fn play_network(stage: &mut Stage, script: &str) {
    let seen = Seen { told: stage.take_told(), ..Seen::default() };
    let (noted, version) = (Vec::new(), stage.version(1));
    let mut player = Player { stage, seen, sent: Vec::new(), noted, is_same: false };
    let mut lines = Lines::new(version, script);
    while let Some(line) = lines.next() {
        player.step(line, lines.done());
    }
    assert_eq!(player.seen, Seen::default(), "not named\n{}", lines.done());
}

struct Player<'a> {
    stage: &'a mut Stage,
    /// What the text has yet to name.
    seen: Seen,
    /// The last packet that was sent.
    sent: Vec<u8>,
    noted: Vec<Vec<String>>,
    /// Whether the last step was also made in the reference network.
    is_same: bool,
}

impl Player<'_> {
    #[track_caller]
    fn step(&mut self, line: &str, done: &str) {
        let (is_same, line) = match line.strip_prefix("only ") {
            Some(line) => (false, line),
            None => (true, line),
        };
        let (who, what) = line.split_once(' ').unwrap_or((line, ""));
        if let Some(at) = who.strip_suffix('>') {
            let (names, switches) = at.split_once('@').unwrap();
            for tenant in names.split(',').map(tenant_of) {
                for switch in switches.split(',') {
                    assert_eq!(self.seen, Seen::default(), "not named before\n{done}");
                    let (seen, beside) = match switch.split_once(':') {
                        Some(host) => self.send(tenant, host, what, is_same),
                        None => self.say(tenant, switch.parse().unwrap(), what, is_same),
                    };
                    self.take(seen, beside, done);
                }
            }
            return;
        }
        match who {
            "wire<" => {
                let all = std::mem::take(&mut self.seen.delivered);
                let all = all.into_iter().map(|(tenant, switch, port, frame)| {
                    let port = if port == LOCAL { "local".to_owned() } else { port.to_string() };
                    let at = format!("{}@{switch}:{port}", TENANTS[tenant]);
                    at + &changes(&self.sent, &frame)
                });
                assert_eq!(all.collect::<Vec<_>>().join(" "), what, "{done}");
            }
            "same" => {
                let seen = std::mem::take(&mut self.seen);
                assert!(self.is_same && seen != Seen::default(), "nothing to compare\n{done}");
            }
            "cut" => {
                let (name, links) = what.split_once(' ').unwrap_or((what, ""));
                let links = links.split_whitespace().map(link_of).collect();
                let [seen, beside] = self.stage.cut(tenant_of(name), links, 2000);
                self.take(seen, is_same.then_some(beside), done);
            }
            "tags" => {
                let seen = self.stage.set_tags(what.parse().unwrap());
                self.take(seen, Some(Seen::default()), done);
            }
            "lose" | "find" => {
                let (at, member) = what.split_once(' ').unwrap();
                let ((tenant, head), member) = (switch_of(at), member.parse().unwrap());
                match who {
                    "lose" => self.stage.lose(tenant, head, member),
                    _ => self.stage.find(tenant, head, member),
                }
                self.seen.told = self.stage.take_told();
            }
            "wait" => {
                self.stage.wait(what.parse().unwrap());
                let told = self.stage.take_told();
                let beside = is_same.then(|| self.stage.all_told_beside());
                self.take(Seen { told, ..Seen::default() }, beside, done);
            }
            "note" => self.noted = self.entries(),
            "as" => assert_eq!(self.entries(), self.noted, "{done}"),
            "not" => {
                let at = what.strip_prefix("as noted ").unwrap().parse::<usize>().unwrap() - 1;
                assert_ne!(self.entries()[at], self.noted[at], "{done}");
            }
            "groups" => {
                let groups = [1, 2, 3].map(|switch| self.stage.groups(switch).to_string());
                assert_eq!(groups.join(" "), what, "{done}");
            }
            "ports" => {
                let (at, ports) = what.split_once(' ').unwrap();
                let (tenant, switch) = switch_of(at);
                let up = self.stage.ports_up(tenant, switch);
                self.stage.take_told();
                let up: Vec<String> = up.iter().map(u32::to_string).collect();
                assert_eq!(up.join(" "), ports, "{done}");
            }
            _ => {
                let (tenant, switch) = switch_of(who.strip_suffix('<').expect("no such step"));
                let told = &mut self.seen.told;
                let next = told.iter().position(|it| (it.0, it.1) == (tenant, switch));
                let next = next.map(|at| told.remove(at).2).unwrap_or_default();
                assert_eq!(next, what, "{told:?}\n{done}");
            }
        }
    }

    fn send(
        &mut self,
        tenant: usize,
        (switch, port): (&str, &str),
        what: &str,
        is_same: bool,
    ) -> (Seen, Option<Seen>) {
        let port = if port == "local" { LOCAL } else { port.parse().unwrap() };
        let (switch, frame) = (switch.parse().unwrap(), frame_of(what));
        let seen = self.stage.send(tenant, switch, port, &frame);
        let beside = is_same.then(|| self.stage.send_beside(tenant, switch, port, &frame));
        self.sent = frame;
        (seen, beside)
    }

    fn say(
        &mut self,
        tenant: usize,
        switch: u64,
        words: &str,
        is_same: bool,
    ) -> (Seen, Option<Seen>) {
        let data = words.split(' ').find_map(|word| word.strip_prefix("data="));
        self.sent = data.map(packet).unwrap_or_default();
        let seen = self.stage.said(tenant, switch, words);
        let beside = is_same.then(|| self.stage.out_beside(tenant, switch, words));
        (seen, beside)
    }

    #[track_caller]
    fn take(&mut self, seen: Seen, beside: Option<Seen>, done: &str) {
        self.is_same = beside.is_some();
        if let Some(beside) = beside {
            assert_eq!(seen.clone().sorted(), beside.sorted(), "not as beside\n{done}");
        }
        assert!(!seen.endless, "{done}");
        self.seen.delivered.extend(seen.delivered);
        self.seen.delivered.sort();
        self.seen.told.extend(seen.told);
    }

    fn entries(&self) -> Vec<Vec<String>> {
        [1, 2, 3].map(|switch| self.stage.entries(switch)).to_vec()
    }
}

fn tenant_of(name: &str) -> usize {
    TENANTS.iter().position(|it| *it == name).unwrap_or_else(|| panic!("no tenant: {name}"))
}

/// `red@1`
fn switch_of(at: &str) -> (usize, u64) {
    let (name, switch) = at.split_once('@').unwrap();
    (tenant_of(name), switch.parse().unwrap())
}

/// `1:11-3:11`
fn link_of(text: &str) -> [(u64, u32); 2] {
    let end = |text: &str| {
        let (switch, port) = text.split_once(':').unwrap();
        (switch.parse().unwrap(), port.parse().unwrap())
    };
    let (one, other) = text.split_once('-').unwrap();
    [end(one), end(other)]
}

/// `10.0.0.1>10.0.0.2 dl_src=… dl_dst=…`
fn frame_of(text: &str) -> Vec<u8> {
    let (name, addresses) = text.split_once(' ').unwrap_or((text, ""));
    let mut frame = packet(name);
    for word in addresses.split_whitespace() {
        let (field, address) = word.split_once('=').unwrap();
        let at = if field == "dl_dst" { 0 } else { 6 };
        let octets = address.split(':').map(|octet| u8::from_str_radix(octet, 16).unwrap());
        frame.splice(at..at + 6, octets);
    }
    frame
}

/// How a packet differs from the one that was sent.
fn changes(sent: &[u8], got: &[u8]) -> String {
    let mut all = Vec::new();
    if sent.get(12..) != got.get(12..) {
        all.push(super::name_of(got));
    }
    for (field, at) in [("dl_dst", 0..6), ("dl_src", 6..12)] {
        if sent.get(at.clone()) != got.get(at.clone()) {
            let octets: Vec<String> = got[at].iter().map(|it| format!("{it:02x}")).collect();
            all.push(format!("{field}={}", octets.join(":")));
        }
    }
    if all.is_empty() { String::new() } else { format!("[{}]", all.join(",")) }
}
