# SPDX-License-Identifier: Apache-2.0
"""Completions of bash, zsh and fish for the words of collwatch, by the scripts that it prints for
them."""

import json
import os
import pty
import re
import select
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import pytest
from agent_lib import envelope, field
from built import COLLWATCH, COLLWATCH_LAB
from daemon import Daemon

# By their names, as people type them.
PATH = os.path.dirname(COLLWATCH) + ":" + os.path.dirname(COLLWATCH_LAB) + ":" + os.environ["PATH"]
ENV = {k: v for k, v in os.environ.items() if not k.startswith("COLLWATCH_")}
ENV.update(PATH=PATH, LC_ALL="C.UTF-8", HOME="/nonexistent", TERM="dumb")


def said(*command, check=True, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120, env=ENV, check=False, **options)
    assert not check or done.returncode == 0, done
    return done.stdout


def needs(shell):
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")


def in_bash(*words, command="collwatch", cwd=None):
    """By the function that complete -F names, as bash calls it."""
    return set(said("bash", "--norc", "-c", """
        eval "$("$0" completion bash)"; command=$1; shift
        COMP_WORDS=("$command" "$@"); COMP_CWORD=$#
        "$(complete -p "$command" | sed 's/.*-F \\([^ ]*\\).*/\\1/')"
        printf '%s\\n' "${COMPREPLY[@]}" """, command, command, *words, cwd=cwd).split())


def in_fish(typed, cwd=None):
    return {line.split("\t")[0] for line in said(
        "fish", "--no-config", "-c", "collwatch completion fish | source; complete -C $argv[1]", typed,
        cwd=cwd).splitlines()}


WITHOUT_OPTIONS = {"help", "version"}


def help_of(*verb):
    """Its long options, as --help has them."""
    return set(re.findall(r"(?:^ +|, )(--[a-z][a-z-]*)", said(*verb, "--help"), re.MULTILINE))


def verbs_of(command):
    return re.findall(r"^  ([a-z-]+) +\S", said(command, "--help"), re.MULTILINE)


def test_bash_offers_every_option_of_every_verb():
    needs("bash")
    for command in "collwatch", "collwatch-lab":
        verbs = verbs_of(command)
        assert len(verbs) >= 3 and in_bash("", command=command) == set(verbs), verbs
        assert in_bash("help", "", command=command) == set(verbs)
        for verb in set(verbs) - WITHOUT_OPTIONS:
            wanted = help_of(command, verb)
            assert {"--help", "--usage"} < wanted, wanted
            assert in_bash(verb, "--", command=command) == wanted, verb
            one = max(wanted)
            assert in_bash(verb, one, command=command) == {w for w in wanted if w.startswith(one)}, one


def test_fish_offers_every_option_of_every_verb():
    needs("fish")
    verbs = verbs_of("collwatch")
    assert in_fish("collwatch ") == set(verbs), in_fish("collwatch ")
    for verb in set(verbs) - WITHOUT_OPTIONS:
        assert in_fish(f"collwatch {verb} --") == help_of("collwatch", verb), verb


class Zsh:
    """An interactive one at a terminal."""

    def __enter__(self):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**ENV, "PS1": "", "COLUMNS": "300", "LINES": "100"})
        self.typed('PS1=; unsetopt zle_bracketed_paste; stty cols 300 rows 200; '
                   'autoload -U compinit; compinit -u -D; source <(collwatch completion zsh); '
                   'LISTMAX=1000; echo is""ready\n')
        self.until("isready")
        return self

    def __exit__(self, *_):
        os.close(self.fd)
        os.waitpid(self.pid, 0)

    def typed(self, text):
        os.write(self.fd, text.encode())

    def read_until(self, has_come, wanted):
        seen, end = "", time.monotonic() + 120
        while not has_come(seen):
            assert time.monotonic() < end, f"no {wanted!r}: {seen!r}"
            if select.select([self.fd], [], [], 1)[0]:
                seen += os.read(self.fd, 65536).decode(errors="replace")
        return seen

    def until(self, text):
        return self.read_until(lambda seen: text in seen, text)

    def until_options(self, options):
        """Until all of them have come, each as a word of its own."""
        assert options, "nothing to wait for"
        return self.read_until(lambda seen: options <= words_that_are_whole(seen), options)


def words_that_are_whole(seen):
    """Long options in what a terminal shows; the last one may go on."""
    return set(re.findall(r"(?<![\w-])(--[\w-]+)(?=[^\w-])", re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", seen)))


def test_zsh_completes_verbs_options_and_values():
    needs("zsh")
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp, Zsh() as zsh:
        os.mkdir(tmp + "/some-bundle")
        for typed, becomes in [("collwatch rep", "collwatch report"),
                               ("collwatch report --cop", "collwatch report --copy"),
                               ("collwatch report --class=nev", "collwatch report --class=never_entered"),
                               ("collwatch demo --no-n", "collwatch demo --no-namespaces"),
                               (f"collwatch report {tmp}/so", f"collwatch report {tmp}/some-bundle"),
                               ("collwatch completion fi", "collwatch completion fish")]:
            # TAB; then the line is not run, but printed: begin of line, end of line.
            zsh.typed(f"{typed}\t\x01echo 'it is <\x05>'\n")
            seen = re.search("\nit is <(.*)>", zsh.until(">\r\n")).group(1).rstrip(" /")
            assert seen == becomes, (typed, seen)
        # Nothing is typed ahead: zsh shows no list while there is more to read.
        zsh.typed("collwatch report --\t")
        zsh.until_options(help_of("collwatch", "report"))


def test_options_are_told_apart():
    """The test of zsh looks for these."""
    assert words_that_are_whole("$ report --\r\n--job-x  -- a\r\n--at  --all\r\n--jo") == \
        {"--job-x", "--at", "--all"}
    assert words_that_are_whole("\x1b[1m--job\x1b[0m x--no") == {"--job"}


def test_words_in_front_decide():
    needs("bash")
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp:
        os.mkdir(tmp + "/bundle-1")
        with open(tmp + "/bundle-of-none", "wb"):
            pass
        assert in_bash("report", "bun", cwd=tmp) == {"bundle-1"}, "a bundle is a directory"
        assert in_bash("report", "--output", "bun", cwd=tmp) == {"bundle-1", "bundle-of-none"}
        assert in_bash("report", "-o", "bundle-o", cwd=tmp) == {"bundle-of-none"}
        assert in_bash("report", "--output", "=", "bundle-o", cwd=tmp) == {"bundle-of-none"}
        assert "mismatch" in in_bash("report", "--json", "--class", ""), "classes"
        assert in_bash("report", "--class", "=", "mi") == {"mismatch"}, "as bash splits it"
        assert in_bash("report", "--class", "=") >= {"mismatch", "slow"}
        assert in_bash("run", "--standalone", "--ag") == {"--agent"}
        assert in_bash("run", "program", "--ag") == set(), "that is the program's"
        assert in_bash("run", "--", "--ag") == set()
        assert "sort" in in_bash("run", "sor"), "programs"
        assert in_bash("record", "sh", cwd=tmp) == {"show"}
        assert in_bash("completion", "") == {"bash", "zsh", "fish"}
        assert "never-entered" in in_bash("demo", "never"), "the laboratory's"
        assert in_bash("nosuch", "") == set() and in_bash("--help", "") == set()


def test_incidents_and_nodes_are_the_daemons():
    needs("bash")
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp, Daemon(name="here") as daemon:
        ids = ["00000000000000aa", "0000000000000abb"]
        for one in ids:
            daemon.keep({"schema": "collwatch.incident/1", "id": one, "uid": os.geteuid(), "job": "name:t",
                         "class": "slow", "summary": "s"})
        daemon.start()
        at = ["report", "--control", daemon.control]
        assert in_bash(*at, "0000", cwd=tmp) == set(ids), in_bash(*at, "0000")
        assert in_bash(*at, "0000000000000a", cwd=tmp) == {ids[1]}
        assert in_bash(*at, "--node", "") == {"here"}


def test_a_shell_that_is_not_known_is_refused():
    done = subprocess.run([COLLWATCH, "completion", "fihs"], stderr=subprocess.PIPE, text=True, timeout=120,
                          check=False)
    assert done.returncode == 1 and 'did you mean "fish"?' in done.stderr, done


# Texts that other nodes and jobs may choose: a title for the terminal, colours, letters that turn
# the line around.
TREACHEROUS = ["train\x1b]0;owned\x07", "a\x1b[31mb", "x\u202egnp.exe", "tab\tword", "two\nlines"]
CONTROL_REPLY = 41


@pytest.mark.parametrize("option", ["--job", "--node"])
def test_labels_and_hosts_of_others_cannot_write_to_the_terminal(option):
    status = json.dumps({
        "schema": "collwatch.status/1", "version": "0.1.0", "node": "node-a", "notes": [],
        "peers": [{"node": name, "state": "connected\x1b[2J"} for name in [*TREACHEROUS, "node-b"]],
        "jobs": [{"job": "slurm:" + name, "summary": "waits\x1b[2J"} for name in [*TREACHEROUS, "node-b"]],
    }).encode()
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as listener:
        path = directory + "/control.sock"
        listener.bind(path)
        listener.listen()

        def answer():
            conn, _ = listener.accept()
            conn.recv(65536)
            conn.sendall(envelope(CONTROL_REPLY, field(2, status)))
            conn.recv(1)
            conn.close()

        thread = threading.Thread(target=answer)
        thread.start()
        offered = said(COLLWATCH, "--complete", "report", "--control", path, option, "")
        thread.join()
    lines = offered.splitlines()
    assert [line.split("\t")[1] for line in lines if "node-b" in line] == ["node-b"], offered
    assert not [c for c in offered if not c.isprintable() and c not in "\t\n"], offered
    assert {line.split("\t")[1] for line in lines} <= {"node-a", "node-b"}, offered
