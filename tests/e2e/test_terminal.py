# SPDX-License-Identifier: Apache-2.0
"""Features of the command line on a terminal only: a pager for long output, and the progress of
slow operations. Terminals are pseudo terminals of a given size."""

import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import tty

import pytest
from built import COLLWATCH, COLLWATCH_LAB, SOURCE, STEP_CLOCK_LIB
from daemon import Daemon
from waiting import wait_until

HANG = ["analyze", "--flight-recorder", SOURCE + "/tests/data/flight_recorder/never_entered"]
OUTER = {k: v for k, v in os.environ.items()
         if not k.startswith(("COLLWATCH_", "LESS", "SUDO_", "DOAS_", "PKEXEC_")) and k not in ("PAGER", "NO_COLOR")}
OUTER.update(TERM="xterm", LC_ALL="C.UTF-8")
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def terminal(rows, columns=100):
    ours, theirs = pty.openpty()
    tty.setraw(theirs)  # line breaks stay what they are
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    return ours, theirs


def read_all(fd):
    said = b""
    with contextlib.suppress(OSError):  # EIO: no process has it open any more
        while more := os.read(fd, 65536):
            said += more
    os.close(fd)
    return said.decode()


class Shown:
    """One command: the contents of its standard output and standard error, which of them are
    terminals, and its exit status."""

    def __init__(self, *arguments, rows=5, out_is_terminal=True, err_is_terminal=False, program=COLLWATCH,
                 drop=(), **env):
        ours, theirs = terminal(rows)
        out = theirs if out_is_terminal else subprocess.PIPE
        err = theirs if err_is_terminal else subprocess.PIPE
        all_env = {k: v for k, v in {**OUTER, **env}.items() if k not in drop}
        with subprocess.Popen([program, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                              env=all_env) as process:
            os.close(theirs)
            self.terminal = read_all(ours)
            rest, self.err = process.communicate(timeout=120)
        self.out = self.terminal if out_is_terminal else rest.decode()
        self.err = self.terminal if err_is_terminal else self.err.decode()
        self.status = process.returncode


class Pager:
    """A program that notes its arguments and its input."""

    def __init__(self, path, name):
        self.program, self.note = f"{path}/{name}", f"{path}/{name}.note"
        with open(self.program, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n{ echo \"$LESS|$LESSSECURE|$LESSCHARSET|$*\"; /bin/cat; } >" + self.note + "\n")
        os.chmod(self.program, 0o755)

    def take(self):
        """(how, text) of the last time, once; None = it was not started."""
        try:
            with open(self.note, encoding="utf-8") as f:
                how, text = f.read().split("\n", 1)
        except FileNotFoundError:
            return None
        os.unlink(self.note)
        return how, text


@pytest.fixture(name="path")
def empty_directory():
    with tempfile.TemporaryDirectory(prefix="cw-pager-") as path:
        yield path


@pytest.fixture(name="plain", scope="module")
def what_a_pipe_gets():
    shown = Shown(*HANG, out_is_terminal=False)
    assert shown.status == 2 and len(shown.out.splitlines()) > 5 and "\x1b" not in shown.out, shown.out
    return shown.out


def test_what_is_longer_than_the_terminal_goes_to_the_pager(path, plain):
    pager = Pager(path, "mine")
    shown = Shown(*HANG, PAGER=pager.program)
    how, text = pager.take()
    assert how == "FRX||utf-8|" and ESCAPE.sub("", text) == plain and "\x1b[" in text, (how, text)
    assert shown.terminal == "" and shown.status == 2, shown.terminal
    Shown(*HANG, PAGER=pager.program, NO_COLOR="1")
    assert pager.take()[1] == plain
    # Options, and the user's preferences; but colours always.
    Shown(*HANG, PAGER=pager.program + " -x 'two words'", LESS="-i", LESSCHARSET="latin1")
    assert pager.take()[0] == "-R -i||latin1|-x two words"


def test_what_fits_is_shown_without_waiting(path, plain):
    pager = Pager(path, "mine")
    lines = len(plain.splitlines())
    shown = Shown(*HANG, rows=lines + 1, PAGER=pager.program)
    assert ESCAPE.sub("", shown.terminal) == plain and "\x1b[" in shown.terminal and not pager.take()
    assert shown.status == 2
    shown = Shown(*HANG, rows=lines, PAGER=pager.program)  # and the prompt would push the first one out
    assert shown.terminal == "" and pager.take()


def test_only_who_wants_a_pager_gets_one(path, plain):
    mine, other = Pager(path, "mine"), Pager(path, "other")
    both = {"PAGER": other.program, "COLLWATCH_PAGER": mine.program}
    Shown(*HANG, **both)
    assert mine.take() and not other.take()
    for arguments, options in (((), {"COLLWATCH_PAGER": ""}), ((), {"COLLWATCH_PAGER": "cat"}),
                               ((), {"COLLWATCH_PAGER": "cat", "PAGER": ""}), ((), {"TERM": "dumb"}), ((), {"rows": 0}),
                               ((), {"drop": ["TERM"]}), (("--no-pager",), {})):
        shown = Shown(*HANG, *arguments, **{**both, **options})
        assert ESCAPE.sub("", shown.terminal) == plain and shown.status == 2, (arguments, options)
        assert not mine.take() and not other.take(), (arguments, options)
    # A file, a pipe or a document has no pages.
    assert Shown(*HANG, out_is_terminal=False, err_is_terminal=True, **both).out == plain
    assert Shown(*HANG, "--json", **both).terminal.lstrip().startswith("{")
    assert not mine.take() and not other.take()


def test_reports_are_shown_where_there_is_no_pager(path, plain):
    shown = Shown(*HANG, PAGER=path + "/none", PATH=path)
    assert ESCAPE.sub("", shown.terminal) == plain and shown.status == 2, shown.terminal
    for bad in ("`reboot`", "a | b", "'"):
        assert ESCAPE.sub("", Shown(*HANG, PAGER=bad, PATH=path).terminal) == plain, bad
    # The programs of the system, in this order.
    for name in ("more", "less", "pager"):
        pager = Pager(path, name)
        Shown(*HANG, PATH=path)
        assert pager.take(), name


def test_a_pager_that_is_left_early_changes_no_exit_status(path):
    for status in (0, 3):
        shown = Shown(*HANG, PAGER=f"sh -c 'exit {status}'")
        assert shown.status == 2 and shown.err == "", (shown.status, shown.err)


def test_who_was_lent_the_command_gets_no_shell(path, plain):
    mine, less = Pager(path, "mine"), Pager(path, "less")
    for who in ("SUDO_UID", "DOAS_USER", "PKEXEC_UID"):
        Shown(*HANG, COLLWATCH_PAGER=mine.program, PATH=path, LESS="-i", **{who: "1000"})
        assert less.take()[0] == "FRX|1|utf-8|" and not mine.take(), who
    os.unlink(less.program)
    Pager(path, "more")
    shown = Shown(*HANG, COLLWATCH_PAGER=mine.program, PATH=path, SUDO_UID="1000")
    assert ESCAPE.sub("", shown.terminal) == plain and not mine.take(), "no other pager is known to be harmless"


def read_until(fd, wanted):
    """In the output from now on."""
    said = b""
    while wanted not in said:
        assert select.select([fd], [], [], 60)[0], f"no {wanted} in {said}"
        said += os.read(fd, 65536)


def type_until(fd, key, wanted):
    """Again and again: the reader may not look yet."""
    said = b""
    for _ in range(60):
        os.write(fd, key)
        while select.select([fd], [], [], 1)[0]:
            said += os.read(fd, 65536)
        if wanted in said:
            return
    raise AssertionError(f"no {wanted} in {said}")


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(child) for child in f.read().split()]


def test_less_has_the_terminal_until_it_is_left():
    """As a user at the keys has it: Ctrl-C is for less, q leaves it, and it never outlives the
    command."""
    if not shutil.which("less"):
        pytest.skip("no less")
    for how in ("q", "kill"):
        pid, ours = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 8, 100, 0, 0))
            os.execve(COLLWATCH, [COLLWATCH, *HANG], {**OUTER, "PAGER": "less"})
        try:
            read_until(ours, b":\x1b[K")
            less = children_of(pid)[0]
            os.write(ours, b"\x03")
            type_until(ours, b"G", b"(END)")  # Ctrl-C throws away what was typed before it was seen
            assert children_of(pid) == [less], "Ctrl-C ended neither"
            if how == "q":
                os.write(ours, b"q")
            else:
                os.kill(pid, signal.SIGTERM)
            _, status = os.waitpid(pid, 0)
            assert os.waitstatus_to_exitcode(status) == (2 if how == "q" else -signal.SIGTERM), (how, status)
            wait_until(lambda: not os.path.exists(f"/proc/{less}"), "less has ended, too")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os.close(ours)


RECORDED = {"COLLWATCH_SUMMARY": "full"}


def recorded(directory, n):
    """The records of n ranks, as soon as they are there."""
    def there():
        return [f"{directory}/{name}" for name in os.listdir(directory) if name.endswith(".record")]
    wait_until(lambda: len(there()) == n, lambda: f"{n} records: {os.listdir(directory)}")
    return there()


def test_every_verb_that_shows_something_long_has_a_pager(path):
    pager = Pager(path, "mine")
    with tempfile.TemporaryDirectory() as records, Daemon(patience="", name="here") as daemon:
        daemon.start()
        daemon.wait_for(daemon.train("job", variables=RECORDED | {"COLLWATCH_RECORD": records}))
        asks = ["--control", daemon.control]
        for words in (["status", *asks], ["status", "--ops", *asks], ["stacks", *asks],
                      ["doctor", "--socket", path + "/none", *asks]):
            # Stacks are taken once in two seconds at most.
            wait_until(lambda words=words: Shown(*words, rows=2, PAGER=pager.program).terminal == "" and pager.take(),
                       words)
            wait_until(lambda words=words: Shown(*words, "--no-pager", rows=2, PAGER=pager.program).terminal, words)
            assert not pager.take(), words
        files = recorded(records, 2)
        for words in (["record", "show", files[0]], ["numerics", *files], ["analyze", *files]):
            shown = Shown(*words, rows=2, PAGER=pager.program)
            assert shown.terminal == "" and pager.take(), (words, shown.err)


# ---- how far it has come ----

SLOW = {"LD_PRELOAD": STEP_CLOCK_LIB, "CW_CLOCK_STRIDE": "1"}
DRAWN = re.compile(r"\r(collwatch: [^\r\x1b]*)\x1b\[K")


def drawn(shown):
    """The lines of its bar; all of it is gone at the end."""
    lines = DRAWN.findall(shown.err)
    assert not lines or "\r\x1b[K" in shown.err.rsplit(lines[-1], 1)[1], repr(shown.err)
    return lines


def test_suite_says_how_far_it_has_come():
    options = ["suite", "--generate", "12", "--seed", "3"]
    shown = Shown(*options, program=COLLWATCH_LAB, out_is_terminal=False, err_is_terminal=True, **SLOW)
    lines = drawn(shown)
    assert len(lines) == 12 and re.fullmatch(r"collwatch: \[#+-+\]  25 % 3/12 scenarios, 0 missed, \d+ s left",
                                             lines[2]), lines
    assert re.fullmatch(r"collwatch: \[#+\] 100 % 12/12 scenarios, 0 missed", lines[-1]), lines
    assert "\r" not in shown.out and shown.out, "the tables"
    for words, env, is_terminal in ((["--json"], {}, True), (["--verbose"], {}, True), ([], {"TERM": "dumb"}, True),
                                    ([], {}, False)):
        shown = Shown(*options, *words, program=COLLWATCH_LAB, out_is_terminal=False, err_is_terminal=is_terminal,
                      **{**SLOW, **env})
        assert "\r" not in shown.err and shown.status == 0, (words, env, shown.err)
    # Of files it is known, too.
    with tempfile.TemporaryDirectory() as directory:
        for name in "ab":
            with open(f"{directory}/{name}.scn", "w", encoding="utf-8") as f:
                subprocess.run([COLLWATCH_LAB, "suite", "--seed", "3", "--print", str(ord(name))], stdout=f, check=True)
        lines = drawn(Shown("suite", directory, program=COLLWATCH_LAB, out_is_terminal=False, err_is_terminal=True,
                            **SLOW))
        assert len(lines) == 2 and " 50 % 1/2 scenarios" in lines[0], lines


def test_analyze_says_how_many_files_it_has_read():
    files = sorted(os.listdir(HANG[-1]))
    lines = drawn(Shown(*HANG, out_is_terminal=False, err_is_terminal=True, **SLOW))
    assert len(lines) == len(files) and f" 100 % {len(files)}/{len(files)} files" in lines[-1], lines
    assert not drawn(Shown(*HANG, "--json", out_is_terminal=False, err_is_terminal=True, **SLOW))
    # A quick operation has none.
    assert not drawn(Shown(*HANG, out_is_terminal=False, err_is_terminal=True))
    with tempfile.TemporaryDirectory() as records, Daemon(patience="") as daemon:
        daemon.start()
        daemon.wait_for(daemon.train("job", ranks=3, variables=RECORDED | {"COLLWATCH_RECORD": records}))
        names = recorded(records, 3)
        for verb in ("analyze", "numerics"):
            lines = drawn(Shown(verb, *names, out_is_terminal=False, err_is_terminal=True, **SLOW))
            assert " 100 % 3/3 files" in lines[-1], (verb, lines)


def test_init_cluster_says_for_how_many_nodes_files_are_made(path):
    shown = Shown("init-cluster", path + "/a", "--certificates", "--hosts", "gpu[1-20]", out_is_terminal=False,
                  err_is_terminal=True, **SLOW)
    lines = drawn(shown)
    assert shown.status == 0 and len(lines) == 40, lines
    assert " 50 % 10/20 configurations" in lines[9] and " 100 % 20/20 certificates" in lines[-1], lines
    assert "\r" not in shown.out
