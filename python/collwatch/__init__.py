# SPDX-License-Identifier: Apache-2.0
"""What the command says, as Python's own objects, and the agent's marker of steps.

    import collwatch
    collwatch.status()["jobs"]                     # docs/schemas.md: collwatch.status/1
    collwatch.incidents(since="2h", job="…")       # collwatch.incidents/1
    collwatch.mark_step(step)                      # in a training loop, on each rank
"""

import ctypes
import importlib.metadata
import json
import os
import shutil
import subprocess

__all__ = ["Error", "command", "include", "incidents", "mark_step", "status"]


def __getattr__(name):
    if name == "__version__":
        return importlib.metadata.version("collwatch")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Error(RuntimeError):
    """The command's own words."""


def command():
    """The path of the command: of this installation, else of $PATH."""
    ours = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cli", "collwatch")
    path = ours if os.access(ours, os.X_OK) else shutil.which("collwatch")
    if not path:
        raise Error("collwatch is not installed")
    return path


def include():
    """The directory of collwatch.h, for a compiler's -I: marks steps in C and C++."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")


def _ask(*arguments):
    done = subprocess.run([command(), *arguments, "--json"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if not done.stdout:  # some exit statuses tell how jobs are
        raise Error(done.stderr.decode(errors="replace").strip() or f"it ended with {done.returncode}")
    return json.loads(done.stdout)


def _options(**given):
    return [f"--{name}={value}" for name, value in given.items() if value is not None]


def status(control=None):
    """The jobs that this node's daemon watches. `control`: its socket."""
    return _ask("status", *_options(control=control))


def incidents(since=None, job=None, node=None, control=None, **more):
    """The incidents of all nodes that can be reached; `class=…` goes by **{"class": …}."""
    return _ask("report", *_options(since=since, job=job, node=node, control=control, **more))


_MARK = None


def mark_step(step):
    """Tells the agent in which step this rank is; nothing, and False, without an agent."""
    global _MARK  # pylint: disable=global-statement
    if _MARK is None:
        _MARK = getattr(ctypes.PyDLL(None), "collwatch_mark_step", False)
        if _MARK:
            _MARK.argtypes, _MARK.restype = [ctypes.c_int64], None
    if _MARK:
        _MARK(step)
    return bool(_MARK)
