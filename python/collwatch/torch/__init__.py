# SPDX-License-Identifier: Apache-2.0
"""Finds where the numbers of a model stop being finite: by module, or by operator of torch.

    import collwatch.torch
    collwatch.torch.watch(model)                  # one line in the training program
    collwatch.torch.watch(model, ops=True, every=50, scaler=scaler)
    collwatch.torch.watch(model, trace_steps="1,3", stop_after_step=3)
    collwatch.torch.check(tensor, "attention scores")

    with collwatch.torch.record():                # where a framework builds the model
        trainer.fit()

    python -m collwatch.torch PROGRAM…            # the same, without a change
    collwatch numerics collwatch-tensors-rank*.jsonl

Each rank writes its findings to a file (docs/schemas.md: collwatch.tensors/1); docs/numerics.md explains
them. The package needs only torch, and imports it when a watch begins.
"""

__all__ = ["StoppedAfterStep", "check", "record", "watch"]

_WATCHES = []


class StoppedAfterStep(SystemExit):
    """Ends the program after stop_after_step, with status 0. It is not an Exception, because a loop that
    continues after errors would continue."""


def watch(model, ops=False, every=1, frames=21, replicas=None, replicas_every=50, optimizer=None,
          scaler=None, deny=(), path=None, calls=False, comms=False, trace_steps=(), stop_after_step=None,
          stop_at=(), on_stop=None, lines=False, deny_modules=()):
    """Watches a model from now on; returns an object with step(n) and close().

    ops        also each operator of ATen, in forward and backward
    every      look at one of this many steps
    frames     how many calls to report before the first number that is not finite
    replicas   a process group (or True: the default one) whose members must have equal weights, and
               equal optimizer state if an optimizer is given: compared every replicas_every steps
    scaler     torch's GradScaler: its overflows are reported separately
    deny       names of operators to skip, besides operators that allocate, view, copy or draw
    path       of the file; else collwatch-tensors-rankN.jsonl in the working directory, with -2, -3 appended
               while other watches write there. A path that another watch writes to is refused
    calls      write each operator's call to the file, for `collwatch baseline`; sets ops to True
    comms      also the calls of torch.distributed: shape and mean of their inputs and outputs, and
               their number before and after torch coalesces them
    trace_steps  write each call of these steps to the file, with its numbers: "1,3,10-20", a range, or
               numbers; we look at these steps whatever every says
    stop_after_step  once the numbers of this step are in the file, the next step begins by raising
               StoppedAfterStep
    stop_at    MODULE[:OPERATOR][:CALL][@STEP], one or several: stops the process before that call
               (SIGSTOP), once; an operator sets ops to True. Patterns are allowed. CALL is 1 by default,
               and counts calls within STEP if STEP is given
    on_stop    called instead, with the stop (module, op, call, step, inputs …)
    lines      at a stop, write the last 200 lines of the user's code to the file; slow before Python 3.12
    deny_modules  names or patterns ("*.dropout") of modules to skip, and operators called in them; modules
               inside them have names of their own
    """
    from collwatch.torch.watcher import Watch
    it = Watch(path=path, every=every, frames=frames, scaler=scaler, ops=ops, deny=deny, calls=calls, comms=comms,
               trace_steps=trace_steps, stop_after_step=stop_after_step, stop_at=stop_at, on_stop=on_stop,
               keep_lines=lines, deny_modules=deny_modules)
    try:
        it.attach(model)
        if replicas is not None:
            it.compare(model, optimizer, replicas, replicas_every)
    except BaseException:
        it.close()
        raise
    _WATCHES.append(it)
    return it


def check(tensor, name):
    """Looks at a tensor between modules, under that name. Returns the tensor."""
    for it in _WATCHES:
        it.check(tensor, name)
    return tensor


def record(ops=False, every=1, frames=21, scaler=None, deny=(), path=None, calls=False, comms=False,
           trace_steps=(), stop_after_step=None, stop_at=(), on_stop=None, lines=False, deny_modules=()):
    """A context that watches all models called within it."""
    from collwatch.torch.watcher import Watch
    return _Recording(Watch(path=path, every=every, frames=frames, scaler=scaler, ops=ops, deny=deny, calls=calls,
                            comms=comms, trace_steps=trace_steps, stop_after_step=stop_after_step, stop_at=stop_at,
                            on_stop=on_stop, keep_lines=lines, deny_modules=deny_modules))


class _Recording:
    def __init__(self, it):
        self.it = it

    def __enter__(self):
        self.it.attach_all()
        _WATCHES.append(self.it)
        return self.it

    def __exit__(self, *_):
        self.it.close()
