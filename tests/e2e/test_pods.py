# SPDX-License-Identifier: Apache-2.0
"""A job in containers as Kubernetes makes them: each rank has a mount, pid, user and UTS namespace of its
own, an image of its own, and of collwatch the two mounts of deploy/kubernetes/job: the agent's library
and the directory of the node's socket."""
import os
import re
import shutil
import subprocess

import pytest
from agent_lib import start
from built import AGENT, SIM_DIR, TRAIN_LOOP
from daemon import Daemon
from waiting import expect as check
from waiting import wait_until

RANKS, BLOCKED = 2, 1
# However long the other container takes until its rank is there, that is not the hang.
PATIENCE = 'no_headway_after = "5s"\nfirst_op_after = "10min"\n'
NAMESPACES = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child",
              "--uts"]
# What a runtime does: a root with an image and the pod's volumes, processes and name of its own.
CONTAINER = """
set -eu
root=$1 host=$2 agent=$3 run=$4; shift 4
mount -t tmpfs none "$root"
cd "$root"
mkdir -p usr proc dev tmp opt/collwatch run/collwatch image data
mount --rbind /usr usr
for link in bin sbin lib lib64; do
	[ -h "/$link" ] && ln -s "$(readlink "/$link")" "$link" || {
		[ ! -d "/$link" ] || { mkdir "$link"; mount --rbind "/$link" "$link"; }; }
done
mount --rbind /dev dev
mount -t proc none proc
mount --rbind "$IMAGE" image
mount --rbind "$VOLUME" data
touch opt/collwatch/libcollwatch.so
mount --bind "$agent" opt/collwatch/libcollwatch.so
mount --rbind "$run" run/collwatch
hostname "$host"
exec chroot . /usr/bin/env -i \
	LD_LIBRARY_PATH=/image LD_PRELOAD=/opt/collwatch/libcollwatch.so "$@"
"""


class Pods:
    def __init__(self):
        if subprocess.run([*NAMESPACES, "sh", "-c", "mount -t tmpfs none /tmp && hostname pod"],
                          stderr=subprocess.DEVNULL, check=False).returncode:
            pytest.skip("no user namespaces here")
        self.daemon, self.ranks = Daemon(patience=PATIENCE), []
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        at = self.daemon.dir
        for name in "image", "volume", "root":
            os.mkdir(f"{at}/{name}")
        for path in TRAIN_LOOP, SIM_DIR + "/libnccl.so.2", SIM_DIR + "/libcuda.so.1":
            shutil.copy(path, at + "/image")
        self.daemon.start()
        env = dict(os.environ, IMAGE=at + "/image", VOLUME=at + "/volume")
        for rank in range(RANKS):
            variables = {
                "RANK": rank, "WORLD_SIZE": RANKS, "LOCAL_RANK": 0, "COLLWATCH_JOB": "ml/train",
                "COLLWATCH_SOCKET": "/run/collwatch/agent.sock",
                "COLLWATCH_POD_NAME": f"train-{rank}", "COLLWATCH_POD_NAMESPACE": "ml",
                "COLLWATCH_CONTAINER": "trainer"}
            with open(f"{at}/rank-{rank}", "wb") as log:
                self.ranks.append(start(
                    [*NAMESPACES, "sh", "-c", CONTAINER, "sh", at + "/root", f"train-{rank}", AGENT, at,
                     *(f"{k}={v}" for k, v in variables.items()), "/image/" + os.path.basename(TRAIN_LOOP),
                     "--steps", "0", "--step-ms", "20", "--elements", "64", "--log-every", "0",
                     "--uid-file", "/data/uid", "--fault", "block-in-data-loader", "--fault-rank",
                     str(BLOCKED), "--fault-step", "30"],
                    env, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def outputs(self):
        texts = []
        for rank in range(RANKS):
            with open(f"{self.daemon.dir}/rank-{rank}", encoding="utf-8", errors="replace") as f:
                texts.append(f.read())
        return "\n".join(texts)

    def incident(self):
        def found():
            check(all(rank.poll() is None for rank in self.ranks), self.outputs())
            return self.daemon.incident_of("ml/train")
        return wait_until(found, "the hang is found")

    def close(self):
        for rank in self.ranks:
            rank.kill()  # and with it what it forked: --kill-child
            rank.wait()
        self.daemon.close()


@pytest.fixture(scope="module", name="pods")
def running_pods():
    pods = Pods()
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
