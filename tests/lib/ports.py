# SPDX-License-Identifier: Apache-2.0
"""TCP ports of loopback that stay a test's own until it ends.

A port that bind() chose and close() gave back may belong to another process when its program comes
to it: the kernel hands the same range to every connection that goes out, and a client that tries a
port of that range before the server listens can even be connected to itself (RFC 793, simultaneous
open). These ports lie below that range, and an abstract socket of the same number keeps other tests
away for as long as this process lives.
"""
import os
import random
import socket

FIRST = 15000
_held = []  # closed by the end of the process, and not before


def _range():
    """Below the kernel's own range; a machine whose range starts lower gets the ports above it."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        low, high = map(int, f.read().split())
    return range(FIRST, low) if low - FIRST >= 1000 else range(high + 1, 65536)


def _is_free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def unused_port(among=None):
    """among: the allowed ports; otherwise any below the kernel's own range."""
    ports = list(among or _range())
    random.Random(os.urandom(8)).shuffle(ports)
    for port in ports:
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            holder.bind("\0collwatch-test-port-%d" % port)
        except OSError:
            holder.close()
            continue
        if _is_free(port):
            _held.append(holder)
            return port
        holder.close()
    raise RuntimeError("no TCP port of loopback is free")
