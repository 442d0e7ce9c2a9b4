# SPDX-License-Identifier: Apache-2.0
"""Runs of a job on the simulated device, kept by `collwatch baseline record` and held against others."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import pytest
from agent_lib import *
from built import AGENT, COLLWATCH
from documents_contract import deviations

JOB = [sys.executable, os.path.join(os.path.dirname(__file__), "../programs/numbers_job.py")]
GROUPED_JOB = [sys.executable, os.path.join(os.path.dirname(__file__), "../programs/grouped_job.py")]
RANKS, STEPS = 3, 12
OPS = RANKS * STEPS * 3

pytestmark = pytest.mark.skipif(not has_kernels(), reason="built without nvcc and clang: there is no kernel")


def collwatch(*arguments, **variables):
    p = subprocess.run([COLLWATCH, "baseline", *arguments], env=environment(preload=None, **variables),
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    return p.returncode, p.stdout, p.stderr


# Its ranks live for milliseconds: unless they wait for it, some end before they are found.
def record(at, *job):
    status, _, err = collwatch("record", "-o", at, "--complete", "--agent", AGENT, "--", *JOB, *job)
    check(status == 0, (status, err))
    return at


def check_run(at, *job, options=()):
    """The document, and the end of standard output as text."""
    status, out, err = collwatch("check", at, "--json", "--complete", "--agent", AGENT, *options, "--", *JOB, *job)
    check(status in (0, 2, 3), (status, err))
    doc = json.loads(out)
    check(not deviations(doc), deviations(doc))
    check(doc["outcome"] == {0: "equal", 2: "differs", 3: "incomparable"}[status], (status, doc["outcome"]))
    return doc


@pytest.fixture(name="baseline", scope="module")
def fixture_baseline():
    with tempfile.TemporaryDirectory() as at:
        yield record(at + "/a")


@pytest.fixture(name="room")
def fixture_room():
    with tempfile.TemporaryDirectory() as at:
        yield at


def call(doc, side="check"):
    op = doc["first"][side]
    return doc["first"]["rank"], op["kind"], op["seq"]


def test_the_same_program_twice_is_equal(baseline):
    doc = check_run(baseline)
    check(doc["outcome"] == "equal" and doc["first"] is None, doc["first"])
    check(doc["checked"] == doc["ops_baseline"] == doc["ops_check"] == OPS, doc["coverage"])
    check([r["rank"] for r in doc["ranks"]] == [0, 1, 2], doc["ranks"])
    for r in doc["ranks"]:
        for part in (r["baseline"], r["check"]):
            check(part["finished"] and part["tensors"] == 2 * OPS // RANKS, part)
            check(part["lost_ops"] == part["lost_tensors"] == part["partial"] == 0, part)
    status, out, _ = collwatch("check", baseline, baseline)
    check(status == 0 and out.startswith(f"equal\nchecked {OPS} of {OPS} ops of 3 of 3 ranks"), out)


def test_another_seed_differs_from_the_first_op_on(baseline):
    doc = check_run(baseline, "--seed", "1")
    check(doc["outcome"] == "differs" and doc["ranks_that_differ"] == 3, doc["coverage"])
    check(call(doc)[1:] == ("all_reduce", 1), doc["first"])
    check(doc["first"]["what"] == "tensor_stats" and doc["first"]["side"] == "input", doc["first"])
    check(doc["skipped_check"] == doc["skipped_baseline"] == 0, doc["coverage"])


def test_another_scale_on_one_rank_is_that_ranks(baseline):
    doc = check_run(baseline, "--scale", "1.001", "--scale-rank", "2", "--scale-step", "5")
    # Of that call, the input of rank 2 comes before the common output.
    check(call(doc) == (2, "all_reduce", 5 * 3 + 1), doc["first"])
    check((doc["first"]["side"], doc["first"]["value"]) == ("input", "absmax"), doc["first"])
    a, b = (doc["first"][side]["input"]["absmax"] for side in ("baseline", "check"))
    check(abs(b / a - 1.001) < 1e-6, (a, b))
    # Of its first calls, the agent may not be able to read the stack yet.
    site = doc["first"]["check"]["site"]
    check("train_loop.py:" in site or "+0x" in site, site)
    doc = check_run(baseline, "--scale", "1.001", "--scale-rank", "2", "--scale-step", "5",
                    options=["--rtol", "0.01"])
    check(doc["outcome"] == "equal", doc["first"])


def test_one_op_more_is_named_and_the_rest_compared(baseline):
    doc = check_run(baseline, "--more-in-step", "6")
    check(doc["first"]["what"] == "extra" and doc["first"]["baseline"] is None, doc["first"])
    check(call(doc)[1:] == ("all_reduce", 6 * 3 + 3), doc["first"])
    check(doc["extra"] == RANKS and doc["missing"] == doc["tensor_stats"] == 0, doc["coverage"])
    check(doc["checked"] == OPS, doc["coverage"])


def test_one_type_is_named(baseline):
    doc = check_run(baseline, "--other-type-in-step", "7")
    check(doc["first"]["what"] == "dtype" and call(doc)[1:] == ("all_reduce", 7 * 3 + 2), doc["first"])
    check(doc["first"]["baseline"]["dtype"] == "fp32" and doc["first"]["check"]["dtype"] == "int32", doc["first"])
    check(doc["called_otherwise"] == RANKS and doc["tensor_stats"] == 0, doc["coverage"])


def test_a_skipped_warm_up_is_no_difference(baseline, room):
    doc = check_run(baseline, "--from-step", "4")
    check(doc["outcome"] == "equal" and doc["paired_by"] == "call", doc["first"])
    check(doc["skipped_baseline"] == RANKS * 4 * 3 and doc["checked"] == RANKS * 8 * 3, doc["coverage"])
    marked = record(room + "/marked", "--mark")
    # Numbers would not pair these: all differ.
    doc = check_run(marked, "--from-step", "4", "--mark", "--scale", "3", "--scale-rank", "1")
    check(doc["paired_by"] == "step" and doc["skipped_baseline"] == RANKS * 4 * 3, doc["coverage"])
    check(call(doc) == (1, "all_reduce", 1) and doc["first"]["check"]["step"] == 4, doc["first"])
    check(doc["first"]["baseline"]["step"] == 4 and doc["first"]["baseline"]["seq"] == 4 * 3 + 1, doc["first"])


def test_leaves_out_what_is_asked(baseline):
    doc = check_run(baseline, "--more-in-step", "6", options=["--skip", "kind=all_reduce"])
    check(doc["outcome"] == "equal" and doc["checked"] == OPS // 3, doc["coverage"])
    doc = check_run(baseline, "--seed", "1", options=["--only", "comm=another"])
    check(doc["outcome"] == "incomparable" and "no op has tensors in both" in doc["why"], doc["why"])


def test_says_what_cannot_be_compared(baseline, room):
    doc = check_run(baseline, "--ranks", "2", options=("--skip", "comm=world"))
    check(doc["outcome"] == "incomparable" and doc["why"].startswith(
        "the world size is 3 in the baseline and 2 in the check, and their communicators have different members, "),
          doc["why"])
    doc = check_run(baseline, "--fail")
    check(doc["outcome"] == "incomparable" and "the program failed" in doc["why"], doc["why"])
    # A program that fails after it differed, differs.
    check(check_run(baseline, "--fail", "--seed", "1")["outcome"] == "differs", "it differs")
    os.mkdir(room + "/part")
    shutil.copy(baseline + "/rank-1.baseline", room + "/part")
    status, out, _ = collwatch("check", baseline, room + "/part")
    check(status == 3 and "cannot be compared: rank 0 is in the baseline only" in out, (status, out))
    status, _, err = collwatch("record", "-o", room + "/none", "--agent", AGENT, "--", "/bin/true")
    check(status == 3 and "no rank with NCCL calls was seen" in err, (status, err))


def test_the_same_batch_on_twice_as_many_ranks_is_equal(room):
    at = record(room + "/a", "--ranks", "2", "--parts", "4")
    doc = check_run(at, "--ranks", "4", "--parts", "4")
    check(doc["outcome"] == "equal" and doc["checked"] == doc["ops_baseline"] == STEPS * 3, doc)
    check(doc["together"] == {"ranks_baseline": 2, "ranks_check": 4, "own": 0, "omitted_baseline": 0, "omitted_check": 0}, doc)
    check([r["rank"] for r in doc["ranks"]] == [None] and doc["ranks"][0]["baseline"]["finished"], doc["ranks"])
    check("ranks together, 2 of 2 in the baseline and 4 of 4 here" in doc["coverage"], doc["coverage"])
    doc = check_run(at, "--ranks", "4", "--parts", "4", "--scale", "1.1", "--scale-rank", "3", "--scale-step", "5")
    first = doc["first"]
    check(doc["outcome"] == "differs" and first["rank"] is None and first["what"] == "tensor_stats", doc)
    check((first["side"], first["check"]["kind"], first["check"]["seq"]) == ("output", "all_reduce", 16), first)
    check(first["text"].startswith("all ranks together: all_reduce #16 on world"), first["text"])
    # The gathered tensor is as long in both.
    doc = check_run(at, "--ranks", "4", "--parts", "4", "--scale", "1.1", "--scale-rank", "3", "--scale-step", "5",
                    options=("--skip", "kind=all_reduce"))
    check((doc["first"]["check"]["kind"], doc["first"]["check"]["seq"]) == ("all_gather", 18), doc["first"])
    check((doc["first"]["baseline"]["count"], doc["first"]["check"]["count"]) == (128, 64), doc["first"])
    # A missing rank must not count as equal.
    doc = check_run(at, "--ranks", "4", "--parts", "4", options=("--keep", room + "/kept"))
    os.unlink(room + "/kept/rank-2.baseline")
    status, out, _ = collwatch("check", at, room + "/kept")
    check(status == 3 and "ranks are missing: 2 of 2 are in the baseline, 3 of 4 in the check" in out, (status, out))
    record(room + "/b", "--ranks", "4", "--parts", "4", "--seed", "1")
    status, _, _ = collwatch("check", at, room + "/b", "--html", "-o", room + "/page.html")
    with open(room + "/page.html", encoding="utf-8") as f:
        page = f.read()
    check(status == 2 and "all ranks together" in page and "rank -1" not in page, status)


def record_complete(room, how, wanted_status=0):
    """Of more tensors than a record holds, while the reader does not come to read them."""
    status, _, err = collwatch("record", "--complete", "-o", f"{room}/{how}", "--agent", AGENT, "--", sys.executable,
                               os.path.join(os.path.dirname(__file__), "../programs/unread_job.py"), how, f"{room}/{how}.result",
                               str(RANKS), *JOB, "--steps", "60", TMPDIR=room)
    check(status == wanted_status, (status, err))
    if how != "killed":
        check(not glob.glob(room + "/collwatch-complete-*"), os.listdir(room))
    return [line for line in sorted(err.splitlines()) if line.startswith("collwatch: rank ")]


def test_ranks_wait_for_a_reader_that_is_to_have_all(room):
    check(record_complete(room, "once") == [f"collwatch: rank {i}: ops 180, tensors 360" for i in range(RANKS)], "all")
    said = record_complete(room, "unasked")
    lost = [re.search("ops 180, tensors (.*); lost ops 0, lost tensors at most (.*)", line) for line in said[1::2]]
    check(len(lost) == RANKS and all(n and int(n[1]) + int(n[2]) == 360 and int(n[2]) > 200 for n in lost), said)
    check(all("did not wait for its reader" in line for line in said[::2]), said)


def test_ranks_wait_for_a_reader_that_is_gone_once(room):
    record_complete(room, "killed", -signal.SIGKILL)

    def result():
        if os.path.exists(room + "/killed.result"):
            with open(room + "/killed.result", encoding="ascii") as f:
                return f.read()
        return None
    check(wait_until(result, "the job goes on to its end") == "0", "it ends well")


def test_reads_flight_records(baseline, room):
    kept = room + "/records"
    os.mkdir(kept)
    p = start([*JOB, "--scale", "2", "--scale-rank", "0", "--scale-step", "11"],
              environment(COLLWATCH_RECORD=kept, COLLWATCH_SUMMARY="full", COLLWATCH_CALL_STACKS="on"))
    check(p.wait(60) == 0, p.returncode)
    records = glob.glob(kept + "/*.record")
    at = room + "/kept"
    status, out, err = collwatch("check", baseline, "--keep", at, *records)
    check(status == 2, (status, out, err))
    check(out.startswith(f"rank 0: all_reduce #{11 * 3 + 1} on world ("), out)
    status, again, _ = collwatch("check", baseline, at)
    check(status == 2 and again == out, again)
    status, _, err = collwatch("record", "-o", room + "/one", records[0])
    check(status == 0 and "ranks read: 1 of 3\n" in err, err)
    status, _, err = collwatch("record", "-o", at, *records)
    check(status == 1 and "already has baselines" in err, err)


def test_what_comes_out_of_groups_is_compared(room):
    at, ops = room + "/grouped", 3 * 3 * (4 + 2 * 3)
    status, _, err = collwatch("record", "-o", at, "--complete", "--agent", AGENT, "--", *GROUPED_JOB)
    check(status == 0, (status, err))
    for scale, outcome in ("1", "equal"), ("3", "differs"):
        status, out, err = collwatch("check", at, "--json", "--complete", "--agent", AGENT, "--", *GROUPED_JOB,
                                     "--scale", scale)
        doc = json.loads(out)
        check(doc["outcome"] == outcome, (status, doc["first"], err))
        check(doc["checked"] == doc["ops_baseline"] == doc["ops_check"] == ops, doc["coverage"])
        # Receives have an output alone: none would have been checked without it.
        for r in doc["ranks"]:
            check(r["check"]["tensors"] >= 3 * (3 + 4 + 2 * 3), r["check"])
    # Three sends of rank 1, and the three receives of them.
    check(doc["tensor_stats"] == 6, doc["coverage"])


def test_refuses_what_it_does_not_understand(baseline):
    for words, why in [((), "give record"), (("check",), "no baseline given"), (("record", "-o", "x"), "give either"),
                       (("record", "--", "true"), "-o DIRECTORY"), (("check", baseline), "give either"),
                       (("check", baseline, baseline, "--rtol", "-1"), "a tolerance must be"),
                       (("check", baseline, baseline, "--complete"), "--complete need a program"),
                       (("record", "-o", "x", "--complete", "--summary", "sampled", "--", "true"), "--summary full"),
                       (("check", baseline, baseline, "--skip", "colour=red"), "kind=PATTERN"),
                       (("check", "/nowhere", baseline), "no baselines in it"),
                       (("record", "-o", "/nowhere/x", "--", "true"), "/nowhere/x")]:
        status, out, err = collwatch(*words)
        check(status == 1 and why in err and not out, (words, status, err))


def test_the_page_has_both_runs_side_by_side(baseline, room):
    page = room + "/page.html"
    options = ("--complete", "--agent", AGENT, "--", *JOB, "--seed", "1")
    status, out, err = collwatch("check", baseline, "--html", "-o", page, *options)
    check(status == 2 and not out, (status, out, err))
    text = "".join(xml.etree.ElementTree.parse(page).getroot().itertext())
    check("differs" in text and "The first difference of each rank" in text, text)
    status, _, err = collwatch("check", baseline, "--html", "--json", *options)
    check(status == 1 and "either --json or --html" in err, (status, err))
    status, _, err = collwatch("check", baseline, "--html", "-o", "/nowhere/page", *options)
    check(status == 1 and "cannot write /nowhere/page" in err, (status, err))
