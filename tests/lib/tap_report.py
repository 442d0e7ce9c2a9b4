# SPDX-License-Identifier: Apache-2.0
"""Results of pytest as TAP, for meson and tools/lib/summary.py. A test's output goes straight
through (pytest -s), so a test killed for its timeout has printed its seed."""

import os
import sys
import threading


class WholeLines:
    """Tests that run beside each other print, too: no result may begin in the middle of their lines."""

    def __init__(self, out):
        self.out, self.lock, self.begun = out, threading.Lock(), threading.local()
        # Another thread may hold it while a test that is forked begins.
        os.register_at_fork(after_in_child=lambda: setattr(self, "lock", threading.Lock()))

    def write(self, text):
        *lines, rest = (getattr(self.begun, "text", "") + text).split("\n")
        self.begun.text = rest
        if lines:
            with self.lock:
                self.out.write("".join(line + "\n" for line in lines))
        return len(text)

    def flush(self):
        with self.lock:
            self.out.flush()

    def __getattr__(self, name):
        return getattr(self.out, name)


def install(config):
    sys.stdout = WholeLines(sys.stdout)
    terminal = config.pluginmanager.getplugin("terminalreporter")
    config.pluginmanager.unregister(terminal)
    config.pluginmanager.register(Tap(), "tap_report")


def name_of(nodeid):
    """As the test's sentence reads."""
    return nodeid.split("::")[-1].removeprefix("test_")


def as_comment(text):
    print("# " + text.replace("\n", "\n# "), flush=True)


class Tap:
    def __init__(self):
        self.number = 0
        self.reports = []  # of the test that runs: set up, call, tear down

    @staticmethod
    def pytest_collection_finish(session):
        print(f"1..{len(session.items)}", flush=True)

    @staticmethod
    def pytest_collectreport(report):
        if report.failed:
            as_comment(report.longreprtext)

    def pytest_runtest_logreport(self, report):
        self.reports.append(report)

    def pytest_runtest_logfinish(self, nodeid):
        reports, self.reports = self.reports, []
        self.number += 1
        line = f"{self.number} - {name_of(nodeid)}"
        failed = [r for r in reports if r.failed]
        skipped = [r for r in reports if r.skipped]
        for report in failed:
            as_comment(report.longreprtext)
        if failed or not reports:
            print("not ok " + line, flush=True)
        elif skipped:
            reason = skipped[0].longrepr[2].removeprefix("Skipped: ").replace("\n", " ")
            print(f"ok {line} # SKIP {reason}", flush=True)
        else:
            print("ok " + line, flush=True)
