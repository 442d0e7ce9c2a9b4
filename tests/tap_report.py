# SPDX-License-Identifier: Apache-2.0
"""Results of pytest as TAP, for meson and tools/lib/summary.py. What a test prints goes straight through
(pytest -s): a test that is killed for its timeout has told its seed."""


def install(config):
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
