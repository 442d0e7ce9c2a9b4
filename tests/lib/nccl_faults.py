# SPDX-License-Identifier: Apache-2.0
"""The faults of a job on NVIDIA's NCCL in the laboratory: struct lab_faults of lab/nccl/faults.h,
and the connections that the laboratory has seen below NCCL's sockets
(lab/nccl/device/socket_fault.cc)."""

import collections
import mmap
import struct

MAX_SOCKETS = 64
SENDS_NOTHING, RECEIVES_NOTHING, SENDS_SLOWLY = 1, 2, 3
STARTS_NO_KERNEL, STOPS = 1, 2
HEAD, SOCKET = struct.Struct("=4I"), struct.Struct("=Q2I")

Connection = collections.namedtuple("Connection", "sender receiver number address")


class Faults:
    """The file that all ranks of a job map."""

    def __init__(self, directory):
        self.path, self.sockets_path = directory + "/faults", directory + "/sockets"
        with open(self.path, "wb") as f:
            f.truncate(HEAD.size + MAX_SOCKETS * SOCKET.size)
        with open(self.path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), 0)

    def variables(self):
        return {"LAB_FAULTS": self.path, "LAB_SOCKETS": self.sockets_path}

    def break_sockets(self, addresses, fault, size):
        """size: bytes that still pass, or bytes per second of a slow socket."""
        for i, address in enumerate(addresses):
            self.map[HEAD.size + i * SOCKET.size:HEAD.size + (i + 1) * SOCKET.size] = SOCKET.pack(
                address, fault, size)
        self.map[12:16] = struct.pack("=I", len(addresses))

    def break_gpu(self, rank, fault, slices=0):
        self.map[4:12] = struct.pack("=2I", rank, slices)
        self.map[0:4] = struct.pack("=I", fault)

    def connections(self):
        """All connections of the network transport that carry data. NCCL may use several
        sockets for one. `number` counts the connections from one rank to another, in the order in
        which the sender made them."""
        ends, order = {"connect": {}, "accept": {}, "sends": {}}, []
        with open(self.sockets_path, encoding="ascii") as f:
            for line in f:
                rank, role, address = line.split()
                if role == "connect" and address not in ends[role]:
                    order.append(address)
                ends[role][address] = int(rank)
        found, count = [], collections.Counter()
        for address in order:
            if address not in ends["accept"]:
                continue
            pair = ends["connect"][address], ends["accept"][address]
            if address in ends["sends"]:
                found.append(Connection(*pair, count[pair], int(address)))
            count[pair] += 1
        return found
