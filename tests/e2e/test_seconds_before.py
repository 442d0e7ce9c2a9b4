# SPDX-License-Identifier: Apache-2.0
"""The stacks in the seconds before a hang: no change if a rank is stuck, a change if it is slow."""

import os
import re
import sys

import pytest
from built import TRAIN_LOOP, TRAIN_LOOP_PY
from daemon import Daemon
from incident_contract import deviations
from job import FOREVER
from waiting import expect, wait_until

SLOW_RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs/slow_rank.py")
RANKS, FAULTY = 3, 1
# The first evaluation of a wait may come after T/2.
LEAST_READINGS = 2


@pytest.fixture(scope="module", name="daemon")
def daemon_of_both():
    with Daemon('stall_min = "4s"') as daemon:
        daemon.start()
        for how in "stuck", "slow":
            daemon.train(how, RANKS, [*FOREVER, "--fault-rank", str(FAULTY), "--fault-step", "30"],
                         program=[sys.executable, SLOW_RANK, how, TRAIN_LOOP_PY])
        native = [*FOREVER, "--fault", "block-in-data-loader", "--fault-rank", str(FAULTY), "--fault-step", "30"]
        daemon.train("native", RANKS, native, program=TRAIN_LOOP)
        yield daemon


def earlier(daemon, job):
    """The incident, and the stacks of the culprit before."""
    def is_read():
        found = daemon.incident_of(job)
        stacks = {one["rank"]: one for one in (found or {}).get("earlier_stacks", [])}
        return len(stacks.get(FAULTY, {}).get("readings", [])) >= LEAST_READINGS and (found, stacks)
    found, stacks = wait_until(is_read, lambda: f"{job}: {daemon.incident_of(job)}")
    expect(not deviations(found), deviations(found))
    return found, stacks[FAULTY]


def check_report(daemon, incident, pattern):
    text = re.sub(r"\s+", " ", daemon.ask("report", incident["id"], check=False).stdout)
    expect(re.search("In the seconds before - " + pattern, text), text)


def test_a_stuck_rank_shows_no_change(daemon):
    found, one = earlier(daemon, "stuck")
    expect(not one["changed"] and len({r["place"] for r in one["readings"]}) == 1, one)
    expect([r["waited_s"] for r in one["readings"]] == sorted(r["waited_s"] for r in one["readings"]), one)
    check_report(daemon, found, f"rank {FAULTY} stayed in be_stuck .slow_rank.py:.* and its main thread used "
                                "almost no CPU")


def test_a_slow_rank_shows_the_change(daemon):
    found, one = earlier(daemon, "slow")
    expect(one["changed"] and len({r["place"] for r in one["readings"]}) > 1, one)
    check_report(daemon, found, f"rank {FAULTY} moved on: at ")


def test_a_rank_without_python_has_none_and_is_not_read_again(daemon):
    found = wait_until(lambda: daemon.incident_of("native"), "an incident")
    expect("earlier_stacks" not in found, found)
