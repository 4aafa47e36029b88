//! A trace in words, for an operator or for a tenant.

use flowspace::{FlowText, Match};
use hypervisor::trace::{Claim, Doubt, Output, Owner, Step, To};
use openflow::v13::GroupType;

use super::document::{Hop, Trace, TraceOutput, TraceStep};
use super::walk::{Journey, Onward, Visited};
use crate::config::Config;
use crate::dpid::Dpid;

/// The columns of a terminal.
const WIDTH: usize = 80;

/// The view of the reader of a trace: an operator, or a tenant.
pub(super) struct View<'a> {
    /// The tenant, which sees only its own entries and ports, and no rules, switches or ports of others.
    pub(super) tenant: Option<&'a str>,
    pub(super) config: &'a Config,
}

impl View<'_> {
    pub(super) fn describe(&self, flow: &Match, journey: &Journey) -> Trace {
        let hops: Vec<Hop> = journey.hops.iter().map(|visited| self.hop(visited)).collect();
        let mut ends: Vec<String> = Vec::new();
        for (hop, visited) in hops.iter().zip(&journey.hops) {
            let place = hop.switch.clone().or_else(|| seen_as(&visited.passed.passage.owner));
            let place = place.map(|place| format!("at {place}: ")).unwrap_or_default();
            for output in hop.outputs.iter().filter(|output| output.next.is_none()) {
                let end = format!("{place}{}", output.text);
                if !ends.contains(&end) {
                    ends.push(end);
                }
            }
            if hop.outputs.is_empty() {
                ends.push(format!("{place}{}", hop.whose));
            }
        }
        if journey.is_cut {
            ends.push(format!("not followed beyond {} switches", hops.len()));
        }
        let mut trace = Trace { flow: flow.to_string(), hops, ends, text: Vec::new() };
        trace.text = lines(&trace);
        trace
    }

    fn hop(&self, visited: &Visited) -> Hop {
        let passed = &visited.passed;
        let passage = &passed.passage;
        let is_own = self.tenant.is_none_or(|tenant| passed.tenant.as_deref() == Some(tenant));
        // A tenant does not see the physical switches below a network; a slice is on the physical switches themselves.
        let is_slice = matches!(passage.owner, Owner::Tenant(_, Claim::Flowspace { .. }));
        let is_shown = self.tenant.is_none() || is_own && is_slice;
        let listed = self.config.switches.iter().find(|listed| listed.dpid == passed.dpid);
        let outputs = passage.outputs.iter().zip(&visited.outputs);
        Hop {
            switch: is_shown.then(|| Dpid(passed.dpid).to_string()),
            name: listed.filter(|_| self.tenant.is_none()).and_then(|listed| listed.name.clone()),
            in_port: is_shown.then_some(passed.packet.in_port),
            openflow: passage.version.to_string(),
            tenant: passed.tenant.clone().filter(|_| is_own),
            whose: self.whose(&passage.owner, passed.tenant.as_deref(), is_own),
            steps: match is_own {
                true => passage.steps.iter().filter_map(|step| self.step(step)).collect(),
                false => Vec::new(),
            },
            outputs: outputs
                .map(|(output, onward)| self.output(output, *onward, is_shown))
                .collect(),
        }
    }

    fn whose(&self, owner: &Owner, tenant: Option<&str>, is_own: bool) -> String {
        match owner {
            Owner::Transit => {
                "passes along a link of a network, whatever tenants' entries say".into()
            }
            Owner::Nobody if self.tenant.is_some() => "not this tenant's".into(),
            Owner::Nobody => "nobody's: no flowspace entry and no port of a network has it".into(),
            Owner::Tenant(..) if !is_own => "not this tenant's".into(),
            Owner::Tenant(_, claim) => {
                let tenant = tenant.unwrap_or("a tenant that is gone");
                format!("{tenant}'s, by {}", claimed(claim))
            }
        }
    }

    fn step(&self, step: &Step) -> Option<TraceStep> {
        let plain = |text: String| Some(TraceStep { text, rule: None });
        match step {
            Step::Rule { rule, entry, is_ambiguous } => {
                let rule = written(rule);
                let entry = entry.as_deref().map(|entry| in_table(&written(entry)));
                if entry.is_none() && self.tenant.is_some() {
                    return None;
                }
                let also = match is_ambiguous {
                    true => " (or another of this priority: the switch chooses)",
                    false => "",
                };
                let text = format!("{}{also}", entry.as_deref().unwrap_or("Weir's own rule"));
                Some(TraceStep { text, rule: Some(rule).filter(|_| self.tenant.is_none()) })
            }
            Step::Uninstalled(entry) => plain(format!(
                "{}: has no rule on the switch for this packet",
                in_table(&written(entry))
            )),
            Step::Missed { tenants: Some(table), .. } => {
                plain(format!("table {table}: no entry takes it"))
            }
            Step::Missed { .. } if self.tenant.is_some() => None,
            Step::Missed { table, .. } => plain(format!("the switch's table {table}: no rule")),
            Step::Group { group, kind, buckets } => {
                let how = match *kind {
                    GroupType::SELECT => "one of, by the switch's choice",
                    GroupType::FF => "the first that is live of",
                    _ => "all of",
                };
                plain(format!("group {group}: {how} {buckets} buckets"))
            }
            Step::Meter(meter) => {
                plain(format!("meter {meter}: drops or changes it above the meter's rate"))
            }
            Step::Unknown => plain("an action whose effect only the switch knows".to_owned()),
        }
    }

    fn output(&self, output: &Output, onward: Onward, is_shown: bool) -> TraceOutput {
        let one_of = match output.if_ {
            Some(Doubt::Group(group)) => format!("one of group {group}'s ways: "),
            Some(Doubt::SetOnMiss) if output.to == To::Dropped => {
                "as the specification has it: ".to_owned()
            }
            Some(Doubt::SetOnMiss) => {
                "where a miss carries out the action set, as on Open vSwitch: ".to_owned()
            }
            None => String::new(),
        };
        let (text, port) = match output.to {
            To::Port { number, seen_as, is_up } => {
                let port = if is_shown { Some(number) } else { seen_as };
                let mut text = match port {
                    Some(port) => format!("leaves by port {}", port_name(port)),
                    None => "goes on along a link of the network".to_owned(),
                };
                if let Some(seen_as) = seen_as.filter(|_| is_shown) {
                    text += &format!(" (the tenant's port {})", port_name(seen_as));
                }
                if !is_up {
                    text += ", which is down or not there: lost";
                }
                (text, port)
            }
            To::Controllers { is_unwanted: true, .. } => {
                ("dropped: the port is configured to send no PACKET_IN".to_owned(), None)
            }
            To::Controllers { connected: 0, .. } => (
                "would go to the tenant's controllers; none is connected: dropped".to_owned(),
                None,
            ),
            To::Controllers { is_miss, .. } => {
                let why = if is_miss { " (no entry takes it)" } else { "" };
                (format!("goes to the tenant's controllers as PACKET_IN{why}"), None)
            }
            To::Weir => ("goes to Weir itself".to_owned(), None),
            To::Normal => ("NORMAL: the switch's own forwarding decides".to_owned(), None),
            To::Dropped => ("dropped".to_owned(), None),
            To::Expired => {
                ("its time to live is over: dropped, or reported by the switch".to_owned(), None)
            }
        };
        let (behind, next) = match onward {
            Onward::End => (String::new(), None),
            Onward::Hop(hop) => (format!(", to hop {hop}"), Some(hop)),
            Onward::Loop(hop) => (format!(", to hop {hop} again: a loop"), None),
            Onward::LinkDown => (", where the link is down: lost".to_owned(), None),
            Onward::Gone(dpid) if self.tenant.is_none() => {
                (format!(", to switch {}, which is not connected", Dpid(dpid.0)), None)
            }
            Onward::Gone(_) => (", to a switch that is not connected".to_owned(), None),
            Onward::Cut => (", and is not followed any further".to_owned(), None),
        };
        TraceOutput { text: format!("{one_of}{text}{behind}"), port, next }
    }
}

/// The port as the tenant of a network sees it.
fn seen_as(owner: &Owner) -> Option<String> {
    match owner {
        Owner::Tenant(_, Claim::Port { datapath, .. }) => Some(Dpid(*datapath).to_string()),
        _ => None,
    }
}

fn claimed(claim: &Claim) -> String {
    match claim {
        Claim::Flowspace { match_, priority } => {
            let match_ = match **match_ {
                Match::ANY => "\"\" (everything)".to_owned(),
                match_ => match_.to_string(),
            };
            format!("the flowspace entry {match_} with priority {priority}")
        }
        Claim::Port { datapath, port, is_link, is_shared } => {
            let how = match (is_link, is_shared) {
                (true, _) => "link at port",
                (_, true) => "host behind the shared port",
                _ => "port",
            };
            format!("the {how} {} of its switch {}", port_name(*port), Dpid(*datapath))
        }
    }
}

fn port_name(port: u32) -> String {
    // The text of a match has the names of reserved ports.
    let text = Match::exact(flowspace::Field::InPort, port.into()).to_string();
    text.strip_prefix("in_port=").unwrap_or(&text).to_owned()
}

fn written(flow_mod: &[u8]) -> String {
    FlowText::of_flow_mod(flow_mod).map_or_else(|| "unreadable".to_owned(), |it| it.to_string())
}

/// An entry's text with its table, also for the first table.
fn in_table(text: &str) -> String {
    let table = text.split(", ").find_map(|part| part.strip_prefix("table="));
    let rest = text.replacen(&format!("table={}, ", table.unwrap_or_default()), "", 1);
    format!("table {}: {rest}", table.unwrap_or("0"))
}

fn lines(trace: &Trace) -> Vec<String> {
    let mut lines = wrapped(0, &format!("flow {}", trace.flow));
    for (number, hop) in (1..).zip(&trace.hops) {
        let place = match (&hop.switch, &hop.name, hop.in_port) {
            (Some(switch), Some(name), Some(port)) => {
                format!("switch {switch} ({name}), port {}", port_name(port))
            }
            (Some(switch), _, Some(port)) => format!("switch {switch}, port {}", port_name(port)),
            _ => "in the network".to_owned(),
        };
        lines.extend(wrapped(0, &format!("{number}. {place}, OpenFlow {}", hop.openflow)));
        lines.extend(wrapped(3, &hop.whose));
        for step in &hop.steps {
            lines.extend(wrapped(3, &step.text));
            if let Some(rule) = &step.rule {
                lines.extend(wrapped(6, &format!("rule: {rule}")));
            }
        }
        for output in &hop.outputs {
            lines.extend(wrapped(3, &output.text));
        }
    }
    for end in &trace.ends {
        lines.extend(wrapped(0, &format!("end: {end}")));
    }
    lines
}

/// A text in lines that fit on a terminal, broken at blanks and commas; further lines are indented by two more.
pub fn wrapped(indent: usize, text: &str) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), " ".repeat(indent));
    let mut is_empty = true;
    for word in text.split_inclusive([' ', ',']) {
        if !is_empty && line.len() + word.trim_end().len() > WIDTH {
            lines.push(line.trim_end().to_owned());
            line = " ".repeat(indent + 2);
        }
        line += word;
        is_empty = false;
    }
    lines.push(line.trim_end().to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_trace_lines_are_wrapped_to_the_terminal_width() {
        let text = "priority=9,".repeat(12);
        let lines = wrapped(3, &text);
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{lines:?}");
        assert_eq!(lines.concat().replace(' ', ""), text);
        assert_eq!(wrapped(0, "short"), ["short"]);
    }

    #[test]
    fn an_entry_is_described_with_the_table_number_first() {
        assert_eq!(
            in_table("cookie=0x5, table=2, priority=9 actions=drop"),
            "table 2: cookie=0x5, priority=9 actions=drop"
        );
        assert_eq!(in_table("priority=9,ip actions=drop"), "table 0: priority=9,ip actions=drop");
    }

    #[test]
    fn reserved_ports_are_shown_by_name_and_other_ports_by_number() {
        assert_eq!([port_name(1), port_name(0xffff_fffe)], ["1", "LOCAL"]);
    }
}
