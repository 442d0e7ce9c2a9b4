# SPDX-License-Identifier: Apache-2.0
"""The right verdicts when one rank of a PyTorch job goes wrong: of lab/torch/programs, on any
device."""
import re

# Laid down before the first run: the right verdict when that rank of CROWD has that fault, and the
# function of its program that the alert has to name.
CULPRIT, CROWD = 1, 3
LABELS = {
    ("ddp", "block-in-data-loader"): ("never_entered", (CULPRIT,), "read_sample"),
    ("ddp", "lock-in-c"): ("never_entered", (CULPRIT,), "lock_in_c"),
    # The line is read_sample's, too; a stopped process has no Python stack.
    ("ddp", "stop"): ("never_entered", (CULPRIT,), None),
    ("ddp", "kill"): ("process_dead", (CULPRIT,), None),
    ("ddp", "exception"): ("process_dead", (CULPRIT,), None),
    ("ddp", "uneven-inputs"): ("mismatch", (CULPRIT,), "train"),
    ("ddp", "branch"): ("mismatch", (CULPRIT,), "check_norm"),
    ("fsdp", "block-in-data-loader"): ("never_entered", (CULPRIT,), "read_sample"),
    ("fsdp", "branch"): ("mismatch", (CULPRIT,), "check_norm"),
    # Laid down as never_entered, which is for collectives: this one waits for a message.
    ("pipeline", "block-in-data-loader"): ("p2p_unmatched", (CULPRIT,), "read_sample"),
    # It waits for the others, which wait for its messages.
    ("pipeline", "branch"): ("deadlock", (CULPRIT,), "check_norm"),
    ("tensor", "block-in-data-loader"): ("never_entered", (CULPRIT,), "read_sample"),
    ("tensor", "branch"): ("mismatch", (CULPRIT,), "check_norm"),
    ("ring", "missing-send"): ("p2p_unmatched", (CULPRIT,), "train"),
    ("ring", "wrong-shape"): ("mismatch", (CULPRIT,), "average"),
    ("moe", "block-in-data-loader"): ("never_entered", (CULPRIT,), "read_sample"),
    ("moe", "wrong-splits"): ("p2p_unmatched", (CULPRIT,), "forward"),
    ("loader", "worker-dies"): ("process_dead", (CULPRIT,), None),
    ("loader", "worker-blocks"): ("never_entered", (CULPRIT,), "fit"),
    ("checkpoint", "block-in-checkpoint"): ("never_entered", (0,), "save"),
    ("checkpoint", "full-disk"): ("process_dead", (0,), None),
    # Its call there is DistributedDataParallel's, from a thread without Python.
    ("checkpoint", "skipped-barrier"): ("mismatch", (CULPRIT,), None),
    ("graph", "block-in-data-loader"): ("never_entered", (CULPRIT,), "read_sample"),
    ("graph", "branch"): ("mismatch", (CULPRIT,), "check_norm"),
    ("elastic", "exception"): ("process_dead", (CULPRIT,), None),
    ("elastic", "block-after-restart"): ("never_entered", (CULPRIT,), "read_sample"),
    ("gloo", "wrong-shape"): ("mismatch", (CULPRIT,), "average"),
    # Laid down as deadlock, rank 1: lost. All others wait for it in a barrier of gloo's,
    # which is invisible, and it waits for them in NCCL. The alert names the place of their
    # wait, and the line.
    ("gloo", "skipped-barrier"): ("never_entered", (0, 2), "check_in"),
}


def fault_rank(fault):
    return 0 if fault in ("block-in-checkpoint", "full-disk") else CULPRIT


def names_line(report, program, function):
    """Whether it has a line of that function of the program's, as stacks are written."""
    files, words = rf"(?:job|{program})\.py", " ".join(report.split())
    return not function or re.search(
        rf"\b{function} (?:\(|\S*/){files}:\d+|called by (?:\w+\.)?{function} \(:\d+\)", words)
