# SPDX-License-Identifier: Apache-2.0
"""The promises of docs/design/alerts.md#document and docs/schemas.md on a collwatch.incident/1
document.

A contract has the form of its documents. A dictionary has these fields and no others (a field with
a "?" at the end may be missing), a list holds any number of such, a tuple lists the allowed values,
and a type or a function judges the value itself. The contract of an incident is made from the list
of its facts (lib/model/incident_list.h).
"""

import pathlib
import re

CLASSES = ("process_dead", "node_unreachable", "never_entered", "mismatch", "deadlock",
           "p2p_unmatched", "init_stuck", "device_stalled", "in_collective", "slow", "unknown")


class Named:
    """A contract that may hold itself."""

    def __init__(self, name, contract):
        self.name, self.contract = name, contract


def matches(pattern):
    def judge(value):
        return isinstance(value, str) and re.fullmatch(pattern, value) is not None
    judge.__name__ = f"text like {pattern}"
    judge.pattern = pattern
    return judge


def number(value):
    """JSON's true is an int for Python."""
    return isinstance(value, int) and not isinstance(value, bool)


def count(value):
    """Not negative; beyond 2^63-1 it is text."""
    return number(value) and value >= 0 or matches("0x[0-9a-f]+")(value)


def share(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def text(value):
    return isinstance(value, str) and value.strip() == value and value != ""


SET = matches(r"(\d+(-\d+)?(,\d+(-\d+)?)*)?")
ID = matches("0x[0-9a-f]{1,16}")
TIME = matches(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
END_BY = ("nobody", "itself", "process", "outside", "kernel", "parent", "init")
CAUSE = {"cause_kind?": ("exited", "asked", "killed", "oom_killed", "stopped", "traced", "frozen",
                          "stopped_nonfinite", "stopped_headroom"), "cause_by?": END_BY}
# An argument of a saying has the keys of its kind.
SAID = Named("said", None)
ARG = {"ranks?": (None, SET), "count?": count, "is_rest?": (True,), "rank?": number, "host?": str,
       "pid?": number, "pod?": text, "pod_namespace?": str, "own_pid?": number, "comm?": ID,
       "comm_name?": str, "call?": (None, text), "seq?": count, "peer?": number, "comm_peer?": number,
       "op?": text, "dtype?": text, "redop?": text, "root?": number, "result?": number, "text?": str,
       "ns?": (None, number), "is_less?": (True,), "number?": number, "signal?": number,
       "nccl_version?": number, "detail?": text, "said?": SAID}
SAID.contract = [{"saying": text, "args": [ARG]}]
# The values of the types in model/incident_list.h.
VALUES = {
    "ANY": str, "FULL": text, "RANKS": SET, "WALL": TIME, "SHARE": share, "SCHEMA": ("collwatch.incident/1",),
    "CLASS": CLASSES, "DETAIL": matches("[a-z0-9_]*"), "CONFIDENCE": ("certain", "likely", "possible"),
    "BLIND_SPOT": ("wait", "rank", "calls", "progress"), "HANG": ("proven", "likely", "possible", "none"),
    "SEVERITY": ("page", "notice", "failed"), "HOST_WAIT": ("lock", "gil", "queue", "socket", "tty", "storage"),
    "END_BY": END_BY, "CAUSE_KIND": CAUSE["cause_kind?"], "OP_KIND": text, "DTYPE": str, "REDOP": text,
    "POLICY": ("serving",), "SUPPRESSED": ("shadow", "muted"), "CLOSED_AS": ("slow", "job_ended", "unseen"),
    "TRUE": (True,), "FIRST_REASON": ("only", "time", "cause", "tie"),
    "END_KIND": ("own", "killed", "reaction", "asked", "none", "alive"),
}
LIST = pathlib.Path(__file__).parents[2] / "lib/model/incident_list.h"
ROW = re.compile(r'X\((\w+), (\w+), (\w+), "(\w+)", (\w+), (\w+), "[^"]*", "[^"]*"\)|CW_INCIDENT_(\w+)_FACTS\(X\)')


def value_of(groups, form, kind):
    """The contract of a fact of this form and type."""
    if form in ("TEXT", "SET", "NAME", "TIME", "SAID"):
        return VALUES[kind]
    if form in ("TEXTS", "NAMES", "SAIDS"):
        return [VALUES[kind]]
    if form in ("GROUP", "LIST"):
        return [groups[kind]] if form == "LIST" else groups[kind]
    if form == "BOOL":
        return VALUES["TRUE"] if kind == "TRUE" else bool
    if form == "REAL":
        return share if kind == "SHARE" else (int, float)
    return {"U64": count, "SEQ": count, "ID": ID}.get(form, number)


def or_null(value):
    return (None, *value) if isinstance(value, tuple) else (None, value)


def read_groups():
    """{group: contract} of the list of facts."""
    groups = {}
    for define in re.split(r"^#define CW_INCIDENT_", LIST.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        head = re.match(r"(?:(\w+)_)?FACTS\(X\)", define)
        if not head:
            continue
        contract = groups[(head[1] or "facts").lower()] = {}
        for form, kind, _, key, presence, _, inner in ROW.findall(define[head.end():]):
            if inner:
                contract.update(groups[inner.lower()])
                continue
            value, end = value_of(groups, form, kind), "?" if presence == "OPTIONAL" else ""
            contract[key + end] = or_null(value) if presence == "NULLABLE" else value
            if form in ("SAID", "SAIDS"):
                contract[key + "_said" + end] = SAID if form == "SAID" else [SAID]
    return groups


GROUPS = read_groups()
CULPRIT, OP, INCIDENT = GROUPS["culprit"], GROUPS["call"], GROUPS["facts"]
# Another verdict says nothing about its culprits.
INCIDENT["alternatives"][0]["culprits"] = [{**CULPRIT, "reason": str}]


def ranks_of(ranks):
    """"0-2,5": {0, 1, 2, 5}"""
    return {rank for part in ranks.split(",") if part
            for rank in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)}


def fits(value, want):
    return not list(differences(value, want, ""))


def differences(value, want, path):
    """Yields a sentence for each place where the value is not as wanted."""
    if isinstance(want, Named):
        yield from differences(value, want.contract, path)
    elif isinstance(want, dict):
        if not isinstance(value, dict):
            yield f"{path} is no object: {value!r}"
            return
        fields = {field.rstrip("?"): field for field in want}
        yield from (f"{path}.{field} is missing" for field, name in fields.items()
                    if field not in value and not name.endswith("?"))
        yield from (f"{path}.{field} is in no contract" for field in value if field not in fields)
        for field in set(value) & set(fields):
            yield from differences(value[field], want[fields[field]], f"{path}.{field}")
    elif isinstance(want, list):
        if not isinstance(value, list):
            yield f"{path} is no list: {value!r}"
            return
        for i, item in enumerate(value):
            yield from differences(item, want[0], f"{path}[{i}]")
    elif isinstance(want, tuple):
        if not any(fits(value, one) for one in want):
            yield f"{path} is {value!r}"
    elif isinstance(want, type):
        if not isinstance(value, want):
            yield f"{path} is {value!r}, no {want.__name__}"
    elif callable(want):
        if not want(value):
            yield f"{path} is {value!r}, no {want.__name__}"
    elif value != want or type(value) is not type(want):
        yield f"{path} is {value!r}, not {want!r}"


def ends_of(doc):
    """Where calls differ or no rank is missing, the last of a chain waits for no rank (-1)."""
    has_nobody = (doc["class"] in ("mismatch", "in_collective", "unknown") or
                  (doc["class"], doc["detail"]) == ("p2p_unmatched", "size"))
    return {-1} if has_nobody else set()


def contradictions_of_end(doc):
    """Those about how the job ended."""
    firsts = {end["rank"] for end in doc["ends"] if end["first"]}
    at = [end["ended_ns"] for end in doc["ends"] if end["ended_ns"]]
    if "first" in doc and not doc.get("ends_omitted") and firsts != ranks_of(doc["first"]["ranks"]):
        yield f"first are {doc['first']['ranks']}, and of the ends {firsts}"
    if at != sorted(at):
        yield f"ends are not in the order of their instants: {at}"
    if doc.get("ranks_ended", 0) > len(doc["ends"]) + doc.get("ends_omitted", 0):
        yield f"{doc['ranks_ended']} ranks ended, and {len(doc['ends'])} ends are listed"
    if "first_end" in doc and doc["first_end"] > doc["last_end"]:
        yield f"the first end is at {doc['first_end']}, the last one at {doc['last_end']}"


def contradictions(doc):
    """Yields a sentence for each two fields that cannot both be true."""
    if "ends" in doc:
        yield from contradictions_of_end(doc)
    if doc["severity"] == "failed":
        if len(doc["ends"]) + doc.get("ends_omitted", 0) != doc["coverage"]["ranks_seen"]:
            yield f"{len(doc['ends'])} ends and {doc.get('ends_omitted', 0)} more of {doc['coverage']}"
        if doc["summary"] != doc["ending"] or doc["victims"]["count"] or doc["closed_as"] != "job_ended":
            yield f"a post-mortem without an alert: {doc}"
        return
    victims, times, where = ranks_of(doc["victims"]["ranks"]), doc["times"], doc["where"] or {"sides": []}
    culprits = {culprit["rank"] for culprit in doc["culprits"]}
    is_cycle = doc["class"] == "deadlock"
    at = [times[name] for name in ("stall", "confirmed", "resolved") if times[name]]

    if doc["victims"]["count"] != len(victims):
        yield f"{doc['victims']['count']} victims are {doc['victims']['ranks']}"
    if victims & culprits:
        yield f"{victims & culprits} are culprits and victims"
    if bool(doc["cycle"]) != is_cycle or (is_cycle and doc["chain"]):
        yield f"a {doc['class']} with cycle {doc['cycle']} and chain {doc['chain']}"
    for waits in doc["cycle"], doc["chain"]:
        for one, following in zip(waits, waits[1:]):
            if one["waits_for"] != following["rank"]:
                yield f"rank {one['rank']} waits for {one['waits_for']}, next is {following}"
    if doc["chain"] and culprits and doc["chain"][-1]["waits_for"] not in culprits | ends_of(doc):
        yield f"the chain {doc['chain']} leads to none of {culprits}"
    if not where["sides"] and doc["detail"] != "unknown_call":
        yield "neither side has a rank"
    if ("after_seq" in where) != (doc["detail"] == "unknown_call"):
        yield f"after_seq in {where} of a {doc['detail']}"
    sides = [ranks_of(side["ranks"]) for side in where["sides"]]
    if sum(map(len, sides)) != len(set().union(*sides)):
        yield f"ranks stand on two sides: {sides}"
    if doc["coverage"]["ranks_seen"] > doc["coverage"]["ranks_expected"]:
        yield f"coverage {doc['coverage']}"
    if at != sorted(at):
        yield f"times {times}"


def deviations(doc):
    """The deviations; empty if there are none."""
    return list(differences(doc, INCIDENT, "incident")) or list(contradictions(doc))
