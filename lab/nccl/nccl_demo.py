# SPDX-License-Identifier: Apache-2.0
"""The demo (`collwatch demo`) on NVIDIA's NCCL: the same scenarios, daemons and nodes."""

import os
import subprocess
import sys

from nccl_place import OFFLINE, Failure, library_of, DEFAULT_VERSION
from nccl_tree import Tree

RANKS_MAX = 64
# Each rank is a node, so that all connections use the network.
RANKS = ['--ranks', '4', '--nodes', '4']

# With network-stall: a connection of the culprit stalls once the demo's file exists. The demo has
# network namespaces or not; a node's name comes from the socket of its daemon.
VARIABLES = {'LAB_STALL_FILE': '${SIM_NCCL_STALL_FILE}', 'NCCL_HOSTID': '${COLLWATCH_SOCKET}'}
# Faults that only the simulated NCCL can inject, with the reason.
SIMULATED_ONLY = {
    'gpu-dies': 'the simulated NCCL lets a collective end on all ranks but one',
    'cascade': 'the simulated NCCL tells of an error of another rank',
    'watchdog-abort': 'the simulated NCCL tells of an error of another rank',
}


def add_arguments(parser):
    parser.add_argument('options', nargs='*', metavar='OPTION',
                        help='those of "collwatch demo", after --')


def main(args):
    try:
        library_of(args.cache, DEFAULT_VERSION)
    except Failure:
        raise Failure('NVIDIA\'s NCCL is not built: run "lab/real-nccl build", which fetches its '
                      'source from Debian and compiles it for some minutes', OFFLINE)
    for name, reason in SIMULATED_ONLY.items():
        if name in args.options:
            raise Failure('%s: %s' % (name, reason))
    has_size = any(o.split('=')[0] in ('--ranks', '--nodes') for o in args.options)
    tree = Tree(args.cache, args.build, RANKS_MAX, VARIABLES)
    try:
        return subprocess.call([os.path.join(tree.dir, 'cli/collwatch'), 'demo'] +
                               ([] if has_size else RANKS) + args.options)
    except KeyboardInterrupt:
        return 130
    finally:
        sys.stdout.flush()
        tree.close()
