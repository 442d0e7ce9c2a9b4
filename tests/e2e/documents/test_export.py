# SPDX-License-Identifier: Apache-2.0
"""Exported Flight Recorder dumps as Python reads them, field by field.

torch.distributed.flight_recorder.components reads these fields (PyTorch 2.5 to 2.10).
"""

import ast
import json
import os
import pickle
import re
import shutil
import subprocess
import tempfile

from built import COLLWATCH, MAKE_BUNDLE


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


class Export:
    """A bundle and the dumps made of it."""

    def __enter__(self):
        self.tmp = tempfile.mkdtemp(prefix="cw-")
        with open(self.tmp + "/job.scn", "w", encoding="ascii") as f:
            f.write(JOB)
        subprocess.run([MAKE_BUNDLE, self.tmp + "/job.scn", "20", self.tmp], check=True,
                       stdout=subprocess.DEVNULL, timeout=120)
        self.dir = self.tmp + "/dumps"
        self.first = self.analyze(f"{self.tmp}/0123456789abcdef", "--export-flight-recorder",
                                  self.dir)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.tmp)

    def analyze(self, *arguments):
        """Exit status and verdict."""
        done = subprocess.run([COLLWATCH, "analyze", "--json", *arguments], text=True, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert done.stdout, done
        return done.returncode, json.loads(done.stdout), done.stderr

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


def test_every_field_a_viewer_reads_is_there():
    with Export() as export:
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


def test_sends_and_receives_of_one_launch_are_closed():
    with Export() as export:
        for rank, dump in export.dumps().items():
            for i, entry in enumerate(dump["entries"]):
                if not entry["profiling_name"].startswith("nccl:send"):
                    continue
                recv, end = dump["entries"][i + 1:i + 3]
                assert recv["profiling_name"] == f"nccl:recv {rank}<-{(rank - 1) % RANKS}", recv
                assert end["profiling_name"] == "nccl:coalesced", end
                assert len({e["p2p_seq_id"] for e in (entry, recv, end)}) == 1


def test_all_members_have_the_oldest_entry_of_a_group():
    with Export() as export:
        first = {}
        for dump in export.dumps().values():
            seen = {}
            for entry in dump["entries"]:
                if not entry["is_p2p"]:
                    key = (entry["process_group"],
                           dump["pg_config"][entry["process_group"][0]]["ranks"])
                    seen.setdefault(key, entry["collective_seq_id"])
            for key, number in seen.items():
                assert first.setdefault(key, number) == number, (key, number)


def test_read_back_it_is_the_same_verdict():
    with Export() as export:
        status, verdict, said = export.first
        assert (status, verdict["class"]) == (2, "never_entered"), verdict
        assert f"{RANKS} Flight Recorder dumps written" in said, said
        again, reread, _ = export.analyze("--flight-recorder", export.dir)
        assert (again, reread["class"]) == (2, "never_entered"), reread
        assert [c["rank"] for c in reread["culprits"]] == [5], reread["culprits"]
        done = subprocess.run([COLLWATCH, "analyze", "--flight-recorder", export.dir,
                               "--export-flight-recorder", export.dir], timeout=120, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 1 and "File exists" in done.stderr, done
