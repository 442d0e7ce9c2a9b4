# SPDX-License-Identifier: Apache-2.0
"""The common parts of tests of host names: a network namespace with a resolv.conf of its own, and
the name server it names, which answers, is silent or talks nonsense."""

import ctypes
import os
import socket
import struct
import subprocess
import threading

import pytest

CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
A, AAAA = 1, 28


def own_network(directory, options="timeout:1 attempts:1"):
    """From now on this process has only a loopback, and asks 127.0.0.1 for names."""
    if os.geteuid() != 0 or ctypes.CDLL(None).unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
        pytest.skip("needs namespaces of its own")
    with open(directory + "/resolv.conf", "w", encoding="ascii") as f:
        f.write(f"nameserver 127.0.0.1\noptions {options}\n")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    mount_over("/etc/resolv.conf", directory + "/resolv.conf")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


MOUNTED = set()


def mount_over(path, own):
    """In a namespace of this process; the second time it replaces the first mount."""
    if path in MOUNTED:
        subprocess.run(["umount", path], check=True)
    MOUNTED.add(path)
    subprocess.run(["mount", "--bind", own, path], check=True)


def name_in(question):
    labels, at = [], 12
    while question[at]:
        labels.append(question[at + 1:at + 1 + question[at]].decode("ascii", "replace"))
        at += 1 + question[at]
    return ".".join(labels)


class NameServer(threading.Thread):
    """On 127.0.0.1:53. `say` turns a question into the bytes of an answer, or None. It returns
    `addresses` for each name, except for names in `unknown`."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        self.addresses, self.say, self.asked = [], self.right, 0
        self.names, self.unknown = set(), set()

    def run(self):
        while True:
            question, who = self.socket.recvfrom(512)
            if question == b"end":
                return
            self.asked += 1
            self.names.add(name_in(question))
            answer = self.say(question)
            if answer is not None:
                self.socket.sendto(answer, who)

    def end(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"end", self.socket.getsockname())
        self.join()
        self.socket.close()

    def right(self, question):
        asked = question[12:question.index(b"\0", 12) + 5]
        kind = struct.unpack("!H", asked[-4:-2])[0]
        family = {A: socket.AF_INET, AAAA: socket.AF_INET6}[kind]
        known = [] if name_in(question) in self.unknown else self.addresses
        mine = [a for a in known if (":" in a) == (kind == AAAA)]
        out = question[:2] + struct.pack("!HHHHH", 0x8580, 1, len(mine), 0, 0) + asked
        for address in mine:
            data = socket.inet_pton(family, address)
            out += struct.pack("!HHHIH", 0xc00c, kind, 1, 0, len(data)) + data
        return out

    @staticmethod
    def silent(_):
        return None

    @staticmethod
    def nonsense(question):
        """A right head, then an endless name, and records that are not there."""
        return question[:2] + struct.pack("!HHHHH", 0x8580, 1, 4000, 7, 7) + b"\xc0\x0c" * 200
