# SPDX-License-Identifier: Apache-2.0
"""What the tests of operations share: a daemon with its configuration, an HTTP server that takes
alerts, jobs of several users. Everything lies in one directory, open to other users: the programs
are copied there, because a build tree may be closed to them."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from agent_lib import environment, start
from built import AGENT, COLLWATCH, COLLWATCHD, SIM_DIR
from built import TRAIN_LOOP as TRAIN
from ports import unused_port
from waiting import expect, wait_until


def samples_of(text):
    return {name: float(value) for name, value in
            (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))}


class Receiver:
    """Takes alerts on a port of loopback that is its own also while nobody listens there."""

    def __init__(self):
        self.keep = socket.socket()
        self.keep.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.port = unused_port()
        self.keep.bind(("127.0.0.1", self.port))
        self.posts = []  # (idempotency key, document)
        self.server = self.thread = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hook"

    def listen(self):
        posts = self.posts

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                posts.append((self.headers["Idempotency-Key"], json.loads(body)))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *args):  # pylint: disable=arguments-differ
                pass

        self.server = HTTPServer(("127.0.0.1", self.port), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def close(self):
        if self.server:
            self.server.shutdown()
            self.thread.join()
            self.server.server_close()
        self.server = None
        self.keep.close()

    def count(self, key):
        return sum(1 for k, _ in self.posts if k == key)


class Job:
    """Ranks of the training loop; each has environment of its own."""

    def __init__(self, world, name, environments, uid=0, step_ms=20, more=()):
        self.name, self.uid = name, uid
        directory = os.path.join(world.dir, "job-" + name)
        os.mkdir(directory, 0o755)
        os.chown(directory, uid, uid)
        self.log = open(os.path.join(directory, "log"), "wb")
        argv = [world.program("train_loop"), "--steps", "0", "--step-ms", str(step_ms),
                "--elements", "64", "--log-every", "0", "--uid-file",
                os.path.join(directory, "uid"), *more]
        self.ranks = [start(argv, world.environment(**env), user=uid, group=uid, extra_groups=[],
                            stdout=self.log, stderr=self.log) for env in environments]

    def kill(self, rank):
        self.ranks[rank].kill()
        self.ranks[rank].wait()

    def close(self):
        for rank in self.ranks:
            rank.kill()
            rank.wait()
        self.log.close()


def plain_ranks(n, **more):
    return [dict(RANK=str(r), WORLD_SIZE=str(n), LOCAL_RANK=str(r), **more) for r in range(n)]


class World:
    """A daemon and its jobs."""

    def __init__(self, text=""):
        self.dir = tempfile.mkdtemp(prefix="cw-ops-")
        os.chmod(self.dir, 0o755)
        self.path, self.control = self.dir + "/agent.sock", self.dir + "/control.sock"
        self.conf, self.state = self.dir + "/conf", self.dir + "/state"
        self.log_path = self.dir + "/log"
        self.jobs, self.daemon, self.collwatchd = [], None, COLLWATCHD
        self.copy_programs()
        self.configure(text)

    def copy_programs(self):
        os.mkdir(self.dir + "/bin")
        for path in [AGENT, TRAIN, COLLWATCH, COLLWATCHD]:
            shutil.copy(path, self.dir + "/bin")
        for name in os.listdir(SIM_DIR):
            path = os.path.join(SIM_DIR, name)
            # An aliased library that was not built yet is a link to nowhere.
            if ".so" in name and os.path.isfile(path):
                shutil.copy(path, self.dir + "/bin")
        for name in os.listdir(self.dir + "/bin"):
            os.chmod(f"{self.dir}/bin/{name}", 0o755)

    def program(self, name):
        return f"{self.dir}/bin/{name}"

    def environment(self, **extra):
        bindir = self.dir + "/bin"
        return environment(self, preload=bindir + "/" + os.path.basename(AGENT),
                           LD_LIBRARY_PATH=bindir, COLLWATCH_CONTROL_SOCKET=self.control, **extra)

    def configure(self, text):
        with open(self.conf, "w", encoding="ascii") as f:
            f.write('node_name = "node-a"\nlog_level = info\nno_headway_after = "5s"\n'
                    f'agent_socket = "{self.path}"\ncontrol_socket = "{self.control}"\n'
                    f'state_dir = "{self.state}"\n{text}\n')

    def start(self, preexec=None, **extra):
        """extra: variables of its environment."""
        with open(self.log_path, "ab") as log:
            self.daemon = start([self.collwatchd, "--config", self.conf],
                                environment(preload=None, **{"no_proxy": "*", **extra}), stderr=log,
                                preexec_fn=preexec)
        wait_until(lambda: self.ask("status", check=False).returncode in (0, 2, 3),
                   "the daemon answers: " + self.log())
        return self

    def stop(self):
        if self.daemon:
            self.daemon.terminate()
            status = self.daemon.wait(120)
            self.daemon = None
            expect(status == 0, f"the daemon ended with {status}: {self.log()}")

    def reload(self, text, says):
        """A new configuration and SIGHUP; returns when the log has said `says` once more."""
        before = self.log().count(says)
        self.configure(text)
        self.daemon.send_signal(signal.SIGHUP)
        wait_until(lambda: self.log().count(says) > before, f"'{says}' in {self.log()}")

    def log(self):
        try:
            with open(self.log_path, encoding="utf-8") as f:
                return f.read()
        except OSError:
            return ""

    def ask(self, *verb, uid=0, check=True):
        done = subprocess.run([self.program("collwatch"), *verb, "--control", self.control],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=120, check=False,
                              user=uid, group=uid, extra_groups=[])
        expect(not check or done.returncode == 0, f"{verb}: {done}")
        return done

    def scrape(self):
        """What the metrics socket says: {sample: value}."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(120)
            s.connect(self.dir + "/metrics.sock")
            s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            reply = b""
            while data := s.recv(65536):
                reply += data
        head, body = reply.decode().split("\r\n\r\n", 1)
        expect(" 200 " in head and "version=0.0.4" in head, head)
        return samples_of(body)

    def answer(self, *verb, uid, otherwise):
        """What is printed as JSON. A daemon that was too slow to answer is asked again; `otherwise`
        is the answer of one that has ended."""
        def given():
            out = self.ask(*verb, uid=uid, check=False).stdout
            if out:
                return json.loads(out)
            return otherwise if not self.daemon or self.daemon.poll() is not None else None
        return wait_until(given, f"an answer to {verb}: {self.log()}")

    def status(self, uid=0):
        return self.answer("status", "--json", uid=uid,
                           otherwise={"jobs": [], "notes": [], "peers": []})

    def job_status(self, name, uid=0):
        return next((j for j in self.status(uid)["jobs"] if name in j["job"]), None)

    def add(self, *args, **more):
        self.jobs.append(Job(self, *args, **more))
        return self.jobs[-1]

    def wait_for_training(self):
        """All jobs are seen with all their ranks, and make progress."""
        def train():
            for job in self.jobs:
                dead = [r for r in job.ranks if r.poll() is not None]
                expect(not dead, f"{job.name}: a rank ended before its time")
            seen = self.status()["jobs"]
            return len(seen) == len(self.jobs) and all(
                j["collectives"] > 20 and j["ranks"] == j["ranks_expected"] for j in seen)
        wait_until(train, "all jobs training")

    def incidents(self, uid=0):
        return self.answer("report", "--json", uid=uid, otherwise={"incidents": []})["incidents"]

    def wait_for_incident(self, job):
        """By the job's label; returns what `report` lists."""
        return wait_until(lambda: next((i for i in self.incidents() if job in i["job"]), None),
                          f"an incident of {job}: {self.log()}")

    def bundle(self, incident):
        with open(f"{self.state}/incidents/{incident}/incident.json", encoding="utf-8") as f:
            return json.load(f)

    def is_settled(self, incident):
        try:
            with open(self.state + "/sent", encoding="ascii") as f:
                return incident in f.read()
        except OSError:
            return False

    def close(self):
        try:
            for job in self.jobs:
                job.close()
            self.stop()
        finally:
            if self.daemon:
                self.daemon.kill()
                self.daemon.wait()
            shutil.rmtree(self.dir)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
