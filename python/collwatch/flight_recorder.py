# SPDX-License-Identifier: Apache-2.0
"""python3 -m collwatch.flight_recorder DIR BUNDLE|RECORD...|--flight-recorder DUMPS: writes recordings as dumps
of PyTorch's Flight Recorder.

The recorder's viewers (torchfrtrace, torch.distributed.flight_recorder) can then open collwatch's recordings.
"collwatch analyze --snapshot" reads the recordings and checks them. We only write pickles of plain data, and
never read one.

The format has no place for liveness, roots and reduction operators, nor for communicators in creation. After a
round trip, a dead rank appears as a rank that never entered its call. Calls have host times; device times are
unknown.

The requirements of PyTorch's analyser (torch/distributed/flight_recorder/components, PyTorch 2.5 to 2.10), and
how we meet each:

- The analyser compares record_id across ranks and drops entries below the largest first one. So each dump
  numbers its entries from 0, and we omit old entries that some members no longer have.
- The analyser identifies a group by its name and the set of its ranks. We use the communicator's id as the name.
- The analyser takes positions in a group as indices into the sorted ranks. We renumber peers accordingly.
- Sends and receives of one group launch are entries with the same p2p_seq_id. After them we write an entry
  "nccl:coalesced" with their state. Without it the analyser pairs them wrongly.
- The analyser compares all versions with the first one, so every dump has the same version.
"""

import argparse
import json
import os
import pickle
import subprocess
import sys

import collwatch

VERSION = "2.10"
TIMEOUT_MS = 600000  # the time-out of a call in the dump: PyTorch's default
MAX_RANKS = 1 << 20  # readers accept smaller numbers of ranks only
INT64_MAX = (1 << 63) - 1

# The numbers in a snapshot (lib/model/op.h, lib/model/facts.h).
COLLECTIVES = {1: "all_reduce", 2: "broadcast", 3: "reduce", 4: "_all_gather_base", 5: "_reduce_scatter_base",
               6: "all_to_all", 7: "gather", 8: "scatter"}
ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, SEND, RECV = 4, 5, 6, 16, 17
DTYPES = {0: "Char", 1: "Byte", 2: "Int", 3: "UInt32", 4: "Long", 5: "UInt64", 6: "Half", 7: "Float", 8: "Double",
          9: "BFloat16", 10: "Float8_e4m3fn", 11: "Float8_e5m2", 64: "Short", 65: "UInt16", 66: "Float8_e4m3fnuz",
          67: "Float8_e5m2fnuz", 68: "Float8_e8m0fnu", 69: "Float4_e2m1fn_x2"}
PROGRESS_UNKNOWN, REACHED, COMPLETED = 0, 2, 3
GROUPED, QUEUED, DROPPED, CAPTURED = 2, 4, 8, 16
KNOWN_ENTERED, KNOWN_REACHED, KNOWN_COMPLETED = 1, 4, 8
HAS_RECORD = 1


def _is_launched(op):
    return not op.get("flags", 0) & (DROPPED | CAPTURED | QUEUED)


def _is_counted(op):
    return op.get("kind") in COLLECTIVES and op.get("coll_seq", 0) > 0 and _is_launched(op)


def _is_p2p(op):
    return op.get("kind") in (SEND, RECV) and op.get("peer", 0) >= 0 and _is_launched(op)


def _number_of(rank):
    """The rank's number. None: it has no number, or it lies or is damaged and no reader would accept it."""
    number = rank.get("rank", 0)
    return number if 0 <= number < MAX_RANKS else None


class _Comm:
    """A communicator as the analyser sees it: a group with a name and sorted ranks."""

    def __init__(self, snapshot, comm):
        self.nranks = comm.get("nranks", 0)
        self.members = {m["comm_rank"]: m for m in comm["members"]}
        instance = comm.get("instance", 0)
        self.name = f"0x{int(comm.get('id', '0'), 0):016x}" + (f".{instance}" if instance else "")
        self.desc = comm.get("name") or "undefined"
        labels = self._labels(snapshot)
        self.is_known = labels is not None  # if some members are unknown, we omit the communicator
        if not self.is_known:
            return
        self.ranks = sorted(labels)
        order = sorted(range(self.nranks), key=labels.__getitem__)
        self.place = {comm_rank: place for place, comm_rank in enumerate(order)}
        # The first collective that we write; some members lack earlier ones.
        self.first_seq = max(map(self._first_seq, self.members.values()), default=0)
        self.oldest = {(comm_rank, op["kind"], op.get("peer", 0)): op.get("p2p_seq", 0)
                       for comm_rank, m in self.members.items()
                       for op in reversed(m.get("window", [])) if _is_p2p(op)}

    def _labels(self, snapshot):
        """The number of each member. Members that no node reported get the numbers that no member has."""
        ranks, expected = snapshot["ranks"], snapshot.get("ranks_expected", 0)
        labels = []
        for comm_rank in range(self.nranks):
            member = self.members.get(comm_rank)
            labels.append(_number_of(ranks[member["rank"]]) if member else None)
        if None not in labels:
            return labels
        if self.nranks != expected:
            return None
        missing = iter(sorted(set(range(expected)) - set(labels)))
        labels = [next(missing, None) if label is None else label for label in labels]
        return None if None in labels else labels

    @staticmethod
    def _first_seq(member):
        """The number of the member's oldest collective in the snapshot; 0 = none."""
        for op in member.get("window", []) + [member.get("pending"), member.get("last")]:
            if op and _is_counted(op):
                return op["coll_seq"]
        return 0

    def has_counterpart(self, me, op):
        """Whether the other side still has the counterpart of this call. We omit calls without one: sends and
        receives have no number that is equal on both ranks, so readers pair them by counting."""
        other, kind = op.get("peer", 0), RECV if op["kind"] == SEND else SEND
        first = self.oldest.get((other, kind, me), 0)
        if not first:
            posted = [p for p in self.members.get(other, {}).get("p2p", []) if p.get("peer", 0) == me]
            first = 1 + (posted[0].get("sends" if kind == SEND else "recvs", 0) if posted else 0)
        return op.get("p2p_seq", 0) >= first


class _Entry:
    """A call of a member, or the end of a coalesced launch, which carries the state of the launch."""

    def __init__(self, op, member, comm, pg_id):
        self.op, self.member, self.comm, self.pg_id = op, member, comm, pg_id
        self.p2p_seq = self.last_coll = 0
        self.ends_group = self.is_coalesced = False

    def order(self):
        return self.op["enter_ns"], self.pg_id, self.op.get("op_index", 0), self.ends_group

    def _state(self):
        op, member = self.op, self.member
        if self.is_coalesced and not self.ends_group:
            return "scheduled"  # members of a coalesced launch have no state of their own
        progress, seq = op.get("progress", 0), op.get("coll_seq", 0)
        if progress == COMPLETED:
            return "completed"
        if progress == REACHED:
            return "started"
        is_past = member.get("known", 0) & KNOWN_COMPLETED and 0 < seq <= member.get("coll_completed", 0)
        return "completed" if progress == PROGRESS_UNKNOWN and is_past else "scheduled"

    def _profiling_name(self):
        op, place = self.op, self.comm.place
        if self.ends_group:
            return "nccl:coalesced"
        if op["kind"] in COLLECTIVES:
            return "nccl:" + COLLECTIVES[op["kind"]]
        verb, arrow = ("send", "->") if op["kind"] == SEND else ("recv", "<-")
        return f"nccl:{verb} {place[self.member['comm_rank']]}{arrow}{place[op.get('peer', 0)]}"

    def _shapes(self):
        def sizes(times):
            """The sizes of one tensor. The entry that ends a launch has none."""
            total = count * times if count * times < 1 << 64 else count
            return [] if self.ends_group else [[min(total, INT64_MAX)]]

        count, kind, n = self.op.get("count", 0), self.op["kind"], self.comm.nranks
        dtypes = [] if self.ends_group else [DTYPES.get(self.op.get("dtype", 0), "Byte")]
        return {"input_sizes": sizes(n if kind in (REDUCE_SCATTER, ALL_TO_ALL) else 1),
                "input_dtypes": dtypes,
                "output_sizes": sizes(n if kind in (ALL_GATHER, ALL_TO_ALL) else 1),
                "output_dtypes": dtypes}

    def _times(self, snapshot):
        def to_wall(at_ns):
            return max(0, snapshot.get("wall_ns", 0) - snapshot.get("now_ns", 0) + at_ns)

        state = self._state()
        enter, end = to_wall(self.op["enter_ns"]), to_wall(self.op.get("return_ns", 0))
        # PyTorch gives a call a start time only if it tracks the device's progress. We do the same.
        is_timed = state != "scheduled" and self.member.get("known", 0) & KNOWN_REACHED
        is_done = state == "completed"
        return {"state": state, "time_created_ns": enter,
                "time_discovered_started_ns": enter or None if is_timed else None,
                "time_discovered_completed_ns": max(end, enter + 1) if is_done else None,
                "retired": is_done, "timeout_ms": TIMEOUT_MS}

    def document(self, record_id, snapshot):
        op = self.op
        is_p2p = op["kind"] in (SEND, RECV)
        # We do not write where the program made the call, so the list of frames is empty.
        return {"record_id": record_id, "pg_id": self.pg_id, "process_group": (self.comm.name, self.comm.desc),
                "collective_seq_id": (self.last_coll if is_p2p else op["coll_seq"]) & INT64_MAX,
                "p2p_seq_id": self.p2p_seq, "op_id": op.get("op_index", 0) & INT64_MAX,
                "profiling_name": self._profiling_name(), **self._shapes(), **self._times(snapshot),
                "is_p2p": is_p2p, "frames": []}


def _member_entries(member, comm, pg_id):
    """The entries of a member's calls. All sends and receives of one group launch share a number."""
    entries, p2p_seq, last_coll = [], 0, 0
    launch = None  # the newest entry of an open group launch of sends and receives

    def close_launch():
        nonlocal launch
        if launch:
            end = _Entry(launch.op, member, comm, pg_id)
            end.p2p_seq, end.last_coll, end.ends_group = launch.p2p_seq, launch.last_coll, True
            entries.append(end)
        launch = None

    window, pending, last = member.get("window", []), member.get("pending"), member.get("last")
    if not window:
        is_same = pending and last and last.get("op_index", 0) == pending.get("op_index", 0)
        window = [op for op in (pending, None if is_same else last) if op]
    for op in window:
        entry = _Entry(op, member, comm, pg_id)
        entry.last_coll = last_coll
        if op.get("enter_ns", 0) <= 0:
            continue
        if _is_p2p(op) and op.get("peer", 0) < comm.nranks:
            if not comm.has_counterpart(member["comm_rank"], op):
                continue
            group = op.get("group_id", 0) if op.get("flags", 0) & GROUPED else 0
            if not launch or not group or launch.op["group_id"] != group:
                close_launch()
                p2p_seq += 1
            entry.p2p_seq, entry.is_coalesced = p2p_seq, bool(group)
            launch = entry if group else launch
            entries.append(entry)
        elif _is_counted(op):
            close_launch()
            last_coll, entry.p2p_seq = op["coll_seq"], p2p_seq
            if op["coll_seq"] >= comm.first_seq:
                entries.append(entry)
    close_launch()
    return entries


def _dump(snapshot, rank, memberships):
    def counted(member, known, key):
        return member.get(key, 0) & INT64_MAX if member.get("known", 0) & known and member.get(key, 0) else -1

    nccl, nodes, node = rank.get("nccl_version", 0), snapshot["nodes"], rank.get("node", 0)
    version = f"{nccl // 10000}.{nccl // 100 % 100}.{nccl % 100}"
    entries = [e for pg_id, (comm, member) in enumerate(memberships) for e in _member_entries(member, comm, pg_id)]
    entries.sort(key=_Entry.order)
    return {
        "version": VERSION,
        # PyTorch renamed this key, so we write both names.
        "nccl_version": version, "comm_lib_version": version,
        "host_name": nodes[node].get("name", "") if node < len(nodes) else "",
        "rank": rank.get("rank", 0),
        "pg_config": {comm.name: {"name": comm.name, "desc": comm.desc,
                                  "ranks": "[" + ", ".join(map(str, comm.ranks)) + "]"}
                      for comm, _ in memberships},
        "pg_status": {str(i): {"last_enqueued_collective": counted(m, KNOWN_ENTERED, "coll_entered"),
                               "last_started_collective": counted(m, KNOWN_REACHED, "coll_reached"),
                               "last_completed_collective": counted(m, KNOWN_COMPLETED, "coll_completed")}
                      for i, (_, m) in enumerate(memberships)},
        "entries": [entry.document(i, snapshot) for i, entry in enumerate(entries)],
    }


def _dumps(snapshot, comms):
    """Yields (number of the rank, dump) for each rank that has a record and a number that readers accept."""
    memberships = {}
    for comm in comms:
        for _, member in sorted(comm.members.items()):
            memberships.setdefault(member["rank"], []).append((comm, member))
    for i, rank in enumerate(snapshot["ranks"]):
        if rank.get("flags", 0) & HAS_RECORD and _number_of(rank) is not None:
            yield _number_of(rank), _dump(snapshot, rank, memberships.get(i, []))


def write(snapshot, directory):
    """Writes DIRECTORY/nccl_trace_rank_N for each rank of a collwatch.snapshot/1. Creates the directory if it is
    missing, and overwrites no file. Returns how many dumps it wrote, how many ranks have none, and how many
    communicators it omitted because some members are unknown."""
    wall = snapshot.get("wall_ns", 0)
    comms = [comm for comm in (_Comm(snapshot, c) for c in snapshot["comms"]) if comm.is_known]
    n = 0
    try:
        os.mkdir(directory, 0o750)
    except FileExistsError:
        pass
    for number, dump in _dumps(snapshot, comms):
        path = os.path.join(directory, f"nccl_trace_rank_{number}")
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o640)
        with os.fdopen(fd, "wb") as out:
            out.write(pickle.dumps(dump, protocol=2))
        if wall > 0:  # readers take the file's time as the time of the dump
            os.utime(path, ns=(wall, wall))
        n += 1
    return n, len(snapshot["ranks"]) - n, len(snapshot["comms"]) - len(comms)


def read(*recordings):
    """The snapshot (collwatch.snapshot/1) of a bundle, of records, or of "--flight-recorder" and a directory."""
    done = subprocess.run([collwatch.command(), "analyze", "--snapshot", *recordings], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if not done.stdout:
        raise collwatch.Error(done.stderr.decode(errors="replace").strip() or f"collwatch ended with status {done.returncode}")
    return json.loads(done.stdout)


def _count(n, noun):
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def main():
    parser = argparse.ArgumentParser(prog="python3 -m collwatch.flight_recorder", add_help=True,
                                     description="Writes recordings as dumps of PyTorch's Flight Recorder, one per rank.")
    parser.add_argument("directory", help="directory to write the dumps to")
    parser.add_argument("--flight-recorder", metavar="DUMPS", help="read dumps of the Flight Recorder")
    parser.add_argument("recordings", nargs="*", metavar="BUNDLE|RECORD", help="a bundle, or flight records")
    args = parser.parse_args()
    recordings = ["--flight-recorder", args.flight_recorder] if args.flight_recorder else ["--", *args.recordings]
    try:
        n, n_without, n_unknown = write(read(*recordings), args.directory)
    except (collwatch.Error, OSError) as error:
        sys.exit(str(error))
    print(_count(n, "Flight Recorder dump") + f" written to {args.directory}")
    if n_without:
        print("no dump of " + _count(n_without, "rank") + " without number or record")
    if n_unknown:
        print(_count(n_unknown, "communicator") + " with unknown members omitted")


if __name__ == "__main__":
    main()
