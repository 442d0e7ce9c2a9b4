# SPDX-License-Identifier: Apache-2.0
"""
The source of NCCL: Debian's tarball, by name and version, through apt with private state, so
that the machine's lists stay unchanged. apt checks the index against the archive's key and the
tarball against the index; we check a tarball in the cache against apt's checksum.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile

from nccl_place import DEFAULT_VERSION, OFFLINE, Failure

PACKAGE = 'nvidia-nccl'
DEBIAN_VERSION = '2.29.7-1-1'
TARBALL = 'nvidia-nccl_2.29.7-1.orig.tar.gz'
SUITE = 'sid'
MIRROR = 'http://deb.debian.org/debian'
KEYRINGS = ['/usr/share/keyrings/debian-archive-keyring.gpg',
            '/usr/share/keyrings/debian-archive-keyring.pgp']


def run(command, env=None, cwd=None):
    p = subprocess.run(command, env=env, cwd=cwd, text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT)
    return p.returncode, p.stdout


def private_apt(state):
    """Configures apt to keep its lists, cache and sources only in @state."""
    keyring = next((k for k in KEYRINGS if os.path.exists(k)), None)
    if not keyring:
        raise Failure('the Debian archive\'s keys are missing (package debian-archive-keyring): '
                      'the source cannot be checked. Give a source tree with --source')
    for sub in ('lists/partial', 'cache/archives/partial'):
        os.makedirs(os.path.join(state, sub))
    with open(os.path.join(state, 'sources.list'), 'w') as f:
        f.write('deb-src [signed-by=%s] %s %s contrib\n' % (keyring, MIRROR, SUITE))
    with open(os.path.join(state, 'apt.conf'), 'w') as f:
        f.write('Dir::State "%s";\nDir::State::lists "%s/lists";\nDir::Cache "%s/cache";\n'
                'Dir::Etc::sourcelist "%s/sources.list";\nDir::Etc::sourceparts "/dev/null";\n'
                'APT::Sandbox::User "";\nAPT::Get::AllowUnauthenticated "false";\n'
                'Acquire::AllowInsecureRepositories "false";\nAcquire::Retries "2";\n'
                % ((state,) * 4))
    return dict(os.environ, APT_CONFIG=os.path.join(state, 'apt.conf'), LC_ALL='C')


def fetch(cache, say):
    """Returns the path of the tarball after apt has checked it."""
    if not shutil.which('apt-get'):
        raise Failure('there is no apt-get here: give a source tree of NCCL with --source')
    with tempfile.TemporaryDirectory(prefix='real-nccl-apt-') as state:
        env = private_apt(state)
        say('reading the index of %s %s contrib' % (MIRROR, SUITE))
        rc, out = run(['apt-get', 'update', '-o', 'APT::Update::Error-Mode=any'], env)
        if rc != 0:
            raise Failure('the index of Debian\'s %s is not to be had, or its signature is not '
                          'right:\n%s' % (SUITE, out.strip()), OFFLINE)
        say('fetching %s=%s' % (PACKAGE, DEBIAN_VERSION))
        rc, out = run(['apt-get', 'source', '--download-only', '--tar-only',
                       '%s=%s' % (PACKAGE, DEBIAN_VERSION)], env, state)
        path = os.path.join(state, TARBALL)
        if rc != 0 or not os.path.exists(path):
            _, offered = run(['apt-cache', 'showsrc', PACKAGE], env)
            versions = re.findall(r'^Version: (.*)$', offered, re.M)
            raise Failure('%s has no source of %s=%s (it offers: %s):\n%s'
                          % (SUITE, PACKAGE, DEBIAN_VERSION, ', '.join(versions) or 'none',
                             out.strip()), OFFLINE)
        os.makedirs(cache, exist_ok=True)
        kept = os.path.join(cache, TARBALL)
        shutil.copy(path, kept + '.part')
        with open(kept + '.sha256.part', 'w') as f:
            f.write(digest(kept + '.part') + '\n')
        os.rename(kept + '.sha256.part', kept + '.sha256')
        os.rename(kept + '.part', kept)
        return kept


def digest(path):
    h = hashlib.sha256()
    with open(path, 'rb') as f:
        for block in iter(lambda: f.read(1 << 20), b''):
            h.update(block)
    return h.hexdigest()


def cached(cache):
    """The tarball if it is whole, else None."""
    path = os.path.join(cache, TARBALL)
    try:
        with open(path + '.sha256') as f:
            if f.read().strip() == digest(path):
                return path
    except OSError:
        pass
    return None


def unpack(tarball, dest):
    """Unpacks beside @dest and renames, so that an existing tree is always complete."""
    part = dest + '.part'
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(part)
    with tarfile.open(tarball) as tar:
        for m in tar.getmembers():
            inside = os.path.realpath(os.path.join(part, m.name))
            if not inside.startswith(os.path.realpath(part) + os.sep) or not (
                    m.isfile() or m.isdir() or m.issym()):
                raise Failure('%s holds %s: not unpacked' % (tarball, m.name))
            if m.issym() and (os.path.isabs(m.linkname) or '..' in m.linkname.split('/')):
                continue  # we compile none of these
            tar.extract(m, part)
    top = os.listdir(part)
    if len(top) != 1:
        raise Failure('%s does not hold one directory' % tarball)
    os.rename(os.path.join(part, top[0]), dest)
    os.rmdir(part)


def version_of(tree):
    try:
        with open(os.path.join(tree, 'makefiles', 'version.mk')) as f:
            found = dict(re.findall(r'^NCCL_(MAJOR|MINOR|PATCH)\s*:=\s*(\d+)', f.read(), re.M))
        return tuple(int(found[k]) for k in ('MAJOR', 'MINOR', 'PATCH'))
    except (OSError, KeyError):
        raise Failure('%s is no source tree of NCCL: no makefiles/version.mk in it' % tree)


def get(cache, source, offline, say):
    """Returns a source tree."""
    if source:
        return os.path.realpath(source)
    tree = os.path.join(cache, 'source-' + DEFAULT_VERSION)
    if os.path.isdir(tree):
        return tree
    tarball = cached(cache)
    if not tarball and offline:
        raise Failure('the cache %s has no source of NCCL, and --offline forbids to fetch it'
                      % cache, OFFLINE)
    tarball = tarball or fetch(cache, say)
    say('unpacking %s' % tarball)
    unpack(tarball, tree)
    return tree
