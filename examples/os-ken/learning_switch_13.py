"""A MAC learning switch on OpenFlow 1.3.

It knows nothing of slices: run it on a switch of its own or as a tenant of Weir, it is the same application.
"""

from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, HANDSHAKE_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ether_types, ethernet, packet
from os_ken.ofproto import ofproto_v1_3

from events import error_fields, say

PRIORITY = 10
TABLE_MISS = 0


class LearningSwitch13(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.port_of = {}  # dpid -> MAC address -> port

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def switch_ready(self, event):
        datapath = event.msg.datapath
        ofp, parser = datapath.ofproto, datapath.ofproto_parser
        self.port_of[datapath.id] = {}
        to_controller = [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER)]
        self.add_flow(datapath, TABLE_MISS, parser.OFPMatch(), to_controller)
        datapath.send_msg(parser.OFPPortDescStatsRequest(datapath))

    @set_ev_cls(ofp_event.EventOFPPortDescStatsReply, MAIN_DISPATCHER)
    def ports_known(self, event):
        ports = sorted(port.port_no for port in event.msg.body)
        say("switch", dpid=event.msg.datapath.id, openflow="1.3", ports=ports)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        message = event.msg
        datapath, ofp, parser = message.datapath, message.datapath.ofproto, message.datapath.ofproto_parser
        in_port = message.match["in_port"]
        frame = packet.Packet(message.data).get_protocol(ethernet.ethernet)
        if frame.ethertype == ether_types.ETH_TYPE_LLDP:
            return
        say("packet_in", dpid=datapath.id, in_port=in_port, src=frame.src, dst=frame.dst)

        port_of = self.port_of.setdefault(datapath.id, {})
        port_of[frame.src] = in_port
        out_port = port_of.get(frame.dst, ofp.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(out_port)]
        if out_port != ofp.OFPP_FLOOD:
            match = parser.OFPMatch(in_port=in_port, eth_src=frame.src, eth_dst=frame.dst)
            self.add_flow(datapath, PRIORITY, match, actions)
        buffered = message.buffer_id != ofp.OFP_NO_BUFFER
        datapath.send_msg(
            parser.OFPPacketOut(
                datapath=datapath,
                buffer_id=message.buffer_id,
                in_port=in_port,
                actions=actions,
                data=None if buffered else message.data,
            )
        )

    def add_flow(self, datapath, priority, match, actions):
        ofp, parser = datapath.ofproto, datapath.ofproto_parser
        apply = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)]
        datapath.send_msg(parser.OFPFlowMod(datapath=datapath, priority=priority, match=match, instructions=apply))

    @set_ev_cls(ofp_event.EventOFPErrorMsg, [HANDSHAKE_DISPATCHER, CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def refused(self, event):
        say("error", dpid=event.msg.datapath.id, **error_fields(event.msg))
