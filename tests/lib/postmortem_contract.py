# SPDX-License-Identifier: Apache-2.0
"""The promises of docs/schemas.md on a collwatch.postmortem/1 document, written as
incident_contract.py is."""

from incident_contract import (CAUSE, CLASSES, ID, SET, TIME, count, differences, matches, number, ranks_of,
                               text)

SECONDS = (int, float)
DETAIL = matches("[a-z0-9_]*")
CONFIDENCE = ("certain", "likely", "possible")
CALL = {"comm": ID, "comm_name": str, "kind": text, "coll_seq": count, "dtype": str, "count": count,
        "done": bool, "entered": (None, TIME)}
END = {"rank": number, "host": text, "pid": number, "pod?": text, "pod_namespace?": text,
       "container?": text, "own_pid?": number, "how": text,
       "kind": ("own", "killed", "reaction", "asked", "none", "alive"), "cause": (None, text), **CAUSE,
       "first": bool, "ended": (None, TIME), "ended_ns": (None, number),
       "after_s": (None, int, float), "unsure_s": SECONDS}
POSTMORTEM = {
    "schema": ("collwatch.postmortem/1",), "id": text, "incident": bool, "job": str, "uid": number, "user?": text,
    "class": CLASSES, "detail": DETAIL, "confidence": CONFIDENCE, "culprits": [number],
    "summary": text,
    "first": (None, {"ranks": SET, "count": number, "by": ("only", "time", "cause", "tie"),
                     "together": number, "margin_s": (None, int, float)}),
    "ends": [END], "ends_omitted": number,
    "ended": [{"ranks": SET, "count": number, "how": text}], "ended_otherwise": number,
    "waited_for": (None, {"class": CLASSES, "detail": DETAIL, "confidence": CONFIDENCE,
                          "ranks": [number], "count": number, "for_s": SECONDS, "summary": text}),
    "open": [{**CALL, "ranks": SET, "members": number}],
    "last_calls": [{"rank": number, "comm_name": str, "entered": count, "calls": [CALL]}],
    "wrong_data": [text], "notes": [text],
    "coverage": {"ranks_expected": number, "ranks_seen": number, "ranks_ended": number},
    "times": {"first": (None, TIME), "last": (None, TIME), "confirmed": (None, TIME)},
    "leader": text, "command": text,
}


def contradictions(doc):
    """Yields a sentence for each two fields that cannot both be true."""
    firsts = {end["rank"] for end in doc["ends"] if end["first"]}
    at = [end["ended_ns"] for end in doc["ends"] if end["ended_ns"]]
    if doc["first"] and not doc["ends_omitted"] and firsts != ranks_of(doc["first"]["ranks"]):
        yield f"first are {doc['first']['ranks']}, and of the ends {firsts}"
    if at != sorted(at):
        yield f"ends are not in the order of their instants: {at}"
    if len(doc["ends"]) + doc["ends_omitted"] != doc["coverage"]["ranks_seen"]:
        yield f"{len(doc['ends'])} ends and {doc['ends_omitted']} more of {doc['coverage']}"
    if doc["coverage"]["ranks_ended"] > doc["coverage"]["ranks_seen"]:
        yield f"coverage {doc['coverage']}"
    if doc["times"]["first"] and doc["times"]["last"] and doc["times"]["first"] > doc["times"]["last"]:
        yield f"times {doc['times']}"


def deviations(doc):
    """The deviations; empty if there are none."""
    return list(differences(doc, POSTMORTEM, "postmortem")) or list(contradictions(doc))
