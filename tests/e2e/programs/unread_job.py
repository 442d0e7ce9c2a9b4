#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a job of `baseline record --complete`, which started this, and stops the reader as soon as it has found
all ranks; they begin behind it, so that it has read none of their steps:

    once       until a rank waits for it
    unasked    until the job ends: ranks get no request
    killed     and kills it, while a rank waits for it; FILE has the job's exit status then

usage: unread_job.py once|unasked|killed FILE RANKS PROGRAM…"""
import glob
import os
import platform
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
from waiting import wait_until  # pylint: disable=wrong-import-position

# Python itself sleeps by another one.
NANOSLEEP = {"x86_64": "35", "aarch64": "101"}[platform.machine()]


def waits(pid):
    """A thread of it sleeps as the agent does."""
    for path in glob.glob(f"/proc/{pid}/task/*/syscall"):
        try:
            with open(path, encoding="ascii") as f:
                if f.read().split()[0] == NANOSLEEP:
                    return True
        except OSError:
            pass
    return False


def main():
    how, result, ranks, *program = sys.argv[1:]
    reader, met = os.getppid(), os.environ["COLLWATCH_COMPLETE"]
    env = dict(os.environ)
    if how == "unasked":
        del env["COLLWATCH_COMPLETE"]
    begin = result + ".begin"
    job = subprocess.Popen([*program, "--until", begin], env=env)
    try:
        wait_until(lambda: len(os.listdir(met)) == int(ranks), "the reader knows all ranks", 60)
        os.kill(reader, signal.SIGSTOP)
        with open(begin, "w", encoding="ascii"):
            pass
        pids = [name.split("-")[0] for name in os.listdir(met)]
        if how == "unasked":
            job.wait(60)
        else:
            wait_until(lambda: any(waits(pid) for pid in pids), "a rank waits for its reader", 60)
    finally:
        os.kill(reader, signal.SIGKILL if how == "killed" else signal.SIGCONT)
    status = job.wait(60)
    with open(result + ".new", "w", encoding="ascii") as f:
        f.write(str(status))
    os.rename(result + ".new", result)
    sys.exit(status)


if __name__ == "__main__":
    main()
