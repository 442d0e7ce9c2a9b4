# SPDX-License-Identifier: Apache-2.0
"""The exit status of every verb: one table, which help, manual page, README and design have; and help itself."""

import re
import subprocess
import tempfile

import pytest
from built import COLLWATCH, COLLWATCH_LAB, SOURCE

OK, USAGE, HANG, UNKNOWN, NOT_EXECUTABLE, NOT_FOUND = 0, 1, 2, 3, 126, 127
DUMPS = f"{SOURCE}/tests/data/flight_recorder"


def call(*words):
    return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=60, check=False)


def verbs_of(program):
    verbs = re.findall(r"^  ([a-z][\w-]*)  ", call(program, "--help").stdout, re.M)
    assert {"completion", "help", "version"} <= set(verbs), verbs
    return [v for v in verbs if v not in ("help", "version")]


def each_verb():
    return [(p, v) for p in (COLLWATCH, COLLWATCH_LAB) for v in verbs_of(p)]


def test_a_usage_error_of_any_verb_is_1():
    for program, verb in each_verb():
        done = call(program, verb, "--no-such-option")
        assert (done.returncode, done.stdout) == (USAGE, "") and done.stderr, (verb, done)
    for words in ([], ["no-such-verb"], ["help", "no-such-verb"], ["run"], ["baseline", "check"], ["completion", "tcsh"]):
        assert call(COLLWATCH, *words).returncode == USAGE, words


def test_help_is_asked_for_in_each_way():
    for program in COLLWATCH, COLLWATCH_LAB:
        wanted = call(program, "--help")
        assert wanted.returncode == OK and "Usage:" in wanted.stdout, wanted
        for words in (["-h"], ["help"], ["-?"], ["help", "help"]):
            done = call(program, *words)
            assert (done.returncode, done.stdout) == (OK, wanted.stdout), (words, done)
    for program, verb in each_verb():
        wanted = call(program, verb, "--help")
        assert wanted.returncode == OK and "Usage:" in wanted.stdout, wanted
        for words in ([verb, "-h"], ["help", verb]):
            done = call(program, *words)
            assert (done.returncode, done.stdout) == (OK, wanted.stdout), (words, done)


def test_the_version_is_a_verb_too():
    for program in COLLWATCH, COLLWATCH_LAB:
        wanted = call(program, "--version").stdout
        assert wanted and call(program, "version").stdout == wanted == call(program, "-V").stdout


@pytest.mark.parametrize("options", [[], ["--tag-output"]])
def test_run_ends_as_the_program_or_says_why_there_is_none(options):
    run = lambda *program: call(COLLWATCH, "run", *options, "--", *program).returncode
    assert run("/bin/sh", "-c", "exit 42") == 42
    assert run("/bin/sh", "-c", "kill -9 $$") == -9
    assert run("/no/such/program") == NOT_FOUND
    assert run("no-such-program-anywhere") == NOT_FOUND
    assert run(SOURCE + "/README.md") == NOT_EXECUTABLE
    assert run(SOURCE) == NOT_EXECUTABLE


def test_what_was_found_is_the_exit_status():
    with tempfile.TemporaryDirectory(prefix="cw-") as empty:
        check_findings(empty)


def check_findings(empty):
    nowhere = ["--control", empty + "/none.sock"]
    for words, wanted in ((["analyze", "--flight-recorder", DUMPS + "/all_well"], OK),
                          (["analyze", "--flight-recorder", DUMPS + "/never_entered"], HANG),
                          (["analyze", "--flight-recorder", empty], UNKNOWN),
                          (["baseline", "check", empty, empty], USAGE),
                          *(([verb, *nowhere], USAGE) for verb in ("status", "top", "report", "stacks")),
                          (["mute", "a-job", *nowhere], USAGE),
                          (["doctor", *nowhere], HANG),
                          (["record", "show", "/no/such/file"], USAGE)):
        assert call(COLLWATCH, *words).returncode == wanted, words


def table_of_help(program=COLLWATCH):
    text = call(program, "--help").stdout.split("Exit status:\n")[1]
    return dict(re.findall(r"^  (\d+) +(.+)$", text, re.M))


def test_one_table_is_in_help_manual_readme_and_design():
    table = table_of_help()
    assert [int(s) for s in table] == [OK, USAGE, HANG, UNKNOWN, NOT_EXECUTABLE, NOT_FOUND], table
    made = call(COLLWATCH, "--scdoc-exits").stdout
    assert dict(re.findall(r"^(\d+)\n\t(.+)$", made, re.M)) == table
    with open(f"{SOURCE}/docs/design/daemon.md", encoding="utf-8") as f:
        assert dict(re.findall(r"^\| (\d+) \| (.+) \|$", f.read(), re.M)) == table
    with open(f"{SOURCE}/docs/collwatch.1.scd", encoding="utf-8") as f:
        assert "# EXIT STATUS\n\n@EXITS@\n" in f.read()
    with open(f"{SOURCE}/docs/collwatch-lab.1.scd", encoding="utf-8") as f:
        of_lab = dict(re.findall(r"^(\d+)\n\t(.+)$", f.read(), re.M))
    assert of_lab == table_of_help(COLLWATCH_LAB) == {s: m for s, m in table.items() if not m.startswith("run: ")}, of_lab
    with open(f"{SOURCE}/README.md", encoding="utf-8") as f:
        readme = " ".join(f.read().split())
    assert "Exit status of all verbs: " + "; ".join(f"{s} {m}" for s, m in table.items()) + "." in readme


def test_a_verb_promises_no_other_status_than_the_tables():
    known = {int(s) for s in table_of_help()}
    for program, verb in each_verb():
        text = " ".join(call(program, verb, "--help").stdout.split())
        promised = {int(n) for part in re.findall(r"Exit status[^:]*:(.*?)(?:\.|$)", text)
                    for n in re.findall(r"(?:^|[,;:] )(\d+)\b", part)}
        assert promised <= known, (verb, promised)
