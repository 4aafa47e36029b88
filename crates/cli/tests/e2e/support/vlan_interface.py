"""An interface in a VLAN, made of a TAP, for kernels that are built without: what leaves by it leaves by eth0 with the
tag, and what comes to eth0 with the tag comes to it without.

Usage: vlan_interface.py NAME VLAN
"""

import fcntl
import os
import select
import socket
import struct
import sys

ETH_P_ALL, ETH_P_8021Q = 0x0003, 0x8100
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
# The kernel takes a frame's tag out, and hands it over beside the frame: struct tpacket_auxdata of linux/if_packet.h.
SOL_PACKET, PACKET_AUXDATA, TP_STATUS_VLAN_VALID = 263, 8, 0x10
AUXDATA = struct.Struct("IIIHHHH")


def tag_of(ancillary):
    for level, kind, data in ancillary:
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
            status, _, _, _, _, tci, _ = AUXDATA.unpack(data[: AUXDATA.size])
            return tci & 0xFFF if status & TP_STATUS_VLAN_VALID else None
    return None


def main(name, vlan):
    tap = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    wire.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    wire.bind(("eth0", ETH_P_ALL))
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([tap, wire], [], [])
        if tap in ready:
            frame = os.read(tap, 2048)
            wire.send(frame[:12] + struct.pack("!HH", ETH_P_8021Q, vlan) + frame[12:])
        if wire in ready:
            frame, ancillary, _, sender = wire.recvmsg(2048, socket.CMSG_SPACE(AUXDATA.size))
            if sender[2] != socket.PACKET_OUTGOING and tag_of(ancillary) == vlan:
                try:
                    os.write(tap, frame)
                except OSError:
                    pass  # The interface is down.


main(sys.argv[1], int(sys.argv[2]))
