"""Reads link labels as the 2013 paper put them into OpenFlow 1.0: 32 bits behind each port description, in kbit/s.

os-ken does not know that field, so its port description is made four bytes longer before it reads any. It therefore
works only with a switch, or Weir, that sends the field.
"""

import struct
from collections import namedtuple

from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.ofproto import ofproto_v1_0, ofproto_v1_0_parser

from multipath import Multipath

NOTHING_KNOWN = 0xFFFFFFFF
STANDARD = ofproto_v1_0.OFP_PHY_PORT_PACK_STR
ofproto_v1_0.OFP_PHY_PORT_SIZE += 4


class Port(namedtuple("Port", ofproto_v1_0_parser.OFPPhyPort._fields + ("label",))):
    @classmethod
    def parser(cls, buf, offset):
        fields = list(struct.unpack_from(STANDARD, buf, offset))
        (label,) = struct.unpack_from("!I", buf, offset + struct.calcsize(STANDARD))
        fields[1] = ofproto_v1_0_parser.addrconv.mac.bin_to_text(fields[1])
        fields[2] = fields[2].rstrip(b"\0")
        return cls(*fields, label)


ofproto_v1_0_parser.OFPPhyPort = Port


class Multipath10(Multipath):
    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION]

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, [CONFIG_DISPATCHER, MAIN_DISPATCHER])
    def switch_ready(self, event):
        for port in event.msg.ports.values():
            self.read(event.msg.datapath_id, port)

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def port_changed(self, event):
        self.read(event.msg.datapath.id, event.msg.desc)

    def read(self, dpid, port):
        if port.label != NOTHING_KNOWN:
            self.label_came(dpid, port.port_no, port.label)
