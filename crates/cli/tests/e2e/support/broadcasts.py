"""Broadcasts, numbered, from eth0, one in a millisecond, with the argument "send"; and those of others, counted. For each line on
stdin it says what there was since the line before: how many it has sent, how many of others' it has got, which of these came most often
and how often, and how many came more than once.

Usage: broadcasts.py [send]
"""

import collections
import json
import select
import socket
import struct
import sys
import time

# For local experiments (IEEE 802, clause 9.2.4).
ETHERTYPE = 0x88B5
INTERVAL = 0.001


def main(sends):
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    wire.bind(("eth0", ETHERTYPE))
    header = b"\xff" * 6 + wire.getsockname()[4] + struct.pack("!H", ETHERTYPE)
    number, sent, copies = 0, 0, collections.Counter()
    due = time.monotonic()
    print("ready", flush=True)
    while True:
        wait = max(0, due - time.monotonic()) if sends else None
        ready, _, _ = select.select([wire, sys.stdin], [], [], wait)
        if sends and time.monotonic() >= due:
            wire.send(header + struct.pack("!Q", number) + bytes(38))
            number, sent, due = number + 1, sent + 1, due + INTERVAL
        if wire in ready:
            frame, sender = wire.recvfrom(128)
            if sender[2] != socket.PACKET_OUTGOING:
                copies[struct.unpack("!Q", frame[14:22])] += 1
        if sys.stdin in ready:
            if not sys.stdin.readline():
                return
            again = sum(1 for count in copies.values() if count > 1)
            most = max(copies.values(), default=0)
            counts = {"sent": sent, "received": len(copies), "most": most, "again": again}
            print(json.dumps(counts), flush=True)
            sent, copies = 0, collections.Counter()


main("send" in sys.argv[1:])
