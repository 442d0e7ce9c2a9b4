# SPDX-License-Identifier: Apache-2.0
"""Jobs of PyTorch on the simulated device, and the alerts on them: the common parts of the tests
and of the comparison with other tools. The build is CW_BUILD."""
import os
import re
import signal
import sys

from lab_lib import SOURCE, Tool

BUILD = os.environ["CW_BUILD"]
if not os.path.exists(BUILD + "/tests/e2e/built.py"):
    sys.exit(f"{BUILD} is no build of collwatch: make one (meson setup build && ninja -C build), or name another")
sys.path.insert(0, BUILD + "/tests/e2e")  # built.py, which tells the libraries below all paths
sys.dont_write_bytecode = True

import tap  # noqa: E402 pylint: disable=wrong-import-position
import torch_run  # noqa: E402 pylint: disable=wrong-import-position
import job as jobs  # noqa: E402 pylint: disable=wrong-import-position
from built import COLLWATCH  # noqa: E402 pylint: disable=wrong-import-position
from waiting import said  # noqa: E402 pylint: disable=wrong-import-position
from nccl_place import default_cache  # noqa: E402 pylint: disable=wrong-import-position
from torch_labels import CROWD  # noqa: E402 pylint: disable=wrong-import-position

PROGRAMS = os.path.join(SOURCE, "lab", "torch", "programs")
RANKS = 2
# Each is far more than a busy machine has ever needed; none of them passes when all is well.
BUILD_S, JOB_S, ALERT_S = 5400, 1800, 900

torch = Tool("real-torch", BUILD, JOB_S)


def descendants(pid):
    """Its children and theirs."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            children = [int(c) for c in f.read().split()]
    except OSError:
        return []
    return children + [d for c in children for d in descendants(c)]


class Job(jobs.Job):
    """Ranks of a PyTorch program; with the agent when there is a daemon."""

    def __init__(self, directory, program, *arguments, daemon=None, ranks=RANKS,
                 variables=None, argv=None, by_watch=False, has_module=False):
        """argv: as of jobs.Job, of a launcher that starts the program; ranks: the variables of each
        launcher then. daemon: or those of the nodes. by_watch: run by collwatch.torch.
        has_module: can import it."""
        torch.needed()
        env = torch_run.job_environment(default_cache(), BUILD, len(ranks) if argv else ranks, "shm")
        # A call that differs is named by the line that made it.
        env["COLLWATCH_CALL_STACKS"] = "on"
        mine = {k: v for k, v in env.items() if os.environ.get(k) != v and k != "WORLD_SIZE"}
        mine.update(variables or {})
        path = os.path.join(PROGRAMS, program + ".py")  # or where it says
        watch = ["-m", "collwatch.torch", "-o", "/dev/null"] if by_watch else []
        if by_watch or has_module:
            mine["PYTHONPATH"] = env["PYTHONPATH"] + ":" + os.path.join(SOURCE, "python")
        super().__init__(program, ranks, list(arguments) if argv else [*watch, path, *arguments],
                         [] if daemon is None else daemon, program=argv or sys.executable,
                         variables=mine, meets=False, at=directory)

    def close(self):
        """They may have started others: data loaders' workers, a server."""
        started = {c for r in self.ranks for c in descendants(r.pid)}
        super().close()
        for pid in started:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def has_computed(self):
        """All ranks, to the end of their work."""
        return all(b" result " in self.output(i) for i in range(len(self.ranks)))

    def results(self):
        """The results of all ranks; each has to end well."""
        lines = []
        for status, out, err in self.wait(JOB_S):
            if status != 0:
                raise tap.Failure(f"status {status}: {err.decode(errors='replace')[-3000:]}")
            lines += re.findall(r"rank \d+ (?:step|result) .*", out.decode())
        return sorted(lines)


PATIENT = 'no_progress_after = "20s"\nfirst_op_after = "1h"\n'


def told(daemon, program):
    """{(class, ranks, report)} of the job's incidents so far. daemon: or those of the nodes."""
    return {(i["class"], tuple(c["rank"] for c in i["culprits"]),
             said(COLLWATCH, "report", d.bundles()[i["id"]]))
            for d in (daemon if isinstance(daemon, list) else [daemon]) for i in d.documents(program)}


def told_of_ends(nodes, program):
    """As told(), for the job's post-mortems: of a job that ended before a page was due."""
    return {(d["class"], tuple(c["rank"] for c in d["culprits"]), said(COLLWATCH, "report", n.bundles()[d["id"]]))
            for n in nodes for d in n.postmortems(program) if d["severity"] == "failed"}


def ask_for_dumps(at):
    """Has each rank write its Flight Recorder, as a person would: through torch's pipe."""
    for rank in range(CROWD):
        try:
            fd = os.open(f"{at}/pipe_{rank}.pipe", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            continue  # it has no reader yet
        os.write(fd, b"1\n")
        os.close(fd)
