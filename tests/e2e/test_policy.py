# SPDX-License-Identifier: Apache-2.0
"""COLLWATCH_POLICY, COLLWATCH_JOB_TIMEOUT and arguments, from a rank to the daemon's treatment of
the same faults. One daemon, a job for each policy, all at once."""
import pytest
from built import TRAIN_LOOP
from daemon import Daemon
from demo_driver import may_look
from job import FOREVER
from waiting import expect as check
from waiting import wait_until

RANKS, FAULTY = 2, 1
CASES = {  # job: policy, fault
    "waits": ("training", "block-in-data-loader"),
    "waits-recorded": ("training", "block-in-data-loader"),
    "waits-served": ("serving", "block-in-data-loader"),
    "locked-served": ("serving", "wait-for-lock"),
    "differs": (None, "wrong-count"),
    "differs-served": ("serving", "wrong-count"),
    "differs-off": ("off", "wrong-count"),
}
TIMED, ARGUED, RECORDED = "waits", "differs-served", "waits-recorded"
ARGUMENT = "--distributed-timeout-minutes=45"


@pytest.fixture(scope="module", name="daemon")
def daemon_of_all():
    with Daemon() as daemon:
        daemon.start()
        for name, (policy, fault) in CASES.items():
            variables = {"COLLWATCH_POLICY": policy} if policy else {}
            if name == TIMED:
                variables.update(COLLWATCH_JOB_TIMEOUT="30min", TORCH_NCCL_DUMP_ON_TIMEOUT="0")
            if name == RECORDED:
                variables["COLLWATCH_RECORD"] = daemon.dir
            # The program knows no such option: it is its name.
            named = ["bash", "-c", f'exec -a {ARGUMENT} "$0" "$@"', TRAIN_LOOP]
            daemon.train(name, RANKS, [*FOREVER, "--fault", fault, "--fault-rank", str(FAULTY),
                                       "--fault-step", "30"], variables=variables,
                         program=named if name == ARGUED else TRAIN_LOOP)
        yield daemon


def found(daemon, name):
    return wait_until(lambda: daemon.incident_of(name), name + " is found")


def test_a_proof_alerts_whoever_trains_or_serves(daemon):
    for name in "differs", "differs-served":
        check(found(daemon, name)["class"] == "mismatch", name)


def test_patience_alerts_only_whoever_trains(daemon):
    check(found(daemon, "waits")["class"] == "never_entered", "the same fault")
    wait_until(lambda: (daemon.job("waits-served") or {}).get("state") == "stalled",
               "it is noted")
    check(not daemon.incident_of("waits-served"), "and the policy suppresses the alert")


def test_an_agent_that_writes_its_record_into_a_file_is_no_sign_of_life(daemon):
    check(found(daemon, RECORDED)["class"] == "never_entered", "two MiB a second are not the program's")


@pytest.mark.skipif(not may_look(), reason="/proc/PID/syscall is not readable")
def test_a_lock_that_nobody_lets_go_alerts_whoever_serves(daemon):
    incident = found(daemon, "locked-served")
    check((incident["class"], incident["hang"]) == ("never_entered", "likely"), repr(incident))
    check([c["rank"] for c in incident["culprits"]] == [FAULTY], repr(incident["culprits"]))
    check(not daemon.incident_of("waits-served"), "to be idle is its trade")


def test_nothing_is_looked_for_where_it_is_off(daemon):
    found(daemon, "differs")
    job = wait_until(lambda: next((j for j in [daemon.job("differs-off")]
                                   if j and j["ranks"] == RANKS), None), "it is watched")
    check((job["state"], job["ranks"], job["incident"]) == ("healthy", RANKS, None), repr(job))
    check(not daemon.incident_of("differs-off"), "no incident")


def test_what_is_told_says_when_the_job_ends_by_itself(daemon):
    timeout = {"seconds": 1800.0, "assumed": False,
               "set_by": "COLLWATCH_JOB_TIMEOUT in its environment"}
    check(found(daemon, TIMED)["job_timeout"] == timeout, repr(found(daemon, TIMED)))
    check(daemon.job(TIMED)["job_timeout"] == timeout, repr(daemon.job(TIMED)))
    check("job_timeout" not in found(daemon, "differs"), "its ranks set no timeout")
    check(daemon.job("differs")["job_timeout"] is None, repr(daemon.job("differs")))


def test_what_is_told_says_which_argument_ends_the_job(daemon):
    timeout = {"seconds": 2700.0, "assumed": False,
               "set_by": "--distributed-timeout-minutes 45 in its arguments"}
    check(found(daemon, ARGUED)["job_timeout"] == timeout, repr(found(daemon, ARGUED)))
    check(daemon.job(ARGUED)["job_timeout"] == timeout, repr(daemon.job(ARGUED)))


def test_a_report_says_what_torch_was_told_and_what_that_costs(daemon):
    incident = found(daemon, TIMED)
    said = "TORCH_NCCL_DUMP_ON_TIMEOUT=0 (ranks 0-1): PyTorch writes no dump of its Flight Recorder"
    check(said in " ".join(daemon.said("report", incident["id"]).split()), daemon.said("report", incident["id"]))
    check("PyTorch's settings" not in daemon.said("report", found(daemon, "differs")["id"]), "nothing")
