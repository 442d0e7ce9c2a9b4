# SPDX-License-Identifier: Apache-2.0
"""python3 -m collwatch.flight_recorder writes dumps of PyTorch's Flight Recorder: they have each field that
torch.distributed.flight_recorder.components reads (PyTorch 2.5 to 2.10), and the same verdict.
"""

import ast
import json
import os
import pickle
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import pytest

from built import COLLWATCH, MAKE_BUNDLE, SOURCE

sys.path.insert(0, SOURCE + "/python")
from collwatch import flight_recorder  # noqa: E402  pylint: disable=wrong-import-position


RANKS = 16
JOB = f"""scenario job
ranks {RANKS} per-node 8
comm world all
comms tp size 4
program
	loop
		work 20ms
		group
		send world 64 to ring-next
		recv world 64 from ring-prev
		end
		all_reduce tp 8192
		reduce_scatter world 16384
		sync
	end
end
fault 5 at 4s on tp all_reduce block
expect never_entered 5
end
"""
# Name: types of its values.
ENTRY = {
    "record_id": int, "pg_id": int, "process_group": tuple, "collective_seq_id": int,
    "p2p_seq_id": int, "op_id": int, "profiling_name": str, "time_created_ns": int,
    "input_sizes": list, "input_dtypes": list, "output_sizes": list, "output_dtypes": list,
    "state": str, "time_discovered_started_ns": (int, type(None)),
    "time_discovered_completed_ns": (int, type(None)), "retired": bool, "timeout_ms": int,
    "is_p2p": bool, "frames": list,
}
NAME = re.compile(r"nccl:(all_reduce|_reduce_scatter_base|coalesced|send \d+->\d+|recv \d+<-\d+)$")


class Plain(pickle.Unpickler):
    """Plain data only: a dump that names a class is none."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name}")


# The format has no field for live ranks.
LOOP = """program
	loop
		work 20ms
		all_reduce tp 8192
		compute 20ms
		broadcast tp 4096
		reduce_scatter world 16384
		all_gather world 16384
		sync
	end
end"""
PIPE = """program
	loop
		recv world 4096 from prev
		compute 10ms
		send world 4096 to next
		recv world 4096 from next
		send world 4096 to prev
		all_reduce world
		sync
	end
end"""
RING = """program
	loop
		compute 10ms
		group
		send world 64 to ring-next
		recv world 64 from ring-prev
		end
		all_reduce tp
		sync
	end
end"""
SMALL = "scenario s\nranks 8 per-node 4\ncomm world all\ncomms tp size 4\n{}\n{}\nexpect silence\nend\n"
FAULTS = [
    (LOOP, "fault 2 at 8s on tp all_reduce block", "never_entered", [2]),
    (LOOP, "fault 2 at 8s on tp all_reduce change count 77", "mismatch", [2]),
    (LOOP, "fault 2 at 8s on tp all_reduce change kind all_gather", "mismatch", [2]),
    (LOOP, "fault 2 at 8s on tp all_reduce skip", "mismatch", [2]),
    (LOOP, "fault 2 at 8s on tp all_reduce stuck", "device_stalled", [2]),
    (LOOP, "fault 2 at 8s on tp all_reduce wedge", "in_collective", []),
    (PIPE, "fault 2 at 8s on world recv skip", "deadlock", [1, 2]),
    (PIPE, "fault 2 at 8s on world recv change count 8192", "p2p_unmatched", [1, 2]),
    (RING, "fault 2 at 8s on world send block", "p2p_unmatched", [2]),
    (LOOP, "fault 2 at 8s on tp all_reduce kill 9", "process_dead", [2]),
]
WALL_NS = 1795219200 * 10**9  # of MAKE_BUNDLE


class Export:
    """A bundle and the dumps made of it."""

    def __init__(self, job=JOB, seconds=20):
        self.job, self.seconds = job, seconds

    def __enter__(self):
        self.tmp = tempfile.mkdtemp(prefix="cw-")
        with open(self.tmp + "/job.scn", "w", encoding="ascii") as f:
            f.write(self.job)
        subprocess.run([MAKE_BUNDLE, self.tmp + "/job.scn", str(self.seconds), self.tmp], check=True,
                       stdout=subprocess.DEVNULL, timeout=120)
        self.bundle, self.dir = self.tmp + "/0123456789abcdef", self.tmp + "/dumps"
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.tmp)

    @staticmethod
    def analyze(*arguments):
        """Exit status and document."""
        done = subprocess.run([COLLWATCH, "analyze", *arguments], text=True, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert done.stdout, done
        return done.returncode, json.loads(done.stdout)

    def snapshot(self):
        return self.analyze("--snapshot", self.bundle)[1]

    def write(self, *options):
        """Runs the command that "analyze" prints."""
        asked = ["analyze", "--export-flight-recorder", self.dir, *options]
        command = subprocess.run([COLLWATCH, *asked], text=True, timeout=120, check=True,
                                 stdout=subprocess.PIPE).stdout
        path = os.path.dirname(COLLWATCH) + ":" + os.environ["PATH"]
        return subprocess.run(["sh", "-c", command], text=True, timeout=120, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, "PATH": path, "PYTHONPATH": SOURCE + "/python"})

    def dumps(self):
        """By rank."""
        found = {}
        for name in os.listdir(self.dir):
            with open(f"{self.dir}/{name}", "rb") as f:
                data = f.read()
                assert data[:2] == b"\x80\x02", f"{name}: not of protocol 2"
                f.seek(0)
                found[int(re.fullmatch(r"nccl_trace_rank_(\d+)", name)[1])] = Plain(f).load()
        return found


def check_entry(number, entry, dump):
    assert set(entry) == set(ENTRY), set(entry) ^ set(ENTRY)
    for key, kind in ENTRY.items():
        assert isinstance(entry[key], kind), (key, entry[key])
    name, desc = entry["process_group"]
    assert dump["pg_config"][name]["desc"] == desc, entry
    assert entry["record_id"] == number and NAME.match(entry["profiling_name"]), entry
    assert entry["state"] in ("scheduled", "started", "completed"), entry
    assert entry["retired"] == (entry["state"] == "completed"), entry
    for sizes, dtypes in (("input_sizes", "input_dtypes"), ("output_sizes", "output_dtypes")):
        assert len(entry[sizes]) == len(entry[dtypes]), entry
        assert all(isinstance(n, int) for shape in entry[sizes] for n in shape), entry


@pytest.fixture(name="export", scope="module")
def given_export():
    with Export() as export:
        done = export.write(export.bundle)
        assert done.returncode == 0 and not done.stderr, done
        assert done.stdout == f"{RANKS} Flight Recorder dumps written to {export.dir}\n", done
        yield export


def test_every_field_a_viewer_reads_is_there(export):
    dumps = export.dumps()
    assert sorted(dumps) == list(range(RANKS)), sorted(dumps)
    for rank, dump in dumps.items():
        assert dump["version"] == "2.10" and dump["rank"] == rank, dump["version"]
        assert isinstance(dump["nccl_version"], str) and dump["host_name"], dump
        assert len(dump["pg_config"]) == 2 and len(dump["pg_status"]) == 2, dump["pg_config"]
        for name, group in dump["pg_config"].items():
            ranks = ast.literal_eval(group["ranks"])
            assert group["name"] == name and rank in ranks and ranks == sorted(ranks), group
        assert dump["entries"], f"rank {rank} has no entries"
        for number, entry in enumerate(dump["entries"]):
            check_entry(number, entry, dump)


def test_sends_and_receives_of_one_launch_are_closed(export):
    for rank, dump in export.dumps().items():
        for i, entry in enumerate(dump["entries"]):
            if not entry["profiling_name"].startswith("nccl:send"):
                continue
            recv, end = dump["entries"][i + 1:i + 3]
            assert recv["profiling_name"] == f"nccl:recv {rank}<-{(rank - 1) % RANKS}", recv
            assert end["profiling_name"] == "nccl:coalesced", end
            assert len({e["p2p_seq_id"] for e in (entry, recv, end)}) == 1


def test_all_members_have_the_oldest_entry_of_a_group(export):
    first = {}
    for dump in export.dumps().values():
        seen = {}
        for entry in dump["entries"]:
            if not entry["is_p2p"]:
                key = (entry["process_group"], dump["pg_config"][entry["process_group"][0]]["ranks"])
                seen.setdefault(key, entry["collective_seq_id"])
        for key, number in seen.items():
            assert first.setdefault(key, number) == number, (key, number)


def test_dumps_of_dumps_are_written_and_nothing_is_written_over(export):
    other = export.dir + "-2"
    shutil.move(export.dir, other)
    try:
        done = export.write("--flight-recorder", other)
        assert done.returncode == 0 and f"{RANKS} Flight Recorder dumps" in done.stdout, done
        assert export.analyze("--json", "--flight-recorder", export.dir)[1]["class"] == "never_entered"
        done = export.write("--flight-recorder", other)
        assert done.returncode == 1 and "File exists" in done.stderr and "nccl_trace_rank_" in done.stderr, done
    finally:
        shutil.rmtree(export.dir)
        shutil.move(other, export.dir)


@pytest.mark.parametrize(("program", "fault", "wanted", "ranks"), FAULTS, ids=[f[1] for f in FAULTS])
def test_read_back_it_is_the_same_verdict(program, fault, wanted, ranks):
    with Export(SMALL.format(program, fault), 40) as export:
        status, verdict = export.analyze("--json", export.bundle)
        assert (status, verdict["class"]) == (2, wanted), verdict
        assert sorted(c["rank"] for c in verdict["culprits"]) == ranks, verdict["culprits"]
        done = export.write(export.bundle)
        assert done.returncode == 0 and done.stdout == f"8 Flight Recorder dumps written to {export.dir}\n", done
        status, verdict = export.analyze("--json", "--flight-recorder", export.dir)
        assert (status, verdict["class"]) == (2, wanted.replace("process_dead", "never_entered")), verdict
        assert sorted(c["rank"] for c in verdict["culprits"]) == ranks, verdict["culprits"]
        again = export.analyze("--snapshot", "--flight-recorder", export.dir)[1]
        assert again["now_ns"] == WALL_NS, "the file's time is the snapshot's"


def test_a_rank_without_number_is_counted_and_omitted():
    with Export(SMALL.format(LOOP, ""), 40) as export:
        snapshot = export.snapshot()
        for rank in snapshot["ranks"]:
            if rank.get("rank") == 3:
                rank["rank"] = -1
        assert flight_recorder.write(snapshot, export.dir) == (7, 1, 1), "of world the missing number is known"
        groups = [group["ranks"] for dump in export.dumps().values() for group in dump["pg_config"].values()]
        assert sorted(groups) == [str(list(range(8)))] * 7 + [str([4, 5, 6, 7])] * 4, groups


def test_a_number_that_no_reader_takes_is_none():
    with Export(SMALL.format(LOOP, ""), 40) as export:
        snapshot = export.snapshot()
        for rank in snapshot["ranks"]:
            rank["rank"] = {3: 2**31 - 1, 5: 1 << 20}.get(rank.get("rank"), rank.get("rank", 0))
        assert flight_recorder.write(snapshot, export.dir)[:2] == (6, 2)
        again = export.analyze("--snapshot", "--flight-recorder", export.dir)[1]
        assert sum(rank.get("flags", 0) & 1 for rank in again["ranks"]) == 6, again["ranks"]


def test_the_command_survives_any_path():
    bundle, into = "/tmp/it's a $(bundle)", "-dumps of \"it\""
    command = subprocess.run([COLLWATCH, "analyze", "--export-flight-recorder=" + into, "--", bundle], text=True,
                             stdout=subprocess.PIPE, check=True, timeout=120).stdout
    assert shlex.split(command)[3:] == ["--", into, bundle], command


def test_errors_are_those_of_the_command(export):
    for options, wanted in (([export.tmp + "/none"], "none"), (["--flight-recorder", export.tmp], "no Flight Recorder")):
        done = export.write(*options)
        assert done.returncode == 1 and wanted in done.stderr and not done.stdout, done
