# SPDX-License-Identifier: Apache-2.0
"""Jobs that know the agent only as a plugin of NCCL's profiler interface, down to the verdict. One
daemon, a job for each fault, all at once."""
import pytest
from built import AGENT
from daemon import Daemon
from job import FOREVER
from waiting import expect as check
from waiting import wait_until

RANKS, FAULTY = 2, 1
CASES = {  # fault: newest version of the interface, class
    "block-in-data-loader": (5, "never_entered"),
    "wrong-count": (4, "mismatch"),
}


@pytest.fixture(scope="module", name="daemon")
def daemon_of_all():
    with Daemon() as daemon:
        daemon.start()
        for name, (version, _) in CASES.items():
            daemon.train(name, RANKS, [*FOREVER, "--fault", name, "--fault-rank", str(FAULTY), "--fault-step",
                                       "30"],
                         variables={"LD_PRELOAD": "", "NCCL_PROFILER_PLUGIN": AGENT,
                                    "SIM_NCCL_PROFILER": str(version)})
        yield daemon


def check_verdict(daemon, fault):
    doc = wait_until(lambda: daemon.incident_of(fault), fault + " is found")
    check(doc["class"] == CASES[fault][1], str(doc))
    if doc["class"] == "never_entered":
        check([c["rank"] for c in doc["culprits"]] == [FAULTY], str(doc))
    print("# %s (%s): %s" % (doc["class"], doc["confidence"], doc["summary"]))


def test_finds_block_in_data_loader(daemon):
    check_verdict(daemon, "block-in-data-loader")


def test_finds_wrong_count(daemon):
    check_verdict(daemon, "wrong-count")
