# SPDX-License-Identifier: Apache-2.0
"""Words that are for programs, and slips that a person stumbles over: docs and alerts have none of them."""

import re

# Names of classes and details; "all_reduce" is NCCL's own word.
NAMES = ("process_dead", "oom_killed", "node_unreachable", "node_silent", "never_entered", "outside_nccl",
         "unknown_call", "p2p_unmatched", "init_stuck", "device_stalled", "in_collective", "not_visible")
# Of the rules that label a job.
LABELS = ("name", "slurm", "pbs", "lsf", "torchelastic", "pmix", "ompi", "master")
# Counts of one, of nothing; numbers that are none.
FOR_PROGRAMS = re.compile(
    r"\b(?:%s)\b|\b(?:%s|comm):(?! )|(?<![-\d.,:/#])1 (?:ranks|nodes|processes|threads|others|calls|members|"
    r"collectives|incidents|alerts|jobs|peers)\b|\b0\.0 s\b|\b0 (?:ranks|nodes) (?:are|have|never)\b|\(null\)|"
    r"\bnan\b|\b(?:4294967295|18446744073709551615)\b|\bcomm comm| ,|;\.|(?<!\.)\.\.(?![./])" %
    ("|".join(NAMES), "|".join(LABELS)))


def slip(text):
    """The first, with what stands around it; None where there is none."""
    found = FOR_PROGRAMS.search(text)
    return found and f"\"{found[0]}\" in: {text[max(0, found.start() - 80):found.end() + 40]}"
