# SPDX-License-Identifier: Apache-2.0
"""The manual pages against the programs: each verb, option, key of the configuration and variable that there
is has its place in a page, and a page names none that there is not."""

import os
import re
import subprocess

import pytest
from built import COLLWATCH, COLLWATCH_LAB, COLLWATCHD, SOURCE

# Options that argp gives every program.
COMMON = {"--help", "--usage", "--version"}
OPTION = re.compile(r"(?<![a-zA-Z0-9-])--[a-z][a-z-]*")
SHARED = {"completion", "help", "version"}
# Of other programs that a page names, and its own verb's option in another one's text.
FOREIGN = {("run", "--list"): "of a program's loader"}
# In bold and with an underscore, and no key: variables of others.
NO_KEYS = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}
# Of the journal.
FIELDS = {"COLLWATCH_CLASS", "COLLWATCH_INCIDENT", "COLLWATCH_UID", "COLLWATCH_RANK"}


def printed(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, timeout=60).stdout


def page(name):
    path = f"{SOURCE}/docs/{name}.scd"
    with open(path if os.path.exists(path) else path + ".in", encoding="utf-8") as f:
        return f.read().replace("\\_", "_")


def part(text, title):
    """A section of a page."""
    found = re.search(rf"^# {title}\n(.*?)(?=^# |\Z)", text, re.M | re.S)
    assert found, f"no section {title}"
    return found[1]


def verbs_of(program):
    return re.findall(r"^  ([a-z][\w-]*)  ", printed(program, "--help"), re.M)


def options_of(*command):
    """As its help lists them, with the placeholder of each."""
    text = printed(*command, "--help")
    return {o for line in re.findall(r"^ +(?:-\w, )?(--.*)$", text, re.M)
            for o in OPTION.findall(line.split("  ")[0])} - COMMON


def told_of(text, verb):
    """A page's text on a verb: its lines of the synopsis, and its entries."""
    lines = [line for line in part(text, "SYNOPSIS").splitlines()
             if re.match(rf"\*[\w-]+\* \*{verb}\*", line)]
    entries = re.findall(rf"^(\*{verb}\b.*?)(?=^\*|\Z)", part(text, "VERBS"), re.M | re.S)
    return "\n".join(lines + entries)


PROGRAMS = [(COLLWATCH, "collwatch.1"), (COLLWATCH_LAB, "collwatch-lab.1")]


@pytest.mark.parametrize("program, name", PROGRAMS, ids=["collwatch", "collwatch-lab"])
def test_every_verb_is_in_the_page_and_no_other(program, name):
    text, verbs = page(name), verbs_of(program)
    assert len(verbs) > 2, verbs
    told = set()
    for title in re.findall(r"^(\*[^\t\n]*)$", part(text, "VERBS"), re.M):
        told |= {words.split()[0] for words in re.findall(r"\*([a-z][\w -]*)\*", title)}
    # That of the laboratory leaves out what both programs have.
    assert told == set(verbs) - (SHARED if program == COLLWATCH_LAB else set())


@pytest.mark.parametrize("program, name", PROGRAMS, ids=["collwatch", "collwatch-lab"])
def test_every_option_of_a_verb_is_in_the_page_and_no_other(program, name):
    text, wrong = page(name), []
    for verb in verbs_of(program):
        if verb in SHARED or program == COLLWATCH and verb in ("demo", "suite"):
            continue  # the laboratory's, in its page
        told, there = set(OPTION.findall(told_of(text, verb))), options_of(program, verb)
        wrong += [f"{verb} {o}: not in {name}" for o in sorted(there - told)]
        wrong += [f"{verb} {o}: only in {name}" for o in sorted(told - there) if (verb, o) not in FOREIGN]
    assert not wrong, "\n".join(wrong)


def test_every_option_of_the_daemon_is_in_its_page_and_no_other():
    text = page("collwatchd.8")
    told = set(OPTION.findall(part(text, "SYNOPSIS") + part(text, "OPTIONS")))
    assert told - COMMON == options_of(COLLWATCHD)


def keys():
    return set(re.findall(r"^ *#? ?([a-z]\w*) =", printed(COLLWATCHD, "--help-config"), re.M))


def test_every_key_is_in_the_page_of_the_configuration():
    there = keys()
    assert len(there) > 20, there
    made = printed(COLLWATCHD, "--scdoc-config").replace("\\_", "_")
    assert "\n@KEYS@\n" in page("collwatchd.conf.5")
    missing = {k for k in there if not re.search(rf"^\*{k}\*", made, re.M)}
    assert not missing, missing


PAGES = ["collwatch.1", "collwatch-lab.1", "collwatchd.8", "collwatchd.conf.5", "collwatchd-metrics.7"]


def test_pages_name_no_key_nor_variable_that_there_is_not():
    there, wrong = keys(), []
    metrics = set(re.findall(r"collwatch_\w+", printed(COLLWATCHD, "--scdoc-metrics").replace("\\_", "_")))
    variables = set(re.findall(r"COLLWATCH_[A-Z_]+", printed(COLLWATCH, "--scdoc-environment").replace("\\_", "_")))
    assert len(variables) > 10, variables
    for name in PAGES:
        text = page(name)
        wrong += [f"{name}: {v}" for v in set(re.findall(r"COLLWATCH_[A-Z_]+", text)) - variables - FIELDS]
        for word in set(re.findall(r"\*([a-z]+(?:_[a-z]+)+)\*", text)):
            if word not in there | metrics | NO_KEYS:
                wrong.append(f"{name}: {word}")
    assert not wrong, "\n".join(sorted(wrong))


def test_readme_and_page_have_the_table_of_supported_versions():
    lines = printed(COLLWATCH, "--version", "--verbose").split("Supported:\n")
    assert len(lines) == 2, "no table"
    rows = [line.split(None, 1) for line in lines[1].splitlines()]
    assert {row[0] for row in rows} == {"NCCL", "CUDA", "Python", "glibc", "kernel"}
    assert any("RCCL is not supported" in row[1] for row in rows)
    with open(f"{SOURCE}/README.md", encoding="utf-8") as f:
        readme = f.read()
    for what, versions in rows:
        assert f"| {what} | {versions} |\n" in readme, f"README: {what}"
        assert f"- {what}: {versions}\n" in page("collwatch.1"), f"collwatch(1): {what}"


def test_the_laboratorys_only_version_is_stated():
    with open(f"{SOURCE}/docs/lab/real-nccl.md", encoding="utf-8") as f:
        assert "The laboratory builds NCCL 2.29.7 only." in f.read()


def test_a_filter_that_ends_a_program_for_the_agents_thread_is_stated():
    with open(f"{SOURCE}/README.md", encoding="utf-8") as f:
        texts = {"README": f.read(), "collwatch(1)": page("collwatch.1")}
    for name, text in texts.items():
        about = re.search(r"[^\n]*TSYNC\b(?:[^\n]*\n){1,3}", text)
        assert about and "seccomp" in about[0] and "COLLWATCH_DISABLE=1" in about[0], name
