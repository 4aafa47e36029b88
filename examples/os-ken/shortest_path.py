"""Forwards along shortest paths over what os-ken's discovery (LLDP probes) finds, and finds others when a link goes.

Unlike the learning switches it can be run on topologies with loops: packets to everybody leave by the ports where no
link was found, and by no others. A path is installed as a whole, from its end to its beginning.

It also obeys orders on stdin, one JSON object a line, as flow_installer.py does; one of them is its own:

    {"send": "topology"}

is answered by {"event": "topology", "switches": 3, "links": 4}, with links counted in each direction.
"""

import json
import sys
from collections import deque

import os_ken.topology.api  # noqa: F401 - it makes the manager start the discovery
from eventlet import tpool
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib import hub
from os_ken.lib.packet import ether_types, ethernet
from os_ken.ofproto import ofproto_v1_0, ofproto_v1_3
from os_ken.topology import event as topology_event

import flow_installer
from events import say

PRIORITY = 10
TABLE_MISS = 0


class ShortestPath(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION, ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.switches = {}  # dpid -> datapath
        self.ports = {}  # dpid -> its ports
        self.links = {}  # (dpid, port) -> (dpid, port) at the other end
        self.place_of = {}  # MAC address -> (dpid, port)
        self.paths = {}  # (source, destination) -> [(dpid, out port)]
        hub.spawn(self.obey_stdin)

    def obey_stdin(self):
        # In a thread of the system's: a read that waits would hold up os-ken's own.
        while line := tpool.execute(sys.stdin.readline):
            try:
                order = json.loads(line)
                if order["send"] == "topology":
                    say("topology", switches=len(self.switches), links=len(self.links))
                else:
                    flow_installer.send(self.switches[order["dpid"]], order)
            except Exception as error:  # noqa: BLE001 - whoever wrote the order wants to read what is wrong with it
                say("bad_order", order=line.strip(), why=repr(error))

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def switch_ready(self, event):
        datapath = event.msg.datapath
        ofp, parser = datapath.ofproto, datapath.ofproto_parser
        if ofp.OFP_VERSION == ofproto_v1_3.OFP_VERSION:
            to_controller = [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER)]
            add_flow(datapath, TABLE_MISS, parser.OFPMatch(), to_controller)

    @set_ev_cls(topology_event.EventSwitchEnter)
    def switch_came(self, event):
        dpid = event.switch.dp.id
        self.switches[dpid] = event.switch.dp
        self.ports[dpid] = [port.port_no for port in event.switch.ports if not port.is_reserved()]

    @set_ev_cls(topology_event.EventSwitchLeave)
    def switch_left(self, event):
        dpid = event.switch.dp.id
        self.switches.pop(dpid, None)
        self.ports.pop(dpid, None)
        self.links = {a: b for a, b in self.links.items() if dpid not in (a[0], b[0])}
        self.place_of = {mac: place for mac, place in self.place_of.items() if place[0] != dpid}
        for ends in [ends for ends, hops in self.paths.items() if dpid in [at for at, _ in hops]]:
            self.provision(*ends)

    @set_ev_cls(topology_event.EventLinkAdd)
    def link_came(self, event):
        self.links[end(event.link.src)] = end(event.link.dst)
        say("link", **{"from": end(event.link.src), "to": end(event.link.dst)})

    @set_ev_cls(topology_event.EventLinkDelete)
    def link_left(self, event):
        source = end(event.link.src)
        self.links.pop(source, None)
        say("link_left", **{"from": source, "to": end(event.link.dst)})
        for ends in [ends for ends, hops in self.paths.items() if source in hops]:
            self.provision(*ends)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        message = event.msg
        frame, _, _ = ethernet.ethernet.parser(message.data)
        if frame.ethertype == ether_types.ETH_TYPE_LLDP:
            return
        dpid = message.datapath.id
        here = (dpid, message.in_port if hasattr(message, "in_port") else message.match["in_port"])
        if here not in self.links:
            self.place_of[frame.src] = here
        there = self.place_of.get(frame.dst)
        if there is None:
            self.flood(here, message.data)
        elif self.provision(frame.src, frame.dst):
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
        """Installs a path between two hosts in place of the one there was; whether there is one."""
        old = self.paths.pop((source, destination), [])
        new = self.shortest_path(source, destination)
        for dpid, out_port in reversed(new):
            datapath = self.switches[dpid]
            match = datapath.ofproto_parser.OFPMatch(**match_fields(datapath, source, destination))
            add_flow(datapath, PRIORITY, match, [datapath.ofproto_parser.OFPActionOutput(out_port)])
        for dpid in {at for at, _ in old} - {at for at, _ in new}:
            if dpid in self.switches:
                delete_flow(self.switches[dpid], source, destination)
        if new:
            self.paths[source, destination] = new
        return bool(new)

    def shortest_path(self, source, destination):
        if source not in self.place_of or destination not in self.place_of:
            return []
        start, goal = self.place_of[source], self.place_of[destination]
        came_by = {start[0]: None}  # dpid -> (dpid before, its out port)
        waiting = deque([start[0]])
        while waiting and goal[0] not in came_by:
            dpid = waiting.popleft()
            for (at, port), (neighbour, _) in sorted(self.links.items()):
                if at == dpid and neighbour not in came_by:
                    came_by[neighbour] = (dpid, port)
                    waiting.append(neighbour)
        if goal[0] not in came_by:
            return []
        hops = [goal]
        while came_by[hops[0][0]] is not None:
            hops.insert(0, came_by[hops[0][0]])
        return hops


def end(port):
    return (port.dpid, port.port_no)


def match_fields(datapath, source, destination):
    if datapath.ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION:
        return {"dl_src": source, "dl_dst": destination}
    return {"eth_src": source, "eth_dst": destination}


def add_flow(datapath, priority, match, actions):
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    if ofp.OFP_VERSION == ofproto_v1_0.OFP_VERSION:
        flow = parser.OFPFlowMod(datapath, match, 0, ofp.OFPFC_ADD, priority=priority, actions=actions)
    else:
        apply = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)]
        flow = parser.OFPFlowMod(datapath=datapath, priority=priority, match=match, instructions=apply)
    datapath.send_msg(flow)


def delete_flow(datapath, source, destination):
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    match = parser.OFPMatch(**match_fields(datapath, source, destination))
    if ofp.OFP_VERSION == ofproto_v1_0.OFP_VERSION:
        flow = parser.OFPFlowMod(datapath, match, 0, ofp.OFPFC_DELETE, out_port=ofp.OFPP_NONE)
    else:
        flow = parser.OFPFlowMod(
            datapath=datapath, command=ofp.OFPFC_DELETE, match=match, out_port=ofp.OFPP_ANY, out_group=ofp.OFPG_ANY
        )
    datapath.send_msg(flow)


def send_packet(datapath, port, data):
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    in_port = ofp.OFPP_NONE if ofp.OFP_VERSION == ofproto_v1_0.OFP_VERSION else ofp.OFPP_CONTROLLER
    datapath.send_msg(
        parser.OFPPacketOut(
            datapath=datapath,
            buffer_id=0xFFFFFFFF,
            in_port=in_port,
            actions=[parser.OFPActionOutput(port)],
            data=data,
        )
    )
