# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests: tests/conftest.py registers these once it has found the build."""

import pytest
from built import COLLWATCH
from cluster import Cluster
from daemon import Daemon
from demo_driver import Demo
from receiver import Receiver


@pytest.fixture(name="daemon")
def own_daemon():
    """collwatchd, not started yet: it may be given another configuration first."""
    with Daemon() as daemon:
        yield daemon


@pytest.fixture(name="job")
def job_of_the_daemon(daemon):
    """Starts a job that ends with the test: job("name", ranks, arguments), as in job.py."""
    return daemon.train


@pytest.fixture(name="cluster")
def three_nodes():
    """That have met, on loopback, with one receiver of alerts."""
    with Cluster() as cluster:
        yield cluster.start()


@pytest.fixture(name="receiver")
def receiver_of_alerts():
    """That does not listen yet."""
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(name="demo")
def own_demo():
    with Demo(COLLWATCH) as demo:
        yield demo
