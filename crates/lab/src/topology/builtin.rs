//! Makes the built-in topologies. Nodes have the numbers of Mininet if Mininet has the topology.

use super::build::TopologyBuilder;
use super::model::Topology;
use super::units::Rate;
use crate::error::{Error, Result};
use crate::names;

/// A built-in topology: its name, its arguments and its description.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// The name, such as `single`.
    pub name: &'static str,
    /// The names of its arguments, in order. Arguments in `[]` are optional.
    pub arguments: &'static [&'static str],
    /// The description in one line for `--help`.
    pub help: &'static str,
    make: fn(&mut TopologyBuilder, &[u32]) -> Result<()>,
}

/// All built-in topologies.
pub const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "single",
        arguments: &["hosts"],
        help: "one switch with that many hosts",
        make: single,
    },
    Builtin {
        name: "linear",
        arguments: &["switches", "[hosts]"],
        help: "a chain of switches, each with one host (or that many)",
        make: linear,
    },
    Builtin {
        name: "tree",
        arguments: &["depth", "fanout"],
        help: "a tree of switches with hosts as its leaves",
        make: tree,
    },
    Builtin {
        name: "leafspine",
        arguments: &["leaves", "spines", "hosts"],
        help: "every leaf switch linked to every spine, that many hosts at each leaf",
        make: leafspine,
    },
    Builtin {
        name: "fattree",
        arguments: &["k"],
        help: "a three-layer fat tree of k-port switches with k³/4 hosts (k even)",
        make: fattree,
    },
    Builtin {
        name: "isolation2013",
        arguments: &[],
        help: "figure 1 of The Price of Virtualization (2013): two leaves, two spines, hosts A to F, 10 Mbit/s links",
        make: isolation2013,
    },
];

/// The maximum number of switches and hosts together. A fat tree of k = 32 has 9,472 nodes: no
/// machine can run this network, but the model can compute with it. The limit is far below the
/// number at which the model would run out of memory.
const MOST_NODES: u64 = 10_000;

pub(super) fn parse(specification: &str) -> Result<Topology> {
    let mut parts = specification.split(',').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let Some(builtin) = BUILTINS.iter().find(|builtin| builtin.name == name) else {
        let known: Vec<_> = BUILTINS.iter().map(|builtin| builtin.name).collect();
        let hint = names::suggestion(name, known.iter().copied());
        return Err(Error::topology(format!(
            "there is no built-in topology {name:?}{hint} (there are {}; a file's name ends in .toml)",
            known.join(", ")
        )));
    };
    let arguments = parts
        .zip(builtin.arguments.iter().map(Some).chain(std::iter::repeat(None)))
        .map(|(text, argument)| {
            let argument = argument.ok_or_else(|| usage(builtin))?;
            text.parse().ok().filter(|number| *number > 0).ok_or_else(|| {
                Error::topology(format!("{name}: {argument} is {text:?}, not a number above 0"))
            })
        })
        .collect::<Result<Vec<u32>>>()?;
    if arguments.len()
        < builtin.arguments.iter().filter(|argument| !argument.starts_with('[')).count()
    {
        return Err(usage(builtin));
    }
    let mut builder = TopologyBuilder::default();
    (builtin.make)(&mut builder, &arguments)?;
    builder.build()
}

fn usage(builtin: &Builtin) -> Error {
    let mut form = vec![builtin.name];
    form.extend(builtin.arguments);
    Error::topology(format!("write it as {}", form.join(",")))
}

/// Refuses a size before anything of that size is built.
fn check_size(nodes: u64) -> Result<()> {
    if nodes > MOST_NODES {
        return Err(Error::topology(format!(
            "{nodes} switches and hosts are more than {MOST_NODES}"
        )));
    }
    Ok(())
}

fn single(builder: &mut TopologyBuilder, arguments: &[u32]) -> Result<()> {
    let &[hosts] = arguments else { return Ok(()) };
    check_size(1 + u64::from(hosts))?;
    builder.switch("s1")?;
    for number in 1..=hosts {
        let host = format!("h{number}");
        builder.host(&host)?.link(&host, "s1", None)?;
    }
    Ok(())
}

/// Adds nodes in Mininet's order: all hosts of a switch, then the link to the switch before.
fn linear(builder: &mut TopologyBuilder, arguments: &[u32]) -> Result<()> {
    let (switches, hosts) = match *arguments {
        [switches] => (switches, 1),
        [switches, hosts] => (switches, hosts),
        _ => return Ok(()),
    };
    check_size(u64::from(switches) * (1 + u64::from(hosts)))?;
    for number in 1..=switches {
        let switch = format!("s{number}");
        builder.switch(&switch)?;
        for index in 1..=hosts {
            // Mininet names hosts h1, h2, ... with one host at each switch, else h1s1, h2s1, ...
            let host = if hosts == 1 { format!("h{number}") } else { format!("h{index}s{number}") };
            builder.host(&host)?.link(&host, &switch, None)?;
        }
        if number > 1 {
            builder.link(&switch, &format!("s{}", number - 1), None)?;
        }
    }
    Ok(())
}

fn tree(builder: &mut TopologyBuilder, arguments: &[u32]) -> Result<()> {
    let &[depth, fanout] = arguments else { return Ok(()) };
    let nodes = (0..=depth).try_fold(0_u64, |sum, level| {
        u64::from(fanout).checked_pow(level)?.checked_add(sum).filter(|sum| *sum <= MOST_NODES)
    });
    check_size(nodes.unwrap_or(u64::MAX))?;
    let mut next = (1, 1);
    subtree(builder, depth, fanout, &mut next).map(drop)
}

/// Adds a node with its whole subtree, depth first as Mininet does. `next` has the numbers of the
/// next switch and the next host.
fn subtree(
    builder: &mut TopologyBuilder,
    depth: u32,
    fanout: u32,
    next: &mut (u32, u32),
) -> Result<String> {
    if depth == 0 {
        let host = format!("h{}", next.1);
        next.1 += 1;
        builder.host(&host)?;
        return Ok(host);
    }
    let switch = format!("s{}", next.0);
    next.0 += 1;
    builder.switch(&switch)?;
    for _ in 0..fanout {
        let child = subtree(builder, depth - 1, fanout, next)?;
        builder.link(&switch, &child, None)?;
    }
    Ok(switch)
}

/// Leaves come first (`s1` to `sL`), then spines. The first ports of a leaf are for its hosts, the
/// next ports for the spines in order.
fn leafspine(builder: &mut TopologyBuilder, arguments: &[u32]) -> Result<()> {
    let &[leaves, spines, hosts] = arguments else { return Ok(()) };
    check_size(u64::from(leaves) * (1 + u64::from(hosts)) + u64::from(spines))?;
    for number in 1..=leaves + spines {
        builder.switch(&format!("s{number}"))?;
    }
    for leaf in 1..=leaves {
        let switch = format!("s{leaf}");
        for index in 1..=hosts {
            let host = format!("h{}", (leaf - 1) * hosts + index);
            builder.host(&host)?.link(&host, &switch, None)?;
        }
        for spine in leaves + 1..=leaves + spines {
            builder.link(&switch, &format!("s{spine}"), None)?;
        }
    }
    Ok(())
}

/// Numbers switches from the edge up: k²/2 edge switches (pod by pod), k²/2 aggregation switches,
/// (k/2)² core switches. The downlink ports come first at edge and aggregation switches.
fn fattree(builder: &mut TopologyBuilder, arguments: &[u32]) -> Result<()> {
    let &[k] = arguments else { return Ok(()) };
    if !k.is_multiple_of(2) {
        return Err(Error::topology(format!("fattree: k is {k}, not an even number")));
    }
    // A larger k is far above the limit, and would overflow the arithmetic below.
    let wide = u64::from(k.min(1_000));
    check_size(wide * wide * wide / 4 + wide * wide / 4 * 5)?;
    let half = k / 2;
    let edge = |pod: u32, index: u32| format!("s{}", pod * half + index + 1);
    let aggregation = |pod: u32, index: u32| format!("s{}", k * half + pod * half + index + 1);
    let core = |group: u32, index: u32| format!("s{}", 2 * k * half + group * half + index + 1);
    for number in 1..=2 * k * half + half * half {
        builder.switch(&format!("s{number}"))?;
    }
    let mut hosts = 0;
    for pod in 0..k {
        for lower in 0..half {
            for _ in 0..half {
                hosts += 1;
                let host = format!("h{hosts}");
                builder.host(&host)?.link(&host, &edge(pod, lower), None)?;
            }
        }
        for lower in 0..half {
            for upper in 0..half {
                builder.link(&edge(pod, lower), &aggregation(pod, upper), None)?;
            }
        }
        for upper in 0..half {
            for index in 0..half {
                builder.link(&aggregation(pod, upper), &core(upper, index), None)?;
            }
        }
    }
    Ok(())
}

/// The paper emulates its 10 Gbit/s links with 10 Mbit/s (section V.A). S1 and S2 are the spines;
/// the flows A → B, E → F and C → D go from S3 to S4 (sections II and III).
fn isolation2013(builder: &mut TopologyBuilder, _: &[u32]) -> Result<()> {
    let rate = Some(Rate::from_bits_per_second(10_000_000)?);
    for switch in ["s1", "s2", "s3", "s4"] {
        builder.switch(switch)?;
    }
    for (host, leaf) in
        [("A", "s3"), ("B", "s4"), ("C", "s3"), ("D", "s4"), ("E", "s3"), ("F", "s4")]
    {
        builder.host(host)?.link(host, leaf, rate)?;
    }
    for (leaf, spine) in [("s3", "s1"), ("s3", "s2"), ("s4", "s1"), ("s4", "s2")] {
        builder.link(leaf, spine, rate)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(topology: &Topology) -> String {
        let link = |link: &crate::Link| {
            let end = |end: &crate::LinkEnd| format!("{}:{}", end.node, end.port);
            format!("{}-{}", end(&link.ends[0]), end(&link.ends[1]))
        };
        topology.links().iter().map(link).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn small_builtin_topologies_have_the_expected_links() {
        let cases = [
            ("single,2", "h1:0-s1:1 h2:0-s1:2"),
            // The expected links are from Mininet 2.3: `mn --topo linear,3 --test none -v output`,
            // commands `links` and `ports`.
            ("linear,3", "h1:0-s1:1 h2:0-s2:1 s2:2-s1:2 h3:0-s3:1 s3:2-s2:3"),
            ("linear,2,2", "h1s1:0-s1:1 h2s1:0-s1:2 h1s2:0-s2:1 h2s2:0-s2:2 s2:3-s1:3"),
            ("tree,2,2", "s2:1-h1:0 s2:2-h2:0 s1:1-s2:3 s3:1-h3:0 s3:2-h4:0 s1:2-s3:3"),
            ("leafspine,2,2,1", "h1:0-s1:1 s1:2-s3:1 s1:3-s4:1 h2:0-s2:1 s2:2-s3:2 s2:3-s4:2"),
            (
                "isolation2013",
                "A:0-s3:1 B:0-s4:1 C:0-s3:2 D:0-s4:2 E:0-s3:3 F:0-s4:3 s3:4-s1:1 s3:5-s2:1 s4:4-s1:2 s4:5-s2:2",
            ),
        ];
        for (specification, expected) in cases {
            let topology = Topology::builtin(specification).map_err(|error| error.to_string());
            assert_eq!(topology.as_ref().map(links), Ok(expected.to_owned()), "{specification}");
        }
    }

    #[test]
    fn builtin_topologies_have_the_expected_sizes() {
        // The columns are: switches, hosts, links, has a loop.
        let cases = [
            ("single,1", (1, 1, 1, false)),
            ("single,300", (1, 300, 300, false)),
            ("linear,20,2", (20, 40, 59, false)),
            ("tree,3,3", (13, 27, 39, false)),
            ("leafspine,4,2,8", (6, 32, 40, true)),
            ("fattree,2", (5, 2, 6, false)),
            ("fattree,4", (20, 16, 48, true)),
            ("fattree,8", (80, 128, 384, true)),
            ("fattree,32", (1_280, 8_192, 24_576, true)),
            ("isolation2013", (4, 6, 10, true)),
        ];
        for (specification, expected) in cases {
            let topology = Topology::builtin(specification).unwrap();
            let found = (
                topology.switches().len(),
                topology.hosts().len(),
                topology.links().len(),
                topology.has_loop(),
            );
            assert_eq!(found, expected, "{specification}");
        }
    }

    /// Every switch of a fat tree uses exactly k ports. Every pair of pods shares every core switch.
    #[test]
    fn every_switch_of_a_fat_tree_has_k_ports() {
        for k in [2, 4, 6] {
            let topology = Topology::builtin(&format!("fattree,{k}")).unwrap();
            for switch in topology.switches() {
                assert_eq!(topology.ports(&switch.name).count(), k, "k = {k}, {}", switch.name);
            }
        }
    }

    #[test]
    fn wrong_builtin_topologies_are_refused_with_the_reason() {
        let cases = [
            ("singel,4", "did you mean \"single\"?"),
            ("ring,4", "a file's name ends in .toml"),
            ("single", "write it as single,hosts"),
            ("single,0", "hosts is \"0\", not a number above 0"),
            ("single,-1", "not a number above 0"),
            ("single,1,1", "write it as single,hosts"),
            ("linear,1,1,1", "write it as linear,switches,[hosts]"),
            ("isolation2013,4", "write it as isolation2013"),
            ("fattree,3", "not an even number"),
            ("fattree,4294967294", "are more than 10000"),
            ("tree,64,2", "are more than 10000"),
            ("tree,1000000000,1", "are more than 10000"),
            ("linear,4294967295,4294967295", "are more than 10000"),
            ("leafspine,4294967295,4294967295,4294967295", "are more than 10000"),
            ("", "there is no built-in topology"),
        ];
        for (specification, expected) in cases {
            let error = Topology::builtin(specification).unwrap_err().to_string();
            assert!(error.contains(expected), "{specification}: {error}");
        }
    }
}
