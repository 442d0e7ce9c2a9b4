# SPDX-License-Identifier: Apache-2.0
"""Two nodes, as network namespaces joined by a link, with the files of collwatch init-cluster."""

import os
import re
import shutil
import stat
import subprocess
import tempfile

import pytest
from built import COLLWATCH, COLLWATCHD, COLLWATCHD_NEXT, PROGRAM
from cluster import PORT, IsolatedCluster
from job import Job
from waiting import wait_until

NODES = {"node-a": "10.99.9.1", "node-b": "10.99.9.2"}


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
        assert again.returncode == 1 and "no file is overwritten" in again.stderr, again.stderr
        with open(directory + "/a/peer.key", encoding="ascii") as f:
            assert f.read() == keys[0], "the key is as it was"
    finally:
        shutil.rmtree(directory)


def test_init_cluster_refuses_what_makes_no_cluster():
    with tempfile.TemporaryDirectory(prefix="cw-") as directory:
        for nodes, says in (
                ([], "at least two nodes"),
                (["a=10.0.0.1:1"], "at least two nodes"),
                (["a=10.0.0.1:1", "a=10.0.0.2:1"], "named twice"),
                (["a=10.0.0.1:1", "b=10.0.0.2"], "not of the form"),
                (["a=10.0.0.1:1", "b"], "NAME=ADDRESS:PORT"),
                (["a=10.0.0.1:1", "b=0.0.0.0:1"], "cannot connect to that address"),
                (["a=10.0.0.1:1", "../b=10.0.0.2:1"], "NAME=ADDRESS:PORT"),
                (["a=10.0.0.1:1", "..=10.0.0.2:1"], "NAME=ADDRESS:PORT"),
                (["a=10.0.0.1:1", "--peers-from=d.example:1"], "give only the node's name"),
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
        with Job(name, 1, ["wait"], a, program=PROGRAM, stdin=subprocess.PIPE, meets=False) as it:
            seen = wait_until(lambda name=name: a.job(name), lambda it=it: (
                f"the job is seen, {it.ended()}: {a.status()} {a.log()} {b.log()}"))
            if seen["leader"] == a.name:
                continue

            def is_led(name=name):
                job = b.job(name)
                return job and job["led_here"] and job["nodes"] == [a.name]
            wait_until(is_led, "its leader has the digest")
            it.ranks[0].communicate(b"x", timeout=120)
            return
    raise AssertionError("20 jobs, and none led by node-b")


@pytest.mark.root
@pytest.mark.namespaces
def test_two_nodes_meet_and_one_leads_the_job_of_the_other():
    with IsolatedCluster() as cluster:
        a, b = cluster.nodes
        a.start()
        b.start()
        cluster.wait_until_met()
        lead_over_the_link(a, b, "over-the-link")
        b.stop()
        wait_until(lambda: a.peer_states() == ["said_goodbye"], "a goodbye")
        # Upgraded: it speaks the next version of the protocol, and a does not know it.
        b.program = COLLWATCHD_NEXT
        b.start()
        cluster.wait_until_met()
        assert b.status()["version"].endswith("+next"), b.status()
        lead_over_the_link(a, b, "after-the-upgrade")


@pytest.mark.root
@pytest.mark.namespaces
def test_different_keys_are_named_in_status_and_log():
    with IsolatedCluster() as cluster:
        a, b = cluster.nodes
        with open(b.dir + "/other.key", "w", encoding="ascii") as f:
            f.write("42" * 32)
        os.chmod(b.dir + "/other.key", 0o600)
        b.change_conf(cluster.made + "/peer.key", b.dir + "/other.key")
        a.start()
        b.start()
        wait_until(lambda: a.peer_states() == b.peer_states() == ["refused: key differs"], "refused")
        assert [p["refusal"] for p in a.status()["peers"]] == ["key_differs"]
        wait_until(lambda: "peer node-b: refused: key differs" in a.said("status"), "people read it, too")
        for node, other in ((a, "node-b"), (b, "node-a")):
            assert f"peer {other} refused" in node.log(), node.log()
            assert "42" * 32 not in node.log()


def give(made, node):
    """Certificates go where the node's configuration is."""
    for name in f"{node.name}/peer.crt", f"{node.name}/peer.key", "ca.crt":
        shutil.copy(f"{made}/{name}", node.dir)


@pytest.mark.root
@pytest.mark.namespaces
def test_two_nodes_meet_with_certificates():
    with IsolatedCluster(options=["--certificates", "--key-path", "/etc/collwatch/peer.key"]) as cluster:
        a, b = cluster.nodes
        for node in cluster.nodes:
            give(cluster.made, node)
            node.change_conf("/etc/collwatch/", node.dir + "/")
            node.start()
        cluster.wait_until_met()
        lead_over_the_link(a, b, "certified")
        b.stop()
        # Made anew by another authority: no node trusts it.
        init_cluster(cluster.dir + "/other", "--certificates", "--days", "3")
        give(cluster.dir + "/other", b)
        b.start()
        wait_until(lambda: a.peer_states() == b.peer_states() == ["refused: certificate refused"],
                   "both say why")
        assert re.search("peer.crt expires in [23] days", b.log()), b.log()
        b.stop()
        # Made anew by the same one: welcome.
        init_cluster(cluster.dir + "/again", "--ca", cluster.made)
        give(cluster.dir + "/again", b)
        b.start()
        cluster.wait_until_met()
        b.stop()
        # Of the other node: does not even start.
        for name in "peer.crt", "peer.key":
            shutil.copy(f"{cluster.dir}/again/node-a/{name}", b.dir)
        done = call(COLLWATCHD, "--config", b.conf, check=False)
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
