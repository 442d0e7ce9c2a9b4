#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls that NCCL lets pass, on NVIDIA's NCCL and on the simulated one. The daemon does not alert
about calls that differ to people only, but alerts about messages that do not fit, though no rank
waits for them. The scenarios come from tests/suite, which has the labels in virtual time, and one
more has a group whose order matters after all; each is a job of four processes. Prints TAP.

Arguments: the build directory, the program that plays a rank of a scenario; "real" or "simulated", if
not both."""
import os
import re
import sys

sys.dont_write_bytecode = True

from lab_lib import PATIENCE, SOURCE, Tool  # noqa: E402 pylint: disable=wrong-import-position
import tap  # noqa: E402 pylint: disable=wrong-import-position
from daemon import Daemon  # noqa: E402 pylint: disable=wrong-import-position
from job import labels  # noqa: E402 pylint: disable=wrong-import-position
from waiting import expect, wait_until  # noqa: E402 pylint: disable=wrong-import-position
import nccl_place  # noqa: E402 pylint: disable=wrong-import-position
import nccl_run  # noqa: E402 pylint: disable=wrong-import-position

BUILD, RANK, *CHOSEN = sys.argv[1:]
RANKS, BUILD_TIMEOUT_S, SECONDS = 4, 3000, 180
FILES = ["tests/suite/alike.scn", "tests/suite/messages.scn", "tests/suite/seldom.scn",
         "tests/real/order.scn"]
# Told of before so many calls: then hashes are compared in any case.
COMPARED_AT = {"an operator differs where a call takes a second and a half": 16}
HANGS = {"small calls of a group come in another order"}
# Jobs that end well, and their post-mortems; in virtual time no test requests a post-mortem.
POSTMORTEMS = {"a receive is left out, and all end": "p2p_unmatched"}
# The simulated NCCL runs the calls of a group one after the other, as they come.
NOT_PLAYED = {("simulated", "the calls of a group come in another order")}
# The simulated NCCL takes what NVIDIA's takes.
AS_NVIDIAS = {"SIM_NCCL_BUFFERED": str(4 << 20)}

nccl = Tool("real-nccl", BUILD, SECONDS)


class Scenario:
    """A scenario of a file: its place there, its name, and the expected verdict, in the suite's
    words."""

    def __init__(self, path, place, name, words):
        self.path, self.place, self.name = path, place, name
        self.compared_at = COMPARED_AT.get(name)
        self.is_silence = words[0] == "silence"
        self.severity = "notice" if words[0] == "notice" else "page"
        self.verdict = [w for w in words if w != "notice"]

    def program(self):
        return [RANK, self.path, str(self.place)]

    def label(self):
        return re.sub(r"\W+", "-", self.name)

    def is_right(self, document):
        told = [document["class"], document["detail"], *(str(c["rank"]) for c in document["culprits"])]
        n = len(self.verdict) if len(self.verdict) < 3 else len(told)
        return told[:n] == self.verdict


def scenarios():
    for name in FILES:
        path = f"{SOURCE}/{name}"
        with open(path, encoding="utf-8") as f:
            text = f.read()
        found = re.findall(r'(?ms)^scenario "([^"]+)"$.*?^\texpect ([^\n]+)$', text)
        for place, (title, words) in enumerate(found):
            yield Scenario(path, place, title, words.split())


def variables(library):
    """Of a job; where its ranks meet is its own."""
    job = nccl_run.job_environment(nccl_place.default_cache(), BUILD, nccl_place.DEFAULT_VERSION, RANKS,
                                   "shm")
    if library == "simulated":
        return {k: job[k] for k in ("MASTER_ADDR", "MASTER_PORT")} | AS_NVIDIAS
    return {k: v for k, v in job.items()
            if k.startswith(("NCCL_", "MASTER_")) or k == "LD_LIBRARY_PATH"}


def start(daemon, scenario, library):
    return daemon.train(scenario.label(), labels(RANKS, COLLWATCH_JOB=scenario.label()), [], meets=False,
                        program=scenario.program(), variables=variables(library))


def said_of(documents):
    return [(d["class"], d["summary"]) for d in documents]


def ends_in_silence(daemon, scenario, job):
    wait_until(lambda: len(job.ended()) == RANKS, lambda: f"{job.name} ends: {daemon.log()}", SECONDS)
    expect(all(e[1] == 0 for e in job.ended()), job.ended())
    # When the daemon forgets it, the lines on its end are in the log.
    wait_until(lambda: f"{job.name}: ended after" in daemon.log(), lambda: f"its end: {daemon.log()}")
    expect(not daemon.documents(job.name), said_of(daemon.documents(job.name)))
    left = POSTMORTEMS.get(scenario.name)
    if left:
        wait_until(lambda: daemon.postmortems(job.name), lambda: f"a post-mortem: {daemon.log()}")
    told = said_of(daemon.postmortems(job.name))
    expect([c for c, _ in told] == ([left] if left else []), told)


def is_told(daemon, scenario, job):
    def found():
        return [d for d in daemon.documents(job.name) if d["severity"] == scenario.severity]
    wait_until(found, lambda: f"a word about {job.name}: {daemon.log()}", SECONDS)
    document = found()[0]
    if scenario.compared_at:
        comms = daemon.document(document["id"], "snapshot")["comms"]
        calls = max(m["coll_entered"] for c in comms for m in c["members"])
        expect(calls < scenario.compared_at, f"told of after {calls} calls: {document['summary']}")
    # On a busy machine hashes may have told of it before the calls themselves had come.
    wait_until(lambda: any(scenario.is_right(d) for d in found()),
               lambda: f"{scenario.verdict}: {found()}", SECONDS)


def plays(library, scenario):
    def test():
        if library == "real":
            nccl.needed()
        # A hang: half a minute instead of a whole one. A busy machine needs more where no
        # rank hangs.
        with Daemon(**({"patience": PATIENCE} if scenario.name in HANGS else {})) as daemon:
            daemon.start()
            job = start(daemon, scenario, library)
            (ends_in_silence if scenario.is_silence else is_told)(daemon, scenario, job)
    test.__name__ = f"{library}: {scenario.name}".replace(" ", "_").replace(",", "")
    return test


def build():
    nccl.build(BUILD_TIMEOUT_S)


ALL = list(scenarios())
tap.run([build] + [plays(library, s) for library in CHOSEN or ("simulated", "real") for s in ALL
                   if (library, s.name) not in NOT_PLAYED])
