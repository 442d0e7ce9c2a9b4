# SPDX-License-Identifier: Apache-2.0
"""The hangs of the comparison, laid down before their first run. The labels are in
tests/real/torch_labels.py, except for cases here whose label says more."""
import dataclasses

from torch_labels import LABELS


@dataclasses.dataclass(frozen=True)
class Case:
    """loss: collwatch's expected failure, and the reason. label: (rank or None, function)."""
    name: str
    label: tuple = None
    loss: str = ""
    has_call_stacks: bool = True

    @property
    def program(self):
        return self.name.split("/")[0]

    @property
    def fault(self):
        return self.name.split("/")[1]

    @property
    def rank(self):
        return self.label[0] if self.label else LABELS[self.program, self.fault][1][0]

    @property
    def function(self):
        return self.label[1] if self.label else LABELS[self.program, self.fault][2]


CASES = [
    Case("ddp/block-in-data-loader"),
    Case("ddp/lock-in-c"),
    Case("ddp/branch"),
    Case("graph/block-in-data-loader"),
    Case("ring/missing-send"),
    Case("moe/wrong-splits"),
    Case("ddp/branch/defaults", has_call_stacks=False,
         loss="the line: torch's recorder keeps call stacks by default, collwatch does not"),
    Case("ddp/stop", label=(1, "read_sample"),
         loss="the line: each rank reads its own stack, and a stopped rank cannot"),
    Case("ddp/exception", label=(1, "read_sample"),
         loss="the line: collwatch reports the rank's end; the program prints its traceback"),
    Case("gloo/skipped-barrier", label=(1, "check_in"),
         loss="the rank: collwatch does not see gloo's barrier"),
    Case("ddp/block-everywhere", label=(None, "read_sample"),
         loss="rank and line: no rank waits in NCCL"),
]

# Healthy jobs, and variables of theirs: a tool must neither page for them nor name a rank.
HEALTHY = {"ddp": {}, "moe": {}, "gloo": {}, "graph": {}, "checkpoint": {"CHECKPOINT_S": "45"}}
