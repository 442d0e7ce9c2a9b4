# SPDX-License-Identifier: Apache-2.0
"""One user sends the daemon's control socket requests that no command line would send: JSON as deep
or as large as a request may be, invalid numbers and types, incidents by paths, broken frames. She
learns nothing of another user's job, and the daemon answers other users as before."""
import contextlib
import json
import os
import re
import socket
import struct
import time

import pytest
from agent_lib import envelope, field
from daemon import Daemon
from job import labels
from receiver import Receiver
from waiting import expect, wait_until

pytestmark = pytest.mark.root  # to be another user
VICTIM, ATTACKER, LABEL = 4242, 4243, "llama-70b-secret"
# How long one request may keep all others waiting; loops beside it are no matter of this test.
HELD_S = 2
VICTIM_TEXT = b"uid\":%d" % VICTIM
MAX_REQUEST = 64 << 10
VERBS = ["status", "ops", "incidents", "report", "mute", "stacks", "", "nosuch", "x" * 5000]
KEYS = ["id", "job", "uid", "rank", "max", "since", "class", "node", "for_s", "unmute"]
VALUES = ["null", "true", "[]", "{}", '""', "0", "-1", "1.5", "9223372036854775807",
          "-9223372036854775808", "4294967296", "18446744073709551616", "1" + "0" * 400, "1e999",
          "1e308", "NaN", '"' + "x" * 10000 + '"', '"\\u0000"', '"a\\u0000b"', '"\\ud800"',
          '"\\u001b[2J"', "[" * 1000 + "]" * 1000, '{"a":1,"a":2}']
DEEP = ["[" * 60000, '{"a":' * 12000, '{"job":' + "[" * 2000 + "]" * 2000 + "}",
        '{"job":' + "[" * 30000 + "]" * 30000 + "}", '"' * 60000, "[" + "0," * 30000 + "0]",
        "{" + ",".join(f'"{n}":0' for n in range(7000)) + "}", "\xff\xfe{}", "{}\x00{}", "-", "{"]


def request(verb, arguments):
    return envelope(40, field(1, verb.encode()) + field(2, arguments.encode("latin-1")))


class Asking:
    """A connection of another user's: the kernel notes who connects."""

    def __init__(self, world, uid=ATTACKER):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(120)
        os.setegid(uid)
        os.seteuid(uid)
        try:
            self.socket.connect(world.control)
        finally:
            os.seteuid(0)
            os.setegid(0)

    def ask(self, frame):
        """The whole reply: a frame, or nothing when the connection is closed."""
        reply = b""
        try:
            self.socket.sendall(frame)
            while len(reply) < 4 or len(reply) < 4 + struct.unpack(">I", reply[:4])[0]:
                got = self.socket.recv(1 << 16)
                if not got:
                    return reply
                reply += got
        except (BrokenPipeError, ConnectionResetError):
            pass
        return reply

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


class Setup:
    """A daemon that has an incident of the victim's."""

    def __init__(self, world, receiver):
        self.world = world
        job = world.train("victim", labels(2, COLLWATCH_JOB=LABEL), user=VICTIM)
        world.wait_for_all()
        job.kill(1)
        self.id = world.wait_for_incident(LABEL)["id"]
        wait_until(lambda: receiver.posts, lambda: f"the alert: {world.log()}")

    def is_silent(self, verb, arguments):
        with Asking(self.world) as asking:
            begun = time.monotonic()
            reply = asking.ask(request(verb, arguments))
            took = time.monotonic() - begun
        what = (verb[:20], arguments[:80], reply[:300])
        # The reply may repeat the user's own label, as for any job that does not exist.
        reply = re.sub(rb"no (rank -?\d+ of )?job (name:)?%b that" % LABEL.encode(), b"", reply)
        expect(LABEL.encode() not in reply and VICTIM_TEXT not in reply, what)
        expect(self.world.process.poll() is None, (what, self.world.log()))
        expect(took < HELD_S or verb == "stacks", (what, took))

    def is_well(self):
        expect([i["id"] for i in self.world.incidents(VICTIM)] == [self.id], "the victim's own")
        expect(self.world.status(VICTIM)["jobs"][0]["job"] == "name:" + LABEL, "the victim's own")
        expect(not self.world.status(VICTIM)["jobs"][0].get("muted"), self.world.status(VICTIM))


@pytest.fixture(name="setup", scope="module")
def setup_of_the_victim():
    with Receiver() as receiver:
        receiver.listen()
        with Daemon(f'webhook_url = "{receiver.url}"') as world:
            world.start()
            yield Setup(world, receiver)


def test_arguments_of_any_type_and_size_tell_nothing(setup):
    for verb in VERBS:
        for deep in DEEP:
            setup.is_silent(verb, deep)
    for verb in ["status", "ops", "incidents", "report", "mute"]:
        for key in KEYS:
            for value in VALUES:
                setup.is_silent(verb, f'{{"{key}":{value}}}')
    for value in VALUES:  # stacks are taken at most every two seconds; a bad request fails at once
        setup.is_silent("stacks", f'{{"job":{json.dumps(LABEL)},"rank":{value}}}')
    for uid in ["%d" % VICTIM, "0", "-1", "4294967295", "1e1"]:
        setup.is_silent("mute", f'{{"job":{json.dumps(LABEL)},"uid":{uid},"for_s":3600}}')
        setup.is_silent("mute", f'{{"job":{json.dumps("name:" + LABEL)},"uid":{uid},"for_s":1e9}}')
    setup.is_well()


def test_an_incident_is_not_found_by_a_path(setup):
    own = f"{setup.world.state}/incidents/{setup.id}"
    for name in [setup.id, setup.id.upper(), setup.id + "/", "./" + setup.id, "../incidents/" + setup.id,
                 own, own + "/incident.json", "/etc/passwd", "../../conf", "..", ".", "", "*",
                 "%2e%2e", "0" * 16, "0" * 60000, setup.id[:-1], setup.id + "\0", setup.id + "\n"]:
        with Asking(setup.world) as asking:
            reply = asking.ask(request("report", json.dumps({"id": name})))
        expect(LABEL.encode() not in reply and b"node_name" not in reply and b"root:" not in reply,
               (name[:80], reply[:300]))
        if name != setup.id:
            done = setup.world.ask("report", "--json", name, check=False) if "\0" not in name else None
            if done and not name.startswith("/") and len(name) < 5000:
                expect(LABEL not in done.stdout or not name, ("root, by " + name[:80], done.stdout[:200]))
    with Asking(setup.world, VICTIM) as asking:
        reply = asking.ask(request("report", json.dumps({"id": setup.id})))
    expect(LABEL.encode() in reply, "the victim's own is there")
    setup.is_well()


def test_a_request_beyond_its_limit_is_none_in_pieces_either(setup):
    """The last piece that is read may bring it: pieces of several sizes, so that it does."""
    frame = request("status", " " * (MAX_REQUEST + 90))
    for first in 100, 120, 1000, 5000, 16000:
        with Asking(setup.world) as asking, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            asking.socket.sendall(frame[:first])
            reply = asking.ask(frame[first:])
            expect(reply == b"", (first, reply[:200]))
    setup.is_well()


def test_what_is_no_request_ends_the_connection(setup):
    body = request("status", "{}")
    for frame in [b"\0\0\0\0", b"\xff\xff\xff\xff", struct.pack(">I", 1 << 20), body[:3], body[:-1],
                  struct.pack(">I", 5) + b"\x08\x01\xc2\x02\x7f", b"GET / HTTP/1.1\r\n\r\n",
                  struct.pack(">I", 12) + b"\x08\x01\xc2\x02" + b"\xff" * 8,
                  request("status", " " * (MAX_REQUEST + 10)),
                  struct.pack(">I", 6) + field(1, 1) + field(10, field(1, 1)),  # an agent's hello
                  struct.pack(">I", 6) + field(1, 1) + field(41, field(1, 0))]:  # an answer
        with Asking(setup.world) as asking:
            asking.socket.settimeout(0.2)
            try:
                reply = asking.ask(frame)
            except TimeoutError:  # it waits for the rest, and has a deadline
                reply = b""
        expect(LABEL.encode() not in reply, (frame[:40], reply[:200]))
        expect(setup.world.process.poll() is None, (frame[:40], setup.world.log()))
    setup.is_well()
