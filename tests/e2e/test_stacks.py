# SPDX-License-Identifier: Apache-2.0
"""`collwatch stacks` of Python ranks: all at once, and the rank that differs from its peers."""

import json
import re
import signal
import sys

import pytest
from built import TRAIN_LOOP_PY
from daemon import Daemon
from job import stop_outside_nccl
from waiting import expect, wait_until

RANKS = 8
ARGUMENTS = ["--steps", "0", "--step-ms", "20", "--elements", "64", "--log-every", "0"]


@pytest.fixture(scope="module", name="daemon")
def daemon_with_ranks():
    with Daemon(patience="") as daemon:
        daemon.start()
        daemon.wait_for(daemon.train("many", RANKS, ARGUMENTS, program=[sys.executable, TRAIN_LOOP_PY]))
        yield daemon


def shown(daemon, *options):
    """The answer; a user gets one in two seconds."""
    done = wait_until(lambda: answered(daemon, *options), f"stacks {options}")
    expect(done.returncode == 0, f"{done.returncode}: {done.stderr}")
    return done.stdout


def answered(daemon, *options):
    done = daemon.ask("stacks", *options, check=False)
    return None if "try again" in done.stderr or "wait for that" in done.stderr else done


def trees_of(doc):
    return {(tree["kind"], tree["thread"]): tree for tree in doc["trees"]}


def test_reads_python_stacks_of_all_ranks_and_holds_none(daemon):
    doc = json.loads(shown(daemon, "many", "--json"))
    expect(doc["seen"] == RANKS and not doc["not_collected"], doc)
    (tree,) = doc["trees"]
    expect((tree["kind"], tree["thread"], tree["ranks"]) == ("python", "main", f"0-{RANKS - 1}"), tree)
    expect(sum(age["n"] for age in doc["ages"]) == RANKS and all(age["age_s"] >= 0 for age in doc["ages"]), doc["ages"])
    expect(all(one["native"] is None for one in doc["evidence"]), doc["evidence"])


def test_takes_native_stacks_on_request_and_of_a_single_rank(daemon):
    trees = trees_of(json.loads(shown(daemon, "many", "--json", "--native")))
    expect(trees[("native", "main")]["ranks"] == f"0-{RANKS - 1}" and ("python", "main") in trees, list(trees))
    expect("native, thread" in shown(daemon, "many", "3"), "one rank")


def test_python_and_native_frames_are_one_stack_where_both_show_one_moment(daemon):
    (job,) = daemon.jobs
    stop_outside_nccl(job.ranks[3])
    try:
        text = shown(daemon, "many", "3", "--all-frames", "--no-pager")
    finally:
        job.ranks[3].send_signal(signal.SIGCONT)
    native = text[text.index("native, thread"):]
    expect("Python frames marked" in native, text)
    # The functions of the program stand between the frames of the C library.
    expect(re.search(r"libc\S*( .*)?\n(.*\n)*?\s+> train_step .*\n(.*\n)*?\s+> main .*\n(.*\n)*?.* libc", native),
           text)


def test_folded_has_a_line_for_each_stack(daemon):
    lines = shown(daemon, "many", "--folded").splitlines()
    expect(all(re.fullmatch(r"python main(;[^;]+)+ \d+", line) for line in lines), lines)
    expect(sum(int(line.rsplit(" ", 1)[1]) for line in lines) == RANKS, lines)
    expect(all(";main (train_loop.py:" in line for line in lines), lines)


def test_shows_all_within_80_columns(daemon):
    text = shown(daemon, "many", "--all-threads", "--all-frames", "--no-pager")
    expect(max(map(len, text.splitlines())) <= 80, text)
    expect("stacks at most" in text and "train_loop.py" in text, text)


def test_the_rank_that_is_stopped_differs_from_those_that_wait_for_it(daemon):
    def is_named():
        different = json.loads(shown(daemon, "many", "--json")).get("different", [])
        return [d["ranks"] for d in different] == ["5"] and different

    (job,) = daemon.jobs
    # The others reach the call that rank 5 does not, and stay there.
    stop_outside_nccl(job.ranks[5])
    try:
        (rank,) = wait_until(is_named, "rank 5 differs")
        expect(rank["confidence"] in ("possible", "likely") and rank["peers"] == RANKS, rank)
        text = shown(daemon, "many", "--no-pager")
        expect(re.search(r"^  rank 5 (likely|possibly) differs from its peers: it is in", text, re.MULTILINE), text)
    finally:
        job.ranks[5].send_signal(signal.SIGCONT)

