# SPDX-License-Identifier: Apache-2.0
"""Which parameters' gradients the collectives of a step carry, in the order in which they are made: buckets of
DistributedDataParallel, parameter groups of fully_shard (FSDP2).

Neither tells in its own interface, so what is read here is torch's inside: what it has is held against the
parameters' sizes, and left out where it is not as expected. Nothing here may end a job.
"""
import torch
import torch.distributed as dist

from collwatch.torch import groups

# Buckets are made anew in the second step, or in the first that has a backward; models change seldom.
_EARLY_STEPS = 10
_EVERY = 50
# So many lines of a file: who makes buckets anew all the time tells nothing by it.
_LINES_MAX = 16
# A line of the file has a megabyte.
_NAMES_MAX = 500000


class Buckets:
    """Of the models of one watch."""

    def __init__(self):
        self._told, self._n, self._is_over, self._steps = {}, 0, not dist.is_available(), 0

    def _is_due(self):
        return not self._is_over and self._n < _LINES_MAX and dist.is_initialized() and (
            self._steps <= _EARLY_STEPS or self._steps % _EVERY == 0)

    def begin_step(self, roots):
        """Fields of lines, of what is not as told before."""
        self._steps += 1
        return self._new(_of_replicas, roots)

    def after_forward(self, root):
        """The same. Which order the groups of fully_shard have is known from here to the end of backward."""
        return self._new(_of_shards, [root])

    def _new(self, find, roots):
        found = []
        try:
            if self._is_due():
                found = [line for root in list(roots) for line in find(root) if self._is_new(line)]
        except Exception:  # pylint: disable=broad-except ; whatever torch has made of its inside
            self._is_over = True
        return found

    def _is_new(self, line):
        key = line["comm"], line["op"]
        is_new = self._told.get(key) != line["buckets"] and _NAMES_MAX > sum(
            len(name) + 4 for bucket in line["buckets"] for name in bucket["parameters"])
        self._told[key] = line["buckets"]
        self._n += is_new
        return is_new


def _names_in(root):
    return {id(p): name for name, p in root.named_parameters()}


def _line(group, op, buckets):
    name = groups.label_of(group)
    if not name or not buckets:
        return []
    return [{"comm": name, "op": op, "buckets": [{"elements": n, "parameters": names} for n, names in buckets]}]


# ---- DistributedDataParallel ----

def _replicas_of(root):
    """Those in the model, and the one that it is in: its forward is under way when a step begins."""
    ddp = torch.nn.parallel.DistributedDataParallel
    found = [m for m in root.modules() if isinstance(m, ddp)]
    around = getattr(ddp, "_active_ddp_module", None)
    if around is not None and around not in found and any(m is root for m in around.modules()):
        found.append(around)
    return found


def _of_replicas(root):
    found = []
    for ddp in _replicas_of(root):
        found += _line(ddp.process_group, "all_reduce", _buckets_of(ddp, _names_in(root)))
    return found


def _buckets_of(ddp, names):
    """[(elements, names of parameters)], in the order of their calls."""
    data = ddp._get_ddp_logging_data()  # pylint: disable=protected-access
    params = [(names.get(id(p), name), p) for name, p in ddp.module.named_parameters()
              if p.requires_grad and name not in ddp.parameters_to_ignore]
    indices, sizes = data.get("rebuilt_per_bucket_param_indices"), data.get("rebuilt_bucket_sizes")
    if indices and sizes:
        buckets = [[params[int(i)] for i in bucket.split()] for bucket in indices.split(",")]
    else:
        sizes = data.get("bucket_sizes") or ""
        buckets = _first_buckets(params, _numbers(sizes))
    if [sum(p.numel() * p.element_size() for _, p in bucket) for bucket in buckets] != _numbers(sizes):
        return []
    return [(sum(p.numel() for _, p in bucket), [name for name, _ in bucket]) for bucket in buckets]


def _numbers(text):
    return [int(n) for n in text.replace(",", " ").split()]


def _first_buckets(params, sizes):
    """As they are before the first backward has shown an order: from the last parameter to the first."""
    left, buckets = list(params), []
    for size in sizes:
        bucket = []
        while left and size > 0:
            bucket.insert(0, left.pop())
            size -= bucket[0][1].numel() * bucket[0][1].element_size()
        buckets.append(bucket)
    return buckets


# ---- fully_shard ----

def _groups_of(module):
    """Its parameter groups; of torch before 2.9 or so there is one."""
    state = getattr(module, "_get_fsdp_state", lambda: None)()
    several = getattr(state, "_fsdp_param_groups", None)
    if several is None:
        one = getattr(state, "_fsdp_param_group", None)
        several = [] if one is None else [one]
    return several


def _in_order(root):
    """As backward comes to them: those of modules as forward left them, from the last on; the outermost at the end."""
    outermost = _groups_of(root)
    every = [g for m in root.modules() for g in _groups_of(m)]
    if not every:
        return []
    order = [g for g in every[-1].comm_ctx.post_forward_order if not any(g is o for o in outermost)]
    if len({id(g) for g in order}) != len(order):  # modules that are called twice
        return []
    return order[::-1] + outermost


def _of_shards(root):
    names, found = _names_in(root), {}
    for group in _in_order(root):
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
