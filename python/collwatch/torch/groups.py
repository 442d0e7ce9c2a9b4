# SPDX-License-Identifier: Apache-2.0
"""What torch calls its groups, and after how long in one call it ends the job, for the agent: NCCL is not given
the names by torch before pytorch/pytorch#192487, and the time-outs never.

A group has a communicator from its first collective on, so that who calls this each step tells of it within a
step. What torch does not say, or not to this version of torch, is left out: nothing here may end a job.
"""
import torch
import torch.distributed as dist

import collwatch


class Groups:
    """Of this process."""

    def __init__(self):
        self._told = set()
        self._timeout = None
        self._is_over = not collwatch.has_agent()

    def tell(self):
        """What has changed since the last time. Cheap where nothing has."""
        try:
            if not self._is_over and dist.is_available() and dist.is_initialized():
                self._tell()
        except Exception:  # pylint: disable=broad-except ; whatever torch has made of its inside
            self._is_over = True

    def _tell(self):
        timeouts = []
        for group, name in list(_names().items()):
            backend = _backend(group)
            if backend is None:
                continue
            if name not in self._told and collwatch.name_comm(_comm(backend), _label(group, name)):
                self._told.add(name)
            if name in self._told:  # one that is in use
                timeouts.append(_timeout_ns(backend))
        shortest = min((ns for ns in timeouts if ns), default=None)
        if shortest and shortest != self._timeout:
            self._timeout = shortest
            collwatch.tell_timeout(shortest)


def _names():
    """torch's groups, each with its name there, which is no other's."""
    return getattr(getattr(dist.distributed_c10d, "_world", None), "pg_names", {})


def label_of(group):
    """What the agent has been told of a group; "" where torch has no name for it."""
    name = _names().get(group)
    return _label(group, name) if name else ""


def _label(group, name):
    """As torch itself passes it to NCCL where it does."""
    return f"{getattr(group, 'group_desc', '') or ''}:{name}"


def _backend(group):
    """Its NCCL; None where it has another, or this process is not in it."""
    try:
        backend = group._get_backend(torch.device("cuda"))  # pylint: disable=protected-access
    except (RuntimeError, AttributeError):
        return None
    return backend if hasattr(backend, "_comm_ptr") else None


def _comm(backend):
    """Its communicator as a number; 0 while it has none."""
    try:
        return backend._comm_ptr()  # pylint: disable=protected-access
    except RuntimeError:
        return 0


def _timeout_ns(backend):
    """0 where it is not known."""
    timeout = getattr(getattr(backend, "options", None), "_timeout", None)
    return int(timeout.total_seconds() * 1e9) if timeout else 0
