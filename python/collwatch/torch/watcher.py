# SPDX-License-Identifier: Apache-2.0
"""Records calls of modules, their gradients, and operators as frames: the callee, the calling place, and the
numbers of its tensors. Numbers stay on the device. When a step begins we copy the numbers of the previous
one, and we read them when the copy has arrived, at the earliest a step later. We keep the last frames, and
write them when a number is bad.

A number is bad if it is NaN, anywhere, or an infinity in the output of a call whose inputs had no infinity of
that sign. Masks are made of infinities. We therefore take negative infinities in a module's output for a
mask, and accept infinities from operators that fill and select. If a mask leads to an error, a sum or softmax
turns it into NaN, and we see that.
"""

import _thread
import atexit
import collections
import itertools
import math
import operator
import os
import sys
import threading
import weakref

import torch

import collwatch
from collwatch.torch import StoppedAfterStep, buckets, device, lines, ops as operators, sampled, stats, stops
from collwatch.torch.groups import Groups
from collwatch.torch.steps import Steps

# Limits: frames of one step, and first bad frames of a file. We count the rest.
FRAMES_MAX = 100000
BAD_WRITTEN_MAX = 8
# Steps whose numbers have not arrived from the device yet; we leave out and count those beyond.
BATCHES_MAX = 4
SITE_FRAMES = 6
# Most calls of operators in a line of the file.
CALLS_A_LINE = 256
_OURS = (os.path.dirname(os.path.abspath(__file__)) + os.sep, os.path.dirname(torch.__file__) + os.sep)


class _IsOurs(dict):
    """By file name; generated code has no file, and is not ours."""

    def __missing__(self, name):
        self[name] = name.startswith(_OURS)
        return self[name]


_IS_OURS = _IsOurs()


def _site():
    """["train.py:88 in forward", …]: innermost first, without torch and this package."""
    found, frame = [], sys._getframe(2)
    while frame is not None and len(found) < SITE_FRAMES:
        code = frame.f_code
        name = code.co_filename
        if name[:1] != "<" and not _IS_OURS[name]:
            found.append("%s:%d in %s" % (name, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return found


_ORDINARY = (torch.Tensor, torch.nn.Parameter)
_UNDISPATCHED = getattr(torch._C, "_DisableTorchDispatch", torch.no_grad)
_DTYPES = {}


def _name_of_dtype(dtype):
    if dtype not in _DTYPES:
        _DTYPES[dtype] = str(dtype).replace("torch.", "")
    return _DTYPES[dtype]


def _is_compiling():
    compiler = getattr(torch, "compiler", None)
    return bool(compiler and getattr(compiler, "is_compiling", lambda: False)())


class _Unseen:
    __slots__ = ("here", "before")

    def __init__(self, here):
        self.here = here

    def __enter__(self):
        self.before = getattr(self.here, "is_quiet", False)
        self.here.is_quiet = True

    def __exit__(self, *_):
        self.here.is_quiet = self.before


class _Nobody:
    """Replaces the watch in a model that was saved while it was watched."""

    def before_call(self, *_):
        pass

    before_call_or_stop = before_call

    def after_call(self, *_):
        pass


class _Frame:
    __slots__ = ("number", "step", "phase", "module", "kind", "op", "call", "site", "tensors", "makes_masks", "row",
                 "is_comm")

    def line(self):
        shown = {"frame": self.number, "step": self.step, "phase": self.phase, "module": self.module,
                 "class": self.kind, "op": self.op, "call": self.call, "site": self.site, "tensors": []}
        for t in self.tensors:
            low, high, least, mean = t["tensor_stats"][:4]
            most = max(abs(low), abs(high)) if low == low and high == high else math.nan
            shown["tensors"].append({
                "side": t["side"], "what": t["what"], "dtype": t["dtype"], "shape": t["shape"],
                "absmax": lines.number(most), "absmin": lines.number(0.0 if math.isinf(least) else least),
                "mean": lines.number(mean)})
        return shown


def _side(tensors):
    """[how many tensors have NaN or an infinity, largest magnitude, mean, norm] of all the other tensors
    together, for `baseline`, which keeps less than 13 digits; -1 if there are none."""
    if not tensors:
        return [-1, None, None, None]
    bad = most = total = count = squares = 0
    for t in tensors:
        low, high, _, mean, norm = t["tensor_stats"]
        if not math.isfinite(low) or not math.isfinite(high):
            bad += 1
            continue
        n = math.prod(t["shape"])
        most, total, count, squares = max(most, abs(low), abs(high)), total + mean * n, count + n, squares + norm * norm
    found = [most, total / count if count else 0, math.sqrt(squares)]
    return [bad] + [float("%.13g" % v) if math.isfinite(v) else None for v in found]


def _elements(tensors):
    return sum(math.prod(t["shape"]) for t in tensors)


def _kinds(tensor_stats):
    """Which of NaN, Inf and -Inf occur; NaN hides the other two."""
    low, high = tensor_stats[0], tensor_stats[1]
    if math.isnan(low) or math.isnan(high):
        return {"NaN"}
    return {name for name, there in (("Inf", high == math.inf), ("-Inf", low == -math.inf)) if there}


def _bad_tensor(frame):
    """(index of the tensor, the bad number in it, whether the inputs were finite), or None."""
    came = set()
    for t in frame.tensors:
        if t["side"] in ("input", "weight"):
            came |= _kinds(t["tensor_stats"])
    for i, t in enumerate(frame.tensors):
        kinds = _kinds(t["tensor_stats"])
        if t["side"] == "input" and not frame.op:
            kinds -= {"-Inf"}
        elif t["side"] == "output":
            kinds -= came - {"NaN"}
            if frame.makes_masks:
                kinds -= {"Inf", "-Inf"}
            elif not frame.op:
                kinds -= {"-Inf"}
        elif t["side"] == "input":
            kinds &= {"NaN"}
        if frame.is_comm:
            kinds &= {"NaN"}  # other ranks contribute too, and an infinity may be their mask
        if kinds:
            return i, sorted(kinds)[-1], not came and not frame.is_comm
    return None


def _last_step(given):
    if given is None:
        return None
    try:
        step = -1 if isinstance(given, bool) else operator.index(given)
    except TypeError:
        step = -1
    if step < 0:
        raise ValueError("stop_after_step: %r is not a step: give a number from 0 on" % (given,))
    return step


def _patterns(given):
    found = (given,) if isinstance(given, str) or not hasattr(given, "__iter__") else tuple(given)
    for each in found:
        if not isinstance(each, str) or not each:
            raise ValueError("deny_modules: %r is not the name of a module: give names, or patterns such as \"*.dropout\""
                             % (each,))
    return found


class Watch:
    def __init__(self, path=None, every=1, frames=21, scaler=None, ops=False, deny=(), calls=False,
                 comms=False, trace_steps=(), stop_after_step=None, stop_at=(), on_stop=None, keep_lines=False,
                 deny_modules=()):
        if not all(isinstance(n, int) and n >= 1 for n in (every, frames)):
            raise ValueError("every and frames must be whole numbers of 1 or more, not %r and %r" % (every, frames))
        self._traced, self._stop_after = Steps(trace_steps, "trace_steps"), _last_step(stop_after_step)
        if self._traced and self._stop_after is not None and self._traced.last() > self._stop_after:
            raise ValueError("trace_steps: step %d comes after stop_after_step, which is %d: trace steps up to that"
                             % (self._traced.last(), self._stop_after))
        self._stops = stops.Stops(stop_at, on_stop)
        if keep_lines and not self._stops:
            raise ValueError("lines: without a stop, no lines are written: give stop_at, too")
        self._deny_modules, self._denied, self._denying = _patterns(deny_modules or ()), set(), set()
        ops = ops or calls or self._stops.has_ops()
        self.every, self.scaler = every, scaler
        self._last = collections.deque(maxlen=frames)
        self._lock = threading.RLock()  # several threads may call models
        self._is_due = self._needs_ops = False
        self._n_over_limit = 0
        self._frames, self._pending, self._batches = [], [], collections.deque()
        self._names, self._roots, self._handles = weakref.WeakKeyDictionary(), weakref.WeakSet(), []
        self._inner = []  # handles of modules inside a model, while we look at them
        self._is_of_all = self._calls_inner = self._is_closing = False
        self._here, self._calls = threading.local(), {}
        self._step, self._n_frames, self._n_bad_written, self._marked = -1, 0, 0, False
        self._dropped = self._unread = 0
        self._sampled, self._kernel = sampled.Sampled(), device.Kernel()
        self._ops, self._has_all_ops, self._backward = None, False, None
        self._was_bad = {"forward": False, "backward": False}
        self._replicas, self._scale, self._groups = [], None, Groups()
        self._buckets = buckets.Buckets()
        # Each call of an operator also goes to the file; facts about an operator are written once.
        self._declared = {} if ops and (calls or lines.directory()) else None
        self._n_lost = 0
        if ops:
            self._ops = (operators.StoppingOps if self._stops.has_ops() else operators.Ops)(self, deny)
        self._before = self.before_call_or_stop if self._stops else self.before_call
        self._lines = lines.Lines(path, self, torch=torch.__version__, every=every, frames=frames, ops=bool(ops),
                                  denied=sorted(self._ops.deny) if ops else [],
                                  denied_modules=list(self._deny_modules))
        self._trail = None
        if keep_lines:
            from collwatch.torch.trail import Trail
            self._trail = Trail()
            if self._trail.why_not:
                self._lines.write("note", text="no lines of code are kept: " + self._trail.why_not)
        self._comms = None
        if comms:
            from collwatch.torch.comms import Comms
            self._comms = Comms(self)
        atexit.register(self.close)

    def is_in_use(self):
        """False before the first model, and after all models are gone."""
        return bool(self._roots) or self._is_of_all

    # A copy of the model has the same hooks, and a file cannot be copied.
    def __deepcopy__(self, _):
        return self

    def __reduce__(self):
        return _Nobody, ()

    # ---- watched modules ----

    def _learn(self, root):
        self._roots.add(root)
        names = {m: n or type(root).__name__ for n, m in root.named_modules()}
        self._names.update(names)
        for pattern in self._deny_modules:
            found = {n for n in names.values() if stops.matches(n, (pattern,))}
            self._denied |= found
            if found:
                self._denying.add(pattern)
        if any(type(m).__name__ == "OptimizedModule" for m in root.modules()):
            self._lines.write("note", text="compiled modules are seen as wholes: what torch.compile joins, "
                              "no hook sees")

    def attach(self, model):
        self._learn(model)
        try:
            self._stops.refuse_unknown(self._names.values())
        except ValueError:
            self._stops = stops.Stops((), None)
            self.close()
            raise
        self._handles.append(model.register_forward_pre_hook(self._before))
        self._handles.append(self._after(model.register_forward_hook, True))
        self._kernel.load()
        self._attach_inner(True)  # until the first step that we skip
        self._watch_backward()

    def _attach_inner(self, is_wanted):
        """Adds or removes the hooks of all modules except the models, whose hooks tell when a step begins. A
        hook costs time in each call, and on a GPU calls take as long as the device needs for them."""
        if is_wanted == bool(self._inner) or self._is_of_all:
            return
        if not is_wanted:
            for h in self._inner:
                h.remove()
            self._inner = []
            return
        names = list(self._names)
        # Hooks see nothing inside compiled modules, and each change of their hooks compiles them again.
        compiled = {id(c) for m in names if type(m).__name__ == "OptimizedModule" for c in m.modules() if c is not m}
        for m in names:
            if m not in self._roots and id(m) not in compiled and not isinstance(m, torch.jit.ScriptModule):
                self._inner.append(m.register_forward_pre_hook(self._before))
                self._inner.append(self._after(m.register_forward_hook, False))

    def attach_all(self):
        """Watches every module called from now on; a module that no other module calls is a model."""
        self._is_of_all = True
        self._kernel.load()
        every = torch.nn.modules.module
        self._handles.append(every.register_module_forward_pre_hook(self._before))
        self._handles.append(every.register_module_forward_hook(self.after_call))
        if self._ops:
            self._ops.__enter__()
            self._has_all_ops = True  # until the context ends

    def _after(self, register, is_root):
        if is_root:
            try:  # since torch 2.0 the hook also sees calls that raised
                return register(self.after_call, always_call=True)
            except TypeError:
                pass
        return register(self.after_call)

    def _is_in_backward(self):
        task = getattr(torch._C, "_current_graph_task_id", None)  # since torch 2.0
        return getattr(self._here, "n_backward", 0) > 0 or (task is not None and task() != -1)

    def _is_in_ops(self):
        """Whether this thread is in a model whose operators are dispatched to us."""
        return getattr(self._here, "is_in_ops", False)

    def _watch_backward(self):
        if not self._ops or self._backward:
            return
        original = self._backward = torch.autograd.backward

        def backward(*args, **kwargs):
            if self._is_in_ops() or not self._needs_ops:
                return original(*args, **kwargs)
            here = self._here
            here.n_backward = getattr(here, "n_backward", 0) + 1
            try:
                with self._ops:
                    return original(*args, **kwargs)
            finally:
                here.n_backward -= 1
        self._ours = torch.autograd.backward = backward

    def compare(self, model, optimizer, group, every):
        from collwatch.torch.replicas import Replicas
        self._replicas.append(Replicas(model, optimizer, group, every))

    def close(self):
        """Writes all results that are still unread; waits for the device."""
        if self._lines is None:
            return
        if getattr(self._here, "is_quiet", False):  # from on_stop, within a call: close before the next step
            self._is_closing = True
            return
        with self._unseen(), self._lock:
            self._end_step(is_last=True)
            self._is_due = self._needs_ops = False
            self._read(wait=True)
        if self._has_all_ops or (self._ops and self._is_in_ops()):  # in a call of the model, or after one
            self._here.is_in_ops = False
            self._ops.__exit__(None, None, None)
        for h in self._handles + self._inner:
            h.remove()
        if self._comms:
            self._comms.close()
        if self._backward and torch.autograd.backward is self._ours:
            torch.autograd.backward = self._backward
        self._note_what_was_not_there()
        if self._trail:
            self._trail.close()
        self._lines.write("end", step=self._step, frames=self._n_frames, dropped=self._dropped,
                          unread=self._unread)
        self._lines.close()
        self._lines = None
        atexit.unregister(self.close)
        from collwatch.torch import _WATCHES
        if self in _WATCHES:
            _WATCHES.remove(self)

    def _note_what_was_not_there(self):
        for pattern in self._deny_modules:
            if self._names and pattern not in self._denying:
                self._lines.write("note", text="no module is called like %r, which deny_modules has" % pattern)
        for text in self._stops.waiting():
            note = "the watch ended before the program came to %s, where it should stop" % text
            self._lines.write("note", text=note)
            stops.say(note)

    # ---- steps ----

    def _unseen(self):
        """A context for our own operations on tensors: they are not operators of the program."""
        return _Unseen(self._here)

    def is_looking(self):
        return self._is_due and not getattr(self._here, "is_quiet", False)

    def step(self, number=None):
        """Begins a step. Without this call, each call of a model begins a step."""
        self._marked = True
        number = None if number is None else int(number)
        if number is not None and not -(1 << 63) <= number < 1 << 63:
            raise ValueError("step %d: numbers of steps have 64 bits" % number)
        self._begin_step(number)

    def _begin_step(self, number=None):
        if self._is_closing:
            self.close()
        if self._stop_after is not None and self._lines is not None and self._step >= self._stop_after:
            self._end_program()
        with self._unseen(), self._lock:
            number = self._step + 1 if number is None else number
            self._end_step()
            self._read()
            self._scale = self._loss_scale()
            self._step = number
            self._is_due = self._lines is not None and number >= 0 and (
                number % self.every == 0 or number in self._traced)
            self._needs_ops = self._is_due or self._stops.wants_ops(number)
            self._attach_inner(self._is_due or bool(self._stops.waiting()) or self._calls_inner)
            self._sampled.forget()
            self._calls = {}
        collwatch.mark_step(number)
        self._groups.name_comms()
        if self._lines is not None:
            self._write_buckets(self._buckets.begin_step(self._roots, self._is_due))

    def _write_buckets(self, lines_of_them):
        """Writes lines about buckets. An error must not reach the program's call of the model."""
        if not lines_of_them:
            return
        with self._lock:
            try:
                for fields in lines_of_them if self._lines is not None else ():
                    self._lines.write("buckets", step=self._step, **fields)
            except (OSError, ValueError):  # such as a full disk
                self._buckets.stop()

    def _end_program(self):
        """Ends the program. The file is complete first, even if the program catches the exception."""
        with self._lock:
            if self._lines is None:  # another thread was first
                return
            step, path = self._step, self._lines.path
            self._lines.write("note", text="the program was ended after step %d: stop_after_step" % step)
            self.close()
        stops.say("the program is ended after step %d (stop_after_step); its numbers are in %s" % (step, path))
        if threading.current_thread() is not threading.main_thread():
            _thread.interrupt_main()  # SystemExit ends this thread only, and silently
            raise SystemExit(0)
        raise StoppedAfterStep(0)

    def _loss_scale(self):
        """The scale of the step that begins: a number on the device, read later, or a float, or None."""
        if self.scaler is None or not self.scaler.is_enabled():
            return None
        scale = getattr(self.scaler, "_scale", None)  # None before the first loss
        return scale.detach().clone() if isinstance(scale, torch.Tensor) else float(self.scaler.get_scale())

    def _end_step(self, is_last=False):
        if self._step < 0:
            return
        if self._frames or self._is_due:
            if len(self._batches) >= BATCHES_MAX:
                self._lose(len(self._frames))
                if self._step in self._traced:
                    self._lines.write("note", text="step %d is not traced: numbers of %d steps before had not come from "
                                      "the device" % (self._step, len(self._batches)))
            else:
                self._batches.append(self._copy())
            self._frames, self._pending, self._n_over_limit = [], [], 0
            self._kernel.take_blocks()  # of lost steps
        for r in self._replicas:
            self._compare(r, is_last)

    def _lose(self, n):
        """Counts frames that we skipped; for recorded calls the file says where."""
        self._dropped += n
        self._n_lost += n

    def _compare(self, replicas, is_last):
        """Starts no comparison at the end: the group may be gone, and we would not read the result."""
        try:
            said = replicas.finish(is_last)
            if said:
                self._lines.write("replicas", **said)
            if not is_last and self._step % replicas.every == 0:
                replicas.start(self._step)
        except RuntimeError as error:  # the group was destroyed, or a member has died
            self._lines.write("note", text="replicas were not compared at step %d: %s" % (self._step, error))

    def _copy(self):
        """Starts the copies of this step's tensor_stats. Returns (step, frames, copies, events of their arrival,
        scale, counts, frames left out)."""
        scale, by_device, by_block = self._scale, {}, {}
        for row, tensor_stats in enumerate(self._pending):
            if isinstance(tensor_stats, tuple):
                by_block.setdefault(tensor_stats[0], []).append((row, tensor_stats[1]))
            else:
                by_device.setdefault((tensor_stats.device, tensor_stats.dtype), []).append((row, tensor_stats))
        if isinstance(scale, torch.Tensor):
            by_device.setdefault((scale.device, scale.dtype), []).append((-1, scale.expand(len(stats.FIELDS))))
        copies, events = [], []
        for (where, _), rows in by_device.items():
            copies.append((list(enumerate(r for r, _ in rows)),
                           torch.stack([n for _, n in rows]).to("cpu", non_blocking=True)))
            if where.type == "cuda":
                events.append(torch.cuda.Event())
                events[-1].record(torch.cuda.current_stream(where))
        # Blocks without rows of ours too: another thread wrote numbers and did not add its frame.
        for block in dict.fromkeys(self._kernel.take_blocks() + list(by_block)):
            values, event = block.copy()
            copies.append(([(at, row) for row, at in by_block.get(block, ())], values))
            events.append(event)
        counts = self._comms.take_counts() if self._comms else None
        return (self._step, self._frames, copies, events, scale if isinstance(scale, float) else None, counts,
                self._n_over_limit)

    def _read(self, wait=False):
        while self._batches:
            step, frames, copies, events, scale, counts, n_over_limit = self._batches[0]
            if wait:
                for e in events:
                    e.synchronize()
            elif not all(e.query() for e in events):
                return
            self._batches.popleft()
            tensor_stats = {}
            try:
                for rows, values in copies:
                    values = values.tolist()
                    tensor_stats.update((row, values[at]) for at, row in rows)
            except RuntimeError:  # tensors without numbers, as torch.func and fake tensors have
                self._lose(len(frames))
                continue
            if -1 in tensor_stats:
                scale = tensor_stats[-1][0]
            self._judge(step, frames, tensor_stats, scale, counts, n_over_limit)

    def _judge(self, step, frames, tensor_stats, scale, counts, n_over_limit):
        n_bad = {"forward": 0, "backward": 0}
        for frame in frames:
            for t in frame.tensors:
                t["tensor_stats"] = tensor_stats[t["row"]]
        if self._declared is not None:
            self._write_calls(step, [f for f in frames if f.op and not f.is_comm])
        if counts:
            self._write_comms(step, [f for f in frames if f.is_comm], counts)
        traced = {}
        if step in self._traced:
            traced = {"traced": len(frames), "lost": n_over_limit}
            for frame in frames:
                self._lines.write("trace", **frame.line())
        for frame in frames:
            self._last.append(frame)
            bad = _bad_tensor(frame)
            if not bad:
                continue
            phase = "backward" if frame.phase == "backward" else "forward"
            n_bad[phase] += 1
            # Only the first after a good step: numbers that follow from it are no news.
            if n_bad[phase] == 1 and not self._was_bad[phase] and self._n_bad_written < BAD_WRITTEN_MAX:
                self._n_bad_written += 1
                self._write_bad(frame, *bad)
        self._was_bad = {phase: n > 0 for phase, n in n_bad.items()}
        self._lines.write("step", step=step, frames=len(frames), nonfinite=n_bad["forward"],
                          nonfinite_gradients=n_bad["backward"], loss_scale=scale, **traced)

    def _write_comms(self, step, frames, counts):
        found = [{"op": f.op, "phase": f.phase, "module": f.module, "tensors": [
            {"side": t["side"], "what": t["what"], "dtype": t["dtype"], "shape": t["shape"],
             "mean": lines.number(t["tensor_stats"][3])} for t in f.tensors]} for f in frames]
        self._lines.write("comms", step=step, counts=counts, comms=found)

    def _declare(self, frame, inputs, outputs):
        """The id of an operator with these sizes at this place; its first call writes a line about it."""
        key = (frame.phase, frame.module, frame.kind, frame.op, (outputs or inputs)[0]["dtype"], _elements(inputs),
               _elements(outputs))
        if key not in self._declared:
            self._declared[key] = len(self._declared)
            self._lines.write("operator", operator=self._declared[key],
                              **dict(zip(("phase", "module", "class", "op", "dtype", "inputs", "outputs"), key)))
        return self._declared[key]

    def _write_calls(self, step, frames):
        found = []
        for f in frames:
            inputs = [t for t in f.tensors if t["side"] == "input"]
            outputs = [t for t in f.tensors if t["side"] == "output"]
            found.append([self._declare(f, inputs, outputs)] + _side(inputs) + _side(outputs))
        lost, self._n_lost, found = self._n_lost, 0, iter(found)
        for part in iter(lambda: list(itertools.islice(found, CALLS_A_LINE)), []):
            self._lines.write("calls", step=step, calls=part)
        if lost:
            self._lines.write("calls", step=step, calls=[], lost=lost)

    def _write_bad(self, frame, tensor, kind, was_finite):
        for each in self._last:
            if each is not frame:
                self._lines.write("frame", **each.line())
        self._last.clear()
        self._lines.write("bad", tensor=tensor, number=kind, inputs_finite=was_finite, **frame.line())

    # ---- frames ----

    def forget(self):
        """Call it after writes that torch does not count."""
        self._sampled.forget()

    def _tensor_stats(self, p):
        """Returns a tensor of numbers, or the place where the agent's kernel writes them."""
        found = self._kernel.of(p)
        return stats.of(p, self._declared is not None) if found is None else found

    def sample(self, tensors, side, is_written=False):
        """Returns the numbers of tensors, on their device. Counts tensors that we cannot read.

        is_written: the call that just ended wrote them."""
        found = []
        with self._unseen():
            for what, x in tensors:
                if not isinstance(x, torch.Tensor):
                    continue
                try:
                    tensor_stats, shape = self._tensor_stats_of(x, is_written), [int(n) for n in x.shape]
                except (RuntimeError, NotImplementedError, TypeError, AttributeError):
                    self._unread += 1
                    continue
                if tensor_stats is None:
                    continue
                found.append({"side": side, "what": what or side, "dtype": _name_of_dtype(x.dtype),
                              "shape": shape, "tensor_stats": tensor_stats})
        return found

    def _tensor_stats_of(self, x, is_written):
        """None if the tensor has none. While modules' hooks run, our own operations would be dispatched to
        us, so we turn this off for ordinary tensors; other types need their own dispatch."""
        with _UNDISPATCHED() if type(x) in _ORDINARY else torch.no_grad():
            p = stats.plain(x)
            return None if p is None else self._sampled.get(p, self._tensor_stats, is_written)

    def _add(self, phase, module, kind, op, tensors, site, makes_masks=False, is_comm=False):
        if not tensors and not is_comm:
            return None
        with self._lock:
            return self._add_frame(phase, module, kind, op, tensors, site, makes_masks, is_comm)

    def _add_frame(self, phase, module, kind, op, tensors, site, makes_masks, is_comm):
        if len(self._frames) >= FRAMES_MAX:
            self._lose(1)
            self._n_over_limit += 1
            return None
        self._n_frames += 1
        key = (phase, module, op)
        self._calls[key] = self._calls.get(key, 0) + 1
        f = _Frame()
        f.number, f.step, f.phase, f.module, f.kind, f.op = self._n_frames, self._step, phase, module, kind, op
        f.call, f.site, f.tensors, f.makes_masks, f.is_comm = self._calls[key], site, tensors, makes_masks, is_comm
        self._take_rows(tensors)
        self._frames.append(f)
        return f

    def _take_rows(self, tensors):
        for t in tensors:
            t["row"] = len(self._pending)
            self._pending.append(t.pop("tensor_stats"))

    def _stack(self):
        if not hasattr(self._here, "modules"):
            self._here.modules = []
        return self._here.modules

    def _module(self):
        stack = self._stack()
        return (self._names.get(stack[-1], type(stack[-1]).__name__), type(stack[-1]).__name__) if stack \
            else ("", "")

    def denies_modules(self):
        """Whether the name of the current module excludes its operators."""
        stack = self._denied and self._stack()
        return bool(stack) and self._names.get(stack[-1]) in self._denied

    def add_op(self, name, before, after, makes_masks):
        module, kind = self._module()
        phase = "backward" if self._is_in_backward() else "forward"
        self._add(phase, module, kind, name, before + after, _site(), makes_masks)

    def add_comm(self, name, tensors):
        """Records the inputs of a call of torch.distributed that begins. Returns the frame for extend_comm(),
        or None."""
        module, kind = self._module()
        phase = "backward" if self._is_in_backward() else "forward"
        return self._add(phase, module, kind, name, self.sample(tensors, "input"), _site(), is_comm=True)

    def extend_comm(self, frame, tensors):
        """Adds the outputs, if the step is not over."""
        self.forget()  # torch has not counted these writes
        if frame is None or self._lines is None or frame.step != self._step or not self.is_looking():
            return
        found = self.sample(tensors, "output")
        with self._lock:
            if frame.step == self._step:
                self._take_rows(found)
                frame.tensors = frame.tensors + found

    def check(self, tensor, name):
        if self.is_looking():
            module, kind = self._module()
            self._add("forward", module, kind, "", self.sample([(name, tensor)], "output"), _site())

    def before_call(self, module, inputs):
        if self._lines is None or _is_compiling() or getattr(self._here, "is_quiet", False):  # from on_stop
            return
        stack = self._stack()
        if module in self._roots:
            del stack[:]  # an earlier call may have raised
        if not stack and module not in self._roots and self._is_of_all:
            self._learn(module)
        if module not in self._names:
            return  # a copy of the model, which has its hooks too
        if not stack and not self._is_in_backward() and not self._marked:
            self._calls_inner |= module not in self._roots  # then modules inside it tell when steps begin
            self._begin_step()
        # In backward, checkpoints are recomputed and end in an exception; their operators come here already.
        if (not stack and self._ops and self._needs_ops and not self._has_all_ops and not self._is_in_ops() and
                not self._is_in_backward()):
            self._here.is_in_ops = True
            self._ops.__enter__()
        stack.append(module)
        if self._buckets.is_due:
            self._buckets.before_call(module, inputs)

    def before_call_or_stop(self, module, inputs):
        if self._lines is None or _is_compiling():
            return
        self.before_call(module, inputs)
        name = self._names.get(module)
        if name is None:
            return
        phase = "recomputed" if self._is_in_backward() else "forward"
        self._stop(phase, name, type(module).__name__, "", lambda: operators.tensors_in(inputs, []))

    def before_op(self, name, inputs, is_denied):
        """inputs: a function that returns them."""
        if self._lines is not None:
            self._stop("backward" if self._is_in_backward() else "forward", *self._module(), name, inputs, is_denied)

    def _stop(self, phase, module, kind, op, inputs, is_denied=False):
        if getattr(self._here, "is_quiet", False):
            return
        for at, call in self._stops.at(self._step, module, op, is_denied):
            stop = stops.Stop(at, step=self._step, phase=phase, module=module, kind=kind, op=op, call=call, site=_site(),
                              inputs=inputs())
            way = self._trail.take() if self._trail else []
            if self._trail and not self._stops.waiting():
                self._trail.close()
            with self._unseen():
                with self._lock:
                    self._read()
                self._lines.write("stop", stop_at=at, step=stop.step, phase=phase, module=module, op=op, call=call,
                                  site=stop.site, lines=way, **{"class": kind})
                self._stops.stop(stop, self._lines.rank)

    def after_call(self, module, inputs, output):
        if self._lines is None or _is_compiling():
            return
        name, kind = self._names.get(module), type(module).__name__
        if name is None or getattr(self._here, "is_quiet", False):
            return
        stack = self._stack()
        while stack and stack.pop() is not module:
            pass
        if not stack and self._ops and self._is_in_ops():
            self._here.is_in_ops = False
            self._ops.__exit__(None, None, None)
        if not stack and self._buckets.is_due and module in self._roots:
            self._write_buckets(self._buckets.after_forward(module))
        if output is None or not self.is_looking() or name in self._denied:
            return
        site = _site()
        tensors = self.sample(list(module.named_parameters(recurse=False)), "weight")
        tensors += self.sample(operators.tensors_in(inputs, []), "input")
        tensors += self.sample(operators.tensors_in(output, []), "output")
        self._add("recomputed" if self._is_in_backward() else "forward", name, kind, "", tensors, site)
        self._follow_gradients(name, kind, inputs, output, site, not stack)

    def _follow_gradients(self, name, kind, inputs, output, site, is_root):
        """Hooks the gradients of the inputs, which the call's backward makes; for a model also those of its
        outputs, which the loss makes."""
        for where, x in operators.tensors_in(inputs, []):
            if x.requires_grad and not x.is_leaf:
                x.register_hook(self._on_gradient(name, kind, "gradient of input" + where, site))
        for where, x in operators.tensors_in(output, []) if is_root else ():
            if x.requires_grad and not x.is_leaf:
                x.register_hook(self._on_gradient(name, kind, "gradient of output" + where, site))

    def _on_gradient(self, name, kind, what, site):
        step = self._step

        def on_gradient(gradient):
            if self.is_looking() and step == self._step:
                self._add("backward", name, kind, "", self.sample([(what, gradient)], "output"), site)
        return on_gradient
