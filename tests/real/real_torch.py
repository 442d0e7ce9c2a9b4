#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own CUDA build on NVIDIA's own NCCL and the simulated device: jobs compute the same
with the agent as without it, and the daemon leaves them in peace. For jobs that go wrong, the
verdict equals the label in torch_lib.py. Skipped where PyTorch or NCCL is missing. Prints TAP.

usage: tests/real/real_torch.py [--brief | --times N [--shipped]] [BUILD-DIRECTORY] [TEST…]

It fetches half a gigabyte the first time. --brief: the part in the default run, one healthy job and
two faults; it gives up fetching and building after a few minutes, and says that nothing ran.
--times N: each program N times, healthy. --shipped: with the default patience, where the machine
has nothing else to do."""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--times", type=int, metavar="N")
    parser.add_argument("--shipped", action="store_true")
    parser.add_argument("build", nargs="?", default="build", metavar="BUILD-DIRECTORY")
    parser.add_argument("chosen", nargs="*", metavar="TEST")
    return parser.parse_args()


ARGS = parse()
os.environ["CW_BUILD"] = os.path.realpath(ARGS.build)

from lab_lib import SOURCE, must_be_equal  # noqa: E402 pylint: disable=wrong-import-position
import tap  # noqa: E402 pylint: disable=wrong-import-position
from torch_labels import (CROWD, CULPRIT, LABELS, fault_rank,  # noqa: E402 pylint: disable=wrong-import-position
                          names_line)
from torch_lib import (ALERT_S, BUILD, BUILD_S, JOB_S, PATIENT, RANKS,  # noqa: E402 pylint: disable=wrong-import-position
                       Job, ask_for_dumps, told, told_of_ends, torch)
# After torch_lib, which says where the build is.
from agent_lib import check, environment, wait_until  # noqa: E402 pylint: disable=wrong-import-position
from built import AGENT, COLLWATCH  # noqa: E402 pylint: disable=wrong-import-position
from daemon import Daemon  # noqa: E402 pylint: disable=wrong-import-position
from elastic_lib import ElasticJob, two_nodes  # noqa: E402 pylint: disable=wrong-import-position
import torch_build  # noqa: E402 pylint: disable=wrong-import-position
from waiting import said  # noqa: E402 pylint: disable=wrong-import-position

# A healthy job on a machine that is too busy is slow, not hung: only a proof may alert.
UNHURRIED = "" if ARGS.shipped else 'no_progress_after = "1h"\nfirst_op_after = "1h"\n'

# Of the default run's eight minutes: to fetch half a gigabyte, and to have all built. The rest is for
# the jobs.
BRIEF_FETCH_S, BRIEF_BUILD_S = 200, 300

state = {}


def build():
    """The default run does not wait long for an index, or for a machine that is slow today."""
    torch.build(BRIEF_BUILD_S if ARGS.brief else BUILD_S, is_needed=False,
                options=["--fetch-within", str(BRIEF_FETCH_S)] if ARGS.brief else [])


def say_what_ran():
    """For the summary of a run, also where nothing did."""
    if torch.absent:
        print(f"# note: PyTorch was not run: {torch.absent}")
    else:
        print(f"# note: PyTorch {torch_build.VERSION} ran on NVIDIA's NCCL")


def alone_results(directory, program, variables):
    job = Job(directory, program, variables=variables)
    try:
        results = job.results()
    finally:
        job.close()
    check(len([line for line in results if " result " in line]) == RANKS, results)
    return results


def watched_results(daemon, program, variables):
    """Of a job that goes on until the daemon has seen all of it."""
    end = daemon.dir + "/end"
    job = Job(daemon.dir, program, "--until", end, daemon=daemon, variables=variables)

    def is_seen():
        check(job.is_running(), "a rank ended before its time")
        known = daemon.job(program)
        return known and known["ranks"] == RANKS and job.has_computed()
    try:
        wait_until(is_seen, "all ranks are seen", JOB_S)
        with open(end, "wb"):
            pass
        return job.results()
    finally:
        job.close()


def is_left_in_peace(program, config=UNHURRIED, variables=None, times=1):
    """The same bits with the agent as without it, every rank visible, and no page."""
    with Daemon(patience=config) as daemon:
        daemon.start()
        expected = alone_results(daemon.dir, program, {})
    for _ in range(times):
        with Daemon(patience=config) as daemon:
            daemon.start()
            must_be_equal(expected, watched_results(daemon, program, variables), "with the agent")
            check(not daemon.documents(), [i["summary"] for i in daemon.documents()])


def checkpoint_longer_than_patience_is_left_in_peace():
    """While one rank writes, the others wait in a barrier, longer than the patience with an idle
    rank."""
    is_left_in_peace("checkpoint", PATIENT, {"CHECKPOINT_S": "45"})


def wait_until_told(job, program, fault, told):
    """told() returns the alerts so far."""
    verdict, culprits, function = LABELS[program, fault]

    def is_told():
        time.sleep(0.5)  # a report is a process
        return any(v == verdict and ranks == culprits and names_line(report, program, function)
                   for v, ranks, report in told())
    try:
        wait_until(is_told, f"{verdict}, ranks {culprits}, {function}", ALERT_S)
    except AssertionError as e:
        raise tap.Failure("%s; told: %s\n%s" % (
            e, "\n".join(r for _, _, r in told()) or "nothing",
            [job.output(i, "err")[-1500:].decode() for i in range(len(job.ranks))])) from None
    # No alert names another rank, before it or beside it: ranks that die with it are its cascade.
    wrong = [report for _, ranks, report in told() if ranks != culprits]
    check(not wrong, "others are named, too: " + "\n".join(wrong))


def goes_wrong(program, fault):
    if program == "elastic":
        elastic_goes_wrong(fault)
        return
    with Daemon(patience=PATIENT) as daemon:
        daemon.start()
        job = Job(daemon.dir, program, "--steps", "1000000", "--fault", fault, "--fault-rank",
                  str(fault_rank(fault)), daemon=daemon, ranks=CROWD)
        try:
            wait_until_told(job, program, fault, lambda: told(daemon, program))
        finally:
            job.close()


def elastic_is_left_in_peace(times=1):
    """Two nodes, each with a launcher, a rank and a daemon."""
    with two_nodes(UNHURRIED) as cluster:
        with ElasticJob(cluster, is_watched=False) as job:
            expected = job.results()
    for _ in range(times):
        with two_nodes(UNHURRIED) as cluster, ElasticJob(cluster, "--until", cluster.dir + "/end") as job:
            def is_seen():
                check(job.is_running(), "a launcher ended before its time")
                known = [j for j in (n.job("elastic") for n in cluster.nodes) if j]
                return any(j["ranks"] == RANKS for j in known) and job.has_computed()
            wait_until(is_seen, "all ranks are seen", JOB_S)
            with open(cluster.dir + "/end", "wb"):
                pass
            must_be_equal(expected, job.results(), "with the agent")
            check(not told(cluster.nodes, "elastic"), told(cluster.nodes, "elastic"))


def elastic_goes_wrong(fault):
    """After the alert on the failed rank, the restarted job is one that runs."""
    def all_told():
        return told(cluster.nodes, "elastic") | told_of_ends(cluster.nodes, "elastic")
    with two_nodes(PATIENT) as cluster:
        last = [] if fault == "exception" else ["--steps", "1000000"]
        with ElasticJob(cluster, "--fault", fault, "--fault-rank", str(CULPRIT), *last) as job:
            wait_until_told(job, "elastic", fault, all_told)
            if fault == "exception":
                check(len([r for r in job.results() if " result " in r]) == RANKS, "it goes on")
            check(all(ranks == (CULPRIT,) for _, ranks, _ in all_told()),
                  [report for _, _, report in all_told()])


def groups_have_torchs_names_and_times_where_it_is_watched():
    """The program as it is, run by collwatch.torch."""
    with Daemon(patience=UNHURRIED) as daemon:
        daemon.start()
        job = Job(daemon.dir, "moe", "--steps", "1000000", "--timeout", "1500", daemon=daemon, by_watch=True)

        def is_named():
            check(job.is_running(), "a rank ended before its time")
            time.sleep(0.5)
            known = daemon.job("moe") or {}
            rows = daemon.answer("status", "--ops")["rows"]
            names = {row["comm_name"].split(" (")[0] for row in rows}
            # The second group was given no time, and has torch's own.
            return {"default_pg", "experts"} <= names and known["job_timeout"] == {
                "seconds": 600.0, "assumed": False, "set_by": "timeout of its process groups"}
        try:
            wait_until(is_named, "its groups have names and the shorter time", JOB_S)
        finally:
            job.close()


def tensor_stats_on_the_device_are_the_kernels():
    """Where there is the agent; and modules have hooks in steps alone that are looked at."""
    with Daemon(patience=UNHURRIED) as daemon:
        daemon.start()
        job = Job(daemon.dir, os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_tensor_stats"),
                  daemon=daemon,
                  has_module=True)
        try:
            lines = job.results()
        finally:
            job.close()
    for line in lines:
        found = re.fullmatch(r"rank \d+ result (\d+) of (\d+) the same, hooks (.*), numbers (.*)", line)
        check(found and found[1] == found[2] and int(found[1]) >= 10, line)
        check(found[3] == "[8, 2, 8, 2]", line)
        looked_at = re.findall(r"\((\d+), (\d+)\)", found[4])
        check([n == by_kernel and (n != "0") == (step % 2 == 0) for step, (n, by_kernel) in enumerate(looked_at)]
              == [True] * 4, line)


BATCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_batch.py")


def ranks_of_batch(*before, ranks, arguments):
    """The output of `before` and the launcher, with any exit status."""
    torch.needed()
    return subprocess.run([*before, os.path.join(SOURCE, "lab", "real-torch"), "run", "--build", BUILD, "--ranks", str(ranks),
                           "--", BATCH, *arguments], env=environment(preload=None, PYTHONPATH=SOURCE + "/python"),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=JOB_S, check=False)


def the_same_batch_on_more_ranks_is_compared(*sharded):
    with tempfile.TemporaryDirectory() as at:
        def record(name, ranks, *arguments):
            done = ranks_of_batch(COLLWATCH, "baseline", "record", "-o", f"{at}/{name}", "--complete", "--agent", AGENT,
                                  "--",
                                  ranks=ranks, arguments=[*sharded, *arguments])
            check(done.returncode == 0, done.stdout)
        record("two", 2)
        record("four", 4)
        record("wrong", 4, "--fault-step", "6", "--loss", "1.5")

        def compared(name):
            return json.loads(said(COLLWATCH, "baseline", "check", "--json", at + "/two", f"{at}/{name}"))
        doc = compared("four")
        check(doc["outcome"] == "equal" and doc["checked"] >= 12, doc["coverage"])
        first = compared("wrong")["first"]
        check(first and first["rank"] is None and first["check"]["step"] == 6, first)
        check((first["what"], first["side"]) == ("tensor_stats", "output"), first)


def the_gradients_of_a_call_are_told(*sharded):
    """NaN among what a layer makes: the first call into which it goes has its gradients, by their names."""
    with tempfile.TemporaryDirectory() as at, Daemon(patience=UNHURRIED) as daemon:
        daemon.start()
        # A record has the tensors of the last four steps.
        job = Job(daemon.dir, BATCH[:-len(".py")], *sharded, "--fault-step", "9", "--poison", "3.up", "--path",
                  at + "/rank%d.jsonl", daemon=daemon, has_module=True,
                  variables={"COLLWATCH_SUMMARY": "full", "COLLWATCH_RECORD": at})
        try:
            job.results()
        finally:
            job.close()
        records, files = glob.glob(at + "/*.record"), glob.glob(at + "/rank*.jsonl")
        check(len(records) == len(files) == RANKS, os.listdir(at))
        first, = json.loads(said(COLLWATCH, "numerics", "--json", *records, *files))["firsts"]
        check((first["rank"], first["step"]) == (RANKS - 1, 9), first)
        check(re.fullmatch(r"gradients of .*\b3\.up.*", first["carried"] or ""), first)


def torchs_own_dump_is_read_right():
    """The same hang without an agent: torch's recorder, by the same label."""
    verdict = LABELS["ddp", "block-in-data-loader"][0].replace("_", " ")
    with Daemon(patience=PATIENT) as daemon:  # a directory that goes away; the daemon is not started
        at = daemon.dir + "/dumps"
        os.mkdir(at)
        job = Job(daemon.dir, "ddp", "--steps", "1000000", "--fault", "block-in-data-loader",
                  "--fault-rank", str(CULPRIT), ranks=CROWD,
                  variables={"TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
                             "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
                             "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": at + "/rank_",
                             "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": daemon.dir + "/pipe_"})

        def is_read():
            check(job.is_running(), "a rank ended before its time")
            ask_for_dumps(daemon.dir)
            time.sleep(2)  # for the dumps; we read later ones the next time
            state["said"] = said(COLLWATCH, "analyze", "--flight-recorder", at)
            lines = " ".join(state["said"].split())
            return len(os.listdir(at)) == CROWD and f"class {verdict}:" in lines and \
                lines.startswith(f"HANG rank {CULPRIT} ")
        try:
            wait_until(is_read, "the dumps' verdict", ALERT_S)
        except AssertionError as e:
            raise tap.Failure(f"{e}; last: {state.get('said')}") from None
        finally:
            job.close()


def named(name, function, *arguments):
    """A test that calls that."""
    def test():
        function(*arguments)
    test.__name__ = re.sub(r"\W", "_", name)
    return test


def tests():
    healthy = ["ddp", "fsdp", "tensor", "pipeline", "ring", "moe", "gloo", "graph", "loader"]
    faults = list(LABELS)
    if ARGS.times:
        return [named(f"healthy_{program}_{ARGS.times}_times", is_left_in_peace, program, UNHURRIED,
                      None, ARGS.times) for program in healthy + ["checkpoint"]] + [
            named(f"healthy_elastic_{ARGS.times}_times", elastic_is_left_in_peace, ARGS.times)]
    if ARGS.brief:
        healthy, faults = ["ddp"], [("ddp", "block-in-data-loader"), ("ddp", "branch")]
    return ([named(f"healthy_{program}_is_left_in_peace", is_left_in_peace, program)
             for program in healthy] +
            ([] if ARGS.brief else [checkpoint_longer_than_patience_is_left_in_peace,
                                    named("healthy_elastic_is_left_in_peace",
                                          elastic_is_left_in_peace)]) +
            [named(f"{program}_{fault}_is_told", goes_wrong, program, fault)
             for program, fault in faults] +
            [tensor_stats_on_the_device_are_the_kernels] +
            ([] if ARGS.brief else [named(f"{name}_{what}", function, *arguments)
                                    for what, function in (
                                        ("on_more_ranks_is_compared", the_same_batch_on_more_ranks_is_compared),
                                        ("gradients_are_told", the_gradients_of_a_call_are_told))
                                    for name, arguments in (("ddp", ()), ("fsdp", ("--sharded",)))]) +
            ([] if ARGS.brief else [groups_have_torchs_names_and_times_where_it_is_watched,
                                    torchs_own_dump_is_read_right]))


tap.run([build] + [t for t in tests() if not ARGS.chosen or t.__name__ in ARGS.chosen] +
        [say_what_ran])
