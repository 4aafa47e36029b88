//! Random networks, requests and packets of two tenants, and a comparison: the switches must forward each packet as the
//! tenants' own switches would.

use super::networks::both_say;
use super::*;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// How matches and packets name addresses.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// The probability that a match names an address.
    named: f64,
    /// Whether some addresses belong to no host of the tenant.
    strange: bool,
}

/// An address by its number: 0 to 2 are the tenants' hosts, 3 is in the hosts' block but no host has it, and 4 to 6 are
/// in other blocks.
pub fn address(whose: u8) -> &'static str {
    const ALL: [&str; 7] =
        ["10.0.0.0", "10.0.0.1", "10.0.0.2", "10.0.0.3", "172.16.5.1", "172.16.6.1", "192.0.2.1"];
    ALL[usize::from(whose)]
}

impl Names {
    /// Only addresses of hosts. A match names an address with the probability `named`.
    pub const fn of_hosts(named: f64) -> Names {
        Names { named, strange: false }
    }

    /// The address of one host, or a prefix: 10.0.0.0/31 has the first two hosts, 10.0.0.2/31 has the third host.
    fn in_matches(self) -> impl Strategy<Value = String> {
        let mut all: Vec<String> = (0..12).map(|host| address(host % 3).to_owned()).collect();
        all.extend(["10.0.0.0/31", "10.0.0.2/31", "10.0.0.0/24"].map(str::to_owned));
        if self.strange {
            all.extend((3..7).map(|whose| address(whose).to_owned()));
            all.extend(["172.16.5.0/30", "128.0.0.0/1", "0.0.0.0/1"].map(str::to_owned));
        }
        prop::sample::select(all)
    }

    /// The number of an address, see [`address`].
    fn in_packets(self) -> impl Strategy<Value = u8> {
        prop_oneof![8 => 0..3_u8, if self.strange { 2 } else { 0 } => 3..7_u8]
    }
}

/// A random match. Its ingress port is one of the virtual ports in `two_networks`, or LOCAL.
pub fn a_match(version: Version, names: Names) -> impl Strategy<Value = String> {
    let port = weighted(0.5, prop::sample::select(vec!["1", "2", "10", "11", "LOCAL"]));
    let source = weighted(names.named, names.in_matches());
    let destination = weighted(names.named.max(0.5), names.in_matches());
    let tags = match version {
        Version::V1_0 => vec![
            "dl_vlan=5",
            "dl_vlan=6",
            "dl_vlan=9",
            "dl_vlan=0xffff",
            "dl_vlan_pcp=1",
            "dl_vlan=5,dl_vlan_pcp=1",
        ],
        _ => vec!["dl_vlan=5", "dl_vlan=0xffff"],
    };
    let vlan = weighted(0.2, prop::sample::select(tags));
    (port, source, destination, vlan).prop_map(|(port, source, destination, vlan)| {
        let mut parts = Vec::new();
        parts.extend(port.map(|port| format!("in_port={port}")));
        // Without this field a switch of 1.3 refuses actions that rewrite addresses.
        parts.push("ip".to_owned());
        parts.extend(source.map(|host| format!("nw_src={host}")));
        parts.extend(destination.map(|host| format!("nw_dst={host}")));
        parts.extend(vlan.map(str::to_owned));
        parts.join(",")
    })
}

pub fn actions(version: Version, names: Names) -> impl Strategy<Value = String> {
    let strange = if names.strange { 1 } else { 0 };
    let action = prop_oneof![
        6 => prop::sample::select(vec![1u8, 2, 10, 11]).prop_map(|port| format!("output:{port}")),
        1 => Just("local".to_owned()),
        1 => Just("flood".to_owned()),
        1 => Just("all".to_owned()),
        1 => Just("in_port".to_owned()),
        2 => Just("controller".to_owned()),
        1 => (0..3u8).prop_map(|host| format!("mod_nw_dst:10.0.0.{host}")),
        strange => (prop::sample::select(vec!["src", "dst"]), 0..7u8)
            .prop_map(|(side, whose)| format!("mod_nw_{side}:{}", address(whose))),
        1 => Just("mod_dl_src:02.00.00.00.00.77".to_owned()),
    ];
    // On 1.0 an action that changes the VLAN tag may be between the outputs. On 1.3 these actions have prerequisites,
    // so the test leaves them out.
    let tagging = prop::sample::select(vec![
        "strip_vlan",
        "mod_vlan_vid:5",
        "mod_vlan_vid:6",
        "mod_vlan_vid:9",
        "mod_vlan_pcp:1",
    ]);
    let tagging = weighted(0.3, (any::<prop::sample::Index>(), tagging));
    (vec(action, 1..4), tagging).prop_map(move |(mut actions, tagging)| {
        if let Some((at, tagging)) = tagging.filter(|_| version == Version::V1_0) {
            actions.insert(at.index(actions.len() + 1), tagging.to_owned());
        }
        actions.join(",")
    })
}

/// Random actions of an entry. On 1.3 also later tables, action sets, the tenant's own metadata, and groups that every
/// switch has.
fn instructions(version: Version, names: Names) -> BoxedStrategy<String> {
    if version == Version::V1_0 {
        return actions(version, names).boxed();
    }
    // The text has the instructions in the order of their execution, because statistics show this order.
    let group = (1..6u32).prop_map(|group| format!("group:{group}"));
    let more = (1..6u32, actions(version, names))
        .prop_map(|(group, more)| format!("{more},group:{group}"));
    let applied = prop_oneof![7 => actions(version, names), 2 => group, 1 => more];
    let set = prop::sample::select(vec![
        "",
        "",
        "",
        ";clear",
        ";write=output:1",
        ";write=output:10",
        ";write=group:1",
        ";write=group:3",
        ";write=group:4,output:1",
        ";write=output:11",
        ";clear;write=output:11",
        ";write=output:2,mod_dl_src:02.00.00.00.00.55,output:10",
        ";write=mod_nw_dst:10.0.0.2,output:1,mod_nw_dst:10.0.0.1",
        ";write=output:10,group:1",
        ";write=flood",
        ";write=in_port",
        ";write=local",
        ";write=all",
        ";write=controller",
        ";write=mod_nw_dst:10.0.0.1",
    ]);
    let meta = prop_oneof![8 => Just(""), 1 => Just(";meta=5/ff")];
    let goto = prop_oneof![5 => Just(""), 3 => Just(";goto=1")];
    (applied, set, meta, goto)
        .prop_map(|(applied, set, meta, goto)| format!("{applied}{set}{meta}{goto}"))
        .boxed()
}

/// Whether a rule outputs to a port in an action set that may be merged with other action sets. Weir refuses such a
/// rule.
fn sends_by_merged_set(words: &str) -> bool {
    let table = words.split("table=").nth(1).map_or("0", |it| it.split(' ').next().unwrap());
    let Some(set) = words.split("write=").nth(1).and_then(|it| it.split([';', ' ']).next()) else {
        return false;
    };
    let is_last = !words.contains("goto=");
    let is_whole = is_last && (table == "0" || words.contains("clear"));
    let is_output =
        |it: &&str| it.starts_with("output:") || ["in_port", "flood", "all", "local"].contains(it);
    let sent = set.split(',').rfind(|it| is_output(it) || it.starts_with("controller"));
    let has_group = set.split(',').any(|it| it.starts_with("group"));
    !is_whole && !has_group && sent.is_some_and(|it| is_output(&it))
}

/// A random PORT_MOD. Most of its configuration bits are equal in both versions; NO_FLOOD (0x10) is only in 1.0.
pub fn port_mod(version: Version) -> impl Strategy<Value = String> {
    let mut bits = vec![0u8, 1, 4, 0x20, 0x21, 0x24];
    let mask = if version == Version::V1_0 { 0x35 } else { 0x25 };
    if version == Version::V1_0 {
        bits.extend([0x10, 0x30]);
    }
    (prop::sample::select(vec!["1", "2", "10", "11", "local"]), prop::sample::select(bits))
        .prop_map(move |(port, bits)| format!("port_mod port={port} config={bits} mask={mask}"))
}

/// A random GROUP_MOD, with groups of all types. Some groups name other groups.
pub fn group_mod() -> impl Strategy<Value = String> {
    let output = prop::sample::select(vec!["1", "2", "10", "11"]);
    let output = prop_oneof![
        10 => output.prop_map(|port| format!("output:{port}")),
        2 => Just("in_port".to_owned()),
        1 => Just("controller".to_owned()),
        3 => (1..6u32).prop_map(|group| format!("group:{group}")),
        1 => Just("flood".to_owned()),
        1 => Just("local".to_owned()),
        1 => Just("all".to_owned()),
        1 => Just("output:1,output:10".to_owned()),
        1 => Just("output:10,output:1".to_owned()),
        1 => Just("flood,output:11".to_owned()),
        1 => Just("output:11,flood".to_owned()),
        1 => Just(String::new()),
    ];
    // A frame has at most one VLAN tag of its own: switches look through two tags, and one of these is the tag of the
    // link.
    let change = prop::sample::select(vec![
        "",
        "",
        "mod_nw_dst:10.0.0.2,",
        "mod_dl_dst:02.00.00.00.00.01,",
        "mod_dl_dst:ff.ff.ff.ff.ff.ff,",
        "strip_vlan,",
        "strip_vlan,push_vlan:8100,mod_vlan_vid:7,",
        "strip_vlan,mod_nw_dst:10.0.0.1,push_vlan:88a8,mod_vlan_pcp:3,mod_vlan_vid:5,",
        "mod_vlan_vid:6,",
        "mod_vlan_pcp:2,",
    ]);
    let bucket = (change, output);
    let bucket = bucket.prop_map(|(change, output)| format!("{change}{output}"));
    let bucket = bucket.prop_map(|it| if it.is_empty() { "drop".to_owned() } else { it });
    let watched = prop::sample::select(vec!["1", "2", "10", "11", "local", "g1", "g3"]);
    let several = || vec(bucket.clone(), 0..4);
    let buckets = prop_oneof![
        3 => several().prop_map(|buckets| ("all", buckets.join("|"))),
        3 => vec((0..4u32, bucket.clone()), 1..4).prop_map(|buckets| {
            let weighed: Vec<_> = buckets.iter().map(|(w, it)| format!("{w}*{it}")).collect();
            ("select", weighed.join("|"))
        }),
        1 => bucket.clone().prop_map(|bucket| ("indirect", bucket)),
        2 => vec((watched, bucket.clone()), 1..4).prop_map(|buckets| {
            let watching: Vec<_> = buckets.iter().map(|(at, it)| format!("{at}@{it}")).collect();
            ("ff", watching.join("|"))
        }),
    ];
    let what = prop_oneof![4 => Just("add"), 3 => Just("modify"), 1 => Just("delete")];
    (what, 1..6u32, buckets).prop_map(|(what, id, (kind, buckets))| {
        let id = if what == "delete" && id == 5 { "all".to_owned() } else { id.to_string() };
        match what {
            "delete" => format!("group delete id={id}"),
            _ => format!("group {what} id={id} type={kind} buckets={buckets}"),
        }
    })
}

#[derive(Clone, Debug)]
pub struct Case {
    /// Whether the switches execute the action set of a packet that misses, as Open vSwitch does.
    pub runs_sets: bool,
    /// Whether a group of type SELECT chooses a port for packets that match no other entry (1.3).
    pub spreads: bool,
    /// The tenant, the switch, and the request of the controller.
    pub commands: Vec<(usize, u64, String)>,
    /// Whether blue's first link and blue's last link have no path when packets are sent.
    pub cut: [bool; 2],
    /// The tenant, the edge port, the VLAN tag if the frame has one, and the numbers of the source and the destination
    /// address.
    pub packets: Vec<(usize, usize, Option<u16>, u8, u8)>,
}

impl Case {
    /// The commands, without changes that have the table and the priority of an earlier change and another match. Where
    /// both entries match, the switch alone decides which entry it uses.
    pub fn undisputed<'a>(
        &'a self,
        plans: &'a [Plan],
    ) -> impl Iterator<Item = &'a (usize, u64, String)> {
        let mut matches = BTreeMap::new();
        self.commands.iter().filter(move |(tenant, switch, words)| {
            let said = |key: &str| words.split(' ').find_map(|word| word.strip_prefix(key));
            let is_change = words.starts_with("flow add") || words.starts_with("flow modify");
            let entry = (*tenant, plans[*tenant].head(*switch), said("table="), said("prio="));
            !is_change || *matches.entry(entry).or_insert(said("match=")) == said("match=")
        })
    }
}

pub fn command(version: Version, names: Names) -> impl Strategy<Value = String> {
    let what = prop_oneof![
        12 => Just("add"),
        2 => Just("modify"),
        1 => Just("modify_strict"),
        1 => Just("delete"),
        1 => Just("delete_strict"),
    ];
    let later = if version == Version::V1_3 { 0.4 } else { 0.0 };
    let table = (prop::bool::weighted(later), prop::sample::select(vec![1u8, 1, 2]));
    let table = table.prop_map(|(is_later, table)| is_later.then_some(table));
    // Random priorities are almost never equal, so that the entry that the switch uses is defined. Strict commands have
    // priority 77.
    (what, a_match(version, names), instructions(version, names), table, 1..60_000u16).prop_map(
        move |(what, match_, actions, table, priority)| {
            let strict = what.ends_with("strict");
            let priority = if strict { 77 } else { priority };
            let actions = match table {
                None => actions,
                Some(1) => actions.replace(";goto=1", ";goto=2"),
                Some(_) => actions.replace(";goto=1", ""),
            };
            let table = table.map(|table| format!(" table={table}")).unwrap_or_default();
            format!("flow {what} match={match_} prio={priority} actions={actions}{table}")
        },
    )
}

/// Entries of three tables whose action sets are merged, in the order of the tables or in the reverse order.
pub fn merging() -> impl Strategy<Value = Vec<String>> {
    let set = || {
        prop::sample::select(vec![
            "write=group:1",
            "write=group:2",
            "write=group:3",
            "write=controller",
            "drop",
            "clear",
            "clear;write=output:10",
            "clear;write=flood",
            "clear;write=group:2",
            "write=group:1;meta=5/ff",
            "write=controller;meta=ffffffff/7",
            "write=mod_nw_dst:10.0.0.1",
            "write=group:2,mod_dl_src:02.00.00.00.00.55",
            "write=strip_vlan,push_vlan:8100,mod_vlan_vid:6,group:1",
            "write=strip_vlan",
            // Weir refuses this set.
            "write=output:10",
        ])
    };
    let last = prop_oneof![4 => Just("ip"), 1 => Just("ip,metadata=0x5/0x7")];
    let entries = ([set(), set(), set()], last, 60_000..65_000u16, any::<bool>());
    entries.prop_map(|(sets, match_, priority, last)| {
        let mut words = Vec::new();
        for (table, set) in sets.iter().enumerate() {
            let goto = [";goto=1", ";goto=2", ""][table];
            let match_ = if table == 2 { match_ } else { "ip" };
            words.push(format!(
                "flow add match={match_} prio={priority} actions={set}{goto} table={table}"
            ));
        }
        if last {
            words.reverse();
        }
        words
    })
}

/// `named` is the probability that a match names an address.
pub fn cases(version: Version, named: f64) -> impl Strategy<Value = Case> {
    cases_of(version, Names::of_hosts(named))
}

/// Like [`cases`], but matches, packets and actions have addresses of all kinds. A match names both addresses, one or
/// none.
pub fn strange_cases(version: Version) -> impl Strategy<Value = Case> {
    cases_of(version, Names { named: 0.5, strange: true })
}

fn cases_of(version: Version, names: Names) -> impl Strategy<Value = Case> {
    let groups = if version == Version::V1_3 { 5 } else { 0 };
    let sets = if version == Version::V1_3 { 3 } else { 0 };
    let words = prop_oneof![
        9 => command(version, names).prop_map(|words| vec![words]),
        2 => port_mod(version).prop_map(|words| vec![words]),
        groups => group_mod().prop_map(|words| vec![words]),
        sets => merging(),
    ];
    let command = (0..2usize, 1..=3u64, words);
    // 0x2005 is VLAN 5 with priority 1. On 1.0 frames with tags do not cross links.
    let tag = match version {
        Version::V1_0 => Just(None).boxed(),
        _ => weighted(0.3, prop::sample::select(vec![5u16, 6, 0x2005])).boxed(),
    };
    let packet = (0..2usize, 0..5usize, tag, names.in_packets(), names.in_packets());
    let cut = [prop::bool::weighted(0.15), prop::bool::weighted(0.15)];
    let switches = (any::<bool>(), any::<bool>());
    (switches, vec(command, 1..14), cut, vec(packet, 1..8)).prop_map(
        |((runs_sets, spreads), commands, cut, packets)| {
            let each = |(tenant, switch, words): (usize, u64, Vec<String>)| {
                words.into_iter().map(move |words| (tenant, switch, words))
            };
            let commands = commands.into_iter().flat_map(each).collect();
            Case { runs_sets, spreads, commands, cut, packets }
        },
    )
}

/// The ports of a tenant's switch.
fn ports_of(testbed: &Testbed, plans: &[Plan], tenant: usize, switch: u64) -> Vec<u32> {
    let plan = &plans[tenant];
    let edges = plan.edges.iter().map(|edge| (edge.0, edge.2));
    let ends = edges.chain(plan.links.iter().flatten().copied());
    ends.filter(|end| testbed.head(tenant, end.0) == switch).map(|end| end.1).collect()
}

/// Adds the groups that every switch of 1.3 has. If the case spreads packets, also adds a group to all ports and an
/// entry for it.
pub fn add_groups(
    testbed: &mut Testbed,
    plans: &[Plan],
    case: &Case,
    (tenant, switch): (usize, u64),
) {
    add_two_groups(tenant, |words| both_say(testbed, tenant, switch, words));
    if case.spreads {
        let ports = ports_of(testbed, plans, tenant, switch);
        let buckets = ports.iter().map(|port| format!("1*output:{port}"));
        let buckets = buckets.collect::<Vec<_>>().join("|");
        let words = format!("group add id=3 type=select buckets={buckets}");
        both_say(testbed, tenant, switch, &words);
        both_say(testbed, tenant, switch, "flow add prio=0 actions=group:3");
    }
}

/// Adds two groups. Their ports exist on every switch, and share a physical port with no other port.
pub fn add_two_groups(tenant: usize, mut say: impl FnMut(&str)) {
    say("group add id=1 type=all buckets=output:1|mod_nw_dst:10.0.0.2,output:1");
    let far = if tenant == 0 { 10 } else { 1 };
    say(&format!("group add id=2 type=indirect buckets=mod_nw_dst:10.0.0.1,output:{far}"));
}

pub fn agrees(version: Version, plans: &[Plan], case: &Case) -> Result<(), TestCaseError> {
    agree([version; SWITCHES as usize], plans, case)
}

/// Checks that the testbed forwards and counts like the tenants' reference networks, with switches of several versions.
pub fn agree(versions: Versions, plans: &[Plan], case: &Case) -> Result<(), TestCaseError> {
    let make = Make { runs_sets: case.runs_sets, ..Make::default() };
    let mut testbed = Testbed::made(versions, plans.to_vec(), make);
    let seats = |tenant: usize| testbed.switches_of(tenant).into_iter().map(move |it| (tenant, it));
    let seats: Vec<(usize, u64)> = seats(0).chain(seats(1)).collect();
    for &(tenant, switch) in &seats {
        if testbed.version(switch) == Version::V1_3 {
            add_groups(&mut testbed, plans, case, (tenant, switch));
        }
    }
    // Of entries with equal priority the emulated switch uses the one that was added first. After a cut or a PORT_MOD
    // Weir adds some entries again, so such entries are left out.
    let configures = case.commands.iter().any(|it| it.2.starts_with("port_mod"));
    let is_anew = configures || case.cut.contains(&true);
    let said: Vec<_> =
        if is_anew { case.undisputed(plans).collect() } else { case.commands.iter().collect() };
    for (tenant, switch, words) in said {
        let head = testbed.head(*tenant, *switch);
        let switch = &head;
        let mut received = testbed.say(*tenant, *switch, words);
        // A big switch sends PORT_STATUS also to the controller that has sent PORT_MOD.
        received.retain(|words| !words.starts_with("PORT_STATUS"));
        let is_rule = testbed.version(head) == Version::V1_3 && words.starts_with("flow");
        if is_rule && sends_by_merged_set(words) {
            // On a big switch no member checks a change of entries that do not exist.
            prop_assert!(
                received.len() == 1 || !words.starts_with("flow add"),
                "{words}: {received:?}"
            );
            if received.len() == 1 {
                continue;
            }
        }
        if received.is_empty() {
            let beside = testbed.say_beside(*tenant, *switch, words);
            prop_assert!(beside.is_empty(), "{words}: {beside:?}");
        } else {
            prop_assert_eq!(received.len(), 1);
            // Only on 1.0 Weir uses this error, for ports that do not exist.
            let is_denied =
                testbed.version(head) == Version::V1_3 && received[0].contains("OFPFMFC_EPERM");
            prop_assert!(!is_denied, "{}: {:?}", words, received);
            // Weir refuses only GROUP_MODs that a switch refuses as well, and GROUP_MODs with ports and groups that do
            // not exist.
            let ports = ports_of(&testbed, plans, *tenant, head);
            let names = |port: &u32| match *port {
                LOCAL => words.contains("local"),
                port => words.contains(&format!("output:{port}")),
            };
            let all = [1, 2, 10, 11, LOCAL];
            let shared = plans[*tenant].shared.iter();
            let shared = shared.filter(|it| testbed.head(*tenant, it.0) == head).map(|it| it.2);
            let is_there = |port| ports.contains(port) || shared.clone().any(|it| it == *port);
            let is_there = all.iter().all(|port| is_there(port) || !names(port));
            // On 1.3 a rule may output to shared ports without naming the destination only if no action follows the
            // output.
            let has_shared = shared.clone().next().is_some();
            let names = words.split([' ', ',']).any(|it| {
                let to = it.strip_prefix("dl_dst=").or(it.strip_prefix("match=dl_dst="));
                to.is_some_and(|to| !to.contains('/'))
            });
            let is_shared_port = has_shared && received[0].contains("BAD_OUT_PORT");
            let may_be = words.contains("group") || is_shared_port && !names;
            if is_rule && is_there && !may_be {
                // Errors that any switch sends, and the error for two entries that are one rule on this switch.
                let errors = ["MATCH_INCONSISTENT", "OFPBMC_BAD_VALUE", "OFPFMFC_OVERLAP"];
                let is_refused = errors.iter().any(|error| received[0].contains(error));
                prop_assert!(is_refused, "{words}: {received:?}");
            }
            // Weir also refuses to change a group in these cases: the group outputs to links to switches of 1.0 and is
            // in an action set that may be merged, the group outputs to shared ports for more than one host, or a rule
            // of a later table applies the group and the group recirculates packets.
            let is_later = |words: &str| words.contains("table=") && words.contains("group:");
            let is_bound = case.commands.iter().any(|it| is_later(&it.2));
            let is_used = (versions.contains(&Version::V1_0) || is_bound)
                && received[0].contains("OFPGMFC_EPERM");
            let is_refused = is_used || is_shared_port || received[0].contains("BAD_WATCH");
            if words.starts_with("group") && is_there && !is_refused {
                let beside = testbed.say_beside(*tenant, *switch, words);
                prop_assert_eq!(beside.len(), 1, "{}: {:?}", words, received);
            }
        }
    }
    let [first, last] = [plans[1].links.first(), plans[1].links.last()];
    let cut = [first, last].into_iter().zip(case.cut).filter(|(_, is_cut)| *is_cut);
    let cut: Vec<_> = cut.filter_map(|(link, _)| link.copied()).collect();
    if !cut.is_empty() {
        testbed.cut(1, cut, 3000);
    }
    let mut endless = false;
    for &packet in &case.packets {
        let (tenant, switch, port, frame) = comes(plans, packet);
        let beside = testbed.send_beside(tenant, switch, port, &frame);
        if beside.endless {
            endless = true;
            break;
        }
        let beside = at_hosts(&plans[tenant], beside);
        let mut seen = testbed.send_as_traced(tenant, switch, port, &frame);
        // The wire of a shared port also has hosts of the other tenant. These hosts see the frame, but the destination
        // address is not theirs, so the test ignores them.
        seen.delivered.retain(|it| it.0 == tenant || !is_shared(&plans[it.0], it.1, it.2));
        prop_assert_eq!(&seen, &beside, "{} from {} at {}", tenant, port, switch);
        prop_assert!(seen.delivered.iter().all(|(to, ..)| *to == tenant));
        prop_assert!(seen.received.iter().all(|(to, ..)| *to == tenant));
    }
    for (tenant, switch) in seats {
        if endless {
            break;
        }
        // The statistics of all entries and groups, with their counters, are equal.
        let questions = ["stats flow", "stats aggregate", "stats group", "stats group_desc"];
        let has_groups = testbed.version(switch) == Version::V1_3;
        let questions = questions.iter().take(if has_groups { 4 } else { 2 });
        for &question in questions {
            let received = testbed.say(tenant, switch, question);
            prop_assert_eq!(received, testbed.say_beside(tenant, switch, question));
        }
        // The received counters of each end of a link are equal. After a PORT_MOD the test does not compare them,
        // because the reference switch counts dropped packets separately.
        let ends = plans[tenant].links.iter().flatten().filter(|end| end.0 == switch);
        for &(_, port) in ends.filter(|_| !configures) {
            let received = testbed.counted(tenant, switch, port).0;
            let beside = testbed.received_beside(tenant, switch, port);
            let is_counted = testbed.version(switch) == Version::V1_3;
            let expected = is_counted.then_some(beside);
            prop_assert_eq!(received, expected, "{} at {} port {}", tenant, switch, port);
        }
    }
    Ok(())
}

/// 300 cases, or the number in the environment variable: `PROPTEST_CASES=20000`.
pub fn config() -> ProptestConfig {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let default = ProptestConfig::default();
    ProptestConfig { cases: if asked { default.cases } else { 300 }, ..default }
}

/// Replaces each frame that leaves by one of the tenant's shared ports by one frame for each host that receives it.
pub fn at_hosts(plan: &Plan, seen: Seen) -> Seen {
    let Seen { delivered, received, endless } = seen;
    let mut at_hosts = Seen { received, endless, ..Seen::default() };
    for (tenant, switch, port, frame) in delivered {
        let here: Vec<_> = plan.shared.iter().filter(|it| (it.0, it.2) == (switch, port)).collect();
        if here.is_empty() {
            at_hosts.delivered.push((tenant, switch, port, frame));
            continue;
        }
        for host in here {
            let mut copy = frame.clone();
            copy[..6].copy_from_slice(&host.3);
            if frame[0] & 1 == 1 || frame == copy {
                at_hosts.delivered.push((tenant, switch, port, copy));
            }
        }
    }
    at_hosts.sorted()
}

pub fn is_shared(plan: &Plan, switch: u64, port: u32) -> bool {
    plan.shared.iter().any(|it| (it.0, it.2) == (switch, port))
}

/// The tenant, the switch, the ingress port and the bytes of a frame. At a shared port the source is one of the
/// tenant's hosts there. In plans with shared ports some frames are for all hosts, and some are for no host.
pub fn comes(
    plans: &[Plan],
    (tenant, edge, tag, from, to): (usize, usize, Option<u16>, u8, u8),
) -> (usize, u64, u32, Vec<u8>) {
    let plan = &plans[tenant];
    let edges: Vec<_> = plan.edge_ports().collect();
    let at = if plan.shared.is_empty() { edge } else { edge + usize::from(from) };
    let (switch, port) = edges[at % edges.len()];
    let here = plan.shared.iter().filter(|it| (it.0, it.2) == (switch, port));
    let source = here.map(|it| it.3).next();
    let tag = tag.map(|tag| format!("vlan{tag}:")).unwrap_or_default();
    let mut frame = packet(&format!("{tag}{}>{}", address(from), address(to)));
    if let Some(source) = source {
        frame[6..12].copy_from_slice(&source);
    }
    if !plan.shared.is_empty() && from == to {
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0x66, from]);
    }
    if !plan.shared.is_empty() && from != to && from + to == 3 {
        let everybody = if from == 1 { [0xff; 6] } else { [0x33, 0x33, 0, 0, 0, 1] };
        frame[..6].copy_from_slice(&everybody);
    }
    (tenant, switch, port, frame)
}
