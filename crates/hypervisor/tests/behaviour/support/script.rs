//! Scenarios as text, one step a line.
//!
//! ```text
//! red> 7 flow add match=in_port=1 actions=output:2     red's controller sends, with xid 7
//! red< 7 ERROR OFPFMFC_EPERM of type 14 xid 7          the next message that the controller has received
//! red2> …                                              another controller of red, connected when first named
//! wire> 1 10.1.0.1>10.1.0.2                            a packet arrives at port 1
//! wire< 2 3                                            the packet has left by these ports (empty: by no port)
//! left 2                                               the ports by which PACKET_OUTs have sent packets since
//! switch= prio=5 in_port=1; …                          the entries on the switch, without the hypervisor's own
//! switch> 0102000800000005                             the switch sends these bytes
//! sent 3                                               the types of the messages that the switch has then received
//! counted 1                                            the number of messages of the switch without a request
//! wait 30ms                                            time passes
//! port down 2 | port up 2 | port add 5 | port remove 2 something happens to a port
//! policy                                               the lines up to `end` are the new policy
//! ```
//! A line that begins with `[1.0]` or `[1.3]` is for that version only. The test fails if at the end a controller has
//! received a message that the text does not name.

use super::{Seat, Setup, VERSIONS, World, packet, policy};
use openflow::Version;

/// Plays a scenario on both versions.
pub fn both(policy: &str, script: &str) {
    for version in VERSIONS {
        play_on(version, policy, script);
    }
}

/// Plays a scenario on one version.
pub fn play_on(version: Version, policy: &str, script: &str) {
    play_with(Setup::new(version, policy), script);
}

/// Plays a scenario in a world with this setup. Gives the world after the scenario.
pub fn play_with(setup: Setup, script: &str) -> World {
    let mut world = World::new(setup);
    play(&mut world, script);
    world
}

/// The lines of a scenario for one version, and the lines that have been played.
pub struct Lines<'a> {
    rest: std::str::Lines<'a>,
    mine: &'static str,
    done: String,
}

impl<'a> Lines<'a> {
    pub fn new(version: Version, script: &'a str) -> Lines<'a> {
        let mine = if version == Version::V1_0 { "[1.0]" } else { "[1.3]" };
        Lines { rest: script.lines(), mine, done: format!("{mine}\n") }
    }

    /// The text that a failure shows: the version, and the lines that have been played.
    pub fn done(&self) -> &str {
        &self.done
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let mine = |line: &'a str| match line.trim() {
            "" => None,
            line if line.starts_with('[') => line.strip_prefix(self.mine).map(str::trim_start),
            line => Some(line),
        };
        let line = self.rest.find_map(mine)?;
        self.done.extend([line, "\n"]);
        Some(line)
    }
}

/// Plays a scenario in an existing world.
pub fn play(world: &mut World, script: &str) {
    let mut seats: Vec<(String, Seat)> = Vec::new();
    let mut left = Vec::new();
    let mut lines = Lines::new(world.version, script);
    while let Some(line) = lines.next() {
        let (who, what) = line.split_once(' ').unwrap_or((line, ""));
        match who {
            "wire>" => {
                let (port, name) = what.split_once(' ').unwrap();
                left = world.packet(port.parse().unwrap(), &packet(name));
                world.left.clear();
            }
            "wire<" => {
                assert_eq!(joined(&left), what, "{}", lines.done());
            }
            "left" => {
                let mut ports: Vec<u32> = world.left.drain(..).map(|left| left.port).collect();
                ports.sort_unstable();
                assert_eq!(joined(&ports), what, "{}", lines.done());
            }
            "switch>" => {
                world.south.clear();
                world.switch_says(&packet(&format!("hex:{what}")));
            }
            "sent" => {
                assert_eq!(joined(&world.south_types()), what, "{}", lines.done());
            }
            "counted" => {
                let unexpected = world.core.counters().unexpected.to_string();
                assert_eq!(unexpected, what, "{}", lines.done());
            }
            "wait" => world.advance(duration(what)),
            "port" => happen(world, what),
            "switch=" => {
                // The text has no table, because the table differs between the versions.
                let flows: Vec<String> = world
                    .tenant_flows()
                    .iter()
                    .map(|flow| flow.split_once(' ').unwrap().1.trim_end().to_owned())
                    .collect();
                assert_eq!(flows.join("; "), what, "{}", lines.done());
            }
            "count=" => {
                assert_eq!(world.tenant_flows().len().to_string(), what, "{}", lines.done());
            }
            "policy" => {
                let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "end").collect();
                world.set_policy(policy(&text.join("\n")));
            }
            _ => {
                let name = &who[..who.len() - 1];
                let seat = match seats.iter().find(|(known, _)| known == name) {
                    Some((_, seat)) => *seat,
                    None => {
                        let tenant = name.trim_end_matches(|c: char| c.is_ascii_digit());
                        let seat = world.connect(tenant);
                        seats.push((name.to_owned(), seat));
                        seat
                    }
                };
                if who.ends_with('>') {
                    if !what.is_empty() {
                        let (xid, words) = what.split_once(' ').unwrap();
                        world.say(seat, xid.parse().unwrap(), words);
                    }
                } else {
                    let got = world.controllers[seat.0].inbox.pop_front();
                    let got = got.map(|(_, frame)| super::describe(&frame)).unwrap_or_default();
                    assert_eq!(got, what, "{}", lines.done());
                }
            }
        }
    }
    for (name, seat) in &seats {
        assert_eq!(world.heard(*seat), [""; 0], "{name} heard more\n{}", lines.done());
    }
}

fn joined(numbers: &[impl ToString]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn duration(text: &str) -> u64 {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_alphabetic()).unwrap());
    let unit = match unit {
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        other => panic!("no unit: {other}"),
    };
    number.parse::<u64>().unwrap() * unit
}

pub fn happen(world: &mut World, what: &str) {
    let (kind, number) = what.split_once(' ').unwrap();
    let number = number.parse().unwrap();
    let mut out = Vec::new();
    let now = world.now;
    let switch = world.switch.switch_mut();
    match kind {
        "down" => switch.set_port_up(number, false, &mut out),
        "up" => switch.set_port_up(number, true, &mut out),
        "add" => switch.add_port(now, emulate::PortConfig::new(number), &mut out),
        "remove" => switch.remove_port(number, &mut out),
        other => panic!("ports cannot {other}"),
    }
    world.switch_says(&out);
}
