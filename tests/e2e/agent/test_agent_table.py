# SPDX-License-Identifier: Apache-2.0
"""The library as a file, and the table of NCCL functions against nccl.h: the simulator's, and real
ones where there are any. To hold it against other versions:

	NCCL_HEADERS=/folder/with/headers:/another/nccl.h meson test agent_table -v

NCCL_LIBS names real libraries in the same way; their exports are then held against the table.
"""
import ctypes
import glob
import os
import re
import subprocess
import tempfile

import pytest
from agent_lib import *
import built
from built import COLLWATCH, SOURCE

CC = built.CC.split()
NEWEST_GLIBC = (2, 28)
LARGEST = 400 << 10  # stripped, without kernels


def run(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout.decode()


def test_needs_only_glibc():
    needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-dW", AGENT))
    extra = set(needed) - {"libc.so.6", "libdl.so.2", "libpthread.so.0"}
    check(not extra, "NEEDED %r" % extra)


def test_runs_on_old_glibc():
    versions = {tuple(map(int, v.split("."))) for v in
                re.findall(r"GLIBC_(\d+\.\d+(?:\.\d+)?)", run("readelf", "-VW", AGENT))}
    check(versions and max(versions) <= NEWEST_GLIBC, "needs glibc %r" % (max(versions),))


# Headers of glibc 2.38 and later give variants with C23's numbers (0b1) names of their own.
RENAMED = r"(strto(l|ul|ll|ull|imax|umax|q|uq)|wcsto(l|ul|ll|ull|imax|umax|q|uq)|v?[fs]?w?scanf)(_l)?"


def test_calls_nothing_that_newer_headers_rename():
    """Built there, it would need GLIBC_2.38; built here, nothing shows but the name itself."""
    called = {line.split()[-1].split("@")[0] for line in
              run("nm", "-D", "--undefined-only", AGENT).splitlines()}
    renamed = {n for n in called if re.fullmatch(RENAMED, re.sub("^__isoc(99|23)_", "", n))}
    check(called and not renamed, "calls %s" % ", ".join(sorted(renamed)))


def test_is_small():
    with tempfile.TemporaryDirectory() as at:
        stripped = os.path.join(at, "stripped.so")
        run("strip", "-o", stripped, AGENT)
        size = os.path.getsize(stripped)
    kernels = [os.path.join(os.path.dirname(AGENT), "cuda/summary_kernel." + end)
               for end in ("fatbin", "ptx")]
    kernel = sum(os.path.getsize(k) for k in kernels if os.path.exists(k))
    print("# %d bytes stripped, %d of them kernels" % (size, kernel))
    check(size - kernel <= LARGEST, "%d bytes stripped" % size)


def test_is_pinned_and_bound():
    flags = run("readelf", "-dW", AGENT)
    check("NODELETE" in flags and "NOW" in flags, flags)


def test_asks_for_its_pages_first():
    """A compiler may take a function of prefetches for one without effect, and leave it out."""
    if os.uname().machine != "x86_64":
        return
    code = run("objdump", "-d", "-j", "cw_hot", "--no-show-raw-insn", AGENT)
    for name, least in ("ncclAllReduce", 4), ("cw_impl_ncclAllReduce", 8):
        body = re.search(r"<%s>:\n(.*?)\n\n" % name, code, re.S)
        check(body, "%s is not in cw_hot" % name)
        fetches = len(re.findall(r"\bprefetch", body.group(1)))
        check(fetches >= least, "%d prefetches in %s" % (fetches, name))


def test_exports_only_what_it_means_to():
    symbols = run("nm", "-D", "--defined-only", AGENT)
    names = {line.split()[-1] for line in symbols.splitlines()}
    check(not any("@" in n for n in names), "unversioned: a named version would disable dlsym")
    profiler = {"ncclProfiler_v%d" % n for n in range(1, 8)}
    ours = {"collwatch_" + n for n in ("mark_step", "name_comm", "tensor_stats", "tensor_stats_load", "set_job_timeout")}
    expected = {"dlsym"} | ours | profiler | set(table()) | driver_hooks()
    check(names == expected, "exported: %r" % (names ^ expected))


def driver_hooks():
    with open(os.path.join(SOURCE, "agent/hooks/cuda_hooks.h")) as f:
        return set(re.findall(r"^\tX\((cu\w+),", f.read(), re.M))


def words(text):
    return re.findall(r"\w+|\*|\.\.\.", text)


def kind_of(parameter):
    """Its type without its name, in one spelling."""
    tokens = [t for t in words(parameter) if t not in ("struct", "enum")]
    names = [t for t in tokens if t not in ("*", "const", "unsigned")]
    if len(names) > 1 and tokens[-1] == names[-1]:
        tokens = tokens[:-1]
    stars = tokens.count("*")
    base = next(t for t in tokens if t not in ("*", "const"))
    base = {"CUstream": "cudaStream_t", "ncclMultimemHandle": "ncclMultimemHandle_t"}.get(base, base)
    # const of a value parameter says nothing; const of the pointed-to type does.
    return ("const " if "const" in tokens and stars else "") + base + "*" * stars


def signature(result, parameters):
    inner = parameters.strip()
    kinds = [] if inner in ("", "void") else [kind_of(p) for p in inner.split(",")]
    return kind_of(result), kinds


def table():
    text = open(os.path.join(SOURCE, "agent/base/nccl_functions.h")).read()
    rows = {}
    for m in re.finditer(r"^\tF\(([^,]+), (nccl\w+), (\d+), \w+, \(([^)]*)\)", text, re.M):
        rows[m[2]] = (*signature(m[1], m[4]), int(m[3]))
    for m in re.finditer(r"^\tF0\(([^,]+), (nccl\w+), (\d+),", text, re.M):
        rows[m[2]] = (*signature(m[1], ""), int(m[3]))
    check(len(rows) == len(re.findall(r"^\tF0?\(", text, re.M)), "every row was read")
    return rows


def newest():
    text = open(os.path.join(SOURCE, "agent/base/nccl_functions.h")).read()
    return int(re.search(r"define CW_NCCL_NEWEST (\d+)", text)[1])


# Inline in NCCL's headers, or declared and (2.31, 2.32) exported by no libnccl.
NOT_FUNCTIONS_OF_THE_LIBRARY = {
    "ncclGetResourceBufferOffset", "ncclTeamInnerFactor", "ncclTeamOuterFactor",
    "ncclTeamRankInDifference", "ncclTeamRankIsMember", "ncclTeamRankToTeam",
    "ncclCftBarrierCreateRequirement"}
# 2.30 took it out of nccl.h and left it in the library.
GONE_FROM_HEADERS = {"ncclResetDebugInit": 23000}


def test_environment_is_in_its_table():
    said = subprocess.run([COLLWATCH, "--scdoc-environment"],
                          stdout=subprocess.PIPE, check=True).stdout.decode()
    table_names = re.findall(r"^\*(COLLWATCH\w*)\*", said, re.M)
    read, named, called = set(), {}, set()
    for folder in "agent", "cli", "lib/common", "lib/record", "numerics", "proto":
        for source in glob.glob(os.path.join(SOURCE, folder, "**", "*.[ch]"), recursive=True):
            if source.endswith("lib/common/environment.c"):
                continue  # the table
            text = open(source).read()
            # In a call, or in a list of names that are tried one after the other.
            read |= set(re.findall(r'(?:(?:getenv|env|get_switch|cw_env_get)\((?:env, )?|\[\] = \{ )'
                                   r'"(COLLWATCH\w*)"', text))
            named.update(re.findall(r'#define (\w+) "(COLLWATCH_\w+)"', text))
            called |= set(re.findall(r'(?:getenv|cw_env_get)\((?:env, )?([A-Z_]+)\)', text))
    read |= {named[name] for name in called & set(named)}
    check(read == set(table_names), "read and not in lib/common/environment.c, or the other way: %r" %
          (read ^ set(table_names)))


def preprocessed(header, includes):
    """Missing headers of other libraries (CUDA's, C++'s) become empty ones."""
    with tempfile.TemporaryDirectory() as stubs:
        for _ in range(50):
            p = subprocess.run([*CC, "-E", "-P", *("-I" + i for i in includes), "-I" + stubs, header],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            missing = re.search(r"fatal error: ([\w./]+): No such file", p.stderr.decode())
            if p.returncode == 0:
                return p.stdout.decode()
            check(missing, p.stderr.decode())
            path = os.path.join(stubs, missing[1])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            open(path, "w").close()
    raise AssertionError("%s: too many headers are missing" % header)


def declared(header, *includes):
    text = preprocessed(header, includes)
    found = {}
    for m in re.finditer(r"([\w\s*]+?)\b(nccl[A-Z]\w*)\s*\(([^()]*)\)\s*(?:__attribute__[^;]*)?;", text):
        result = re.sub(r"\b(extern|__host__|inline)\b", "", m[1]).strip().split(";")[-1]
        if result and "typedef" not in result and "return" not in result and \
                m[2] not in NOT_FUNCTIONS_OF_THE_LIBRARY:
            found[m[2]] = signature(result, m[3])
    check(len(found) > 10, "%s: only %d functions were read" % (header, len(found)))
    return found


def version_of(header):
    text = open(header).read()
    part = lambda name: int(re.search(r"define NCCL_%s +(\d+)" % name, text)[1])
    return part("MAJOR") * 10000 + part("MINOR") * 100 + part("PATCH")


def differences(found, version):
    """In words; found: the functions of a header of this version."""
    rows = table()
    for name, kinds in sorted(found.items()):
        if name not in rows:
            yield "%s is not in the table" % name
        elif rows[name][:2] != kinds:
            yield "%s: table %r, header %r" % (name, rows[name][:2], kinds)
        elif rows[name][2] > version:
            yield "%s is older than %d" % (name, rows[name][2])
    for name, (_, _, since) in sorted(rows.items()):
        if name not in found and since <= version < GONE_FROM_HEADERS.get(name, 99999):
            yield "%s is in the table since %d" % (name, since)


def test_table_matches_the_simulators_header():
    include = os.path.join(SOURCE, "lab/sim/include")
    found, rows = declared(include + "/nccl.h", include), table()
    for name, kinds in found.items():
        check(name in rows and rows[name][:2] == kinds, "%s: %r" % (name, kinds))


def headers():
    """Installed ones, and those below the folders or files of NCCL_HEADERS (colons between)."""
    found = glob.glob("/usr/local/cuda*/include/nccl.h") + ["/usr/include/nccl.h"]
    for place in os.environ.get("NCCL_HEADERS", "").split(":"):
        found += [place] if place.endswith(".h") else \
            glob.glob(os.path.join(place, "**/nccl.h"), recursive=True) if place else []
    return [h for h in found if os.path.exists(h)]


def test_table_matches_real_headers():
    if not headers():
        pytest.skip("no nccl.h is installed, none is named in NCCL_HEADERS")
    for header in headers():
        folder, version = os.path.dirname(header), version_of(header)
        device = os.path.join(folder, "nccl_device.h")
        found = declared(device if os.path.exists(device) else header, folder)
        wrong = list(differences(found, version))
        print("# %s: version %d, %d functions, %d differences" % (header, version, len(found),
                                                                  len(wrong)))
        for line in wrong:
            print("#   " + line)
        # A newer NCCL may have functions that this table cannot know: said, not held against it.
        check(not wrong or version > newest(), "%s: %s" % (header, "; ".join(wrong)))


# Exported, but no C header declares them: C++ of NCCL's own, which goes past the agent.
INTERNAL = {"ncclGinInboxA2ACreateRequirement", "ncclGinOutboxCreateRequirement",
            "ncclResetDebugInitInternal", "ncclParamDumpAllFlag", "ncclParamDumpAllFlagKey",
            "ncclParamEnvPluginGet", "ncclParamIsCacheDisabled", "ncclParamNoCacheStr",
            "ncclParamNoCacheStrKey", "ncclParamRegistryInstance"}


@pytest.mark.skipif(not os.environ.get("NCCL_LIBS"), reason="NCCL_LIBS names no real libraries")
def test_real_libraries_export_what_the_table_says():
    libraries = [os.path.join(folder, f) for place in os.environ["NCCL_LIBS"].split(":")
                 for folder, _, files in os.walk(place) for f in files if f == "libnccl.so.2"]
    check(libraries, "no libnccl.so.2 where NCCL_LIBS says")
    rows = table()
    for library in sorted(libraries):
        names = {line.split()[-1] for line in
                 run("nm", "-D", "--defined-only", library).splitlines()}
        public = {n for n in names if re.match(r"nccl[A-Z]\w*$", n)}
        code = ctypes.c_int()
        check(ctypes.CDLL(library).ncclGetVersion(ctypes.byref(code)) == 0, library)
        unknown = public - set(rows) - INTERNAL
        missing = {n for n, (_, _, since) in rows.items() if since <= code.value} - public
        print("# %s: version %d, %d functions, unknown: %s, missing: %s" % (
            library, code.value, len(public), sorted(unknown) or "none", sorted(missing) or "none"))
        check(not unknown or code.value > newest(), "%s: %r" % (library, unknown))
