# SPDX-License-Identifier: Apache-2.0
"""Numbers of one tensor: four reductions, all on its device, read by nobody here."""

import torch

#: What a row of of() holds.
FIELDS = ("min", "max", "absmin", "mean", "l2")
_WIDE = (torch.float32, torch.float64)


def plain(x):
    """The numbers of a tensor as a strided one, or None where it has none to look at."""
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


def of(x, has_norm):
    """[min, max, smallest absolute but zero (inf: all are zero), mean, norm]; NaN in x makes the first two NaN.

    x: what plain() gave. Without has_norm the norm is 0.
    """
    if x.dtype not in _WIDE and (x.device.type == "cpu" or x.element_size() == 1):
        x = x.float()  # not all processors' reductions know the small formats
    low, high = torch.aminmax(x)
    size = x.abs()
    least = size.masked_fill_(~(size > 0), float("inf")).amin()
    wide = torch.float64 if x.device.type in ("cpu", "cuda") else torch.float32
    total = x.sum(dtype=wide)
    norm = torch.linalg.vector_norm(x, dtype=wide) if has_norm else torch.zeros_like(total)
    return torch.stack([low.to(wide), high.to(wide), least.to(wide), total / x.numel(), norm])
