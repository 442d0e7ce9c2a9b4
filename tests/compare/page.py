# SPDX-License-Identifier: Apache-2.0
"""docs/lab/compare.md, from the results of tests/compare/run."""
from tools import ABOUT, COLLWATCH_SAYS, TOOLS, WATCHDOG

HEAD = """# collwatch and other tools

This page is for users who choose a tool, and for maintainers. `tests/compare/run --page docs/lab/compare.md` writes it;
do not edit it. Each hang is a real PyTorch job on real NCCL and the simulated device ([real-torch.md](real-torch.md)).
`tests/compare/cases.py` and `tests/real/torch_labels.py` had the cases, labels and expected losses before the first
run. `tests/compare/tools.py` reads each tool's answers in the tool's own words. We changed it after trial runs of three
cases, mostly in favour of the other tools. One change went against torch's log: an added pattern makes it name ranks 0
and 2, where it had named none.

"""


def cell(found, rank):
    """A tool's result for a case."""
    if found is None:
        return "not asked"
    ranks = found["ranks"]
    if not ranks:
        text = "right: none" if rank is None and found["is_right"] else "names none"
    elif found["is_right"]:
        text = "right"
    else:
        text = "names " + ", ".join(map(str, ranks))
    return text + (", line" if found["has_line"] else "")


def table(heads, rows):
    lines = ["| %s |" % " | ".join(heads), "|---" * len(heads) + "|"]
    return "\n".join(lines + ["| %s |" % " | ".join(map(str, r)) for r in rows]) + "\n"


def versions(result):
    return "\n".join("- %s: %s" % pair for pair in result["versions"].items()) + "\n"


def about():
    return "\n".join("- **%s**: %s." % pair for pair in ABOUT.items()) + "\n"


def verdicts(result):
    return table(["case", "rank", *TOOLS],
                 [[name, "none" if c["rank"] is None else c["rank"],
                   *(cell(c["tools"].get(t), c["rank"]) for t in TOOLS)]
                  for name, c in result["cases"].items()])


def seconds(value):
    return "–" if value is None else "under 1" if value < 1 else "%.0f" % value


def times(result):
    return table(["case", *TOOLS[:-1]],
                 [[name, *(seconds((c["tools"].get(t) or {}).get("first_word_s")) for t in TOOLS[:-1])]
                  for name, c in result["cases"].items()])


def count(result, tool):
    found = [c["tools"].get(tool) for c in result["cases"].values()]
    there = [f for f in found if f]
    return [tool, "%d of %d" % (sum(f["is_right"] for f in there), len(there)),
            "%d of %d" % (sum(f["has_line"] for f in there), len(there)),
            "%d of %d" % (sum(f["is_left"] for f in there), len(there))]


def losses(result):
    """Where another one did better, expected or not."""
    lines = []
    for name, case in result["cases"].items():
        ours = case["tools"][COLLWATCH_SAYS]
        better = ["%s (%s)" % (t, " and ".join(w for w, k in (("rank", "is_right"), ("line", "has_line"))
                                               if f[k] and not ours[k]))
                  for t, f in case["tools"].items()
                  if f and t != COLLWATCH_SAYS and any(f[k] and not ours[k] for k in ("is_right",
                                                                                     "has_line"))]
        if case["loss"]:
            lines.append("- **%s**, expected: %s. %s" % (
                name, case["loss"], "Lost to " + ", ".join(better) + "." if better else
                "No other tool did better." if not (ours["is_right"] and ours["has_line"]) else
                "It was not lost."))
        elif better:
            lines.append("- **%s**, not expected: lost to %s." % (name, ", ".join(better)))
        elif not (ours["is_right"] and ours["has_line"]):
            lines.append("- **%s**, not expected: collwatch missed the %s, as all did." % (
                name, "line" if ours["is_right"] else "rank"))
    return "\n".join(lines or ["None."]) + "\n"


def healthy(result):
    return table(["job", *TOOLS],
                 [[name, *("not asked" if t not in said else
                           "names %s" % ", ".join(map(str, said[t])) if said[t] else "–"
                           for t in TOOLS)] for name, said in result["healthy"].items()])


def costs(result):
    return table(["with", "least, µs", "median, µs"],
                 [[c["with"], "%.2f" % c["least_us"], "%.2f" % c["median_us"]] for c in result["costs"]])


def write(result, path):
    text = HEAD + versions(result) + "\n## Ranks and lines\n\n" + verdicts(result) + """
"right": the labelled rank and no other. "line": the tool prints the labelled function with its file and line. If a tool
prints the stacks of all ranks, the reader must still find that line.

""" + about() + "\n## Sums\n\n" + table(["tool", "rank", "line", "left after the job's death"],
                                       [count(result, t) for t in TOOLS]) + """
"left": we query the tool again after we kill the job, and it still names the rank or the line.
collwatch's classes are in [real-torch.md](real-torch.md#faults).

## Losses

""" + losses(result) + "\n## Seconds to the first useful word\n\n" + times(result) + """
A word is useful if it names the right rank or the line. collwatch reports by itself, so its time counts from the fault.
So does that of %s, with a time-out of %g s instead of torch's 600 s. The time of the other tools
counts from our query.

## Healthy jobs

Ranks that a tool names in a healthy job. Dumps of a running job
show different moments, with its ranks at different calls, so a user must already know of the hang.

""" % (WATCHDOG, result["watchdog_s"]) + (healthy(result) if result["healthy"] else "Not run.\n") + """
## CPU time of a call

The thread calls a small all_reduce; the time includes torch's own work. Machine: %s.

""" % result["machine"] + (costs(result) if result["costs"] else "Not run.\n")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return text
