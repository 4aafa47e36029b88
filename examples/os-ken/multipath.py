"""A multipath load balancer that reads link labels; what is the same on OpenFlow 1.0 and 1.3.

Of the shortest paths between two hosts it takes the one with the most left: the least label on it, less what this
controller has put there itself, which labels do not count. `multipath_13.py` and `multipath_10.py` read the labels, each
in its version's form. To compare, --choose random takes any path, --choose first always the same.

    .venv/bin/python examples/os-ken/run.py multipath_13 --vnics '{"02:00:00:00:00:01": 8000}'

--vnics says what the tenant's hosts may send, in kbit/s, by their addresses; it knows what it bought.
"""

import json
import os
import random
from collections import defaultdict, deque

import os_ken.topology.api  # noqa: F401 - it makes the manager start the discovery
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ether_types, ethernet, vlan
from os_ken.topology import event as topology_event

from events import say
from shortest_path import PRIORITY, add_flow, end, match_fields, send_packet

UNKNOWN = None


class Multipath(app_manager.OSKenApp):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.switches = {}  # dpid -> datapath
        self.ports = {}  # dpid -> its ports
        self.links = {}  # (dpid, port) -> (dpid, port) at the other end
        self.labels = {}  # (dpid, port) -> what others leave of the link that leaves there, in kbit/s
        self.own = defaultdict(int)  # (dpid, port) -> what our own flows are entitled to there, in kbit/s
        self.place_of = {}  # MAC address -> (dpid, port)
        self.paths = {}  # (source, destination) -> [(dpid, out port)]
        self.vnics = json.loads(os.environ.get("VNICS") or "{}")
        self.choice = os.environ.get("CHOOSE") or "labels"

    def label_came(self, dpid, port, left, capacity=UNKNOWN):
        """Called by the version's own part."""
        if self.labels.get((dpid, port)) != left:
            self.labels[dpid, port] = left
            say("label", dpid=dpid, port=port, left=left, capacity=capacity)

    @set_ev_cls(topology_event.EventSwitchEnter)
    def switch_came(self, event):
        dpid = event.switch.dp.id
        self.switches[dpid] = event.switch.dp
        self.ports[dpid] = [port.port_no for port in event.switch.ports if not port.is_reserved()]
        say("switch", dpid=dpid, ports=self.ports[dpid])

    @set_ev_cls(topology_event.EventSwitchLeave)
    def switch_left(self, event):
        dpid = event.switch.dp.id
        self.switches.pop(dpid, None)
        self.ports.pop(dpid, None)
        self.links = {a: b for a, b in self.links.items() if dpid not in (a[0], b[0])}
        self.place_of = {mac: place for mac, place in self.place_of.items() if place[0] != dpid}

    @set_ev_cls(topology_event.EventLinkAdd)
    def link_came(self, event):
        self.links[end(event.link.src)] = end(event.link.dst)
        say("link", **{"from": end(event.link.src), "to": end(event.link.dst), "links": len(self.links)})

    @set_ev_cls(topology_event.EventLinkDelete)
    def link_left(self, event):
        gone = end(event.link.src)
        self.links.pop(gone, None)
        for ends in [ends for ends, hops in self.paths.items() if gone in hops]:
            self.forget(ends)
            self.provision(*ends)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        message = event.msg
        frame, _, rest = ethernet.ethernet.parser(message.data)
        kind = frame.ethertype
        if kind == ether_types.ETH_TYPE_8021Q:
            kind = vlan.vlan.parser(rest)[0].ethertype
        if kind == ether_types.ETH_TYPE_LLDP:
            return
        here = (message.datapath.id, message.in_port if hasattr(message, "in_port") else message.match["in_port"])
        if here not in self.links:
            self.place_of[frame.src] = here
        there = self.place_of.get(frame.dst)
        if there is None:
            self.flood(here, message.data)
            return
        if kind == ether_types.ETH_TYPE_IP:
            self.provision(frame.src, frame.dst)
        # What no path was made for, ARP above all, is handed over.
        if there[0] in self.switches:
            send_packet(self.switches[there[0]], there[1], message.data)

    def flood(self, here, data):
        """Hands a packet from a host to all other hosts. One that came over a link has been handed on before."""
        if here in self.links:
            return
        for dpid, ports in self.ports.items():
            for port in ports:
                if (dpid, port) != here and (dpid, port) not in self.links:
                    send_packet(self.switches[dpid], port, data)

    def provision(self, source, destination):
        """Installs the best path between two hosts, if there is none yet."""
        if (source, destination) in self.paths:
            return
        if source not in self.place_of or destination not in self.place_of:
            return
        paths = self.shortest_paths(self.place_of[source][0], self.place_of[destination][0])
        if not paths:
            return
        path = self.choose(paths)
        hops = path + [self.place_of[destination]]
        for dpid, out_port in reversed(hops):
            datapath = self.switches[dpid]
            fields = match_fields(datapath, source, destination)
            # Addresses alone would take ARP too, which is to go on coming here.
            fields["dl_type" if "dl_src" in fields else "eth_type"] = ether_types.ETH_TYPE_IP
            match = datapath.ofproto_parser.OFPMatch(**fields)
            add_flow(datapath, PRIORITY, match, [datapath.ofproto_parser.OFPActionOutput(out_port)])
        self.paths[source, destination] = hops
        for hop in path:
            self.own[hop] += self.vnics.get(source, 0)
        say("path", source=source, destination=destination, hops=hops)

    def forget(self, ends):
        hops = self.paths.pop(ends)
        for hop in hops[:-1]:
            self.own[hop] -= self.vnics.get(ends[0], 0)

    def choose(self, paths):
        if self.choice == "random":
            return random.choice(paths)
        if self.choice == "first":
            return paths[0]
        return max(paths, key=self.left)

    def left(self, path):
        """What a path has left for one flow more. A link of which nothing is known is taken for one with all left."""
        return min((self.labels.get(hop, float("inf")) - self.own[hop] for hop in path), default=float("inf"))

    def shortest_paths(self, start, goal):
        """All of them, as (dpid, out port) each; the order is always the same."""
        distance = {goal: 0}
        waiting = deque([goal])
        while waiting:
            here = waiting.popleft()
            for (at, _), (to, _) in self.links.items():
                if to == here and at not in distance:
                    distance[at] = distance[here] + 1
                    waiting.append(at)
        if start not in distance:
            return []
        paths = [[]]
        ends = [start]
        while ends[0] != goal:
            longer = []
            for path, here in zip(paths, ends):
                for (at, port), (to, _) in sorted(self.links.items()):
                    if at == here and distance.get(to, -1) == distance[here] - 1:
                        longer.append((path + [(at, port)], to))
            paths, ends = [path for path, _ in longer], [to for _, to in longer]
        return paths
