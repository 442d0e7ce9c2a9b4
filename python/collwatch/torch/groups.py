# SPDX-License-Identifier: Apache-2.0
"""Reports torch's names of its groups, and its time-outs of a call, to the agent. torch does not give NCCL
the names before pytorch/pytorch#192487, and never gives it the time-outs.

A group gets its communicator with its first collective, so a call of tell() in each step reports it within a
step. We omit facts that this version of torch does not have: nothing here may end a job.
"""
import torch
import torch.distributed as dist

import collwatch


class Groups:
    """The groups of this process."""

    def __init__(self):
        self._named = set()
        self._timeout = None
        self._is_over = not collwatch.has_agent()

    def name_comms(self):
        """Reports changes since the last call. Cheap if there are none."""
        try:
            if not self._is_over and dist.is_available() and dist.is_initialized():
                self._name_comms()
        except Exception:  # pylint: disable=broad-except ; torch's internals may change
            self._is_over = True

    def _name_comms(self):
        timeouts = []
        for group, name in list(_names().items()):
            backend = _backend(group)
            if backend is None:
                continue
            if name not in self._named and collwatch.name_comm(_comm(backend), _label(group, name)):
                self._named.add(name)
            if name in self._named:  # the group is in use
                timeouts.append(_timeout_ns(backend))
        shortest = min((ns for ns in timeouts if ns), default=None)
        if shortest and shortest != self._timeout:
            self._timeout = shortest
            collwatch.set_job_timeout(shortest)


def _names():
    """torch's groups, each with its unique name in torch."""
    return getattr(getattr(dist.distributed_c10d, "_world", None), "pg_names", {})


def label_of(group):
    """The name of a group that the agent knows; "" if torch has no name for it."""
    name = _names().get(group)
    return _label(group, name) if name else ""


def _label(group, name):
    """The form in which newer versions of torch pass it to NCCL."""
    return f"{getattr(group, 'group_desc', '') or ''}:{name}"


def _backend(group):
    """The NCCL backend of the group; None if it has another one, or this process is not in the group."""
    try:
        backend = group._get_backend(torch.device("cuda"))  # pylint: disable=protected-access
    except (RuntimeError, AttributeError):
        return None
    return backend if hasattr(backend, "_comm_ptr") else None


def _comm(backend):
    """The address of its communicator; 0 if it has none yet."""
    try:
        return backend._comm_ptr()  # pylint: disable=protected-access
    except RuntimeError:
        return 0


def _timeout_ns(backend):
    """The time-out; 0 if it is unknown."""
    timeout = getattr(getattr(backend, "options", None), "_timeout", None)
    return int(timeout.total_seconds() * 1e9) if timeout else 0
