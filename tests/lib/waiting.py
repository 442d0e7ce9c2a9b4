# SPDX-License-Identifier: Apache-2.0
"""Expectations on called programs and on events in others."""

import subprocess
import time

# A busy machine must not miss it; it costs nothing where the thing happens.
DEADLINE_S = 120


def expect(condition, what):
    __tracebackhide__ = True
    if not condition:
        raise AssertionError(what)


def wait_until(predicate, what, seconds=DEADLINE_S):
    """Polls: the awaited event happens in another process. what: words for it, or a function that
    returns them. Returns the predicate's result."""
    __tracebackhide__ = True
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = predicate()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")


def call(*command, check=True, timeout=DEADLINE_S, **more):
    """The command's output; `check`: it must end well."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=timeout, check=False, **more)
    expect(not check or done.returncode == 0, f"{command}: {done.stdout}")
    return done.stdout


def said(*command, timeout=DEADLINE_S):
    """The text on its standard output, however it ends."""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          timeout=timeout, check=False).stdout
