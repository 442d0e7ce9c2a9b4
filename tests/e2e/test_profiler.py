#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs that know the agent only as a plugin of NCCL's profiler interface, down to the verdict. One
daemon, a job for each fault, all at once. Prints TAP."""
import os
import tempfile

import tap
from agent_lib import AGENT, check, environment, start, subprocess, wait_until
from fault_lib import PATIENCE, RealDaemon

TRAIN = os.environ["CW_TRAIN_LOOP"]
RANKS, FAULTY = 2, 1
TRAINING = ["--step-ms", "20", "--log-every", "0", "--elements", "64", "--steps", "0"]
SCENES = {  # fault: newest version of the interface, class
    "block-in-data-loader": (5, "never_entered"),
    "wrong-count": (4, "mismatch"),
}


class Scenes:
    """Made by the first test, given back by the last."""

    def __init__(self):
        self.daemon = RealDaemon(config=PATIENCE)
        self.daemon.start()
        self.ranks = []
        for name, (version, _) in SCENES.items():
            at = tempfile.mkdtemp(dir=self.daemon.dir)
            for rank in range(RANKS):
                env = environment(self.daemon, preload=None, RANK=str(rank), LOCAL_RANK=str(rank),
                                  WORLD_SIZE=str(RANKS), COLLWATCH_JOB=name,
                                  NCCL_PROFILER_PLUGIN=AGENT, SIM_NCCL_PROFILER=str(version))
                self.ranks.append(start(
                    [TRAIN, *TRAINING, "--fault", name, "--fault-rank", str(FAULTY),
                     "--fault-step", "30", "--uid-file", at + "/uid"], env,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def close(self):
        for rank in self.ranks:
            rank.kill()
            rank.wait()
        self.daemon.__exit__()


def the_verdict_on(fault):
    def look():
        doc = wait_until(lambda: scenes.daemon.incident_of(fault), fault + " is found")
        check(doc["class"] == SCENES[fault][1], str(doc))
        if doc["class"] == "never_entered":
            check([c["rank"] for c in doc["culprits"]] == [FAULTY], str(doc))
        print("# %s (%s): %s" % (doc["class"], doc["confidence"], doc["summary"]))
    look.__name__ = "finds_" + fault.replace("-", "_")
    return look


if __name__ == "__main__":
    scenes = Scenes()
    try:
        tap.run([the_verdict_on(fault) for fault in SCENES])
    finally:
        scenes.close()
