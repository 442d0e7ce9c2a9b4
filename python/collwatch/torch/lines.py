# SPDX-License-Identifier: Apache-2.0
"""The file of a rank: one JSON object a line (docs/schemas.md: collwatch.tensors/1)."""

import datetime
import errno
import json
import math
import os
import socket
import stat

SCHEMA = "collwatch.tensors/1"


def _number(name):
    value = os.environ.get(name, "")
    return int(value) if value.isdigit() else None


def directory():
    """The directory where `collwatch baseline` wants the file of its program, or None."""
    return os.environ.get("COLLWATCH_TENSORS") or None


def now():
    at = datetime.datetime.now(datetime.timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + "%03dZ" % (at.microsecond // 1000)


def number(value):
    """The value for JSON, which has no NaN and no infinity: we write their names."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    return value


# The files being written in this process, with their watches: a second watch would overwrite the first.
_OPEN = {}


def _place(file):
    """Identifies a file even after a rename; None for /dev/null, which is no regular file."""
    it = os.fstat(file.fileno())
    return (os.getpid(), it.st_dev, it.st_ino) if stat.S_ISREG(it.st_mode) else None


# Other users may be able to write to the directory, and this user's other files may be in it.
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NOFOLLOW | os.O_NONBLOCK


def _refuse(path, why):
    raise OSError(why, "tensor lines need a regular file of this user without further hard links: remove the file, or give another path", path)


def _open_own(path):
    """Opens the file for appending, as the agent opens its own, or /dev/null. We refuse three kinds: a link
    would make us write to another file of this user, a FIFO would block the job, and another owner could
    change the lines."""
    try:
        fd = os.open(path, _FLAGS, 0o666)
    except OSError as e:
        if e.errno in (errno.ELOOP, errno.ENXIO):  # a link; a FIFO without a reader
            _refuse(path, e.errno)
        raise
    it = os.fstat(fd)
    is_null = stat.S_ISCHR(it.st_mode) and it.st_rdev == os.makedev(1, 3)
    if not is_null and (not stat.S_ISREG(it.st_mode) or it.st_uid != os.geteuid() or it.st_nlink != 1):
        os.close(fd)
        _refuse(path, errno.EPERM)
    return os.fdopen(fd, "a", encoding="utf-8")


class Lines:
    def __init__(self, path, watch, **more):
        self.rank = _number("RANK")
        if self.rank is None:
            self.rank = _number("SLURM_PROCID")
        world = _number("WORLD_SIZE")
        self._watch = watch
        wanted = path or os.path.join(directory() or "", "collwatch-tensors-rank%d.jsonl" % (self.rank or 0))
        self.path, n = wanted, 1
        while not self._open(watch):
            if path:
                raise ValueError("path: another watch writes to %s: close it, or give each watch its own path" % path)
            n += 1
            self.path = "%s-%d.jsonl" % (wanted[:-len(".jsonl")], n)
        self.write("head", schema=SCHEMA, rank=self.rank, world_size=world, host=socket.gethostname(),
                   pid=os.getpid(), **more)
        if n > 1:
            self.write("note", text="another watch of this process writes to %s" % wanted)

    def _open(self, watch):
        """False: another watch, of a model that still exists, writes to this file."""
        self._file = _open_own(self.path)
        self._place = _place(self._file)
        other = _OPEN.get(self._place)
        if other is not None and not other.is_in_use():
            other.close()
            other = None
        if other is not None:
            self._file.close()
            return False
        if self._place:
            self._file.truncate(0)
            _OPEN[self._place] = watch
        return True

    def write(self, kind, **fields):
        """Writes a whole line at once: a reader during the run or after a crash finds complete lines."""
        if self._file:
            self._file.write(json.dumps({"line": kind, "at": now(), **fields}, allow_nan=False) + "\n")
            self._file.flush()

    def close(self):
        try:
            if self._file:
                self._file.close()
        finally:
            self._file = None
            if _OPEN.get(self._place) is self._watch:
                del _OPEN[self._place]
