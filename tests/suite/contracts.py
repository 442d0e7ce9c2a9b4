#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What programs print as JSON has the fields that docs/schemas.md gives, no fewer and no others.

Usage: contracts.py SCHEMAS.MD COLLWATCH VERDICT_BENCH DUMPS
"""

import json
import os
import re
import subprocess
import sys
import tempfile

FAILED = []

# Of collwatch.incident/1, as docs/design/alerts.md#document and docs/schemas.md have it.
INCIDENT = ("schema id job group class detail confidence blind_spots hang severity culprits victims "
            "where alternatives coverage times summary ruled_out chain leader bundle nccl_errors "
            "nonfinite_inputs").split()
COVERAGE = "ranks_expected ranks_seen untracked last_known missing notes".split()
TIMES = "last_progress stall confirmed".split()


def check(right, what):
    print(f"{'ok' if right else 'not ok'} - {what}")
    if not right:
        FAILED.append(what)


def documented(text, before):
    """The example after the line that has these words."""
    found = re.search(re.escape(before) + r".*?```json\n(.*?)```", text, re.S)
    return json.loads(found.group(1)) if found else sys.exit(f"no example of {before}")


def kind(value):
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def compare(want, got, path, is_map=()):
    """Same fields, same types; of a map, whose keys are data, each value is like the first."""
    if kind(want) != kind(got):
        check(False, f"{path} is {kind(got)}, not {kind(want)}")
    elif isinstance(want, dict) and re.sub(r"\[.*", "[]", path.rsplit(".", 1)[-1]) in is_map:
        for key, value in got.items():
            compare(next(iter(want.values())), value, f"{path}[{key}]", is_map)
    elif isinstance(want, dict):
        check(set(want) == set(got), f"{path} has {sorted(want)}, got {sorted(got)}")
        for key in set(want) & set(got):
            compare(want[key], got[key], f"{path}.{key}", is_map)
    elif isinstance(want, list) and want and got:
        compare(want[0], got[0], f"{path}[]", is_map)


def output_of(*command, status=(0,)):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    check(done.returncode in status, f"{' '.join(command[1:3])} ends with {done.returncode}")
    return json.loads(done.stdout)


WRONG = """scenario "a miss"
layout dp
ranks 4 per-node 4
comm world all
program
loop
work 50ms
all_reduce world 64
sync
end
end
fault 1 at 5s on world kill
run 60s
expect process_dead 2
end
scenario "a control"
layout dp
ranks 4 per-node 4
comm world all
program
loop
work 50ms
all_reduce world 64
sync
end
end
run 20s
expect silence
end
"""


def dump(*calls):
    """What a rank's recorder holds of calls (number, state) that took no times."""
    return {"version": "2.9", "pg_config": {"0": {"desc": "default_pg", "ranks": [0, 1, 2]}},
            "entries": [{"process_group": ["0", "default_pg"],
                         "profiling_name": "nccl:all_reduce", "collective_seq_id": number,
                         "state": state, "input_sizes": [[8]], "input_dtypes": ["Float"],
                         "output_sizes": [[8]], "output_dtypes": ["Float"]}
                        for number, state in calls]}


def status_of_dumps(collwatch, *dumps):
    """Exit status of `analyze` on dumps of ranks 0, 1, …; None: that rank left none."""
    with tempfile.TemporaryDirectory() as tmp:
        for rank, content in enumerate(dumps):
            if content is None:
                continue
            with open(os.path.join(tmp, f"nccl_trace_rank_{rank}.json"), "w",
                      encoding="utf-8") as file:
                json.dump(content, file)
        return subprocess.run([collwatch, "analyze", "--flight-recorder", tmp], check=False,
                              stdout=subprocess.DEVNULL).returncode


def check_dumps(collwatch):
    inside, done = dump((8, "started")), dump((7, "completed"))
    for dumps, status, why in (
            ((inside, inside, done), 2, "a wait of unknown age is a wait"),
            ((inside, inside, None), 2, "the missing dump may matter"),
            ((inside, None, None), 3, "one of three says nothing"),
            ((done, done, done), 0, "no rank waits"),
            ((done, done, None), 3, "no visible rank waits")):
        got = status_of_dumps(collwatch, *dumps)
        check(got == status, f"{why}: status {got}, not {status}")


def main():
    schemas, collwatch, bench, dumps = sys.argv[1:]
    with open(schemas, encoding="utf-8") as file:
        text = file.read()
    with tempfile.TemporaryDirectory() as tmp:
        scenarios = os.path.join(tmp, "contract.scn")
        with open(scenarios, "w", encoding="utf-8") as file:
            file.write(WRONG)
        got = output_of(collwatch, "suite", scenarios, "--json", status=(2,))
    compare(documented(text, "`collwatch suite --json`"), got, "suite",
            ("classes", "confusion", "confusion[]"))
    check(got["controls"] == {"n": 1, "alerts": 0}, "the control is counted, and silent")
    check(got["n"] == 2 and got["missed"] == 1 and len(got["misses"]) == 1, "one of two is missed")
    check(got["misses"][0]["where"] == f"{scenarios}:1", "the miss is told by file and line")

    got = output_of(bench, "--ranks", "64", "--comms", "3", "--scenario", "never-entered", "--json")
    compare(documented(text, "`verdict-bench --json`"), got, "bench")
    check(got["ranks"] == 64 and got["comms"] == 3, "the bench measured what it was asked to")

    got = output_of(collwatch, "analyze", "--flight-recorder", f"{dumps}/never_entered", "--json",
                    status=(2,))
    check(set(INCIDENT) <= set(got), f"an incident lacks {sorted(set(INCIDENT) - set(got))}")
    check({"comm", "comm_name", "coll_seq", "sides"} <= set(got["where"]), "an incident says where")
    check(set(COVERAGE) == set(got["coverage"]), "an incident says what was seen")
    check(set(TIMES) <= set(got["times"]), "an incident says when")
    got = output_of(collwatch, "analyze", "--flight-recorder", f"{dumps}/all_well", "--json")
    healthy = re.search(r"`(\{\"schema\":\"collwatch.healthy/1\".*?\})`", text, re.S)
    check(set(json.loads(healthy.group(1))) | {"notes", "slow"} == set(got), "nothing wrong, in all fields")
    check_dumps(collwatch)
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
