# SPDX-License-Identifier: Apache-2.0
"""Where numbers of a model stop being finite: by module, or by operator of torch.

    import collwatch.torch
    collwatch.torch.watch(model)                  # one line in the training program
    collwatch.torch.watch(model, ops=True, every=50, scaler=scaler)
    collwatch.torch.watch(model, trace_steps="1,3", stop_after_step=3)
    collwatch.torch.check(tensor, "attention scores")

    with collwatch.torch.record():                # where a framework builds the model
        trainer.fit()

    python -m collwatch.torch PROGRAM…            # the same, without a change
    collwatch numerics collwatch-tensors-rank*.jsonl

What is seen goes to a file of each rank (docs/schemas.md: collwatch.tensors/1); docs/numerics.md says
what it means. Needs nothing but torch, and imports it when something is to be watched.
"""

__all__ = ["StoppedAfterStep", "check", "record", "watch"]

_WATCHES = []


class StoppedAfterStep(SystemExit):
    """Ends the program behind stop_after_step, with status 0. No Exception: a loop that goes on after errors
    would go on."""


def watch(model, ops=False, every=1, frames=21, replicas=None, replicas_every=50, optimizer=None,
          scaler=None, deny=(), path=None, calls=False, comms=False, trace_steps=(), stop_after_step=None,
          stop_at=(), on_stop=None, lines=False, deny_modules=()):
    """Watches a model from now on; returns an object with step(n) and close().

    ops        also each operator of ATen, in forward and backward
    every      of so many steps one is looked at
    frames     so many calls before the first number that is none are told
    replicas   a process group (or True: the default one) whose members should have equal weights,
               and state of the optimizer where one is given: held against each other every
               replicas_every steps
    scaler     torch's GradScaler: its overflows are told apart
    deny       names of operators that are not looked at, besides those that allocate, view, copy
               or draw
    path       of the file; else collwatch-tensors-rankN.jsonl in the working directory, or -2, -3 behind
               that while other watches write there. A path that another one writes to is refused
    calls      each operator's call goes to the file, for `collwatch baseline`; ops is True then
    comms      also the calls of torch.distributed: shape and mean of what goes in and comes out, and
               how many there are, before and after they are coalesced
    trace_steps  steps of which each call goes to the file, with its numbers: "1,3,10-20", a range, or
               numbers; they are looked at whatever every says
    stop_after_step  once the numbers of this step are in the file, StoppedAfterStep is raised where the
               next one begins
    stop_at    MODULE[:OPERATOR][:CALL][@STEP], one or several: the process is stopped before that call
               (SIGSTOP), once; with an operator ops is True. Patterns are allowed, CALL is 1 where
               it is not given, and counts calls of that step where one is
    on_stop    called with what was stopped at (module, op, call, step, inputs …) instead
    lines      the last 200 lines of the user's code go to the file at a stop; slow before Python 3.12
    deny_modules  names or patterns ("*.dropout") of modules that are not looked at, nor operators called
               in them; those inside of them have names of their own
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
    """A context in which all models are watched that are called."""
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
