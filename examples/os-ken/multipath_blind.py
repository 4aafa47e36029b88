"""The multipath load balancer on OpenFlow 1.0 without labels: all links look alike."""

from os_ken.ofproto import ofproto_v1_0

from multipath import Multipath


class MultipathBlind(Multipath):
    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION]
