# SPDX-License-Identifier: Apache-2.0
"""
Builds libnccl.so.2 from a source tree of NCCL: NVIDIA's unchanged host code, host tables from
NCCL's own generator, and our emulation in lab/nccl/device instead of the device code, compiled
against the same headers. At run time the library needs a libcudart.so.13, here the one in
lab/nccl/cudart. Ninja builds everything in the cache, so an interrupted build can continue.
"""

import fcntl
import glob
import os
import re
import shutil
import subprocess
import sys

import nccl_headers
import nccl_source
from nccl_place import ROOT, Failure, device_dirs, version_dir

# Host sources that we exclude from the library, with the reason.
OMITTED = {
    'src/init_nvtx.cc': 'NVTX is off',
    'src/ras/client.cc': 'a program of its own',
    'src/os/windows.cc': 'another system',
    'src/enhcompat.cc': 'only with the static runtime',
    'src/transport/net_ib/gdaki/': 'writes to network cards from the GPU',
    'src/device/': 'device code: emulated',
}

DEVICE_DIR = os.path.join(ROOT, 'lab', 'nccl', 'device')


def say(text):
    print('real-nccl: ' + text, flush=True)


def needs(*programs):
    for p in programs:
        if not shutil.which(p.split()[0]):  # "ccache g++"
            raise Failure('%s is not installed' % p)


def write_if_new(path, text):
    try:
        with open(path) as f:
            if f.read() == text:
                return
    except OSError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as f:
        f.write(text)


def host_sources(tree):
    names = [os.path.relpath(p, tree)
             for p in glob.glob(os.path.join(tree, 'src', '**', '*.cc'), recursive=True)]
    return sorted(n for n in names if not any(n.startswith(o) for o in OMITTED))


def make_headers(tree, gen, version):
    """Makes nccl.h and the header with the commit, like NCCL's makefile."""
    with open(os.path.join(tree, 'src', 'nccl.h.in')) as f:
        text = f.read()
    number = version[0] * 10000 + version[1] * 100 + version[2]
    for name, value in (('Major', version[0]), ('Minor', version[1]), ('Patch', version[2]),
                        ('Suffix', ''), ('Version', number)):
        text = text.replace('${nccl:%s}' % name, str(value))
    write_if_new(os.path.join(gen, 'nccl.h'), text)
    write_if_new(os.path.join(gen, 'nccl_git_version.h'),
                 '#pragma once\n#define NCCL_GIT_BRANCH "unknown"\n'
                 '#define NCCL_GIT_COMMIT_HASH "unknown"\n')


def make_tables(tree, gen):
    """Makes the kernels' host tables with NCCL's own generator, and the kernels as empty functions."""
    generator = os.path.join(tree, 'src', 'device', 'generate.py')
    if not os.path.exists(generator):
        raise Failure('this tree has no src/device/generate.py (NCCL before 2.19): its tables '
                      'are made by a makefile, which is not supported')
    part = os.path.join(gen, 'tables.part')
    shutil.rmtree(part, ignore_errors=True)
    p = subprocess.run([sys.executable, '-B', generator, part], text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT)
    table = os.path.join(part, 'host_table.cc')
    if p.returncode != 0 or not os.path.exists(table):
        raise Failure('src/device/generate.py failed:\n%s' % p.stdout.strip())
    with open(table) as f:
        text = f.read()
    shutil.rmtree(part)
    write_if_new(os.path.join(gen, 'host_table.cc'), text)

    found = re.findall(r'__global__ void (ncclDevKernel_\w+)\(([^)]*)\);', text)
    args = {a for _, a in found}
    if not found or args != {'ncclDevKernelArgs4K const'}:
        raise Failure('the kernels of this version take %s: the emulation knows '
                      'ncclDevKernelArgs4K only (NCCL 2.23 and later)' % (sorted(args) or 'nothing'))
    names = [n for n, _ in found]
    out = ['/* Made by lab/real-nccl: NCCL\'s kernels as its host code names them. */',
           '#include "device.h"', '#include "lab/nccl/device/kernels.h"', '']
    out += ['__global__ void %s(ncclDevKernelArgs4K const)\n{\n}' % n for n in names]
    out += ['', 'const struct lab_kernel_name lab_kernel_names[] = {']
    out += ['\t{ "%s", (const void *)%s },' % (n, n) for n in names]
    out += ['};', 'const unsigned int lab_kernel_count = %d;' % len(names), '']
    write_if_new(os.path.join(gen, 'kernel_names.cc'), '\n'.join(out))


def ninja_escape(text):
    return text.replace('$', '$$').replace(' ', '$ ').replace(':', '$:')


def make_ninja(tree, out, gen, includes, cuda, device):
    src = os.path.join(tree, 'src')
    dirs = [gen, src] + [os.path.join(src, d) for d in ('include', 'include/plugin', 'device')]
    dirs += [os.path.join(src, 'transport/net_ib/gdaki/doca-gpunetio/include')]
    flags = ['-std=c++17', '-O2', '-g1', '-fPIC', '-fvisibility=hidden', '-w',
             '-DNCCL_OS_LINUX', '-DPROFAPI', '-DNVTX_DISABLE',
             '-DCUDA_MAJOR=%d' % cuda[0], '-DCUDA_MINOR=%d' % cuda[1]]
    flags += ['-I' + d for d in dirs] + ['-isystem ' + d for d in includes]
    ours = flags[:4] + ['-Wall', '-Wextra', '-Wno-unused-parameter', '-Wno-unknown-pragmas',
                        '-fno-strict-aliasing', '-I' + ROOT] + flags[5 + 1:]
    ours = [f if not f.startswith('-I' + src) else '-isystem ' + f[2:] for f in ours]

    lines = ['ninja_required_version = 1.8', 'builddir = ' + ninja_escape(out),
             'cxx = ' + (os.environ.get('CXX') or 'g++'),
             'flags = ' + ' '.join(flags), 'ours = ' + ' '.join(ours),
             'rule host', '  command = $cxx $flags -MMD -MF $out.d -c $in -o $out',
             '  depfile = $out.d', '  deps = gcc', '  description = NCCL: $name',
             'rule device', '  command = $cxx $ours -MMD -MF $out.d -c $in -o $out',
             '  depfile = $out.d', '  deps = gcc', '  description = ours: $name',
             'rule link',
             '  command = $cxx -shared -Wl,-soname,libnccl.so.2 -Wl,--no-undefined '
             '-Wl,--wrap=accept,--wrap=connect,--wrap=recv,--wrap=send -Wl,--version-script=%s -o $out @$out.rsp -L%s '
             '-l:libcudart.so.13 -lpthread -lrt -ldl'
             % (os.path.join(gen, 'exports.map'), device[0]),
             '  rspfile = $out.rsp', '  rspfile_content = $in_newline',
             '  description = linking $out', '']
    objects = []

    def add(rule, path, name):
        obj = os.path.join(out, 'obj', name.replace('/', '_') + '.o')
        objects.append(obj)
        lines.append('build %s: %s %s' % (ninja_escape(obj), rule, ninja_escape(path)))
        lines.append('  name = ' + name)

    for name in host_sources(tree):
        add('host', os.path.join(tree, name), name)
    for name in ('host_table.cc', 'kernel_names.cc'):
        add('host' if name == 'host_table.cc' else 'device', os.path.join(gen, name), name)
    for path in sorted(glob.glob(os.path.join(DEVICE_DIR, '*.cc'))):
        add('device', path, 'lab/nccl/device/' + os.path.basename(path))
    lib = os.path.join(out, 'lib', 'libnccl.so.2')
    lines.append('build %s: link %s | %s' % (
        ninja_escape(lib), ' '.join(map(ninja_escape, objects)),
        ninja_escape(os.path.join(gen, 'exports.map'))))
    lines.append('default ' + ninja_escape(lib))
    write_if_new(os.path.join(gen, 'exports.map'),
                 '{\n\tglobal:\n\t\tnccl*;\n\t\tpnccl*;\n\tlocal:\n\t\t*;\n};\n')
    write_if_new(os.path.join(out, 'build.ninja'), '\n'.join(lines) + '\n')
    return lib, len(objects)


def keep_licence(tree, out):
    """Keeps the licence and the notices beside the built library."""
    for name in ('LICENSE.txt', 'ThirdPartyNotices.txt'):
        if os.path.exists(os.path.join(tree, name)):
            shutil.copy(os.path.join(tree, name), os.path.join(out, name))


def link_headers(gen, out):
    """Links the headers for programs that compile against this library."""
    os.makedirs(os.path.join(out, 'include'), exist_ok=True)
    shutil.copy(os.path.join(gen, 'nccl.h'), os.path.join(out, 'include', 'nccl.h'))


def lock(cache):
    """Allows one build at a time in a cache; the next one reuses its results. The process holds the
    lock until its end."""
    os.makedirs(cache, exist_ok=True)
    fd = os.open(os.path.join(cache, 'lock'), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return fd


def main(args):
    held = lock(args.cache)
    try:
        return build(args)
    finally:
        os.close(held)


def build(args):
    needs(os.environ.get('CXX') or 'g++', 'ninja')
    device = device_dirs(args.build)
    tree = nccl_source.get(args.cache, args.source, args.offline, say)
    version = nccl_source.version_of(tree)
    name = '.'.join(map(str, version))
    includes, cuda = nccl_headers.get(args.cache, args.cuda, args.offline, say)
    out = version_dir(args.cache, name)
    gen = os.path.join(out, 'generated')
    os.makedirs(out, exist_ok=True)
    say('NCCL %s of %s, headers of CUDA %d.%d in %s' % (name, tree, cuda[0], cuda[1], includes[0]))
    keep_licence(tree, out)
    stage = 'its headers'
    try:
        make_headers(tree, gen, version)
        stage = 'the tables of its kernels'
        make_tables(tree, gen)
        lib, count = make_ninja(tree, out, gen, includes, cuda, device)
        link_headers(gen, out)
        say('compiling what is new of %d files, %d at a time' % (count, args.jobs))
        stage = 'compiling'
        p = subprocess.run(['ninja', '-C', out, '-j', str(max(args.jobs or 1, 1)), '-k', '0'])
        if p.returncode != 0:
            raise Failure('%d of %d files compile; they are kept in %s'
                          % (len(glob.glob(os.path.join(out, 'obj', '*.o'))), count, out))
    except (Failure, OSError) as e:
        raise Failure('NCCL %s of %s gets as far as %s: %s' % (name, tree, stage, e))
    say('%s is ready' % lib)
    return 0
