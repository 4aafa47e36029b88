"""A learning switch on os-ken, for OpenFlow 1.3: answers each PACKET_IN by one PACKET_OUT."""

import sys

from os_ken import cfg
from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_3


class Switch(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ports = {}

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def packet_in(self, event):
        message = event.msg
        datapath = message.datapath
        parser, proto = datapath.ofproto_parser, datapath.ofproto
        in_port = message.match["in_port"]
        frame = packet.Packet(message.data).get_protocol(ethernet.ethernet)
        known = self.ports.setdefault(datapath.id, {})
        known[frame.src] = in_port
        out = parser.OFPPacketOut(
            datapath=datapath,
            buffer_id=message.buffer_id,
            in_port=in_port,
            actions=[parser.OFPActionOutput(known.get(frame.dst, proto.OFPP_FLOOD))],
            data=message.data if message.buffer_id == proto.OFP_NO_BUFFER else None,
        )
        datapath.send_msg(out)


if __name__ == "__main__":
    arguments = ["--ofp-tcp-listen-port", sys.argv[1], "--ofp-listen-host", "127.0.0.1"]
    cfg.CONF(args=arguments, project="weir", default_config_files=[])
    app_manager.AppManager.run_apps([__name__, "os_ken.controller.ofp_handler"])
