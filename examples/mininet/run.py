#!/usr/bin/python3
"""Runs a Mininet topology on a lab's private Open vSwitch, with Weir as its controller.

    weir lab up examples/mininet/lab.toml
    weir lab exec base -- /usr/bin/python3 examples/mininet/run.py \\
        [--custom FILE.py] --topo NAME[,ARGUMENT]... --controller IP:PORT [--pingall] [--cli]

FILE.py is written as for `mn --custom`: it has a dictionary `topos`. Unlike `mn`, this never cleans up behind other
networks: `mn -c`, which `mn` also runs after an error, ends processes by their names, whoever started them.
"""

import argparse
import itertools
import re
import runpy
import sys

from mininet.cli import CLI
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.node import OVSSwitch, RemoteController
from mininet.topo import LinearTopo, SingleSwitchTopo
from mininet.topolib import TorusTopo, TreeTopo
from mininet.util import buildTopo

TOPOLOGIES = {
    "single": SingleSwitchTopo,
    "linear": LinearTopo,
    "tree": TreeTopo,
    "torus": TorusTopo,
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--custom", metavar="FILE.py", help="defines further topologies, in `topos`")
    parser.add_argument("--topo", required=True, metavar="NAME[,ARGUMENT]...", help=", ".join(TOPOLOGIES))
    parser.add_argument("--controller", required=True, metavar="IP:PORT", help="where Weir listens")
    parser.add_argument("--protocols", default="OpenFlow13", help="such as OpenFlow10 (default: %(default)s)")
    parser.add_argument("--pingall", action="store_true", help="ping between all hosts")
    parser.add_argument("--cli", action="store_true", help="Mininet's prompt")
    return parser.parse_args()


def make(args):
    custom = runpy.run_path(args.custom).get("topos", {}) if args.custom else {}
    address, port = args.controller.rsplit(":", 1)
    net = Mininet(
        topo=buildTopo({**TOPOLOGIES, **custom}, args.topo),
        controller=None,
        autoSetMacs=True,
        # The userspace datapath: hosts without Open vSwitch's kernel module have no other.
        switch=lambda name, **options: OVSSwitch(
            name, datapath="user", failMode="secure", protocols=args.protocols, **options
        ),
    )
    net.addController("weir", controller=RemoteController, ip=address, port=int(port))
    for host in net.hosts:
        for interface in host.intfNames():
            # It forwards frames as they are: a checksum left to the hardware would stay wrong.
            host.cmd("ethtool -K", interface, "tx off")
    return net


def main():
    args = arguments()
    setLogLevel("info")
    net = make(args)
    try:
        net.start()
        if not net.waitConnected(timeout=15):
            sys.exit("no connection to %s" % args.controller)
        if args.pingall:
            # Not net.pingAll(): it pings once, and the first ping of a pair may be late while controllers learn.
            for source, target in itertools.permutations(net.hosts, 2):
                answer = source.cmd("ping -q -c 3 -i 0.2 -W 1", target.IP())
                reached = re.search(r"[1-3] received", answer)
                print(source, "->", target, "reached" if reached else "lost", flush=True)
        if args.cli:
            CLI(net)
    finally:
        net.stop()


if __name__ == "__main__":
    main()
