# SPDX-License-Identifier: Apache-2.0
"""Numbers of one tensor: reductions, all on its device."""

import math
import threading

import torch

#: The fields of a row of of().
FIELDS = ("min", "max", "absmin", "mean", "l2")
_WIDE = (torch.float32, torch.float64)


def plain(x):
    """The elements of a tensor as a strided one, or None if it has none to look at."""
    if hasattr(x, "to_local"):  # a DTensor: this rank's part
        x = x.to_local()
    x = x.detach()
    if x.layout != torch.strided:
        x = x._values() if x.layout == torch.sparse_coo else x.values()
    if x.is_complex():
        x = torch.view_as_real(x)
    if not x.is_floating_point() or x.is_meta or x.numel() == 0:
        return None
    return x


# By the size of an element: the integer type of its bits, all bits but the sign, and the bits of infinity.
_BITS = {4: (torch.int32, 0x7fffffff, 0x7f800000), 8: (torch.int64, (1 << 63) - 1, 0x7ff << 52)}


# We process this many elements at a time, in memory that we keep: new pages cost more than the computation.
_PIECE = 1 << 19
_here = threading.local()


def _scratch(integers):
    found = getattr(_here, "scratch", None)
    if found is None:
        found = _here.scratch = {}
    if integers not in found:
        with torch.inference_mode(False):  # otherwise no code outside inference mode may write to it
            found[integers] = torch.empty(_PIECE, dtype=integers, device="cpu")
    return found[integers]


def flat(x):
    """The elements in the order of memory, because our reductions do not depend on their order."""
    if x.is_contiguous():
        return x.view(-1)
    expected = 1
    for stride, size in sorted(zip(x.stride(), x.shape)):
        if size != 1 and stride != expected:
            return x.reshape(-1)
        expected *= size
    return x.as_strided((x.numel(),), (1,), x.storage_offset())


def _least(numbers):
    """The smallest absolute value except zero, of float32 or float64 on the processor; inf if there is none.

    Without their sign, magnitudes are ordered like the integers of their bits. After subtracting one, both
    zeros become the largest of all: this takes two passes, where a mask takes four.
    """
    integers, magnitude, infinity = _BITS[numbers.element_size()]
    scratch, least = _scratch(integers), magnitude
    for piece in numbers.view(integers).split(_PIECE):
        bits = scratch[:piece.numel()]
        torch.sub(piece, 1, out=bits)
        least = min(least, int(bits.bitwise_and_(magnitude).amin()))
    if least + 1 >= infinity:
        return math.inf
    return float(torch.tensor(least + 1, dtype=integers, device="cpu").view(numbers.dtype))


def _on_processor(x):
    """As of(), without the norm. Results are available at once on the processor, so we make just one row."""
    numbers = flat(x)
    low, high = (float(v) for v in torch.aminmax(numbers))
    total = float(numbers.sum())
    if not math.isfinite(total) and math.isfinite(low) and math.isfinite(high):
        total = float(numbers.sum(dtype=torch.float64))
    return torch.tensor([low, high, _least(numbers), total / x.numel(), 0.0], dtype=torch.float64, device="cpu")


def of(x, has_norm):
    """[min, max, smallest absolute but zero (inf: all are zero), mean, norm]; a NaN in x makes min and max NaN.

    x: the result of plain(). Without has_norm the norm is 0.
    """
    if x.dtype not in _WIDE and (x.device.type == "cpu" or x.element_size() == 1):
        x = x.float()  # some processors have no reductions for the small formats
    if x.device.type == "cpu" and not has_norm:
        return _on_processor(x)
    low, high = torch.aminmax(x)
    size = x.abs()
    least = size.masked_fill_(~(size > 0), float("inf")).amin()
    wide = torch.float64 if x.device.type in ("cpu", "cuda") else torch.float32
    total = x.sum(dtype=wide)
    norm = torch.linalg.vector_norm(x, dtype=wide) if has_norm else torch.zeros_like(total)
    return torch.stack([low.to(wide), high.to(wide), least.to(wide), total / x.numel(), norm])
