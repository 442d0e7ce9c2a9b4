# SPDX-License-Identifier: Apache-2.0
"""Stacks of ranks that a signal killed, from their core files, in the report and the documents."""

import os
import re
import resource
import signal
import subprocess
import sys

import pytest
from built import TRAIN_LOOP, TRAIN_LOOP_PY
from daemon import Daemon
from documents_contract import deviations as deviations_of_any
from incident_contract import deviations
from waiting import expect, wait_until

DYING_RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs/dying_rank.py")
FAULTY = 1


def core_pattern():
    with open("/proc/sys/kernel/core_pattern", encoding="ascii") as f:
        return f.read().strip()


pytestmark = pytest.mark.skipif(core_pattern() != "core", reason="core files do not lie beside the program here")


def with_core():
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def without_core():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@pytest.fixture(scope="module", name="daemon")
def daemon_of_all():
    with Daemon() as daemon:
        daemon.start()
        for name, limit in (("python", with_core), ("none", without_core), ("native", with_core), ("gone", with_core)):
            dying = [sys.executable, DYING_RANK, TRAIN_LOOP_PY]
            program = TRAIN_LOOP if name == "native" else [[TRAIN_LOOP], dying].__getitem__
            cwd = f"{daemon.dir}/cwd-{name}"
            os.mkdir(cwd)
            daemon.train(name, 2, program=program, stdin=subprocess.PIPE, preexec_fn=limit, cwd=cwd)
        daemon.wait_for_all()
        for job in daemon.jobs:
            if job.name == "native":
                job.ranks[FAULTY].send_signal(signal.SIGSEGV)
            else:
                job.write_line(FAULTY, "segfault")
            if job.name == "gone":
                job.ranks[FAULTY].wait()
                job.kill(0)
        yield daemon


def found(daemon, job):
    """The incident, the evidence of the culprit, and the report."""
    def is_read():
        incident = daemon.incident_of(job)
        if not incident:
            return None
        evidence = daemon.document(incident["id"], "evidence")
        return next(((incident, one) for one in evidence if one["rank"] == FAULTY and "core" in one), None)
    incident, one = wait_until(is_read, lambda: f"{job}: {daemon.log()}")
    expect(not deviations(incident) and not deviations_of_any(one), (deviations(incident), deviations_of_any(one)))
    return incident, one, re.sub(r"\s+", " ", daemon.ask("report", incident["id"], check=False).stdout)


def test_a_crash_in_python_shows_its_line(daemon):
    incident, one, text = found(daemon, "python")
    expect((one["core"]["status"], one["core"]["signal"]) == ("ok", signal.SIGSEGV), one["core"])
    thread = next(t for t in one["python"]["threads"] if t["tid"] == one["core"]["tid"])
    expect([f["function"] for f in thread["frames"]][:3] == ["string_at", "<lambda>", "obey"], thread)
    expect("Rank 1 crashed in <lambda> (dying_rank.py:" in incident["summary"], incident["summary"])
    expect("from its core file: SIGSEGV in thread" in text, text)
    expect(re.search(r"> <lambda> \S*dying_rank.py:\d+", text), text)


def test_a_crash_in_native_code_shows_its_stack(daemon):
    incident, one, text = found(daemon, "native")
    (main,) = [t for t in one["native"]["threads"] if t["tid"] == one["pid"]]
    expect("main" in [f["symbol"] for f in main["frames"]], main)
    expect(one["python"]["status"] == "absent" and " crashed in " in incident["summary"], (one, incident))
    expect("from its core file: SIGSEGV in thread" in text, text)


def test_without_a_core_file_the_report_says_why(daemon):
    incident, one, text = found(daemon, "none")
    expect((one["core"]["status"], one["core"]["tid"]) == ("absent", 0), one["core"])
    expect("no stacks: it had ended; it left no core file" in text, text)
    expect("crashed in" not in incident["summary"], incident["summary"])


def test_the_post_mortem_of_a_job_that_ended_before_the_alert_shows_the_stack(daemon):
    (doc,) = wait_until(lambda: daemon.postmortems("gone"), daemon.log)
    expect(not deviations(doc), deviations(doc))
    (culprit,) = doc["culprits"]
    expect(culprit["rank"] == FAULTY and culprit["crash_stack"][1].startswith("<lambda> (dying_rank.py:"), culprit)
    text = re.sub(r"\s+", " ", daemon.ask("report", doc["id"], check=False).stdout)
    expect("Stack of the crash, innermost first rank 1, from its core file: string_at (" in text and "Rank 1 crashed in" in text, text)
