# SPDX-License-Identifier: Apache-2.0
"""Two nodes, as network namespaces joined by a link, with what collwatch init-cluster makes for
them."""

import json
import os
import re
import shutil
import stat
import subprocess
import tempfile
import time

import pytest
from built import AGENT, COLLWATCH, COLLWATCHD, COLLWATCHD_NEXT, PROGRAM, SIM_DIR


NODES = {"node-a": "10.99.7.1", "node-b": "10.99.7.2"}
PORT = 7411


def call(*command, check=True, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120, check=False, **more)
    assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done


def init_cluster(directory, *options, **more):
    nodes = [word for name, address in NODES.items()
             for word in ("--node", f"{name}={address}:{PORT}")]
    return call(COLLWATCH, "init-cluster", directory, "--key-path", directory + "/peer.key",
                *options, *nodes, **more)


def wait_until(predicate, what, seconds=120):
    """Polls: the thing waited for happens in another process. what: in words, or who says them then."""
    end = time.monotonic() + seconds
    while not predicate():
        assert time.monotonic() < end, \
            f"not within {seconds} s: {what() if callable(what) else what}"
        time.sleep(0.05)


class Node:
    """A namespace with an end of the link, and a daemon in it."""

    def __init__(self, cluster, name):
        self.name, self.dir = name, f"{cluster.dir}/{name}"
        self.netns = f"cw{os.getpid()}{name[-1]}"
        self.socket, self.control = self.dir + "/agent.sock", self.dir + "/control.sock"
        self.daemon, self.program = None, COLLWATCHD
        self.log = self.dir + "/log"

    def configure(self, text=""):
        with open(self.dir + "/collwatchd.conf", encoding="ascii") as f:
            made = f.read()
        with open(self.dir + "/test.conf", "w", encoding="ascii") as f:
            f.write(f'{made}\nagent_socket = "{self.socket}"\n'
                    f'control_socket = "{self.control}"\nstate_dir = "{self.dir}/state"\n{text}')

    def start(self):
        with open(self.log, "ab") as log:
            self.daemon = subprocess.Popen(
                ["ip", "netns", "exec", self.netns, self.program, "--config",
                 self.dir + "/test.conf"], stdin=subprocess.DEVNULL, stderr=log)
        wait_until(lambda: call(COLLWATCH, "status", "--control", self.control,
                                check=False).returncode != 1, self.name + " answers")

    def stop(self):
        if self.daemon:
            self.daemon.terminate()
            status = self.daemon.wait(120)
            self.daemon = None
            assert status == 0, f"{self.name} ended with {status}: {self.read_log()}"

    def read_log(self):
        with open(self.log, encoding="utf-8") as f:
            return f.read()

    def status(self):
        """Asked again where the daemon was too slow to answer."""
        out = []

        def given():
            out.append(call(COLLWATCH, "status", "--json", "--control", self.control,
                            check=False).stdout)
            return out[-1]
        wait_until(given, lambda: self.name + " answers: " + self.read_log())
        return json.loads(out[-1])

    def peer_state(self):
        return self.status()["peers"][0]["state"]

    def job(self, name):
        return next((j for j in self.status()["jobs"] if name in j["job"]), None)


class Cluster:
    """Two nodes, a link, and what init-cluster made for them."""

    def __init__(self, *options):
        self.options = options

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="cw-")
        self.nodes = []
        try:
            init_cluster(self.dir, *self.options)
            self.nodes = [Node(self, name) for name in NODES]
            self.link()
            for node in self.nodes:
                node.configure()
        except BaseException:
            self.__exit__()
            raise
        return self

    def link(self):
        call("ip", "netns", "add", self.nodes[0].netns)
        a, b = self.nodes
        call("ip", "netns", "add", b.netns)
        call("ip", "-n", a.netns, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0",
             "netns", b.netns)
        for node in self.nodes:
            call("ip", "-n", node.netns, "address", "add", NODES[node.name] + "/24", "dev", "eth0")
            call("ip", "-n", node.netns, "link", "set", "lo", "up")
            call("ip", "-n", node.netns, "link", "set", "eth0", "up")

    def __exit__(self, *_):
        try:
            for node in self.nodes:
                node.stop()
        finally:
            for node in self.nodes:
                if node.daemon:
                    node.daemon.kill()
                    node.daemon.wait()
                call("ip", "netns", "del", node.netns, check=False)
            shutil.rmtree(self.dir)


def test_init_cluster_writes_a_closed_key_and_configurations_that_are_valid():
    directory = tempfile.mkdtemp(prefix="cw-")
    try:
        done = init_cluster(directory + "/a")
        init_cluster(directory + "/b")
        keys = []
        for name in "ab":
            path = f"{directory}/{name}/peer.key"
            info = os.stat(path)
            assert stat.S_IMODE(info.st_mode) == 0o600, oct(info.st_mode)
            with open(path, encoding="ascii") as f:
                keys.append(f.read())
            assert len(bytes.fromhex(keys[-1])) == 32, "32 bytes in hex"
        assert keys[0] != keys[1], "two clusters, two keys"
        assert keys[0].strip() not in done.stdout, "the key is not printed"
        found = call(COLLWATCH, "init-cluster", directory + "/c", "--peers-from", "d.example:7411",
                     "--key-path", directory + "/c/peer.key")
        assert directory + "/c/collwatchd.conf" in found.stdout, found.stdout
        call(COLLWATCHD, "--check-config", "--config", directory + "/c/collwatchd.conf")
        for name in NODES:
            conf = f"{directory}/a/{name}/collwatchd.conf"
            assert conf in done.stdout, done.stdout
            call(COLLWATCHD, "--check-config", "--config", conf)
        again = init_cluster(directory + "/a", check=False)
        assert again.returncode == 1 and "nothing is overwritten" in again.stderr, again.stderr
        with open(directory + "/a/peer.key", encoding="ascii") as f:
            assert f.read() == keys[0], "the key is as it was"
    finally:
        shutil.rmtree(directory)


def test_init_cluster_refuses_what_makes_no_cluster():
    with tempfile.TemporaryDirectory(prefix="cw-") as directory:
        for nodes, says in (
                ([], "two nodes or more"),
                (["a=10.0.0.1:1"], "two nodes or more"),
                (["a=10.0.0.1:1", "a=10.0.0.2:1"], "named twice"),
                (["a=10.0.0.1:1", "b=10.0.0.2"], "not of the form"),
                (["a=10.0.0.1:1", "b"], "NAME=ADDRESS:PORT"),
                (["a=10.0.0.1:1", "b=0.0.0.0:1"], "nobody can connect"),
                (["a=10.0.0.1:1", "../b=10.0.0.2:1"], "NAME=ADDRESS:PORT"),
                (["a=10.0.0.1:1", "..=10.0.0.2:1"], "NAME=ADDRESS:PORT"),
                (["a=10.0.0.1:1", "--peers-from=d.example:1"], "has a name only"),
                (["--peers-from=10.0.0.1:1"], "is an address"),
                (["--peers-from=d.example"], "address:port"),
                (["--peers-from=d.example:1", "--certificates"], "give --node NAME")):
            words = [word for node in nodes for word in
                     ([node] if node.startswith("--") else ["--node", node])]
            done = call(COLLWATCH, "init-cluster", directory + "/new", *words, check=False)
            assert done.returncode == 1 and says in done.stderr, f"{nodes}: {done.stderr}"
            assert not os.path.exists(directory + "/new")


def test_other_machines_without_a_key_are_refused_with_the_way_to_one():
    with tempfile.TemporaryDirectory(prefix="cw-") as directory:
        with open(directory + "/conf", "w", encoding="ascii") as f:
            f.write('node_name = "a"\npeers = {"a=127.0.0.1:7411", "b=10.0.0.2:7411"}\n')
        done = call(COLLWATCHD, "--config", directory + "/conf", check=False)
        assert done.returncode == 1 and "collwatch init-cluster" in done.stderr, done.stderr


def lead_over_the_link(a, b, job):
    """Runs jobs on a until one of them is led by b."""
    for number in range(20):
        name = f"{job}-{number}"
        rank = subprocess.Popen(
            [PROGRAM, "wait"], stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=dict(os.environ, LD_PRELOAD=AGENT,
                     LD_LIBRARY_PATH=SIM_DIR, COLLWATCH_SOCKET=a.socket,
                     COLLWATCH_JOB=name))
        try:
            wait_until(lambda name=name: a.job(name), lambda rank=rank: (
                f"the job is seen, {rank.poll()}: {a.status()} {a.read_log()} {b.read_log()}"))
            seen = a.job(name)
            if not seen or seen["leader"] == "node-a":
                continue

            def is_led(name=name):
                job = b.job(name)
                return job and job["led_here"] and job["nodes"] == ["node-a"]
            wait_until(is_led, "its leader has the digest")
            return
        finally:
            rank.communicate(b"x", timeout=120)
    raise AssertionError("20 jobs, and none led by node-b")


@pytest.mark.root
@pytest.mark.namespaces
def test_two_nodes_meet_and_one_leads_the_job_of_the_other():
    with Cluster() as cluster:
        a, b = cluster.nodes
        a.start()
        b.start()
        wait_until(lambda: a.peer_state() == b.peer_state() == "connected", "they meet")
        lead_over_the_link(a, b, "over-the-link")
        b.stop()
        wait_until(lambda: a.peer_state() == "said_goodbye", "a goodbye")
        # Upgraded: it speaks the next version of the protocol, and a does not know it.
        b.program = COLLWATCHD_NEXT
        b.start()
        wait_until(lambda: a.peer_state() == b.peer_state() == "connected", "they meet again")
        assert b.status()["version"].endswith("+next"), b.status()
        lead_over_the_link(a, b, "after-the-upgrade")



@pytest.mark.root
@pytest.mark.namespaces
def test_different_keys_are_named_in_status_and_log():
    with Cluster() as cluster:
        a, b = cluster.nodes
        with open(b.dir + "/other.key", "w", encoding="ascii") as f:
            f.write("42" * 32)
        os.chmod(b.dir + "/other.key", 0o600)
        with open(b.dir + "/collwatchd.conf", encoding="ascii") as f:
            made = f.read().replace(cluster.dir + "/peer.key", b.dir + "/other.key")
        with open(b.dir + "/collwatchd.conf", "w", encoding="ascii") as f:
            f.write(made)
        b.configure()
        a.start()
        b.start()
        wait_until(lambda: a.peer_state() == b.peer_state() == "refused: key differs", "refused")
        wait_until(lambda: "peer node-b: refused: key differs" in call(
            COLLWATCH, "status", "--control", a.control, check=False).stdout, "people read it, too")
        for node, other in ((a, "node-b"), (b, "node-a")):
            assert f"peer {other} refused" in node.read_log(), node.read_log()
            assert "42" * 32 not in node.read_log()


def beside(node):
    """Certificates go where the node's configuration is."""
    shutil.copy(os.path.dirname(node.dir) + "/ca.crt", node.dir)
    path = node.dir + "/test.conf"
    with open(path, encoding="ascii") as f:
        text = f.read()
    with open(path, "w", encoding="ascii") as f:
        f.write(text.replace("/etc/collwatch/", node.dir + "/"))


@pytest.mark.root
@pytest.mark.namespaces
def test_two_nodes_meet_with_certificates():
    with Cluster("--certificates", "--key-path", "/etc/collwatch/peer.key") as cluster:
        a, b = cluster.nodes
        for node in cluster.nodes:
            beside(node)
            node.start()
        wait_until(lambda: a.peer_state() == b.peer_state() == "connected", "they meet")
        lead_over_the_link(a, b, "certified")
        b.stop()
        # Made anew by another authority: nobody knows it.
        init_cluster(cluster.dir + "/other", "--certificates", "--days", "3")
        for name in "peer.crt", "peer.key":
            shutil.copy(f"{cluster.dir}/other/node-b/{name}", b.dir)
        shutil.copy(cluster.dir + "/other/ca.crt", b.dir)
        b.start()
        wait_until(lambda: a.peer_state() == b.peer_state() == "refused: certificate refused",
                   "both say why")
        assert re.search("peer.crt expires in [23] days", b.read_log()), b.read_log()
        b.stop()
        # Made anew by the same one: welcome.
        init_cluster(cluster.dir + "/again", "--ca", cluster.dir)
        for name in "peer.crt", "peer.key":
            shutil.copy(f"{cluster.dir}/again/node-b/{name}", b.dir)
        shutil.copy(cluster.dir + "/again/ca.crt", b.dir)
        b.start()
        wait_until(lambda: a.peer_state() == b.peer_state() == "connected", "they meet again")
        b.stop()
        # Of the other node: does not even start.
        for name in "peer.crt", "peer.key":
            shutil.copy(f"{cluster.dir}/again/node-a/{name}", b.dir)
        done = call(COLLWATCHD, "--config", b.dir + "/test.conf", check=False)
        assert done.returncode == 4 and "DNS:node-b" in done.stderr, done


def test_key_that_others_can_read_stops_the_daemon_with_the_reason():
    with tempfile.TemporaryDirectory(prefix="cw-") as directory:
        init_cluster(directory + "/c")
        os.chmod(directory + "/c/peer.key", 0o644)
        with open(directory + "/conf", "w", encoding="ascii") as f:
            f.write(f'node_name = "a"\npeers = {{"a=127.0.0.1:{PORT}", "b=127.0.0.2:{PORT}"}}\n'
                    f'peer_key_file = "{directory}/c/peer.key"\n'
                    f'agent_socket = "{directory}/agent.sock"\n'
                    f'control_socket = "{directory}/control.sock"\n'
                    f'state_dir = "{directory}/state"\n')
        done = call(COLLWATCHD, "--config", directory + "/conf", check=False)
        assert done.returncode == 4 and "chmod 600" in done.stderr, done
