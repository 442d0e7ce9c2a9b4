# SPDX-License-Identifier: Apache-2.0
"""Incidents on a failing disk: it is read-only when the daemon starts, or it is slow. A bundle is
on disk before the daemon sends an alert about it."""
import contextlib
import json
import os
import subprocess
import time

import pytest
from built_attack import WATCHED_SYNC
from daemon import Daemon
from receiver import Receiver
from waiting import expect, wait_until

USER = 23110
pytestmark = pytest.mark.root  # to be another user
NOT_WRITTEN = "cannot be written to disk"


class TimedReceiver(Receiver):
    """Knows when each alert came."""

    def __init__(self):
        super().__init__()
        self.times = {}
        outer = self

        class Posts(list):
            def append(self, post):
                outer.times[post[0]] = time.monotonic_ns()
                super().append(post)

        self.posts = Posts()


@contextlib.contextmanager
def world_with_webhook():
    with TimedReceiver() as receiver, Daemon() as world:
        receiver.listen()
        world.configure(f'webhook_url = "{receiver.url}"\n'
                        f'metrics_socket = "{world.dir}/metrics.sock"')
        yield world, receiver


def hang(world):
    """A job with one killed rank; the daemon proves this hang."""
    job = world.train("train", user=USER)
    world.wait_for_all()
    job.kill(1)


def notes(world):
    return " ".join(world.status()["notes"])


@contextlib.contextmanager
def read_only(directory):
    os.mkdir(directory)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m,ro", "tmpfs", directory],
                             check=False)
    if mounted.returncode:
        pytest.skip("cannot mount a file system here")
    try:
        yield
    finally:
        subprocess.run(["umount", directory], check=True)


def test_state_that_is_read_only_at_start_is_done_without_and_used_later():
    with world_with_webhook() as (world, receiver), read_only(world.state):
        try:
            world.start()
            expect(NOT_WRITTEN in notes(world), f"notes: {notes(world)}")
            expect("Read-only file system" in world.log(), world.log())
            expect(world.scrape()["collwatch_state_directory_writable"] == 0, "the metric")
            hang(world)
            wait_until(lambda: receiver.posts, f"the alert: {world.log()}")
            incident = receiver.posts[0][1]["id"]
            expect(world.ask("report", incident).returncode == 0, "a report from memory")
            subprocess.run(["mount", "-o", "remount,rw", world.state], check=True)
            wait_until(lambda: os.path.exists(f"{world.state}/incidents/{incident}"),
                       f"the bundle is written after all: {world.log()}")
            wait_until(lambda: NOT_WRITTEN not in notes(world), "the note goes")
            expect(world.scrape()["collwatch_state_directory_writable"] == 1, "the metric")
            wait_until(lambda: world.is_settled(incident), "that it was sent is noted")
            wait_until(lambda: "mute" not in world.ask("mute", "train", "--for", "1h").stderr
                       and os.path.exists(world.state + "/mutes"), "mutes are written")
        finally:
            for job in world.jobs:
                job.close()
            world.jobs = []
            world.stop()


def test_fifos_under_the_names_of_its_files_hold_it_up_nowhere():
    """A restored backup leaves them behind: no process ever opens the other end of a FIFO."""
    with world_with_webhook() as (world, receiver):
        os.mkdir(world.state)
        for name in ["clock", "mutes", "sent"]:
            os.mkfifo(f"{world.state}/{name}")
            os.mkfifo(f"{world.state}/.{name}.new")
        world.start()
        hang(world)
        wait_until(lambda: receiver.posts, f"the alert: {world.log()}")
        wait_until(lambda: os.path.isfile(world.state + "/sent"), "that it was sent is noted")
        world.ask("mute", "train", "--for", "1h")
        expect(os.path.isfile(world.state + "/mutes"), "mutes are a file now")


def test_a_file_of_84_mb_does_not_hold_up_the_start():
    """Files of mutes and of sent alerts. The daemon refuses one larger than it ever writes, and
    logs that."""
    with world_with_webhook() as (world, _):
        os.mkdir(world.state)
        for name in ["mutes", "sent"]:
            with open(f"{world.state}/{name}", "w", encoding="ascii") as f:
                for n in range(2_000_000):
                    f.write(f"{n:016x} 1790000000000000000 label-{n:08d}\n" if name == "sent"
                            else f"{n % 60000} 9100000000000000000 job:{n:08d}\n")
        world.start()
        expect(world.log().count("refusing the rest") == 2, world.log())


@contextlib.contextmanager
def watched(world, **more):
    path = world.dir + "/sync.log"
    with open(path, "w", encoding="ascii"):
        pass
    world.start(LD_PRELOAD=WATCHED_SYNC, CW_SYNC_LOG=path, **more)

    def lines():
        with open(path, encoding="utf-8") as f:
            return [line.split() for line in f.read().splitlines()]
    yield lines


def test_a_bundle_is_on_disk_before_its_alert_goes_out():
    with world_with_webhook() as (world, receiver), watched(world) as lines:
        hang(world)
        wait_until(lambda: receiver.posts, f"the alert: {world.log()}")
        key, doc = receiver.posts[0]
        parent = world.state + "/incidents"
        own = f"{parent}/{doc['id']}"
        synced = {line[2] for line in lines()
                  if line[0] == "done" and int(line[1]) < receiver.times[key]}
        for path in [f"{own}/incident.json", f"{own}/snapshot.json", f"{own}/evidence.json", own,
                     parent]:
            expect(path in synced, f"{path} was not on disk for good when the alert came: {synced}")


def test_a_disk_that_stops_holds_up_neither_the_loop_nor_the_alert():
    with world_with_webhook() as (world, receiver), \
            watched(world, CW_SYNC_GATE="/nonexistent/gate") as lines:
        hang(world)
        wait_until(lambda: [line for line in lines() if "/incidents/" in line[2]],
                   f"the bundle is synced: {world.log()}")
        expect(json.loads(world.ask("status", "--json", check=False).stdout), "it answers")
        wait_until(lambda: receiver.posts, f"the alert: {world.log()}")
        samples = world.scrape()
        expect(samples['collwatch_dropped_total{reason="bundle_sync"}'] == 1, samples)
        expect("is not synced to disk yet" in world.log(), world.log())
