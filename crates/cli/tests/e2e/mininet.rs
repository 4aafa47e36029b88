//! Tests of a Mininet network, unchanged, with Weir as its controller. Mininet makes its switches on the private Open
//! vSwitch of a lab.

use std::time::Duration;

use crate::slices::by_port;
use crate::support::app::testcontroller;
use crate::support::network::Network;
use crate::support::repository;
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;

/// Mininet pings twelve pairs of hosts, and eight pairs get no answer.
const PATIENCE: Duration = Duration::from_secs(90);

#[test]
fn ovs_mininet_hosts_reach_only_hosts_of_the_same_tenant() {
    needs!(ovs_mininet_hosts_reach_only_hosts_of_the_same_tenant: Needs::OpenVSwitch, Needs::Program("mn"),
        Needs::Program("ovs-testcontroller"));
    let examples = repository().join("examples/mininet");
    let network = Network::of_file(&examples.join("lab.toml"));
    let (_red, red) = testcontroller();
    let (_blue, blue) = testcontroller();
    let weir = Weir::serve_on(
        network.controller_host(),
        &(by_port("red", &format!("tcp:{red}"), [1, 2])
            + &by_port("blue", &format!("tcp:{blue}"), [3, 4])),
    );

    let (script, weir) = (examples.join("run.py").display().to_string(), weir.openflow.to_string());
    let words = ["/usr/bin/python3", &script, "--topo", "single,4", "--controller", &weir];
    let mut mininet = network.program("base", &[&words[..], &["--pingall"]].concat());

    assert_eq!(mininet.wait(PATIENCE), Some(0), "it ended well");
    let expected: Vec<String> = (1..=4)
        .flat_map(|source| (1..=4).map(move |target| (source, target)))
        .filter(|(source, target)| source != target)
        .map(|(source, target)| {
            let same_tenant = (source <= 2) == (target <= 2);
            let verdict = if same_tenant { "reached" } else { "lost" };
            format!("h{source} -> h{target} {verdict}")
        })
        .collect();
    assert_eq!(mininet.stdout.to_end().lines().collect::<Vec<_>>(), expected);
    assert_eq!(network.bridges(), ["base"], "Mininet took its own switches away, and no others");
}
