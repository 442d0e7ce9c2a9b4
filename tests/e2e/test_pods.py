# SPDX-License-Identifier: Apache-2.0
"""Jobs in containers as Kubernetes makes them: each rank has a mount, pid, user and UTS namespace of its own,
an image of its own, and of collwatch what the shipped patch (deploy/kubernetes/job) gives it: its mounts and its
variables, read out of that file."""
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from agent_lib import environment, start
from built import SIM_DIR, TRAIN_LOOP
from cluster import Cluster
from daemon import Daemon
from pods import CONTAINER, Patch, agent_directory
from waiting import expect as check
from waiting import wait_until

RANKS, BLOCKED = 2, 1
# However long the other container takes until its rank is there, that is not the hang.
PATIENCE = 'no_progress_after = "5s"\nfirst_op_after = "10min"\n'
NAMESPACES = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child",
              "--uts"]
HANGS = ["--fault", "block-in-data-loader", "--fault-rank", str(BLOCKED), "--fault-step", "30"]
# From the signal to the alert, with the patience of the defaults.
PAGE_S = 75


def needs_namespaces():
    if subprocess.run([*NAMESPACES, "sh", "-c", "mount -t tmpfs none /tmp && hostname pod"],
                      stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("no user namespaces here")


class JobOfPods:
    """A rank in each pod, dealt out to the daemons in their order. variables(rank): the launcher's."""

    def __init__(self, daemons, name, namespace, n, arguments, variables):
        self.ranks, self.daemons, self.name, self.namespace = [], daemons, name, namespace
        self.dir = f"{daemons[0].dir}/{namespace}-{name}"
        patch = Patch()
        for part in "", "/image", "/volume":
            os.mkdir(self.dir + part)
        for path in TRAIN_LOOP, SIM_DIR + "/libnccl.so.2", SIM_DIR + "/libcuda.so.1":
            shutil.copy(path, self.dir + "/image")
        for rank in range(n):
            daemon = daemons[rank * len(daemons) // n]
            root, run = f"{self.dir}/root-{rank}", f"{self.dir}/run-{rank}"
            os.mkdir(root)
            # The node's /run, where the daemon's own directory is the one of the agents' socket.
            os.mkdir(run)
            os.symlink(daemon.dir, run + "/collwatch")
            env = environment(preload=None, IMAGE=self.dir + "/image", VOLUME=self.dir + "/volume",
                              MOUNTS=patch.mount_lines(run, agent_directory(self.dir + "/agent")))
            inside = {"RANK": rank, "WORLD_SIZE": n, "LOCAL_RANK": 0, "LD_LIBRARY_PATH": "/image",
                      **patch.environment(f"{name}-{rank}", namespace), **variables(rank)}
            with open(f"{self.dir}/out-{rank}", "wb") as log:
                self.ranks.append(start(
                    [*NAMESPACES, "sh", "-c", CONTAINER, "sh", root, f"{name}-{rank}",
                     *(f"{k}={v}" for k, v in inside.items()), "/image/" + os.path.basename(TRAIN_LOOP),
                     "--steps", "0", "--step-ms", "20", "--elements", "64", "--log-every", "0",
                     "--uid-file", "/data/uid", *arguments], env, stdout=log, stderr=log))

    def outputs(self):
        texts = []
        for rank in range(len(self.ranks)):
            with open(f"{self.dir}/out-{rank}", encoding="utf-8", errors="replace") as f:
                texts.append(f.read())
        return "\n".join(texts)

    def check_running(self):
        check(all(rank.poll() is None for rank in self.ranks), self.outputs())

    def pid_of(self, rank):
        """The training process, a child of unshare."""
        with open(f"/proc/{self.ranks[rank].pid}/task/{self.ranks[rank].pid}/children", encoding="ascii") as f:
            return int(f.read())

    def close(self):
        for rank in self.ranks:
            rank.kill()  # and with it what it forked: --kill-child
            rank.wait()


def master(rank):  # pylint: disable=unused-argument
    return {"MASTER_ADDR": "train-0.train", "MASTER_PORT": "29500"}


class Pods(JobOfPods):
    """On one node, named by COLLWATCH_JOB."""

    def __init__(self, daemon):
        super().__init__([daemon], "train", "ml", RANKS, HANGS,
                         lambda rank: {"COLLWATCH_JOB": "train", "COLLWATCH_CONTAINER": "trainer"})
        self.daemon = daemon

    def incident(self):
        def found():
            self.check_running()
            return self.daemon.incident_of("ml/train")
        return wait_until(found, "the hang is found")


@pytest.fixture(scope="module", name="pods")
def running_pods():
    needs_namespaces()
    with Daemon(patience=PATIENCE) as daemon:
        pods = Pods(daemon.start())
        yield pods
        pods.close()


def own_pid(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return int(re.search(r"^NSpid:.*\t(\d+)$", f.read(), re.M)[1])


def test_the_alert_names_pod_container_pids_and_host(pods):
    doc = pods.incident()
    culprit, = doc["culprits"]
    check((culprit["rank"], culprit["host"]) == (BLOCKED, "node-a"), repr(culprit))
    check((culprit["pod_namespace"], culprit["pod"], culprit["container"]) ==
          ("ml", "train-1", "trainer"), repr(culprit))
    check(culprit["own_pid"] == own_pid(culprit["pid"]) != culprit["pid"], repr(culprit))
    check(f"rank 1 (pod ml/train-1, pid {culprit['own_pid']} there; node-a, pid {culprit['pid']})"
          in doc["summary"], doc["summary"])


def test_the_report_says_it_too(pods):
    doc = pods.incident()
    text = pods.daemon.said("report", doc["id"])
    check(f"pod ml/train-1, container trainer, pid {doc['culprits'][0]['own_pid']} there" in text,
          text)


def test_status_names_the_pods(pods):
    pods.incident()
    check(sorted(pods.daemon.job("ml/train")["pods"]) == ["ml/train-0", "ml/train-1"],
          repr(pods.daemon.job("ml/train")))
    text = pods.daemon.said("status")
    check(re.search(r"^ *pods ml/train-\d, ml/train-\d$", text, re.M), text)


class Nodes(Cluster):
    """Two, with the patience of the defaults."""

    def __init__(self):
        super().__init__(2)
        self.jobs = []

    def make(self):
        super().make()
        for node in self.nodes:
            node.change_conf(node.patience, "")

    def pods(self, *arguments):
        """A job, which ends before the nodes."""
        job = JobOfPods(self.nodes, *arguments)
        self.callback(job.close)
        self.jobs.append(job)
        return job

    def seen(self, ranks):
        """The labels of all jobs, once all of so many ranks are seen at work, each by its leader."""
        def whole():
            for job in self.jobs:
                job.check_running()
            led = [j for node in self.nodes for j in node.status()["jobs"] if j["led_here"]]
            return (sum(j["ranks"] for j in led) == ranks and all(j["collectives"] > 20 for j in led) and
                    sorted(j["job"] for j in led))
        return wait_until(whole, lambda: f"{ranks} ranks: {[n.said('status') for n in self.nodes]}")


@pytest.fixture(name="nodes")
def two_nodes():
    needs_namespaces()
    with Nodes() as nodes:
        yield nodes.start()


def test_four_pods_are_one_job_and_one_page_names_the_rank_that_is_stopped(nodes):
    job = nodes.pods("train", "ml", 4, [], master)
    check(nodes.seen(4) == ["master:ml/train-0.train:29500"], repr(nodes.seen(4)))
    os.kill(job.pid_of(2), signal.SIGSTOP)
    stopped = time.monotonic()
    wait_until(lambda: nodes.receiver.posts, "a page", seconds=2 * PAGE_S)
    took = time.monotonic() - stopped
    print(f"# the page came after {took:.1f} s")
    check(took <= PAGE_S, f"{took:.1f} s")
    doc = nodes.receiver.posts[0][1]
    culprit, = doc["culprits"]
    check((doc["severity"], culprit["rank"], culprit["pod"]) == ("page", 2, "train-2"), repr(doc["summary"]))
    check(len(nodes.receiver.posts) == 1, repr(nodes.receiver.posts))


@pytest.mark.parametrize("variables", [master, lambda rank: {"COLLWATCH_JOB": "train"}], ids=["address", "name"])
def test_two_namespaces_with_equal_names_are_two_jobs(nodes, variables):
    for namespace in "ml", "ops":
        nodes.pods("train", namespace, 2, [], variables)
    jobs = nodes.seen(4)
    check(len(set(jobs)) == len(jobs) == 2, repr(jobs))
    check(all(f":{namespace}/train" in job for namespace, job in zip(("ml", "ops"), jobs)), repr(jobs))


def test_jobs_that_share_a_communicator_are_named_with_the_variable_that_is_missing(nodes):
    """As the first pod has it where its launcher takes itself for the master: each node leads one of two jobs."""
    nodes.pods("train", "ml", 2, [], lambda rank: {"MASTER_ADDR": "train-0" if rank else "localhost", "MASTER_PORT": "1"})
    check(nodes.seen(2) == ["master:ml/localhost:1", "master:ml/train-0:1"], "two jobs")

    def are_named(node):
        shared = node.status().get("shared_communicators")
        return shared and shared[0]["missing"] == "COLLWATCH_JOB" and sorted(
            j["job"] for j in shared[0]["jobs"]) == ["master:ml/localhost:1", "master:ml/train-0:1"]
    for node in nodes.nodes:
        wait_until(lambda n=node: are_named(n), lambda n=node: n.said("status", "--json"))
        for verb in "status", "doctor":
            text = " ".join(node.said(verb).split())
            check("ml/localhost:1" in text and "share communicator 0x" in text and
                  "COLLWATCH_JOB is missing in ml/" in text, text)
