# SPDX-License-Identifier: Apache-2.0
"""Queries and alerts for a job on several nodes: three daemons on loopback that are each other's
peers, one receiver of alerts, a rank of the job on each node."""

import json
import os
import signal
import subprocess
import sys

import pytest
from agent_lib import has_kernels
from built import COLLWATCH, TRAIN_LOOP_PY
from documents_contract import deviations as deviations_of_any
from job import Job, stop_outside_nccl
from waiting import expect, wait_until


# Trains until it is killed, and says nothing.
QUIET = ["--steps", "0", "--step-ms", "20", "--log-every", "0"]


def mute_of(node, name):
    """None: it is not muted; False: the node knows no such job, for the moment."""
    job = node.job(name)
    return job["muted"] if job else False


def test_a_mute_typed_anywhere_reaches_the_leader_and_the_next_one(cluster):
    job, leader, others = cluster.train("quiet")
    others[0].ask("mute", "quiet")
    wait_until(lambda: all(mute_of(n, "quiet") for n in cluster.nodes), "all know it")
    others[1].ask("mute", "--unmute", "quiet")
    wait_until(lambda: all(mute_of(n, "quiet") is None for n in cluster.nodes),
               "it can be taken back anywhere")
    others[1].ask("mute", "quiet")
    # The mute outlives the leader, and also the node where the user typed it, if that is
    # another one.
    leader.kill()
    heir = cluster.take_over("quiet", others)
    wait_until(lambda: (mute_of(heir, "quiet") or {}).get("node") == heir.name,
               "the next leader kept it")
    os.kill(job.ranks[cluster.nodes.index(heir)].pid, signal.SIGKILL)
    doc = wait_until(lambda: heir.documents("quiet"), "its bundle")[0]
    expect(doc["suppressed"] == "muted" and doc["class"] == "process_dead", doc)
    expect(not cluster.receiver.posts, cluster.receiver.posts)


def test_a_dead_node_is_named_when_a_job_is_unmuted_and_keeps_its_mute(cluster):
    _, leader, others = cluster.train("kept")
    dead = others[1]
    others[0].ask("mute", "kept")
    dead.kill()
    seen_as = lambda: {p["state"] for n in (leader, others[0]) for p in n.status()["peers"]
                       if p["node"] == dead.name}
    wait_until(lambda: "connected" not in seen_as(), "it is missed")
    out = others[0].ask("mute", "kept", "--unmute").stdout
    expect("alerts are sent again" in out and f"note: {dead.name} did not answer: a mute kept there" in
           out, out)
    # The others have forgotten the mute that it announced while it lived.
    wait_until(lambda: mute_of(leader, "kept") is None, "alerts go out")
    dead.start()
    muted = wait_until(lambda: mute_of(leader, "kept"), "it is back with it")
    expect(muted["node"] == dead.name, muted)
    wait_until(lambda: seen_as() == {"connected"}, "all meet")
    out = others[0].ask("mute", "kept", "--unmute").stdout
    expect("alerts are sent again" in out and "did not answer" not in out, out)
    wait_until(lambda: all(mute_of(n, "kept") is None for n in cluster.nodes),
               "for good")


def check_questions(cluster, job, leader, others, key):
    """Each node returns the leader's answer."""
    for node in cluster.nodes:
        # A node that is too slow drops out of the answer: we ask again.
        wait_until(lambda node=node: [i["id"] for i in node.incidents()].count(key) == 1,
                   f"{node.name} lists it once: {node.incidents()}")
        wait_until(lambda node=node: "stopped" in node.ask("report", key, check=False).stdout,
                   "the report")
        # Not more often than every two seconds for a user, over all nodes.
        out = wait_until(lambda node=node: node.ask("stacks", "loud", "--json", check=False).stdout,
                         "stacks")
        doc = json.loads(out)
        expect(doc["processes"] == len(cluster.nodes), doc)  # reachable or not
    none = lambda: others[0].ask("report", "0123456789abcdef", check=False)
    wait_until(lambda: none().returncode == 3 and "no incident" in none().stderr, f"none: {none()}")
    for uid, sees in (4321, False), (0, True):
        # A leader that is too slow to answer drops out of the list for the moment.
        listed = lambda uid=uid: [i["id"] for i in others[0].incidents(uid)]
        wait_until(lambda: (key in listed()) == sees, f"{uid} sees it: {sees}")  # pylint: disable=W0640
    expect(others[0].ask("report", key, uid=4321, check=False).returncode == 3, "not for others")
    expect(others[0].ask("stacks", "loud", uid=4321, check=False).returncode == 3, "nor these")
    leader.send(signal.SIGSTOP)
    try:
        done = others[0].ask("report", check=False)
        expect(f"{leader.name} did not answer" in done.stdout, done)
    finally:
        leader.send(signal.SIGCONT)


@pytest.mark.root  # to be several users
def test_every_node_answers_for_all_and_the_next_leader_tells_nothing_again(cluster):
    job, leader, others = cluster.train("loud")
    culprit = cluster.nodes.index(others[0])
    stop_outside_nccl(job.ranks[culprit])
    wait_until(lambda: cluster.receiver.posts, "an alert")
    key, doc = cluster.receiver.posts[0]
    expect([c["rank"] for c in doc["culprits"]] == [culprit], doc)
    wait_until(lambda: all(n.is_settled(key) for n in cluster.nodes), "all nodes know of it")
    check_questions(cluster, job, leader, others, key)
    leader.kill()
    heir = cluster.take_over("loud", others)
    told = wait_until(lambda: [b for b in heir.documents("loud") if b["id"] == key],
                      "the same incident in its own words: " + heir.log())[0]
    expect([c["rank"] for c in told["culprits"]] == [culprit], told)
    wait_until(lambda: "went out before" in heir.log(), "it is not sent: " + heir.log())
    expect(cluster.receiver.count(key) == 1, cluster.receiver.posts)


def test_status_on_any_node_is_the_leaders_answer(cluster):
    job, leader, others = cluster.train("seen")
    stop_outside_nccl(job.ranks[0])
    wait_until(lambda: leader.job("seen")["state"] == "hang", leader.log)
    for node in cluster.nodes:
        # A leader that is too slow to answer is named; then the question is put again.
        done = wait_until(lambda node=node: (d := node.ask("status", check=False)).returncode != 3 and d,
                          f"{node.name} has the leader's answer")
        expect(done.returncode == 2 and "is stopped" in done.stdout and "hang" in done.stdout, done)
        seen = node.job("seen")
        expect(seen["led_here"] == (node is leader) and seen["leader"] == leader.name, seen)
    leader.send(signal.SIGSTOP)
    try:
        done = others[0].ask("status", check=False)
        expect(done.returncode == 3 and f"{leader.name} leads this job and did not answer" in done.stdout, done)
    finally:
        leader.send(signal.SIGCONT)


@pytest.mark.root  # to be another user
def test_status_on_another_node_shows_users_their_own_jobs(cluster):
    _, _, others = cluster.train("mine")
    expect(others[0].status(uid=4321)["jobs"] == [], "not this user's")


def numbers_of(node, job, *words):
    """As a user on a host of the node's without a rank."""
    return subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", COLLWATCH, "numerics", job, "--control",
                           node.control, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120, check=False)


def numbers_doc(node, job):
    """As a document; of nothing, where the daemon has seen no summaries yet."""
    done = numbers_of(node, job, "--json")
    return json.loads(done.stdout) if done.stdout else {"ranks": []}


@pytest.mark.root  # to see no processes but one's own
def test_the_numbers_of_a_job_on_all_nodes_are_asked_for_at_one(cluster):
    if not has_kernels():
        pytest.skip("built without nvcc and clang: there is no kernel")
    label = f"everywhere-{os.getpid()}"
    # More on a node than an answer has room for.
    job = cluster.job(label, 9 * cluster.n,
                      [*QUIET, "--fault", "feed-nan", "--fault-rank", "20",
                       "--fault-step", "3"],
                      program=[sys.executable, TRAIN_LOOP_PY], variables={"COLLWATCH_SUMMARY": "full"})
    asked, others = cluster.nodes[0], cluster.nodes[1:]
    whole = lambda: [r for r in numbers_doc(asked, label)["ranks"] if r["kept"] > 100]
    wait_until(lambda: len(whole()) == 27, lambda: f"all are there: {numbers_of(asked, label)}")
    for rank in job.ranks:  # their answers do not change any more
        rank.send_signal(signal.SIGSTOP)
    done = numbers_of(asked, label)
    expect(done.returncode == 2 and "rank 20 was the first to feed 1 NaN" in done.stdout, done)
    doc = numbers_doc(asked, label)
    expect(sorted(r["rank"] for r in doc["ranks"]) == list(range(27)), doc)
    where = {r["rank"]: r["record"] for r in doc["ranks"]}
    expect(where[20] == f"process {job.ranks[20].pid} on {others[1].name}" and where[0].endswith(" on " + asked.name), where)
    # With its own ranks read here it says the same.
    here = asked.ask("numerics", label, "--json", check=False)
    expect(json.loads(here.stdout)["firsts"] == doc["firsts"], f"{doc['firsts']}, not: {here.stdout}")
    none = asked.ask("numerics", label, uid=4321, check=False)
    expect(none.returncode == 1 and "no process of a job of that name" in none.stderr, none)
    # The answer names a silent node, and has the others' data.
    others[1].send(signal.SIGSTOP)
    try:
        done = wait_until(lambda: (d := numbers_of(asked, label)).stdout and d, "an answer")
        expect("18 of 27 ranks, " in done.stdout and f"; no answer from {others[1].name}" in done.stdout, done)
        expect("the first to feed" not in done.stdout and "NaN" in done.stdout, done)
    finally:
        others[1].send(signal.SIGCONT)


def numbers_of_bundle(path):
    done = subprocess.run([COLLWATCH, "numerics", "--json", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    return json.loads(done.stdout) if done.stdout else {"ranks": [], "firsts": [], "said": done}


@pytest.mark.root  # to see no processes but one's own
def test_a_bundle_has_the_numbers_of_ranks_on_all_nodes(cluster):
    """The rank that fed the first NaN is on a node that does not lead the job, and that node is
    down when the user asks."""
    if not has_kernels():
        pytest.skip("built without nvcc and clang: there is no kernel")
    label, n = f"bundled-{os.getpid()}", 9 * cluster.n
    leads = lambda: cluster.leader(label)
    job = cluster.job(label, n, [*QUIET, "--fault", "feed-nan",
                                 "--fault-rank", "20", "--fault-step", "3"],
                      program=[sys.executable, TRAIN_LOOP_PY], variables={"COLLWATCH_SUMMARY": "full"})
    leader = wait_until(leads, "it is led")
    wait_until(lambda: (j := leader.job(label)) and j["ranks"] == n and j["collectives"] > 20, "all ranks are seen")
    wait_until(lambda: len(numbers_doc(leader, label)["ranks"]) == n, "all have summaries")
    job.ranks[0].send_signal(signal.SIGSTOP)
    doc = wait_until(lambda: leader.incident_of(label), "the incident", 180)
    bundle = leader.bundles()[doc["id"]]
    # Nine ranks of a node are more than an answer has room for.
    ranks = lambda: sorted(r["rank"] for r in numbers_of_bundle(bundle)["ranks"])
    wait_until(lambda: ranks() == list(range(n)), lambda: f"all are in it: {ranks()} {leader.log()}")
    for rank in job.ranks:
        rank.kill()
        rank.wait(120)
    for node in cluster.nodes:
        if node is not leader:
            node.kill()
    wait_until(lambda: not numbers_of_bundle(bundle)["silent"], "the leader queries no lost node")
    said = numbers_of_bundle(bundle)
    expect([first["rank"] for first in said["firsts"]] == [20] and not said["silent"], said)
    expect(len(leader.document(doc["id"], "summaries")["ranks"]) == n // cluster.n, "the leader's own come first")
    expect(leader.document(doc["id"], "summaries-2")["node"] == leader.name, "with the others it is asked again")
    found = [d for name in ("summaries-1", "summaries-2") for d in deviations_of_any(leader.document(doc["id"], name))]
    expect(not found, found)
    # Bundles are written again when more is learnt, such as that the job has ended; a copy has all.
    wait_until(lambda: "ends" in leader.document(doc["id"]) or leader.document(doc["id"])["times"].get("resolved"),
               "the bundle is written again", 180)
    copy = leader.dir + "/copy"
    leader.said("report", bundle, "--copy", copy, "--anonymise")
    expect([first["rank"] for first in numbers_of_bundle(copy)["firsts"]] == [20], "of a copy without names")
    # By way of the daemon: all of it, to the last digit, or the word that it is not.
    leader.said("report", doc["id"], "--copy", copy + "-by-id")
    by_id = numbers_of_bundle(copy + "-by-id")
    expect(by_id == said or "too large for a copy" in by_id["silent"], f"{by_id}, not {said}")


def feed_nan_and_end(cluster, label):
    """A job with a rank on each node; that on the first one feeds it."""
    with Job(label, 3, [*QUIET, "--fault", "feed-nan", "--fault-rank", "0", "--fault-step", "3"], cluster.nodes,
             program=[sys.executable, TRAIN_LOOP_PY], variables={"COLLWATCH_SUMMARY": "full"}):
        wait_until(lambda: numbers_of(cluster.nodes[0], label).returncode == 2, "it has NaN")


def check_started_again(cluster, label, again):
    asked = cluster.nodes[0]
    known = lambda node: {r["rank"]: r["record"] for r in numbers_doc(node, label)["ranks"] if r["kept"] > 50}
    own = {r: f"process {again.ranks[i].pid} on {cluster.nodes[i].name}" for i, r in enumerate((2, 0, 1))}
    for node in cluster.nodes:
        wait_until(lambda node=node: known(node) == own, lambda node=node: f"{own}: {numbers_of(node, label)}")
        done = numbers_of(node, label)
        expect(done.returncode == 0 and "3 ranks" in done.stdout, done)
    # Root finds records of the dead in the daemons.
    done = asked.ask("numerics", label)
    expect("3 ranks" in done.stdout, done)
    again.kill(0)
    for ask in (lambda: numbers_of(asked, label), lambda: asked.ask("numerics", label)):
        wait_until(lambda ask=ask: "3 ranks" in ask().stdout, "the ended rank is told of, too")


@pytest.mark.root  # to see no processes but one's own
def test_the_numbers_of_a_job_that_was_started_again_are_of_its_ranks_that_live(cluster):
    """And of an ended job; its node may have another one since."""
    if not has_kernels():
        pytest.skip("built without nvcc and clang: there is no kernel")
    label = f"again-{os.getpid()}"
    feed_nan_and_end(cluster, label)
    turned = [dict(RANK=str(r), WORLD_SIZE="3", LOCAL_RANK="0", COLLWATCH_JOB=label) for r in (2, 0, 1)]
    with Job(label, turned, QUIET, cluster.nodes, program=[sys.executable, TRAIN_LOOP_PY],
             variables={"COLLWATCH_SUMMARY": "full"}) as again:
        check_started_again(cluster, label, again)


@pytest.mark.root  # to see no processes but one's own
def test_numbers_of_jobs_that_meet_on_loopback_are_of_one_host(cluster):
    """As torchrun starts them on a single machine each: the same address, port and ranks, so the same name."""
    if not has_kernels():
        pytest.skip("built without nvcc and clang: there is no kernel")
    ranks = [{"RANK": str(r), "WORLD_SIZE": "2", "LOCAL_RANK": str(r), "TORCHELASTIC_RUN_ID": "none",
              "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500", "COLLWATCH_SUMMARY": "full"} for r in range(2)]
    bad = [*QUIET, "--fault", "feed-nan", "--fault-rank", "0", "--fault-step", "3"]
    a, b, c = cluster.nodes
    label = "127.0.0.1:29500"
    with Job("a", ranks, bad, a, program=[sys.executable, TRAIN_LOOP_PY]) as job:
        for node in cluster.nodes:
            wait_until(lambda node=node: numbers_of(node, label).returncode == 2, lambda node=node: numbers_of(node, label))
        with Job("b", ranks, QUIET, b, program=[sys.executable, TRAIN_LOOP_PY]):
            wait_until(lambda: numbers_of(b, label).returncode == 0, lambda: numbers_of(b, label))
            own = {r["record"] for r in numbers_doc(a, label)["ranks"]}
            expect(own == {f"process {r.pid} on {a.name}" for r in job.ranks}, own)
            done = numbers_of(c, label)
            expect(done.returncode == 1 and "several nodes have a job of that name each" in done.stderr and
                   any(f"{node.name} is one" in done.stderr for node in (a, b)), done)


@pytest.mark.root  # to see no processes but one's own
@pytest.mark.parametrize("n_nodes", [3, 2])
def test_a_job_that_was_started_again_without_summaries_has_none(cluster, n_nodes):
    """On the nodes of before, or without the node that keeps the rank with the NaN."""
    if not has_kernels():
        pytest.skip("built without nvcc and clang: there is no kernel")
    label, asked = f"without-{os.getpid()}-{n_nodes}", cluster.nodes[0]
    feed_nan_and_end(cluster, label)
    expect(numbers_of(asked, label).returncode == 2, "ended, it is told of still")
    none = "no node has tensor summaries of this job" if n_nodes == 3 else \
        "of an earlier run were set aside, with NaN or Inf"
    with Job(label, n_nodes, QUIET, cluster.nodes[-n_nodes:], program=[sys.executable, TRAIN_LOOP_PY]):
        done = lambda: numbers_of(asked, label)
        wait_until(lambda: none in done().stderr, lambda: f"none: {done()}")
        # Root reads processes by itself, the job's own, and the daemon's copies of ended ones.
        done = lambda: asked.ask("numerics", label, check=False)
        wait_until(lambda: done().returncode == 3 and "no tensor summaries" in done().stderr, lambda: f"none: {done()}")
