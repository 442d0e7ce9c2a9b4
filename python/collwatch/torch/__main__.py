# SPDX-License-Identifier: Apache-2.0
"""python -m collwatch.torch [OPTIONS] PROGRAM [ARGUMENTS…]: runs a program with its models watched."""

import argparse
import os
import runpy
import sys

import collwatch.torch


def _as_options(text):
    """The text of an error, with the names of options."""
    for name in ("trace_steps", "stop_after_step", "stop_at", "deny_modules"):
        text = text.replace(name, "--" + name.replace("_", "-").replace("modules", "module"))
    return text.replace("lines: ", "--lines: ", 1) if text.startswith("lines: ") else text


def main():
    parser = argparse.ArgumentParser(prog="python -m collwatch.torch", description=__doc__)
    parser.add_argument("--ops", action="store_true", help="also record each operator of ATen")
    parser.add_argument("--calls", action="store_true", help='write each call of an operator to the file, for "baseline"')
    parser.add_argument("--comms", action="store_true", help="also record the calls of torch.distributed")
    parser.add_argument("--every", type=int, default=1, help="record one of this many steps (1)")
    parser.add_argument("--frames", type=int, default=21, help="calls to show before the first bad call (21)")
    parser.add_argument("--deny", action="append", default=[], help="do not examine this operator")
    parser.add_argument("--deny-module", action="append", default=[], metavar="PATTERN",
                        help='do not examine these modules and their operators ("*.dropout")')
    parser.add_argument("--trace-steps", metavar="STEPS",
                        help="write each call of these steps to the file, with its statistics (1,3,10-20)")
    parser.add_argument("--stop-after-step", type=int, metavar="N",
                        help="end the program when the statistics of step N are in the file")
    parser.add_argument("--stop-at", action="append", default=[], metavar="MODULE[:OPERATOR][:CALL][@STEP]",
                        help="stop the process (SIGSTOP) before that call, once")
    parser.add_argument("--lines", action="store_true",
                        help="at a stop, write the last 200 lines of the program to the file; slow before Python 3.12")
    parser.add_argument("-o", "--output", help="file to write (collwatch-tensors-rankN.jsonl)")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    try:
        recording = collwatch.torch.record(
            ops=args.ops, every=args.every, frames=args.frames, deny=args.deny, path=args.output, calls=args.calls,
            comms=args.comms, trace_steps=args.trace_steps, stop_after_step=args.stop_after_step, stop_at=args.stop_at,
            lines=args.lines, deny_modules=args.deny_module)
    except ValueError as error:
        parser.error(_as_options(str(error)))
    sys.argv = [args.program] + args.arguments
    sys.path[0] = os.path.dirname(os.path.abspath(args.program))
    with recording:
        runpy.run_path(args.program, run_name="__main__")


if __name__ == "__main__":
    main()
