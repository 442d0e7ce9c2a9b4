# SPDX-License-Identifier: Apache-2.0
"""The faults of train_loop.py: the rank, the step and the effect of each."""

import ctypes
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time

# Faults that last from their step to the end: no rank hangs, but the results are wrong.
SPOILING = ("wrong-redop", "feed-nan")
# Faults with differing calls that NCCL may complete, with meaningless numbers.
DIFFERING = ("wrong-count", "wrong-op", "wrong-root", "wrong-dtype", "skip-op", "extra-op")
KINDS = ("block-in-data-loader", "wrong-count", "kill-self", "wrong-op", "wrong-root", "skip-op",
         "extra-op", "stop-self", "hold-gil", "block-stream", "wrong-dtype",
         "skip-recv", "swap-comms", "wait-for-child", "debug", "long-kernel",
         "eat-memory", "write-checkpoint", "never-init", "evaluate", "await-request", "raise",
         "gpu-dies", *SPOILING)

# Stands for a compiler: only its run time matters to the waiting process.
BUSY = "import time; end = time.monotonic() + {}\nwhile time.monotonic() < end: pass"
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
PR_SET_PTRACER = 0x59616d61


def stop_like_a_debugger(pid, seconds):
    """Stops a process for a while; it continues when this one ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(PTRACE_SEIZE, pid, None, None) or libc.ptrace(PTRACE_INTERRUPT, pid, None, None):
        sys.exit(f"ptrace: {os.strerror(ctypes.get_errno())}")
    os.waitpid(pid, 0x40000000)  # __WALL
    time.sleep(seconds)


def write_for(path, seconds):
    """Writes a large model, or to slow storage: each piece is on the disk before the next."""
    end = time.monotonic() + seconds
    with open(path, "wb") as checkpoint:
        while time.monotonic() < end:
            checkpoint.seek(0)
            checkpoint.write(os.urandom(4096) * 64)
            checkpoint.flush()
            os.fsync(checkpoint.fileno())
            time.sleep(0.05)


def evaluate(seconds):
    """Runs the model on the validation set: host work without NCCL calls."""
    end, total = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        total += sum(i * i % 7 for i in range(10000))
    return total


def receive_request(seconds):
    """Waits for a client's request, as a rank does that gets its work from outside."""
    client, server = socket.socketpair()
    requests = queue.Queue()
    ways = (  # different servers use different ones
        (lambda: client.sendall(b"?"), lambda: server.recv(1)),
        (lambda: client.sendall(b"?"), lambda: select.select([server], [], [], 2 * seconds)),
        (lambda: requests.put("?"), requests.get),
    )
    send, receive = ways[os.getpid() % len(ways)]
    request = threading.Timer(seconds, send)
    request.start()
    receive()
    request.join()
    for end in (client, server):
        end.close()


class Watchdog(threading.Thread):
    """Works like PyTorch's: ends its rank if a collective takes too long, or NCCL has an error.

    If a file announces the fault, time counts from that moment: before it, a slow rank only has a
    slow machine.
    """

    def __init__(self, seconds, fault_file, has_failed):
        super().__init__(name="watchdog", daemon=True)
        self.seconds, self.fault_file, self.has_failed = seconds, fault_file, has_failed
        self.since = None  # the start of the wait for the device
        self.counts_from = None if fault_file else 0.0
        self.start()

    def run(self):
        while True:
            time.sleep(0.2)
            since, now = self.since, time.monotonic()
            if self.counts_from is None and os.path.exists(self.fault_file):
                self.counts_from = now
            if (since and self.counts_from is not None
                    and now - max(since, self.counts_from) > self.seconds):
                self.end(f"a collective has not completed for {self.seconds} s")
            if self.has_failed():
                time.sleep(2)  # time to write its log and to notify others
                self.end("NCCL reports an error")

    @staticmethod
    def end(why):
        print(f"watchdog: {why}, aborting", file=sys.stderr, flush=True)
        os.abort()


class Fault:
    def __init__(self, args, rank):
        self.kind = args.fault
        self.step = args.fault_step
        self.culprit = args.fault_rank
        self.is_here = rank == args.fault_rank
        self.file = args.fault_file
        self.seconds = args.fault_seconds
        self.path = args.fault_path
        self.rank = rank
        self.is_announced = False

    def strikes(self, kind, step):
        """True if this fault strikes this rank in this step; then announces it."""
        if self.kind != kind or not self.is_here:
            return False
        if step != self.step and not (kind in SPOILING and step > self.step):
            return False
        if not self.is_announced:
            self.announce(step)
        return True

    def announce(self, step):
        self.is_announced = True
        if self.file:
            with open(self.file + ".tmp", "w", encoding="ascii") as f:
                f.write(f"{time.monotonic_ns()}\n")
            os.rename(self.file + ".tmp", self.file)
        print(f"fault: rank {self.rank} step {step} {self.kind}", file=sys.stderr, flush=True)

    def absent_rank(self, rank):
        """True if that rank never reaches NCCL."""
        return self.kind == "never-init" and rank == self.culprit

    def before_nccl(self):
        if self.absent_rank(self.rank):
            self.announce(0)
            source, self.writer = os.pipe()
            os.read(source, 1)  # a data set that is never indexed

    def spoils_norms(self, step):
        """True if some rank corrupts the norms."""
        return self.kind in SPOILING and step >= self.step

    def spoils_all(self, step):
        """True if no number is reliable any more. Most programs would not notice."""
        return self.kind in DIFFERING and step >= self.step

    def before_step(self, step):
        """Called while the stream is idle and the rank is outside NCCL."""
        if self.strikes("stop-self", step):
            os.kill(os.getpid(), signal.SIGSTOP)
        if self.strikes("hold-gil", step):
            ctypes.PyDLL(None).pause()  # like a C extension that forgets to release the GIL
        if self.strikes("raise", step):
            raise ValueError(f"step {step}: the sample is damaged")
        if self.strikes("evaluate", step):
            evaluate(self.seconds)
        if self.strikes("wait-for-child", step):
            subprocess.run([sys.executable, "-c", BUSY.format(self.seconds)], check=True)
        if self.strikes("debug", step):
            ctypes.CDLL(None).prctl(PR_SET_PTRACER, -1, 0, 0, 0)
            subprocess.Popen([sys.executable, __file__, str(os.getpid()), str(self.seconds)])
        if self.strikes("write-checkpoint", step):
            write_for(self.path, self.seconds)

    def hands_out_requests(self, step):
        """True if one rank gives all others their work before this step."""
        return self.kind == "await-request" and step == self.step

    def await_request(self, step):
        if self.strikes("await-request", step):
            receive_request(self.seconds)

    def before_norms(self, step, device):
        """Makes the device die in the next collective: the simulator checks for that file."""
        if self.kind == "gpu-dies" and self.is_here and step == self.step:
            device.synchronize()
            with open(self.path, "w", encoding="ascii"):
                self.strikes(self.kind, step)

    def in_step(self, step, device):
        """Called before the collectives over all ranks."""
        if self.strikes("kill-self", step):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.strikes("eat-memory", step):
            self.eaten = []
            while True:  # up to the limit of its control group
                self.eaten.append(bytearray(os.urandom(4096) * 1024))
        if self.strikes("block-stream", step):
            self.semaphore = ctypes.create_string_buffer(64)  # sem_t, at zero
            wait = ctypes.CDLL(None).sem_wait
            device.call("cuLaunchHostFunc", device.stream, ctypes.cast(wait, ctypes.c_void_p),
                        self.semaphore)
        if self.kind == "long-kernel" and step == self.step:
            self.strikes(self.kind, step)
            sleep = ctypes.cast(ctypes.CDLL(None).sleep, ctypes.c_void_p)
            device.call("cuLaunchHostFunc", device.stream, sleep, self.seconds)


if __name__ == "__main__":
    stop_like_a_debugger(int(sys.argv[1]), int(sys.argv[2]))
