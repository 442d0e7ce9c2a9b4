# SPDX-License-Identifier: Apache-2.0
"""uid 0 of a pod asks each socket that it sees for status, report, stacks and mute. The pod is in
the user namespace of the node, as pods are, with the mounts of the shipped patch and no others. The
pod's root gets no answer; root of the node gets all of them."""
import glob
import os
import shutil
import subprocess

import pytest
from agent_lib import environment
from built import COLLWATCH
from daemon import Daemon
from pods import CONTAINER, Patch, agent_directory
from waiting import DEADLINE_S, expect, wait_until

pytestmark = pytest.mark.root
VICTIM, LABEL = 4242, "llama-70b-secret"
# The daemon has the paths of its defaults, below a /run of its own.
OWN_RUN = 'mount --bind "$0" /run && exec "$@"'
# Each question to each socket in the pod, and to the sockets that the command finds by itself.
ASK = r"""
for socket in "" $(find / -xdev -type s; find /run /opt -type s); do
	for verb in "status" "status --ops" "report" "stacks LABEL" "mute LABEL"; do
		echo "== $verb at ${socket:-the default}"
		/image/collwatch $verb ${socket:+--control "$socket"} && echo "== answered"
	done
done
exit 0
""".replace("LABEL", LABEL)


class Node(Daemon):
    """One node, with its /run in a directory."""

    def __init__(self):
        super().__init__(command=["unshare", "--mount", "sh", "-c", OWN_RUN])
        self.run_dir = self.dir + "/run"
        os.mkdir(self.run_dir)
        self.command.append(self.run_dir)
        self.path = self.run_dir + "/collwatch/agent.sock"

    def configure(self, text):
        with open(self.conf, "w", encoding="ascii") as f:
            f.write(f'node_name = "{self.name}"\nstate_dir = "{self.state}"\nlog_level = info\n'
                    f'{self.patience}{text}\n')

    def start(self, preexec=None, **variables):
        super().start(preexec, **variables)
        self.control, = glob.glob(self.run_dir + "/*/control.sock")
        return self


@pytest.fixture(name="node")
def node_with_a_victim():
    with Node() as node:
        node.start()
        node.wait_for(node.train(LABEL, user=VICTIM))
        yield node


def ask_in_a_pod(node):
    patch = Patch()
    image, root, volume = (f"{node.dir}/{name}" for name in ("image", "root", "volume"))
    for path in image, root, volume:
        os.mkdir(path)
    shutil.copy(COLLWATCH, image)
    env = environment(preload=None, IMAGE=image, VOLUME=volume,
                      MOUNTS=patch.mount_lines(node.run_dir, agent_directory(node.dir + "/agent")))
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "sh", "-c", CONTAINER, "sh",
         root, "attacker", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "sh", "-c", ASK],
        env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=DEADLINE_S, check=False)
    expect(done.returncode == 0 and "== status at the default" in done.stdout, done.stdout)
    expect("== status at /run/collwatch/agent.sock" in done.stdout, "the agent's socket is mounted: " + done.stdout)
    return done.stdout


def test_root_of_a_pod_gets_no_answer(node):
    said = ask_in_a_pod(node)
    expect("== answered" not in said, said)
    expect(f"uid {VICTIM}" not in said and "llama-70b" not in said.replace(f" {LABEL} at ", " at "), said)
    expect(node.job(LABEL)["muted"] is None, node.job(LABEL))


def test_root_of_the_node_gets_all_of_them(node):
    expect(LABEL in node.said("status"), "status")
    for words in ["report"], ["stacks", LABEL], ["mute", LABEL]:
        wait_until(lambda w=words: node.ask(*w, check=False).returncode == 0, f"an answer to {words}")
    expect(node.job(LABEL)["muted"] is not None, node.job(LABEL))
