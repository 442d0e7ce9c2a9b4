# SPDX-License-Identifier: Apache-2.0
"""Packs a build tree into a wheel, reproducibly. Prints the wheel's path.

usage: pack_wheel.py --tag PLATFORM --source DIR --build DIR --agent FILE --libraries DIR OUT
"""

import argparse
import base64
import glob
import hashlib
import json
import os
import re
import zipfile

# We keep the layout of the build tree: the command finds its parts beside itself.
PARTS = [
    "cli/collwatch", "lab/collwatch-lab", "daemon/collwatchd",
    "lab/sim/libcuda.so.1", "lab/sim/libnccl.so.2",
    "lab/programs/train_loop", "lab/programs/train_loop.py", "lab/programs/train_faults.py",
    "lab/programs/train_workloads.py",
]
# The libraries in daemon and command; of the others we use headers only, or no file at all.
LINKED = ["openssl", "libevent", "libconfuse", "jansson", "elfutils", "libiberty", "libseccomp", "libcap-ng",
          "protobuf-c", "zlib", "bzip2", "xz-utils", "uthash", "curl"]
METADATA = '''Metadata-Version: 2.4
Name: collwatch
Version: {version}
Summary: Finds the rank that hangs a distributed GPU job, while it hangs
License-Expression: Apache-2.0
{licences}Requires-Python: >=3.8
Description-Content-Type: text/markdown

'''
# The time of every file: the earliest that a zip can express.
TIME = (1980, 1, 1, 0, 0, 0)


def version_of(source):
    with open(os.path.join(source, "meson.build"), encoding="utf-8") as f:
        return re.search(r"version: '([^']+)'", f.read()).group(1)


def linked_libraries(libraries):
    """Returns {source package: (version, copyright file)} of the linked libraries."""
    found = {}
    with open(os.path.join(libraries, "versions"), encoding="utf-8") as f:
        for line in f:
            source, version, *package = line.split()
            path = (os.path.join(libraries, "usr/share/doc", package[0], "copyright") if package
                    else os.path.join(libraries, source, "COPYING"))
            if os.path.exists(path):
                found[source] = (version, path)
    missing = set(LINKED) - set(found)
    if missing:
        raise SystemExit(f"pack_wheel.py: no licence of {', '.join(sorted(missing))}")
    return {name: found[name] for name in LINKED}


def bill_of_materials(version, linked):
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": {"type": "application", "name": "collwatch", "version": version}},
        "components": [
            {"type": "library", "name": name, "version": of[0],
             "purl": f"pkg:deb/debian/{name}@{of[0]}?arch=source&distro=bookworm"}
            for name, of in sorted(linked.items())
        ],
    }


def contents(args, version):
    """Yields (path in the wheel, bytes, is a program)."""
    info = f"collwatch-{version}.dist-info"
    linked = linked_libraries(args.libraries)
    licences = {}
    for name in ["LICENSE"] + ["LICENSES/" + n for n in sorted(os.listdir(args.source + "/LICENSES"))]:
        licences[name] = os.path.join(args.source, name)
    for name, (_, path) in sorted(linked.items()):
        licences[f"libraries/{name}"] = path

    def read(path):
        with open(path, "rb") as f:
            return f.read()

    modules = f"{args.source}/python/collwatch/"
    for path in sorted(glob.glob(modules + "**/*.py", recursive=True)):
        yield "collwatch/" + path[len(modules):], read(path), False
    yield "collwatch/agent/libcollwatch.so", read(args.agent), True
    yield "collwatch/include/collwatch.h", read(args.source + "/agent/collwatch.h"), False
    for name in sorted(os.listdir(args.source + "/docs/schemas")):
        yield "collwatch/schemas/" + name, read(f"{args.source}/docs/schemas/{name}"), False
    for part in PARTS:
        path = os.path.join(args.build, part)
        yield "collwatch/" + part, read(path), os.access(path, os.X_OK)
    for name, path in licences.items():
        yield f"{info}/licenses/{name}", read(path), False
    bom = json.dumps(bill_of_materials(version, linked), indent=1) + "\n"
    yield f"{info}/sboms/collwatch.cdx.json", bom.encode(), False
    files = "".join(f"License-File: {name}\n" for name in licences)
    text = METADATA.format(version=version, licences=files).encode()
    yield f"{info}/METADATA", text + read(os.path.join(args.source, "README.md")), False
    yield f"{info}/WHEEL", (f"Wheel-Version: 1.0\nGenerator: collwatch\nRoot-Is-Purelib: false\n"
                            f"Tag: py3-none-{args.tag}\n").encode(), False
    yield f"{info}/entry_points.txt", (b"[console_scripts]\n"
                                       b"collwatch = collwatch.__main__:main\n"), False


def add(archive, path, data, is_program):
    entry = zipfile.ZipInfo(path, TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3
    entry.external_attr = (0o100755 if is_program else 0o100644) << 16
    archive.writestr(entry, data)


def main():
    parser = argparse.ArgumentParser()
    for name in "tag", "source", "build", "agent", "libraries":
        parser.add_argument("--" + name, required=True)
    parser.add_argument("out")
    args = parser.parse_args()
    version = version_of(args.source)
    target = os.path.join(args.out, f"collwatch-{version}-py3-none-{args.tag}.whl")
    record = ""
    with zipfile.ZipFile(target, "w") as archive:
        for path, data, is_program in contents(args, version):
            add(archive, path, data, is_program)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(data)}\n"
        path = f"collwatch-{version}.dist-info/RECORD"
        add(archive, path, f"{record}{path},,\n".encode(), False)
    print(target)


if __name__ == "__main__":
    main()
