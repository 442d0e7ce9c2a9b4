# SPDX-License-Identifier: Apache-2.0
"""The file of a rank: one JSON object a line (docs/schemas.md: collwatch.tensors/1)."""

import datetime
import json
import math
import os
import socket

SCHEMA = "collwatch.tensors/1"


def _number(name):
    value = os.environ.get(name, "")
    return int(value) if value.isdigit() else None


def directory():
    """Where `collwatch baseline` wants the file of the program that it runs, or None."""
    return os.environ.get("COLLWATCH_TENSORS") or None


def now():
    at = datetime.datetime.now(datetime.timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + "%03dZ" % (at.microsecond // 1000)


def number(value):
    """JSON has no NaN and no infinity: their names."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    return value


# What is being written here: a second watch would write over it.
_OPEN = set()


class Lines:
    def __init__(self, path, **more):
        self.rank = _number("RANK")
        if self.rank is None:
            self.rank = _number("SLURM_PROCID")
        world = _number("WORLD_SIZE")
        self.path = path or os.path.join(directory() or "", "collwatch-tensors-rank%d.jsonl" % (self.rank or 0))
        self._place = os.path.realpath(self.path)
        if self._place in _OPEN:
            raise ValueError("path: another watch writes to %s: close that one, or give each a path of its own"
                             % self.path)
        self._file = open(self.path, "w", encoding="utf-8")
        if os.path.isfile(self._place):
            _OPEN.add(self._place)
        self.write("head", schema=SCHEMA, rank=self.rank, world_size=world, host=socket.gethostname(),
                   pid=os.getpid(), **more)

    def write(self, kind, **fields):
        """Whole lines, at once: who reads them meanwhile, or after a crash, finds them."""
        if self._file:
            self._file.write(json.dumps({"line": kind, "at": now(), **fields}, allow_nan=False) + "\n")
            self._file.flush()

    def close(self):
        if self._file:
            self._file.close()
            _OPEN.discard(self._place)
        self._file = None
