# SPDX-License-Identifier: Apache-2.0
"""python -m collwatch.torch [OPTIONS] PROGRAM [ARGUMENTS…]: runs a program with its models watched."""

import argparse
import os
import runpy
import sys

import collwatch.torch


def main():
    parser = argparse.ArgumentParser(prog="python -m collwatch.torch", description=__doc__)
    parser.add_argument("--ops", action="store_true", help="each operator of ATen, too")
    parser.add_argument("--calls", action="store_true", help='each call of one goes to the file, for "baseline"')
    parser.add_argument("--comms", action="store_true", help="the calls of torch.distributed, too")
    parser.add_argument("--every", type=int, default=1, help="one step of so many (1)")
    parser.add_argument("--frames", type=int, default=21, help="calls told before the first bad one (21)")
    parser.add_argument("--deny", action="append", default=[], help="an operator that is not looked at")
    parser.add_argument("-o", "--output", help="file (collwatch-tensors-rankN.jsonl)")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    sys.argv = [args.program] + args.arguments
    sys.path[0] = os.path.dirname(os.path.abspath(args.program))
    with collwatch.torch.record(ops=args.ops, every=args.every, frames=args.frames, deny=args.deny,
                                path=args.output, calls=args.calls, comms=args.comms):
        runpy.run_path(args.program, run_name="__main__")


if __name__ == "__main__":
    main()
