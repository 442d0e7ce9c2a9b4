# SPDX-License-Identifier: Apache-2.0
"""collwatch.torch: which parameters' gradients the collectives of a step carry, of models that torch
parallelises, held against what torch hands to its backend."""
import json
import subprocess
import sys
import tempfile

import pytest
from documents_contract import TENSORS, deviations
from incident_contract import differences
from ports import unused_port
from test_torch_modules import needs_torch
from test_torch_stops import environment
from waiting import expect

pytestmark = needs_torch

HEAD = """
import os, sys
import torch
import torch.distributed as dist
from torch import nn
import collwatch.torch
if not dist.is_available():
    sys.exit(77)
torch.manual_seed(0)
torch.set_num_threads(1)
rank = int(sys.argv[2:] == ["twice"] and os.fork() == 0)
dist.init_process_group("gloo", rank=rank, world_size=len(sys.argv) - 1,
                        init_method="tcp://127.0.0.1:%d" % int(sys.argv[1]))
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.blocks, self.frozen = nn.Linear(5, 8), nn.ModuleList(Block() for _ in range(4)), nn.Linear(8, 3)
        self.frozen.requires_grad_(False)
    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.frozen(x)
net, path = Net(), os.environ["LINES"] + "1" * rank
sent = []
"""
# What is summed up in a step, in its order, as torch's own hook of the buckets has it.
SENT = """
def on_bucket(state, bucket):
    sent.append([p.numel() for p in bucket.parameters()])
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done
"""
STEPS = """
for step in range(4):
    del sent[:]
    model(torch.randn(3, 5)).sum().backward()
dist.barrier()
if rank == 0:
    print(sent)
"""


def lines(program, *arguments):
    with tempfile.TemporaryDirectory() as at:
        done = subprocess.run([sys.executable, "-c", HEAD + program, str(unused_port()), *arguments],
                              env=environment(at), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=120, check=False)
        if done.returncode == 77:
            pytest.skip("this torch cannot do it")
        expect(done.returncode == 0, done.stderr)
        with open(at + "/rank.jsonl", encoding="utf-8") as f:
            found = [json.loads(line) for line in f]
    wrong = [w for line in found for w in differences(line, TENSORS, line["line"])] + deviations(found[0])
    expect(not wrong, wrong)
    return [line for line in found if line["line"] == "buckets"], done.stdout


SHAPES = {"first.weight": 40, "first.bias": 8, "up.weight": 128, "up.bias": 16, "down.weight": 128, "down.bias": 8}


def elements(name):
    return next(n for end, n in SHAPES.items() if name.endswith(end))


@pytest.mark.parametrize("more", ("", ", find_unused_parameters=True", ", gradient_as_bucket_view=True"))
@pytest.mark.parametrize("watched", ("model", "net"))
def test_buckets_are_those_that_torch_sums_up(more, watched):
    found, out = lines(SENT + "model = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.001%s)\n" % more +
                       "model.register_comm_hook(None, on_bucket)\n"
                       "collwatch.torch.watch(%s, path=path)\n" % watched + STEPS)
    expect(found and all((b["comm"], b["op"]) == ("default_pg:0", "all_reduce") for b in found), found)
    buckets = found[-1]["buckets"]
    expect([[elements(n) for n in b["parameters"]] for b in buckets] == json.loads(out), (buckets, out))
    expect(all(b["elements"] == sum(elements(n) for n in b["parameters"]) for b in buckets), buckets)
    names = [n for b in buckets for n in b["parameters"]]
    prefix = "module." if watched == "model" else ""
    expect(len(names) == len(set(names)) == 18, names)
    expect(prefix + "blocks.3.down.bias" in buckets[0]["parameters"] and not any("frozen" in n for n in names), buckets)


def test_nothing_is_told_of_a_model_that_is_not_parallel():
    found, _ = lines("model = net\ncollwatch.torch.watch(model, path=path)\n" + STEPS)
    expect(not found, found)


SHARDED = """
try:
    from torch.distributed.fsdp import fully_shard
except ImportError:
    sys.exit(77)
scatter = dist.reduce_scatter_tensor
def counted(output, input, *args, **kwargs):
    sent.append(input.numel())
    return scatter(output, input, *args, **kwargs)
mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
for block in net.blocks:
    fully_shard(block, mesh=mesh)
model = fully_shard(net, mesh=mesh)
dist.reduce_scatter_tensor = dist.reduce_scatter_single = counted
collwatch.torch.watch(model, path=path)
"""


def test_groups_of_fully_shard_are_told_in_the_order_of_backward():
    found, out = lines(SHARDED + STEPS, "twice")
    expect(len(found) == 1 and found[0]["op"] == "reduce_scatter", found)
    buckets = found[0]["buckets"]
    for i in range(4):
        expect(all(n.startswith("blocks.%d." % (3 - i)) for n in buckets[i]["parameters"]), buckets[i])
    expect(all(n.startswith("first.") for n in buckets[4]["parameters"]), buckets[4])
    expect(json.loads(out) == [b["elements"] for b in buckets], (buckets, out))
