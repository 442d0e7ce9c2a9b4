# SPDX-License-Identifier: Apache-2.0
"""collwatch.torch beside a small transformer, and the output of `collwatch numerics`
for its files."""
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
    expect(not doc["alarm"] and text.startswith("no finding"), text)


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
    expect(doc["alarm"] and doc["first"]["phase"] == "backward", "without a scaler the overflow is an alarm")


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


# In a notebook a user interrupts a call of the model, and goes on. No hook sees the interruption.
INTERRUPTED = """
import sys, torch, collwatch.torch
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack as modes
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line, self.is_slow = torch.nn.Linear(4, 4), False
    def forward(self, x):
        y = self.line(x)
        if self.is_slow:
            raise KeyboardInterrupt
        return y
net = Net()
for goes_on in True, False:
    watch = collwatch.torch.watch(net, ops=True, path="%s/%d.jsonl" % (sys.argv[1], goes_on))
    net.is_slow = True
    try:
        net(torch.ones(1, 4))
    except KeyboardInterrupt:
        pass
    net.is_slow = False
    if goes_on:
        net(torch.ones(1, 4))
        assert not modes(), modes()
    watch.close()
    assert not modes(), modes()
"""


@needs_torch
def test_a_call_that_is_interrupted_leaves_nothing_behind(at):
    python("-c", INTERRUPTED, at)
    for name, steps in (("1", 2), ("0", 1)):
        with open(f"{at}/{name}.jsonl", encoding="utf-8") as f:
            told = [json.loads(line) for line in f]
        expect(sum(line["line"] == "step" for line in told) == steps and told[-1]["line"] == "end", told)


# Numbers of tensors of each layout and with each number that is special, against plain arithmetic.
NUMBERS = """
import math, random, torch
from collwatch.torch import stats
def plainly(x):
    x = x.double().flatten().tolist()
    least = min((abs(v) for v in x if v), default=math.inf)
    return [min(x), max(x), least, math.fsum(x) / len(x) if all(map(math.isfinite, x)) else sum(x) / len(x)]
torch.manual_seed(1)
many = torch.relu(torch.randn(1100, 1000))  # more than are looked at in one piece
drawn = [torch.randn(100, 7), torch.randn(50, 3).t(), torch.randn(4, 5, 6).permute(2, 0, 1), torch.randn(64)[::3],
         torch.randn(6, 1).expand(6, 4), torch.randn(8, 8)[2:5, 1:7], many, torch.tensor(0.0), torch.tensor(-1.5)]
drawn += [torch.tensor(v) for v in ([0.0, 0.0], [-0.0, 3e-3, -2e-3], [-0.0], [1e-45, 0.0, 2.0], [math.inf, 1.0],
                                    [-math.inf, 0.0], [3e38] * 1000, [-3e38, 3e38])]
wrong = 0
with torch.inference_mode():  # what is kept from there serves elsewhere, too
    stats.of(torch.ones(3), False)
for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
    for x in drawn:
        x = x.to(dtype)
        for has_norm in (False, True):
            found, wanted = stats.of(stats.plain(x), has_norm).tolist()[:4], plainly(x)
            slack = 1e-6 * float(x.double().abs().mean()) if torch.isfinite(x).all() else 0
            wrong += found[:3] != wanted[:3] or abs(found[3] - wanted[3]) > slack and found[3] != wanted[3]
for bad in ([math.nan, 2.0, 0.0], [math.nan]):
    found = stats.of(torch.tensor(bad), False).tolist()
    wrong += not (math.isnan(found[0]) and math.isnan(found[1])) or found[2] != (2.0 if len(bad) > 1 else math.inf)
print("wrong", wrong)
"""


@needs_torch
def test_numbers_of_tensors_are_right():
    expect(python("-c", NUMBERS) == "wrong 0\n", python("-c", NUMBERS))


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


# ---- communication ----

COMMS_PROGRAM = HERE + "/programs/torch_comms.py"
COMMS = ("all_reduce", "reduce", "reduce_scatter", "all_gather", "gather", "scatter", "broadcast", "all_to_all",
         "all_to_all_single", "send", "recv", "isend", "irecv", "batch_isend_irecv")


def communicated(at, *options):
    """The lines of two ranks that make each call of torch.distributed once a step, on gloo."""
    port = str(unused_port())
    ps = [subprocess.Popen([sys.executable, COMMS_PROGRAM, "-o", at + "/c", *options],
                           env={**os.environ, "PYTHONPATH": ROOT + "/python", "RANK": str(r), "WORLD_SIZE": "2",
                                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"},
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for r in range(2)]
    out = [p.communicate(timeout=240)[0] for p in ps]
    expect([p.returncode for p in ps] == [0, 0], out)
    found = []
    with open(ROOT + "/docs/schemas/tensors.json", encoding="utf-8") as f:
        schema = jsonschema.Draft202012Validator(json.load(f))
    for rank in range(2):
        with open(at + "/c.rank%d" % rank, encoding="utf-8") as f:
            found.append([json.loads(line) for line in f])
        for line in found[-1]:
            wrong = list(differences(line, TENSORS, "")) + [e.message for e in schema.iter_errors(line)]
            expect(not wrong, (wrong, line))
    return found, "".join(out)


@needs_torch
def test_tells_what_each_call_of_torch_distributed_sends_and_receives(at):
    (mine, others), out = communicated(at)
    lines = [line for line in mine if line["line"] == "comms"]
    expect([line["step"] for line in lines] == [0, 1, 2], lines)
    for line in lines:
        step, counts = line["step"], {c["op"]: (c["calls"], c["launched"]) for c in line["counts"]}
        expect(set(counts) >= set(COMMS), counts)
        # One by itself, and two that torch makes one of.
        expect(counts["all_reduce"] == (3, 2) and counts["batch_isend_irecv"][0] == 2, counts)
        expect(all(n == (1, 1) for op, n in counts.items() if op not in ("all_reduce", "batch_isend_irecv")), counts)
        told = {}
        for call in line["comms"]:
            told.setdefault(call["op"], [[t["side"], t["shape"], t["mean"]] for t in call["tensors"]])
        expect(told["all_reduce"] == [["input", [4], 0], ["output", [4], 1]], told)
        expect(told["reduce"] == [["input", [4], 1], ["output", [4], 3]], told)
        expect(told["broadcast"] == [["output", [4], 6]], told)
        expect(told["all_gather"] == [["input", [2], 0], ["output", [2], 0], ["output", [2], 1]], told)
        expect(told["gather"] == told["all_gather"], told)
        expect(told["scatter"] == [["input", [2], 1], ["input", [2], 3], ["output", [2], 1]], told)
        expect(told["all_to_all_single"] == [["input", [2], 0.5], ["output", [2], 5]], told)
        expect(told["send"] == told["isend"] == [["input", [3], step]], told)
        expect(told["recv"] == told["irecv"] == [["output", [3], step + 1]], told)
        expect(told["batch_isend_irecv"] == [["input", [3], step], ["output", [3], step + 1]], told)
        if "left out" not in out:
            expect(told["all_to_all"] == [["input", [1], 1]] * 2 + [["output", [1], 1]] * 2, told)
            expect(told["reduce_scatter"] == [["input", [1], 1]] * 2 + [["output", [1], 2]], told)
    # Only the root reads what is reduced, and sends what is broadcast.
    other = {call["op"]: [t["side"] for t in call["tensors"]] for call in
             [line for line in others if line["line"] == "comms"][0]["comms"]}
    expect((other["reduce"], other["broadcast"], other["gather"]) == (["input"], ["input"], ["input"]), other)


@needs_torch
def test_names_the_call_that_carried_the_first_nan(at):
    communicated(at, "--nan", "--every", "1")
    doc, text = said(at + "/c.rank0", at + "/c.rank1")
    first = doc["first"]
    expect((first["rank"], first["op"], first["step"], first["number"]) == (1, "all_reduce", 1, "NaN"), first)
    expect(not first["inputs_finite"] and "rank 1 was the first with NaN" in text, (first, text))


@needs_torch
def test_looks_at_communication_in_one_step_of_so_many_and_leaves_nothing_behind(at):
    (mine, _), _ = communicated(at, "--every", "2")
    expect([line["step"] for line in mine if line["line"] == "comms"] == [0, 2], mine)


# ---- baseline: each operator of a run held against another's ----

def baseline(*words):
    p = subprocess.run([COLLWATCH, "baseline", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       timeout=60)
    return p.returncode, p.stdout, p.stderr


def checked(at, *paths):
    status, out, err = baseline("check", "--json", at, *paths)
    expect(status in (0, 2, 3), (status, err))
    doc = json.loads(out)
    expect(not deviations(doc), deviations(doc))
    expect(status == {"equal": 0, "differs": 2, "incomparable": 3}[doc["outcome"]], doc["outcome"])
    return doc


def calls_of(path, rank, steps=6, op="sdpa", value=None, denied=("view",), denied_modules=()):
    """A file as collwatch.torch writes it: four modules, one operator each, and a mask in front of each."""
    with open(path, "w", encoding="utf-8") as f:
        def line(kind, **fields):
            f.write(json.dumps({"line": kind, "at": "2026-11-24T18:41:54.908Z", **fields}) + "\n")
        line("head", schema="collwatch.tensors/1", rank=rank, world_size=2, host="h", pid=7, torch="2.13.0", every=1,
             frames=21, ops=True, denied=list(denied), denied_modules=list(denied_modules))
        for module in range(4):
            for i, name in enumerate(("masked_fill", op)):
                line("operator", operator=2 * module + i, phase="forward", module="blocks.%d" % module,
                     **{"class": "Block"}, op=name, dtype="float32", inputs=64, outputs=64)
        for step in range(steps):
            calls = []
            for module in range(4):
                v = value(step, module) if value else 1 + step / 8 + module
                calls += [[2 * module, 0, v, v / 2, 8 * v, 1, 0, 0, 0],
                          [2 * module + 1, 0, v, v / 2, 8 * v, 0, v, v / 2, 8 * v]]
            line("calls", step=step, calls=calls)
        line("end", step=steps, frames=0, dropped=0, unread=0)
    return path


@pytest.fixture
def kept(at):
    status, _, err = baseline("record", "-o", at + "/kept", calls_of(at + "/0", 0), calls_of(at + "/1", 1))
    expect(status == 0 and "rank 1: calls of operators 48" in err, err)
    return at + "/kept"


def test_finds_operators_of_the_same_run_equal_and_says_what_was_omitted(at, kept):
    doc = checked(kept, at + "/0", at + "/1")
    expect((doc["outcome"], doc["checked"], doc["ranks_compared"]) == ("equal", 96, 2), doc)
    expect(doc["denied_baseline"] == doc["denied_check"] == "view", doc)
    status, out, _ = baseline("check", kept, at + "/0", at + "/1")
    expect(status == 0 and "operators not examined: view" in out, out)
    calls_of(at + "/0", 0, denied=("view", "mul"))
    out = baseline("check", kept, at + "/0", at + "/1")[1]
    expect("operators not examined in the check: view mul" in out, out)
    calls_of(at + "/0", 0, denied_modules=("*.dropout",))
    out = baseline("check", kept, at + "/0", at + "/1")[1]
    expect("operators not examined in the check: module:*.dropout view" in out, out)


def test_names_the_first_operator_that_differs_of_any_rank(at, kept):
    calls_of(at + "/1", 1, value=lambda step, module: 1 + step / 8 + module + 1e-3 * ((step, module) >= (4, 2)))
    doc = checked(kept, at + "/0", at + "/1")
    first = doc["first"]
    expect((first["rank"], first["check"]["step"], first["check"]["kind"]) == (1, 4, "operator"), first)
    expect(first["check"]["site"] == "blocks.2 (Block): masked_fill, forward" and first["side"] == "input", first)
    expect(doc["ranks_that_differ"] == 1 and first["text"].startswith("rank 1: blocks.2 (Block): masked_fill"), first)


def test_answers_where_another_kernel_is_called(at, kept):
    doc = checked(kept, calls_of(at + "/0", 0, op="flash"), calls_of(at + "/1", 1, op="flash"))
    expect(doc["first"]["baseline"]["site"] == "blocks.0 (Block): sdpa, forward", doc["first"])
    expect((doc["missing"], doc["extra"], doc["unlike"], doc["checked"]) == (48, 48, 0, 48), doc)


def test_does_not_take_operators_of_one_run_alone_for_equal(at, kept):
    expect(checked(kept, at + "/0")["why"] == "the operators of rank 1 are in the baseline only",
           checked(kept, at + "/0"))


def test_finds_what_a_program_left_that_went_elsewhere(at):
    """The directory is given from here, is a pattern besides, and the program works in another."""
    lines = calls_of(at + "/lines", 0)
    program = f"cd / && cp {lines} \"$COLLWATCH_TENSORS/collwatch-tensors-rank0.jsonl\""
    p = subprocess.run([COLLWATCH, "baseline", "record", "-o", "run[1]", "--", "/bin/sh", "-c", program], cwd=at,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    expect("rank 0: calls of operators 48" in p.stderr, p.stderr)
    expect(sorted(os.listdir(at + "/run[1]")) == ["rank-0.operators.baseline"], os.listdir(at + "/run[1]"))


@needs_torch
def test_holds_each_operator_of_a_real_run_against_another(at):
    def calls(name, *options):
        return watched(at, "--calls", *options)[0] and os.rename(at + "/rank.jsonl", at + name) or at + name

    status, _, err = baseline("record", "-o", at + "/kept", calls("/a", "--steps", "5"))
    expect(status == 0, err)
    doc = checked(at + "/kept", calls("/b", "--steps", "5"))
    expect(doc["outcome"] == "equal" and doc["checked"] > 500, doc)
    doc = checked(at + "/kept", calls("/c", "--steps", "5", "--fault", "log"))
    first = doc["first"]
    expect((first["what"], first["check"]["step"]) == ("extra", 3), first)
    expect(first["check"]["site"] == "blocks.0 (Block): abs, forward", first)


SAMPLED = """
import torch
from collwatch.torch import sampled
known, samples = sampled.Sampled(), []
def sample(x, is_written=False):
    return known.get(x, lambda t: samples.append(1) or t.sum(), is_written).item()
a = torch.randn(4, 6)
sample(a), sample(a.t()), sample(a.detach())
assert len(samples) == 1
a.add_(1)
assert sample(a) == a.sum().item() and len(samples) == 2
sample(a[1:])
sample(a, is_written=True)
assert len(samples) == 4
with torch.inference_mode():
    b = torch.ones(3)
    sample(b), sample(b)
assert len(samples) == 6
for i in range(50):  # memory is given out again, and has other numbers
    assert sample(torch.full((100000,), float(i))) == i * 100000.0
"""


@needs_torch
def test_samples_a_tensor_that_is_not_written_once():
    python("-c", SAMPLED)


ODD = """
import sys, torch, collwatch.torch
kind, path = sys.argv[1:]
inner = torch.nn.Module()
inner.net = torch.nn.Linear(4, 4)
scripted = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.jit.script(torch.nn.Linear(4, 4)))
plain = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
old = torch.empty(2, 4).fill_(float("nan"))
class Over(torch.nn.Module):  # writes over numbers that are none
    def forward(self, x):
        return torch.add(x, x, out=old) if x[0, 0] else old.zero_()
model, call, more = {
    "inner": (inner, inner.net, dict(every=3)),
    "scripted": (scripted, scripted, dict(every=2, ops=True)),
    "overwritten": (Over(), None, dict(ops=True)),
    "never": (inner, None, {}),
    "stops": (plain, plain, dict(stop_at=["0", "1:addmm"], on_stop=lambda stop: (plain(torch.ones(1, 4)), it.close()))),
}[kind]
it = collwatch.torch.watch(model, path=path, **more)
for step in range(8):
    x = torch.ones(2, 4) * (float("nan") if (kind, step) == ("inner", 3) else 1)
    if kind == "overwritten":
        model(x), old.fill_(float("nan"))
    elif kind == "never":
        model.net.weight.sum()
    else:
        call(x).sum().backward()
it.close()
"""


@needs_torch
@pytest.mark.parametrize("kind, status, words", [
    ("inner", 2, "with NaN: input[0] of net (Linear), float32 [2, 4], step 3"),
    ("scripted", 0, "no finding"),
    ("overwritten", 0, "no finding"),
    ("stops", 0, "stopped before 1 (Linear), addmm"),
    ("never", 3, "no module was examined"),
])
def test_models_that_are_called_in_other_ways(at, kind, status, words):
    path = at + "/a.jsonl"
    python("-c", ODD, kind, path)
    found = numerics(path)
    expect(found[0] == status and words in found[1], found)
