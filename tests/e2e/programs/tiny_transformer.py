# SPDX-License-Identifier: Apache-2.0
"""A small transformer that trains on the CPU, and goes wrong in one of some ways at step 3.

--watch adds a watch to it; otherwise the caller may. Its last line is the loss, to the bit.
"""
import argparse
import copy
import io
import os
import sys

import torch
from torch import nn
from torch.nn import functional as F

FAULT_STEP = 3


class NaNBehind(torch.autograd.Function):
    """Nothing forward; its gradient is none."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * float("inf")


class FeedForward(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.up, self.down, self.dropout = nn.Linear(d, 4 * d), nn.Linear(4 * d, d), nn.Dropout(0.1)
        self.is_spoilt = False

    def forward(self, x):
        if self.is_spoilt:
            x = NaNBehind.apply(x)
        return self.down(self.dropout(F.gelu(self.up(x))))


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.ffn = nn.LayerNorm(d), FeedForward(d)
        self.attention = nn.MultiheadAttention(d, 4, dropout=0.1, batch_first=True)
        self.takes_log = False

    def forward(self, x, mask):
        h = self.norm(x)
        h = self.attention(h, h, h, attn_mask=mask, need_weights=False)[0]
        if self.takes_log:
            h = torch.log(h.abs() - h.abs())  # TAKES THE LOGARITHM
        x = x + h
        return x + self.ffn(x)


class Transformer(nn.Module):
    def __init__(self, words=50, d=32):
        super().__init__()
        self.words, self.blocks = nn.Embedding(words, d), nn.ModuleList(Block(d) for _ in range(2))
        self.head = nn.Linear(d, words)

    def forward(self, words):
        x = self.words(words)
        mask = torch.full((words.shape[1], words.shape[1]), float("-inf")).triu(1)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(x)


class Scaler:
    """Does the work of torch's GradScaler, which needs a GPU in old versions."""

    def __init__(self):
        self._scale = torch.tensor(1024.0)

    def is_enabled(self):
        return True

    def step(self, optimizer):
        parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if all(bool(torch.isfinite(p.grad).all()) for p in parameters):
            for p in parameters:
                p.grad /= self._scale
            optimizer.step()
        else:
            self._scale /= 2


def spoil(model, fault, step):
    if fault == "overflow" and step == FAULT_STEP:
        model.blocks[1].ffn.up.weight.data[3, 5] = 3e38
    elif fault == "log":
        model.blocks[0].takes_log = step >= FAULT_STEP
    elif fault in ("gradient", "scaled"):
        model.blocks[1].ffn.is_spoilt = step == FAULT_STEP
    elif fault == "drift" and step == FAULT_STEP and os.environ["RANK"] == "1":
        model.head.bias.data[7] += 1e-6
    elif fault == "raise" and step == FAULT_STEP:
        raise_once(model)


def raise_once(model):
    try:
        model(torch.tensor([[51]]))  # there is no such word
    except IndexError:
        print("raised")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--watch", action="store_true")
    parser.add_argument("--ops", action="store_true")
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--fault", default="")
    parser.add_argument("--scaler", action="store_true")
    parser.add_argument("--replicas", action="store_true")
    parser.add_argument("--copy", action="store_true")
    parser.add_argument("-o", "--output")
    args = parser.parse_args()

    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = Transformer()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    scaler = Scaler() if args.fault == "scaled" else None
    if args.replicas:
        import torch.distributed as dist
        dist.init_process_group("gloo")
    if args.watch:
        import collwatch.torch
        collwatch.torch.watch(model, ops=args.ops, every=args.every, path=args.output, calls=args.calls,
                              scaler=scaler if args.scaler else None,
                              replicas=True if args.replicas else None, replicas_every=2,
                              optimizer=optimizer)
    if args.copy:
        copied = copy.deepcopy(model)
        copied(torch.zeros(1, 4, dtype=torch.int64))
        torch.save(model, io.BytesIO())
    for step in range(args.steps):
        spoil(model, args.fault, step)
        words = torch.randint(0, 50, (4, 16))
        loss = F.cross_entropy(model(words).flatten(0, 1), words.flatten())
        if args.watch:
            collwatch.torch.check(loss, "loss")
        optimizer.zero_grad()
        (loss * scaler._scale if scaler else loss).backward()
        (scaler.step if scaler else type(optimizer).step)(optimizer)
    print(loss.item().hex())
    sys.stdout.flush()
    if args.replicas:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
