# SPDX-License-Identifier: Apache-2.0
"""Sees each operator of ATen at dispatch: inputs before it, outputs and changed arguments after it."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# We skip operators whose results tell nothing new, or nothing about the model: memory not written yet, views,
# copies, random draws.
DENY = frozenset("""
ones_like zeros_like empty empty_like empty_strided new_empty new_empty_strided empty_permuted resize_ set_
view _unsafe_view reshape _reshape_alias t transpose permute expand slice select detach detach_ alias
as_strided unsqueeze squeeze split split_with_sizes chunk unbind narrow diagonal unfold view_as_real
view_as_complex movedim flatten
copy_ clone _to_copy contiguous lift_fresh lift_fresh_copy _local_scalar_dense
rand rand_like randn randn_like randint randint_like randperm normal normal_ uniform_ bernoulli
bernoulli_ multinomial exponential_ random_
""".split())

# These operators make infinities on purpose: masks, and the start of a search for a minimum.
MAKES_MASKS = frozenset("""
masked_fill masked_fill_ where full full_like new_full fill fill_ triu triu_ tril tril_ scalar_tensor
index_fill index_fill_ constant_pad_nd masked_scatter
""".split())


# Libraries of operators whose writes torch counts; it cannot count the writes of collectives.
_COUNTED = ("aten", "prims")
# These return before their output is written, or their output is a buffer for the data of other ranks.
_LATE = ("c10d", "_c10d_functional", "fsdp")
# These overwrite the whole tensor and do not read it.
OVERWRITES = frozenset(("zero_", "fill_"))


class _Operator:
    """The facts about an operator, found once."""
    __slots__ = ("name", "is_counted", "is_late", "names", "written", "unread")

    def __init__(self, func):
        packet, schema = getattr(func, "overloadpacket", func), getattr(func, "_schema", None)
        arguments_ = list(schema.arguments) if schema else []
        self.name = getattr(packet, "__name__", None) or str(func)
        self.is_counted = getattr(func, "namespace", "aten") in _COUNTED
        self.is_late = getattr(func, "namespace", "aten") in _LATE
        self.names = [a.name for a in arguments_]
        self.written = [(i, a.name) for i, a in enumerate(arguments_)
                        if a.alias_info is not None and a.alias_info.is_write]
        self.unread = {n for _, n in self.written if n.startswith("out") or self.name in OVERWRITES}
        if self.is_late:  # their schemas do not name the arguments that they write
            self.unread |= {n for n in self.names if n.startswith("out") or "_output" in n}


_OPERATORS = {}


def _operator(func):
    found = _OPERATORS.get(func)
    if found is None:
        found = _OPERATORS[func] = _Operator(func)
    return found


def name_of(func):
    """"mm" for aten.mm.default"""
    return _operator(func).name


def tensors_in(value, found, where=""):
    """(place, tensor) of all tensors in nested lists, tuples, dictionaries and dataclasses."""
    if isinstance(value, torch.Tensor):
        found.append((where, value))
    elif isinstance(value, (list, tuple)):
        for i, each in enumerate(value):
            tensors_in(each, found, "%s[%d]" % (where, i))
    elif isinstance(value, dict):
        for key, each in value.items():
            tensors_in(each, found, "%s[%s]" % (where, key))
    elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        for key in value.__dataclass_fields__:
            tensors_in(getattr(value, key, None), found, "%s.%s" % (where, key))
    return found


def arguments(func, args, kwargs):
    """(name, tensor) of the operator's arguments."""
    found, names, unread = [], _operator(func).names, _operator(func).unread
    for i, each in enumerate(args):
        if i >= len(names) or names[i] not in unread:
            tensors_in(each, found, names[i] if i < len(names) else "[%d]" % i)
    for name, each in kwargs.items():
        if name not in unread:
            tensors_in(each, found, name)
    return found


def written_arguments(func, args, kwargs):
    """The arguments that the operator changes, according to its schema."""
    found = []
    for i, name in _operator(func).written:
        if i < len(args):
            tensors_in(args[i], found, name)
        elif name in kwargs:
            tensors_in(kwargs[name], found, name)
    return found


class Ops(TorchDispatchMode):
    def __init__(self, watch, deny):
        super().__init__()
        self.watch = watch
        self.deny = DENY | {d.split("::")[-1].split(".")[0] for d in deny}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        operator = _operator(func)
        name = operator.name
        if not operator.is_counted:
            self.watch.forget()
        if not self.watch.is_looking() or name in self.deny or self.watch.denies_modules():
            return func(*args, **kwargs)
        before = self.watch.sample(arguments(func, args, kwargs), "input")
        result = func(*args, **kwargs)
        if operator.is_late:
            self.watch.add_op(name, before, [], name in MAKES_MASKS)
            return result
        after = tensors_in(result, [])
        seen = {id(t) for _, t in after}
        after += [(n, t) for n, t in written_arguments(func, args, kwargs) if id(t) not in seen]
        self.watch.add_op(name, before, self.watch.sample(after, "output", is_written=True), name in MAKES_MASKS)
        return result


class StoppingOps(Ops):
    """Also stops the program before an operator."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = name_of(func)
        self.watch.before_op(name, lambda: arguments(func, args, kwargs or {}), name in self.deny)
        return super().__torch_dispatch__(func, types, args, kwargs)
