# SPDX-License-Identifier: Apache-2.0
"""Copies of files of the build that every user can run: the build may lie where others cannot look.
We make them once, in the directory of all temporary files, and remove them with it."""

import functools
import os
import shutil
import tempfile

from built import SIM_DIR


@functools.cache
def directory():
    """With NCCL and the driver in it, for LD_LIBRARY_PATH."""
    at = tempfile.gettempdir() + "/open"
    os.makedirs(at, exist_ok=True)
    os.chmod(at, 0o755)
    for name in os.listdir(SIM_DIR):
        # An aliased library that was not built yet is a link to nowhere.
        if ".so" in name and os.path.isfile(f"{SIM_DIR}/{name}"):
            open_copy(f"{SIM_DIR}/{name}", at)
    return at


def open_copy(path, at=None):
    """The path of a copy of that program or library that every user can read."""
    copy = f"{at or directory()}/{os.path.basename(path)}"
    if not os.path.exists(copy):
        handle, new = tempfile.mkstemp(dir=os.path.dirname(copy))
        os.close(handle)
        shutil.copy(path, new)
        os.chmod(new, 0o755)
        os.rename(new, copy)
    return copy
