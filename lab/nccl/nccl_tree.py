# SPDX-License-Identifier: Apache-2.0
"""
A build directory in which the demo finds NVIDIA's NCCL instead of the simulated one. The demo looks
for its parts beside its own program, so we copy that program and link or wrap the other parts.
"""

import os
import shutil
import tempfile

import nccl_run
from nccl_place import DEFAULT_VERSION, ROOT

# The demo keeps variables of NCCL from its ranks: a script in the program's place sets them.
PROGRAM = """#!/bin/sh
{exports}
exec {program} "$@"
"""
PROGRAM_PY = """import os, runpy, sys
for name, value in {variables!r}.items():
    os.environ.setdefault(name, os.path.expandvars(value))
sys.path[0] = os.path.dirname({program!r})
sys.argv[0] = {program!r}
runpy.run_path({program!r}, run_name="__main__")
"""


def write(path, text):
    with open(path, 'w', encoding='utf-8') as f:
        f.write(text)
    os.chmod(path, 0o755)


class Tree:
    """variables: more of them for the ranks; a value may name another variable of the rank."""

    def __init__(self, cache, build, ranks, variables):
        self.dir = tempfile.mkdtemp(prefix='cw-real-')
        self.build = build
        for name in 'cli', 'lab/sim', 'lab/programs':
            os.makedirs(os.path.join(self.dir, name))
        for name in 'cli/collwatch', 'lab/collwatch-lab':
            shutil.copy2(os.path.join(build, name), os.path.join(self.dir, name))
        for name in 'agent', 'daemon':
            os.symlink(os.path.join(build, name), os.path.join(self.dir, name))
        job = nccl_run.job_environment(cache, build, DEFAULT_VERSION, ranks, 'shm')
        for directory in reversed(job['LD_LIBRARY_PATH'].split(':')):
            for name in os.listdir(directory):
                if '.so.' in name and not name.endswith('.p'):
                    link = os.path.join(self.dir, 'lab/sim', name)
                    if os.path.lexists(link):
                        os.unlink(link)  # NVIDIA's takes the place of ours
                    os.symlink(os.path.join(directory, name), link)
        self.variables = {k: v for k, v in job.items()
                          if k.startswith('NCCL_') and k != 'NCCL_RAS_ADDR'}
        self.variables['NCCL_RAS_ENABLE'] = '0'  # its port would be one for several jobs
        self.variables.update(variables)
        self.add_programs()

    def add_programs(self):
        programs = os.path.join(self.dir, 'lab/programs')
        exports = ''.join(': "${%s=%s}"; export %s\n' % (k, v, k)
                          for k, v in self.variables.items())
        write(os.path.join(programs, 'train_loop'), PROGRAM.format(
            exports=exports, program=os.path.join(self.build, 'lab/programs/train_loop')))
        write(os.path.join(programs, 'train_loop.py'), PROGRAM_PY.format(
            variables=self.variables, program=os.path.join(ROOT, 'lab/programs/train_loop.py')))

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)
