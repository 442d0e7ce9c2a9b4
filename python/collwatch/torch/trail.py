# SPDX-License-Identifier: Apache-2.0
"""
The way to a stop: the last lines of the user's code that each thread ran. Not torch's, Python's own
library's, or ours.

From Python 3.12 on by sys.monitoring, which is beside every debugger and every thread's, and which is not
asked again for code that is not the user's. Before, by sys.settrace, of which a thread has one: where a
debugger or a measurement of coverage has it, it keeps it, and there are no lines; one that comes later
takes it. Of threads that run already there are lines from 3.12 on only.
"""

import collections
import linecache
import os
import sys
import sysconfig
import threading
import weakref

import torch

LINES = 200
TEXT_MAX = 160
_OTHERS = tuple(os.path.join(path, "") for path in (
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), os.path.dirname(torch.__file__)))
_LIBRARY = tuple(os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib"))
_INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
get_ident = threading.get_ident


def is_users(filename):
    if filename.startswith("<") or filename.startswith(_OTHERS):
        return False
    # Installed packages lie inside of the library.
    return not filename.startswith(_LIBRARY) or any(each in filename for each in _INSTALLED)


class _Rings(dict):
    """Of each thread, by its number. Those that have ended leave."""

    def __missing__(self, ident):
        for each in set(self) - set(sys._current_frames()):
            self.pop(each, None)
        ring = self[ident] = collections.deque(maxlen=LINES)
        return ring


def _clean(text):
    """JSON of half a character is read by nobody."""
    return text.encode("utf-8", "replace").decode("utf-8")


class Trail:
    """Begins at once. why_not: nothing is kept, and why; None: it is."""

    def __init__(self):
        self._rings, self._users, self._tool = _Rings(), {}, None
        self._is_over, self.why_not = False, None
        if hasattr(sys, "monitoring"):
            self._monitor()
        else:
            self._trace()
        me = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: me() and me().close())  # a worker that loads data has no stops

    def _is_users(self, filename):
        known = self._users.get(filename)
        if known is None:
            known = self._users[filename] = is_users(filename)
        return known

    def _monitor(self):
        m = sys.monitoring
        free = [n for n in (4, 3) if m.get_tool(n) is None]  # the others have names of other trades
        if not free:
            self.why_not = "others have what sys.monitoring has for tools"
            return
        self._tool = free[0]
        m.use_tool_id(self._tool, "collwatch.torch")
        m.register_callback(self._tool, m.events.LINE, self._on_monitored)
        m.set_events(self._tool, m.events.LINE)
        m.restart_events()  # code that was left out by whoever had the place before

    def _on_monitored(self, code, line):
        if not self._is_users(code.co_filename):
            return sys.monitoring.DISABLE
        self._rings[get_ident()].append((code, line))
        return None

    def _trace(self):
        if sys.gettrace() is not None or threading._trace_hook is not None:
            self.why_not = "a debugger or a measurement of coverage traces this program, and keeps that"
            return
        frame = sys._getframe(1)
        while frame is not None:  # those that run already
            if self._is_users(frame.f_code.co_filename):
                frame.f_trace = self._on_line
            frame = frame.f_back
        threading.settrace(self._on_call)
        sys.settrace(self._on_call)

    def _on_call(self, frame, event, _):
        if self._is_over:
            if sys.gettrace() == self._on_call:
                sys.settrace(None)
            return None
        return self._on_line if self._is_users(frame.f_code.co_filename) else None

    def _on_line(self, frame, event, _):
        if event == "line" and not self._is_over:
            self._rings[get_ident()].append((frame.f_code, frame.f_lineno))
        return self._on_line

    def take(self):
        """The oldest first: of this thread; in front of it the main thread's, where this is another."""
        idents, names = [threading.main_thread().ident, get_ident()], {t.ident: t.name for t in threading.enumerate()}
        found = []
        for ident in dict.fromkeys(idents):
            for code, line in list(self._rings.get(ident, ())):
                found.append({"thread": _clean(names.get(ident, "thread %d" % ident)) or "?",
                              "site": _clean("%s:%d in %s" % (code.co_filename, line, code.co_name)),
                              "text": _clean(linecache.getline(code.co_filename, line).strip()[:TEXT_MAX])})
        return found

    def close(self):
        if self._is_over:
            return
        self._is_over = True
        if self._tool is not None:
            sys.monitoring.set_events(self._tool, 0)
            sys.monitoring.free_tool_id(self._tool)
        elif self.why_not is None:
            if sys.gettrace() == self._on_call:
                sys.settrace(None)
            if threading._trace_hook == self._on_call:
                threading.settrace(None)
