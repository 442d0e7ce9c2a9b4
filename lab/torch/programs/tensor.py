# SPDX-License-Identifier: Apache-2.0
"""Tensor-parallel training: a layer split by columns, the next by rows, in a mesh with a name."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                               parallelize_module)

import job


def train(args, rank, device):
    mesh = init_device_mesh('cuda', (dist.get_world_size(),), mesh_dim_names=('tp',))
    torch.manual_seed(7)
    net = torch.nn.Sequential(torch.nn.Linear(job.WIDTH, 3 * job.WIDTH), torch.nn.GELU(),
                              torch.nn.Linear(3 * job.WIDTH, job.WIDTH)).to(device)
    net = parallelize_module(net, mesh, {'0': ColwiseParallel(), '2': RowwiseParallel()})
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    samples = job.Samples(args, rank)
    for step, batch in samples:
        # All ranks of a tensor-parallel group work on the same samples.
        torch.manual_seed(step)
        batch = torch.randn_like(batch).to(device)
        loss = torch.nn.functional.mse_loss(net(batch), batch)
        if samples.goes_wrong('branch', step):
            job.check_norm(loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        job.say(rank, 'step %d loss %.6f' % (step, loss.item()))
    dist.barrier()
    return [p.full_tensor() for p in net.parameters()]


if __name__ == '__main__':
    job.run(train, __doc__)
