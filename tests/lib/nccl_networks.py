# SPDX-License-Identifier: Apache-2.0
"""A network namespace for each rank of a job, all on one bridge. Packets from one to another can
vanish, as on a broken link. The daemons stay outside: agents reach them by files."""

import contextlib
import itertools
import os

from waiting import call

NUMBERS = itertools.count()
NO_SUCH_STATION = "02:00:00:00:00:fe"


class Networks(contextlib.ExitStack):
    device = "eth0"

    def __init__(self, n):
        super().__init__()
        self.n, self.name = n, f"cw{os.getpid()}x{next(NUMBERS)}"
        self.hub = self.name + "hub"

    def __enter__(self):
        super().__enter__()
        try:
            self.make()
        except BaseException:
            self.close()
            raise
        return self

    def make(self):
        self.add(self.hub)
        call("ip", "-n", self.hub, "link", "add", "bridge", "type", "bridge")
        call("ip", "-n", self.hub, "link", "set", "bridge", "up")
        for rank in range(self.n):
            name, port = self.namespace(rank), f"p{rank}"
            self.add(name)
            call("ip", "-n", name, "link", "add", self.device, "type", "veth", "peer", "name", port,
                 "netns", self.hub)
            call("ip", "-n", name, "address", "add", self.address(rank) + "/24", "dev", self.device)
            call("ip", "-n", name, "link", "set", "lo", "up")
            call("ip", "-n", name, "link", "set", self.device, "up")
            call("ip", "-n", self.hub, "link", "set", port, "master", "bridge", "up")

    def add(self, name):
        call("ip", "netns", "add", name)
        self.callback(call, "ip", "netns", "del", name, check=False)

    def namespace(self, rank):
        return f"{self.name}{'abcdefghijklmnop'[rank]}"

    @staticmethod
    def address(rank):
        return f"10.98.7.{rank + 1}"

    def words(self, rank):
        """Words before a program of the rank."""
        return ["ip", "netns", "exec", self.namespace(rank)]

    def lose(self, sender, receiver):
        """All packets from one to the other go to a station that does not exist."""
        call("ip", "-n", self.namespace(sender), "neighbour", "replace", self.address(receiver),
             "lladdr", NO_SUCH_STATION, "dev", self.device, "nud", "permanent")
