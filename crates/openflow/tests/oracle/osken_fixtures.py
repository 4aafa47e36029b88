"""os-ken as oracle for the codec.

Prints tests/oracle/osken.txt: for each message that os-ken can write, its bytes, made here with os-ken's classes from
the values that the sample of the same name has (tests/support/samples_v10.rs and _v13.rs); for each message in
tests/cases that os-ken can read, what it reads.

    .venv/bin/python crates/openflow/tests/oracle/osken_fixtures.py > crates/openflow/tests/oracle/osken.txt
"""

import json
import logging
import pathlib

from os_ken.ofproto import ofproto_parser, ofproto_protocol
from os_ken.ofproto import ofproto_v1_0 as ofp10
from os_ken.ofproto import ofproto_v1_0_parser as p10
from os_ken.ofproto import ofproto_v1_3 as ofp13
from os_ken.ofproto import ofproto_v1_3_parser as p13

XID = 0x01020304
TCP_PACKET = bytes.fromhex(
    "020000000002020000000001080045000028000100004006" "66cb0a0100010a01000204d2005000000001000000005002200077600000"
)


def mac(last):
    return "02:00:00:00:00:%02x" % last


def written_v10(dp):
    failed = bytes.fromhex("0112000800000007")
    yield "hello", p10.OFPHello(dp)
    yield "error", p10.OFPErrorMsg(dp, type_=ofp10.OFPET_BAD_REQUEST, code=ofp10.OFPBRC_EPERM, data=failed)
    yield "echo request", p10.OFPEchoRequest(dp, b"weir")
    yield "echo reply", p10.OFPEchoReply(dp, b"weir")
    yield "vendor", p10.NXTRoleRequest(dp, 2)
    yield "features request", p10.OFPFeaturesRequest(dp)
    yield "get config request", p10.OFPGetConfigRequest(dp)
    yield "set config", p10.OFPSetConfig(dp, ofp10.OFPC_FRAG_DROP, 128)
    yield "barrier request", p10.OFPBarrierRequest(dp)
    flood = [p10.OFPActionOutput(ofp10.OFPP_FLOOD, 0)]
    yield "packet out, with data", p10.OFPPacketOut(dp, 0xFFFFFFFF, 1, flood, TCP_PACKET)
    yield "packet out, of a buffer", p10.OFPPacketOut(dp, 0x114, ofp10.OFPP_NONE, flood)

    match = p10.OFPMatch(
        in_port=1,
        dl_src=mac(1),
        dl_dst=mac(2),
        dl_vlan=100,
        dl_vlan_pcp=3,
        dl_type=0x0800,
        nw_tos=0x20,
        nw_proto=6,
        nw_src="10.1.0.0",
        nw_src_mask=16,
        nw_dst="10.2.3.0",
        nw_dst_mask=24,
        tp_src=1234,
        tp_dst=80,
    )
    actions = [
        p10.OFPActionVlanVid(7),
        p10.OFPActionVlanPcp(2),
        p10.OFPActionStripVlan(),
        p10.OFPActionSetDlSrc(bytes([2, 0, 0, 0, 0, 3])),
        p10.OFPActionSetDlDst(bytes([2, 0, 0, 0, 0, 4])),
        p10.OFPActionSetNwSrc("10.1.0.1"),
        p10.OFPActionSetNwDst("10.1.0.2"),
        p10.OFPActionSetNwTos(0x40),
        p10.OFPActionSetTpSrc(8080),
        p10.OFPActionSetTpDst(8081),
        p10.OFPActionEnqueue(2, 9),
        p10.NXActionNote([1, 2, 3, 4, 5, 6]),
        p10.OFPActionOutput(ofp10.OFPP_CONTROLLER, 128),
        p10.OFPActionOutput(ofp10.OFPP_IN_PORT, 0),
        p10.OFPActionOutput(3, 0),
    ]
    cookie = 0x0123456789ABCDEF
    yield "flow mod: add, every field and action", p10.OFPFlowMod(
        dp,
        match=match,
        cookie=cookie,
        command=ofp10.OFPFC_ADD,
        idle_timeout=5,
        hard_timeout=10,
        priority=100,
        buffer_id=0x123,
        out_port=ofp10.OFPP_NONE,
        flags=ofp10.OFPFF_SEND_FLOW_REM | ofp10.OFPFF_CHECK_OVERLAP,
        actions=actions,
    )
    for name, command, out_port in [
        ("flow mod: modify", ofp10.OFPFC_MODIFY, ofp10.OFPP_NONE),
        ("flow mod: modify strict", ofp10.OFPFC_MODIFY_STRICT, ofp10.OFPP_NONE),
        ("flow mod: delete, by output port", ofp10.OFPFC_DELETE, 2),
        ("flow mod: delete strict", ofp10.OFPFC_DELETE_STRICT, ofp10.OFPP_NONE),
    ]:
        yield name, p10.OFPFlowMod(dp, match=match, cookie=cookie, command=command, out_port=out_port)
    yield "flow mod: everything is dropped", p10.OFPFlowMod(
        dp, match=p10.OFPMatch(), cookie=0, command=ofp10.OFPFC_ADD
    )
    yield "port mod", p10.OFPPortMod(
        dp,
        port_no=3,
        hw_addr=mac(3),
        config=ofp10.OFPPC_PORT_DOWN,
        mask=ofp10.OFPPC_PORT_DOWN | ofp10.OFPPC_NO_FLOOD,
        advertise=ofp10.OFPPF_1GB_FD | ofp10.OFPPF_COPPER,
    )
    yield "queue get config request", p10.OFPQueueGetConfigRequest(dp, 1)
    everything = p10.OFPMatch()
    yield "stats request: desc", p10.OFPDescStatsRequest(dp, 0)
    yield "stats request: flow", p10.OFPFlowStatsRequest(dp, 0, everything, 0xFF, 2)
    yield "stats request: aggregate", p10.OFPAggregateStatsRequest(dp, 0, everything, 0xFF, ofp10.OFPP_NONE)
    yield "stats request: table", p10.OFPTableStatsRequest(dp, 0)
    yield "stats request: port, all", p10.OFPPortStatsRequest(dp, 0, ofp10.OFPP_NONE)
    yield "stats request: queue, all", p10.OFPQueueStatsRequest(dp, 0, ofp10.OFPP_ALL, ofp10.OFPQ_ALL)


def written_v13(dp):
    failed = bytes.fromhex("0414000800000007")
    yield "error", p13.OFPErrorMsg(dp, type_=ofp13.OFPET_BAD_MATCH, code=ofp13.OFPBMC_BAD_PREREQ, data=failed)
    yield "echo request", p13.OFPEchoRequest(dp, b"weir")
    yield "echo reply", p13.OFPEchoReply(dp, b"weir")
    yield "experimenter", p13.OFPExperimenter(dp, 0x2320, 16, bytes([0, 0, 0, 1]))
    yield "features request", p13.OFPFeaturesRequest(dp)
    yield "get config request", p13.OFPGetConfigRequest(dp)
    yield "set config", p13.OFPSetConfig(dp, ofp13.OFPC_FRAG_REASM, ofp13.OFPCML_NO_BUFFER)
    yield "barrier request", p13.OFPBarrierRequest(dp)
    actions = [p13.OFPActionOutput(ofp13.OFPP_FLOOD, 0), p13.OFPActionGroup(4)]
    yield "packet out, with data", p13.OFPPacketOut(dp, ofp13.OFP_NO_BUFFER, 1, actions, TCP_PACKET)
    yield "packet out, of a buffer", p13.OFPPacketOut(dp, 0x114, ofp13.OFPP_CONTROLLER, actions)
    yield from flow_mods_v13(dp)
    yield from groups_and_meters_v13(dp)
    yield "port mod", p13.OFPPortMod(
        dp,
        port_no=3,
        hw_addr=mac(3),
        config=ofp13.OFPPC_PORT_DOWN,
        mask=ofp13.OFPPC_PORT_DOWN | ofp13.OFPPC_NO_FWD,
        advertise=ofp13.OFPPF_1GB_FD | ofp13.OFPPF_COPPER,
    )
    yield "table mod", p13.OFPTableMod(dp, ofp13.OFPTT_ALL, 3)
    yield "queue get config request", p13.OFPQueueGetConfigRequest(dp, 1)
    for name, role in [
        ("no change", ofp13.OFPCR_ROLE_NOCHANGE),
        ("equal", ofp13.OFPCR_ROLE_EQUAL),
        ("master", ofp13.OFPCR_ROLE_MASTER),
        ("slave", ofp13.OFPCR_ROLE_SLAVE),
    ]:
        yield "role request: " + name, p13.OFPRoleRequest(dp, role, 0x8877665544332211)
    yield "get async request", p13.OFPGetAsyncRequest(dp)
    yield "set async", p13.OFPSetAsync(dp, [5, 2], [7, 1], [15, 0])
    yield from multipart_requests_v13(dp)


def flow_mods_v13(dp):
    match = p13.OFPMatch(eth_type=0x0800, vlan_vid=0x1064)
    actions = [
        p13.OFPActionPopVlan(),
        p13.OFPActionPushVlan(0x88A8),
        p13.OFPActionSetField(vlan_vid=0x1007),
        p13.OFPActionSetField(eth_src=mac(9)),
        p13.OFPActionSetField(ipv4_dst="10.1.0.9"),
        p13.OFPActionSetNwTtl(64),
        p13.OFPActionDecNwTtl(),
        p13.OFPActionPushMpls(0x8847),
        p13.OFPActionSetMplsTtl(10),
        p13.OFPActionDecMplsTtl(),
        p13.OFPActionPopMpls(0x0800),
        p13.OFPActionSetQueue(9),
        p13.NXActionNote([1, 2, 3, 4, 5, 6]),
        p13.OFPActionGroup(4),
        p13.OFPActionOutput(ofp13.OFPP_CONTROLLER, 128),
        p13.OFPActionOutput(3, 0),
    ]
    instructions = [
        p13.OFPInstructionMeter(1),
        p13.OFPInstructionActions(ofp13.OFPIT_APPLY_ACTIONS, actions),
        p13.OFPInstructionActions(ofp13.OFPIT_CLEAR_ACTIONS, []),
        p13.OFPInstructionActions(ofp13.OFPIT_WRITE_ACTIONS, [p13.OFPActionOutput(2, 0)]),
        p13.OFPInstructionWriteMetadata(0x1200, 0xFF00),
        p13.OFPInstructionGotoTable(7),
    ]

    def flow_mod(**fields):
        fields = {"out_port": ofp13.OFPP_ANY, "out_group": ofp13.OFPG_ANY, "instructions": [], **fields}
        return p13.OFPFlowMod(dp, **fields)

    yield "flow mod: add, every field, instruction and action", flow_mod(
        cookie=0xC0,
        table_id=3,
        match=match,
        idle_timeout=5,
        hard_timeout=10,
        priority=100,
        buffer_id=0x123,
        flags=ofp13.OFPFF_SEND_FLOW_REM | ofp13.OFPFF_CHECK_OVERLAP | ofp13.OFPFF_RESET_COUNTS,
        instructions=instructions,
    )
    for name, command, more in [
        ("modify", ofp13.OFPFC_MODIFY, {}),
        ("modify strict", ofp13.OFPFC_MODIFY_STRICT, {}),
        (
            "delete, by cookie, port and group",
            ofp13.OFPFC_DELETE,
            {"cookie_mask": 0xFF, "out_port": 2, "out_group": 4},
        ),
        ("delete strict", ofp13.OFPFC_DELETE_STRICT, {}),
    ]:
        yield "flow mod: " + name, flow_mod(cookie=0xC0, table_id=3, match=match, command=command, **more)
    for name, fields in MATCHES.items():
        yield "flow mod: match " + name, flow_mod(match=p13.OFPMatch(**fields))
    lacking = [
        p13.OFPActionCopyTtlOut(),
        p13.OFPActionCopyTtlIn(),
        p13.OFPActionPushPbb(0x88E7),
        p13.OFPActionSetField(pbb_isid=0x123456),
        p13.OFPActionPopPbb(),
    ]
    apply = [p13.OFPInstructionActions(ofp13.OFPIT_APPLY_ACTIONS, lacking)]
    yield "flow mod: actions that Open vSwitch lacks", flow_mod(match=p13.OFPMatch(), instructions=apply)
    yield "flow mod: match fields that Open vSwitch lacks, PBB", flow_mod(
        match=p13.OFPMatch(in_port=1, in_phy_port=2, eth_type=0x88E7, pbb_isid=(0x123400, 0xFFFF00))
    )
    yield "flow mod: match fields that Open vSwitch lacks, IPv6 extension headers", flow_mod(
        match=p13.OFPMatch(eth_type=0x86DD, ipv6_exthdr=(0x08, 0x1F))
    )
    yield "flow mod: everything is dropped", flow_mod(match=p13.OFPMatch())


MATCHES = {
    "Ethernet, VLAN, metadata, tunnel": {
        "in_port": 1,
        "metadata": (0x1200, 0xFF00),
        "eth_dst": ("01:00:00:00:00:00", "01:00:00:00:00:00"),
        "eth_src": ("02:00:00:01:00:00", "ff:ff:ff:ff:00:00"),
        "eth_type": 0x0800,
        "vlan_vid": 0x1064,
        "vlan_pcp": 3,
        "tunnel_id": (0x77, 0xFF),
    },
    "TCP over IPv4": {
        "eth_type": 0x0800,
        "ip_dscp": 8,
        "ip_ecn": 1,
        "ip_proto": 6,
        "ipv4_src": ("10.1.0.0", "255.255.0.0"),
        "ipv4_dst": ("10.2.0.3", "255.255.255.255"),
        "tcp_src": 1234,
        "tcp_dst": 80,
    },
    "UDP over IPv6": {
        "eth_type": 0x86DD,
        "ip_proto": 17,
        "udp_src": 53,
        "udp_dst": 5353,
        "ipv6_src": ("2001:db8::", "ffff:ffff:ffff:ffff::"),
        "ipv6_dst": "2001:db8::2",
        "ipv6_flabel": 0x12345,
    },
    "SCTP": {"eth_type": 0x0800, "ip_proto": 132, "sctp_src": 9, "sctp_dst": 10},
    "ICMP": {"eth_type": 0x0800, "ip_proto": 1, "icmpv4_type": 8, "icmpv4_code": 0},
    "ARP": {
        "eth_type": 0x0806,
        "arp_op": 1,
        "arp_spa": ("10.1.0.0", "255.255.0.0"),
        "arp_tpa": "10.1.0.2",
        "arp_sha": mac(1),
        "arp_tha": mac(2),
    },
    "IPv6 neighbour solicitation": {
        "eth_type": 0x86DD,
        "ip_proto": 58,
        "icmpv6_type": 135,
        "icmpv6_code": 0,
        "ipv6_nd_target": "2001:db8::9",
        "ipv6_nd_sll": mac(1),
    },
    "IPv6 neighbour advertisement": {
        "eth_type": 0x86DD,
        "ip_proto": 58,
        "icmpv6_type": 136,
        "icmpv6_code": 0,
        "ipv6_nd_target": "2001:db8::9",
        "ipv6_nd_tll": mac(1),
    },
    "MPLS": {"eth_type": 0x8847, "mpls_label": 0x12345, "mpls_tc": 5, "mpls_bos": 1},
}


def groups_and_meters_v13(dp):
    output = [p13.OFPActionOutput(1, 0)]
    any_port, any_group = ofp13.OFPP_ANY, ofp13.OFPG_ANY
    weighted = [p13.OFPBucket(30, any_port, any_group, output), p13.OFPBucket(70, any_port, any_group, [])]
    watched = [p13.OFPBucket(0, 1, 2, output)]
    yield "group mod: add select", p13.OFPGroupMod(dp, ofp13.OFPGC_ADD, ofp13.OFPGT_SELECT, 4, weighted)
    yield "group mod: modify fast failover", p13.OFPGroupMod(dp, ofp13.OFPGC_MODIFY, ofp13.OFPGT_FF, 4, watched)
    yield "group mod: delete", p13.OFPGroupMod(dp, ofp13.OFPGC_DELETE, ofp13.OFPGT_ALL, ofp13.OFPG_ALL, [])
    bands = [p13.OFPMeterBandDrop(1024, 64), p13.OFPMeterBandDscpRemark(512, 32, 1)]
    flags = ofp13.OFPMF_KBPS | ofp13.OFPMF_BURST | ofp13.OFPMF_STATS
    yield "meter mod: add", p13.OFPMeterMod(dp, ofp13.OFPMC_ADD, flags, 5, bands)
    yield "meter mod: delete all", p13.OFPMeterMod(dp, ofp13.OFPMC_DELETE, ofp13.OFPMF_KBPS, ofp13.OFPM_ALL, [])


def multipart_requests_v13(dp):
    everything = (dp, 0, ofp13.OFPTT_ALL, ofp13.OFPP_ANY, ofp13.OFPG_ANY, 0, 0, p13.OFPMatch())
    for name, request in [
        ("desc", p13.OFPDescStatsRequest(dp, 0)),
        ("flow", p13.OFPFlowStatsRequest(dp, 0, 3, 2, 4, 0x10, 0xFF, p13.OFPMatch(in_port=1))),
        ("aggregate", p13.OFPAggregateStatsRequest(*everything)),
        ("table", p13.OFPTableStatsRequest(dp, 0)),
        ("port, all", p13.OFPPortStatsRequest(dp, 0, ofp13.OFPP_ANY)),
        ("queue, all", p13.OFPQueueStatsRequest(dp, 0, ofp13.OFPP_ANY, ofp13.OFPQ_ALL)),
        ("group, all", p13.OFPGroupStatsRequest(dp, 0, ofp13.OFPG_ALL)),
        ("group desc", p13.OFPGroupDescStatsRequest(dp, 0)),
        ("group features", p13.OFPGroupFeaturesStatsRequest(dp, 0)),
        ("meter, all", p13.OFPMeterStatsRequest(dp, 0, ofp13.OFPM_ALL)),
        ("meter config", p13.OFPMeterConfigStatsRequest(dp, 0, 5)),
        ("meter features", p13.OFPMeterFeaturesStatsRequest(dp, 0)),
        ("table features", p13.OFPTableFeaturesStatsRequest(dp, 0, [])),
        ("port desc", p13.OFPPortDescStatsRequest(dp, 0)),
        ("experimenter", p13.OFPExperimenterStatsRequest(dp, 0, 0x2320, 3, b"")),
    ]:
        yield "multipart request: " + name, request


def cases(path):
    """The names and bytes of a case file."""
    found = []
    for line in path.read_text().splitlines():
        if line.startswith("# "):
            found.append([line[2:], ""])
        elif line.startswith("hex:"):
            found[-1][1] += line[4:]
        elif line.startswith("    "):
            found[-1][1] += line
    return [(name, bytes.fromhex(digits)) for name, digits in found]


def read(dp, frame):
    """What os-ken reads in a message, or None where it has no reader for the type (those that only switches read)."""
    version, type_, length, xid = ofproto_parser.header(frame)
    readers = {1: p10, 4: p13}[version]._MSG_PARSERS
    if type_ not in readers or getattr(readers[type_], "__self__", None) is None:
        return None
    try:
        message = readers[type_](dp, version, type_, length, xid, frame)
    except (AttributeError, TypeError):
        return None
    return json.dumps(message.to_jsondict(), sort_keys=True, default=lambda value: bytes(value).hex())


def main():
    logging.disable(logging.CRITICAL)
    folder = pathlib.Path(__file__).resolve().parent.parent / "cases"
    print("What os-ken writes and reads; printed by osken_fixtures.py, which see.")
    for version, label, written in [(1, "v10", written_v10), (4, "v13", written_v13)]:
        dp = ofproto_protocol.ProtocolDesc(version=version)
        for name, message in written(dp):
            message.set_xid(XID)
            message.serialize()
            print(f"\n# {label} {name}\nwritten: {bytes(message.buf).hex()}")
        for name, frame in cases(folder / f"{label}.txt"):
            seen = read(dp, frame)
            if seen is not None:
                print(f"\n# {label} {name}\nread: {seen}")


main()
