# SPDX-License-Identifier: Apache-2.0
"""The accuracy tables: the output of tests/suite/accuracy for the suite's documents, and the broken
promises that it reports."""

import json
import pathlib
import subprocess
import sys
import tempfile

import pytest
from built import COLLWATCH_LAB, SOURCE

SCRIPT = SOURCE + "/tests/suite/accuracy"


def kept(at, change=lambda doc: None):
    """One run of 24 scenarios of each way, kept in a directory, and changed there."""
    def accuracy():
        done = subprocess.run(
            [sys.executable, SCRIPT, "--lab", COLLWATCH_LAB, "--keep", at, "--barrier", "8", "--barrier-count",
             "24", "--nccl", "8", "--nccl-count", "24", "--jobs", "1"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=240, check=False)
        assert done.returncode in (0, 1), done.stderr
        return done.returncode, done.stdout
    files = list(at.glob("*nccl*.json"))
    if not files:
        accuracy()
        files = list(at.glob("*nccl*.json"))
    doc = json.loads(files[0].read_text(encoding="utf-8"))
    change(doc)
    files[0].write_text(json.dumps(doc), encoding="utf-8")
    return accuracy()


@pytest.fixture(name="at", scope="module")
def directory():
    with tempfile.TemporaryDirectory(prefix="cw-accuracy-") as path:
        yield pathlib.Path(path)


def test_sums_are_those_of_the_documents(at):
    status, told = kept(at)
    docs = [json.loads(f.read_text(encoding="utf-8")) for f in at.glob("*.json")]

    assert status == 0 and "What is promised held." in told
    assert len(docs) == 2
    for doc in docs:
        assert f"{doc['n']:,} scenarios, {doc['missed']} missed" in told
    for name in docs[0]["classes"]:
        assert f"| `{name}` |" in told
    barrier = json.loads(next(at.glob("*barrier*.json")).read_text(encoding="utf-8"))
    for name, figures in barrier["classes"].items():
        assert f"| `{name}` | {figures['n']:,} |" in told


@pytest.mark.parametrize("what, change", [
    ("proven were wrong", lambda doc: doc["proven"].update(wrong=1)),
    ("certain were wrong", lambda doc: doc["certain"].update(wrong=1)),
    ("recall of mismatch", lambda doc: doc["classes"]["mismatch"].update(n=100, right=96)),
    ("precision of mismatch", lambda doc: doc["classes"]["mismatch"].update(given=100, given_rightly=98)),
    ("were proven and paged within 5 s", lambda doc: doc["proofs"].update(n=100, proven_within_5s=94)),
    ("right answers were called certain", lambda doc: doc["proofs"].update(right=100, certain=79)),
])
def test_a_broken_promise_is_told(at, what, change):
    kept(at)
    before = {f: f.read_text(encoding="utf-8") for f in at.glob("*.json")}
    status, told = kept(at, change)
    for f, text in before.items():
        f.write_text(text, encoding="utf-8")

    assert status == 1 and what in told
    assert "What is promised held." not in told
