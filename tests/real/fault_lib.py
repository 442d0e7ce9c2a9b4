# SPDX-License-Identifier: Apache-2.0
"""What the tests with NVIDIA's NCCL share: the real daemon, and training jobs whose whole output is
kept."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile

from agent_lib import check, environment, start, wait_until
from built import AGENT, COLLWATCH, COLLWATCHD
from built import TRAIN_LOOP as TRAIN

# Short where the defaults make a test wait, as in the demo.
PATIENCE = 'no_headway_after = "5s"\nfirst_op_after = "30s"\n'


class RealDaemon:
    """collwatchd with all it owns in a directory of its own."""

    def __init__(self, config=PATIENCE, state_dir=None, command=()):
        self.dir = tempfile.mkdtemp(prefix="cw-")
        os.chmod(self.dir, 0o711)  # jobs of other users reach the agent's socket
        self.path, self.control = self.dir + "/agent.sock", self.dir + "/control.sock"
        self.state = state_dir or self.dir + "/state"
        self.command, self.process = list(command), None
        self.log = open(self.dir + "/log", "ab")
        self.configure(config)

    def configure(self, config):
        with open(self.dir + "/conf", "w", encoding="ascii") as f:
            f.write(f'node_name = "node-a"\nagent_socket = "{self.path}"\n'
                    f'control_socket = "{self.control}"\nstate_dir = "{self.state}"\n{config}')

    def start(self, **more):
        """Returns when the daemon says that it is ready."""
        path = self.dir + "/notify.sock"
        if os.path.exists(path):
            os.unlink(path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(path)
            notify.settimeout(120)
            self.process = subprocess.Popen(
                self.command + [COLLWATCHD, "--config", self.dir + "/conf"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log,
                env=dict(os.environ, NOTIFY_SOCKET=path), **more)
            try:
                while b"READY=1" not in notify.recv(4096):
                    pass
            except TimeoutError:
                raise AssertionError("the daemon is not up:\n" + self.read_log()) from None

    def send(self, number):
        self.process.send_signal(number)

    def end(self, how=signal.SIGTERM):
        """Returns its exit status."""
        self.send(how)
        status = self.process.wait(120)
        self.process = None
        return status

    def read_log(self):
        with open(self.dir + "/log", encoding="utf-8", errors="replace") as f:
            return f.read()

    @staticmethod
    def run(*words):
        done = subprocess.run([COLLWATCH, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
        return done.stdout.decode()

    def ask(self, *words):
        return self.run(*words, "--control", self.control)

    def status(self):
        """None when it does not answer."""
        try:
            return json.loads(self.ask("status", "--json"))
        except ValueError:
            return None

    def answer(self):
        """As status(), of a daemon that runs: one that is too slow to answer is asked again."""
        return wait_until(self.status, "an answer: " + self.read_log())

    def job(self, name):
        jobs = (self.status() or {"jobs": []})["jobs"]
        return next((j for j in jobs if j["job"].endswith(":" + name)), None)

    def notes(self):
        return (self.status() or {"notes": []})["notes"]

    def bundles(self):
        """{id: directory}; they are renamed into place as a whole."""
        top = self.state + "/incidents"
        names = os.listdir(top) if os.path.isdir(top) else []
        return {n: f"{top}/{n}" for n in names if not n.startswith(".")}

    def incidents(self):
        documents = []
        for directory in self.bundles().values():
            try:
                with open(directory + "/incident.json", encoding="utf-8") as f:
                    documents.append(json.load(f))
            except (OSError, ValueError):
                continue  # being replaced
        return documents

    def incident_of(self, name):
        """What people were called for; what is only noted is not."""
        return next((d for d in self.incidents()
                     if d["job"].endswith(":" + name) and d["severity"] == "page"), None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            self.process.wait(120)
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)


class Training:
    """Ranks of train_loop, each with its output in files. daemon: one, or one for each of the nodes
    that the ranks are dealt out to. program, preload and libraries: other copies than the build's.
    variables: of a rank, by its number. has_uid_file: ranks meet by a file.
    """

    def __init__(self, directory, name, ranks, arguments, daemon=None, program=None, preload=None,
                 libraries=None, variables=lambda rank: {}, has_uid_file=True, **popen):
        self.dir = tempfile.mkdtemp(prefix=name + "-", dir=directory)
        if "user" in popen:
            os.chown(self.dir, popen["user"], popen["group"])
        self.name = name
        self.ranks = []
        meeting = ["--uid-file", self.dir + "/uid"] if has_uid_file else []
        for rank in range(ranks):
            at = daemon[rank * len(daemon) // ranks] if isinstance(daemon, list) else daemon
            env = environment(at, preload=(preload or AGENT) if daemon else None,
                              RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank),
                              COLLWATCH_JOB=name, **variables(rank))
            if libraries:
                env["LD_LIBRARY_PATH"] = libraries
            with open(self.path(rank, "out"), "wb") as out, open(self.path(rank, "err"), "wb") as e:
                self.ranks.append(start([program or TRAIN, *arguments, *meeting], env, stdout=out,
                                        stderr=e, **popen))

    def path(self, rank, what):
        return f"{self.dir}/{rank}.{what}"

    def output(self, rank, what="out"):
        with open(self.path(rank, what), "rb") as f:
            return f.read()

    def steps(self, rank=0):
        """How many it has logged."""
        return self.output(rank).count(b" step ")

    def is_running(self):
        return all(r.poll() is None for r in self.ranks)

    def wait(self, seconds):
        """What is compared: exit status, output and errors of all ranks."""
        statuses = [r.wait(seconds) for r in self.ranks]
        return [(s, self.output(i), self.output(i, "err")) for i, s in enumerate(statuses)]

    def kill(self):
        for rank in self.ranks:
            rank.kill()
            rank.wait()


def wait_for_job(daemon, training, ranks):
    """Until the daemon sees all ranks of it, and them at work."""
    def is_watched():
        check(training.is_running(), "a rank ended before its time")
        job = daemon.job(training.name)
        return job and job["ranks"] == ranks and job["collectives"] > 0
    wait_until(is_watched, f"{training.name} is watched")
