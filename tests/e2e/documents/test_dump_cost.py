# SPDX-License-Identifier: Apache-2.0
"""The cost of reading a Flight Recorder dump: a dump of twice the size takes at most twice the time
of a processor, for each kind of content."""
import resource
import subprocess
import tempfile

import built
import hostile_dumps
import pytest
from waiting import expect

MIB = 1 << 20
SIZES = [MIB // 2, MIB, 2 * MIB, 4 * MIB]
# A linear import of 4 MiB takes 2 s at most. The kernel ends a run that takes this.
MOST_SECONDS = 15
# Start-up, and the effects of caches and neighbours on a measurement.
SLACK_SECONDS = 0.1
SLACK_RATIO = 1.25


def seconds_of(directory):
    """Time of a processor for one import, the better of two."""
    best = None
    for _ in range(2):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([built.COLLWATCH, "analyze", "--flight-recorder", directory], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS)))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        expect(done.returncode >= 0, f"ended by signal {-done.returncode} within {MOST_SECONDS} s of a processor")
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = seconds if best is None else min(best, seconds)
    return best


@pytest.mark.parametrize("shape", hostile_dumps.SHAPES, ids=lambda shape: shape.__name__)
def test_twice_the_dump_takes_at_most_twice_the_time(shape):
    spent = []
    for size in SIZES:
        data = shape(size)
        expect(len(data) <= 1.5 * size, f"{shape.__name__}({size}) has {len(data)} bytes")
        with tempfile.TemporaryDirectory() as directory:
            with open(f"{directory}/rank_0", "wb") as f:
                f.write(data)
            spent.append(seconds_of(directory))
        print(f"# {shape.__name__}: {len(data)} bytes, {spent[-1]:.2f} s")
    for i in range(1, len(spent)):
        expect(spent[i] <= 2 * SLACK_RATIO * spent[i - 1] + SLACK_SECONDS,
               f"{shape.__name__}: {SIZES[i]} bytes take {spent[i]:.2f} s, half of them {spent[i - 1]:.2f} s")
