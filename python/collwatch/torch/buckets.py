# SPDX-License-Identifier: Apache-2.0
"""Finds out which parameters' gradients each collective of a step carries, in the order of the calls: buckets
of DistributedDataParallel, parameter groups of fully_shard (FSDP2).

Neither has a public interface for this, so we read torch's internals. We check the result against the sizes
of the parameters, and drop it if it does not match. Nothing here may end a job.
"""
import weakref

import torch
import torch.distributed as dist

from collwatch.torch import groups

# torch makes its buckets anew in the second step, or in the first one with a backward; models change seldom.
_EARLY_STEPS = 10
_EVERY = 50
# Most lines in the file: a program that makes buckets anew all the time would not inform the reader.
_LINES_MAX = 16
# The limit for a line of the file, about 1 MB.
_NAMES_MAX = 500000


class Buckets:
    """The buckets of one watch's models."""

    def __init__(self):
        self.is_due = False
        self._written, self._n, self._steps, self._is_looking = {}, 0, 0, False
        self._odd, self._seen, self._moved = weakref.WeakSet(), set(), set()

    def stop(self):
        """Stops for good: the file takes no more lines."""
        self._n, self.is_due = _LINES_MAX, False

    def begin_step(self, roots, is_looking):
        """Returns the fields of new or changed lines. is_looking: all modules have hooks in this step."""
        self._steps += 1
        self._is_looking, self._seen, self._moved = is_looking, set(), set()
        self.is_due = self._n < _LINES_MAX and (self._steps <= _EARLY_STEPS or self._steps % _EVERY == 0) and \
            dist.is_available() and dist.is_initialized()
        return self._new(_of_replicas, [r for r in roots if r not in self._odd]) if self.is_due else []

    def before_call(self, module, inputs):
        """Only in due steps. Backward reaches the groups of modules that get an input with a gradient."""
        if self._is_looking and hasattr(type(module), "_get_fsdp_state") and any(
                isinstance(x, torch.Tensor) and x.requires_grad for x in inputs):
            self._moved.add(id(module))

    def after_forward(self, root):
        """As begin_step(). The order of fully_shard's groups is known from here to the end of backward."""
        if not self.is_due or not self._is_looking or id(root) in self._seen or root in self._odd:
            return []
        self._seen.add(id(root))
        return self._new(lambda roots: _of_shards(roots[0], self._moved), [root])

    def _new(self, find, roots):
        try:
            return [line for line in find(roots) if self._is_new(line)]
        except Exception:  # pylint: disable=broad-except ; torch's internals may change
            if len(roots) == 1:
                self._odd.update(roots)
                return []
            return [line for root in roots for line in self._new(find, [root])]

    def _is_new(self, line):
        key = line["comm"], line["op"]
        is_new = self._written.get(key) != line["buckets"] and _NAMES_MAX > sum(
            len(name) + 4 for bucket in line["buckets"] for name in bucket["parameters"])
        self._written[key] = line["buckets"]
        self._n += is_new
        return is_new


def _names_in(root):
    return {id(p): name for name, p in root.named_parameters()}


def _line(group, op, buckets):
    name = groups.label_of(group)
    found = [{"elements": n, "parameters": names} for n, names in buckets if n and names]
    return [{"comm": name, "op": op, "buckets": found}] if name and found else []


# ---- DistributedDataParallel ----

def _replicas_of(root):
    """The instances in the model, and the one that contains it: its forward is under way when a step begins."""
    ddp = torch.nn.parallel.DistributedDataParallel
    found = [m for m in root.modules() if isinstance(m, ddp)]
    around = getattr(ddp, "_active_ddp_module", None)
    if around is not None and around not in found and any(m is root for m in around.modules()):
        found.append(around)
    return found


def _of_replicas(roots):
    models, names = [], {}
    for root in roots:
        found = _replicas_of(root)
        if found:
            names.update(_names_in(root))
        models += [m for m in found if not any(m is other for other in models)]
    # If several use one group, a call does not show which of them it belongs to.
    alone = [m for m in models if sum(o.process_group is m.process_group for o in models) == 1]
    return [line for m in alone for line in _line(m.process_group, "all_reduce", _buckets_of(m, names))]


def _buckets_of(ddp, names):
    """[(elements, names of parameters)], in the order of the calls."""
    if getattr(ddp, "skip_all_reduce_unused_params", False):  # each step has different ones
        return []
    data = ddp._get_ddp_logging_data()  # pylint: disable=protected-access
    params = [(names.get(id(p), name), p) for name, p in ddp.module.named_parameters()
              if p.requires_grad and name not in ddp.parameters_to_ignore]
    indices, sizes = data.get("rebuilt_per_bucket_param_indices"), data.get("rebuilt_bucket_sizes")
    if indices and sizes:
        buckets = [[params[int(i)] for i in bucket.split()] for bucket in indices.split(",")]
    else:
        sizes = data.get("bucket_sizes") or ""
        buckets = _first_buckets(params, _numbers(sizes))
    # Parameters frozen or unfrozen since the model was made have other numbers there.
    if sum(len(bucket) for bucket in buckets) != len(params) or len(buckets) != len(_numbers(sizes)):
        return []
    for bucket, size in zip(buckets, _numbers(sizes)):  # torch keeps the sizes in 32 bits
        if (sum(p.numel() * p.element_size() for _, p in bucket) - size) % (1 << 32):
            return []
    return [(sum(p.numel() for _, p in bucket), [name for name, _ in bucket]) for bucket in buckets]


def _numbers(text):
    return [int(n) for n in text.replace(",", " ").split()]


def _first_buckets(params, sizes):
    """The buckets before the first backward has shown an order: from the last parameter to the first."""
    left, buckets = list(params), []
    for size in sizes:
        bucket = []
        while left and size > 0:
            bucket.insert(0, left.pop())
            size -= bucket[0][1].numel() * bucket[0][1].element_size()
        buckets.append(bucket)
    return buckets


# ---- fully_shard ----

def _state_of(module):
    get = getattr(type(module), "_get_fsdp_state", None)
    return get(module) if get else None


def _groups_of(state):
    """Its parameter groups; before torch 2.9 or so there is only one."""
    several = getattr(state, "_fsdp_param_groups", None)
    if several is None:
        one = getattr(state, "_fsdp_param_group", None)
        several = [] if one is None else [one]
    return several


def _is_among(group, others):
    return any(group is o for o in others)


def _in_order(root, moved):
    """The groups in the order of backward. First come groups whose modules get an input with a gradient,
    starting with the last one of forward. Then come all others and the outermost, in the order of their
    creation (torch's own last callback)."""
    states = {id(s): s for s in map(_state_of, root.modules()) if s is not None}
    outermost = [s for s in states.values() if getattr(s, "_is_root", False)]
    if len(outermost) != 1 or not torch.is_grad_enabled():  # part of such a model, or several
        return []
    top = _groups_of(outermost[0])
    order = [g for g in outermost[0]._comm_ctx.post_forward_order
             if not _is_among(g, top) and any(id(m) in moved for m in g.modules)]
    if len({id(g) for g in order}) != len(order):  # some modules are called twice
        return []
    every = [g for s in outermost[0]._state_ctx.all_states for g in _groups_of(s)]
    return order[::-1] + [g for g in every if not _is_among(g, order)]


def _of_shards(root, moved):
    order, found = _in_order(root, moved), {}
    names = _names_in(root) if order else {}
    for group in order:
        params = [p for p in group.fsdp_params if p.sharded_param.requires_grad]
        named = [names.get(id(p.sharded_param), p._param_fqn) for p in params]
        part = sum(p.padded_sharded_param_size.numel() for p in params)
        if not params:
            continue
        mesh = group.mesh_info
        shard, replicate = getattr(mesh, "shard_process_group", None), getattr(mesh, "replicate_process_group", None)
        if shard is not None:
            scatter = getattr(mesh, "reduce_scatter_process_group", None) or shard
            found.setdefault((scatter, "reduce_scatter"), []).append((part * scatter.size(), named))
        if replicate is not None:
            found.setdefault((replicate, "all_reduce"), []).append((part, named))
    return [line for (group, op), buckets in found.items() for line in _line(group, op, buckets)]
