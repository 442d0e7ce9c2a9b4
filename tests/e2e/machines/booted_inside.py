#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The inner part of test_booted.py: installs collwatch, starts the unit, hangs a job under it,
upgrades it in the middle of another, removes it. Prints TAP.

usage: booted_inside.py IMAGE NEXT [TEST]

IMAGE is a tree as "meson install" makes it, and NEXT a later daemon; or both are directories of Debian
packages, of this version and of the next. TEST: the last one.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import tap
from waiting import call, expect

IMAGE, NEXT = sys.argv[1:3]
UNIT = "collwatchd.service"
UNITS = [UNIT, "collwatchd.socket", "collwatchd-control.socket"]
TRAINER = 4242  # the user whose jobs are watched
STATE = "/var/lib/collwatch"
CONF = "/etc/collwatch/collwatchd.conf"
GATE = "/run/cw-gate"
DROP_IN = f"/run/systemd/system/{UNIT}.d"
IMPATIENT = """[Service]
WatchdogSec=3
TimeoutAbortSec=100ms
"""
GATED = f"""[Service]
ExecStartPre=+/bin/sh -c 'while [ -e {GATE} ]; do sleep 0.05; done'
"""
TEXTFILE = "/var/lib/prometheus/node-exporter/collwatch.prom"
CONFIG = f"""metrics_textfile = "{TEXTFILE}"
node_name = "node-a"
stall_min = "4s"
no_progress_after = "4s"
first_op_after = "30s"
log_level = "info"
metrics_socket = "/var/lib/collwatch/metrics.sock"
"""
CAPABILITIES = {"dac_read_search": 2, "kill": 5, "setgid": 6, "setuid": 7,
                "sys_ptrace": 19, "perfmon": 38, "bpf": 39, "checkpoint_restore": 40}
TESTS, test = tap.collection()


def wait_until(predicate, what, seconds=120):
    """Polls: the thing waited for happens in another process."""
    end = time.monotonic() + seconds
    while True:
        value = predicate()
        if value:
            return value
        expect(time.monotonic() < end, f"not within {seconds} s: {what}\n{journal()[-6000:]}")
        time.sleep(0.05)


def show(name):
    return call("systemctl", "show", "-P", name, UNIT).strip()


def journal():
    return call("journalctl", "--no-pager", "-u", UNIT, "-o", "cat")


class Tree:
    """Files of a plain copy."""
    left = {"/etc/collwatch", "/etc/collwatch/collwatchd.conf", "/run/collwatch", "/run/collwatch-control", STATE}

    @staticmethod
    def files():
        """All of them, as paths from the root."""
        for directory, _, files in os.walk(IMAGE):
            for name in files:
                yield os.path.join("/", os.path.relpath(os.path.join(directory, name), IMAGE))

    @staticmethod
    def install():
        shutil.copytree(IMAGE, "/", symlinks=True, dirs_exist_ok=True)
        call("systemd-sysusers")
        call("systemd-tmpfiles", "--create")
        call("systemctl", "daemon-reload")
        call("systemctl", "enable", "--now", UNIT)

    @staticmethod
    def replace(program):
        """As a package manager does: the running one keeps its file."""
        shutil.copy(program, World.daemon + ".new")
        os.rename(World.daemon + ".new", World.daemon)

    def upgrade(self):
        shutil.copy(World.daemon, "/tmp/older")
        self.replace(NEXT)
        return subprocess.Popen(["systemctl", "restart", UNIT])

    def downgrade(self):
        self.replace("/tmp/older")
        call("systemctl", "restart", UNIT)

    def remove(self):
        call("systemctl", "disable", "--now", UNIT)
        for path in self.files():
            os.unlink(path)
        call("systemctl", "daemon-reload")


class Packages:
    """Files that dpkg installs."""
    left = {"/etc/collwatch", "/etc/collwatch/collwatchd.conf"}  # the site's: written by hand

    @staticmethod
    def names(directory=IMAGE):
        # Not the plugin: Slurm, which it depends on, cannot be fetched in here.
        return [f"{directory}/{name}" for name in sorted(os.listdir(directory))
                if not name.startswith("collwatch-slurm_")]

    @staticmethod
    def files():
        for name in "agent", "cli", "daemon", "lab":
            for path in call("dpkg", "-L", "collwatch-" + name).splitlines():
                if not os.path.isdir(path) or os.path.islink(path):
                    yield path

    def install(self):
        os.environ["DEBIAN_FRONTEND"] = "noninteractive"
        # With an empty index, apt can fetch nothing and uses what is present: the machine outside
        # may lag behind its archive, and then apt wants to upgrade unrelated packages.
        lists = "/var/tmp/no-lists"
        os.makedirs(lists + "/partial", exist_ok=True)
        call("apt-get", "-o", "Dir::State::lists=" + lists, "install", "-y", *self.names(), timeout=240)

    def upgrade(self):
        return subprocess.Popen(["dpkg", "-i", *self.names(NEXT)], stdout=subprocess.DEVNULL)

    def downgrade(self):
        call("dpkg", "-i", "--force-downgrade", *self.names(), timeout=240)

    @staticmethod
    def remove():
        names = ["collwatch-" + name for name in ("agent", "cli", "daemon", "lab")]
        call("apt-get", "remove", "-y", *names, timeout=240)
        expect(os.listdir(STATE + "/incidents"), "removed, not purged: incidents are kept")
        call("dpkg", "--purge", *names, timeout=240)
        expect("collwatch" not in open("/etc/passwd", encoding="ascii").read(), "a user is left")


WAY = Tree() if os.path.isdir(IMAGE + "/usr") else Packages()


def find_installed(end):
    return next(path for path in WAY.files() if path.endswith(end))


def ours():
    """Everything that has our name. The empty directories below /usr are left to package managers."""
    found = call("find", "/etc", "/usr", "/var/lib", "/var/log", "/var/cache", "/run", "-name",
                 "*collwatch*").splitlines()
    return {path for path in found if not path.startswith("/usr/") or not os.path.isdir(path)}


class World:
    """State that all tests share."""
    before = set()
    collwatch = daemon = None
    jobs = []
    first = None  # the incident of the first test
    killed = after_upgrade = goes_on = None  # jobs


class Job:
    """Three ranks of an ordinary user."""

    def __init__(self, name, *options):
        self.name = name
        programs = os.path.dirname(find_installed("/train_loop.py"))
        sim = os.path.dirname(find_installed("/libnccl.so.2"))
        self.dir = "/tmp/" + name
        os.mkdir(self.dir)
        os.chown(self.dir, TRAINER, TRAINER)
        self.ranks = [subprocess.Popen(
            [World.collwatch, "run", "--", sys.executable, programs + "/train_loop.py",
             "--steps", "0", "--step-ms", "20", "--elements", "64", "--log-every", "1",
             "--uid-file", self.dir + "/uid", *options],
            env={"PATH": "/usr/bin", "LD_LIBRARY_PATH": sim, "COLLWATCH_JOB": name,
                 "RANK": str(rank), "WORLD_SIZE": "3", "LOCAL_RANK": str(rank)},
            stdin=subprocess.DEVNULL, stdout=open(f"{self.dir}/out.{rank}", "wb"),
            stderr=subprocess.STDOUT, user=TRAINER, group=TRAINER, extra_groups=[])
            for rank in range(3)]
        World.jobs.append(self)

    def status(self):
        text = subprocess.run([World.collwatch, "status", "--json"], stdout=subprocess.PIPE,
                              check=False).stdout
        jobs = json.loads(text)["jobs"] if text else []
        return next((j for j in jobs if j["job"].endswith(":" + self.name)), None)

    def is_training(self):
        expect(all(r.poll() is None for r in self.ranks), self.name + ": " + self.output(0))
        job = self.status()
        return job and job["ranks"] == 3 and job["collectives"] > 20

    def output(self, rank):
        with open(f"{self.dir}/out.{rank}", encoding="utf-8") as f:
            return f.read()

    def steps(self, rank):
        return len(re.findall(r" step \d+ ", self.output(rank)))

    def incident(self):
        top = STATE + "/incidents"
        for entry in os.listdir(top) if os.path.isdir(top) else []:
            try:
                with open(f"{top}/{entry}/incident.json", encoding="utf-8") as f:
                    doc = json.load(f)
            except (OSError, ValueError):
                continue  # being written
            # A notice may still miss its stacks.
            if doc["job"].endswith(":" + self.name) and doc.get("severity", "page") == "page":
                return doc
        return None

    def close(self):
        for rank in self.ranks:
            rank.kill()
            rank.wait()


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def configure(text):
    with open(CONF, "w", encoding="ascii") as f:
        f.write(text)


@test
def installs_and_starts():
    World.before = ours()
    os.makedirs(os.path.dirname(TEXTFILE), exist_ok=True)
    os.chmod(os.path.dirname(TEXTFILE), 0o777)
    WAY.install()
    World.collwatch = find_installed("/bin/collwatch")
    World.daemon = find_installed("/sbin/collwatchd")
    for unit in UNITS:
        expect(call("systemctl", "is-active", unit).strip() == "active", unit)
        expect(call("systemctl", "is-enabled", unit).strip() == "enabled", unit)


def as_the_daemon(*command):
    """Runs a command with the daemon's user and capabilities, in the machine's file system and in
    the unit's view of it."""
    caps = ",".join("+" + name for name in CAPABILITIES)
    rights = ["setpriv", "--reuid=collwatch", "--regid=collwatch", "--clear-groups", "--no-new-privs",
              *(f"--{kind}=-all,{caps}" for kind in ("bounding-set", "inh-caps", "ambient-caps"))]
    inside = ["nsenter", "--mount", "--target", show("MainPID")]
    return [subprocess.run([*where, *rights, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, check=False) for where in ([], inside)]


def configuration_is_safe():
    made = os.stat("/etc/collwatch")
    expect(made.st_uid == 0 and made.st_mode & 0o022 == 0, f"{made}")
    for command in (["touch", "/etc/collwatch/another"], ["rm", CONF], ["sh", "-c", f"echo >>{CONF}"],
                    ["mv", CONF, "/etc/collwatch/away"], ["rmdir", "/etc/collwatch"]):
        for done in as_the_daemon(*command):
            expect(done.returncode != 0, f"the daemon may {command}")
    expect(os.listdir("/etc/collwatch") == [os.path.basename(CONF)], os.listdir("/etc/collwatch"))


@test
def keeps_its_configuration_from_the_daemon():
    made = os.stat("/etc/collwatch")
    expect((made.st_uid, made.st_gid, made.st_mode & 0o7777) == (0, 0, 0o755), f"{made}")
    configure("# secret\n")
    configuration_is_safe()
    os.chmod(CONF, 0o600)
    for done in as_the_daemon("cat", CONF):
        expect(done.stdout == "# secret\n", f"the daemon reads it: {done}")
    os.chmod(CONF, 0o644)


@test
def starts_with_a_configuration():
    configure(CONFIG)
    call("systemctl", "restart", UNIT)
    expect(call("systemctl", "is-active", UNIT).strip() == "active", journal())


def reload_is_good():
    done = subprocess.run(["systemctl", "reload", UNIT], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    return done.returncode == 0


def reload_result():
    answer = json.loads(call(World.collwatch, "status", "--json", check=False))["reload"]
    return answer and answer["result"]


@test
def fails_a_reload_with_a_bad_file_and_runs_on():
    pid = show("MainPID")
    configure(CONFIG + "stall_max = soon\n")
    expect(not reload_is_good(), "the reload of a bad file does not fail")
    wait_until(lambda: reload_result() == "refused", "the daemon refuses it")
    expect((show("MainPID"), show("ActiveState")) == (pid, "active"), journal())
    expect("stall_max" in call(World.collwatch, "status"), "status says why")
    configure(CONFIG)
    expect(reload_is_good(), journal())
    wait_until(lambda: reload_result() == "done", "the reload")


@test
def checks_a_credential_before_a_reload():
    """LoadCredential= shows it to the unit's processes alone."""
    key = "/etc/collwatch/peer.key"
    with open(key, "w", encoding="ascii") as f:
        f.write("ab" * 32 + "\n")
    os.chmod(key, 0o600)
    drop_in(f"[Service]\nLoadCredential=peer.key:{key}\n")
    configure(CONFIG + 'peer_key_file = "/run/credentials/collwatchd.service/peer.key"\n')
    call("systemctl", "restart", UNIT)
    expect(reload_is_good(), journal())
    wait_until(lambda: reload_result() == "done", "the reload")
    drop_in(None)
    os.unlink(key)
    configure(CONFIG)
    call("systemctl", "restart", UNIT)


@test
def has_a_user_of_its_own_and_no_capability_while_it_serves():
    fields = status_of(show("MainPID"))
    uid = call("id", "-u", "collwatch").strip()
    expect(fields["Uid"].split() == [uid] * 4 and uid != "0", fields["Uid"])
    mask = sum(1 << bit for bit in CAPABILITIES.values())
    for name in "CapEff", "CapPrm", "CapInh", "CapAmb":
        expect(int(fields[name], 16) == 0, f"{name} {fields[name]} of the loop")
    expect(int(fields["CapBnd"], 16) == mask, f"CapBnd {fields['CapBnd']}, not {mask:016x}")
    expect(fields["NoNewPrivs"] == "1" and fields["Seccomp"] == "2", "not fenced in")
    expect("no BPF facts" not in journal(), journal())


@test
def has_a_fork_server_with_no_more_than_that():
    """Its keeper went through exec, as the daemon did: after a mere fork it would have the daemon's
    arguments."""
    daemon = show("MainPID")
    with open(f"/proc/{daemon}/task/{daemon}/children", encoding="ascii") as f:
        pids = f.read().split()
    expect(len(pids) == 1, f"children {pids} of the daemon")
    with open(f"/proc/{pids[0]}/cmdline", "rb") as f:
        expect(f.read() == b"collwatchd\0--fork-server\0", "not executed")
    expect(os.path.samefile(f"/proc/{pids[0]}/exe", f"/proc/{daemon}/exe"), "another program")
    own, its = status_of(daemon), status_of(pids[0])
    for name in "Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp":
        expect(its[name] == own[name], f"{name} {its[name]}, not {own[name]}")
    mask = sum(1 << bit for bit in CAPABILITIES.values())
    for name in "CapEff", "CapPrm", "CapBnd", "CapAmb":
        expect(int(its[name], 16) == mask, f"{name} {its[name]}, not {mask:016x}")
    expect(its["Name"] == "collwatchd-fork", its["Name"])
    expect(len(os.listdir(f"/proc/{pids[0]}/fd")) == 4, "descriptors of the daemon's")


@test
def gives_its_metrics_out():
    text = wait_until(lambda: os.path.exists(TEXTFILE) and open(TEXTFILE, encoding="ascii").read(),
                      "the textfile")
    expect("collwatch_" in text and os.stat(TEXTFILE).st_mode & 0o444 == 0o444, text)
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("/var/lib/collwatch/metrics.sock")
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        reply = b"".join(iter(lambda: s.recv(65536), b""))
    expect(reply.startswith(b"HTTP/1.1 200 ") and b"collwatch_" in reply, reply)


def has_both_stacks():
    """The daemon skips an interpreter that works: the next time, then. One answer in 2 s."""
    done = subprocess.run([World.collwatch, "stacks", "hangs"], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return "train_step (train_loop.py:" in done.stdout and "read_sample" in done.stdout


@test
def names_the_rank_that_hangs_a_job_with_its_stacks():
    job = Job("hangs", "--fault", "block-in-data-loader", "--fault-rank", "1", "--fault-step", "30")
    other = World.killed = Job("killed")  # for the next test: meanwhile
    wait_until(other.is_training, "a job that trains")
    other.ranks[2].kill()
    doc = World.first = wait_until(job.incident, "an incident")
    expect(doc["class"] == "never_entered" and [c["rank"] for c in doc["culprits"]] == [1], doc)
    text = call(World.collwatch, "report", doc["id"])
    for what in (r"read_sample +\S*train_loop.py:\d+",  # Python: the agent answered
                 r"read\+\d+ +libc",  # ptrace, and the unwinder as the rank's user
                 r"in read\(\), waits in \w+"):  # /proc/PID/{syscall,wchan} of another user
        expect(re.search(what, text), f"no {what} in {text}")
    expect(doc["id"] in journal(), "the journal has the alert")
    wait_until(has_both_stacks, "the Python stacks of the culprit and of a waiting rank")
    job.close()


@test
def knows_who_killed_a_rank():
    job = World.killed
    doc = wait_until(job.incident, "an incident")
    expect(doc["class"] == "process_dead" and [c["rank"] for c in doc["culprits"]] == [2], doc)
    expect(f"killed by SIGKILL sent by python3 (pid {os.getpid()}, root)" in doc["summary"], doc)
    job.close()


def version():
    return json.loads(call(World.collwatch, "status", "--json", check=False))["version"]


def drop_in(text):
    """Changes the unit; None: restores it."""
    shutil.rmtree(DROP_IN, ignore_errors=True)
    if text:
        os.makedirs(DROP_IN)
        with open(DROP_IN + "/test.conf", "w", encoding="ascii") as f:
            f.write(text)
    call("systemctl", "daemon-reload")


@test
def is_upgraded_in_mid_job():
    job, dies = Job("goes-on"), Job("dies")
    wait_until(job.is_training, "a job that trains")
    wait_until(dies.is_training, "another")
    old = version()
    steps = [job.steps(rank) for rank in range(3)]
    # A daemon that starts only once the gate is open: it does not see a process die before that.
    drop_in(GATED)
    with open(GATE, "x", encoding="ascii"):
        upgrade = WAY.upgrade()
        wait_until(lambda: show("SubState") == "start-pre", "the old daemon has gone")
        dies.ranks[1].kill()
        dies.ranks[1].wait()
        os.unlink(GATE)
    expect(upgrade.wait(240) == 0, "upgrades")
    wait_until(lambda: show("ActiveState") == "active", "the new daemon")
    drop_in(None)
    expect(version() == old + "+next", f"{version()} after {old}")
    wait_until(job.is_training, "the job is watched again")
    wait_until(lambda: all(job.steps(rank) > steps[rank] + 20 for rank in range(3)),
               "its ranks go on")
    expect(World.first["id"] in call(World.collwatch, "report"), "incidents are kept")
    World.after_upgrade = dies
    expect(job.incident() is None, "a restart is no incident")
    job.close()


@test
def knows_the_last_ops_of_a_rank_that_died_while_no_daemon_was_there():
    job = World.after_upgrade
    doc = wait_until(job.incident, "an incident")
    expect(doc["class"] == "process_dead" and [c["rank"] for c in doc["culprits"]] == [1], doc)
    text = call(World.collwatch, "report", doc["id"])
    # How it ended is known from Linux 6.15 on; it was killed in a call of NCCL or between two.
    expect(re.search(r"(killed by SIGKILL|ended)[^;]*;\s+"
                     r"(its\s+last\s+call\s+on\s+\w+,|it\s+was\s+inside)\s+\w+\s+#\d+", text), text)
    job.close()


@test
def goes_back_to_the_older_version_in_mid_job():
    job = Job("goes-back")
    wait_until(job.is_training, "a job that trains")
    drop_in(IMPATIENT)  # for the next test
    WAY.downgrade()
    expect("+" not in version(), version())
    kept = re.findall(r"(\d+) of (\d+) rank processes kept over the restart", journal())[-1]
    expect(kept[0] == kept[1] != "0", journal())
    wait_until(job.is_training, "watched again")
    expect("cannot read" not in call(World.collwatch, "status", check=False), "a record is not read")
    World.goes_on = job


@test
def is_replaced_when_its_loop_is_stuck():
    job, pid = World.goes_on, int(show("MainPID"))
    steps = job.steps(0)
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: show("ActiveState") == "active" and show("MainPID") != str(pid),
               "another daemon")
    wait_until(job.is_training, "watched again")
    wait_until(lambda: job.steps(0) > steps + 20, "its ranks go on")
    expect("watchdog" in call("journalctl", "--no-pager", "-u", UNIT).lower(), journal())
    drop_in(None)
    job.close()


@test
def stays_stopped_when_it_is_stopped():
    job = Job("unwatched")
    wait_until(job.is_training, "a job that trains")
    call("systemctl", "stop", UNIT)
    steps = job.steps(0)
    wait_until(lambda: job.steps(0) > steps + 80, "the job goes on alone")  # agents ask each second
    for unit in UNITS:
        expect(call("systemctl", "is-active", unit, check=False).strip() == "inactive", unit)
    call("systemctl", "start", UNIT)
    wait_until(job.is_training, "watched again")
    job.close()


@test
def leaves_only_what_the_manual_says_when_it_is_removed():
    expect(os.listdir(STATE + "/incidents"), "there are incidents")
    WAY.remove()
    expect(ours() - World.before == WAY.left, ours() - World.before)
    expect(STATE not in WAY.left or os.listdir(STATE + "/incidents"),
           "incidents outlive the package")


if __name__ == "__main__":
    try:
        last = [t.__name__ for t in TESTS].index(sys.argv[3]) if len(sys.argv) > 3 else len(TESTS)
        tap.run(TESTS[:last + 1])
    finally:
        for job in World.jobs:
            job.close()
