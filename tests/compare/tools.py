# SPDX-License-Identifier: Apache-2.0
"""Common tools for a hung job. We query each as its manual says, and read its answer."""
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from lab_lib import ask_ras
from torch_labels import CROWD, names_line
from torch_lib import COLLWATCH, ask_for_dumps, default_cache, torch_run
from agent_lib import wait_until
from waiting import said

DUMPS_S, TOOL_S = 60, 90
# collwatch speaks first, then we query the others; we read the results of the tools below
# afterwards.
COLLWATCH_SAYS, TRACE, SERVER, RAS, PY_SPY = "collwatch", "torchfrtrace", "debug server", "RAS", "py-spy"
WATCHDOG, DUMPS_READ = "torch's log", "collwatch analyze"

TOOLS = (COLLWATCH_SAYS, TRACE, SERVER, RAS, PY_SPY, WATCHDOG, DUMPS_READ)
ABOUT = {
    COLLWATCH_SAYS: "the daemon's incidents, with default patience",
    TRACE: "torch's analyser, on Flight Recorder dumps through the pipes",
    SERVER: "torch.distributed.debug: /fr_trace_nccl, /stacks and /pyspy_dump",
    RAS: "NCCL's VERBOSE STATUS",
    PY_SPY: "py-spy dump of each rank",
    WATCHDOG: "the job's output after the watchdog's time-out, TORCH_NCCL_DESYNC_DEBUG=1, without "
              "collwatch",
    DUMPS_READ: "collwatch analyze --flight-recorder, on the dumps of this watchdog",
}
# Patterns that single ranks out, in each tool's words; the first pattern that matches counts.
NAMED = {
    TRACE: [r"Culprit rank (\d+)", r"missing ranks: \{([\d, ]+)\}"],
    SERVER: [r"Culprit rank (\d+)", r"missing ranks: \{([\d, ]+)\}", r"^  Rank (\d+): "],
    RAS: [r"^ *Ranks? ([\d,-]+) ha(?:s|ve) launched", r"^ *Rank (\d+) -- GPU"],
    PY_SPY: [],
    # Of its report of the desync; else who printed a traceback first.
    WATCHDOG: [r"^\s+(?:- )?\[([\d, ]+)\] (?:finished collective|joined but)",
               r"^Traceback of rank (\d+)$"],
}


def output_of(command, env=None):
    """The command's output, or the reason for its failure."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=env, timeout=TOOL_S, check=False, errors="replace").stdout
    except (OSError, subprocess.TimeoutExpired) as e:
        return str(e)


class Fetched:
    """Packages that PyTorch's cache lacks: py-spy, and its tools' imports."""

    WANTED = ("py-spy", "tabulate", "requests")

    def __init__(self, directory):
        self.directory = directory
        self.said = output_of([sys.executable, "-m", "pip", "install", "--quiet", "--target", directory,
                               *self.WANTED])
        self.py_spy = os.path.join(directory, "bin", "py-spy")
        if not os.path.exists(self.py_spy):
            print("py-spy could not be fetched: " + self.said.strip()[-200:], file=sys.stderr)
            self.py_spy = None

    def environment(self, build):
        env = torch_run.job_environment(default_cache(), build, 1, "shm")
        env["PYTHONPATH"] += ":" + self.directory
        return env

    def paths(self, build):
        """For a job whose debug server imports that and runs py-spy."""
        return {"PYTHONPATH": self.environment(build)["PYTHONPATH"],
                "PATH": os.path.join(self.directory, "bin") + ":" + os.environ["PATH"]}

    def version(self):
        return output_of([self.py_spy, "--version"]).strip() if self.py_spy else "py-spy: none"


def ask_torch(at, dumps, fetched, build):
    def is_dumped():
        ask_for_dumps(at)
        time.sleep(1)
        return len(os.listdir(dumps)) == CROWD
    note = ""
    try:
        wait_until(is_dumped, "the dumps", DUMPS_S)
    except AssertionError as e:
        note = "%s: %s\n" % (e, sorted(os.listdir(dumps)))
    return note + trace(dumps, fetched, build, len(os.listdir(dumps)) < CROWD)


def trace(dumps, fetched, build, is_partial):
    """The output of torch's analyser for them."""
    options = ["--allow-incomplete-ranks"] if is_partial else []
    return output_of([sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", dumps,
                      "-p", "rank_", "--print_stack_trace", *options], fetched.environment(build))


def ask_server(port):
    """All of its pages that can tell of a hang."""
    pages = []
    for page in "fr_trace_nccl", "stacks", "pyspy_dump":
        try:
            with urllib.request.urlopen("http://localhost:%d/%s" % (port, page), timeout=TOOL_S) as f:
                text = f.read().decode(errors="replace")
        except urllib.error.HTTPError as e:
            text = "%s: %s" % (e, e.read().decode(errors="replace"))
        except (OSError, socket.timeout) as e:
            text = str(e)
        pages.append("%s\n%s" % (page, re.sub(r"(?s)<style>.*?</style>|<[^>]*>", " ", text)))
    return "\n".join(pages)


def ask_py_spy(path, job):
    if not path:
        return None
    return "\n".join("rank %d\n%s" % (i, output_of([path, "dump", "--pid", str(p.pid)]))
                     for i, p in enumerate(job.ranks))


def read_dumps(dumps):
    """The class, the ranks, and the report."""
    try:
        document = json.loads(said(COLLWATCH, "analyze", "--flight-recorder", dumps, "--json"))
    except ValueError:
        return None, [], said(COLLWATCH, "analyze", "--flight-recorder", dumps)
    return (document["class"], [c["rank"] for c in document["culprits"]],
            said(COLLWATCH, "analyze", "--flight-recorder", dumps))


def ranks_in(tool, text):
    """The ranks that it singles out."""
    hits = [re.findall(p, text or "", re.M) for p in NAMED[tool]]
    return {int(n) for n in re.findall(r"\d+", " ".join(next(filter(None, hits), [])))}


def has_line(text, case):
    """As stacks are written, or as Python writes a traceback."""
    return text is not None and bool(
        names_line(text, case.program, case.function) or
        re.search(r'/(?:job|%s)\.py", line \d+, in %s\b' % (case.program, case.function), text))


def timed(ask, *arguments):
    start = time.time()
    return ask(*arguments), time.time() - start


def ask_live(at, dumps, ports, fetched, build, job):
    """{tool: (its answer, seconds after the query)}"""
    return {TRACE: timed(ask_torch, at, dumps, fetched, build),
            SERVER: timed(ask_server, ports["server"]),
            RAS: timed(ask_ras, ports["ras"], TOOL_S),
            PY_SPY: timed(ask_py_spy, fetched.py_spy, job)}


def ask_dead(ports, fetched, job):
    """The tools that work in the same way on a killed job."""
    return {SERVER: ask_server(ports["server"]), RAS: ask_ras(ports["ras"], TOOL_S),
            PY_SPY: ask_py_spy(fetched.py_spy, job)}
