# SPDX-License-Identifier: Apache-2.0
"""Compares weights and optimizer state that must be equal in all members of a group, bit for bit.

A checksum is a sum of mixed words and positions, modulo 2^64: it does not depend on the order in which a
device adds.
"""

import zlib

import torch
import torch.distributed as dist

_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_CHUNK = 1 << 22
SLOTS = 8192


def _mix(v):
    # From splitmix64. Shifts of signed numbers copy the sign, on every device alike.
    v = (v ^ (v >> 30)) * -4658895280553007687
    v = (v ^ (v >> 27)) * -7723592293110705685
    return v ^ (v >> 31)


def checksum(x):
    """Returns a tensor of one number, on the device of x."""
    if hasattr(x, "to_local"):
        x = x.to_local()
    x = x.detach().contiguous()
    if x.is_complex():
        x = torch.view_as_real(x)
    if x.dtype == torch.bool:
        x = x.to(torch.uint8)
    words = x.view(-1).view(_WORDS[x.element_size()])
    total = torch.zeros((), dtype=torch.int64, device=x.device)
    for at in range(0, words.numel(), _CHUNK):
        part = words[at:at + _CHUNK].to(torch.int64)
        place = torch.arange(at, at + part.numel(), dtype=torch.int64, device=x.device)
        total = total + _mix(part + _mix(place + 1)).sum()
    return total


def named_state(model, optimizer):
    """(name, tensor): parameters and buffers, then the optimizer's state of each parameter."""
    found = [(n, p) for n, p in model.named_parameters()]
    names = {id(p): n for n, p in found}
    if optimizer is not None:
        for p, state in optimizer.state.items():
            for key in sorted(state, key=str):
                if isinstance(state[key], torch.Tensor) and state[key].numel():
                    found.append(("%s of %s" % (key, names.get(id(p), "a parameter")), state[key]))
    return found


class Replicas:
    """Compares at the same steps on all members; the result is read a step later."""

    def __init__(self, model, optimizer, group, every):
        self.model, self.optimizer, self.every = model, optimizer, every
        self.group = None if group is True else group
        self._under_way = None

    def start(self, step):
        state = named_state(self.model, self.optimizer)
        if not state or self._under_way:
            return
        device = state[0][1].device
        # Every member sends the same amount of numbers, even if its state differs: otherwise members hang.
        slots = [zlib.crc32(n.encode()) % SLOTS for n, _ in state]
        mine = torch.zeros(SLOTS, dtype=torch.int64, device=device)
        mine.index_add_(0, torch.tensor(slots, device=device),
                        torch.stack([checksum(x).to(device) for _, x in state]))
        rows = [torch.empty_like(mine) for _ in range(dist.get_world_size(self.group))]
        work = dist.all_gather(rows, mine, group=self.group, async_op=True)
        self._under_way = (step, [n for n, _ in state], slots, rows, work)

    def finish(self, is_last=False):
        """The fields of a line, or None: no comparison was started. At the end we wait for no member."""
        if not self._under_way:
            return None
        step, names, slots, rows, work = self._under_way
        self._under_way = None
        if is_last and not work.is_completed():
            raise RuntimeError("a member has not answered")
        work.wait()
        table = torch.stack(rows).cpu()
        different = []
        for slot in (table != table[0]).any(dim=0).nonzero().flatten().tolist():
            here = [n for n, s in zip(names, slots) if s == slot]
            different.append({"tensor": " or ".join(here) or "one that is not here",
                              "groups": groups_of(table[:, slot].tolist())})
        return {"step": step, "members": len(rows), "tensors": len(names), "different": different[:64],
                "over_limit": max(0, len(different) - 64)}


def groups_of(column):
    """Members by value: [[0, 2, 3], [1]]; the largest group first."""
    by = {}
    for member, value in enumerate(column):
        by.setdefault(value, []).append(member)
    return sorted(by.values(), key=lambda g: (-len(g), g))
