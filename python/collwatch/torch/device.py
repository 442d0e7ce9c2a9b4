# SPDX-License-Identifier: Apache-2.0
"""Numbers of tensors on a GPU by one launch of the agent's kernel, where torch's reductions are a dozen.

Rows of numbers stand behind each other in memory of the device, written in the order of the stream that the
tensor is used on, and are copied on that stream, all at once. So nothing waits for another stream.
"""

import ctypes
import threading

import torch

import collwatch
from collwatch.torch import stats

_ROWS = 1024
_FIELDS = 5  # struct cw_sum_numbers: low, high, least, mean, norm; as stats.FIELDS
_ROW_BYTES = 8 * _FIELDS
# ncclDataType_t
_TYPES = {name: number for name, number in (("float16", 6), ("float32", 7), ("float64", 8), ("bfloat16", 9),
                                            ("float8_e4m3fn", 10), ("float8_e5m2", 11))}
_CODES = {getattr(torch, name): code for name, code in _TYPES.items() if hasattr(torch, name)}


def _raw_stream():
    """A function that tells the handle of a device's current stream: the quick one, which torch's compiler calls."""
    quick = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return quick or (lambda index: torch.cuda.current_stream(index).cuda_stream)


class Block:
    """Rows of one stream."""

    def __init__(self, index):
        self.stream = torch.cuda.current_stream(index)
        with torch.inference_mode(False):
            self.rows = torch.empty((_ROWS, _FIELDS), dtype=torch.float64, device=torch.device("cuda", index))
        self.address, self.used = self.rows.data_ptr(), 0

    def copy(self):
        """(rows on their way to the processor, what tells that they have come)"""
        with torch.cuda.stream(self.stream):
            found = self.rows[:self.used].to("cpu", non_blocking=True)
            event = torch.cuda.Event()
            event.record(self.stream)
        return found, event


class Kernel:
    """Asks for the kernel; where it is not there, of() gives None."""

    def __init__(self):
        self._take = collwatch._agent("collwatch_numbers", ctypes.c_bool, ctypes.c_uint64, ctypes.c_uint64,
                                      ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64)
        self._load = collwatch._agent("collwatch_numbers_load", ctypes.c_bool)
        self._stream = _raw_stream() if self._take else None
        self._blocks, self._full, self._lock = {}, [], threading.Lock()

    def load(self):
        """Before training: waits until the device has nothing to do, for loading can block behind what runs there.
        Where no communicator was made yet, the agent loads it with the first."""
        if not self._load:
            return
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        self._load()

    def of(self, x):
        """(Block, row) of a tensor with elements, or None."""
        code = _CODES.get(x.dtype) if self._take and x.is_cuda else None
        if code is None:
            return None
        index = x.get_device()
        if index != torch.cuda.current_device():
            return None  # its context is not the current one
        stream = self._stream(index)
        x = stats.flat(x).contiguous()  # a copy is given back, and taken by others, in the stream's order
        with self._lock:
            block = self._blocks.get((index, stream))
            if block is None or block.used == _ROWS:
                if block is not None:
                    self._full.append(block)
                block = self._blocks[index, stream] = Block(index)
            if not self._take(x.data_ptr(), x.numel(), code, stream, block.address + block.used * _ROW_BYTES):
                return None
            block.used += 1
            return block, block.used - 1

    def take_blocks(self):
        """All blocks that have rows; what comes next goes into others."""
        with self._lock:
            found = self._full + [b for b in self._blocks.values() if b.used]
            self._blocks, self._full = {}, []
        return found
