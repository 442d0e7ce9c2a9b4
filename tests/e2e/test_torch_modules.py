# SPDX-License-Identifier: Apache-2.0
"""collwatch.torch beside a small transformer, and what `collwatch numerics` makes of its files."""
import glob
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

import jsonschema
import pytest
from built import COLLWATCH
from documents_contract import TENSORS, deviations
from incident_contract import differences
from ports import unused_port
from waiting import expect

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PROGRAM = HERE + "/programs/tiny_transformer.py"
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None,
                                 reason="this Python has no torch (Debian: python3-torch)")


@pytest.fixture
def at():
    with tempfile.TemporaryDirectory() as path:
        yield path


def python(*words, **environment):
    p = subprocess.run([sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       timeout=120, env={**os.environ, "PYTHONPATH": ROOT + "/python", **environment})
    expect(p.returncode == 0, p.stdout)
    return p.stdout


def numerics(*words):
    p = subprocess.run([COLLWATCH, "numerics", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       timeout=60)
    return p.returncode, p.stdout + p.stderr


def watched(at, *options, **environment):
    """The lines of the file that the program leaves, each as it is promised."""
    path = at + "/rank.jsonl"
    python(PROGRAM, "--watch", "-o", path, *options, **environment)
    with open(ROOT + "/docs/schemas/tensors.json", encoding="utf-8") as f:
        schema = jsonschema.Draft202012Validator(json.load(f))
    with open(path, encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    for line in lines:
        found = list(differences(line, TENSORS, "")) + [e.message for e in schema.iter_errors(line)]
        expect(not found, (found, line))
    expect((lines[0]["line"], lines[-1]["line"]) == ("head", "end"), lines)
    return path, lines


def said(*paths):
    """The document, the same answer as the text's."""
    status, out = numerics("--json", "--last", "21", *paths)
    doc = json.loads(out)
    expect(not deviations(doc), deviations(doc))
    expect(status == (2 if doc["alarm"] else 0), (status, doc))
    return doc, numerics(*paths)[1]


def line_of(text):
    with open(PROGRAM, encoding="utf-8") as f:
        return "%s:%d in forward" % (PROGRAM, 1 + next(i for i, line in enumerate(f) if text in line))


@needs_torch
@pytest.mark.parametrize("options", [(), ("--ops",)], ids=["modules", "ops"])
def test_says_nothing_of_healthy_training(at, options):
    path, lines = watched(at, "--steps", "20", *options)
    steps = [line for line in lines if line["line"] == "step"]
    expect([s["step"] for s in steps] == list(range(20)) and all(s["frames"] > 30 for s in steps), steps)
    expect(lines[-1]["unread"] == lines[-1]["dropped"] == 0, lines[-1])
    doc, text = said(path)
    expect(not doc["alarm"] and text.startswith("nothing to look at"), text)


@needs_torch
def test_changes_nothing_of_what_is_trained(at):
    alone = python(PROGRAM)
    for options in ((), ("--ops",), ("--ops", "--every", "3"), ("--fault", "raise", "--ops")):
        path = at + "/rank.jsonl"
        expect(python(PROGRAM, "--watch", "-o", path, *options).splitlines()[-1] == alone.strip()
               or "raise" in options, options)
        doc, _ = said(path)
        expect(not doc["alarm"], doc)


@needs_torch
@pytest.mark.parametrize("options", [(), ("--ops",)], ids=["modules", "ops"])
def test_names_the_module_that_overflows(at, options):
    path, _ = watched(at, "--fault", "overflow", *options)
    doc, text = said(path)
    first = doc["first"]
    expect((first["step"], first["phase"], first["module"], first["class"], first["number"])
           == (3, "forward", "blocks.1.ffn.up", "Linear", "Inf") and first["inputs_finite"], first)
    expect(first["op"] == ("addmm" if options else ""), first)
    expect(first["site"][0] == line_of("F.gelu(self.up(x))"), first["site"])
    expect(0 < len(doc["before"]) <= 20, len(doc["before"]))
    expect(not [t for f in doc["before"] for t in f["tensors"] if t["absmax"] == "NaN"], "finite but for the mask")
    expect("was the first with Inf: output of blocks.1.ffn.up (Linear)" in text, text)


@needs_torch
def test_names_the_operator_and_its_line(at):
    path, _ = watched(at, "--ops", "--fault", "log")
    first = said(path)[0]["first"]
    expect((first["step"], first["module"], first["op"], first["number"], first["inputs_finite"])
           == (3, "blocks.0", "log", "-Inf", True), first)
    expect(first["site"][0] == line_of("TAKES THE LOGARITHM"), first["site"])


@needs_torch
def test_names_the_module_whose_gradient_is_none(at):
    path, lines = watched(at, "--fault", "gradient")
    doc, text = said(path)
    first = doc["first"]
    expect((first["step"], first["phase"], first["module"]) == (3, "backward", "blocks.1.ffn"), first)
    expect(first["tensors"][first["tensor"]]["what"] == "gradient of input[0]", first)
    expect("backward" in text, text)


@needs_torch
def test_tells_loss_scaling_apart(at):
    path, lines = watched(at, "--fault", "scaled", "--scaler")
    scales = [line["loss_scale"] for line in lines if line["line"] == "step"]
    expect(scales == [1024] * 4 + [512] * 4, scales)
    doc, text = said(path)
    expect(not doc["alarm"] and doc["scaling_steps"] == 1, doc)
    expect("harmless: its scale went from 1024 to 512" in text, text)
    path, lines = watched(at, "--fault", "scaled")
    doc, _ = said(path)
    expect(doc["alarm"] and doc["first"]["phase"] == "backward", "without its scale nobody knows")


@needs_torch
def test_looks_at_one_step_in_so_many(at):
    _, lines = watched(at, "--every", "3", "--ops")
    expect([line["step"] for line in lines if line["line"] == "step"] == [0, 3, 6], lines)


@needs_torch
def test_models_can_be_copied_and_saved(at):
    path, lines = watched(at, "--copy")
    expect(not said(path)[0]["alarm"] and lines[-1]["step"] == 7, lines[-1])


@needs_torch
@pytest.mark.parametrize("options", [(), ("--ops",)], ids=["modules", "ops"])
def test_runs_programs_that_know_nothing_of_it(at, options):
    path = at + "/rank.jsonl"
    python("-m", "collwatch.torch", *options, "-o", path, PROGRAM, "--fault", "overflow")
    first = said(path)[0]["first"]
    expect((first["module"], first["step"]) == ("blocks.1.ffn.up", 3), first)


@needs_torch
@pytest.mark.parametrize("fault,steps", [("drift", "8"), ("", "7")], ids=["drift", "healthy"])
def test_compares_replicas(at, fault, steps):
    port = str(unused_port())
    ps = [subprocess.Popen([sys.executable, PROGRAM, "--watch", "--replicas", "--fault", fault, "--steps", steps],
                           env={**os.environ, "PYTHONPATH": ROOT + "/python", "RANK": str(r), "WORLD_SIZE": "3",
                                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}, cwd=at, stderr=subprocess.PIPE, text=True)
          for r in range(3)]
    for p in ps:
        words = p.communicate(timeout=120)[1]
        expect(p.returncode == 0 and "Error" not in words, words)
    paths = sorted(glob.glob(at + "/collwatch-tensors-rank*.jsonl"))
    expect(len(paths) == 3, paths)
    doc, text = said(*paths)
    expect(doc["ranks"][0]["replicas_compared"] >= 3, doc["ranks"])
    if not fault:
        expect(not doc["alarm"], text)
        return
    first = doc["replicas"][0]  # at the end of step 2: it drifts before the next begins
    expect((first["tensor"], first["groups"], first["step"]) == ("head.bias", [[0, 2], [1]], 2), first)
    expect("step 2: head.bias differs between members of the group" in text, text)


# One bit of one of four copies flips, or two of its numbers change places: 1,000 times.
FLIPS = """
import random, torch
from collwatch.torch.replicas import checksum, groups_of
rng, missed = random.Random(20), 0
for draw in range(1000):
    dtype = rng.choice([torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64, torch.uint8])
    n = rng.randint(2, 5000)
    whole = torch.randint(-100, 100, (n,), generator=torch.Generator().manual_seed(draw)).to(dtype)
    copies = [whole.clone() for _ in range(4)]
    odd = rng.randrange(4)
    if draw % 4:
        memory = copies[odd].view(torch.uint8)
        memory[rng.randrange(memory.numel())] ^= 1 << rng.randrange(8)
    else:
        copies[odd][0], copies[odd][1] = 5, 7
        for i in range(4):
            if i != odd:
                copies[i][0], copies[i][1] = 7, 5
    groups = groups_of([int(checksum(c)) for c in copies])
    missed += groups != [[i for i in range(4) if i != odd], [odd]]
print("missed", missed)
"""


@needs_torch
def test_checksums_see_each_flip():
    expect(python("-c", FLIPS) == "missed 0\n", "a copy that differs")


def test_is_imported_without_torch():
    out = python("-c", "import sys\nsys.modules['torch'] = None\nimport collwatch.torch\n"
                 "print(collwatch.torch.__all__)")
    expect("watch" in out, out)


def test_refuses_what_it_cannot_read(at):
    path = at + "/a.jsonl"
    with open(path, "w", encoding="ascii") as f:
        f.write('{"line": "head", "schema": "collwatch.tensors/1"}\nnonsense\n')
    status, out = numerics(path)
    expect(status == 1 and "a.jsonl:2" in out, out)
