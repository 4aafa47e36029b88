"""A controller that carries out the orders on stdin and prints all that comes back on stdout.

One JSON object a line, to every connected switch or to the one named by "dpid":

    {"send": "flow", "command": "add", "xid": 7, "flow": {"priority": 9, "match": {"in_port": 1},
                                                          "actions": [{"type": "OUTPUT", "port": 2}]}}
    {"send": "flow_stats", "xid": 8, "flow": {"match": {}}}
    {"send": "group", "command": "add", "xid": 12, "group": 1, "type": "SELECT",
     "buckets": [{"weight": 1, "actions": [{"type": "OUTPUT", "port": 2}]}]}
    {"send": "group_stats", "xid": 13}
    {"send": "port_stats" | "port_desc" | "desc" | "barrier" | "echo" | "config", "xid": 9}
    {"send": "role", "xid": 10, "role": "MASTER", "generation_id": 1}
    {"send": "port_mod", "xid": 11, "port": 2, "set": ["PORT_DOWN"], "clear": ["NO_FWD"]}

Groups are of 1.3. Flows are written as in os-ken's ofctl library (os_ken.lib.ofctl_v1_0, ofctl_v1_3). Every message that arrives is
printed with its xid; an ERROR with its type, code and the bytes it refers to. It ends when stdin does.
"""

import json
import os
import sys

from eventlet import tpool
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, DEAD_DISPATCHER, HANDSHAKE_DISPATCHER, MAIN_DISPATCHER
from os_ken.controller.handler import set_ev_cls
from os_ken.lib import hub, ofctl_v1_0, ofctl_v1_3
from os_ken.ofproto import ofproto_v1_0, ofproto_v1_3

from events import error_fields, say

NOT_COUNTED = (1 << 64) - 1
VERSIONS = {"1.0": [ofproto_v1_0.OFP_VERSION], "1.3": [ofproto_v1_3.OFP_VERSION]}
FLOW_COMMANDS = {
    "add": "OFPFC_ADD",
    "modify": "OFPFC_MODIFY",
    "modify_strict": "OFPFC_MODIFY_STRICT",
    "delete": "OFPFC_DELETE",
    "delete_strict": "OFPFC_DELETE_STRICT",
}


class FlowInstaller(app_manager.OSKenApp):
    OFP_VERSIONS = VERSIONS.get(os.environ.get("OPENFLOW"), VERSIONS["1.0"] + VERSIONS["1.3"])

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.switches = {}  # dpid -> datapath
        hub.spawn(self.obey_stdin)

    def obey_stdin(self):
        # In a thread of the system's: a read that waits would hold up os-ken's own.
        while line := tpool.execute(sys.stdin.readline):
            try:
                order = json.loads(line)
                named = order.get("dpid")
                for datapath in [dp for dpid, dp in self.switches.items() if named in (None, dpid)]:
                    send(datapath, order)
            except Exception as error:  # noqa: BLE001 - whoever wrote the order wants to read what is wrong with it
                say("bad_order", order=line.strip(), why=repr(error))
        os._exit(0)  # os-ken itself has no end

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def switch_changed(self, event):
        datapath = event.datapath
        if event.state == MAIN_DISPATCHER:
            self.switches[datapath.id] = datapath
            ports = sorted(datapath.ports) if datapath.ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION else None
            say("switch", dpid=datapath.id, openflow="1.%d" % (datapath.ofproto.OFP_VERSION - 1), ports=ports)
        elif self.switches.get(datapath.id) is datapath:
            del self.switches[datapath.id]
            say("switch_left", dpid=datapath.id)

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [HANDSHAKE_DISPATCHER, CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def refused(self, event):
        say("error", dpid=event.msg.datapath.id, **error_fields(event.msg))

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        message = event.msg
        in_port = message.in_port if hasattr(message, "in_port") else message.match["in_port"]
        say("packet_in", dpid=message.datapath.id, in_port=in_port, data=message.data)

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, MAIN_DISPATCHER)
    def flow_removed(self, event):
        message = event.msg
        say("flow_removed", dpid=message.datapath.id, cookie=message.cookie, priority=message.priority,
            reason=message.reason, match=readable(message), packets=message.packet_count)

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def port_status(self, event):
        message = event.msg
        say("port_status", dpid=message.datapath.id, reason=message.reason, port=message.desc.port_no,
            config=message.desc.config, state=message.desc.state)

    @set_ev_cls(ofp_event.EventOFPBarrierReply, MAIN_DISPATCHER)
    def barrier_reply(self, event):
        say("barrier_reply", dpid=event.msg.datapath.id, xid=event.msg.xid)

    @set_ev_cls(ofp_event.EventOFPEchoReply, [HANDSHAKE_DISPATCHER, CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def echo_reply(self, event):
        say("echo_reply", dpid=event.msg.datapath.id, xid=event.msg.xid, data=event.msg.data)

    @set_ev_cls(ofp_event.EventOFPRoleReply, MAIN_DISPATCHER)
    def role_reply(self, event):
        say("role_reply", dpid=event.msg.datapath.id, xid=event.msg.xid, role=event.msg.role)

    @set_ev_cls(ofp_event.EventOFPGetConfigReply, MAIN_DISPATCHER)
    def config_reply(self, event):
        message = event.msg
        say("config_reply", dpid=message.datapath.id, xid=message.xid, miss_send_len=message.miss_send_len)

    @set_ev_cls(ofp_event.EventOFPFlowStatsReply, MAIN_DISPATCHER)
    def flow_stats_reply(self, event):
        flows = [
            {
                "table": flow.table_id,
                "priority": flow.priority,
                "cookie": flow.cookie,
                "packets": flow.packet_count,
                "duration": flow.duration_sec,
                "match": readable(event.msg, flow.match),
            }
            for flow in event.msg.body
        ]
        self.stats_reply("flow_stats", event.msg, flows)

    @set_ev_cls(ofp_event.EventOFPGroupStatsReply, MAIN_DISPATCHER)
    def group_stats_reply(self, event):
        groups = [
            {
                "group": group.group_id,
                "packets": group.packet_count,
                "buckets": [bucket.packet_count for bucket in group.bucket_stats],
                "references": group.ref_count,
            }
            for group in event.msg.body
        ]
        self.stats_reply("group_stats", event.msg, groups)

    @set_ev_cls(ofp_event.EventOFPPortStatsReply, MAIN_DISPATCHER)
    def port_stats_reply(self, event):
        ports = [
            {
                "port": port.port_no,
                "received": counted(port.rx_packets, port.rx_bytes),
                "sent": counted(port.tx_packets, port.tx_bytes),
            }
            for port in event.msg.body
        ]
        self.stats_reply("port_stats", event.msg, ports)

    @set_ev_cls(ofp_event.EventOFPPortDescStatsReply, MAIN_DISPATCHER)
    def port_desc_reply(self, event):
        self.stats_reply("port_desc", event.msg, [port.port_no for port in event.msg.body])

    @set_ev_cls(ofp_event.EventOFPDescStatsReply, MAIN_DISPATCHER)
    def desc_reply(self, event):
        self.stats_reply("desc", event.msg, repr(event.msg.body))

    def stats_reply(self, kind, message, body):
        say("stats", kind=kind, dpid=message.datapath.id, xid=message.xid, more=bool(message.flags & 1), body=body)


def counted(packets, octets):
    """Packets and bytes, or nothing where the switch says that it does not count."""
    return None if packets == NOT_COUNTED else [packets, octets]


def readable(message, match=None):
    """A match with the names that an order uses."""
    is_10 = message.datapath.ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION
    return (ofctl_v1_0 if is_10 else ofctl_v1_3).match_to_str(message.match if match is None else match)


def send(datapath, order):
    message = build(datapath, order)
    if "xid" in order:
        message.set_xid(order["xid"])
    datapath.send_msg(message)


def build(datapath, order):
    ofp, parser = datapath.ofproto, datapath.ofproto_parser
    is_10 = ofp.OFP_VERSION == ofproto_v1_0.OFP_VERSION
    kind = order["send"]
    flow = order.get("flow", {})
    if kind == "flow":
        command = getattr(ofp, FLOW_COMMANDS[order["command"]])
        return flow_mod_10(datapath, command, flow) if is_10 else flow_mod_13(datapath, command, flow)
    if kind == "flow_stats":
        if is_10:
            match = ofctl_v1_0.to_match(datapath, flow.get("match", {}))
            return parser.OFPFlowStatsRequest(datapath, 0, match, 0xFF, ofp.OFPP_NONE)
        match = ofctl_v1_3.to_match(datapath, flow.get("match", {}))
        return parser.OFPFlowStatsRequest(datapath, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, 0, 0, match)
    if kind == "group":
        command = getattr(ofp, "OFPGC_" + order["command"].upper())
        group_type = getattr(ofp, "OFPGT_" + order.get("type", "ALL"))
        buckets = [
            parser.OFPBucket(
                weight=bucket.get("weight", 0),
                watch_port=bucket.get("watch_port", ofp.OFPP_ANY),
                watch_group=ofp.OFPG_ANY,
                actions=[ofctl_v1_3.to_action(datapath, action) for action in bucket["actions"]],
            )
            for bucket in order.get("buckets", [])
        ]
        return parser.OFPGroupMod(datapath, command, group_type, order["group"], buckets)
    if kind == "group_stats":
        return parser.OFPGroupStatsRequest(datapath, 0, ofp.OFPG_ALL)
    if kind == "port_stats":
        every = ofp.OFPP_NONE if is_10 else ofp.OFPP_ANY
        return parser.OFPPortStatsRequest(datapath, 0, every)
    if kind == "port_desc":
        return parser.OFPPortDescStatsRequest(datapath)
    if kind == "desc":
        return parser.OFPDescStatsRequest(datapath, 0)
    if kind == "barrier":
        return parser.OFPBarrierRequest(datapath)
    if kind == "echo":
        return parser.OFPEchoRequest(datapath, order.get("data", "").encode())
    if kind == "config":
        return parser.OFPGetConfigRequest(datapath)
    if kind == "port_mod":
        config, cleared = (
            sum(getattr(ofp, "OFPPC_" + bit) for bit in order.get(bits, [])) for bits in ("set", "clear")
        )
        port = datapath.ports[order["port"]]
        return parser.OFPPortMod(datapath, port.port_no, port.hw_addr, config, config | cleared, 0)
    if kind == "role":
        role = getattr(ofp, "OFPCR_ROLE_" + order["role"])
        return parser.OFPRoleRequest(datapath, role, order.get("generation_id", 0))
    raise ValueError("no such order: %s" % kind)


def flow_mod_10(datapath, command, flow):
    return datapath.ofproto_parser.OFPFlowMod(
        datapath=datapath,
        match=ofctl_v1_0.to_match(datapath, flow.get("match", {})),
        cookie=flow.get("cookie", 0),
        command=command,
        idle_timeout=flow.get("idle_timeout", 0),
        hard_timeout=flow.get("hard_timeout", 0),
        priority=flow.get("priority", 32768),
        out_port=datapath.ofproto.OFPP_NONE,
        flags=flow.get("flags", 0),
        actions=ofctl_v1_0.to_actions(datapath, flow.get("actions", [])),
    )


def flow_mod_13(datapath, command, flow):
    ofp = datapath.ofproto
    return datapath.ofproto_parser.OFPFlowMod(
        datapath=datapath,
        cookie=flow.get("cookie", 0),
        cookie_mask=flow.get("cookie_mask", 0),
        table_id=flow.get("table_id", 0),
        command=command,
        idle_timeout=flow.get("idle_timeout", 0),
        hard_timeout=flow.get("hard_timeout", 0),
        priority=flow.get("priority", 32768),
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
        flags=flow.get("flags", 0),
        match=ofctl_v1_3.to_match(datapath, flow.get("match", {})),
        instructions=ofctl_v1_3.to_actions(datapath, flow.get("actions", [])),
    )
