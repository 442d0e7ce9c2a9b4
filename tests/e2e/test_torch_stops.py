# SPDX-License-Identifier: Apache-2.0
"""collwatch.torch: steps that are traced, where a program is to end or to stop, and modules left out."""
import json
import os
import signal
import subprocess
import sys
import tempfile

import jsonschema
import pytest
from built import COLLWATCH
from documents_contract import TENSORS, deviations
from incident_contract import differences
from test_torch_modules import PROGRAM, ROOT, line_of, needs_torch
from waiting import expect, wait_until

pytestmark = needs_torch

SMALL = """
import collections, os, sys, threading
import torch
from torch import nn
import collwatch.torch
torch.manual_seed(0)
torch.set_num_threads(1)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.dropout, self.down = nn.Linear(8, 16), nn.Dropout(0.1), nn.Linear(16, 8)
    def forward(self, x):
        return x + self.down(self.dropout(torch.relu(self.up(x))))  # THE BLOCK
class Net(nn.Module):
    def __init__(self, is_checkpointed=False):
        super().__init__()
        self.blocks, self.is_checkpointed = nn.ModuleList(Block() for _ in range(3)), is_checkpointed
    def forward(self, x):
        for block in self.blocks:
            if self.is_checkpointed:
                from torch.utils.checkpoint import checkpoint
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return x.sum()
x, hits = torch.randn(4, 8, requires_grad=True), []
path = os.environ["LINES"]
def on_stop(stop):
    hits.append(stop)
"""


@pytest.fixture
def at():
    with tempfile.TemporaryDirectory() as path:
        yield path


def environment(at):
    return {**os.environ, "PYTHONPATH": ROOT + "/python", "LINES": at + "/rank.jsonl"}


def python(at, *words, status=0):
    p = subprocess.run([sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120,
                       cwd=at, env=environment(at), check=False)
    expect(p.returncode == status, (p.returncode, p.stdout))
    return p.stdout


def lines_of(at):
    with open(ROOT + "/docs/schemas/tensors.json", encoding="utf-8") as f:
        schema = jsonschema.Draft202012Validator(json.load(f))
    with open(at + "/rank.jsonl", encoding="utf-8") as f:
        lines = [json.loads(line) for line in f]
    for line in lines:
        found = list(differences(line, TENSORS, "")) + [e.message for e in schema.iter_errors(line)]
        expect(not found, (found, line))
    return lines


def of(lines, kind):
    return [line for line in lines if line["line"] == kind]


def small(at, program, status=0):
    """Its output, and the lines of its file."""
    with open(at + "/small.py", "w", encoding="utf-8") as f:
        f.write(SMALL + program)
    out = python(at, at + "/small.py", status=status)
    return out, lines_of(at)


def watched(at, *options, status=0):
    out = python(at, "-m", "collwatch.torch", "-o", at + "/rank.jsonl", *options, status=status)
    return out, lines_of(at)


def numerics(at, *options):
    p = subprocess.run([COLLWATCH, "numerics", *options, at + "/rank.jsonl"], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    return p.returncode, p.stdout + p.stderr


def document(at, *options):
    doc = json.loads(numerics(at, "--json", *options)[1])
    expect(not deviations(doc), deviations(doc))
    return doc


# ---- steps that are traced ----

def test_writes_each_call_of_chosen_steps(at):
    _, lines = watched(at, "--ops", "--every", "100", "--trace-steps", "1,3-4", PROGRAM)
    steps, traced = {s["step"]: s for s in of(lines, "step")}, of(lines, "trace")
    expect(sorted(steps) == [0, 1, 3, 4] and "traced" not in steps[0], steps)
    for n in (1, 3, 4):
        calls = [t for t in traced if t["step"] == n]
        expect(len(calls) == steps[n]["traced"] == steps[n]["frames"] > 100 and steps[n]["lost"] == 0, steps[n])
        up = next(t for t in calls if (t["module"], t["op"]) == ("blocks.1.ffn.up", ""))
        expect([t["side"] for t in up["tensors"]] == ["weight", "weight", "input", "output"] and up["class"] == "Linear", up)
        expect(all(0 < t["absmin"] <= t["absmax"] for t in up["tensors"]), up)
        expect({t["phase"] for t in calls} == {"forward", "backward"}, "both")
    expect({t["step"] for t in traced} == {1, 3, 4}, "no other")
    status, text = numerics(at)
    expect(status == 0 and "rank.jsonl has each call of steps 1,3-4, %d in all: --trace-steps 1,3-4" % len(traced) in text, text)
    text = numerics(at, "--trace-steps", "3")[1]
    expect("each call of step 3:" in text and "each call of step 1:" not in text, text[:500])
    expect("step 3, forward: blocks.1.ffn.up (Linear), from" in text, text[:500])
    doc = document(at, "--trace-steps", "3,4")
    expect(len(doc["trace"]) == steps[3]["frames"] + steps[4]["frames"] and doc["trace_over_limit"] == 0, len(doc["trace"]))
    expect(document(at)["trace"] == [], "unless asked for")
    expect([t["step"] for t in doc["ranks"][0]["traced"]] == [1, 3, 4], doc["ranks"])


def test_says_so_where_a_step_was_not_traced(at):
    watched(at, "--trace-steps", "1", "--stop-after-step", "1", PROGRAM)
    text = numerics(at, "--trace-steps", "7")[1]
    expect("none of the steps in --trace-steps was traced" in text and "has each call of step 1," in text, text)
    for wrong in ("3-1", "a", "", "1,", "-1", ",".join("1" for _ in range(65))):
        status, text = numerics(at, "--trace-steps=" + wrong)
        expect(status not in (0, 2) and "1,3,10-20" in text, (wrong, status, text))


def test_a_traced_step_that_raises_is_in_the_file(at):
    out, lines = small(at, """
model = Net()
collwatch.torch.watch(model, path=path, ops=True, trace_steps=[1])
model(x).backward()
model.blocks[1].register_forward_pre_hook(lambda *_: 1 / 0)
model(x)
""", status=1)
    expect("ZeroDivisionError" in out, out)
    traced = of(lines, "trace")
    expect({t["module"] for t in traced} >= {"blocks.0.up", "blocks.0"} and {t["step"] for t in traced} == {1}, traced)
    expect(lines[-1]["line"] == "end" and of(lines, "step")[-1]["traced"] == len(traced), lines[-2:])


def test_a_model_called_twice_a_step_numbers_its_calls(at):
    _, lines = small(at, """
model = Net()
watch = collwatch.torch.watch(model, path=path, trace_steps="1")
for step in range(3):
    watch.step(step)
    (model(x) + model(x)).backward()
""")
    calls = [t["call"] for t in of(lines, "trace") if (t["module"], t["phase"]) == ("blocks.1.up", "forward")]
    expect(calls == [1, 2], calls)


# ---- the end of the program ----

def test_ends_behind_a_step_with_its_numbers_in_the_file(at):
    out, lines = watched(at, "--trace-steps", "3", "--stop-after-step", "3", PROGRAM, "--fault", "overflow")
    expect("ended after step 3" in out and "rank.jsonl" in out and "0x1." not in out, out)
    expect([s["step"] for s in of(lines, "step")] == [0, 1, 2, 3] and lines[-1]["line"] == "end", lines[-2:])
    expect(of(lines, "trace") and of(lines, "bad"), "what the step showed")
    expect(document(at)["ranks"][0]["ended"], "whole")


def test_no_handler_of_errors_goes_on_behind_that_step(at):
    out, lines = small(at, """
model = Net()
collwatch.torch.watch(model, path=path, stop_after_step=2)
try:
    for step in range(9):
        try:
            model(x).backward()
        except Exception:
            print("went on")
except collwatch.torch.StoppedAfterStep as end:
    model(x)
    print("status", end.code, "step", step)
""")
    expect(out.splitlines()[-1] == "status 0 step 3" and "went on" not in out, out)
    expect([s["step"] for s in of(lines, "step")] == [0, 1, 2], lines)


def test_ends_the_program_from_another_thread_too(at):
    out, lines = small(at, """
model = Net()
collwatch.torch.watch(model, path=path, stop_after_step=1)
thread = threading.Thread(target=lambda: [model(x) for _ in range(9)])
thread.start()
try:
    thread.join()
    threading.Event().wait(60)
except KeyboardInterrupt:
    print("interrupted")
""")
    expect(out.splitlines()[-1] == "interrupted", out)
    expect([s["step"] for s in of(lines, "step")] == [0, 1] and lines[-1]["line"] == "end", lines)


# ---- stops ----

def is_stopped(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as f:
        return f.read().rpartition(")")[2].split()[0] == "T"


def test_stops_the_process_before_a_call_and_goes_on(at):
    alone = python(at, PROGRAM)
    p = subprocess.Popen([sys.executable, "-m", "collwatch.torch", "-o", at + "/rank.jsonl", "--lines", "--stop-at",
                          "blocks.1.ffn.up:addmm:1@3", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, env=environment(at))
    try:
        wait_until(lambda: p.poll() is not None or is_stopped(p.pid), "it stops")
        expect(p.poll() is None, "it stands still")
        stop = of(lines_of(at), "stop")[0]
        expect((stop["module"], stop["class"], stop["op"], stop["call"], stop["step"], stop["phase"])
               == ("blocks.1.ffn.up", "Linear", "addmm", 1, 3, "forward"), stop)
        expect(stop["site"][0] == line_of("F.gelu(self.up(x))"), stop["site"])
        way = stop["lines"]
        expect(way[-1]["site"] == stop["site"][0] and "F.gelu(self.up(x))" in way[-1]["text"], way[-1])
        expect(len(way) == 200 and not [each for each in way if "/torch/" in each["site"]], way[:3])
        text = numerics(at, "--last", "2")[1]
        expect("stopped before blocks.1.ffn.up (Linear), addmm, step 3, forward, from " in text
               and "the last 2 of 200 lines of the program before that:" in text, text)
        doc = document(at, "--last", "2")
        expect(not doc["alarm"] and len(doc["stops"][0]["lines"]) == 2, doc["stops"])
        os.kill(p.pid, signal.SIGCONT)
        out = p.communicate(timeout=120)[0]
    finally:
        p.kill()
        p.wait()
    expect(p.returncode == 0 and out.splitlines()[-1] == alone.strip(), out)
    expect("kill -CONT %d" % p.pid in out and "stopped before blocks.1.ffn.up" in out, out)


PLACES = [
    ("blocks.1.up", "blocks.1.up (Linear), call 1, step 0, forward"),
    ("blocks.1.up:3", "blocks.1.up (Linear), call 3, step 2, forward"),
    ("blocks.*.up:4", "blocks.0.up (Linear), call 4, step 1, forward"),
    ("blocks.2:aten::relu.default:2", "blocks.2 (Block), relu, call 2, step 1, forward"),
    (":relu:2@1", "blocks.1 (Block), relu, call 2, step 1, forward"),
    (":threshold_backward:2@1", "operator threshold_backward, call 2, step 1, backward"),
    ("blocks.1.up:t:2", "blocks.1.up (Linear), t, call 2, step 1, forward"),
]


def test_stops_at_a_module_or_an_operator_and_a_call(at):
    out, lines = small(at, f"""
for place, said in {PLACES!r}:
    model = Net()
    hits.clear()
    watch = collwatch.torch.watch(model, path=path, every=100, stop_at=place, on_stop=on_stop)
    for step in range(4):
        model(x).backward()
    watch.close()
    found = [str(hit).split(", from ")[0] for hit in hits]
    inputs = [isinstance(t, torch.Tensor) for hit in hits for _, t in hit.inputs]
    if found != [said] or not inputs or not all(inputs):
        print("WRONG", place, found, inputs)
""")
    expect("WRONG" not in out, out)
    expect(len(of(lines, "stop")) == 1 and [s["step"] for s in of(lines, "step")] == [0], lines)


def test_stops_in_checkpoints_that_are_computed_again(at):
    """They are left by an exception, and operators are dispatched once."""
    out, lines = small(at, """
model = Net(is_checkpointed=True)
collwatch.torch.watch(model, path=path, ops=True, trace_steps="0-2", stop_at=["blocks.1:2@1", ":mm:2@1"], on_stop=on_stop)
for step in range(3):
    model(x).backward()
for hit in hits:
    print("HIT", hit.module, hit.op, hit.phase)
print(len(torch.utils._python_dispatch._get_current_dispatch_mode_stack()))
""")
    expect("mm backward" in out and "HIT blocks.1  recomputed" in out and out.splitlines()[-1] == "0", out)
    counts = [s["traced"] for s in of(lines, "step")]
    expect(len(set(counts[1:])) == 1, counts)  # gradients are added up from the second on


def test_what_a_callback_raises_ends_the_call(at):
    out, lines = small(at, """
model = Net()
def refuse(stop):
    raise KeyError(stop.op)
watch = collwatch.torch.watch(model, path=path, stop_at="blocks.1.up:addmm", on_stop=refuse)
try:
    model(x)
except KeyError as error:
    print("came", error)
model(x).backward()
""")
    expect("came 'addmm'" in out and len(of(lines, "stop")) == 1 and lines[-1]["line"] == "end", (out, lines))


def test_a_callback_may_use_torch_and_the_model(at):
    out, lines = small(at, """
model = Net()
def look(stop):
    hits.append(float(stop.inputs[0][1].abs().max()))
    model.blocks[0](x)
collwatch.torch.watch(model, path=path, ops=True, stop_at=":relu", on_stop=look, trace_steps="0")
plain = model.blocks[0]
model(x).backward()
print(len(hits))
""")
    expect(out.splitlines()[-1] == "1", out)
    relus = [t["module"] for t in of(lines, "trace") if t["op"] == "relu"]
    expect(relus == ["blocks.0", "blocks.1", "blocks.2"], relus)


def test_says_that_it_never_came_to_a_place(at):
    out, lines = watched(at, "--stop-at", "nowhere:addmm", PROGRAM)
    expect("before the program came to nowhere:addmm" in out, out)
    expect(any("nowhere:addmm" in note["text"] for note in of(lines, "note")), lines)


def test_a_module_used_from_two_threads_is_counted_once_a_call(at):
    out, lines = small(at, """
model = Net()
collwatch.torch.watch(model, path=path, ops=True, stop_at="blocks.2:relu:37", on_stop=on_stop, trace_steps="0-100")
def work():
    for _ in range(20):
        model(torch.randn(4, 8)).backward()
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
print(len(hits))
""")
    expect(out.splitlines()[-1] == "1", out)
    expect([s["step"] for s in of(lines, "step")] == list(range(40)) and not of(lines, "bad"), lines[-1])


# ---- the way there ----

WAY = """
model = Net()
def way():
    return [each["text"] for line in open(path) for each in json.loads(line).get("lines", ())]
import json
collwatch.torch.watch(model, path=path, stop_at="blocks.1", on_stop=on_stop, lines=True)
model(x)  # LEADS TO IT
print(any("LEADS TO IT" in text for text in way()), any("x = block(x)" in text for text in way()), sys.gettrace())
"""


def test_keeps_the_lines_that_lead_to_a_stop_and_no_longer(at):
    out, lines = small(at, WAY)
    expect(out.splitlines()[-1] == "True True None", out)
    sites = [each["site"] for each in of(lines, "stop")[0]["lines"]]
    expect(sites and all(site.startswith(at + "/small.py:") for site in sites), sites)


def test_a_debugger_keeps_its_trace_function(at):
    out, lines = small(at, """
def mine(frame, event, argument):
    return None
sys.settrace(mine)
threading.settrace(mine)
""" + WAY.replace("sys.gettrace()", "sys.gettrace() is mine, threading._trace_hook is mine"))
    expect(out.splitlines()[-1].endswith("True True"), out)
    if sys.version_info < (3, 12):
        expect(out.splitlines()[-1].startswith("False False"), out)
        expect("a debugger" in of(lines, "note")[0]["text"], lines)
    else:
        expect(out.splitlines()[-1].startswith("True True"), out)


def test_a_process_that_is_forked_is_not_slowed_down(at):
    out, _ = small(at, """
collwatch.torch.watch(Net(), path=path, stop_at="blocks.1@9", lines=True)
traced = lambda: sys.monitoring.get_tool(4) if hasattr(sys, "monitoring") else sys.gettrace()
before = traced()
pid = os.fork()
if not pid:
    os._exit(7 if before is not None and traced() is None else 1)
print(os.waitpid(pid, 0)[1] >> 8, traced() is not None)
""")
    expect("7 True" in out, out)


def test_tells_the_lines_of_the_thread_that_stops(at):
    _, lines = small(at, """
model = Net()
collwatch.torch.watch(model, path=path, stop_at="blocks.1", on_stop=on_stop, lines=True)
def work():
    model(x)  # OF THE THREAD
thread = threading.Thread(target=work, name="worker")
thread.start()
thread.join()
""")
    way = of(lines, "stop")[0]["lines"]
    expect([each["thread"] for each in way][-1] == "worker" and way[0]["thread"] == "MainThread", way)
    expect(any("OF THE THREAD" in each["text"] for each in way if each["thread"] == "worker"), way)


# ---- modules that are not looked at ----

def test_looks_at_no_module_whose_name_is_denied(at):
    out, lines = small(at, """
model = Net()
collwatch.torch.watch(model, path=path, ops=True, trace_steps="0", deny_modules=("*.dropout", "blocks.1*", "nobody"))
model(x).backward()
""")
    found = {t["module"] for t in of(lines, "trace")}
    expect(found >= {"blocks.0", "blocks.0.up", "blocks.2.down", "Net"}, found)
    expect(not [m for m in found if m.endswith("dropout") or m.startswith("blocks.1")], found)
    expect(lines[0]["denied_modules"] == ["*.dropout", "blocks.1*", "nobody"], lines[0])
    notes = [note["text"] for note in of(lines, "note")]
    expect(len(notes) == 1 and "'nobody'" in notes[0], notes)
    expect("modules not examined: *.dropout blocks.1* nobody" in numerics(at)[1], numerics(at)[1])
    expect(document(at)["ranks"][0]["denied_modules"] == lines[0]["denied_modules"], "the document, too")


# ---- refusals ----

def test_refuses_what_it_cannot_take_and_says_what_to_give(at):
    out, _ = small(at, """
import json
collwatch.torch.watch(Net(), path=path).close()
for wrong, word in [
        (dict(trace_steps="a"), "1,3,10-20"), (dict(trace_steps="3-1"), "1,3,10-20"), (dict(trace_steps=-1), "from 0 on"),
        (dict(trace_steps=[1.5]), "from 0 on"), (dict(trace_steps=True), "from 0 on"), (dict(trace_steps=""), "from 0 on"),
        (dict(trace_steps="1,,2"), "from 0 on"), (dict(trace_steps="\\u00b2"), "from 0 on"), (dict(trace_steps=range(0)), "from 0 on"),
        (dict(trace_steps=b"1,3"), "from 0 on"), (dict(trace_steps=torch.tensor(0.5)), "from 0 on"),
        (dict(stop_after_step=torch.tensor(0.5)), "from 0 on"), (dict(stop_at="a:-1"), "from 1 on"), (dict(stop_at="a:"), "MODULE[:OPERATOR]"),
        (dict(stop_after_step=-1), "from 0 on"), (dict(stop_after_step="3"), "from 0 on"), (dict(stop_after_step=True), "from 0 on"),
        (dict(trace_steps="1-9", stop_after_step=5), "trace steps up to that"),
        (dict(stop_at=""), "MODULE[:OPERATOR]"), (dict(stop_at="a:b:0"), "from 1 on"), (dict(stop_at="a@"), "@STEP"),
        (dict(stop_at="a@x"), "@STEP"), (dict(stop_at="a:b:c:d"), "MODULE[:OPERATOR]"), (dict(stop_at=3), "MODULE[:OPERATOR]"),
        (dict(stop_at="blocks.1.pu"), "did you mean 'blocks.1.up'"), (dict(on_stop=print), "give stop_at"),
        (dict(stop_at="blocks.1", on_stop=3), "give a function"), (dict(lines=True), "give stop_at"),
        (dict(deny_modules=[3]), "*.dropout"), (dict(deny_modules=5), "*.dropout"), (dict(deny_modules=[""]), "*.dropout")]:
    try:
        collwatch.torch.watch(Net(), path=os.devnull, **wrong)
        print("TAKEN", wrong)
    except ValueError as error:
        if word not in str(error) or not any(str(error).startswith(name + ":") for name in wrong):
            print("UNCLEAR", wrong, error)
""")
    expect("TAKEN" not in out and "UNCLEAR" not in out, out)


def test_a_second_watch_does_not_write_over_the_first(at):
    out, lines = small(at, """
here, other, model = os.path.dirname(path), Net(), Net()
first = collwatch.torch.watch(other, path=path)
for options in dict(path=path), dict(path=os.path.join(here, ".", os.path.basename(path))):
    try:
        collwatch.torch.watch(model, **options)
        print("TAKEN")
    except ValueError as error:
        print(error)
model(x)
first.close()
again = collwatch.torch.watch(model, path=path)
model(x)
for _ in range(2):
    collwatch.torch.watch(Net(), path=os.devnull)
os.chdir(here)
both = collwatch.torch.watch(model), collwatch.torch.watch(other)
print(sorted(n for n in os.listdir(here) if n.startswith("collwatch-")))
""")
    expect("TAKEN" not in out and out.count("give each watch its own path") == 2, out)
    expect(out.splitlines()[-1] == "['collwatch-tensors-rank0-2.jsonl', 'collwatch-tensors-rank0.jsonl']", out)
    expect(any(line["line"] == "step" for line in lines), lines)


def test_a_watch_that_nobody_needs_any_more_gives_its_path_back(at):
    """A cell of a notebook that runs twice, a refused watch, a watch that never began."""
    out, lines = small(at, """
for number in range(3):
    model = Net()
    watch = collwatch.torch.watch(model, path=path)
    model(x)
del model
try:
    collwatch.torch.watch("model", path=path)
except (AttributeError, TypeError) as error:
    print("refused")
context = collwatch.torch.record(path=path)
model = Net()
watch = collwatch.torch.watch(model, path=path)
os.unlink(path)
collwatch.torch.watch(Net(), path=path).close()
os.unlink(path)
model = Net()
watch = collwatch.torch.watch(model, path=path)
model(x)
model(x)
""")
    expect(out.splitlines()[-1] == "refused", out)
    expect([line["step"] for line in lines if line["line"] == "step"][0] == 0, lines)


def test_takes_whatever_numbers_steps_have(at):
    small(at, """
for numbers in (torch.tensor(2), torch.tensor([1, 2]), [torch.tensor(1)], iter([2])):
    collwatch.torch.watch(Net(), path=path, trace_steps=numbers, stop_after_step=torch.tensor(2)).close()
""")


@pytest.mark.parametrize("options,word", [
    (("--trace-steps", "x"), "--trace-steps: 'x' is not a step"), (("--stop-after-step", "-2"), "--stop-after-step: -2"),
    (("--stop-at", "a:b:c"), "--stop-at: 'a:b:c' is not a place"), (("--lines",), "--lines: without a stop, no lines are written"),
    (("--deny-module", ""), "--deny-modules: ''")], ids=["steps", "after", "at", "lines", "deny"])
def test_refuses_options_as_a_command_does(at, options, word):
    out = python(at, "-m", "collwatch.torch", *options, PROGRAM, status=2)
    expect(word.replace("deny-modules", "deny-module") in out and "Traceback" not in out, out)


def test_hooks_do_nothing_that_a_compiler_cannot_follow(at):
    """A compiler's trace of them must end before they call anything that it cannot follow."""
    small(at, """
from collwatch.torch import watcher
watch = collwatch.torch.watch(Net(), path=path, stop_at="blocks.1@9")
watcher._is_compiling = lambda: True
class Untold:
    __slots__ = ()  # has no weak references
for hook in (watch.before_call_or_stop, watch.before_call):
    hook(Untold(), ())
watch.after_call(Untold(), (), None)
""")
