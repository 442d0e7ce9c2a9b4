# SPDX-License-Identifier: Apache-2.0
"""
The demo with real PyTorch: torchrun starts a job, one rank's data loader never answers, and the
demo prints collwatch's report. Its files are private and deleted afterwards, except for the downloads.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import torch_build
import torch_run
from nccl_place import ROOT, Failure

PROGRAM = os.path.join(ROOT, 'lab', 'torch', 'programs', 'ddp.py')
FUNCTION, CULPRIT, RANKS = 'read_sample', 1, 2
# Like the demo's daemons: no longer than a spectator's patience.
CONFIG = '''node_name = "demo"
agent_socket = "%(dir)s/agent.sock"
control_socket = "%(dir)s/control.sock"
state_dir = "%(dir)s/state"
no_progress_after = "5s"
'''
PARTS = {'agent': 'agent/libcollwatch.so', 'daemon': 'daemon/collwatchd',
         'collwatch': 'cli/collwatch'}
POLL_S = 0.2


def say(text):
    print('demo: ' + text, file=sys.stderr, flush=True)


def add_arguments(parser):
    parser.add_argument('--yes', action='store_true', help='fetch PyTorch without asking')
    parser.add_argument('--check', action='store_true',
                        help='exit 0 when the verdict is right, else 1')
    parser.add_argument('--timeout', type=float, default=900, metavar='S',
                        help='patience until the verdict (default: %(default)g)')


def may_fetch(args):
    """True if the user agrees; without a terminal we do not ask."""
    if args.yes:
        return True
    print('PyTorch %s is fetched from the Python package index (%s), NCCL\'s source from Debian, '
          'into %s; NCCL is then compiled: minutes.'
          % (torch_build.VERSION, torch_build.SIZE, os.path.dirname(args.cache)))
    if not sys.stdin.isatty():
        print('Nobody is there to be asked: --yes says so beforehand.')
        return False
    return input('Do that? [y/N] ').strip().lower() in ('y', 'yes')


def part(args, name):
    path = os.path.join(args.build, PARTS[name])
    if not os.path.exists(path):
        raise Failure('%s is not built' % path)
    return path


def incident_in(state):
    """The document of the first incident and its directory, or None."""
    top = os.path.join(state, 'incidents')
    for name in sorted(os.listdir(top)) if os.path.isdir(top) else []:
        try:
            with open(os.path.join(top, name, 'incident.json')) as f:
                return json.load(f), os.path.join(top, name)
        except (OSError, ValueError):
            pass  # still incomplete
    return None


def wait_for(what, found, processes, end):
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        for name, p in processes:
            if p.poll() is not None:
                raise Failure('%s ended with status %d before %s' % (name, p.returncode, what))
        time.sleep(POLL_S)
    raise Failure('no %s in time' % what, 3)


def is_right(incident, report):
    """Compares with the expected verdict: the class, the rank and the line in its program."""
    return (incident['class'] == 'never_entered'
            and [c['rank'] for c in incident['culprits']] == [CULPRIT] and FUNCTION in report)


def show(args, directory, started):
    end = time.monotonic() + args.timeout
    with open(directory + '/conf', 'w') as f:
        f.write(CONFIG % {'dir': directory})
    log = open(directory + '/log', 'wb')
    daemon = subprocess.Popen([part(args, 'daemon'), '--config', directory + '/conf'],
                              stdout=log, stderr=log, start_new_session=True)
    started.append(daemon)
    wait_for('the daemon', lambda: os.path.exists(directory + '/agent.sock'),
             [('the daemon', daemon)], end)

    job = torch_run.job_environment(args.cache, args.build, RANKS, 'shm')
    job.update(LD_PRELOAD=part(args, 'agent'), COLLWATCH_SOCKET=directory + '/agent.sock',
               COLLWATCH_JOB='torch-demo')
    command = torch_run.torchrun(RANKS) + [
        PROGRAM, '--steps', '1000000', '--fault', 'block-in-data-loader', '--fault-rank',
        str(CULPRIT)]
    say('torchrun starts %d ranks of %s' % (RANKS, os.path.relpath(PROGRAM, ROOT)))
    launcher = subprocess.Popen(command, env=job, stdout=log, stderr=log, start_new_session=True)
    started.append(launcher)
    say('at step 5 the data loader of rank %d stops answering' % CULPRIT)
    incident, bundle = wait_for('verdict', lambda: incident_in(directory + '/state'),
                                [('the daemon', daemon), ('torchrun', launcher)], end)

    def report():
        text = subprocess.run([part(args, 'collwatch'), 'report', bundle], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
        return text if FUNCTION in text else None
    try:
        text = wait_for('Python line', report, [('the daemon', daemon)], end)
    except Failure:
        text = subprocess.run([part(args, 'collwatch'), 'report', bundle], text=True,
                              stdout=subprocess.PIPE).stdout
    print(text)
    if not is_right(incident, text):
        say('that is not the verdict it should be: never_entered, rank %d, in %s'
            % (CULPRIT, FUNCTION))
        return 1
    return 0 if args.check else 2


def main(args):
    if torch_build.missing(args.cache):
        if not may_fetch(args):
            return 1
        torch_build.main(args)
    directory = tempfile.mkdtemp(prefix='cw-torch-demo-')
    started = []
    try:
        return show(args, directory, started)
    except Failure:
        with open(directory + '/log', errors='replace') as f:
            sys.stderr.write(f.read()[-4000:])
        raise
    finally:
        for p in reversed(started):
            stop(p)
        shutil.rmtree(directory, ignore_errors=True)


def stop(process):
    """Stops the process and its descendants: torchrun gives each rank its own session."""
    children = ranks_of(process.pid)
    for pid in [process.pid] + children:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()


def ranks_of(pid):
    try:
        with open('/proc/%d/task/%d/children' % (pid, pid)) as f:
            return [int(c) for c in f.read().split()]
    except OSError:
        return []
