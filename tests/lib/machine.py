# SPDX-License-Identifier: Apache-2.0
"""Properties of the machine that tests need, found out by trying."""

import functools
import os
import shutil
import subprocess

NEEDS = ("root", "bpf", "namespaces", "mounts", "open_build")


NOBODY = 65534


def fails(*command, **more):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False, **more).returncode != 0


@functools.cache
def lacks(need):
    """Why such a test cannot run here; None when it can."""
    if need == "root" and os.geteuid() != 0:
        return "needs root"
    if need == "bpf" and (os.geteuid() != 0 or not os.path.exists("/sys/kernel/btf/vmlinux")):
        return "needs root and a kernel with BTF"
    if need in ("mounts", "namespaces") and fails("unshare", "--mount", "--propagation=unchanged",
                                                  "mount", "--make-rslave", "/"):
        return "needs root, and a root directory that is a mount: mount --bind DIRECTORY DIRECTORY before chroot"
    if need == "open_build" and os.geteuid() == 0 and \
            fails("test", "-r", os.path.abspath(__file__), user=NOBODY, group=NOBODY, extra_groups=[], cwd="/"):
        return "other users cannot enter this source tree: clone into a directory that is open to them"
    if need == "namespaces":
        if os.geteuid() != 0 or not shutil.which("ip"):
            return "network namespaces need root and iproute2"
        if fails("unshare", "--net", "ip", "link", "set", "lo", "up"):
            return "network namespaces are not permitted here"
    return None
