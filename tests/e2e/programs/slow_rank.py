# SPDX-License-Identifier: Apache-2.0
"""A rank of train_loop.py that is stuck, or slow, at the step of --fault-step on --fault-rank. Neither
uses CPU time: only the stacks tell them apart.

usage: slow_rank.py stuck|slow TRAIN_LOOP_PY [ARGUMENT…]
"""
import os
import runpy
import sys
import time

PART_S = 0.6


def list_files():
    time.sleep(PART_S)


def download():
    time.sleep(PART_S)


def unpack():
    time.sleep(PART_S)


def decode():
    time.sleep(PART_S)


def tokenize():
    time.sleep(PART_S)


def shuffle():
    time.sleep(PART_S)


def be_slow():
    while True:
        for part in list_files, download, unpack, decode, tokenize, shuffle:
            part()


def be_stuck():
    source, _ = os.pipe()
    os.read(source, 1)


fail = {"stuck": be_stuck, "slow": be_slow}[sys.argv[1]]
sys.argv = sys.argv[2:]
sys.path[0] = os.path.dirname(sys.argv[0])  # as if it had been started itself
import train_faults  # noqa: E402 it lies beside the program


def before_step(fault, step):
    if step == fault.step and fault.is_here:
        fail()


train_faults.Fault.before_step = before_step
runpy.run_path(sys.argv[0], run_name="__main__")
