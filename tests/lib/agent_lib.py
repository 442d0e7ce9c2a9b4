# SPDX-License-Identifier: Apache-2.0
"""The common parts of the agent's tests: a stand-in for the daemon's side of the socket, a reader
of flight records (offsets as in lib/record/record_layout.h), and a way to start programs with the
agent preloaded.

We write and read the messages by hand here on purpose: the agent's encoder must not be checked with
the encoder of the same library.
"""
import os
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import time

from built import AGENT, SIM_DIR
from waiting import expect as check
from waiting import wait_until  # for modules that import all of this

KIND = {1: "all_reduce", 2: "broadcast", 3: "reduce", 4: "all_gather", 5: "reduce_scatter",
        6: "all_to_all", 7: "gather", 8: "scatter", 16: "send", 17: "recv", 32: "init",
        33: "split", 34: "shrink", 36: "finalize", 37: "destroy", 38: "abort"}
STATE = ["free", "init", "ready", "finalizing", "destroyed", "aborted", "failed", "revoked"]
RETURNED, GROUPED, QUEUED, DROPPED, CAPTURED, IN_PLACE, NO_COUNT, IN_PROGRESS = (
    1 << i for i in range(8))
HAS_PROGRESS, HAS_SUMMARIES, HAS_PYTHON = 1 << 0, 1 << 1, 1 << 5
NO_SLOT = 0xffff
PROFILER = 1 << 3  # of a communicator


# ---- protobuf, the little that is needed ----

def varint(n):
    out = b""
    while n > 0x7f:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def envelope(body, message):
    payload = field(1, 1) + field(body, message)
    return struct.pack(">I", len(payload)) + payload


def parse(data):
    fields, at = {}, 0

    def number():
        nonlocal at
        n = shift = 0
        while True:
            b = data[at]
            at += 1
            n |= (b & 0x7f) << shift
            shift += 7
            if not b & 0x80:
                return n

    while at < len(data):
        key = number()
        if key & 7 == 0:
            fields[key >> 3] = number()
        elif key & 7 == 2:
            size = number()
            fields[key >> 3] = data[at:at + size]
            at += size
        else:
            raise AssertionError("wire type %d" % (key & 7))
    return fields


HELLO, WELCOME, REFUSED, STACKS_REQUEST, STACKS_REPLY = 10, 11, 12, 13, 14


class Agent:
    """One accepted connection."""

    def __init__(self, conn):
        self.conn = conn
        self.buf = b""
        conn.settimeout(120)
        data, fds, _, _ = socket.recv_fds(conn, 65536, 4)
        check(len(fds) == 1, "one descriptor with the first byte, got %d" % len(fds))
        self.fd = fds[0]
        self.buf = data
        self.pid = struct.unpack("3i", conn.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED,
                                                       12))[0]
        self.hello = parse(self.message()[HELLO])

    def message(self):
        while len(self.buf) < 4 or len(self.buf) < 4 + struct.unpack(">I", self.buf[:4])[0]:
            data = self.conn.recv(65536)
            if not data:
                raise EOFError
            self.buf += data
        size = struct.unpack(">I", self.buf[:4])[0]
        payload, self.buf = self.buf[4:4 + size], self.buf[4 + size:]
        return parse(payload)

    def welcome(self):
        self.conn.sendall(envelope(WELCOME, field(1, 1) + field(2, b"test")))
        return self

    def refuse(self):
        self.conn.sendall(envelope(REFUSED, field(1, b"not today")))

    def python_stacks(self, number):
        self.conn.sendall(envelope(STACKS_REQUEST, field(1, number)))
        reply = parse(self.message()[STACKS_REPLY])
        check(reply.get(1) == number, "the reply carries the request's id")
        return reply.get(2, 0), reply.get(3, b"").decode("utf-8")

    def record(self):
        return Record(self.fd)

    def close(self):
        self.conn.close()


class StandIn:
    """Listens like collwatchd, on a private socket."""

    def __init__(self, backlog=64):
        self.dir = tempfile.mkdtemp(prefix="cw-agent-")
        self.path = os.path.join(self.dir, "agent.sock")
        self.backlog = backlog
        self.sock = None
        self.listen()

    def listen(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.sock.bind(self.path)
        self.sock.listen(self.backlog)

    def accept(self, seconds=120, program=None):
        """The next agent; where `program` is the one it is in, does not wait longer than that runs."""
        end = time.monotonic() + seconds
        while True:
            has_ended = program is not None and program.poll() is not None
            if select.select([self.sock], [], [], 0 if has_ended else 0.1)[0]:
                return Agent(self.sock.accept()[0])
            check(not has_ended, "ended with %s before an agent connected"
                  % (program and program.returncode))
            check(time.monotonic() < end, "no agent connected within %d s" % seconds)

    def stop(self):
        if self.sock:
            self.sock.close()
            self.sock = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)


class Op:
    def __init__(self, raw):
        (self.publish, self.op_index, self.seq, self.enter_ns, self.return_ns, self.count,
         self.bytes, self.send, self.recv, self.stream, self.kind, self.dtype, self.redop, _,
         self.root_or_peer, self.group, self.tid, self.comm, self.result, self.flags, self.slot,
         self.module, self.comm_generation, self.call_offset, self.stack, self.summary,
         self.replay, self.device_ns) = struct.unpack("=10Q4BiIIHhHHHHIIIII", raw)
        self.name = KIND.get(self.kind, "op-%d" % self.kind)


class Comm:
    def __init__(self, raw, index):
        self.index = index
        (self.seqlock, self.id, self.parent, self.nccl_hash, self.instance, self.generation,
         state, self.nranks, self.rank, self.device, self.ordinal, self.color, self.entered,
         self.returned, self.hash, self.op_index, self.op_returned, self.ring_ticket, self.sends,
         self.recvs, self.p2p_dropped, self.p2p_block, self.flags, self.async_error,
         self.last_result, self.created, self.ready, self.last_enter, self.last_return, self.ended,
         self.checkpoint_ticket) = struct.unpack_from("=4Q4I2iIi9QIIii6Q", raw)
        self.state = STATE[state]
        at = struct.calcsize("=4Q4I2iIi9QIIii6Q")
        self.checkpoints = [struct.unpack_from("=2Q", raw, at + 16 * i) for i in range(16)]
        self.name = raw[at + 256:at + 288].split(b"\0")[0].decode()
        self.last_error = raw[at + 288:at + 384].split(b"\0")[0].decode()
        ops = [Op(raw[960 + 128 * i:960 + 128 * (i + 1)]) for i in range(32)]
        self.ops = sorted((o for o in ops if o.publish), key=lambda o: o.publish)


class Record:
    """A copy of a record, taken at once."""

    def __init__(self, fd):
        size = os.fstat(fd).st_size
        self.raw = os.pread(fd, size, 0)
        h = self.raw
        self.magic, self.version, self.header_bytes, self.total = struct.unpack_from("=QIIQ", h, 0)
        self.state, self.has, self.pid, self.clock = struct.unpack_from("=4I", h, 24)
        self.start_ticks, self.wall, self.created = struct.unpack_from("=3Q", h, 40)
        (self.beat, self.rank_label, self.world_label, self.local_label, self.nccl_version,
         self.driver_version, self.comms_used, self.env_hash, self.ops_total, self.ops_at_beat,
         self.group_ticket, self.step, self.step_ns) = struct.unpack_from("=QiiiIIIQQQQqQ", h, 88)
        self.drops = struct.unpack_from("=16Q", h, 168)
        self.host_call = struct.unpack_from("=3Q", h, 296)
        text = lambda at, n: h[at:at + n].split(b"\0")[0].decode()
        self.job, self.rank_source = text(320, 128), text(448, 32)
        self.master, self.policy = text(480, 128), text(608, 16)
        self.interpreter = struct.unpack_from("=2Q", h, 2400)  # address, bytes
        self.sections = {}
        for i in range(16):
            kind, entry, count, _, offset, _ = struct.unpack_from("=4I2Q", h, 624 + 32 * i)
            if kind:
                self.sections[kind] = (offset, entry, count)
        check(self.magic == 0x3144524345525743, "magic")

    def entries(self, section):
        offset, entry, count = self.sections[section]
        for i in range(count):
            yield self.raw[offset + i * entry:offset + (i + 1) * entry]

    def comms(self):
        return [Comm(raw, i) for i, raw in enumerate(self.entries(1)) if i < self.comms_used]

    def ring(self):
        ops = [Op(raw) for raw in self.entries(2)]
        return sorted((o for o in ops if o.publish), key=lambda o: o.publish)

    def p2p(self, comm):
        """{peer: (sends, receives, send hash, receive hash)}"""
        block = list(self.entries(3))[comm.p2p_block - 1] if comm.p2p_block else b""
        peers = {}
        for i in range(256 if block else 0):
            peer, _, sends, recvs, h0, h1 = struct.unpack_from("=II4Q", block, 64 + 40 * i)
            if peer:
                peers[peer - 1] = (sends, recvs, h0, h1)
        return peers

    def progress(self, slot):
        offset, entry, _ = self.sections[5]
        return struct.unpack_from("=II", self.raw, offset + slot * entry)

    def summaries(self):
        """([the first with NaN or infinity of each device], [the others by number])"""
        keys = ("number", "op_index", "seq", "comm", "generation", "kind", "dtype", "is_output", "stride",
                "device_ns", "elements", "offered", "nans", "infs", "zeros", "abs_max", "abs_min",
                "mean", "l2", "checksum", "step", "at_limit", "denormal")
        all_of_them = [dict(zip(keys, struct.unpack_from("=3Q2I4BI5Q4dQI2H", raw)))
                       for raw in self.entries(9)]
        return ([s for s in all_of_them[:8] if s["number"]],
                sorted((s for s in all_of_them[8:] if s["number"]), key=lambda s: s["number"]))

    def build_ids(self):
        """{end of the path: build-id in hex}"""
        return {raw[29:].split(b"\0")[0].decode(): raw[8:8 + raw[28]].hex()
                for raw in self.entries(6) if raw[:8] != bytes(8)}

    def modules(self):
        return [raw[29:].split(b"\0")[0].decode() for raw in self.entries(6) if raw[:8] != bytes(8)]


def copies(directory):
    """The records that processes left there as they ended (COLLWATCH_RECORD), by their rank's
    label. For programs that end by themselves only these are certain. A short program may have
    ended before its helper thread got a processor, and has been at no daemon."""
    records = []
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), "rb") as f:
            records.append(Record(f.fileno()))
    return sorted(records, key=lambda r: r.rank_label)


def environment(daemon=None, preload=AGENT, **extra):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("COLLWATCH_", "CW_"))}
    env["LD_LIBRARY_PATH"] = SIM_DIR
    if preload:
        env["LD_PRELOAD"] = preload
    env["COLLWATCH_SOCKET"] = daemon.path if daemon else "/nonexistent/collwatch.sock"
    env.update(extra)
    return env


def has_kernels():
    """Those of tensor summaries: the build had nvcc or clang."""
    return any(os.path.exists(os.path.join(os.path.dirname(AGENT), "cuda/summary_kernel." + end))
               for end in ("fatbin", "ptx"))


def start(argv, env, **kwargs):
    return subprocess.Popen(argv, env=env, stdin=kwargs.pop("stdin", subprocess.DEVNULL), **kwargs)
