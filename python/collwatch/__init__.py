# SPDX-License-Identifier: Apache-2.0
"""The command's answers as Python objects, and the agent's interface for a program.

    import collwatch
    collwatch.status()["jobs"]                     # docs/schemas.md: collwatch.status/1
    collwatch.incidents(since="2h", job="…")       # collwatch.incidents/1
    collwatch.mark_step(step)                      # in a training loop, on each rank
    collwatch.name_comm(address, "tp")             # what reports call an ncclComm_t
"""

import ctypes
import importlib.metadata
import json
import os
import shutil
import subprocess

__all__ = ["Error", "command", "has_agent", "include", "incidents", "mark_step", "name_comm", "status",
           "set_job_timeout"]


def __getattr__(name):
    if name == "__version__":
        try:
            return importlib.metadata.version("collwatch")
        except importlib.metadata.PackageNotFoundError:  # the packages of distributions have no metadata
            said = subprocess.run([command(), "--version"], stdout=subprocess.PIPE, check=True, text=True).stdout
            return said.split()[1]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Error(RuntimeError):
    """The command's error message."""


def command():
    """The path of the command: from this installation, else from $PATH."""
    ours = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cli", "collwatch")
    path = ours if os.access(ours, os.X_OK) else shutil.which("collwatch")
    if not path:
        raise Error("collwatch is not installed")
    return path


def include():
    """The directory of collwatch.h, for a compiler's -I: C and C++ programs mark their steps with it."""
    ours = os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")
    return ours if os.path.isdir(ours) else "/usr/include"


def _ask(*arguments):
    done = subprocess.run([command(), *arguments, "--json"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if not done.stdout:  # some exit statuses report the state of jobs
        raise Error(done.stderr.decode(errors="replace").strip() or f"collwatch ended with status {done.returncode}")
    return json.loads(done.stdout)


def _options(**given):
    return [f"--{name}={value}" for name, value in given.items() if value is not None]


def status(control=None):
    """The jobs that this node's daemon watches. `control`: its socket."""
    return _ask("status", *_options(control=control))


def incidents(since=None, job=None, node=None, control=None, **more):
    """The incidents of all reachable nodes. To pass `class=…` write **{"class": …}."""
    return _ask("report", *_options(since=since, job=job, node=node, control=control, **more))


_AGENT = {}


def _agent(name, result, *arguments):
    """A function of the agent, or None: this process has no agent, or an older one."""
    if name not in _AGENT:
        function = getattr(ctypes.PyDLL(None), name, None)
        if function:
            function.argtypes, function.restype = arguments, result
        _AGENT[name] = function
    return _AGENT[name]


def mark_step(step):
    """Tells the agent the current step of this rank. Without an agent it does nothing and returns False."""
    mark = _agent("collwatch_mark_step", None, ctypes.c_int64)
    if mark:
        mark(step)
    return bool(mark)


def has_agent():
    """Whether the agent of this process accepts names of communicators."""
    return bool(_agent("collwatch_name_comm", ctypes.c_bool, ctypes.c_void_p, ctypes.c_char_p))


def name_comm(comm, name):
    """Names a communicator for reports; `comm` is its address (an ncclComm_t). A name that NCCL was given
    stays. False if the agent does not record this communicator."""
    take = _agent("collwatch_name_comm", ctypes.c_bool, ctypes.c_void_p, ctypes.c_char_p)
    return bool(take and comm and take(comm, name.encode("utf-8", "replace").replace(b"\0", b"?")))


def set_job_timeout(nanoseconds):
    """Tells the agent how long the job's own watchdog lets a call take; COLLWATCH_JOB_TIMEOUT stays in force."""
    take = _agent("collwatch_set_job_timeout", None, ctypes.c_int64)
    if take:
        take(min(nanoseconds, 2**63 - 1))
    return bool(take)
