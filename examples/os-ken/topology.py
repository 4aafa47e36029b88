"""Prints what os-ken's own topology discovery (LLDP probes) finds: switches, links and hosts as they come and go."""

import os_ken.topology.api  # noqa: F401 - it makes the manager start the discovery
from os_ken.base import app_manager
from os_ken.controller.handler import set_ev_cls
from os_ken.ofproto import ofproto_v1_0, ofproto_v1_3
from os_ken.topology import event as topology_event

from events import say


class Topology(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION, ofproto_v1_3.OFP_VERSION]

    @set_ev_cls(topology_event.EventSwitchEnter)
    def switch_came(self, event):
        ports = sorted(port.port_no for port in event.switch.ports)
        say("switch", dpid=event.switch.dp.id, ports=ports)

    @set_ev_cls(topology_event.EventSwitchLeave)
    def switch_left(self, event):
        say("switch_left", dpid=event.switch.dp.id)

    @set_ev_cls(topology_event.EventLinkAdd)
    def link_came(self, event):
        say("link", **ends(event.link))

    @set_ev_cls(topology_event.EventLinkDelete)
    def link_left(self, event):
        say("link_left", **ends(event.link))

    @set_ev_cls(topology_event.EventHostAdd)
    def host_came(self, event):
        host = event.host
        say("host", mac=host.mac, dpid=host.port.dpid, port=host.port.port_no)


def ends(link):
    return {"from": [link.src.dpid, link.src.port_no], "to": [link.dst.dpid, link.dst.port_no]}
