# SPDX-License-Identifier: Apache-2.0
"""Calls of collwatch.torch to the agent about torch's groups, beside a torch of our own making: the
names and times, once each, and never an error into the training program. Real torch:
tests/real/real_torch.py."""
import datetime
import importlib
import os
import sys
import types

import pytest
from waiting import expect

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.fixture(autouse=True)
def leaves_no_modules_of_another_torch():
    yield
    for name in [n for n in sys.modules if n.split(".")[0] == "collwatch"]:
        del sys.modules[name]


class Backend:
    """NCCL's, of a group: its communicator is there from its first collective on."""

    def __init__(self, minutes):
        self.comm = 0
        self.options = types.SimpleNamespace(_timeout=datetime.timedelta(minutes=minutes))

    def _comm_ptr(self):
        if not self.comm:
            raise RuntimeError("no communicator yet")
        return self.comm


class Group:
    def __init__(self, desc, backend):
        self.group_desc, self._backend = desc, backend

    def _get_backend(self, device):
        expect(device == "cuda", device)
        if self._backend is None:
            raise RuntimeError("no backend for this device")
        return self._backend


class World:
    """The parts of torch that collwatch.torch uses, and its calls to the agent."""

    def __init__(self, monkeypatch, has_agent=True):
        self.pg_names, self.named, self.times = {}, [], []
        torch, dist = types.ModuleType("torch"), types.ModuleType("torch.distributed")
        torch.device, torch.distributed = str, dist
        dist.is_available = dist.is_initialized = lambda: True
        dist.distributed_c10d = types.SimpleNamespace(_world=self)
        monkeypatch.setitem(sys.modules, "torch", torch)
        monkeypatch.setitem(sys.modules, "torch.distributed", dist)
        monkeypatch.syspath_prepend(ROOT + "/python")
        for name in [n for n in sys.modules if n.split(".")[0] == "collwatch"]:
            monkeypatch.delitem(sys.modules, name)
        collwatch = importlib.import_module("collwatch")
        monkeypatch.setattr(collwatch, "has_agent", lambda: has_agent)
        monkeypatch.setattr(collwatch, "name_comm", self.name_comm)
        monkeypatch.setattr(collwatch, "set_job_timeout", self.times.append)
        self.groups = importlib.import_module("collwatch.torch.groups").Groups()

    def name_comm(self, comm, name):
        if comm:
            self.named.append((comm, name))
        return bool(comm)

    def add(self, name, desc, minutes=10):
        backend = Backend(minutes)
        self.pg_names[Group(desc, backend)] = name
        return backend


def minutes(n):
    return n * 60 * 10**9


def test_a_group_is_told_once_it_is_used_and_the_shortest_time_when_it_changes(monkeypatch):
    world = World(monkeypatch)
    first, second = world.add("0", "default_pg", 30), world.add("7", "mesh_tp", 15)
    world.add("8", "never_used", 1)
    world.pg_names[Group("gloo", None)] = "9"
    world.groups.name_comms()
    expect((world.named, world.times) == ([], []), (world.named, world.times))
    first.comm = 0x10
    world.groups.name_comms()
    second.comm = 0x20
    world.groups.name_comms()
    world.groups.name_comms()
    expect(world.named == [(0x10, "default_pg:0"), (0x20, "mesh_tp:7")], world.named)
    expect(world.times == [minutes(30), minutes(15)], world.times)
    first.options._timeout = second.options._timeout = datetime.timedelta(minutes=60)
    world.groups.name_comms()
    expect(world.times[2:] == [minutes(60)], world.times)


@pytest.mark.parametrize("broken", ["pg_names", "options", "comm"])
def test_nothing_of_a_torch_that_is_another_ends_the_job(monkeypatch, broken):
    world = World(monkeypatch)
    backend = world.add("0", "default_pg")
    backend.comm = 0x10
    if broken == "pg_names":
        world.pg_names = 7
    elif broken == "options":
        backend.options = types.SimpleNamespace(_timeout="10 min")
    else:
        backend._comm_ptr = lambda: 1 / 0
    world.groups.name_comms()
    world.groups.name_comms()
    expect(not world.times, world.times)


def test_nothing_is_looked_at_without_an_agent(monkeypatch):
    world = World(monkeypatch, has_agent=False)
    world.add("0", "default_pg").comm = 0x10
    world.groups.name_comms()
    expect((world.named, world.times) == ([], []), (world.named, world.times))
