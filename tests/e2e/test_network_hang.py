# SPDX-License-Identifier: Apache-2.0
"""A network that carries nothing any more: in each rank a nameless thread of NCCL polls on a whole
core meanwhile, and so does the main thread inside of the driver. Neither is a sign of life of the
rank, nor does it keep the agent from a query of the interpreter."""
import glob
import json
import os
import shutil

from demo_driver import Draw
from waiting import expect

RANKS = 4
STILL_NS = 8 * 10**9  # a hang is confirmed later than that
POLLED_S = 0.2  # of CPU time: far more than any other thread beside the main one takes
MAIN_POLLED_S = 1


def load(bundle, name):
    with open(os.path.join(bundle, name), encoding="utf-8") as f:
        return json.load(f)


def bundle_of(demo, **environment):
    keep = os.path.join(demo.tmp, "kept")
    demo.environment.update(environment)
    result = demo.run(Draw("network-stall", RANKS, 2, 0), "--keep", keep)
    expect(result.is_right, result.explain())
    (bundle,) = glob.glob(keep + "/*")
    return bundle


def polls(thread, polled_s):
    """On a machine where all threads want a core it gets hardly any of one, but it never sleeps."""
    return thread["state"] == "R" or thread["cpu_s"] > polled_s


def check_polling(bundle, does_poll):
    """Else what follows proves nothing."""
    for evidence in load(bundle, "evidence.json"):
        threads = evidence["proc"]["threads"]
        expect(any(does_poll(t, threads[0]) for t in threads),
               f"nothing polls in rank {evidence['rank']}: {threads}")


def check_python(bundle):
    seen = load(bundle, "evidence.json")
    expect(seen, "no evidence")
    for evidence in seen:
        expect(evidence["python"]["status"] == "ok",
               f"rank {evidence['rank']}: {evidence['python']}")
    (python,) = [t for t in load(bundle, "stacks.json")["trees"] if t["kind"] == "python"]
    expect(python["ranks"] == f"0-{RANKS - 1}" and "synchronize" in json.dumps(python), str(python))


def check_a_run(demo, does_poll, **environment):
    """On a busy machine an interpreter may have run just before the query; not three times."""
    for left in 2, 1, 0:
        bundle = bundle_of(demo, **environment)
        check_polling(bundle, does_poll)
        reasons = [e["python"].get("reason") for e in load(bundle, "evidence.json")]
        if not left or "the interpreter is running" not in reasons:
            break
        shutil.rmtree(os.path.dirname(bundle))
    check_python(bundle)
    check_host_activity(bundle)


def check_host_activity(bundle):
    snapshot = load(bundle, "snapshot.json")
    for rank in snapshot["ranks"]:
        still_ns = snapshot["now_ns"] - rank["host_activity_ns"]
        expect(still_ns >= STILL_NS, f"{rank['host_activity_by']} {still_ns / 1e9:.1f} s ago: {rank}")


def test_a_thread_of_nccl_that_polls_is_no_sign_of_life(demo):
    check_a_run(demo, lambda t, main: t is not main and t["name"] == main["name"] and
                polls(t, POLLED_S), SIM_NCCL_PROXY="1")


def test_a_main_thread_that_polls_in_the_driver_is_no_sign_of_life(demo):
    check_a_run(demo, lambda t, main: t is main and polls(t, MAIN_POLLED_S), SIM_CUDA_POLL="1")
