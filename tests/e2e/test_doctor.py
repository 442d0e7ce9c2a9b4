# SPDX-License-Identifier: Apache-2.0
"""collwatch doctor: each finding is provoked, seen by its name, mended with the printed command (or,
where none can be printed, by hand as its words say), and gone."""

import ctypes
import functools
import glob
import json
import os
import re
import shlex
import shutil
import socket
import ssl
import struct
import subprocess
import threading

import machine
import pytest
from agent_lib import environment, envelope, field
from built import AGENT, CC, COLLWATCH, COLLWATCHD, SOURCE
from daemon import Daemon
from job import Job, labels
from open_copy import open_copy
from ports import unused_port
from receiver import Receiver
from waiting import expect, wait_until
from wording import key_in, slip

CONTROL_REPLY = 41
CLONE_NEWNS = 0x00020000
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
LIBC = ctypes.CDLL(None, use_errno=True)


@functools.lru_cache(maxsize=None)
def keys_of_the_configuration():
    done = subprocess.run([COLLWATCHD, "--help-config"], stdout=subprocess.PIPE, text=True, check=True)
    keys = re.findall(r"^(?:# )?([a-z_]+)\b", done.stdout, re.M)
    expect("peer_key_file" in keys, done.stdout)
    return keys


def is_read_by_people(text):
    """Checks every finding: no word of it is for programs, except for texts that users have
    written."""
    found = slip(text) or key_in(text, keys_of_the_configuration())
    expect(not found, f"{found} in: {text}")


def doctor(world, *words, uid=None, control=None):
    """{name of a finding: (description, fix)}"""
    program = COLLWATCH
    if uid:
        program = open_copy(COLLWATCH)
        for beside in AGENT, COLLWATCHD:  # there it looks for them
            open_copy(beside)
    done = subprocess.run([program, "doctor", "--json", "--control",
                           control or world.control, "--socket", world.path, "--config",
                           world.conf, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120, check=False,
                          **({} if uid is None else dict(user=uid, group=uid, extra_groups=[])))
    doc = json.loads(done.stdout)
    expect(done.returncode == (2 if doc["findings"] else 0), done)
    for finding in doc["findings"]:
        is_read_by_people(finding["what"])
    return {f["name"]: (f["what"], f["fix"]) for f in doc["findings"]}


def only(found, *names):
    """Findings about the kernel depend on the machine."""
    found.pop("kernel-events", None)
    expect(set(found) == set(names), found)
    return found


def apply(fix):
    subprocess.run(["sh", "-c", fix], check=True, timeout=120)


@pytest.fixture(name="world")
def healthy_world(daemon):
    """A world without a finding, to begin with."""
    daemon.start()
    only(doctor(daemon))
    return daemon


def old_loader(directory):
    """Prints glibc's message for a library that needs a newer one."""
    path = directory + "/ld-old.so"
    with open(path, "w", encoding="ascii") as f:
        f.write("#!/bin/sh\n[ -z \"$LD_PRELOAD\" ] && exit 0\n"
                "echo \"$2: libc.so.6: version \\`GLIBC_2.28' not found (required by $LD_PRELOAD)\"\n"
                "exit 1\n")
    os.chmod(path, 0o755)
    return path


def test_every_finding_of_the_manual_is_provoked_here():
    with open(SOURCE + "/docs/collwatch.1.scd", encoding="utf-8") as f:
        manual = f.read()
    listed = re.search(r"that command\. Names: (.*?)\. \*--json\*", manual, re.DOTALL).group(1)
    with open(__file__, encoding="utf-8") as f:
        here = f.read()
    names = re.findall(r"_([a-z-]+)_", listed)
    expect(len(names) > 30, listed)
    expect(not (missing := [n for n in names if f'"{n}"' not in here]), missing)


def test_a_daemon_that_is_down_is_started_by_the_printed_command(world):
    world.stop()
    found = only(doctor(world), "daemon-down", "agent-socket")
    expect("no daemon answers" in found["daemon-down"][0], found)
    words = shlex.split(found["daemon-down"][1])
    expect(os.path.realpath(words[0]) == os.path.realpath(COLLWATCHD), words)
    with open(world.log_path, "ab") as log:
        world.process = subprocess.Popen(words, stderr=log, stdin=subprocess.DEVNULL)
    wait_until(lambda: not doctor(world).keys() & {"daemon-down", "agent-socket"}, "mended")


@pytest.mark.root
def test_sockets_that_are_closed_are_named_and_no_command_opens_them(world):
    """The socket of --control may be another program's."""
    os.chmod(world.path, 0o600)
    os.chmod(world.control, 0o600)
    found = only(doctor(world, uid=4321), "agent-socket", "control-socket")
    for socket, name in (world.path, "agent-socket"), (world.control, "control-socket"):
        what, fix = found[name]
        expect(fix is None and socket in what and "namei -l" in what, found)
        os.chmod(socket, 0o666)
    only(doctor(world, uid=4321))


# Of these, doctor prints none: they change files that others made.
CHANGES_FILES = re.compile(r"\b(chmod|chown|chgrp|setcap|setfacl|chattr|rm|mv|ln|patchelf|setenforce|setsebool|sysctl)\b")


def changed_by(found):
    return {name: fix for name, (_, fix) in found.items() if fix and CHANGES_FILES.search(fix)}


@pytest.mark.root
def test_no_command_changes_a_program_of_others(world):
    exe, source = world.dir + "/p", world.dir + "/p.c"
    with open(source, "w", encoding="ascii") as f:
        f.write("int main(void) { return 0; }\n")
    subprocess.run([*shlex.split(CC), source, "-o", exe], check=True)
    os.chmod(exe, 0o4755)
    found = only(doctor(world, "--", exe), "program-setuid")
    expect(not changed_by(found) and not CHANGES_FILES.search(found["program-setuid"][0]), found)
    os.chmod(exe, 0o2755)
    expect(not changed_by(only(doctor(world, "--", exe), "program-setuid")), "set-group-ID")
    os.chmod(exe, 0o711)
    expect(not changed_by(only(doctor(world, "--", exe, uid=4321), "program-unreadable")), "unreadable")
    os.chmod(exe, 0o755)
    if shutil.which("setcap") and subprocess.run(["setcap", "cap_net_raw+ep", exe], check=False).returncode == 0:
        expect(not changed_by(only(doctor(world, "--", exe), "program-capabilities")), "capabilities")
    found = doctor(world, "--", "su")
    expect("program-setuid" in found and not changed_by(found), found)


def test_neither_advice_nor_doctor_nor_pages_have_such_a_command():
    wrong = []
    for pattern in "lib/report/doc/*.c", "cli/doctor/*.c", "docs/collwatch*.1.scd", "docs/collwatchd.8.scd":
        for path in glob.glob(f"{SOURCE}/{pattern}"):
            with open(path, encoding="utf-8") as f:
                wrong += [f"{path}: {m[0]}" for m in re.finditer(r"\b(chmod|setcap|setfacl|chattr) +[^ ,;]+", f.read())]
    expect(not wrong, "\n".join(wrong))


def printed(*words, **more):
    return subprocess.run([COLLWATCH, "doctor", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          timeout=120, check=False, **more)


def test_a_workstation_gets_one_finding_and_the_way_that_needs_no_daemon():
    places = "/run/collwatch", "/etc/collwatch", "/etc/systemd/system/collwatchd.service", \
        "/usr/lib/systemd/system/collwatchd.service", "/usr/local/lib/systemd/system/collwatchd.service"
    if any(os.path.exists(place) for place in places):
        pytest.skip("this machine has a daemon")
    first = {"pid": 0xeffffffc, "uts": 0xeffffffe, "ipc": 0xefffffff, "cgroup": 0xeffffffb}
    if any(os.stat("/proc/self/ns/" + name).st_ino != number for name, number in first.items()):
        pytest.skip("this may be a container")
    env = {k: v for k, v in os.environ.items()
           if not k.startswith("COLLWATCH_") and k not in ("container", "KUBERNETES_SERVICE_HOST")}
    doc = json.loads(printed("--json", env=env).stdout)
    expect(len(doc["findings"]) == 1, doc)
    expect(doc["findings"][0]["name"] == "no-daemon", doc)
    expect(doc["findings"][0]["fix"].startswith("collwatch run --standalone"), doc)
    is_read_by_people(doc["findings"][0]["what"])
    text = printed(env=env)
    expect(text.returncode == 2 and "1 problem found in 1 check\n" in text.stdout, text)


def test_without_a_webhook_it_says_where_alerts_go(world):
    words = ["--control", world.control, "--socket", world.path, "--config", world.conf]
    expect("alerts go to the journal only" in printed(*words).stdout, printed(*words))
    doc = json.loads(printed("--json", *words).stdout)
    # Other jobs of this machine may use an NCCL with a known hang.
    notes = [note for note in doc["notes"] if "ranks on this machine use NCCL" not in note]
    expect(len(notes) == 1 and "alerts go to the journal only" in notes[0], doc)
    world.configure('webhook_url = "http://127.0.0.1:9/"')
    expect("journal only" not in printed(*words).stdout, "there is one")


def test_configuration_and_key_that_keep_the_daemon_down_are_named(world):
    world.stop()
    world.configure("no_such_key = 1")
    found = only(doctor(world), "configuration", "agent-socket")
    expect("conf:7" in found["configuration"][0], found)
    key = world.dir + "/it's a key"
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


def test_a_key_that_is_missing_or_no_key_is_named(world):
    world.stop()
    key = world.dir + "/peer.key"
    world.configure(f'peer_key_file = "{key}"')
    found = only(doctor(world), "key-missing", "agent-socket")
    expect("mode 0600" in found["key-missing"][0], found)
    write_key(key, 0o600, "no")  # as the words say: copied, but not the right thing
    only(doctor(world), "key-malformed", "agent-socket")
    write_key(key, 0o600)
    world.start()
    only(doctor(world))


def init_cluster(directory, *options):
    subprocess.run([COLLWATCH, "init-cluster", directory, "--node", "node-a=127.0.0.1:7411", "--node",
                    "node-b=127.0.0.1:7412", *options], stdout=subprocess.DEVNULL, check=True)


def test_certificates_that_do_not_hold_are_named(world):
    """We cannot make expired ones here, but ones that soon will be, and ones of other
    authorities."""
    world.stop()
    at = world.dir + "/made"
    init_cluster(at, "--certificates", "--days", "3")
    files = {"ca": at + "/ca.crt", "cert": at + "/node-a/peer.crt",
             "private_key": at + "/node-a/peer.key"}

    def use(**more):
        world.configure("".join(f'peer_{name}_file = "{path}"\n'
                                for name, path in dict(files, **more).items()))
    use(private_key=at + "/node-b/peer.key")
    found = only(doctor(world), "certificate", "agent-socket")
    expect("not the key of the certificate" in found["certificate"][0], found)
    use(cert=at + "/node-b/peer.crt", private_key=at + "/node-b/peer.key")
    expect("DNS:node-a" in only(doctor(world), "certificate", "agent-socket")["certificate"][0],
           "another node's")
    os.chmod(files["private_key"], 0o644)
    use()
    apply(only(doctor(world), "key-permissions", "agent-socket")["key-permissions"][1])
    world.start()
    found = only(doctor(world), "certificate-expires")
    expect("expires in " in found["certificate-expires"][0], found)
    init_cluster(world.dir + "/again", "--ca", at)  # as the words say
    for name in "peer.crt", "peer.key":
        shutil.copy(f"{world.dir}/again/node-a/{name}", at + "/node-a")
    only(doctor(world))


def make_https(world):
    """A server with a certificate of its own making, for this name; its authority's file."""
    key, cert = world.dir + "/https.key", world.dir + "/https.crt"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert, "-days",
                    "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
                   stderr=subprocess.DEVNULL, check=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context, cert


@pytest.mark.forked  # it mounts
def test_a_webhook_that_does_not_answer_is_named():
    receiver = Receiver()
    with Daemon() as world:
        try:
            world.configure(f'webhook_url = "{receiver.url}"\n'
                            f'webhook_header_file = "{world.dir}/headers"')
            with open(world.dir + "/headers", "w", encoding="ascii") as f:
                f.write("Authorization: Bearer x\n")
            os.chmod(world.dir + "/headers", 0o600)
            world.start()
            os.rename(world.dir + "/headers", world.dir + "/elsewhere")
            only(doctor(world), "webhook-unreachable", "webhook-header")
            os.rename(world.dir + "/elsewhere", world.dir + "/headers")
            os.chmod(world.dir + "/headers", 0o644)
            found = only(doctor(world), "webhook-unreachable", "webhook-header")
            apply(found["webhook-header"][1])
            receiver.listen()
            only(doctor(world))
            expect(not receiver.posts, "nothing is posted")
            if os.geteuid() != 0 or not shutil.which("openssl") or LIBC.unshare(CLONE_NEWNS) != 0:
                return
            context, authority = make_https(world)
            receiver.server.socket = context.wrap_socket(receiver.server.socket, server_side=True)
            world.configure(f'webhook_url = "{receiver.url.replace("http:", "https:")}"')
            found = only(doctor(world), "webhook-tls")
            expect("certificate" in found["webhook-tls"][0], found)
            if not os.path.exists(AUTHORITIES) or machine.lacks("mounts"):
                return
            subprocess.run(["mount", "--make-rprivate", "/"], check=True)
            subprocess.run(["mount", "--bind", authority, AUTHORITIES], check=True)
            try:
                only(doctor(world))
            finally:
                subprocess.run(["umount", AUTHORITIES], check=True)
        finally:
            receiver.close()


@pytest.mark.root
def test_shadow_and_missing_rights_are_named():
    with Daemon("mode = shadow") as world:
        drop = lambda: [LIBC.prctl(24, cap, 0, 0, 0) for cap in (21, 38, 39)]  # PR_CAPBSET_DROP
        world.start(preexec=drop)
        found = doctor(world)
        expect(set(found) == {"shadow", "kernel-events"}, found)
        world.reload("mode = alert", "configuration")
        expect(set(doctor(world)) == {"kernel-events"}, "alerts go out")
        world.stop()
        world.configure("")
        world.start()
        if doctor(world):
            expect(only_of(doctor(world)) == {}, "where BPF is not to be had at all")


@pytest.mark.mounts
def test_a_process_that_does_not_see_the_socket_is_named(monkeypatch, world):
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("needs namespaces")
    hide = f"mount --bind /dev/null {world.path} && exec cat"
    env = environment(preload=None, COLLWATCH_SOCKET=world.path)
    p = subprocess.Popen(["unshare", "-m", "sh", "-c", hide], stdin=subprocess.PIPE, env=env)
    try:
        pid = str(p.pid)
        found = wait_until(lambda: "socket-not-visible" in (f := doctor(world, "--pid", pid))
                           and f, "it is in its namespace")
        only(found, "socket-not-visible", "agent-not-loaded")
        subprocess.run(["nsenter", "-t", pid, "-m", "umount", world.path], check=True)
        only(doctor(world, "--pid", pid), "agent-not-loaded")
    finally:
        p.communicate(timeout=120)
    env["LD_PRELOAD"] = world.dir + "/gone/libcollwatch.so"
    p = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
    try:
        only(doctor(world, "--pid", str(p.pid)), "agent-not-visible", "agent-not-loaded")
        os.mkdir(world.dir + "/gone")
        shutil.copy(open_copy(AGENT), world.dir + "/gone")
        only(doctor(world, "--pid", str(p.pid)), "agent-not-loaded")
    finally:
        p.communicate(timeout=120)
    expect("still runs" in only(doctor(world, "--pid", pid),
                                   "process-unreadable")["process-unreadable"][0], "it has ended")
    world.stop()
    monkeypatch.setenv("container", "test")
    nowhere = world.dir + "/not-mounted/agent.sock"
    found = doctor(world, "--socket", nowhere)
    expect("socket-not-mounted" in found, found)
    os.mkdir(os.path.dirname(nowhere))
    expect("socket-not-mounted" not in doctor(world, "--socket", nowhere), "mounted")
    # The control socket is the node's: a container that lacks its directory is as it should be.
    found = doctor(world, control=world.dir + "/of-the-node/control.sock")
    expect("daemon-down" not in found, found)


def test_jobs_that_share_a_communicator_are_named_with_what_they_lack(world):
    """One job; each of its ranks has another name."""
    job = Job("split", [dict(own, COLLWATCH_JOB=f"split-{own['RANK']}") for own in labels(2)], None, world)
    try:
        found = wait_until(lambda: doctor(world).get("jobs-share-communicator"), "it is found")
        expect("jobs split-0 and split-1 share communicator 0x" in found[0] or
               "jobs split-1 and split-0 share communicator 0x" in found[0], found)
        expect("COLLWATCH_JOB differs between them" in found[0] and found[1] is None, found)
        if os.geteuid() == 0:
            expect("jobs-share-communicator" not in doctor(world, uid=4321), "they are another user's")
    finally:
        job.close()


def test_programs_that_cannot_be_read_are_named(world):
    cc = shlex.split(CC)
    exe, source = world.dir + "/it's a p", world.dir + "/p.c"
    with open(source, "w", encoding="ascii") as f:
        f.write("int main(void) { return 0; }\n")
    subprocess.run([*cc, source, "-o", exe], check=True)
    with open(exe, "r+b") as f:  # e_machine: another processor's
        f.seek(18)
        f.write(struct.pack("<H", 8))
    only(doctor(world, "--", exe), "program-machine")
    with open(exe, "w", encoding="ascii") as f:
        f.write("no program")
    only(doctor(world, "--", exe), "program-unknown")
    only(doctor(world, "--", world.dir), "program-unreadable")
    subprocess.run([*cc, source, "-o", exe], check=True)
    only(doctor(world, "--", exe))
    if os.geteuid() != 0:
        return
    os.chmod(exe, 0o711)
    found = only(doctor(world, "--", exe, uid=4321), "program-unreadable")
    expect("as its owner or as root" in found["program-unreadable"][0], found)
    me = str(os.getpid())
    found = doctor(world, "--pid", me, uid=4321)
    expect("as root" in found["process-unreadable"][0], found)
    expect("process-unreadable" not in doctor(world, "--pid", me), "asked as root")


def test_programs_that_the_agent_cannot_be_in_are_named(world):
    cc = shlex.split(CC)
    source, exe = world.dir + "/p.c", world.dir + "/it's"
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
    build(plain, f"-Wl,--dynamic-linker={old_loader(world.dir)}")
    found = only(doctor(world, "--", exe), "agent-not-loadable")
    expect("version `GLIBC_2.28' not found" in found["agent-not-loadable"][0], found)
    if os.geteuid() == 0:  # and does not run the loader of another user's program
        os.chown(exe, 4321, 4321)
        only(doctor(world, "--", exe))
    os.unlink(exe)
    build(plain)
    script = world.dir + "/script"
    with open(script, "w", encoding="ascii") as f:
        f.write(f"#!{exe}\n")
    os.chmod(script, 0o755)
    os.chmod(exe, 0o4755)
    only(doctor(world, "--", script), "program-setuid")
    os.chmod(exe, 0o755)
    only(doctor(world, "--", script))
    only(doctor(world, "--", "/nowhere/train"), "program-missing")
    if os.geteuid() == 0 and shutil.which("setcap") and subprocess.run(
            ["setcap", "cap_net_raw+ep", exe], check=False).returncode == 0:
        only(doctor(world, "--", exe), "program-capabilities")


def test_a_process_without_the_agent_is_named(world):
    p = subprocess.Popen(["cat"], stdin=subprocess.PIPE, env=environment(preload=None))
    try:
        found = only(doctor(world, "--pid", str(p.pid)), "agent-not-loaded")
        fix = shlex.split(found["agent-not-loaded"][1])
    finally:
        p.communicate(timeout=120)
    expect(fix[:3] == ["collwatch", "run", "--"], fix)
    p = subprocess.Popen([COLLWATCH, *fix[1:3], "cat"], stdin=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, env=environment(preload=None))
    try:
        wait_until(lambda: not only_of(doctor(world, "--pid", str(p.pid))), "the agent is in")
    finally:
        p.communicate(timeout=120)


def only_of(found):
    found.pop("kernel-events", None)
    return found


def doctor_told(world, version, notes, **more):
    """The findings when the daemon reports that; notes are pairs of name and text."""
    path = world.dir + "/told.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    status = json.dumps({"schema": "collwatch.status/1", "version": version, "peers": [],
                         "notes": [text for _, text in notes], "note_names": [name for name, _ in notes],
                         "jobs": [], **more}).encode()

    def answer():
        conn, _ = listener.accept()
        conn.recv(65536)
        conn.sendall(envelope(CONTROL_REPLY, field(2, status)))
        conn.recv(1)
        conn.close()

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        return doctor(world, control=path)
    finally:
        thread.join()
        listener.close()
        os.unlink(path)


def test_other_versions_are_named(world):
    ours = world.status()["version"]
    found = only(doctor_told(world, "0.0.1", []), "version-differs")
    expect("0.0.1" in found["version-differs"][0] and found["version-differs"][1], found)
    note = ("agents of 2 rank processes have a version that this daemon cannot read: those ranks "
            "are not watched; update collwatch on this node")
    only(doctor_told(world, ours, [("agent_version", note)]), "agent-version")
    only(doctor_told(world, ours, [("peers_from", "1 of 3 addresses not met")]), "peers-not-found")
    only(doctor_told(world, ours, [("of_a_newer_daemon", note), ("alone", "mode = shadow")]))
    refused = {"node": "node-b", "dropped": 0, "state": "refused: no key there"}
    for refusal, words in ("no_key", "no key there"), ("of_a_newer_daemon", "for an unknown reason"):
        found = only(doctor_told(world, ours, [], peers=[{**refused, "refusal": refusal}]), "peer-unreachable")
        expect(f"node-b is refused ({words})" in found["peer-unreachable"][0], found)
    only(doctor_told(world, ours, []))
    only(doctor(world))


def test_a_daemon_of_another_commit_is_named(world):
    status = world.status()
    found = only(doctor_told(world, status["version"], [], commit="0123456789ab"), "version-differs")
    expect("0123456789ab" in found["version-differs"][0] and found["version-differs"][1], found)
    only(doctor_told(world, status["version"], [], commit="unknown"))
    only(doctor_told(world, status["version"], [], commit=status["commit"]))


def test_an_agent_of_another_commit_is_named(world):
    mark = b"collwatch-agent-commit:"
    with open(AGENT, "rb") as f:
        data = f.read()
    place = data.find(mark) + len(mark)
    expect(place >= len(mark), "the agent has no commit")
    # Programs look for the agent beside themselves, as in a build directory.
    root = world.dir + "/other"
    os.makedirs(root + "/agent")
    os.makedirs(root + "/cli")
    shutil.copy2(COLLWATCH, root + "/cli/collwatch")
    with open(root + "/agent/libcollwatch.so", "wb") as f:
        f.write(data[:place] + b"ba9876543210" + data[place + 12:])
    done = subprocess.run([root + "/cli/collwatch", "doctor", "--json", "--control", world.control], check=False,
                          stdout=subprocess.PIPE, timeout=60)
    found = [f for f in json.loads(done.stdout)["findings"] if f["name"] == "version-differs"]
    expect(found and "ba9876543210" in str(found), done.stdout)
    shutil.rmtree(root)


def test_peers_are_named():
    with Daemon() as world:
        ports = [unused_port(), unused_port()]
        peers = (f'peers = {{"node-a=127.0.0.1:{ports[0]}", "node-b=127.0.0.1:{ports[1]}"}}\n'
                 f'peer_key_file = "{world.dir}/peer.key"')
        write_key(world.dir + "/peer.key", 0o600)
        world.configure(peers)
        world.start()
        found = only(doctor(world), "peer-unreachable")
        expect("node-b has not been seen yet" in found["peer-unreachable"][0], found)
        with Daemon(name="node-b") as other:  # as the words say: its daemon has to be up
            write_key(other.dir + "/peer.key", 0o600, "43")
            other.configure(peers.replace(world.dir, other.dir))
            other.start()
            wait_until(lambda: "peer-key-differs" in doctor(world), "another key is named")
            other.stop()
            shutil.copy(world.dir + "/peer.key", other.dir + "/peer.key")  # as the words say
            other.start()
            wait_until(lambda: not only_of(doctor(world)), "they meet")


@pytest.mark.mounts
@pytest.mark.forked  # it mounts
def test_a_full_or_closed_state_directory_is_named():
    if os.geteuid() != 0 or LIBC.unshare(CLONE_NEWNS) != 0:
        pytest.skip("needs a mount namespace of its own")
    with Daemon() as world:
        os.mkdir(world.state)
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", world.state], check=True)
        try:
            world.start()
            only(doctor(world), "state-space")  # a tmpfs of 32 MiB
            subprocess.run(["mount", "-o", "remount,size=80m", world.state], check=True)
            only(doctor(world))
            job = world.train("full")
            world.wait_for_all()
            subprocess.run(["mount", "-o", "remount,ro", world.state], check=True)
            job.kill(1)
            wait_until(lambda: "state-not-writable" in doctor(world), "named")
            apply(f"mount -o remount,rw {world.state}")
            wait_until(lambda: not only_of(doctor(world)), "gone")
        finally:
            world.stop()
            subprocess.run(["umount", world.state], check=True)
