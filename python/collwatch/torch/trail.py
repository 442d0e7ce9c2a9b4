# SPDX-License-Identifier: Apache-2.0
"""The way to a stop: the last lines of the user's code that each thread ran, without torch, Python's own
library and us.

From Python 3.12 on we use sys.monitoring. It works beside debuggers, for every thread, and does not call us
again for code that is not the user's. Before, we use sys.settrace, of which a thread has only one. If a
debugger or a coverage tool has it already, we leave it there and have no lines; a tool that comes later takes
it from us. Threads that run already have lines from 3.12 on only.
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
    # Installed packages lie inside the library's directory.
    return not filename.startswith(_LIBRARY) or any(each in filename for each in _INSTALLED)


class _Rings(dict):
    """The lines of each thread, by its id. Ended threads are removed."""

    def __missing__(self, ident):
        for each in set(self) - set(sys._current_frames()):
            self.pop(each, None)
        ring = self[ident] = collections.deque(maxlen=LINES)
        return ring


def _clean(text):
    """No program could read JSON with half a character."""
    return text.encode("utf-8", "replace").decode("utf-8")


class Trail:
    """Begins at once. why_not: the reason why it keeps no lines; None: it keeps lines."""

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
        free = [n for n in (4, 3) if m.get_tool(n) is None]  # the other ids are reserved for other kinds of tools
        if not free:
            self.why_not = "others have what sys.monitoring has for tools"
            return
        self._tool = free[0]
        m.use_tool_id(self._tool, "collwatch.torch")
        m.register_callback(self._tool, m.events.LINE, self._on_monitored)
        m.set_events(self._tool, m.events.LINE)
        m.restart_events()  # enables code that an earlier owner of the id had disabled

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
        while frame is not None:  # frames that run already
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
        """The lines, oldest first: of this thread, preceded by the main thread's if this is another one."""
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
