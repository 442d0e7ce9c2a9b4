# SPDX-License-Identifier: Apache-2.0
"""
CUDA's headers, which NCCL's host code includes: an installed toolkit's, else those in NVIDIA's
wheels, unpacked into the cache. We only compile with them and link nothing of NVIDIA's.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import zipfile

from nccl_place import OFFLINE, Failure

WHEELS = ['nvidia-cuda-runtime==13.0.96', 'nvidia-cuda-crt==13.0.88', 'nvidia-cuda-cccl==13.0.85']
NEEDED = ['cuda.h', 'cuda_runtime.h', 'cuda_fp16.h', 'crt/host_config.h']


def has_headers(include):
    return all(os.path.exists(os.path.join(include, h)) for h in NEEDED)


def version_of(include):
    with open(os.path.join(include, 'cuda.h'), errors='replace') as f:
        m = re.search(r'#define\s+CUDA_VERSION\s+(\d+)', f.read())
    if not m:
        raise Failure('%s/cuda.h names no CUDA_VERSION' % include)
    return int(m.group(1)) // 1000, int(m.group(1)) % 1000 // 10


def installed(cuda):
    if cuda:
        for include in (os.path.join(cuda, 'include'), cuda):
            if has_headers(include):
                return include
        raise Failure('%s has no headers of CUDA (%s)' % (cuda, ', '.join(NEEDED)))
    for top in filter(None, [os.environ.get('CUDA_HOME'), '/usr/local/cuda', '/usr']):
        if has_headers(os.path.join(top, 'include')):
            return os.path.join(top, 'include')
    return None


def wheels(cache, say):
    """Unpacks only the headers of the wheels, and keeps their licences beside them."""
    dest = os.path.join(cache, 'cuda-headers')
    found = glob.glob(os.path.join(dest, 'nvidia', '*', 'include'))
    if found:
        return found[0]
    say('fetching the headers of CUDA: ' + ', '.join(WHEELS))
    part = dest + '.part'
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(part)
    p = subprocess.run([sys.executable, '-m', 'pip', 'download', '--quiet', '--no-deps',
                        '--only-binary=:all:', '--disable-pip-version-check', '-d', part] + WHEELS,
                       text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if p.returncode != 0:
        raise Failure('no headers of CUDA: no toolkit is installed, and pip could not fetch '
                      'them:\n%s' % p.stdout.strip(), OFFLINE)
    for wheel in glob.glob(os.path.join(part, '*.whl')):
        with zipfile.ZipFile(wheel) as z:
            for name in z.namelist():
                if '/include/' in name or '.dist-info/' in name:
                    z.extract(name, part)
        os.unlink(wheel)
    os.rename(part, dest)
    found = glob.glob(os.path.join(dest, 'nvidia', '*', 'include'))
    if not found or not has_headers(found[0]):
        raise Failure('the wheels %s do not hold the headers that were expected' % WHEELS)
    return found[0]


def get(cache, cuda, offline, say):
    """Returns the include directories and (major, minor)."""
    include = installed(cuda)
    if not include:
        if offline and not os.path.isdir(os.path.join(cache, 'cuda-headers')):
            raise Failure('no toolkit of CUDA is installed, the cache has no headers, and '
                          '--offline forbids to fetch them', OFFLINE)
        include = wheels(cache, say)
    dirs = [include]
    if os.path.isdir(os.path.join(include, 'cccl')):
        dirs.append(os.path.join(include, 'cccl'))
    return dirs, version_of(include)
