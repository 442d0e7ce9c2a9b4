# SPDX-License-Identifier: Apache-2.0
"""Further workloads beside the plain loop of train_loop.py, all without faults."""

import ctypes
import time

NCCL_FLOAT = 7
SCALAR_ON_HOST = 1


class Plain:
    def __init__(self, trainer):
        self.trainer = trainer

    def step(self, step):
        pass

    def close(self):
        pass


class WithComm(Plain):
    """One more communicator, of the ranks with one colour."""

    name = "extra"

    def __init__(self, trainer):
        super().__init__(trainer)
        self.comm = trainer.world_comm.split(self.name, self.color(), trainer.rank)
        self.buffer = trainer.new_tensor(64)
        self.other = trainer.new_tensor(64)

    def color(self):
        return 0

    def close(self):
        self.comm.destroy()
        self.buffer.free()
        self.other.free()


class PipelineBubbles(WithComm):
    """Stages that compute in turn: at most times all but one wait."""

    name = "stages"

    def step(self, step):
        rank, last = self.trainer.rank, self.trainer.world - 1
        if rank > 0:
            self.comm.recv(self.buffer, rank - 1)
        self.trainer.device.synchronize()
        time.sleep(0.05)
        if rank < last:
            self.comm.send(self.buffer, rank + 1)
            self.comm.recv(self.other, rank + 1)
        if rank > 0:
            self.comm.send(self.other, rank - 1)
        self.trainer.device.synchronize()


class IdleExperts(WithComm):
    """Groups of experts with occasional work; one of them never has any."""

    name = "experts"

    def color(self):
        return self.trainer.rank % 2

    def step(self, step):
        if step % 50 == 10 and self.color() == 0:
            self.comm.all_reduce(self.buffer)


class PremulSum(WithComm):
    """A user-made operator: its handle and its factor differ between ranks."""

    name = "premul"

    def __init__(self, trainer):
        super().__init__(trainer)
        make = trainer.nccl.lib.ncclRedOpCreatePreMulSum
        make.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int,
                         ctypes.c_void_p]
        factor = ctypes.c_float(1 / (trainer.rank + 1))
        self.op = ctypes.c_int()
        for _ in range(trainer.rank + 1):
            trainer.nccl.call("ncclRedOpCreatePreMulSum", ctypes.byref(self.op),
                              ctypes.byref(factor), NCCL_FLOAT, SCALAR_ON_HOST, self.comm.handle)

    def step(self, step):
        self.comm.all_reduce(self.buffer, op=self.op)


class AllToAllV(WithComm):
    """Each pair exchanges a different number of elements, sometimes none."""

    name = "alltoallv"

    def step(self, step):
        rank, world = self.trainer.rank, self.trainer.world
        self.trainer.nccl.call("ncclGroupStart")
        for peer in range(world):
            self.comm.send(self.buffer, peer, self.count(rank, peer, step))
            self.comm.recv(self.other, peer, self.count(peer, rank, step))
        self.trainer.nccl.call("ncclGroupEnd")

    @staticmethod
    def count(source, target, step):
        return (source * 3 + target * 5 + step) % 7


class BigBroadcast(WithComm):
    """An occasional large broadcast, as when a job loads a checkpoint."""

    name = "weights"
    elements = 8 << 20

    def __init__(self, trainer):
        super().__init__(trainer)
        address = ctypes.c_uint64()
        trainer.device.call("cuMemAlloc_v2", ctypes.byref(address), 4 * self.elements)
        self.weights = address.value

    def step(self, step):
        if step % 20 != 5:
            return
        self.trainer.nccl.call("ncclBroadcast", self.weights, self.weights, self.elements,
                               NCCL_FLOAT, step // 20 % self.trainer.world, self.comm.handle,
                               self.trainer.device.stream)

    def close(self):
        super().close()
        self.trainer.device.call("cuMemFree_v2", self.weights)


class StaggeredDestroy(Plain):
    """Ranks that take different times to clean up."""

    def close(self):
        time.sleep(self.trainer.rank * 0.7)


WORKLOADS = {"plain": Plain, "pipeline-bubbles": PipelineBubbles, "idle-experts": IdleExperts,
             "premulsum": PremulSum, "alltoallv": AllToAllV, "big-broadcast": BigBroadcast,
             "staggered-destroy": StaggeredDestroy}
