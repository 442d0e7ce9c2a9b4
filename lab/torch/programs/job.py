# SPDX-License-Identifier: Apache-2.0
"""
Common code of these PyTorch programs: their options, their data, the training loop of most of them,
the faults of a rank, and their output. Ordinary PyTorch code that knows nothing about
watchers.
"""

import argparse
import ctypes
import datetime
import hashlib
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

FAULTS = {
    'none': 'nothing',
    'block-in-data-loader': 'reading a sample never ends',
    'block-everywhere': 'reading a sample never ends, on all ranks',
    'block-after-restart': 'a sample is damaged; started again, reading it never ends (elastic)',
    'lock-in-c': 'reading a sample waits for a lock of a C library, with the interpreter held',
    'stop': 'the process is stopped',
    'kill': 'the process is killed',
    'exception': 'a sample is damaged',
    'uneven-inputs': 'its samples run out before the others\' do',
    'branch': 'it alone checks the norm',
    'wrong-shape': 'it averages one number more than the others (gloo, ring)',
    'worker-dies': 'a worker of its data loader dies (loader)',
    'worker-blocks': 'a worker of its data loader never answers (loader)',
    'block-in-checkpoint': 'writing its checkpoint never ends (checkpoint)',
    'full-disk': 'its checkpoint does not fit on the disk (checkpoint)',
    'wrong-splits': 'it sends fewer tokens than it has announced (moe)',
    'missing-send': 'it leaves out a message (ring)',
    'skipped-barrier': 'it does not come to a barrier: of the CPU (gloo), after a checkpoint (checkpoint)',
}
WIDTH, BATCH = 32, 8


def options(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument('--steps', type=int, default=12)
    parser.add_argument('--until', metavar='FILE', help='do not end before it is there')
    parser.add_argument('--timeout', type=float, metavar='S', help='of collectives, for torch\'s watchdog')
    parser.add_argument('--debug-server', type=int, metavar='PORT', help='start torch\'s, there')
    parser.add_argument('--fault', choices=FAULTS, default='none', metavar='FAULT',
                        help='; '.join('%s: %s' % f for f in FAULTS.items()))
    parser.add_argument('--fault-rank', type=int, default=1)
    parser.add_argument('--fault-step', type=int, default=5)
    return parser.parse_args()


def wait_for_ever():
    os.read(os.pipe()[0], 1)


def lock_in_c():
    """Acts like a library that forgets to unlock: locks in C, so that no Python thread can run."""
    libc = ctypes.PyDLL(None)
    mutex = ctypes.create_string_buffer(64)
    libc.pthread_mutex_lock(mutex)
    libc.pthread_mutex_lock(mutex)


class Samples:
    """Batches of a rank, the same in every run."""

    def __init__(self, args, rank):
        self.args, self.rank = args, rank
        self.is_wrong = args.fault == 'block-everywhere' or \
            args.fault != 'none' and rank == args.fault_rank
        self.generator = torch.Generator().manual_seed(1000 + rank)

    def goes_wrong(self, fault, step):
        """True if this fault strikes this rank now."""
        if not (self.is_wrong and self.args.fault == fault and step == self.args.fault_step):
            return False
        say(self.rank, 'fault at %.3f' % time.time())
        return True

    def read_sample(self, step):
        if self.goes_wrong('block-in-data-loader', step) or \
                self.goes_wrong('block-everywhere', step):
            wait_for_ever()  # a worker that never answers
        if self.goes_wrong('lock-in-c', step):
            lock_in_c()
        if self.goes_wrong('exception', step):
            raise ValueError('sample %d is damaged' % step)
        if self.goes_wrong('stop', step):
            os.kill(os.getpid(), signal.SIGSTOP)
        if self.goes_wrong('kill', step):
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.randn(BATCH, WIDTH, generator=self.generator)

    def __iter__(self):
        steps = self.args.steps
        if self.is_wrong and self.args.fault == 'uneven-inputs':
            steps = self.args.fault_step
        for step in range(steps):
            yield step, self.read_sample(step)


def check_norm(loss):
    """A rank calls it if it doubts its loss; but every rank of the group must call it."""
    dist.all_reduce(loss.detach().clone(), op=dist.ReduceOp.MAX)


def fit(net, samples, device, before_step=lambda: None, keeps_gradients=False):
    """Trains on all samples; yields after each step. before_step: called with complete gradients.
    keeps_gradients: keep their memory from step to step."""
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for step, batch in samples:
        batch = batch.to(device)
        loss = torch.nn.functional.mse_loss(net(batch), batch)
        if samples.goes_wrong('branch', step):
            check_norm(loss)
        optimizer.zero_grad(set_to_none=not keeps_gradients)
        loss.backward()
        before_step()
        optimizer.step()
        say(samples.rank, 'step %d loss %.6f' % (step, loss.item()))
        yield step, loss.detach()


def average(samples, step, loss):
    """Averages the ranks' results of a step."""
    numbers = [loss, loss * loss]
    if samples.goes_wrong('wrong-shape', step):
        numbers.append(loss)
    told = torch.stack(numbers)
    dist.all_reduce(told, op=dist.ReduceOp.AVG)
    return told[0].item()


def model():
    torch.manual_seed(7)
    return torch.nn.Sequential(
        torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.GELU(), torch.nn.LayerNorm(4 * WIDTH),
        torch.nn.Linear(4 * WIDTH, 4 * WIDTH), torch.nn.GELU(),
        torch.nn.Linear(4 * WIDTH, WIDTH))


def start(args):
    """Returns rank and device."""
    rank = int(os.environ['RANK'])
    device = torch.device('cuda', int(os.environ['LOCAL_RANK']))
    torch.cuda.set_device(device)
    timeout = datetime.timedelta(seconds=args.timeout) if args.timeout else None
    dist.init_process_group('nccl', device_id=device, timeout=timeout)
    if args.debug_server:
        from torch.distributed import debug  # imports torch's profiler, which takes a second
        debug.start_debug_server(args.debug_server, start_method='spawn')
    return rank, device


def say(rank, text):
    print('rank %d %s' % (rank, text), flush=True)


def digest(tensors):
    """A hash of all bytes: equal if every bit is equal."""
    h = hashlib.sha256()
    for t in tensors:
        h.update(bytes(t.detach().cpu().contiguous().view(torch.uint8).flatten().tolist()))
    return h.hexdigest()[:16]


def run(main, description):
    args = options(description)
    rank, device = start(args)
    tensors = main(args, rank, device)
    say(rank, 'result ' + digest(tensors))
    while args.until and not os.path.exists(args.until):
        time.sleep(0.05)
    dist.destroy_process_group()
    sys.stdout.flush()
