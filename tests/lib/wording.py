# SPDX-License-Identifier: Apache-2.0
"""Words that are for programs, and slips that a person stumbles over: docs and alerts have none of them."""

import re

# Names of classes and details, and of states of peers and jobs; "all_reduce" is NCCL's own word.
NAMES = ("process_dead", "oom_killed", "node_unreachable", "node_silent", "never_entered", "outside_nccl",
         "unknown_call", "p2p_unmatched", "init_stuck", "device_stalled", "in_collective", "not_visible",
         "progress_untracked", "not_posted", "inside_other_call", "progress_unknown", "daemon_restarting", "host_call",
         "never_seen", "said_goodbye", "led_elsewhere", "job_ended")
# Of the rules that label a job.
LABELS = ("job", "name", "slurm", "pbs", "lsf", "torchelastic", "pmix", "ompi", "master")
# Counts of one, of nothing; numbers that are none.
FOR_PROGRAMS = re.compile(
    r"\b(?:%s)\b|\b(?:%s|comm):(?! )|(?<![-\d.,:/#])1 (?:ranks|nodes|processes|threads|others|calls|members|hangs|days|"
    r"collectives|incidents|alerts|jobs|peers)\b|\b0\.0 s\b|\b0 (?:ranks|nodes) (?:are|have|never)\b|\(null\)|"
    r"\bnan\b|\b(?:4294967295|18446744073709551615)\b|\bcomm comm| ,|;\.|(?<!\.)\.\.(?![./])" %
    ("|".join(NAMES), "|".join(LABELS)))


def slip(text):
    """The first slip, with the text around it; None where there is none."""
    found = FOR_PROGRAMS.search(text)
    return found and f"\"{found[0]}\" in: {text[max(0, found.start() - 80):found.end() + 40]}"


# A word as keys and names in C are written; not a file's, nor what is called, nor what people wrote, quoted.
KEY = re.compile(r"(?<![\w/.'-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w/(]| \(|\.[a-z])")
CALLS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


def key_in(text, known=()):
    """The first key in a sentence; `known` are keys that people write themselves."""
    return next((word for word in KEY.findall(text) if word not in CALLS and word not in known), None)


def sentences_of(document, at=""):
    """(where, text) of each sentence in a document for programs: each string with a space. Commands
    are for typing, and frames of stacks are as the program has them."""
    if isinstance(document, dict):
        for name, inner in document.items():
            if name not in ("command", "stack", "sits_in", "kernel"):
                yield from sentences_of(inner, f"{at}.{name}")
    elif isinstance(document, list):
        for inner in document:
            yield from sentences_of(inner, at + "[]")
    elif isinstance(document, str) and " " in document:
        yield at, document
