# SPDX-License-Identifier: Apache-2.0
"""
Installs PyTorch's unchanged CUDA build from the package index into a cache outside the tree, with
the parts that it needs to run without NVIDIA's libraries. The loader finds our runtime and driver
by its ordinary rules. For cuBLAS, cuDNN and the like we make libraries of the same names: their
functions print their own name and fail. torch itself loads the redirection of arithmetic
(lab/torch/redirect.cc), as the backend of a package.
"""

import os
import re
import shutil
import subprocess
import sys

import nccl_build
from nccl_place import DEFAULT_VERSION, OFFLINE, ROOT, Failure, library_of

VERSION = '2.13.0'
SIZE = '530 MB, 1.1 GB unpacked'
# What "import torch" and torch.distributed import; nothing of NVIDIA's.
WITH_IT = ['filelock==4.2.12', 'typing-extensions==4.16.0', 'sympy==1.14.0', 'mpmath==1.3.0',
           'networkx==3.6.1', 'jinja2==3.1.6', 'markupsafe==3.0.4', 'fsspec==2026.9.0',
           'numpy==2.3.5']

# Missing libraries that torch links to, by the prefix of their functions.
ABSENT = {
    'cublasLt': 'libcublasLt.so.13', 'cublas': 'libcublas.so.13', 'cudnn': 'libcudnn.so.9',
    'cufft': 'libcufft.so.12', 'cuFile': 'libcufile.so.0', 'cupti': 'libcupti.so.13',
    'curand': 'libcurand.so.10', 'cusolver': 'libcusolver.so.12',
    'cusparseLt': 'libcusparseLt.so.0', 'cusparse': 'libcusparse.so.12',
    'nvrtc': 'libnvrtc.so.13', 'nvshmem': 'libnvshmem_host.so.3',
}
# torch takes the address of some driver functions that the simulated driver lacks.
DRIVER_REST = 'libnvrtc.so.13'

OURS = os.path.join(ROOT, 'lab', 'torch')


def say(text):
    print('real-torch: ' + text, flush=True)


def place(cache):
    """The cache directory, beside NCCL's; one per version of torch and of Python."""
    return os.path.join(os.path.dirname(cache), 'real-torch', '%s-cp%d%d'
                        % ((VERSION,) + sys.version_info[:2]))


def missing(cache):
    """Names a missing requirement of a run, or returns None."""
    try:
        library_of(cache, DEFAULT_VERSION)
    except Failure as e:
        return str(e)
    for name in ('site/torch/__init__.py', 'lib/libredirect.so', 'lib/done'):
        if not os.path.exists(os.path.join(place(cache), name)):
            return 'PyTorch %s is not there: run "lab/real-torch build"' % VERSION
    return None


def run(command, what, status=1, within_s=None):
    try:
        p = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           timeout=within_s)
    except subprocess.TimeoutExpired:
        raise Failure('%s: not within %g s' % (what, within_s), status) from None
    if p.returncode != 0:
        raise Failure('%s:\n%s' % (what, p.stdout.strip()[-3000:]), status)
    return p.stdout


def fetch(out, offline, within_s):
    site = os.path.join(out, 'site')
    if os.path.isdir(site):
        return site
    if offline:
        raise Failure('the cache has no PyTorch, and --offline forbids to fetch it', OFFLINE)
    say('fetching PyTorch %s (%s)' % (VERSION, SIZE))
    part = site + '.part'
    shutil.rmtree(part, ignore_errors=True)
    run([sys.executable, '-m', 'pip', 'install', '--quiet', '--no-deps', '--only-binary=:all:',
         '--no-cache-dir', '--no-compile', '--disable-pip-version-check', '--target', part,
         'torch==' + VERSION] + WITH_IT, 'PyTorch could not be fetched', OFFLINE, within_s)
    os.rename(part, site)
    return site


def undefined(site, build):
    """Symbols that torch's libraries need and none of our libraries has."""
    lib = os.path.join(site, 'torch', 'lib')
    names = [os.path.join(lib, n) for n in sorted(os.listdir(lib)) if '.so' in n]
    wanted = set(re.findall(r' [Uw] (\S+)', run(['nm', '-D', '--undefined-only'] + names,
                                                'nm failed')))
    ours = [os.path.join(build, p) for p in ('lab/sim/libcuda.so.1', 'lab/nccl/libcudart.so.13')]
    has = set(re.findall(r' T ([^@\s]+)', run(['nm', '-D', '--defined-only'] + ours, 'nm failed')))
    return sorted(w for w in wanted if w.split('@')[0] not in has)


def library_for(symbol):
    name = symbol.split('@')[0]
    for prefix in sorted(ABSENT, key=len, reverse=True):
        if name.startswith(prefix):
            return ABSENT[prefix]
    return DRIVER_REST if re.match(r'cu[A-Z]', name) else None


def make_absent(site, build, lib):
    """Makes a library of the same name and versions for each missing one."""
    symbols = {soname: set() for soname in ABSENT.values()}
    for symbol in undefined(site, build):
        soname = library_for(symbol)
        if soname:
            symbols[soname].add(symbol)
    for soname, wanted in symbols.items():
        source = os.path.join(lib, soname + '.c')
        versions = {}
        with open(source, 'w') as f:
            f.write('#include "lab/torch/absent.h"\n')
            for s in sorted(wanted):
                name, _, version = s.partition('@')
                f.write('%s(%s)\n' % ('ABSENT_TEXT' if 'String' in name else 'ABSENT', name))
                versions.setdefault(version, []).append(name)
        with open(source + '.map', 'w') as f:
            for version, names in sorted(versions.items()):
                if version:
                    f.write('%s {\n\tglobal:\n\t\t%s;\n};\n' % (version, ';\n\t\t'.join(names)))
        command = [os.environ.get('CC') or 'cc', '-shared', '-fPIC', '-O1', '-I' + ROOT,
                   '-Wl,-soname,' + soname, '-o', source + '.part', source]
        if any(versions):
            command.append('-Wl,--version-script=' + source + '.map')
        run(command, '%s cannot be made' % soname)
        os.rename(source + '.part', os.path.join(lib, soname))  # running jobs may use the old one


def make_redirect(site, lib):
    """Compiles it against torch's headers, which takes a minute."""
    source = os.path.join(OURS, 'redirect.cc')
    out = os.path.join(lib, 'libredirect.so')
    if os.path.exists(out) and os.path.getmtime(out) > os.path.getmtime(source):
        return
    say('compiling the redirection of arithmetic')
    include = os.path.join(site, 'torch', 'include')
    run([os.environ.get('CXX') or 'g++', '-std=c++20', '-O1', '-fPIC', '-shared', '-w',
         '-isystem', include, '-isystem', os.path.join(include, 'torch/csrc/api/include'),
         source, '-o', out + '.part', '-L' + os.path.join(site, 'torch', 'lib'),
         '-Wl,--no-as-needed', '-l:libtorch_cpu.so', '-l:libc10.so'],
        'the redirection could not be compiled')
    os.rename(out + '.part', out)


def make_entry_point(out):
    """Registers our module under the entry point whose modules torch imports at the end of its own
    import."""
    info = os.path.join(out, 'backend', 'collwatch_lab-0.dist-info')
    os.makedirs(info, exist_ok=True)
    with open(os.path.join(info, 'METADATA'), 'w') as f:
        f.write('Metadata-Version: 2.1\nName: collwatch-lab\nVersion: 0\n')
    with open(os.path.join(info, 'entry_points.txt'), 'w') as f:
        f.write('[torch.backends]\ncollwatch_lab = collwatch_lab:load\n')


def main(args):
    nccl_build.needs(os.environ.get('CXX') or 'g++', os.environ.get('CC') or 'cc', 'nm')
    out = place(args.cache)
    lib = os.path.join(out, 'lib')
    os.makedirs(lib, exist_ok=True)
    held = nccl_build.lock(out)
    try:
        make(args, out, lib)
    finally:
        os.close(held)
    say('PyTorch %s is ready in %s' % (VERSION, out))
    return 0


def make(args, out, lib):
    site = fetch(out, args.offline, args.fetch_within)
    nccl_build.main(args)
    make_absent(site, args.build, lib)
    make_redirect(site, lib)
    make_entry_point(out)
    with open(os.path.join(lib, 'done'), 'w'):
        pass


def check(args):
    absent = missing(args.cache)
    if absent:
        raise Failure(absent, OFFLINE)
    return 0
