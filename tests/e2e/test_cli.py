# SPDX-License-Identifier: Apache-2.0
"""collwatch run, status and report against a daemon of their own."""

import contextlib
import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import xml.etree.ElementTree
import tty

import pytest
from built import AGENT, COLLWATCH, SIM_DIR, SOURCE, TRAIN_LOOP_PY
from daemon import Daemon




@pytest.fixture(name="daemon")
def ready_daemon():
    with Daemon(patience="", name="here") as daemon:
        yield daemon.start()


def run(*arguments, **env):
    outer = {k: v for k, v in os.environ.items()
             if k != "LD_PRELOAD" and not k.startswith("COLLWATCH_")}
    return subprocess.run([COLLWATCH, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, env={**outer, **env}, timeout=120, check=False)


def expect(done, status, out=None, err=None):
    text = f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == status, text
    assert out is None or out in done.stdout, f"no {out!r}: {text}"
    assert err is None or err in done.stderr, f"no {err!r}: {text}"


def test_run_loads_the_agent_and_reaches_the_daemon(daemon):
    done = run("run", "--socket", daemon.path, "--", "sh", "-c",
               "echo $LD_PRELOAD $COLLWATCH_SOCKET; grep -c libcollwatch /proc/self/maps; exit 7")
    expect(done, 7, f"libcollwatch.so {daemon.path}\n", "loaded, daemon reached")
    assert int(done.stdout.split()[-1]) > 0, done.stdout
    assert done.stderr.count("\n") == 2 and "no process reported an NCCL call" in done.stderr, done.stderr


def test_run_says_why_no_daemon_is_reached_and_runs_anyway():
    done = run("run", "--socket", "/nowhere/agent.sock", "--", "echo", "done")
    expect(done, 0, "done\n", "no daemon on /nowhere/agent.sock (No such file or directory)")


def test_run_without_an_agent_runs_the_program_all_the_same():
    done = run("run", "--agent", "/nowhere/libcollwatch.so", "--", "sh", "-c", "echo $LD_PRELOAD.")
    expect(done, 0, ".\n", "agent /nowhere/libcollwatch.so: No such file or directory")


def test_run_keeps_what_is_preloaded_already():
    other = next((p for p in ("/lib/x86_64-linux-gnu/libdl.so.2", "/lib/aarch64-linux-gnu/libdl.so.2")
                  if os.path.exists(p)), None)
    if not other:
        pytest.skip("no libdl.so.2 to preload")
    done = run("run", "--", "sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD=other)
    expect(done, 0)
    first, second = done.stdout.strip().split(":")
    assert first == other and second.endswith("/libcollwatch.so"), done.stdout


def test_run_puts_the_address_sanitizer_first_where_it_is_needed():
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp:
        source, program = tmp + "/main.c", tmp + "/main"
        with open(source, "w", encoding="ascii") as f:
            f.write("#include <stdlib.h>\n#include <stdio.h>\n"
                    'int main(void) { puts(getenv("LD_PRELOAD")); return 0; }\n')
        if subprocess.run(["gcc", "-fsanitize=address", "-o", program, source],
                          stderr=subprocess.DEVNULL, check=False).returncode != 0:
            pytest.skip("gcc cannot link with AddressSanitizer")
        done = run("run", "--", program)
        expect(done, 0, "libasan.so.")
        assert done.stdout.index("libasan.so") < done.stdout.index("libcollwatch.so"), done.stdout


SEVEN = '#include <stdio.h>\nint main(void) { puts("ran"); return 7; }\n'


def build(directory, name, text, *options, cc=("gcc",)):
    with open(f"{directory}/{name}.c", "w", encoding="ascii") as f:
        f.write(text)
    subprocess.run([*cc, "-o", f"{directory}/{name}", f"{directory}/{name}.c", *options], check=True)
    return f"{directory}/{name}"


def test_run_keeps_the_agent_from_a_program_that_it_would_end():
    """musl's loader, which knows half of the C library's symbols."""
    if not shutil.which("musl-gcc"):
        pytest.skip("no musl-gcc")
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp:
        program = build(tmp, "seven", SEVEN, cc=("musl-gcc",))
        killed = subprocess.run([program], env={"LD_PRELOAD": AGENT}, check=False,
                                stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        assert killed.returncode == 127, killed
        done = run("run", "--", program)
        expect(done, 7, "ran\n", f"cannot be loaded into {program}: its loader says: Error relocating")
        assert done.stderr.count("\n") == 1, done.stderr
        script = build_script(tmp, program)
        expect(run("run", "--", script), 7, "ran\n", f"cannot be loaded into {script}: ")


def test_the_patch_for_kubernetes_takes_the_agent_away_where_it_would_end_programs():
    with open(SOURCE + "/deploy/kubernetes/job/agent.yaml", encoding="utf-8") as f:
        tries = re.search(r"- name: collwatch-try\n +image: .*\n +command: (\[.*\])\n", f.read())
    assert tries, "nothing tries it"
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp:
        program, *words = (w.replace("/opt/collwatch", tmp) for w in json.loads(tries.group(1)))
        agent = shutil.copy(AGENT, tmp + "/libcollwatch.so")

        def runs(path):
            done = subprocess.run([shutil.which(program), *words], env={"PATH": path}, check=False)
            return done.returncode == 0

        assert runs(os.environ["PATH"]) and os.path.exists(agent), "this C library takes it"
        if not shutil.which("musl-gcc"):
            pytest.skip("no musl-gcc")
        build(tmp, "sh", "int main(void) { return 0; }", cc=("musl-gcc",))
        assert runs(f"{tmp}:{os.environ['PATH']}") and not os.path.exists(agent), "musl does not"


def build_script(directory, interpreter):
    with open(directory + "/script", "w", encoding="ascii") as f:
        f.write(f"#!{interpreter}\n")
    os.chmod(directory + "/script", 0o755)
    return directory + "/script"


def newer_agent(directory):
    """A library that needs a version of a symbol that is not there: as of a newer C library."""
    for version in "old", "new":
        with open(f"{directory}/{version}.map", "w", encoding="ascii") as f:
            f.write("NEEDED_1 {" + (" global: needed; };" if version == "old" else
                                    "};\nNEEDED_2 { global: needed; } NEEDED_1;"))
    needed = "int needed(void) { return 0; }\n"
    shared = ("-shared", "-fPIC", "-Wl,-soname,libneeded.so")
    library = build(directory, "libneeded.so", needed, *shared,
                    f"-Wl,--version-script={directory}/new.map")
    agent = build(directory, "agent.so", "int needed(void);\nint use(void) { return needed(); }\n",
                  "-shared", "-fPIC", library, f"-Wl,-rpath,{directory}")
    build(directory, "libneeded.so", needed, *shared,
          f"-Wl,--version-script={directory}/old.map")
    return agent


def test_run_keeps_an_agent_out_that_needs_a_newer_library():
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp:
        program, agent = build(tmp, "seven", SEVEN), newer_agent(tmp)
        killed = subprocess.run([program], env={"LD_PRELOAD": agent}, check=False,
                                stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        assert killed.returncode == 1, killed
        expect(run("run", "--agent", agent, "--", program), 7, "ran\n",
               "version `NEEDED_2' not found (required by " + agent)
        expect(run("run", "--agent", agent, "--tag-output", "--", program), 7, "ran\n",
               "running without")


def test_run_loads_the_agent_beside_a_library_that_complains():
    """A failure that happens without the agent as well is not the agent's fault."""
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp:
        expect(run("run", "--", build(tmp, "seven", SEVEN), LD_PRELOAD="/nowhere/other.so"), 7,
               "ran\n", "libcollwatch.so loaded")


def test_run_of_nothing_and_of_what_is_not_there_fails():
    expect(run("run"), 1, err="no program given")
    expect(run("run", "--", "/nowhere/program"), 127, err="cannot run /nowhere/program")


def test_status_of_an_idle_daemon(daemon):
    expect(run("status", "--control", daemon.control), 0, "here: collwatchd")
    done = run("status", "--json", COLLWATCH_CONTROL_SOCKET=daemon.control)
    expect(done, 0)
    document = json.loads(done.stdout)
    assert document["schema"] == "collwatch.status/1" and document["jobs"] == [], document
    expect(run("report", "--control", daemon.control), 0, "no incidents\n")
    expect(run("report", "0123456789abcdef", "--control", daemon.control), 3, "")


def incident_of(number, hours_ago, verdict_class, node, job):
    confirmed = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - 3600 * hours_ago))
    return {"schema": "collwatch.incident/1", "id": f"{number:016x}", "uid": 0, "job": job,
            "class": verdict_class, "summary": f"number {number}", "times": {"confirmed": confirmed},
            "culprits": [{"rank": 0, "host": node, "pid": 1, "reason": "r"}]}


def test_report_lists_only_what_was_asked_for():
    with Daemon(patience="") as daemon:  # finds incidents of an earlier one
        for incident in (incident_of(1, 1, "never_entered", "node-a", "name:train"),
                         incident_of(2, 1, "mismatch", "node-b", "name:train"),
                         incident_of(3, 60, "mismatch", "node-a", "name:eval")):
            daemon.keep(incident)
        daemon.start()
        ask = lambda *options: run("report", "--control", daemon.control, *options)
        def listed(*options):
            done = ask("--json", *options)
            expect(done, 0)
            return {int(i["id"], 16) for i in json.loads(done.stdout)["incidents"]}
        assert listed() == {1, 2, 3}, listed()
        day = time.strftime("%Y-%m-%d", time.localtime(time.time() - 30 * 3600))
        for options, wanted in [
                (["--since", "2h"], {1, 2}), (["--since", "4d"], {1, 2, 3}),
                (["--since", "yesterday"], {1, 2}), (["--since", day], {1, 2}),
                (["--since", "2000-01-01 12:30"], {1, 2, 3}), (["--class", "mismatch"], {2, 3}),
                (["--class", "never entered"], {1}), (["--node", "node-a"], {1, 3}),
                (["--job", "train"], {1, 2}), (["--job", "name:eval"], {3}),
                (["--class", "mismatch", "--job", "train"], {2}),
                (["--class", "mismatch", "--node", "node-a", "--since", "2h"], set())]:
            assert listed(*options) == wanted, f"{options}: {listed(*options)}"
        shown = ask("--class", "mismatch", "--since", "3h")
        expect(shown, 0, "number 2")
        assert "number 1" not in shown.stdout and "number 3" not in shown.stdout, shown.stdout
        expect(ask("--node", "node-z"), 0, "of the selected ones: no incidents\n")
        expect(ask("--since", "tomorrow"), 1, "", 'is not a time like 2h, yesterday')
        expect(ask("--since", "2999-01-01"), 1, "", 'is not in the past')
        expect(ask("--class", "mismach"), 1, "", 'did you mean "mismatch"?')
        expect(ask("--class", "weather"), 1, "", "there are: process_dead ")
        expect(ask("--class", "slow", f"{3:016x}"), 1, "", "select from the list")


PATIENT_RANK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs/patient_rank.py")
NUMBERS_JOB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs/numbers_job.py")


@contextlib.contextmanager
def train_badly(daemon, ranks, *options):
    """Ranks of the training loop whose numbers go wrong from step 3 on (rank 1), timed. They end with
    the block, and not before: they might be done before the daemon has seen them."""
    with open(os.path.join(daemon.dir, "train-log"), "wb") as log:
        loops = [subprocess.Popen(
            [COLLWATCH, "run", "--socket", daemon.path, "--", sys.executable, PATIENT_RANK,
             TRAIN_LOOP_PY, "--log-every", "0", "--uid-file", daemon.dir + "/uid",
             "--fault-rank", "1", "--fault-step", "3", *options],
            stdin=subprocess.PIPE, stdout=log, stderr=log,
            env=dict(os.environ, LD_LIBRARY_PATH=SIM_DIR, RANK=str(r),
                     WORLD_SIZE=str(ranks), LOCAL_RANK=str(r), COLLWATCH_JOB="nan",
                     COLLWATCH_SUMMARY="full", COLLWATCH_PROGRESS="timed"))
            for r in range(ranks)]
        try:
            yield
            for loop in loops:
                loop.communicate(timeout=120)
                assert loop.returncode == 0, open(log.name, encoding="utf-8").read()
        finally:
            for loop in loops:
                loop.kill()
                loop.communicate()


def has_kernel():
    return any(os.path.exists(os.path.join(os.path.dirname(AGENT), "cuda/summary_kernel." + end))
               for end in ("fatbin", "ptx"))


def rows_of(daemon, enough):
    """The sums of its ops, once there are enough of them."""
    rows, end = [], time.monotonic() + 120
    while time.monotonic() < end:
        done = run("status", "--ops", "--json", "--control", daemon.control)
        rows = json.loads(done.stdout)["rows"] if done.stdout else []
        if sum(r["ops"] for r in rows if r["kind"] == "all_reduce") >= enough:
            break
        time.sleep(0.05)
    return rows


def the_page_has_each_row(daemon, rows):
    path = daemon.dir + "/ops.html"
    expect(run("status", "--ops", "--html", "-o", path, "--control", daemon.control), 0, "")
    assert os.stat(path).st_mode & 0o777 in (0o640, 0o600), "for everybody's eyes"
    page = xml.etree.ElementTree.parse(path).getroot()
    at = "{http://www.w3.org/1999/xhtml}"
    lines = [["".join(cell.itertext()) for cell in line] for line in page.iter(at + "tr") if len(line.findall(at + "td"))]
    assert len(lines) == len(rows), (lines, rows)
    for line, row in zip(lines, rows):
        assert line[0] == row["kind"] and line[2] == row["size"] and line[3] == str(row["ops"]), (line, row)
    assert len(list(page.iter("{http://www.w3.org/2000/svg}svg"))) == len(rows)
    for wrong in (["--html"], ["--ops", "--html", "--json"], ["--ops", "-o", path]):
        done = run("status", *wrong, "--control", daemon.control)
        assert done.returncode not in (0, 2), (wrong, done)
    done = run("status", "--ops", "--html", "-o", "/nowhere/page", "--control", daemon.control)
    assert done.returncode == 1 and "cannot write /nowhere/page" in done.stderr, done


def test_status_tells_who_fed_nan_and_what_ops_add_up_to(daemon):
    with train_badly(daemon, 2, "--steps", "40", "--step-ms", "5", "--fault", "feed-nan"):
        rows_of(daemon, 1)
    # The sums of an ended rank stay; the last look is at its end.
    rows = rows_of(daemon, 2 * 40 * 4)
    sums = {}
    for row in rows:
        assert row["job"] == "name:nan" and row["nranks"] in (1, 2), row
        sums[row["kind"]] = sums.get(row["kind"], 0) + row["ops"]
    # Each step: two buckets, norms and loss; a broadcast now and then.
    assert sums["all_reduce"] == 2 * 40 * 4, rows
    for row in rows:
        calls = row["calls_us"]
        assert 0 <= calls["p50"] <= calls["p90"] <= calls["p99"] <= calls["max"], row
        assert calls["jitter"] >= 0, row
    assert sums["reduce_scatter"] == sums["all_gather"] == 2 * 40, rows
    expect(run("status", "--ops", "--control", daemon.control), 0, "all_reduce")
    the_page_has_each_row(daemon, rows)
    document = json.loads(run("status", "--json", "--control", daemon.control).stdout)
    if not document["tensors"]:
        assert not has_kernel(), document
        pytest.skip("built without nvcc and clang: there is no kernel")
    assert any(r["timed"] and r["device_us"] > 0 and r["algbw_gbs"] > 0 for r in rows), rows
    for row in rows:
        if row["timed"] and row["kind"] == "all_reduce":
            n = row["nranks"]
            assert row["busbw_gbs"] == pytest.approx(row["algbw_gbs"] * 2 * (n - 1) / n), row
    tensor, = document["tensors"]
    assert (tensor["rank"], tensor["kind"], tensor["nans"], tensor["elements"]) == (
        1, "all_reduce", 1, 256), tensor
    expect(run("status", "--control", daemon.control), 0, "rank 1 fed 1 NaN and 0 Inf among 256")
    with open(daemon.log_path, encoding="utf-8") as log:
        said = [line for line in log if "fed 1 NaN" in line]
    assert len(said) == 1, said
    number, = tensor_stats_of(daemon, 1)
    assert (number["job"], number["what"]) == ("name:nan", "nonfinite"), number
    assert number["summary"].startswith("rank 1 was the first to feed 1 NaN and 0 Inf among 256 fp32 into "
                                        "all_reduce #"), number
    expect(run("status", "--control", daemon.control), 0, number["summary"])
    with open(daemon.log_path, encoding="utf-8") as log:
        said = [line for line in log if number["summary"] in line]
    assert len(said) == 1, said


def tensor_stats_of(daemon, enough):
    """The logged lines on the numbers of jobs, once there are enough of them."""
    tensor_stats, end = [], time.monotonic() + 60
    while len(tensor_stats) < enough and time.monotonic() < end:
        done = run("status", "--json", "--control", daemon.control)
        tensor_stats = json.loads(done.stdout)["tensor_stats"] if done.stdout else []
        time.sleep(0.05)
    return tensor_stats


@contextlib.contextmanager
def job_that_grows(daemon, *options, **more):
    """Rank 1's input to each of its three calls grows 64-fold with each step from step 3 on: a
    single ends 21 steps later. It stops before that, until there is a file `overflow` beside the
    daemon's."""
    job = subprocess.Popen([COLLWATCH, "run", "--socket", daemon.path, *options, "--", sys.executable, NUMBERS_JOB,
                            "--mark", "--ranks", "2", "--steps", "30", "--step-ms", "300", "--scale-rank", "1",
                            "--scale-step", "3", "--grow", "64", "--stand-at", "20", "--until",
                            os.path.join(daemon.dir, "overflow")],
                           env=dict(os.environ, LD_LIBRARY_PATH=SIM_DIR, COLLWATCH_JOB="grows", **more))
    try:
        yield job
    finally:
        for pid in (*children_of(job.pid), job.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        job.wait()


def overflow(daemon):
    """The job that grows goes on until it has."""
    with open(os.path.join(daemon.dir, "overflow"), "wb"):
        pass


def children_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(child) for child in f.read().split()]
    return []


def state_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rsplit(")", 1)[1].split()[0]
    return ""


def test_status_tells_of_growth_before_it_overflows(daemon):
    with job_that_grows(daemon, COLLWATCH_SUMMARY="full") as job:
        tensor_stats = tensor_stats_of(daemon, 1)
        document = json.loads(run("status", "--json", "--control", daemon.control).stdout)
        if not tensor_stats and not has_kernel():
            pytest.skip("built without nvcc and clang: there is no kernel")
        assert not document["tensors"], "something was infinite by then: %s" % document["tensors"]
        overflow(daemon)
        number, = tensor_stats
        assert (number["job"], number["what"]) == ("name:grows", "headroom"), number
        assert re.search(r"all_(reduce|gather) #\d+ .* comes near what fp32 holds: .* on rank 1, growing ",
                         number["summary"]), number
        assert job.wait(120) == 0
    summaries = {n["what"]: n["summary"] for n in tensor_stats_of(daemon, 2)}
    assert set(summaries) == {"headroom", "nonfinite"}, summaries
    assert "all_reduce #" in summaries["nonfinite"], summaries
    with open(daemon.log_path, encoding="utf-8") as log:
        said = log.read()
    assert [said.count(summary) for summary in summaries.values()] == [1, 1], said


@pytest.mark.parametrize("what, cause", [
    ("headroom", "stopped by collwatch at values near the limit of their type (COLLWATCH_STOP_AT), "),
    ("nonfinite", "stopped by collwatch at NaN or Inf (COLLWATCH_STOP_AT), ")])
def test_a_rank_is_stopped_where_its_user_asks_for_it(daemon, what, cause):
    if not has_kernel():
        pytest.skip("built without nvcc and clang: there is no kernel")
    overflow(daemon)
    with job_that_grows(daemon, "--stop-at", what) as job:
        end = time.monotonic() + 60
        while "T" not in [state_of(pid) for pid in children_of(job.pid)]:
            assert job.poll() is None and time.monotonic() < end, "no rank was stopped"
            time.sleep(0.02)
        says = lambda: re.findall(re.escape(cause) + r"(?:fed into|out of) all_reduce #\d+", daemon.log())
        while not says():
            assert time.monotonic() < end, daemon.log()
            time.sleep(0.05)
        document = json.loads(run("status", "--json", "--control", daemon.control).stdout)
        assert bool(document["tensors"]) == (what == "nonfinite"), document["tensors"]
        while job.poll() is None:  # each rank stops when its own summaries show it, and once
            assert time.monotonic() < end + 60, "the job does not go on"
            for pid in children_of(job.pid):
                if state_of(pid) == "T":
                    os.kill(pid, signal.SIGCONT)
            time.sleep(0.05)
        assert job.returncode == 0


def test_stop_at_takes_what_it_knows():
    expect(run("run", "--stop-at", "nan", "--", "/bin/true"), 1, err="nonfinite, headroom, or both")


def test_without_a_daemon_it_says_so():
    for verb in (["status"], ["report"], ["report", "0123456789abcdef"], ["stacks"], ["stacks", "3"], ["mute", "j"]):
        expect(run(*verb, "--control", "/nowhere/a b.sock"), 1, "",
               "no daemon answers on /nowhere/a b.sock: No such file or directory; "
               "run `collwatch doctor --control '/nowhere/a b.sock'` to find out why")
    expect(run("report", "/nowhere/bundle"), 1, "", "/nowhere/bundle: there is no such bundle")


def test_an_error_names_the_object():
    with tempfile.TemporaryDirectory(prefix="cw-") as at:
        text, dumps = at + "/notes.txt", at + "/dumps"
        os.mkdir(dumps)
        for path in text, dumps + "/rank_0":
            with open(path, "w", encoding="ascii") as f:
                f.write("# Notes\n\nText.\n")
        for verb in "report", "analyze", "numerics":
            expect(run(verb, at + "/"), 1, "", f"{at}/ is not a bundle: it has no incident.json")
        expect(run("report", at + "/none"), 1, "", f"{at}/none: there is no such bundle")
        expect(run("report", text), 1, "", f"{text} is a file, not a bundle")
        expect(run("analyze", text), 1, "", f"{text}: not a flight record")
        expect(run("analyze", "--flight-recorder", text), 1, "", f"{text} is a file: give the directory")
        expect(run("analyze", "--flight-recorder", at + "/none"), 1, "", f"{at}/none: No such file")
        expect(run("analyze", "--flight-recorder", dumps), 3, "",
               f"{dumps}: no Flight Recorder dump that can be read: rank_0 cannot be used: it is text, neither a pickle")


def test_no_color_is_heeded(daemon):
    """On a terminal, which `script` provides."""
    if not shutil.which("script"):
        pytest.skip("there is no script(1)")
    ask = f"{COLLWATCH} status --control {daemon.control}"
    for no_color, wanted in (("", True), ("1", False)):
        done = subprocess.run(["script", "-qec", ask, "/dev/null"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, timeout=120, check=False,
                              env=dict(os.environ, NO_COLOR=no_color, TERM="xterm"))
        assert (b"\x1b[" in done.stdout) == wanted, done.stdout


def test_nothing_of_a_bundle_commands_the_terminal():
    """A bundle may come from any user: neither its texts nor the words about its errors command the
    terminal."""
    with tempfile.TemporaryDirectory() as directory:
        def write(name, text):
            with open(os.path.join(directory, name), "w", encoding="utf-8") as f:
                f.write(text)

        write("incident.json", '{"schema":"collwatch.incident/1"} \x1b]0;owned\x07')
        for verb in ("report", "analyze"):
            done = run(verb, directory)
            expect(done, 1, "")
            assert "\x1b" not in done.stderr and "\x07" not in done.stderr, repr(done.stderr)
        write("incident.json", json.dumps({"schema": "collwatch.incident/1", "id": "a", "class": "x",
                                           "summary": "\x1b[2J\u202eevil", "culprits": []}))
        write("snapshot.json", json.dumps({"schema": "collwatch.snapshot/1", "now_ns": 1,
                                           "notes": ["\x1b[31mnote"]}))
        for verb in ("report", "analyze"):
            done = run(verb, directory)
            said = done.stdout + done.stderr
            assert "\x1b" not in said and "\u202e" not in said, repr(said)


def on_a_terminal(*arguments):
    """The output on a terminal."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)  # line breaks stay what they are
    with subprocess.Popen([COLLWATCH, *arguments], stdout=theirs, stdin=subprocess.DEVNULL) as process:
        os.close(theirs)
        said = b""
        with contextlib.suppress(OSError):  # EIO: it has ended
            while more := os.read(ours, 65536):
                said += more
        assert process.wait(60) == 0, said
    os.close(ours)
    return said


def test_documents_of_strangers_are_ascii_on_a_terminal_and_as_they_are_elsewhere():
    """The second character begins a command on many terminals, the third turns the rest around."""
    summary = "é\x9b31m\u202eevil"
    with tempfile.TemporaryDirectory() as directory:
        with open(directory + "/incident.json", "w", encoding="utf-8") as f:
            json.dump({"schema": "collwatch.incident/1", "id": "a", "class": "x", "summary": summary,
                       "culprits": []}, f)
        shown = on_a_terminal("report", "--json", directory)
        assert shown.isascii() and json.loads(shown)["summary"] == summary, shown
        piped = run("report", "--json", directory)
        assert summary in piped.stdout and json.loads(piped.stdout) == json.loads(shown), piped


def test_watching_shows_it_again_and_again_until_nobody_reads(daemon):
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    with subprocess.Popen([COLLWATCH, "status", "--watch", "--control", daemon.control], stdout=theirs,
                          stdin=subprocess.DEVNULL, env=dict(os.environ, NO_COLOR="1")) as process:
        os.close(theirs)
        said = b""
        while said.count(b"\033[H\033[J") < 2:
            said += os.read(ours, 65536)
        os.close(ours)
        assert process.wait(60) == 1, "what cannot be written ends it"
    first = said.split(b"\033[H\033[J")[1].splitlines()
    assert first[0].startswith(b"here: collwatchd") and max(map(len, first[1:])) <= 60, first
    with open("/dev/full", "wb") as full:
        done = subprocess.run([COLLWATCH, "status", "--watch", "--control", "/nowhere"], stdout=full,
                              stdin=subprocess.DEVNULL, timeout=120, check=False)
    assert done.returncode == 1, done


def documents(process, most):
    """The printed documents one behind the other, each as it comes."""
    text = ""
    for line in process.stdout:
        text += line
        if line == "}\n":
            yield json.loads(text)
            text, most = "", most - 1
        if most == 0:
            return


def test_top_shows_what_is_called_now(daemon):
    with subprocess.Popen([COLLWATCH, "top", "--json", "--control", daemon.control], stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, text=True) as top:
        try:
            shown = documents(top, 60)
            next(shown)  # calls from now on are new
            with train_badly(daemon, 2):
                for document in shown:
                    called = [r for r in document["rows"] if r["ops_per_s"] > 0]
                    if called:
                        break
            assert called, "sixty documents, and no rank called NCCL"
            for row in called:
                # Two seconds or more from one document to the next.
                assert row["ops_per_s"] <= row["ops"] / 2 and row["bytes_per_s"] <= row["bytes"] / 2, row
        finally:
            top.kill()
    rows_of(daemon, 2 * 100 * 4)
    done = run("top", "--once", "--control", daemon.control).stdout.splitlines()
    assert "\033" not in "".join(done) and any("op/s" in line for line in done), done
    assert all(float(line.split()[-3]) == 0 for line in done if "all_reduce" in line), done
    expect(run("top", "--once", "--control", "/nowhere"), 1, err="no daemon answers")


def test_top_fits_its_terminal(daemon):
    with train_badly(daemon, 2):
        rows_of(daemon, 1)
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 4, 60, 0, 0))
    with subprocess.Popen([COLLWATCH, "top", "--once", "--control", daemon.control], stdout=theirs,
                          stdin=subprocess.DEVNULL) as process:
        os.close(theirs)
        said = b""
        with contextlib.suppress(OSError):
            while part := os.read(ours, 65536):
                said += part
        os.close(ours)
        assert process.wait(60) == 0
    before, screen = said.split(b"\033[H\033[J")
    lines = screen.splitlines()
    assert not before and len(lines) == 3 and max(map(len, lines)) <= 60, said


def test_usage_errors_are_errors():
    expect(run(), 1, err="Usage")
    expect(run("no-such-verb"), 1, err='no verb "no-such-verb"')
    expect(run("status", "--no-such-option"), 1, "")
    expect(run("statsu"), 1, "", 'no verb "statsu"; did you mean "status"?')
    expect(run("status", "--jsno"), 1, "", 'no option "--jsno"; did you mean "--json"?')
    expect(run("status", "--contrl=/nowhere"), 1, "", 'did you mean "--control"?')
    # A value is no option, nor is a word for the program.
    expect(run("status", "--control", "--jsno"), 1, err="--jsno")
    assert "did you mean" not in run("status", "--control", "--jsno").stderr
    expect(run("run", "--socket", "/nowhere", "sh", "-c", "echo $0", "--agnet"), 0, "--agnet")
    assert re.fullmatch(r"collwatch \d+\.\d+\.\d+, commit ([0-9a-f]{12}(-dirty)?|unknown)\n",
                        run("--version").stdout), run("--version").stdout
    expect(run("--help"), 0, "Usage")
    for verb in ("run", "status", "report", "init-cluster"):
        expect(run(verb, "--help"), 0, f"Usage: collwatch {verb}")


def test_init_cluster_takes_host_lists_as_slurm_writes_them():
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp:
        expect(run("init-cluster", tmp + "/a", "--hosts", "gpu[008-010],login1"), 0,
               "a/collwatchd.conf  to  /etc/collwatch/collwatchd.conf")
        assert sorted(os.listdir(tmp + "/a")) == ["collwatchd.conf", "peer.key"]
        with open(tmp + "/a/collwatchd.conf", encoding="utf-8") as f:
            text = f.read()
        assert "\nnode_name" not in text, text
        for name in "gpu008", "gpu009", "gpu010", "login1":
            assert text.count(f'"{name}={name}:7411"') == 1, text
        expect(run("init-cluster", tmp + "/b", "--hosts", "n[1-2]:99", "--certificates"), 0)
        assert {"n1", "n2", "ca.crt"} <= set(os.listdir(tmp + "/b"))
        expect(run("init-cluster", tmp + "/c", "--hosts", "n[1-2", "--node", "a=b:1"), 1,
               err="a [ without its ]")
        expect(run("init-cluster", tmp + "/c", "--hosts", "n[1-9999]"), 1, err="more than 4096")
        expect(run("init-cluster", tmp + "/c", "--hosts", "n[1,1]"), 1, err="named twice")
        expect(run("init-cluster", tmp + "/c", "--hosts", "n[1-2]:x"), 1, err="n1:x")
        assert not os.path.exists(tmp + "/c")


def test_demo_and_suite_are_the_laboratorys():
    for verb in ("demo", "suite"):
        expect(run(verb, "--help"), 0, f"Usage: collwatch-lab {verb}")
    expect(run("demo", "--no-such-option"), 1, err="--no-such-option")
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp:
        alone = tmp + "/collwatch"
        shutil.copy(COLLWATCH, alone)
        done = subprocess.run([alone, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=120, check=False)
        expect(done, 1, err="install the package collwatch-lab")
