# SPDX-License-Identifier: Apache-2.0
"""The program's calls of torch.distributed: their inputs and outputs, and their number.

While a watch exists we replace these functions in torch.distributed. Each replacement compares equal to its
function, because a P2POp accepts only isend and irecv; the P2POp keeps the original function, which torch
knows by identity. We read the output of an asynchronous call when the program waits for it, and otherwise
never: an earlier read could see any values.

We count calls twice: as the program makes them, and as torch hands them to the backend. In between, several
may become one (batch_isend_irecv, and torch's own coalescing).
"""

import functools
import threading

import torch
import torch.distributed as dist

_COUNT = ("op", "calls", "launched")


def _bound(function, args, kwargs):
    """The arguments by name. If the call is wrong, the function itself reports it."""
    import inspect
    try:
        return inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return {}


def _is_me(given, peer, group_peer):
    """Whether the call names this rank."""
    if given.get(peer) is not None:
        return given[peer] == dist.get_rank()
    group = given.get("group") or dist.group.WORLD
    return given.get(group_peer) is not None and given[group_peer] == dist.get_rank(group)


def _reduce(given):
    return ["tensor"], ["tensor"] if _is_me(given, "dst", "group_dst") else []


def _broadcast(given):
    return (["tensor"], []) if _is_me(given, "src", "group_src") else ([], ["tensor"])


# Inputs and outputs: names of arguments.
_SIDES = {
    "all_reduce": (["tensor"], ["tensor"]),
    "reduce": _reduce,
    "reduce_scatter": (["input_list"], ["output"]),
    "all_gather": (["tensor"], ["tensor_list"]),
    "gather": (["tensor"], ["gather_list"]),
    "scatter": (["scatter_list"], ["tensor"]),
    "broadcast": _broadcast,
    "all_to_all": (["input_tensor_list"], ["output_tensor_list"]),
    "all_to_all_single": (["input"], ["output"]),
    "send": (["tensor"], []),
    "recv": ([], ["tensor"]),
    "isend": (["tensor"], []),
    "irecv": ([], ["tensor"]),
    "batch_isend_irecv": ([], []),
    # … and the functions that sharded data parallelism calls.
    "all_gather_into_tensor": (["input_tensor"], ["output_tensor"]),
    "reduce_scatter_tensor": (["input"], ["output"]),
    "all_gather_single": (["input_tensor"], ["output_tensor"]),
    "reduce_scatter_single": (["input"], ["output"]),
}
NAMES = tuple(_SIDES)


def _tensors(given, names):
    found = []
    for name in names:
        value = given.get(name)
        if isinstance(value, torch.Tensor):
            found.append((name, value))
        elif isinstance(value, (list, tuple)):
            found += [("%s[%d]" % (name, i), t) for i, t in enumerate(value) if isinstance(t, torch.Tensor)]
    return found


def _work_class():
    """A Work that reports when the program waits for it, and delegates all else to the original."""
    base = getattr(dist, "Work", None) or torch._C._distributed_c10d.Work

    class Waited(base):
        def __init__(self, work, on_done):
            super().__init__()
            self._work, self._on_done = work, on_done

        def wait(self, *args, **kwargs):
            done = self._work.wait(*args, **kwargs)
            on_done, self._on_done = self._on_done, None
            if on_done:
                on_done()
            return done

    def delegate(name):
        def call(self, *args, **kwargs):
            return getattr(self._work, name)(*args, **kwargs)
        return call

    for name in dir(base):
        if not name.startswith("_") and name != "wait":
            setattr(Waited, name, delegate(name))
    return Waited


def _coalesced(given):
    """The calls that torch is coalescing, up to this one; None: it is not coalescing."""
    try:
        states = dist.distributed_c10d._world.pg_coalesce_state
        return states.get(given.get("group") or dist.distributed_c10d._get_default_group())
    except (AttributeError, RuntimeError, ValueError):
        return None


class _Call:
    """Replaces a function of torch.distributed."""

    def __init__(self, comms, name):
        self.comms, self.name, self.function = comms, name, getattr(dist, name)
        functools.update_wrapper(self, self.function)

    def __eq__(self, other):
        return other is self or other == self.function

    def __hash__(self):
        return hash(self.function)

    def __call__(self, *args, **kwargs):
        if not self.comms.is_looking():
            return self.function(*args, **kwargs)
        return self.comms.call(self, _bound(self.function, args, kwargs), args, kwargs)


def _with_the_function(init):
    @functools.wraps(init)
    def with_the_function(self, op, *args, **kwargs):
        init(self, op.function if isinstance(op, _Call) else op, *args, **kwargs)
    return with_the_function


class Comms:
    def __init__(self, watch):
        self.watch, self._here, self._counts = watch, threading.local(), {}
        self._waited = _work_class()
        self._calls = {name: _Call(self, name) for name in NAMES if hasattr(dist, name)}
        for name, call in self._calls.items():
            setattr(dist, name, call)
        self._init = dist.P2POp.__init__
        self._our_init = dist.P2POp.__init__ = _with_the_function(self._init)

    def close(self):
        if dist.P2POp.__init__ is self._our_init:
            dist.P2POp.__init__ = self._init
        for name, call in self._calls.items():
            if getattr(dist, name) is call:
                setattr(dist, name, call.function)

    def is_looking(self):
        return self.watch.is_looking() and not getattr(self._here, "is_inside", False)

    def take_counts(self):
        """Returns the counts of the step that ends, and starts the next."""
        counts, self._counts = self._counts, {}
        return [dict(zip(_COUNT, (op, *n))) for op, n in counts.items()]

    def _count(self, name, calls, launched):
        n = self._counts.setdefault(name, [0, 0])
        n[0] += calls
        n[1] += launched

    def call(self, it, given, args, kwargs):
        if it.name == "batch_isend_irecv":
            return self._batch(it, given, args, kwargs)
        sides = _SIDES[it.name]
        sides = sides(given) if callable(sides) else sides
        frame = self.watch.add_comm(it.name, _tensors(given, sides[0]))
        result = self._run(it, args, kwargs)
        state = _coalesced(given)
        self._count(it.name, 1, 1 if state is None or len(state) == 1 else 0)
        return self._watch_out(frame, result, _tensors(given, sides[1]), is_done=state is None)

    def _run(self, it, args, kwargs):
        self._here.is_inside = True
        try:
            return it.function(*args, **kwargs)
        finally:
            self._here.is_inside = False

    def _watch_out(self, frame, result, tensors, is_done):
        """Reads the output now if it is complete, else when the program has waited for it."""
        if not tensors:
            return result
        if hasattr(result, "wait"):
            return self._waited(result, lambda: self.watch.extend_comm(frame, tensors))
        if is_done:
            self.watch.extend_comm(frame, tensors)
        return result

    def _batch(self, it, given, args, kwargs):
        ops = given.get("p2p_op_list") or []
        sent = [("tensor[%d]" % i, o.tensor) for i, o in enumerate(ops) if o.op == dist.isend]
        frame = self.watch.add_comm(it.name, sent)
        works = self._run(it, args, kwargs)
        self._count(it.name, len(ops), len(works))
        received = [[("tensor[%d]" % i, o.tensor)] if o.op == dist.irecv else [] for i, o in enumerate(ops)]
        if len(works) != len(ops):  # the last work stands for all
            received = [[]] * (len(works) - 1) + [sum(received, [])]
        return [self._watch_out(frame, w, r, is_done=False) for w, r in zip(works, received)]
