//! Scenarios of tenants with networks of their own, as text, one step a line.
//!
//! ```text
//! red@1> flow add match=in_port=1 actions=output:10   red's controller sends to red's switch 1, with xid 7
//! red@1> flow add actions=output:9 -> ERROR OFPBAC_…  the reply, with this xid and this type of message
//! red,blue@1,2> flow add actions=flood                each tenant sends to each of the switches
//! red@1> barrier ; echo                               one after the other, without waiting for replies
//! red@1< PORT_STATUS MODIFY 10                        the next message that the controller has received from switch 1
//! red@1:2> 10.0.0.1>10.0.0.2 -> red@3:1 blue@2:local  the host at port 2 of physical switch 1 sends; hosts receive
//! wire< red@3:1[10.0.0.9>10.0.0.2,dl_dst=…]           the next host that receives, and changed fields (empty: no host)
//! same                                                hosts or controllers have received something (also: -> same)
//! cut blue 1:11-3:11                                  of blue's links only these have no path (empty: all have one)
//! tags 3000                                           all links get tags from this number on
//! lose blue@1 2 | find blue@1 2                       a member of a big switch disconnects, and connects again
//! restart blue@1                                      a big switch is restarted
//! refuses 1 2 | refuses 1                             physical switch 1 refuses the second change from now on, or none
//! refuses 1 flows groups chains                       it refuses FLOW_MODs, GROUP_MODs, and groups that name groups
//! wait 5                                              seconds pass
//! note | as noted | not as noted 1                    saves the entries of all physical switches | all equal the saved
//!                                                     entries | those of physical switch 1 do not
//! groups 6 0 0                                        the numbers of groups on the physical switches
//! ```
//! Each step is also made in the tenant's reference network, and must have the same result there: the same packets at
//! the same hosts, and the same messages. After `only`, a step is made on the testbed alone. `[1.0]` and `[1.3]` begin
//! lines for one version. The text must name all packets and messages that hosts and controllers receive before the
//! next step.

use super::script::Lines;
use super::{LOCAL, Plan, Seen, Testbed, VERSIONS, changes, packet, request};
use emulate::Fault;

const TENANTS: [&str; 3] = ["red", "blue", "green"];
const UNASKED: [&str; 3] = ["PACKET_IN", "PORT_STATUS", "FLOW_REMOVED"];

/// Plays a scenario with these networks on switches of each version.
pub struct BothVersions(Vec<Plan>);

pub fn both_versions(plans: Vec<Plan>) -> BothVersions {
    BothVersions(plans)
}

impl BothVersions {
    /// Plays a scenario.
    #[track_caller]
    pub fn play(self, script: &str) {
        for version in VERSIONS {
            Testbed::new(version, self.0.clone()).play(script);
        }
    }
}

impl Testbed {
    /// Plays a scenario on this testbed, in its present state.
    #[track_caller]
    pub fn play(&mut self, script: &str) {
        let mut lines = Lines::new(self.version(1), script);
        let seen = Seen { received: self.take_received(), ..Seen::default() };
        let (sent, noted) = (Vec::new(), Default::default());
        let mut player = Player { testbed: self, seen, sent, noted, is_same: false };
        while let Some(line) = lines.next() {
            player.step(line, lines.done());
        }
        assert_eq!(player.seen, Seen::default(), "not named\n{}", lines.done());
    }
}

struct Player<'a> {
    testbed: &'a mut Testbed,
    /// The packets and messages that the text has not named yet.
    seen: Seen,
    /// The last packet that was sent.
    sent: Vec<u8>,
    noted: [Vec<String>; 3],
    /// Whether the last step was also made in the reference network.
    is_same: bool,
}

impl Player<'_> {
    #[track_caller]
    fn step(&mut self, line: &str, done: &str) {
        let (is_same, line) = line.strip_prefix("only ").map_or((true, line), |it| (false, it));
        let (who, what) = line.split_once(' ').unwrap_or((line, ""));
        let (first, second) = what.split_once(' ').unwrap_or((what, ""));
        match who {
            "wire<" => {
                let all = &mut self.seen.delivered;
                let count = if what.is_empty() { all.len() } else { what.split(' ').count() };
                let named = all.drain(..count.min(all.len()));
                let named: Vec<String> = named.map(|it| host(&self.sent, it)).collect();
                assert_eq!(named.join(" "), what, "{done}");
            }
            "same" => {
                let seen = std::mem::take(&mut self.seen);
                assert!(self.is_same && seen != Seen::default(), "nothing to compare\n{done}");
            }
            "cut" => {
                let links = second.split_whitespace().map(link).collect();
                let [seen, beside] = self.testbed.cut(tenant(first), links, 3000);
                self.take(seen, is_same.then_some(beside), done);
            }
            "tags" => {
                let seen = self.testbed.set_tags(what.parse().unwrap());
                self.take(seen, Some(Seen::default()), done);
            }
            "lose" | "find" | "restart" => {
                let (tenant, head) = seat(first);
                match who {
                    "lose" => self.testbed.lose(tenant, head, second.parse().unwrap()),
                    "find" => self.testbed.find(tenant, head, second.parse().unwrap()),
                    _ => self.testbed.restart_front(tenant, head),
                }
                self.seen.received = self.testbed.take_received();
            }
            "refuses" => {
                let faults = second.split_whitespace().map(|which| match which {
                    "flows" => Fault::RefuseFlowMods { every: 1 },
                    "groups" => Fault::RefuseGroupMods { every: 1 },
                    "chains" => Fault::RefuseChaining,
                    nth => Fault::RefuseOnce { nth: nth.parse().unwrap() },
                });
                let faults = faults.collect();
                self.testbed.plant(first.parse().unwrap(), faults);
            }
            "wait" => {
                self.testbed.wait(what.parse().unwrap());
                let received = self.testbed.take_received();
                let beside = is_same.then(|| self.testbed.all_messages_beside());
                self.take(Seen { received, ..Seen::default() }, beside, done);
            }
            "note" => self.noted = [1, 2, 3].map(|switch| self.testbed.entries(switch)),
            "as" => {
                let entries = [1, 2, 3].map(|switch| self.testbed.entries(switch));
                assert_eq!(entries, self.noted, "{done}");
            }
            "not" => {
                let switch = what.strip_prefix("as noted ").unwrap().parse().unwrap();
                let noted = &self.noted[switch as usize - 1];
                assert_ne!(&self.testbed.entries(switch), noted, "{done}");
            }
            "groups" => {
                let groups = [1, 2, 3].map(|switch| self.testbed.groups(switch).to_string());
                assert_eq!(groups.join(" "), what, "{done}");
            }
            _ if who.ends_with('<') => {
                let (tenant, switch) = seat(who.trim_end_matches('<'));
                let received = &mut self.seen.received;
                let next = received.iter().position(|it| (it.0, it.1) == (tenant, switch));
                let next = next.map(|at| received.remove(at).2).unwrap_or_default();
                assert_eq!(next, what, "{received:?}\n{done}");
            }
            _ => {
                let (names, switches) = who.strip_suffix('>').unwrap().split_once('@').unwrap();
                for name in names.split(',') {
                    for switch in switches.split(',') {
                        self.act(name, switch, what, is_same, done);
                    }
                }
            }
        }
    }

    /// A host or a controller sends.
    #[track_caller]
    fn act(&mut self, name: &str, at: &str, what: &str, is_same: bool, done: &str) {
        assert_eq!(self.seen, Seen::default(), "not named before\n{done}");
        let (what, answer) = what.split_once(" -> ").unwrap_or((what, ""));
        let (switch, port) = at.split_once(':').unwrap_or((at, ""));
        let (tenant, switch) = (tenant(name), switch.parse().unwrap());
        let (seen, beside) = if port.is_empty() {
            let data = what.split(' ').find_map(|word| word.strip_prefix("data="));
            self.sent = data.map(packet).unwrap_or_default();
            let all: Vec<&str> = what.split(" ; ").collect();
            let seen = self.testbed.said(tenant, switch, &all);
            let beside = |words: &&str| self.testbed.out_beside(tenant, switch, words);
            (seen, is_same.then(|| all.iter().map(beside).fold(Seen::default(), Seen::and)))
        } else {
            let port = if port == "local" { LOCAL } else { port.parse().unwrap() };
            self.sent = packet(what);
            let seen = self.testbed.send(tenant, switch, port, &self.sent);
            let beside = || self.testbed.send_beside(tenant, switch, port, &self.sent);
            (seen, is_same.then(beside))
        };
        self.take(seen, beside, done);
        let next = match answer {
            "" => return,
            "same" => answer.to_owned(),
            hosts if hosts.contains('@') => format!("wire< {hosts}"),
            message if UNASKED.iter().any(|it| message.starts_with(it)) => {
                format!("{name}@{at}< {message}")
            }
            error if error.starts_with("ERROR") => {
                let type_ = request(self.testbed.version(switch), 7, what)[1];
                format!("{name}@{at}< 7 {error} of type {type_} xid 7")
            }
            reply => format!("{name}@{at}< 7 {reply}"),
        };
        self.step(&next, done);
    }

    #[track_caller]
    fn take(&mut self, seen: Seen, beside: Option<Seen>, done: &str) {
        self.is_same = beside.is_some();
        if let Some(beside) = beside {
            assert_eq!(seen.clone().sorted(), beside.sorted(), "not as beside\n{done}");
        }
        assert!(!seen.endless, "{done}");
        self.seen = std::mem::take(&mut self.seen).and(seen);
        self.seen.delivered.sort();
    }
}

/// A host that has received a packet, and how the packet differs from the one that was sent.
fn host(sent: &[u8], (tenant, switch, port, frame): (usize, u64, u32, Vec<u8>)) -> String {
    let port = if port == LOCAL { "local".to_owned() } else { port.to_string() };
    let changes = changes(sent, &frame).join(",");
    let changes = if changes.is_empty() { changes } else { format!("[{changes}]") };
    format!("{}@{switch}:{port}{changes}", TENANTS[tenant])
}

fn tenant(name: &str) -> usize {
    TENANTS.iter().position(|it| *it == name).unwrap_or_else(|| panic!("no tenant: {name}"))
}

/// `red@1`
fn seat(at: &str) -> (usize, u64) {
    let (name, switch) = at.split_once('@').unwrap_or_else(|| panic!("no step: {at}"));
    (tenant(name), switch.parse().unwrap())
}

/// `1:11-3:11`
fn link(text: &str) -> [(u64, u32); 2] {
    let numbers: Vec<u32> = text.split([':', '-']).map(|it| it.parse().unwrap()).collect();
    let [a, at_a, b, at_b] = numbers[..] else { panic!("no link: {text}") };
    [(a.into(), at_a), (b.into(), at_b)]
}
