# SPDX-License-Identifier: Apache-2.0
"""The agents' record of a job's tensors, as `collwatch numerics` reads it."""
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

import pytest
from agent_lib import *
from built import COLLWATCH, TRAIN_LOOP_PY
from documents_contract import deviations
from ports import unused_port

RANKS = 4
GROUPED_JOB = [sys.executable, os.path.join(os.path.dirname(__file__), "../programs/grouped_job.py")]
GROUPED_RANKS = 3
# In a step: of two all_reduce, all_gather and a broadcast, and of the sends and receives of three ranks.
GROUPED_IN, GROUPED_OUT = 3, 4


def trained(at, *arguments, steps=8, **extra):
    """The program's records, in the order of their names."""
    port = unused_port()
    ps = [start([sys.executable, TRAIN_LOOP_PY, "--steps", str(steps), "--tp", "2", "--log-every", "0",
                 *arguments],
                environment(RANK=str(r), WORLD_SIZE=str(RANKS), LOCAL_RANK=str(r), MASTER_ADDR="127.0.0.1",
                            MASTER_PORT=str(port), COLLWATCH_JOB="unit", COLLWATCH_RECORD=at, **extra),
                stdout=subprocess.DEVNULL) for r in range(RANKS)]
    for p in ps:
        check(p.wait(120) == 0, "exit status %d" % p.returncode)
    return sorted(glob.glob(at + "/*.record"))


def said(*arguments):
    p = subprocess.run([COLLWATCH, "numerics", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True, timeout=120)
    return p.returncode, p.stdout, p.stderr


def poisoned(at):
    """Records of a job whose rank 2 feeds a NaN, and the report on them."""
    records = trained(at, "--fault", "feed-nan", "--fault-rank", "2", "--fault-step", "3", COLLWATCH_SUMMARY="full")
    status, out, err = said("--json", *records)
    if status == 3:
        pytest.skip("built without nvcc and clang: there is no kernel")
    return records, status, out, err


def test_names_who_fed_the_first_nan():
    with tempfile.TemporaryDirectory() as at:
        records, status, out, err = poisoned(at)
        check(status == 2, (status, err))
        doc = json.loads(out)
        check(doc["schema"] == "collwatch.numerics/1" and doc["alarm"], doc["schema"])
        check(not deviations(doc), deviations(doc))
        check(len(doc["firsts"]) == 1, doc["firsts"])
        first = doc["firsts"][0]
        check((first["rank"], first["kind"], first["side"], first["origin"]) == (2, "all_reduce", "input", "rank"),
              first)
        check(first["nans"] == 1 and first["elements"] == first["looked_at"] == 256, first)
        check(0 <= first["at_limit"] <= 1 and first["denormal"] == 0, first)
        check(first["redop"] == "sum" and first["entered"], first)
        # The caller is unknown for a call before the helper thread has found all libraries.
        check(first["site"] is None or "+0x" in first["site"], first)
        mine = [r for r in doc["ranks"] if r["rank"] == 2][0]
        check(mine["first"]["seq"] == first["seq"] and len(mine["before"]) == 8, mine)
        check(all(b["nans"] == b["infs"] == 0 for b in mine["before"]), "finite before")
        check(doc["checked"]["replicas"] > 0 and not doc["divergences"], "copies are equal")
        check(not doc["imbalances"], doc["imbalances"])
        status, out, _ = said(*records)
        check(status == 2 and "rank 2 was the first to feed 1 NaN and 0 Inf among 256 fp32 into all_reduce #" in out,
              out)


def test_tells_whose_gradients_a_call_carried():
    with tempfile.TemporaryDirectory() as at:
        records, status, out, err = poisoned(at)
        first = json.loads(out)["firsts"][0]
        check(first["carried"] is None, first)
        files = []
        for rank in range(RANKS):
            files.append("%s/rank%d.jsonl" % (at, rank))
            with open(files[-1], "w", encoding="utf-8") as f:
                for line in ({"line": "head", "schema": "collwatch.tensors/1", "rank": rank},
                             {"line": "buckets", "comm": first["comm_name"], "op": "all_reduce", "buckets": [
                                 {"elements": first["elements"], "parameters": ["blocks.%d.up.weight" % rank]}]},
                             {"line": "step", "step": 0, "frames": 1}):
                    f.write(json.dumps(line) + "\n")
        # Their order does not matter.
        status, out, err = said("--json", *files[:2], *records, *files[2:])
        check(status == 2, (status, err))
        doc = json.loads(out)
        check(not deviations(doc) and not deviations(doc["modules"]), deviations(doc))
        check(doc["firsts"][0]["carried"].endswith("gradients of blocks.2.up (1 parameter)"), doc["firsts"])
        check(len(doc["modules"]["ranks"]) == RANKS and not doc["modules"]["alarm"], doc["modules"])
        status, out, err = said(*records, *files)
        check(status == 2 and "gradients of blocks.2.up (1 parameter)" in out.splitlines()[0], (out, err))
        check("steps and" in out.splitlines()[-1] and "modules and operators looked at" in out, out)


def test_looks_at_a_job_that_runs():
    with tempfile.TemporaryDirectory() as at:
        if said(*trained(at, steps=2, COLLWATCH_SUMMARY="full"))[0] == 3:
            pytest.skip("built without nvcc and clang: there is no kernel")
    port, job = unused_port(), "numerics-%d" % os.getpid()
    ps = [start([sys.executable, TRAIN_LOOP_PY, "--steps", "1000000", "--tp", "2", "--log-every", "0",
                 "--fault", "feed-nan", "--fault-rank", "1", "--fault-step", "3"],
                environment(RANK=str(r), WORLD_SIZE=str(RANKS), LOCAL_RANK=str(r), MASTER_ADDR="127.0.0.1",
                            MASTER_PORT=str(port), COLLWATCH_JOB=job, COLLWATCH_SUMMARY="full"),
                stdout=subprocess.DEVNULL) for r in range(RANKS)]
    try:
        until = time.monotonic() + 60
        doc = {"firsts": []}
        while not doc["firsts"] and time.monotonic() < until:
            status, out, _ = said("--json", job)
            doc = json.loads(out) if out else doc
        check([f["rank"] for f in doc["firsts"]] == [1] and doc["alarm"], doc)
        check(len(doc["ranks"]) == RANKS and doc["coverage"].startswith("4 ranks, "), doc["coverage"])
        status, out, err = said(str(ps[1].pid))
        check(status == 2 and "1 of 4 ranks, " in out, (out, err))
    finally:
        for p in ps:
            p.kill()
            p.wait()


def test_says_nothing_of_a_healthy_job():
    with tempfile.TemporaryDirectory() as at:
        records = trained(at, COLLWATCH_SUMMARY="full")
        status, out, err = said(*records)
        if status == 3:
            pytest.skip("built without nvcc and clang: there is no kernel")
        check(status == 0 and out.startswith("no finding"), (status, out, err))
        status, _, err = said(records[0], records[0])
        check(status == 1 and "both of rank" in err, err)


def test_says_so_where_nothing_was_looked_at():
    with tempfile.TemporaryDirectory() as at:
        status, out, err = said(*trained(at, steps=3))
        check(status == 3 and not out and "COLLWATCH_SUMMARY" in err, (status, out, err))
        status, _, err = said("/nowhere")
        check(status == 1 and "/nowhere" in err, err)
        status, _, err = said()
        check(status == 1, err)


# ---- calls in groups ----


def grouped(at, *arguments, policy="full"):
    """The judge's document, its exit status and the records."""
    p = start([*GROUPED_JOB, *arguments],
              environment(COLLWATCH_JOB="unit", COLLWATCH_RECORD=at, COLLWATCH_SUMMARY=policy))
    check(p.wait(120) == 0, "exit status %d" % p.returncode)
    records = sorted(glob.glob(at + "/*.record"))
    status, out, err = said("--json", "--last", "120", *records)
    if status == 3 and policy == "full":
        pytest.skip("built without nvcc and clang: there is no kernel")
    doc = json.loads(out)
    check(not deviations(doc), deviations(doc))
    check(len(records) == GROUPED_RANKS, (records, err))
    return status, doc


def test_outputs_of_groups_are_compared_and_added_up():
    with tempfile.TemporaryDirectory() as at:
        status, doc = grouped(at, "--steps", "3")
        check(status == 0, doc["coverage"])
        per_step = GROUPED_IN + GROUPED_OUT + 2 * GROUPED_RANKS
        for r in doc["ranks"]:
            # Its root alone feeds into a broadcast.
            check(r["tensors"] == 3 * (per_step + (r["rank"] == 0)), r["tensors"])
            check(r["not_collected"] == 0, r)
        check(doc["checked"]["replicas"] == 3 * 4, doc["checked"])
        check(doc["checked"]["sums"] == 3 * 3, doc["checked"])


def test_names_who_fed_nan_into_a_group():
    with tempfile.TemporaryDirectory() as at:
        status, doc = grouped(at, "--fault", "nan", "--fault-rank", "2")
        check(status == 2 and len(doc["firsts"]) == 1, doc["firsts"])
        first = doc["firsts"][0]
        check((first["rank"], first["kind"], first["comm_name"], first["side"], first["origin"]) ==
              (2, "all_reduce", "other", "input", "rank"), first)
        for r in doc["ranks"]:
            side = "input" if r["rank"] == 2 else "output"
            check((r["first"]["side"], r["first"]["seq"]) == (side, first["seq"]), r["first"])


def test_what_a_group_receives_is_looked_at():
    with tempfile.TemporaryDirectory() as at:
        status, doc = grouped(at, "--fault", "nan-sent", "--fault-rank", "2")
        check(status == 2, doc["coverage"])
        firsts = {r["rank"]: r.get("first") for r in doc["ranks"]}
        check((firsts[2]["kind"], firsts[2]["side"]) == ("send", "input"), firsts[2])
        check((firsts[0]["kind"], firsts[0]["side"], firsts[0]["nans"]) == ("recv", "output", 1), firsts[0])
        check(firsts[1] is None, firsts[1])


def test_a_copy_in_a_group_that_is_wrong_is_told():
    with tempfile.TemporaryDirectory() as at:
        status, doc = grouped(at, "--fault", "flip", "--fault-rank", "2")
        check(status == 2 and len(doc["divergences"]) == 1, doc["divergences"])
        d = doc["divergences"][0]
        check((d["kind"], d["comm_name"], d["has_majority"]) == ("all_reduce", "world", True), d)
        check(sorted(g["ranks"] for g in d["groups"]) == [[0, 1], [2]], d["groups"])
        check(not doc["firsts"], doc["firsts"])


# ---- unlike devices ----


def unlike(at, fault, other_model):
    """Exit status, document and text for a job whose rank 2 has another copy than the others."""
    status, doc = grouped(at, "--fault", fault, "--fault-rank", "2", "--other-model", str(other_model))
    return status, doc, said(*sorted(glob.glob(at + "/*.record")))[1]


MODELS = [{"value": "NVIDIA B200", "ranks": [2]}, {"value": "Simulated device", "ranks": [0, 1]}]
IN_WORDS = " Its members have unlike devices: NVIDIA B200 (rank 2), Simulated device (ranks 0-1)\n"


def test_a_gathered_copy_that_is_wrong_is_told_with_the_models_of_devices():
    with tempfile.TemporaryDirectory() as at:
        status, doc, out = unlike(at, "flip-gathered", 2)
        check(status == 2 and len(doc["divergences"]) == 1 and not doc["roundings"], doc)
        d = doc["divergences"][0]
        check((d["kind"], d["unlike"]) == ("all_gather", {"device_model": MODELS}), d)
        check("which should be equal bit for bit: " in out and IN_WORDS in out, out)


def test_a_sum_that_differs_where_the_device_does_is_no_alarm():
    with tempfile.TemporaryDirectory() as at:
        status, doc, out = unlike(at, "round", 2)
        check(status == 0 and not doc["alarm"] and not doc["divergences"], doc)
        check(len(doc["roundings"]) == 1 and not doc["suspects"], doc)
        r = doc["roundings"][0]
        check((r["kind"], r["comm_name"], r["unlike"]) == ("all_reduce", "world", {"device_model": MODELS}), r)
        check(sorted(g["ranks"] for g in r["groups"]) == [[0, 1], [2]], r["groups"])
        check("For that no alarm: " in out and IN_WORDS in out, out)
        check("copies that must be equal are equal, but for those of unlike devices" in out, out)


def test_a_sum_that_differs_by_more_than_rounding_is_an_alarm():
    with tempfile.TemporaryDirectory() as at:
        status, doc, out = unlike(at, "flip", 2)
        check(status == 2 and len(doc["divergences"]) == 1 and not doc["roundings"], doc)
        check(IN_WORDS in out, out)


def test_a_sum_that_differs_between_like_devices_is_an_alarm():
    with tempfile.TemporaryDirectory() as at:
        status, doc, out = unlike(at, "round", 1)
        check(status == 2 and len(doc["divergences"]) == 1 and not doc["roundings"], doc)
        check(" Its members have unlike devices: NVIDIA B200 (rank 1), Simulated device (ranks 0,2)\n" in out, out)


def test_of_a_large_group_all_ranks_look_at_the_same_outputs():
    with tempfile.TemporaryDirectory() as at:
        status, doc = grouped(at, "--steps", "1", "--many", "300")
        check(status == 0, doc["coverage"])
        check("left out for want of a place" in doc["coverage"], doc["coverage"])
        for r in doc["ranks"]:
            check(r["not_collected"] >= 300 - 60, r["not_collected"])
        # The last 60 of each rank's 120 summaries are of the same 60 calls.
        check(doc["checked"]["replicas"] >= 60, doc["checked"])


def test_sampled_members_look_at_the_same_outputs_of_groups():
    with tempfile.TemporaryDirectory() as at:
        status, doc = grouped(at, "--steps", "60", "--elements", "4096", policy="sampled")
        check(status in (0, 3), doc["coverage"])
        check(doc["checked"]["replicas"] > 0, doc["coverage"])
