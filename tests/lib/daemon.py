# SPDX-License-Identifier: Apache-2.0
"""The real daemon, which a test can kill and start again, and its clients."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile

from agent_lib import environment
from built import COLLWATCH, COLLWATCHD
from job import Job
from open_copy import open_copy
from waiting import DEADLINE_S, expect, wait_until

# Short where the default makes a test wait.
PATIENCE = 'no_progress_after = "5s"\n'
# The answer of an ended daemon.
NOTHING = {"jobs": [], "notes": [], "peers": [], "incidents": []}


def samples_of(text):
    return {name: float(value) for name, value in
            (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))}


class Daemon:
    """collwatchd with all it owns in a directory of its own, and the jobs that end with it. command:
    words before the program."""

    def __init__(self, config="", name="node-a", patience=PATIENCE, program=COLLWATCHD, command=()):
        self.dir = tempfile.mkdtemp(prefix="cw-")
        os.chmod(self.dir, 0o755)  # jobs of other users reach the agents' socket
        self.name, self.patience, self.program, self.command = name, patience, program, list(command)
        self.path, self.control = self.dir + "/agent.sock", self.dir + "/control.sock"
        self.conf, self.state = self.dir + "/conf", self.dir + "/state"
        self.log_path = self.dir + "/log"
        self.jobs, self.process = [], None
        self.configure(config)

    def configure(self, text):
        with open(self.conf, "w", encoding="ascii") as f:
            f.write(f'node_name = "{self.name}"\nagent_socket = "{self.path}"\n'
                    f'control_socket = "{self.control}"\nstate_dir = "{self.state}"\n'
                    f'log_level = info\n{self.patience}{text}\n')

    def change_conf(self, old, new):
        """In what it is configured with now."""
        with open(self.conf, encoding="ascii") as f:
            made = f.read()
        expect(old in made, f"no {old} in {made}")
        with open(self.conf, "w", encoding="ascii") as f:
            f.write(made.replace(old, new))

    # ---- its life ----

    def start(self, preexec=None, **variables):
        """Returns when the daemon says that it is ready."""
        path = self.dir + "/notify.sock"
        if os.path.exists(path):
            os.unlink(path)
        env = environment(preload=None, **{"no_proxy": "*", "NOTIFY_SOCKET": path, **variables})
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            notify.bind(path)
            notify.settimeout(DEADLINE_S)
            self.run(env, preexec)
            try:
                while b"READY=1" not in notify.recv(4096):
                    pass
            except TimeoutError:
                raise AssertionError(f"{self.name} is not up:\n{self.log()}") from None
        return self

    def run(self, env, preexec):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.command + [self.program, "--config", self.conf], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=log, env=env, preexec_fn=preexec)

    def send(self, number):
        self.process.send_signal(number)

    def end(self, how=signal.SIGTERM):
        """Returns its exit status."""
        self.send(how)
        status = self.process.wait(DEADLINE_S)
        self.process = None
        return status

    def kill(self):
        self.end(signal.SIGKILL)

    def stop(self):
        """It ends well, if it runs."""
        status = self.end() if self.process else 0
        expect(status == 0, f"{self.name} ended with {status}: {self.log()}")

    def reload(self, text, says):
        """A new configuration and SIGHUP; returns when the log has said `says` once more."""
        before = self.log().count(says)
        self.configure(text)
        self.send(signal.SIGHUP)
        wait_until(lambda: self.log().count(says) > before, lambda: f"'{says}' in {self.log()}")

    def log(self):
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    # ---- queries ----

    def ask(self, *verb, uid=None, check=True):
        """As that user."""
        who = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        program = COLLWATCH if uid is None else open_copy(COLLWATCH)
        done = subprocess.run([program, *verb, "--control", self.control], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=DEADLINE_S, check=False, **who)
        expect(not check or done.returncode == 0, f"{verb}: {done}")
        return done

    def said(self, *verb):
        """However it ends: of a hang, say, the status tells that there is one."""
        return self.ask(*verb, check=False).stdout

    def answer(self, *verb, uid=None):
        """The answer as JSON. We repeat the query if the daemon was too slow."""
        def given():
            out = self.ask(*verb, "--json", uid=uid, check=False).stdout
            if out:
                return json.loads(out)
            return NOTHING if not self.process or self.process.poll() is not None else None
        return wait_until(given, lambda: f"an answer to {verb}: {self.log()}")

    def status(self, uid=None):
        return self.answer("status", uid=uid)

    def job(self, name, uid=None):
        """By the end of its label."""
        return next((j for j in self.status(uid)["jobs"] if j["job"].endswith(":" + name)), None)

    def notes(self):
        return self.status()["notes"]

    def leads(self, name):
        job = self.process and self.job(name)
        return bool(job and job["led_here"])

    def incidents(self, uid=None):
        """As `report` lists them."""
        return self.answer("report", uid=uid)["incidents"]

    def wait_for_incident(self, job):
        """By a part of the job's label."""
        return wait_until(lambda: next((i for i in self.incidents() if job in i["job"]), None),
                          lambda: f"an incident of {job}: {self.log()}")

    def scrape(self):
        """The samples of the metrics socket: {sample: value}."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(DEADLINE_S)
            s.connect(self.dir + "/metrics.sock")
            s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            reply = b""
            while data := s.recv(65536):
                reply += data
        head, body = reply.decode().split("\r\n\r\n", 1)
        expect(" 200 " in head and "version=0.0.4" in head, head)
        return samples_of(body)

    # ---- files ----

    def bundles(self):
        """{id: directory}; they are renamed into place as a whole."""
        top = self.state + "/incidents"
        names = os.listdir(top) if os.path.isdir(top) else []
        return {n: f"{top}/{n}" for n in names if not n.startswith(".")}

    def document(self, incident, name="incident"):
        with open(f"{self.state}/incidents/{incident}/{name}.json", encoding="utf-8") as f:
            return json.load(f)

    def keep(self, document):
        """Writes it as an earlier daemon would have."""
        os.makedirs(f"{self.state}/incidents/{document['id']}")
        with open(f"{self.state}/incidents/{document['id']}/incident.json", "w", encoding="utf-8") as f:
            json.dump(document, f)

    def all_documents(self, job, name):
        found = []
        for incident in self.bundles():
            try:
                found.append(self.document(incident, name))
            except (OSError, ValueError):
                continue  # being replaced, or of another sort
        return [d for d in found if job is None or d["job"].endswith(":" + job)]

    def documents(self, job=None, name="incident"):
        """Of all jobs, or of one by the end of its label; post-mortems without an alert do not count."""
        return [d for d in self.all_documents(job, name) if d.get("severity") != "failed"]

    def postmortems(self, job=None):
        """The incidents that say how their job ended."""
        return [d for d in self.all_documents(job, "incident") if "ends" in d]

    def incident_of(self, job):
        """The incident that paged; notices do not count."""
        return next((d for d in self.documents(job) if d["severity"] == "page"), None)

    def is_settled(self, incident):
        try:
            with open(self.state + "/sent", encoding="ascii") as f:
                return incident in f.read()
        except OSError:
            return False

    # ---- jobs ----

    def train(self, name, ranks=2, arguments=None, **more):
        """A job that ends with the daemon: job.py."""
        self.jobs.append(Job(name, ranks, arguments, self, **more))
        return self.jobs[-1]

    def wait_for(self, job):
        """Until it sees all ranks, and them at work."""
        def is_watched():
            expect(not job.ended(), f"{job.name}: a rank ended before its time: {job.ended()}")
            seen = self.job(job.name)
            return seen and seen["ranks"] == len(job.ranks) and seen["collectives"] > 0
        wait_until(is_watched, lambda: f"{job.name} is watched: {self.log()}")
        return job

    def wait_for_all(self):
        """Every job shows all its ranks, regardless of its name, and makes progress."""
        def train():
            for job in self.jobs:
                expect(not job.ended(), f"{job.name}: a rank ended before its time: {job.ended()}")
            seen = self.status()["jobs"]
            return len(seen) == len(self.jobs) and all(
                j["collectives"] > 20 and j["ranks"] == j["ranks_expected"] for j in seen)
        wait_until(train, lambda: f"all jobs train: {self.log()}")

    def close(self):
        """Fails where the daemon does not end well."""
        try:
            for job in self.jobs:
                job.close()
            self.stop()
        finally:
            if self.process:
                self.kill()
            shutil.rmtree(self.dir)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if exc[0] is None:
            self.close()
            return
        try:  # the first error counts
            self.close()
        except AssertionError as more:
            print(f"# {more}")
