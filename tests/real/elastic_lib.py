# SPDX-License-Identifier: Apache-2.0
"""A PyTorch job under torchrun on two nodes, which are network namespaces with a daemon each."""
import contextlib
import os
import sys
import tempfile
import unittest

from torch_lib import PROGRAMS, Job, tap
# After torch_lib, which says where the build is.
from cluster import IsolatedCluster

NODES = 2
RENDEZVOUS_PORT = 29400
RESTARTS = 2


@contextlib.contextmanager
def two_nodes(patience):
    """With daemons that have met; skipped where namespaces cannot be made."""
    try:
        with IsolatedCluster(NODES) as cluster:
            for node in cluster.nodes:
                node.patience = patience
                node.configure("")
            yield cluster.start()
    except unittest.SkipTest as why:
        raise tap.Skip(str(why)) from None


class ElasticJob(Job):
    """A launcher on each node, which starts its rank again when one fails; all under one name."""

    def __init__(self, cluster, *arguments, is_watched=True):
        self.checkpoint = tempfile.mkdtemp(dir=cluster.dir) + "/checkpoint"
        self.cluster = cluster
        super().__init__(cluster.dir, "elastic", *arguments, daemon=cluster.nodes if is_watched else None,
                         ranks=[{"COLLWATCH_JOB": "elastic"} for _ in cluster.nodes], argv=self.launcher,
                         # In the launchers' own store, ranks that are started again read what those
                         # before them left there: torch's id of the communicator, for one.
                         variables={"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
                                    "CHECKPOINT": self.checkpoint, "NCCL_SOCKET_IFNAME": "eth0"})

    def launcher(self, number):
        node, first = self.cluster.nodes[number], self.cluster.nodes[0]
        # This makes it a node of its own for NCCL, too, which otherwise would find shared memory.
        return ["ip", "netns", "exec", node.netns, "env", f"NCCL_HOSTID={node.name}", sys.executable,
                "-m", "torch.distributed.run", "--nnodes", str(NODES), "--nproc-per-node", "1",
                "--rdzv-backend", "c10d", "--rdzv-endpoint", f"{first.address}:{RENDEZVOUS_PORT}",
                "--rdzv-conf", f"is_host={int(number == 0)}", "--rdzv-id", "elastic",
                "--local-addr", node.address,
                "--max-restarts", str(RESTARTS), os.path.join(PROGRAMS, "elastic.py")]


