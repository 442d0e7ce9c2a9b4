#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does tools/soak count right? A program that plays the demo gives the verdicts. Prints TAP.

usage: test_soak.py SOAK
"""

import os
import subprocess
import sys
import tempfile

import tap

SOAK = sys.argv[1]
# Says what the environment tells it to; its arguments are "demo SCENARIO … --culprit N …".
PLAYER = """#!/bin/sh
culprit=$(printf '%s\\n' "$@" | sed -n '/--culprit/{n;p}')
[ -z "$PLAY_CULPRIT" ] || culprit=$PLAY_CULPRIT
[ -z "$PLAY_DELAY" ] || echo "demo: alert received after $PLAY_DELAY s" >&2
[ -z "$PLAY_LEFT" ] || : > "$TMPDIR/left"
case $PLAY in
healthy) echo '{"schema": "collwatch.healthy/1"}'; exit 0 ;;
killed) echo '{"class": "process_dead", "detail": "killed", "culprits": [{"rank": '$culprit'}]}'
	exit 2 ;;
*) echo "cannot" >&2; exit 1 ;;
esac
"""


def soak(scenario, play, draws=2, **more):
    with tempfile.NamedTemporaryFile("w", prefix="cw-player-", delete=False) as player:
        player.write(PLAYER)
    os.chmod(player.name, 0o755)
    try:
        done = subprocess.run(
            [sys.executable, SOAK, "--collwatch", player.name, "--load", "0", "--draws",
             str(draws), "--seed", "1", scenario], text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "PLAY": play,
                 **{"PLAY_" + name.upper(): str(value) for name, value in more.items()}})
    finally:
        os.unlink(player.name)
    row = next(line.split() for line in done.stdout.splitlines()
               if line.startswith(scenario + " "))
    counts = dict(zip(("runs", "right", "wrong", "late", "false"), map(int, row[1:6])))
    return done.returncode, counts, done.stdout


def expect(condition, what):
    if not condition:
        raise tap.Failure(str(what))


def all_right_is_a_success():
    status, counts, output = soak("killed-rank", "killed", delay=4.5)
    expect(status == 0 and counts["runs"] == counts["right"] == 2, output)
    expect("4.5" in output and "2 hangs, 0 runs without one" in output, output)
    status, counts, output = soak("healthy", "healthy")
    expect(status == 0 and counts["right"] == 2, output)


def another_culprit_is_wrong():
    status, counts, output = soak("killed-rank", "killed", delay=4, culprit=99)
    expect(status == 1 and counts["wrong"] == 2, output)
    expect("repeat: collwatch demo killed-rank --ranks" in output, output)


def no_verdict_is_wrong():
    status, counts, output = soak("killed-rank", "nothing")
    expect(status == 1 and counts["wrong"] == 2, output)


def right_but_after_its_promise_is_late():
    status, counts, output = soak("killed-rank", "killed", delay=8.1)
    expect(status == 1 and counts["late"] == 2, output)


def report_about_a_job_that_is_well_is_a_false_alert():
    status, counts, output = soak("healthy", "killed", delay=4)
    expect(status == 1 and counts["false"] == 2, output)


def what_is_left_behind_is_wrong():
    status, counts, output = soak("healthy", "healthy", draws=1, left=1)
    expect(status == 1 and counts["wrong"] == 1, output)


if __name__ == "__main__":
    tap.run([all_right_is_a_success, another_culprit_is_wrong, no_verdict_is_wrong,
             right_but_after_its_promise_is_late, report_about_a_job_that_is_well_is_a_false_alert,
             what_is_left_behind_is_wrong])
