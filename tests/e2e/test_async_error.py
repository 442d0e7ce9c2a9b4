# SPDX-License-Identifier: Apache-2.0
"""NCCL's asynchronous errors, from the rank to the report. A rank that calls ncclCommGetAsyncError,
as watchdogs do, learns of a lost peer and waits on."""
import json
import os
import sys

from built import COLLWATCH, TRAIN_LOOP_PY
from waiting import expect as check
from waiting import said, wait_until

WATCHED_RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs/watched_rank.py")
RANKS, VICTIM = 4, 3
REMOTE_ERROR = 6


def train(daemon, name):
    variables = {"SIM_NCCL_REMOTE_ERRORS": "1", "SIM_NCCL_STALL_FILE": daemon.dir + "/stall"}
    return daemon.train(name, RANKS, ["--steps", "0", "--step-ms", "20", "--elements", "64"],
                        program=[sys.executable, WATCHED_RANK, TRAIN_LOOP_PY], variables=variables)


def record_of(rank):
    """The failed communicators of its flight record."""
    out = json.loads(said(COLLWATCH, "record", "show", str(rank.pid), "--json"))
    return [c for c in out["comms"] if c["async_error"]]


def text_of(record):
    check((record["async_error"], record["async_error_name"]) == (REMOTE_ERROR, "ncclRemoteError"),
          str(record))
    check(record["last_error"].endswith("has closed the connection"), str(record))
    return record["last_error"]


def is_in(records, error):
    """A rank's error in the incident equals the error in the rank's record."""
    return any((c["id"], text_of(c)) == (error["comm"], error["text"]) for c in records)


def check_reports(daemon, incident, ranks):
    """All forms of the report list the ranks and their errors; ranks: live processes by number."""
    document = json.loads(daemon.said("report", incident, "--json"))
    errors = document["nccl_errors"]
    text = " ".join(daemon.said("report", incident).split())
    html = daemon.said("report", incident, "--html")
    check(errors, "no error in " + json.dumps(document))
    # Later than the report: a rank may hear of its error meanwhile, and forgets none.
    records = {number: record_of(rank) for number, rank in ranks.items()}
    for error in errors:
        check((error["name"], error["result"], error["is_async"]) ==
              ("ncclRemoteError", REMOTE_ERROR, True), str(errors))
        check(all(is_in(records[rank], error) for rank in ranks_of(error)), f"{errors} {records}")
        sentence = f"{error['ranks']}: ncclRemoteError on comm {error['comm_name']}: "
        check(sentence + f'"{error["text"]}"' in text, f"{sentence} in {text}")
        check(sentence in html and error["text"] in html, f"{sentence} in {html}")
    return document


def ranks_of(error):
    ranks = set()
    for part in error["ranks"].split(","):
        first, _, last = part.partition("-")
        ranks |= set(range(int(first), int(last or first) + 1))
    return ranks


def told(document):
    """The ranks with an error of NCCL in the incident."""
    return set().union(*(ranks_of(e) for e in document["nccl_errors"]))


def diagnosed(daemon, name, strike, survivors, hear):
    """The incident of a job after `strike`, as reported, once it has the errors of all ranks in
    `hear`; the survivors live on."""
    daemon.start()
    job = daemon.wait_for(train(daemon, name))
    strike(daemon, job)
    wait_until(lambda: all(record_of(job.ranks[r]) for r in hear), "they are told")
    wait_until(lambda: daemon.incident_of(name), name + " is diagnosed")
    # The alert does not wait for the last ranks that learn of it.
    wait_until(lambda: told(daemon.incident_of(name)) >= hear, f"ranks {sorted(hear)} tell their errors")
    check(all(job.ranks[r].poll() is None for r in survivors), "the others live on")
    return check_reports(daemon, daemon.incident_of(name)["id"], {r: job.ranks[r] for r in survivors})


def test_a_death_is_told_with_what_the_others_heard_of_it(daemon):
    document = diagnosed(daemon, "killed", lambda _, job: job.ranks[VICTIM].kill(), range(VICTIM), {0})
    check(document["class"] == "process_dead", str(document))
    check([c["rank"] for c in document["culprits"]] == [VICTIM], str(document))
    check(told(document) and told(document) <= set(range(VICTIM)), str(document))
    check({e["text"] for e in document["nccl_errors"]} ==
          {f"rank {VICTIM} has closed the connection"}, str(document))


def stall(daemon, _):
    with open(daemon.dir + "/stall", "wb"):
        pass


def test_an_error_is_told_although_nobody_died(daemon):
    document = diagnosed(daemon, "cut-off", stall, range(RANKS), set(range(RANKS)))
    check(document["class"] == "in_collective", str(document))
    check(told(document) == set(range(RANKS)), str(document))
