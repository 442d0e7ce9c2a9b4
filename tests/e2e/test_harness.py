# SPDX-License-Identifier: Apache-2.0
"""The results that meson and people see of tests that fail, are skipped, run beside each other, or
leave something behind: tests/conftest.py, looked at from outside."""

import json
import os
import re
import subprocess
import sys
import tempfile

import pytest
from built import BUILD, SOURCE
from waiting import expect

HEAD = "import os, subprocess, tempfile, threading\nimport pytest\n"


@pytest.fixture(name="told")
def outcome_of_a_file():
    """Runs a file of tests; (exit status, output)."""
    def run(text, *options):
        path = f"{at}/test_it.py"
        with open(path, "w", encoding="ascii") as f:
            f.write(HEAD + text)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-c", SOURCE + "/pytest.ini", "-p", "conftest", "-p",
             "no:cacheprovider", "-s", "--build", BUILD, *options, path],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False,
            env=dict(os.environ, PYTHONPATH=f"{SOURCE}/tests:{SOURCE}/tests/lib", E2E_GRACE="0"))
        return done.returncode, done.stdout
    with tempfile.TemporaryDirectory(prefix="cw-") as at:
        yield run


RESULTS = """
def test_is_right():
    print("# seed 7")

def test_is_wrong():
    assert not "three ranks"

def test_cannot_be():
    pytest.skip("no GPU")

@pytest.mark.slow
def test_takes_long():
    pass

@pytest.fixture
def thing():
    yield
    raise ValueError("not given back")

def test_gives_nothing_back(thing):
    pass

@pytest.mark.forked
def test_is_killed():
    os.kill(os.getpid(), 9)
"""


def test_results_are_told_as_meson_reads_them(told):
    status, said = told(RESULTS, "--tap")
    assert status == 1, said
    lines = said.splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "1..6", "ok 1 - is_right", "not ok 2 - is_wrong", "ok 3 - cannot_be # SKIP no GPU",
        "ok 4 - takes_long # SKIP takes minutes: --slow", "not ok 5 - gives_nothing_back",
        "not ok 6 - is_killed"], said
    assert lines.index("# seed 7") < lines.index("ok 1 - is_right"), "at once"
    before = lines[lines.index("ok 1 - is_right"):lines.index("not ok 2 - is_wrong")]
    assert any("three ranks" in line for line in before), before
    assert "not given back" in said and "signal 9" in said, said


def test_a_file_that_cannot_be_read_is_no_success(told):
    status, said = told("import no_such_module\n", "--tap")
    assert status not in (0, 5) and "no_such_module" in said, said


def test_what_is_left_behind_fails_the_run_and_is_named(told):
    status, said = told("""
def test_is_right():
    subprocess.Popen(["sleep", "987"])
    print("dir", tempfile.mkdtemp())
""", "--tap")
    assert status == 1 and "ok 1 - is_right\n" in said, said
    process = re.search(r"# process (\d+): sleep 987", said)
    assert process and not os.path.exists("/proc/" + process[1] + "/exe"), said
    directory = re.search("dir (.*)", said)[1]
    assert f"# {directory}\n" in said and not os.path.exists(directory), said


@pytest.mark.root
@pytest.mark.namespaces
def test_a_network_that_is_left_behind_is_one(told):
    status, said = told("""
def test_is_right():
    subprocess.run(["ip", "netns", "add", f"cw{os.getpid()}left"], check=True)
""", "--tap")
    assert status == 1 and re.search(r"# network namespace cw\d+left\n", said), said


def test_some_run_beside_each_other_and_each_has_its_own_result(told):
    status, said = told("""
together = threading.Barrier(2, timeout=120)
pytestmark = pytest.mark.at_once

def test_one():
    together.wait()

@pytest.mark.parametrize("name", ["x", "y"])
def test_other(name):
    if name == "x":
        together.wait()
    assert name == "x"

def test_not_chosen():
    together.wait()
""", "--tap", "-k", "not not_chosen")
    assert status == 1, said
    assert [line for line in said.splitlines() if "ok" in line.split()] == [
        "ok 1 - one", "ok 2 - other[x]", "not ok 3 - other[y]"], said


def test_a_directory_without_a_build_is_refused(told):
    status, said = told("def test_it(): pass\n", "--build", "/nonexistent")
    assert status == 4 and "/nonexistent is no build directory with tests" in said, said


CHATTER = """
import sys
sys.setswitchinterval(1e-6)

@pytest.mark.at_once(workers=8)
@pytest.mark.parametrize("n", range(8))
def test_talks(n):
    for i in range(300):
        print("# a line of", n, "and no other", flush=True)
"""


def test_lines_of_tests_that_run_beside_each_other_stay_whole(told):
    status, said = told(CHATTER, "--tap")
    assert status == 0, said
    odd = [line for line in said.splitlines()
           if not re.fullmatch(r"1\.\.8|# a line of [0-7] and no other|ok \d - talks\[\d\]", line)]
    assert not odd, odd[:3]
    assert said.count("# a line of") == 8 * 300, said[-2000:]


# ---- README's promises to a new user ----

def test_ci_begins_with_the_commands_of_readme():
    with open(f"{SOURCE}/.ci/run", encoding="utf-8") as f:
        text = f.read()
    first = re.findall(r'^(?:check|suite) "[^"]*" (.*)$', text, re.MULTILINE)[:2]
    expect(first == ["tools/demo --yes", "tools/test --yes"], f"CI begins with {first}")
    with open(f"{SOURCE}/README.md", encoding="utf-8") as f:
        readme = f.read()
    expect("\ntools/demo " in readme and "`tools/test`" in readme, "README names other commands")


def test_tools_test_names_what_it_leaves_out():
    suites = ["unit", "smoke", "quick"]
    with open(f"{SOURCE}/tools/test", encoding="utf-8") as f:
        expect(f'first_suites="{" ".join(suites)}"' in f.read(), "tools/test runs other suites")
    with open(f"{BUILD}/meson-info/intro-tests.json", encoding="utf-8") as f:
        tests = {t["name"]: {s.split(":")[-1] for s in t["suite"]} for t in json.load(f)}
    said = subprocess.run([sys.executable, f"{SOURCE}/tools/lib/omitted.py", BUILD, *suites], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    wanted = {name for name, its in tests.items() if not its & set(suites)}
    words = set(re.findall(r"[\w-]+", said))
    expect(wanted <= words, f"not named: {sorted(wanted - words)}")
    expect('"tools/test --all" runs them' in said, said)
    e2e = [name for name, its in tests.items() if its & {"smoke", "quick"}]
    expect(len(e2e) >= 12, f"only {e2e} run")


def test_what_an_earlier_run_lacks_is_the_rest():
    with tempfile.TemporaryDirectory() as directory:
        with open(f"{BUILD}/meson-info/intro-tests.json", encoding="utf-8") as f:
            names = [t["name"] for t in json.load(f)]
        with open(f"{directory}/log", "w", encoding="utf-8") as f:
            f.writelines(json.dumps({"name": "collwatch:unit / " + name}) + "\n" for name in names[2:])
        said = subprocess.run([sys.executable, f"{SOURCE}/tools/lib/omitted.py", "--names", BUILD,
                               f"{directory}/log"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    expect(said == names[:2], said)


def test_a_test_that_only_packaging_needs_may_be_missing():
    with tempfile.TemporaryDirectory() as directory:
        with open(f"{directory}/page.md", "w", encoding="utf-8") as f:
            f.write("| what | tests |\n|---|---|\n| it | `text`, `spank` |\n")
        os.makedirs(f"{directory}/tests/fuzz")
        command = [sys.executable, f"{SOURCE}/tests/docs/named_tests.py", "--root", directory, "--build",
                   directory]
        with open(f"{directory}/introspect", "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\necho '[{\"name\":\"text\"}]'\n")
        os.chmod(f"{directory}/introspect", 0o755)
        env = {**os.environ, "MESONINTROSPECT": f"{directory}/introspect"}

        def run(*more):
            return subprocess.run([*command, *more, "page.md"], env=env, check=False, stdout=subprocess.PIPE, text=True)
        alone, allowed = run(), run("--not-built", "spank: Slurm's header")
    expect(alone.returncode == 1 and "no test spank" in alone.stdout, alone)
    expect(allowed.returncode == 0 and "spank" in allowed.stdout and "Slurm's header" in allowed.stdout, allowed)
