#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The messages of lab/real-nccl build on source trees that it cannot build, with the step it
reached; and of lab/real-torch build on a package index that does not answer. No network, nothing of
NVIDIA's: this test makes trees and index. Prints TAP.

Argument: the build directory."""
import os
import socket
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from lab_lib import SOURCE  # noqa: E402 pylint: disable=wrong-import-position
import tap  # noqa: E402 pylint: disable=wrong-import-position
from waiting import expect  # noqa: E402 pylint: disable=wrong-import-position

BUILD = sys.argv[1]
VERSION_MK = "NCCL_MAJOR   := 2\nNCCL_MINOR   := 20\nNCCL_PATCH   := 5\n"
GENERATOR = """import os, sys
os.makedirs(sys.argv[1])
with open(os.path.join(sys.argv[1], "host_table.cc"), "w") as f:
    f.write("__global__ void ncclDevKernel_Generic(%s);\\n")
"""
CUDA = {"include/cuda.h": "#define CUDA_VERSION 13000\n", "include/cuda_runtime.h": "",
        "include/cuda_fp16.h": "", "include/crt/host_config.h": ""}


def put(directory, files):
    for name, text in files.items():
        path = os.path.join(directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


def must_say(files, *words):
    with tempfile.TemporaryDirectory() as at:
        tree, cuda = at + "/tree", at + "/cuda"
        os.mkdir(tree)
        put(tree, files)
        put(cuda, CUDA)
        p = subprocess.run([SOURCE + "/lab/real-nccl", "build", "--source", tree, "--cuda", cuda,
                            "--cache", at + "/cache", "--build", BUILD, "--offline"], text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        expect(p.returncode == 1 and "Traceback" not in p.stdout, p.stdout)
        for word in words:
            expect(word in p.stdout, f"{word}: {p.stdout}")
        expect(sorted(os.listdir(tree)) == sorted({f.split("/")[0] for f in files}),
                   "the tree was written to")


def no_tree_at_all():
    must_say({}, "is no source tree of NCCL", "makefiles/version.mk")


def no_header():
    must_say({"makefiles/version.mk": VERSION_MK}, "NCCL 2.20.5 of", "gets as far as its headers",
             "nccl.h.in")


def no_generator():
    must_say({"makefiles/version.mk": VERSION_MK, "src/nccl.h.in": "#define X ${nccl:Major}\n"},
             "gets as far as the tables of its kernels", "NCCL before 2.19")


def kernels_with_other_parameters():
    must_say({"makefiles/version.mk": VERSION_MK, "src/nccl.h.in": "",
              "src/device/generate.py": GENERATOR % "struct ncclDevComm*"},
             "gets as far as the tables of its kernels", "ncclDevKernelArgs4K only",
             "struct ncclDevComm*")


def files_that_do_not_compile():
    must_say({"makefiles/version.mk": VERSION_MK, "src/nccl.h.in": "", "src/good.cc": "",
              "src/bad.cc": "#error not for this one\n",
              "src/device/generate.py": GENERATOR % "ncclDevKernelArgs4K const"},
             "gets as far as compiling", "files compile")


def index_that_does_not_answer():
    """Then the default run does not wait: it says that it had no PyTorch."""
    with tempfile.TemporaryDirectory() as at, socket.create_server(("127.0.0.1", 0)) as silent:
        index = "http://127.0.0.1:%d/simple" % silent.getsockname()[1]
        p = subprocess.run([SOURCE + "/lab/real-torch", "build", "--fetch-within", "3", "--cache",
                            at + "/cache", "--build", BUILD], text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=120, check=False,
                           env=dict(os.environ, PIP_INDEX_URL=index, PIP_NO_CACHE_DIR="1"))
        expect(p.returncode == 3 and "not within 3 s" in p.stdout, f"{p.returncode}: {p.stdout}")


tap.run([no_tree_at_all, no_header, no_generator, kernels_with_other_parameters,
         files_that_do_not_compile, index_that_does_not_answer])
