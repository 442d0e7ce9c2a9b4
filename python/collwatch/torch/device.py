# SPDX-License-Identifier: Apache-2.0
"""Computes a GPU tensor's numbers with one launch of the agent's kernel; torch needs a dozen reductions.

Rows of numbers lie one behind the other in device memory. The kernel writes them in the order of the stream
that uses the tensor, and we copy them on that stream, all at once. So no stream waits for another.
"""

import ctypes
import threading

import torch

import collwatch
from collwatch.torch import stats

_ROWS = 1024
_FIELDS = 5  # struct cw_sum_tensor_stats: low, high, least, mean, norm; as stats.FIELDS
_ROW_BYTES = 8 * _FIELDS
# ncclDataType_t
_TYPES = {name: number for name, number in (("float16", 6), ("float32", 7), ("float64", 8), ("bfloat16", 9),
                                            ("float8_e4m3fn", 10), ("float8_e5m2", 11))}
_CODES = {getattr(torch, name): code for name, code in _TYPES.items() if hasattr(torch, name)}


def _raw_stream():
    """Returns a function for the handle of a device's current stream: the fast one of torch's compiler."""
    quick = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return quick or (lambda index: torch.cuda.current_stream(index).cuda_stream)


class Block:
    """The rows of one stream."""

    def __init__(self, index):
        self.stream = torch.cuda.current_stream(index)
        with torch.inference_mode(False):
            self.rows = torch.empty((_ROWS, _FIELDS), dtype=torch.float64, device=torch.device("cuda", index))
        self.address, self.used = self.rows.data_ptr(), 0

    def copy(self):
        """Starts a copy; returns (rows on their way to the host, event of their arrival)."""
        with torch.cuda.stream(self.stream):
            found = self.rows[:self.used].to("cpu", non_blocking=True)
            event = torch.cuda.Event()
            event.record(self.stream)
        return found, event


class Kernel:
    """Finds the kernel; without it, of() returns None."""

    def __init__(self):
        self._take = collwatch._agent("collwatch_tensor_stats", ctypes.c_bool, ctypes.c_uint64, ctypes.c_uint64,
                                      ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64)
        self._load = collwatch._agent("collwatch_tensor_stats_load", ctypes.c_bool)
        self._stream = _raw_stream() if self._take else None
        self._blocks, self._full, self._lock = {}, [], threading.Lock()

    def load(self):
        """Call it before training: it waits until the device is idle, because loading can block behind
        running work. If no communicator exists yet, the agent loads the kernel with the first one."""
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
            return None  # the tensor's context is not the current one
        stream = self._stream(index)
        x = stats.flat(x).contiguous()  # freeing a copy here is safe: its memory is reused in stream order
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
        """Returns all blocks that have rows; later rows go into new blocks."""
        with self._lock:
            found = self._full + [b for b in self._blocks.values() if b.used]
            self._blocks, self._full = {}, []
        return found
