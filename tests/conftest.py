# SPDX-License-Identifier: Apache-2.0
"""The common parts of all tests in Python under pytest: the place of the build, options, markers,
results for meson (TAP), and the check that tests leave nothing behind. Fixtures:
tests/lib/given.py.

ninja -C build or tools/test makes the build, not this file.
"""

import concurrent.futures
import os
import random
import shutil
import sys
import tempfile

import pytest

import leftovers
import machine
import tap_report

HERE = os.path.dirname(os.path.abspath(__file__))

# Programs with a runner of their own: meson and tools/test start them.
collect_ignore = ["e2e/machines/test_booted.py", "compare", "docs", "gpu", "real", "rooms", "suite", "unit"]

# Of single files: name, default, help.
OPTIONS = [
    ("--down", 3, "operations: for so many seconds the receiver takes no alerts"),
    ("--hold", 15, "held: for so many seconds a daemon is stopped"),
    ("--kills", 1, "cluster_faults: so many leaders are killed"),
    ("--one-alert-kills", 4, "one_alert: daemons and leaders that are killed, together"),
    ("--partition", 4, "cluster_faults: for so many seconds a node is cut off"),
    ("--seconds", 3, "hostile: for so many seconds users attack before the hang"),
    ("--steps", 500, "restarts: steps of a job"),
    ("--strikes", 10, "restarts: so often something happens to the daemon in them"),
]


def pytest_addoption(parser):
    group = parser.getgroup("collwatch")
    group.addoption("--build", default=os.path.dirname(HERE) + "/build", metavar="DIRECTORY",
                    help="build directory whose programs are tested (default: build)")
    group.addoption("--tap", action="store_true", help="print results as meson reads them, with -s")
    group.addoption("--slow", action="store_true", help="run what takes minutes, too")
    for name, default, text in OPTIONS:
        group.addoption(name, type=type(default), default=default, metavar="N",
                        help=f"{text} (default: {default})")


@pytest.hookimpl(trylast=True)  # the terminal's reporter is there
def pytest_configure(config):
    build = os.path.abspath(config.getoption("--build"))
    if not os.path.exists(build + "/tests/e2e/built.py"):
        raise pytest.UsageError(f"{build} is no build directory with tests: meson setup {build}")
    sys.path[:0] = [build + "/tests/e2e", build + "/tests/attack"]
    config.pluginmanager.import_plugin("given")
    os.environ.setdefault("E2E_SEED", str(random.SystemRandom().randrange(1 << 32)))
    config.stash[leftovers.KEY] = leftovers.Watch()
    # Short: the names of UNIX sockets have 107 bytes. Open: jobs of other users go through it.
    tempfile.tempdir = tempfile.mkdtemp(prefix="cw-", dir="/tmp")
    os.chmod(tempfile.tempdir, 0o711)
    if config.getoption("--tap"):
        tap_report.install(config)


def pytest_report_header(config):
    return [f"build: {os.path.abspath(config.getoption('--build'))}",
            f"seed: E2E_SEED={os.environ['E2E_SEED']} repeats what is drawn"]


def pytest_runtest_setup(item):
    if item.get_closest_marker("slow") and not item.config.getoption("--slow"):
        pytest.skip("takes minutes: --slow")
    for need in machine.NEEDS:
        if item.get_closest_marker(need) and (lacks := machine.lacks(need)):
            pytest.skip(lacks)


# ---- tests that run beside each other ----

AT_ONCE = pytest.StashKey()


def start_all(module, session):
    """Of the chosen tests, with the marker's limit, in the order of their promises:
    longest first."""
    items = [i for i in session.items if i.module is module and i.get_closest_marker("at_once")
             and not i.get_closest_marker("skip")]
    mark = items[0].get_closest_marker("at_once")
    pool = concurrent.futures.ThreadPoolExecutor(mark.kwargs.get("workers", len(items)))
    if "key" in mark.kwargs:
        items.sort(key=lambda item: mark.kwargs["key"](item.function))
    return {item.nodeid: pool.submit(item.function, **getattr(item, "callspec", NO_PARAMS).params)
            for item in items}


class NO_PARAMS:  # pylint: disable=invalid-name
    params = {}


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """They begin with the first of them, and each waits for its own result: no fixtures."""
    if not pyfuncitem.get_closest_marker("at_once"):
        return None
    module = pyfuncitem.getparent(pytest.Module)
    if AT_ONCE not in module.stash:
        module.stash[AT_ONCE] = start_all(pyfuncitem.module, pyfuncitem.session)
    module.stash[AT_ONCE][pyfuncitem.nodeid].result()
    return True


# ---- nothing is left behind ----

@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    watch = session.config.stash.get(leftovers.KEY, None)
    shutil.rmtree(f"{tempfile.tempdir}/open", ignore_errors=True)  # tests/lib/open_copy.py
    left = watch.left(tempfile.tempdir) if watch else []
    if left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print("\n# left behind by these tests:\n" + "".join(f"# {what}\n" for what in left), flush=True)


def pytest_unconfigure(config):
    if config.stash.get(leftovers.KEY, None):
        shutil.rmtree(tempfile.tempdir, ignore_errors=True)
        tempfile.tempdir = None
