# SPDX-License-Identifier: Apache-2.0
"""A rank of train_loop.py that stays until its standard input ends, though its steps are done. So
no observer comes too late to see it.

usage: patient_rank.py TRAIN_LOOP_PY [ARGUMENT…]
"""
import os
import runpy
import sys

sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])  # as if it had been started itself
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    sys.stdin.read()
