# SPDX-License-Identifier: Apache-2.0
"""
Runs a program as ranks on the library: the loader finds NVIDIA's NCCL, our runtime, our driver and
our NVML in LD_LIBRARY_PATH. NCCL's variables restrict it to the features that the device emulates.
"""

import os
import random
import signal
import socket
import subprocess
import sys
import time

from nccl_place import ROOT, Failure, device_dirs, library_of

NETS = ('shm', 'socket', 'p2p')

# The features of the emulated device: docs/lab/real-nccl.md gives the reason for each.
SETTINGS = {
    'NCCL_PROTO': '^LL128',
    'NCCL_PAT_ENABLE': '0',
    'NCCL_LOCAL_REGISTER': '0',
    'NCCL_GRAPH_REGISTER': '0',
    'NCCL_CUMEM_ENABLE': '0',
    'NCCL_CUMEM_HOST_ENABLE': '0',
    'NCCL_NVLS_ENABLE': '0',
    'NCCL_IB_DISABLE': '1',
    'NCCL_NET': 'Socket',
    'NCCL_SOCKET_IFNAME': 'lo',
    'NCCL_MAX_NCHANNELS': '2',
    'NCCL_NET_PLUGIN': 'none',
    'NCCL_TUNER_PLUGIN': 'none',
}

# With 'p2p': other processes can map the memory of a device, and NCCL uses this.
PEERS = {'SIM_CUDA_PEERS': '1', 'NCCL_P2P_LEVEL': 'SYS'}

# After a rank has failed, the others get this much time to notice it.
GRACE_S = 10


def add_common(parser):
    parser.add_argument('--cache', metavar='DIR',
                        help='where sources and libraries are kept (default: '
                             '$XDG_CACHE_HOME/collwatch/real-nccl)')
    parser.add_argument('--build', metavar='DIR', default=os.path.join(ROOT, 'build'),
                        help='build directory of collwatch, with the simulated device '
                             '(default: %(default)s)')


def add_arguments(parser):
    parser.add_argument('--ranks', type=int, required=True, metavar='N', help='how many')
    parser.add_argument('--net', choices=NETS, default='shm',
                        help='how ranks reach each other: shared memory, each as a node of '
                             'its own over sockets and NCCL\'s proxy threads, or through the '
                             'memory of each other\'s devices (default: %(default)s)')
    parser.add_argument('--preload', metavar='LIB', help='a library to preload into each rank, '
                        'as build/agent/libcollwatch.so')
    parser.add_argument('--timeout', type=float, default=0, metavar='S',
                        help='kill what still runs after S seconds (default: never)')
    parser.add_argument('program', nargs='+', metavar='PROGRAM',
                        help='and its arguments, after --')


def free_port():
    """Finds a port below the kernel's range for outgoing connections, so that none takes it by
    chance."""
    while True:
        port = random.SystemRandom().randrange(15000, 32768)
        with socket.socket() as s:
            try:
                s.bind(('127.0.0.1', port))
                return port
            except OSError:
                continue


def job_environment(cache, build, version, ranks, net):
    """The common environment of all ranks of a job. NCCL variables of the caller stay."""
    env = dict(os.environ)
    for name, value in {**SETTINGS, **(PEERS if net == 'p2p' else {})}.items():
        env.setdefault(name, value)
    dirs = [os.path.dirname(library_of(cache, version))] + device_dirs(build)
    env.update({
        'LD_LIBRARY_PATH': ':'.join(dirs),
        'WORLD_SIZE': str(ranks),
        'LOCAL_WORLD_SIZE': str(ranks),
        'MASTER_ADDR': '127.0.0.1',
        'MASTER_PORT': str(free_port()),
        'COLLWATCH_LAB_NET': net,
    })
    env.setdefault('NCCL_RAS_ADDR', '127.0.0.1:%d' % free_port())
    return env


def rank_environment(job, rank, preload=None):
    env = dict(job, RANK=str(rank), LOCAL_RANK=str(rank))
    if job['COLLWATCH_LAB_NET'] == 'socket':
        env['NCCL_HOSTID'] = 'lab-node-%d' % rank
    if preload:
        env['LD_PRELOAD'] = os.path.realpath(preload)
    return env


def wait(processes, timeout):
    """Waits for all ranks; returns the statuses. If one fails, it ends the others."""
    end = time.monotonic() + timeout if timeout else None
    while any(p.poll() is None for p in processes):
        if end is None and any(p.poll() not in (None, 0) for p in processes):
            end = time.monotonic() + GRACE_S
        if end is not None and time.monotonic() > end:
            for p in processes:
                if p.poll() is None:
                    p.kill()
        try:
            next(p for p in processes if p.poll() is None).wait(0.1)
        except (subprocess.TimeoutExpired, StopIteration):
            pass
    return [p.returncode for p in processes]


def run_ranks(job, args):
    """Starts the program once per rank and waits for all."""
    processes = []
    try:
        for rank in range(args.ranks):
            try:
                processes.append(subprocess.Popen(
                    args.program, env=rank_environment(job, rank, args.preload)))
            except OSError as e:
                raise Failure('%s: %s' % (args.program[0], e.strerror))
        statuses = wait(processes, args.timeout)
    finally:
        for p in processes:
            if p.poll() is None:
                p.kill()
                p.wait()
    for rank, status in enumerate(statuses):
        if status:
            what = signal.Signals(-status).name if status < 0 else 'status %d' % status
            print('rank %d ended with %s' % (rank, what), file=sys.stderr)
    return 1 if any(statuses) else 0


def main(args):
    if args.ranks < 1:
        raise Failure('--ranks must be 1 or more')
    job = job_environment(args.cache, args.build, args.version, args.ranks, args.net)
    return run_ranks(job, args)
