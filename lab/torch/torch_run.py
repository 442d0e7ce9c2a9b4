# SPDX-License-Identifier: Apache-2.0
"""Runs Python programs as ranks of a job on PyTorch's own CUDA build and the simulated device."""

import os
import sys

import nccl_run
import torch_build
from nccl_place import DEFAULT_VERSION, OFFLINE, Failure

# Few threads for the CPU's kernels, because ranks share few processors.
SETTINGS = {'OMP_NUM_THREADS': '1', 'MKL_NUM_THREADS': '1'}


def job_environment(cache, build, ranks, net):
    """The environment of real NCCL, plus the path for importing torch."""
    absent = torch_build.missing(cache)
    if absent:
        raise Failure(absent, OFFLINE)
    env = nccl_run.job_environment(cache, build, DEFAULT_VERSION, ranks, net)
    place = torch_build.place(cache)
    for name, value in SETTINGS.items():
        env.setdefault(name, value)
    env['SIM_CUDA_DEVICES'] = str(ranks)
    env['LD_LIBRARY_PATH'] = os.path.join(place, 'lib') + ':' + env['LD_LIBRARY_PATH']
    env['PYTHONPATH'] = ':'.join([os.path.join(place, 'backend'), torch_build.OURS,
                                  os.path.join(place, 'site')]
                                 + list(filter(None, [os.environ.get('PYTHONPATH')])))
    # Each rank imports a thousand files of torch: Python compiles them once, outside of all trees.
    env['PYTHONDONTWRITEBYTECODE'] = ''
    env['PYTHONPYCACHEPREFIX'] = os.path.join(place, 'pycache')
    env['COLLWATCH_LAB_REDIRECT'] = os.path.join(place, 'lib', 'libredirect.so')
    return env


def torchrun(ranks):
    """The command of torch's own launcher, on this node; the caller appends the program."""
    return [sys.executable, '-m', 'torch.distributed.run', '--standalone', '--nproc-per-node',
            str(ranks)]


def main(args):
    job = job_environment(args.cache, args.build, args.ranks, args.net)
    if not args.torchrun:
        args.program = [sys.executable] + args.program
        return nccl_run.run_ranks(job, args)
    # The launcher passes its own environment to its ranks, and gives no rank its own node.
    job['COLLWATCH_LAB_NET'] = 'shm'
    if args.preload:
        job['LD_PRELOAD'] = os.path.realpath(args.preload)
    os.execvpe(sys.executable, torchrun(args.ranks) + args.program, job)
