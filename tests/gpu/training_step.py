# SPDX-License-Identifier: Apache-2.0
"""The time of a training step: a transformer in bfloat16 under DistributedDataParallel, on the
first GPU. Ordinary PyTorch, which does not know of any observer. Prints the median in milliseconds.
"""

import statistics
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

LAYERS, WIDTH, HEADS, LENGTH, BATCH, WORDS = 12, 1024, 16, 1024, 8, 32000
WARM_UP, STEPS = 8, 40


def model(device):
    layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0, batch_first=True, norm_first=True)
    return torch.nn.Sequential(torch.nn.Embedding(WORDS, WIDTH),
                               torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False),
                               torch.nn.Linear(WIDTH, WORDS)).to(device)


def main():
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    net = DistributedDataParallel(model(device), device_ids=[0])
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
    tokens = torch.randint(0, WORDS, (BATCH, LENGTH), device=device)
    took = []
    for _ in range(WARM_UP + STEPS):
        start = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(net(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        took.append((time.perf_counter() - start) * 1e3)
    print(f"step {statistics.median(took[WARM_UP:]):.3f} ms", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
