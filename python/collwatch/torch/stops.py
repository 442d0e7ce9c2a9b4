# SPDX-License-Identifier: Apache-2.0
"""Stops a program at a given place so that a user can inspect it: before a call of a module, or of an
operator in it.

    blocks.1.ffn.up                its first call
    blocks.1.ffn.up:3              its third one
    blocks.1.ffn.up:addmm:3        the third addmm in it
    :addmm:2@7                     the second addmm of step 7, in any module

Like a breakpoint, it stops before the call: the call's inputs exist, and so does the stack that leads to it.
Calls are counted from the beginning of the run; if a step is given, within that step, as reports number them.

Without a callback we stop the whole process (SIGSTOP), as COLLWATCH_STOP_AT does. A prompt would not do.
Ranks have no terminal, and a rank at a prompt lets its other threads run, including torch's watchdog, which
ends the job. A stopped process keeps its numbers, shows its stack to py-spy and gdb, and continues at
SIGCONT.
"""

import difflib
import fnmatch
import os
import re
import signal
import sys
import threading


class Stop:
    """The argument of the callback. inputs: (name, tensor) of the call's inputs."""

    def __init__(self, at, **fields):
        self.at = at
        self.step, self.phase, self.module, self.kind = (fields[k] for k in ("step", "phase", "module", "kind"))
        self.op, self.call, self.site, self.inputs = (fields[k] for k in ("op", "call", "site", "inputs"))

    def __str__(self):
        where = "%s (%s)" % (self.module, self.kind) if self.module else ""
        if self.op:
            where += (", " if where else "operator ") + self.op
        return "%s, call %d, step %d, %s%s" % (where, self.call, self.step, self.phase,
                                               ", from " + self.site[0] if self.site else "")


# A name, or a pattern of names.
_OPERATOR = re.compile(r"[A-Za-z_*?\[]")


def matches(name, patterns):
    return any(name == p or fnmatch.fnmatchcase(name, p) for p in patterns)


def _positive(text):
    return int(text) if text.isascii() and text.isdigit() else None


class _Breakpoint:
    def __init__(self, text):
        self.text, self.is_done, self._n = text, False, 0
        place, at, step = text.partition("@") if isinstance(text, str) else ("", "", "")
        parts = place.replace("aten::", "").split(":")
        self.call = 1
        if len(parts) > 1 and _positive(parts[-1]) is not None:
            self.call = _positive(parts.pop())
        self.module = parts[0]
        self.op = parts[1].split(".")[0] if len(parts) > 1 else ""
        self.step = _positive(step)
        if (len(parts) > 2 or not (self.module or self.op) or self.call < 1 or at and self.step is None or
                len(parts) > 1 and not _OPERATOR.match(self.op)):
            raise ValueError("stop_at: %r is not a place to stop: give MODULE[:OPERATOR][:CALL][@STEP], calls from 1 on, "
                             "such as \"blocks.1.up\" or \"blocks.1.up:addmm:3\"" % (text,))

    def is_of(self, module, op, is_denied):
        if bool(self.op) != bool(op) or (self.module and not matches(module, (self.module,))):
            return False
        return not op or op == self.op or not is_denied and matches(op, (self.op,))

    def comes(self, step):
        """Counts a call; returns its number if it is the one to stop at."""
        if self.is_done or self.step is not None and self.step != step:
            return None
        self._n += 1
        self.is_done = self._n >= self.call
        return self._n if self.is_done else None


class Stops:
    def __init__(self, given, on_stop):
        self._on_stop, self._lock = on_stop, threading.Lock()
        if isinstance(given, str) or given is not None and not hasattr(given, "__iter__"):
            given = [given]
        self._all = [_Breakpoint(each) for each in given or ()]
        if on_stop is not None and not callable(on_stop):
            raise ValueError("on_stop: %r cannot be called: give a function. It gets the place of the stop" % (on_stop,))
        if on_stop is not None and not self._all:
            raise ValueError("on_stop: without a stop, it is never called: give stop_at, too")

    def __bool__(self):
        return bool(self._all)

    def texts(self):
        return [b.text for b in self._all]

    def has_ops(self):
        return any(b.op for b in self._all)

    def wants_ops(self, step):
        return any(b.op and not b.is_done and b.step in (None, step) for b in self._all)

    def waiting(self):
        return [b.text for b in self._all if not b.is_done]

    def refuse_unknown(self, names):
        """Refuses modules that a model does not have."""
        names = list(names)
        for b in self._all:
            if b.module and not any(matches(n, (b.module,)) for n in names):
                near = difflib.get_close_matches(b.module, names, 1)
                raise ValueError("stop_at: the model has no module %r%s" % (
                    b.module, ": did you mean %r?" % near[0] if near else ": model.named_modules() has their names"))

    def at(self, step, module, op, is_denied=False):
        """(the user's text, number of the call) for each stop that is due here."""
        if all(b.is_done for b in self._all):
            return []
        with self._lock:
            found = [(b.text, b.comes(step)) for b in self._all if b.is_of(module, op, is_denied)]
        return [(text, n) for text, n in found if n is not None]

    def stop(self, stop, rank):
        who = "process %d" % os.getpid() if rank is None else "rank %d (process %d)" % (rank, os.getpid())
        if self._on_stop is not None:
            self._on_stop(stop)
            return
        if os.getpid() == 1:  # in its namespace the kernel never stops this process
            say("%s came to %s, but is the first process of its container, which cannot stop itself: start it "
                 "with an init (docker run --init), or give on_stop=" % (who, stop))
            return
        say("%s is stopped before %s. Look at it with \"py-spy dump --locals --pid %d\", let it go on with "
             "\"kill -CONT %d\"" % (who, stop, os.getpid(), os.getpid()))
        # To this thread: it stops before the call returns, and all other threads with it.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def say(text):
    try:
        sys.stderr.write("collwatch.torch: %s\n" % text)
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # standard error is closed
        pass
