# SPDX-License-Identifier: Apache-2.0
"""Common parts: the paths of the cache and our own build, and the failure that all tools raise."""

import os

# Debian sid offers this version, and we test this device with it.
DEFAULT_VERSION = '2.29.7'

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


class Failure(Exception):
    """Ends the tool with a sentence and a status: 1 = failed, 3 = not available offline."""

    def __init__(self, text, status=1):
        super().__init__(text)
        self.status = status


OFFLINE = 3


def default_cache():
    base = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    return os.path.join(base, 'collwatch', 'real-nccl')


def device_dirs(build):
    """The directories of the simulated device in our own build, runtime first."""
    dirs = [os.path.join(build, 'lab', 'nccl'), os.path.join(build, 'lab', 'sim')]
    for name in ('lab/nccl/libcudart.so.13', 'lab/nccl/libnvidia-ml.so.1',
                 'lab/sim/libcuda.so.1'):
        if not os.path.exists(os.path.join(build, name)):
            raise Failure('%s has no %s: build collwatch first (meson setup, ninja), or name '
                          'its build directory with --build' % (build, name))
    return dirs


def version_dir(cache, version):
    return os.path.join(cache, version)


def library_of(cache, version):
    path = os.path.join(version_dir(cache, version), 'lib', 'libnccl.so.2')
    if not os.path.exists(path):
        raise Failure('NCCL %s is not built: run "lab/real-nccl build"' % version, OFFLINE)
    return path
