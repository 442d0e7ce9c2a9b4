#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""collwatch doctor: each finding is provoked, seen by its name, mended with the printed command (or,
where none can be printed, by hand as its words say), and gone. Prints TAP.

usage: test_doctor.py
"""

import ctypes
import json
import os
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import threading

import tap
from agent_lib import environment, envelope, field, wait_until
from ops_lib import COLLWATCH, COLLWATCHD, World, expect

CONTROL_REPLY = 41
LIBC = ctypes.CDLL(None, use_errno=True)


def doctor(world, *words, uid=0, control=None):
    """{name of a finding: (what, fix)}"""
    program = world.program("collwatch") if uid else COLLWATCH  # it looks for the daemon beside it
    done = subprocess.run([program, "doctor", "--json", "--control",
                           control or world.control, "--socket", world.path, "--config",
                           world.conf, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60, check=False, user=uid,
                          group=uid, extra_groups=[])
    doc = json.loads(done.stdout)
    expect(done.returncode == (2 if doc["findings"] else 0), done)
    return {f["name"]: (f["what"], f["fix"]) for f in doc["findings"]}


def only(found, *names):
    """Findings about the kernel depend on the machine."""
    found.pop("kernel-events", None)
    expect(set(found) == set(names), found)
    return found


def apply(fix):
    subprocess.run(["sh", "-c", fix], check=True, timeout=60)


class Healthy(World):
    def __enter__(self):
        self.start()
        only(doctor(self))
        return self


def a_daemon_that_is_down_is_started_by_the_printed_command():
    with Healthy() as world:
        world.stop()
        found = only(doctor(world), "daemon-down", "agent-socket")
        expect("no daemon answers" in found["daemon-down"][0], found)
        words = shlex.split(found["daemon-down"][1])
        expect(os.path.realpath(words[0]) == os.path.realpath(COLLWATCHD), words)
        with open(world.log_path, "ab") as log:
            world.daemon = subprocess.Popen(words, stderr=log, stdin=subprocess.DEVNULL)
        wait_until(lambda: not doctor(world).keys() & {"daemon-down", "agent-socket"}, "mended")


def sockets_that_are_closed_are_opened_by_the_printed_command():
    if os.geteuid() != 0:
        raise tap.Skip("needs two users")
    with Healthy() as world:
        os.chmod(world.path, 0o600)
        os.chmod(world.control, 0o600)
        found = only(doctor(world, uid=4321), "agent-socket", "control-socket")
        for _, fix in found.values():
            apply(fix)
        only(doctor(world, uid=4321))


def configuration_and_key_that_keep_the_daemon_down_are_named():
    with Healthy() as world:
        world.stop()
        world.configure("no_such_key = 1")
        found = only(doctor(world), "configuration", "agent-socket")
        expect("conf:7" in found["configuration"][0], found)
        key = world.dir + "/peer.key"
        write_key(key, 0o644)
        world.configure(f'peer_key_file = "{key}"')
        found = only(doctor(world), "key-permissions", "agent-socket")
        apply(found["key-permissions"][1])
        world.start()
        only(doctor(world))


def write_key(path, mode, digits="42"):
    with open(path, "w", encoding="ascii") as f:
        f.write(digits * 32)
    os.chmod(path, mode)


def programs_that_the_agent_cannot_be_in_are_named():
    cc = shlex.split(os.environ["CW_CC"])
    with Healthy() as world:
        source, exe = world.dir + "/p.c", world.dir + "/p"
        with open(source, "w", encoding="ascii") as f:
            f.write("int ncclAllReduce(void) { return 0; }\nint main(void) { return 0; }\n")
        plain = world.dir + "/plain.c"
        with open(plain, "w", encoding="ascii") as f:
            f.write("int main(void) { return 0; }\n")
        build = lambda *words: subprocess.run([*cc, *words, "-o", exe], check=True)
        build(plain)
        only(doctor(world, "--", exe))
        build(source)
        only(doctor(world, "--", exe), "nccl-static")
        build(plain, "-static")
        only(doctor(world, "--", exe), "program-static")
        build(plain, "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1")
        only(doctor(world, "--", exe), "program-musl")
        build(plain)
        script = world.dir + "/script"
        with open(script, "w", encoding="ascii") as f:
            f.write(f"#!{exe}\n")
        os.chmod(script, 0o755)
        os.chmod(exe, 0o4755)
        found = only(doctor(world, "--", script), "program-setuid")
        apply(found["program-setuid"][1])
        only(doctor(world, "--", script))
        only(doctor(world, "--", "/nowhere/train"), "program-missing")
        if os.geteuid() == 0 and shutil.which("setcap") and subprocess.run(
                ["setcap", "cap_net_raw+ep", exe], check=False).returncode == 0:
            found = only(doctor(world, "--", exe), "program-capabilities")
            apply(found["program-capabilities"][1])
            only(doctor(world, "--", exe))


def a_process_without_the_agent_is_named():
    with Healthy() as world:
        p = subprocess.Popen(["cat"], stdin=subprocess.PIPE, env=environment(preload=None))
        try:
            found = only(doctor(world, "--pid", str(p.pid)), "agent-not-loaded")
            fix = shlex.split(found["agent-not-loaded"][1])
        finally:
            p.communicate(timeout=20)
        expect(fix[:3] == ["collwatch", "run", "--"], fix)
        p = subprocess.Popen([COLLWATCH, *fix[1:3], "cat"], stdin=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, env=environment(preload=None))
        try:
            wait_until(lambda: not only_of(doctor(world, "--pid", str(p.pid))), "the agent is in")
        finally:
            p.communicate(timeout=20)


def only_of(found):
    found.pop("kernel-events", None)
    return found


def other_versions_are_named():
    with Healthy() as world:
        path = world.dir + "/old.sock"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        status = json.dumps({"schema": "collwatch.status/1", "version": "0.0.1", "peers": [],
                             "notes": [], "jobs": []}).encode()

        def answer():
            conn, _ = listener.accept()
            conn.recv(65536)
            conn.sendall(envelope(CONTROL_REPLY, field(2, status)))
            conn.recv(1)
            conn.close()

        thread = threading.Thread(target=answer)
        thread.start()
        found = only(doctor(world, control=path), "version-differs")
        thread.join()
        listener.close()
        expect("0.0.1" in found["version-differs"][0] and found["version-differs"][1], found)
        only(doctor(world))


def peers_are_named():
    with World() as world:
        ports = []
        for _ in range(2):
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                ports.append(s.getsockname()[1])
        peers = (f'peers = {{"node-a=127.0.0.1:{ports[0]}", "node-b=127.0.0.1:{ports[1]}"}}\n'
                 f'peer_key_file = "{world.dir}/peer.key"')
        write_key(world.dir + "/peer.key", 0o600)
        world.configure(peers)
        world.start()
        found = only(doctor(world), "peer-unreachable")
        expect("node-b is never_seen" in found["peer-unreachable"][0], found)
        with World() as other:  # as the words say: its daemon has to be up
            write_key(other.dir + "/peer.key", 0o600, "43")
            other.configure(peers.replace(world.dir, other.dir))
            with open(other.conf, encoding="ascii") as f:
                text = f.read().replace('node_name = "node-a"', 'node_name = "node-b"')
            with open(other.conf, "w", encoding="ascii") as f:
                f.write(text)
            other.start()
            wait_until(lambda: "peer-key-differs" in doctor(world), "another key is named")
            other.stop()
            shutil.copy(world.dir + "/peer.key", other.dir + "/peer.key")  # as the words say
            other.start()
            wait_until(lambda: not only_of(doctor(world)), "they meet")


def a_full_or_closed_state_directory_is_named():
    if os.geteuid() != 0 or LIBC.unshare(0x00020000) != 0:
        raise tap.Skip("needs a mount namespace of its own")
    with World() as world:
        os.mkdir(world.state)
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", world.state], check=True)
        try:
            world.start()
            job = world.add("job", [dict(RANK=str(r), WORLD_SIZE="2", LOCAL_RANK=str(r),
                                         COLLWATCH_JOB="full") for r in range(2)])
            world.wait_for_training()
            subprocess.run(["mount", "-o", "remount,ro", world.state], check=True)
            job.kill(1)
            wait_until(lambda: "state-not-writable" in doctor(world), "named", 40)
            apply(f"mount -o remount,rw {world.state}")
            wait_until(lambda: not only_of(doctor(world)), "gone", 40)
        finally:
            world.stop()
            subprocess.run(["umount", world.state], check=True)


TESTS = [a_daemon_that_is_down_is_started_by_the_printed_command,
         sockets_that_are_closed_are_opened_by_the_printed_command,
         configuration_and_key_that_keep_the_daemon_down_are_named,
         programs_that_the_agent_cannot_be_in_are_named, a_process_without_the_agent_is_named,
         other_versions_are_named, peers_are_named, a_full_or_closed_state_directory_is_named]

if __name__ == "__main__":
    tap.run(TESTS)
