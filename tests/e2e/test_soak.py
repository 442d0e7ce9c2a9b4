# SPDX-License-Identifier: Apache-2.0
"""Does tools/soak count right? A program that plays the demo gives the verdicts."""

import os
import subprocess
import sys
import tempfile

from built import SOURCE

SOAK = SOURCE + "/tools/soak"
# Acts as the environment says; its arguments are "demo SCENARIO … --culprit N …".
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


def test_all_right_is_a_success():
    status, counts, output = soak("killed-rank", "killed", delay=4.5)
    assert status == 0 and counts["runs"] == counts["right"] == 2, output
    assert "4.5" in output and "2 hangs, 0 runs without one" in output, output
    status, counts, output = soak("healthy", "healthy")
    assert status == 0 and counts["right"] == 2, output


def test_another_culprit_is_wrong():
    status, counts, output = soak("killed-rank", "killed", delay=4, culprit=99)
    assert status == 1 and counts["wrong"] == 2, output
    assert "repeat: collwatch demo killed-rank --ranks" in output, output


def test_no_verdict_is_wrong():
    status, counts, output = soak("killed-rank", "nothing")
    assert status == 1 and counts["wrong"] == 2, output


def test_right_but_after_its_promise_is_late():
    status, counts, output = soak("killed-rank", "killed", delay=8.1)
    assert status == 1 and counts["late"] == 2, output


def test_report_about_a_job_that_is_well_is_a_false_alert():
    status, counts, output = soak("healthy", "killed", delay=4)
    assert status == 1 and counts["false"] == 2, output


def test_what_is_left_behind_is_wrong():
    status, counts, output = soak("healthy", "healthy", draws=1, left=1)
    assert status == 1 and counts["wrong"] == 1, output
