# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in train_loop.py: which rank, in which step, and how."""

import ctypes
import os
import signal
import subprocess
import sys
import time

# Those that go on from their step to the end: nothing hangs, the results are wrong.
SPOILING = ("wrong-redop", "feed-nan")
KINDS = ("block-in-data-loader", "wrong-count", "kill-self", "wrong-op", "wrong-root", "skip-op",
         "extra-op", "stop-self", "hold-gil", "block-stream", "wrong-dtype",
         "skip-recv", "swap-comms", "wait-for-child", "debug", "long-kernel",
         "eat-memory", "write-checkpoint", "never-init", *SPOILING)

# A compiler, as far as a process that waits for one is concerned.
BUSY = "import time; end = time.monotonic() + {}\nwhile time.monotonic() < end: pass"
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
PR_SET_PTRACER = 0x59616d61


def stop_like_a_debugger(pid, seconds):
    """Holds a process for a while; it runs on when this one ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(PTRACE_SEIZE, pid, None, None) or libc.ptrace(PTRACE_INTERRUPT, pid, None, None):
        sys.exit(f"ptrace: {os.strerror(ctypes.get_errno())}")
    os.waitpid(pid, 0x40000000)  # __WALL
    time.sleep(seconds)


def write_for(path, seconds):
    """A large model, or slow storage: one piece after the other, each on the disk before the next."""
    end = time.monotonic() + seconds
    with open(path, "wb") as checkpoint:
        while time.monotonic() < end:
            checkpoint.seek(0)
            checkpoint.write(os.urandom(4096) * 64)
            checkpoint.flush()
            os.fsync(checkpoint.fileno())
            time.sleep(0.05)


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
        """Whether this rank does that wrong in this step; if so, says it."""
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
        """Whether that rank never gets as far as NCCL."""
        return self.kind == "never-init" and rank == self.culprit

    def before_nccl(self):
        if self.absent_rank(self.rank):
            self.announce(0)
            source, self.writer = os.pipe()
            os.read(source, 1)  # a data set that is never indexed

    def spoils_norms(self, step):
        """Whether some rank makes the norms wrong."""
        return self.kind in SPOILING and step >= self.step

    def before_step(self, step):
        """Where the stream is idle and the rank is outside NCCL."""
        if self.strikes("stop-self", step):
            os.kill(os.getpid(), signal.SIGSTOP)
        if self.strikes("hold-gil", step):
            ctypes.PyDLL(None).pause()  # as a C extension that forgets to let go of the GIL

        if self.strikes("wait-for-child", step):
            subprocess.run([sys.executable, "-c", BUSY.format(self.seconds)], check=True)
        if self.strikes("debug", step):
            ctypes.CDLL(None).prctl(PR_SET_PTRACER, -1, 0, 0, 0)
            subprocess.Popen([sys.executable, __file__, str(os.getpid()), str(self.seconds)])
        if self.strikes("write-checkpoint", step):
            write_for(self.path, self.seconds)

    def in_step(self, step, device):
        """Before the collectives over all ranks."""
        if self.strikes("kill-self", step):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.strikes("eat-memory", step):
            self.eaten = []
            while True:  # as far as its control group lets it
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
