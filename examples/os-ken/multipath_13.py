"""Reads link labels as OpenFlow 1.3 has them: `curr_speed` of a port, with the capacity as `max_speed`, in kbit/s.

Nothing here is Weir's own: switch-only, the same application balances by what its ports say they can do.
"""

from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_3

from multipath import Multipath
from shortest_path import TABLE_MISS, add_flow


class Multipath13(Multipath):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def switch_ready(self, event):
        datapath = event.msg.datapath
        ofp, parser = datapath.ofproto, datapath.ofproto_parser
        to_controller = [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER)]
        add_flow(datapath, TABLE_MISS, parser.OFPMatch(), to_controller)

    @set_ev_cls(ofp_event.EventOFPPortDescStatsReply, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def ports_known(self, event):
        for port in event.msg.body:
            self.label_came(event.msg.datapath.id, port.port_no, port.curr_speed, port.max_speed)

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def port_changed(self, event):
        port = event.msg.desc
        self.label_came(event.msg.datapath.id, port.port_no, port.curr_speed, port.max_speed)
