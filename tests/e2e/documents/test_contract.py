# SPDX-License-Identifier: Apache-2.0
"""Documents of every class are as docs/design/alerts.md#document promises, and their texts for
people have no word in them that is for programs."""

import copy
import json
import re
import subprocess
import tempfile

from built import COLLWATCH, MAKE_BUNDLE
from incident_contract import CLASSES, INCIDENT, deviations
from wording import NAMES, slip

ID = "0123456789abcdef"

ALL_REDUCE = """	loop
		work 20ms
		all_reduce world 8192
		sync
	end"""
THREE_CALLS = """	loop
		work 20ms
		all_reduce world 8192
		all_gather world 64
		reduce_scatter world bf16 64
		sync
	end"""
BROADCAST = ALL_REDUCE.replace("all_reduce world 8192", "broadcast world root 1")
TWO_COMMS = ALL_REDUCE.replace("all_reduce world 8192", "all_reduce a\n\t\tall_reduce b")
PIPELINE = """	loop
		recv world from prev
		work 20ms
		send world to next
		sync
	end"""
AT = "fault 3 at 4s on world"

# The fault, seconds until the look, the expected verdict; program and communicators.
CASES = [
    (f"{AT} all_reduce kill", 20, "process_dead killed"),
    (f"{AT} all_reduce oom", 20, "process_dead oom_killed"),
    (f"{AT} all_reduce exit 1", 20, "process_dead exited"),
    ("node 1 at 4s lost", 40, "node_unreachable"),
    (f"{AT} all_reduce block", 60, "never_entered outside_nccl"),
    (f"{AT} all_reduce stop", 60, "never_entered stopped"),
    (f"{AT} all_reduce trace", 60, "never_entered traced"),
    (f"{AT} all_reduce change kind all_gather", 40, "mismatch kind"),
    (f"{AT} all_reduce change count 16", 40, "mismatch count"),
    (f"{AT} all_reduce change dtype fp16", 5, "mismatch dtype"),
    (f"{AT} all_reduce change redop max", 5, "mismatch redop"),
    (f"{AT} all_reduce change redop max", 60, "mismatch unknown_call"),
    (f"{AT} broadcast change root 2", 40, "mismatch root", BROADCAST),
    (f"{AT} all_gather skip", 40, "mismatch missing", THREE_CALLS),
    (f"{AT} all_gather add", 40, "mismatch extra", THREE_CALLS),
    (f"{AT} all_gather swap", 40, "mismatch order", THREE_CALLS),
    ("fault 3 at 4s on a all_reduce swap", 60, "deadlock order", TWO_COMMS,
     "comm a all\ncomm b all"),
    (f"{AT} send block", 60, "p2p_unmatched outside_nccl", PIPELINE),
    (f"{AT} recv change count 9999", 60, "p2p_unmatched size", PIPELINE),
    ("fault 3 at 0s on world block", 190, "init_stuck init", "	init world\n" + ALL_REDUCE,
     "comm world all by init"),
    (f"{AT} all_reduce stuck", 60, "device_stalled"),
    (f"{AT} all_reduce wedge", 60, "in_collective"),
    (f"{AT} all_reduce blind\nfault 3 at 5s on world block", 400, "unknown not_visible"),
]


def bundle_of(tmp, fault, seconds, program=ALL_REDUCE, comms="comm world all"):
    with open(tmp + "/job.scn", "w", encoding="ascii") as f:
        f.write(f"scenario job\nranks 8 per-node 4\n{comms}\nprogram\n{program}\nend\n{fault}\n"
                f"run 500s\nexpect unknown\nend\n")
    subprocess.run([MAKE_BUNDLE, tmp + "/job.scn", str(seconds), tmp], check=True,
                   stdout=subprocess.DEVNULL, timeout=120)
    return f"{tmp}/{ID}"


def printed_by(*command):
    done = subprocess.run([COLLWATCH, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          timeout=120, check=False)
    return json.loads(done.stdout)


def read_by_people(path):
    """The report of a bundle, as text and as a page, without what a program made of the document."""
    for options in [], ["--html"]:
        done = subprocess.run([COLLWATCH, "report", *options, path], stdout=subprocess.PIPE,
                              timeout=120, check=True)
        text = done.stdout.decode()
        yield re.sub(r"<style>.*?</style>|<[^>]*>", " ", text, flags=re.DOTALL)


def check(fault, seconds, verdict, *job):
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp:
        path = bundle_of(tmp, fault, seconds, *job)
        with open(path + "/incident.json", encoding="utf-8") as f:
            kept = json.load(f)
        for doc in kept, printed_by("analyze", "--json", path):
            seen = f"{doc['class']} {doc['detail']}".strip()
            if seen != verdict:
                raise AssertionError(f"\"{fault}\" is a {seen}, not a {verdict}")
            found = deviations(doc)
            if found:
                raise AssertionError(f"{verdict}: " + "\n".join(found))
        return kept


def test_documents_of_every_class_are_as_promised():
    for case in CASES:
        check(*case)
    classes = {case[2].split()[0] for case in CASES}
    assert {word for case in CASES for word in case[2].split() if "_" in word} <= set(NAMES)
    # A slow job hangs no rank: collwatch.healthy/1 reports it.
    assert classes == set(CLASSES) - {"slow"}, set(CLASSES) - classes


def labelled(path, label):
    with open(path + "/incident.json", encoding="utf-8") as f:
        kept = json.load(f)
    kept["job"] = label
    with open(path + "/incident.json", "w", encoding="utf-8") as f:
        json.dump(kept, f)


def changed(path, change):
    """Shows the bundle with a changed incident: exit status, standard output, standard error."""
    with open(path + "/incident.json", encoding="utf-8") as f:
        doc = json.load(f)
    change(doc)
    with open(path + "/incident.json", "w", encoding="utf-8") as f:
        json.dump(doc, f)
    done = subprocess.run([COLLWATCH, "report", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                          check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_an_incident_of_a_newer_version_is_shown_and_called_newer():
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp:
        path = bundle_of(tmp, f"{AT} all_reduce block", 60)
        status, before, said = changed(path, lambda doc: None)
        assert (status, said) == (0, ""), said
        status, text, said = changed(path, lambda doc: doc["culprits"][0].update(colour="red"))
        assert (status, text) == (0, before)
        assert said == (f'collwatch: {path}: incident.json is of a newer version, which has '
                        f'"culprits[0].colour"\n'), said


def test_a_value_of_a_wrong_kind_is_refused_by_its_name():
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp:
        path = bundle_of(tmp, f"{AT} all_reduce block", 60)
        status, text, said = changed(path, lambda doc: doc["culprits"][0].update(pid="many"))
        assert (status, text) == (1, "")
        assert said == (f'collwatch: {path}: incident.json: "culprits[0].pid" is not a whole number of 32 bits\n'), said


def test_no_word_for_programs_reaches_a_person():
    for fault, seconds, verdict, *job in CASES:
        with tempfile.TemporaryDirectory(prefix="cw-") as tmp:
            path = bundle_of(tmp, fault, seconds, *job)
            labelled(path, "master:node-a:29500" if "mismatch" in verdict else "name:train")
            for text in read_by_people(path):
                assert not slip(text), f"{verdict}: {slip(text)}"
                if not re.search(r"\bjob\s+(?:train|node-a:29500)\b", text):
                    raise AssertionError(f"{verdict}: the job is not named: {text[:400]}")


def places_of(contract, document, path=()):
    """Paths of all fields that the document has, and whether each may be missing."""
    if isinstance(contract, tuple):
        contract = next((one for one in contract if isinstance(one, dict)), None)
    if isinstance(contract, dict) and isinstance(document, dict):
        for name, inner in contract.items():
            if name.rstrip("?") in document:
                at = path + (name.rstrip("?"),)
                yield at, name.endswith("?")
                yield from places_of(inner, document[at[-1]], at)
    elif isinstance(contract, list) and document:
        yield from places_of(contract[0], document[0], path + (0,))


def with_change(document, path, change):
    document = copy.deepcopy(document)
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    change(inner, path[-1])
    return document


def test_a_field_that_is_missing_or_of_another_type_is_found():
    document = check(f"{AT} send block", 60, "p2p_unmatched outside_nccl", PIPELINE)
    places = list(places_of(INCIDENT, document))
    assert (("where", "sides", 0, "op", "peer"), False) in places and len(places) > 50, places
    for path, may_be_missing in places:
        missing = with_change(document, path, lambda inner, name: inner.pop(name))
        assert may_be_missing or deviations(missing), f"without {path}"
        wrong = with_change(document, path, lambda inner, name: inner.update({name: [7.5]}))
        assert deviations(wrong), f"{path} of another type"
    assert deviations({**document, "surprise": 1}), "a field that the contract lacks"
