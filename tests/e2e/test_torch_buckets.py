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
import json, os, sys
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
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(8, width), nn.Linear(width, 8)
    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.blocks, self.frozen = nn.Linear(5, 8), nn.ModuleList(map(Block, range(16, 20))), nn.Linear(8, 3)
        self.frozen.requires_grad_(False)
    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.frozen(x)
net, path = Net(), os.environ["LINES"] + "1" * rank
sent = []
"""
# The summed parameters of a step, in order, by torch's own hook of the buckets.
SENT = """
def on_bucket(state, bucket):
    sent.append([next(n for n, p in net.named_parameters() if p is q) for q in bucket.parameters()])
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
    print(json.dumps(sent))
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


def names_of(bucket):
    return [name.removeprefix("module.") for name in bucket["parameters"]]


@pytest.mark.parametrize("more", ("", ", find_unused_parameters=True", ", gradient_as_bucket_view=True"))
@pytest.mark.parametrize("watched", ("model", "net"))
def test_buckets_are_those_that_torch_sums_up(more, watched):
    found, out = lines(SENT + "model = nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.001%s)\n" % more +
                       "model.register_comm_hook(None, on_bucket)\n"
                       "collwatch.torch.watch(%s, path=path)\n" % watched + STEPS +
                       "print(json.dumps({n: p.numel() for n, p in net.named_parameters()}))\n")
    expect(found and all((b["comm"], b["op"]) == ("default_pg:0", "all_reduce") for b in found), found)
    sent, sizes = map(json.loads, out.splitlines())
    buckets = found[-1]["buckets"]
    expect(len(sent) > 2 and [names_of(b) for b in buckets] == sent, (buckets, sent))
    expect(all(b["elements"] == sum(sizes[n] for n in names_of(b)) for b in buckets), buckets)
    expect(found[-1]["step"] <= 3, "made anew in the second step, and told of when that is over")
    expect(all(n.startswith("module.") == (watched == "model") for b in buckets for n in b["parameters"]), buckets)


@pytest.mark.parametrize("program", (
    "model = net\n",
    # Two on one group: nothing tells their calls apart.
    "class Pair(nn.Module):\n"
    "    def __init__(self, *both):\n"
    "        super().__init__()\n"
    "        self.a, self.b = both\n"
    "    def forward(self, x):\n"
    "        return self.a(x) + self.b(x)\n"
    "model = Pair(*(nn.parallel.DistributedDataParallel(n) for n in (net, Net())))\n",
    # torch's numbering no longer matches the parameters with gradients.
    "model = nn.parallel.DistributedDataParallel(net)\nnet.frozen.requires_grad_(True)\n"),
    ids=["alone", "two", "unfrozen"])
def test_nothing_is_told_where_it_is_not_known(program):
    found, _ = lines(program + "collwatch.torch.watch(model, path=path)\n" + STEPS)
    expect(not found, found)


def test_one_odd_model_does_not_silence_the_others():
    found, _ = lines("""
odd = nn.parallel.DistributedDataParallel(Net(), process_group=dist.new_group([0]))
odd._get_ddp_logging_data = None
model = nn.parallel.DistributedDataParallel(net)
watch = collwatch.torch.watch(model, path=path)
watch.attach(odd)
""" + STEPS)
    expect(found and all(b["comm"] == "default_pg:0" for b in found), found)


def test_a_bucket_without_elements_is_omitted():
    found, _ = lines("net.empty = nn.Parameter(torch.empty(0, dtype=torch.float64))\n"
                     "model = nn.parallel.DistributedDataParallel(net, find_unused_parameters=True)\n"
                     "collwatch.torch.watch(model, path=path)\n" + STEPS)
    expect(all(b["elements"] and b["parameters"] for line in found for b in line["buckets"]), found)


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
%s
dist.reduce_scatter_tensor = dist.reduce_scatter_single = counted
collwatch.torch.watch(watched, path=path)
"""
BLOCKS = "for block in net.blocks:\n    fully_shard(block, mesh=mesh)\n"
LAYOUTS = {
    "blocks": BLOCKS + "watched = model = fully_shard(net, mesh=mesh)",
    # Into which nothing goes that has a gradient: its call comes last.
    "stem": BLOCKS + "net.frozen.requires_grad_(True)\nfully_shard(net.first, mesh=mesh)\n"
            "watched = model = fully_shard(net, mesh=mesh)",
    # Another module around the outermost that is sharded.
    "inside": BLOCKS + "fully_shard(net, mesh=mesh)\nwatched = model = nn.Sequential(net)",
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_groups_of_fully_shard_are_told_in_the_order_of_backward(layout):
    found, out = lines(SHARDED % layout + STEPS, "twice")
    expect(len(found) == 1 and found[0]["op"] == "reduce_scatter", found)
    expect(json.loads(out) == [b["elements"] for b in found[0]["buckets"]], (found[0]["buckets"], out))
    last = [b["parameters"] for b in found[0]["buckets"]][0]
    expect(all("blocks.3." in name for name in last), last)


def test_nothing_is_told_of_a_part_of_a_sharded_model():
    found, _ = lines(SHARDED % (BLOCKS + "model = fully_shard(net, mesh=mesh)\nwatched = net.blocks[1]") + STEPS, "twice")
    expect(not found, found)
