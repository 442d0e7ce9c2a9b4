# SPDX-License-Identifier: Apache-2.0
"""The file of tensor lines in a directory that another user writes to, too: links, FIFOs and files of that user
neither change other files of the job's user nor hold the job up. The module of Python alone, without torch."""
import os
import subprocess
import sys
import tempfile

import built
import pytest
from open_copy import open_copy
from waiting import expect

VICTIM, ATTACKER = 61234, 61235
NAME = "collwatch-tensors-rank0.jsonl"
SECRET = "the user's own results\n"
# A hang of the job ends here. Python starts within a second.
SECONDS = 30

pytestmark = pytest.mark.root

PROGRAM = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("lines", sys.argv[1])
lines = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lines)
class Watch:
    def is_in_use(self):
        return True
lines.Lines(sys.argv[2], Watch()).close()
"""


def as_user(uid, code, *args):
    return subprocess.run([sys.executable, "-I", "-c", code, *args], user=uid, group=uid, extra_groups=[], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False, cwd="/")


class Place:
    """A directory that all users may write, and a file of the victim's elsewhere."""

    def __init__(self, root):
        os.chmod(root, 0o711)
        self.shared, self.own = f"{root}/shared", f"{root}/own"
        os.mkdir(self.shared)
        os.chmod(self.shared, 0o777)
        os.mkdir(self.own, 0o700)
        os.chown(self.own, VICTIM, VICTIM)
        self.path, self.secret = f"{self.shared}/{NAME}", f"{self.own}/results"
        self.write(self.secret, VICTIM, SECRET)

    @staticmethod
    def write(path, uid, text=""):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chown(path, uid, uid)

    def attack(self, code):
        done = as_user(ATTACKER, f"import os, sys; path, secret = sys.argv[1:]; {code}", self.path, self.secret)
        expect(done.returncode == 0, f"the attack itself fails: {done.stdout}")

    def job(self):
        try:
            lines = open_copy(f"{built.SOURCE}/python/collwatch/torch/lines.py")
            return as_user(VICTIM, PROGRAM, lines, self.path)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the job hangs in {self.path}") from None


@pytest.fixture
def place():
    with tempfile.TemporaryDirectory() as root:
        yield Place(root)


def is_refused(place):
    done = place.job()
    with open(place.secret, encoding="utf-8") as f:
        expect(f.read() == SECRET, "another file of the job's user has changed")
    expect(done.returncode != 0 and NAME in done.stdout and "regular file" in done.stdout,
           f"the error names neither the file nor the remedy: {done.stdout}")


def test_a_link_to_a_file_of_the_user_is_not_followed(place):
    place.attack("os.symlink(secret, path)")
    is_refused(place)


def test_a_second_name_of_a_file_of_the_user_is_not_written_to(place):
    os.link(place.secret, place.path)  # the kernel may keep the other user from it
    is_refused(place)


def test_a_fifo_does_not_hold_the_job_up(place):
    place.attack("os.mkfifo(path); os.chmod(path, 0o666)")
    is_refused(place)


def test_a_fifo_that_is_read_takes_no_lines(place):
    place.attack("os.mkfifo(path); os.chmod(path, 0o666)")
    reader = os.open(place.path, os.O_RDONLY | os.O_NONBLOCK)
    is_refused(place)
    os.close(reader)


def test_a_file_of_another_user_takes_no_lines(place):
    place.attack("open(path, 'w').close(); os.chmod(path, 0o666)")
    is_refused(place)


def test_the_users_own_file_is_written_anew(place):
    place.write(place.path, VICTIM, "lines of an earlier run\n")
    done = place.job()
    expect(done.returncode == 0, done.stdout)
    with open(place.path, encoding="utf-8") as f:
        expect(f.read().startswith('{"line": "head"'), "the file does not begin with a head")


def test_nothing_is_written_to_the_null_device(place):
    place.path = "/dev/null"
    done = place.job()
    expect(done.returncode == 0, done.stdout)
