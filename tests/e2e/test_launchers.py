# SPDX-License-Identifier: Apache-2.0
"""collwatch run: beside a program (--tag-output, --standalone), and under launchers: the real
mpirun where it is installed, else a reason."""

import glob
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest
from built import AGENT, CC, COLLWATCH, SOURCE, TRAIN_LOOP
from open_copy import directory, open_copy
from ports import unused_port
from waiting import expect, wait_until

HOST = socket.gethostname().split(".")[0]


def run(*words, env=None, **more):
    return subprocess.run([COLLWATCH, "run", *words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False,
                          env=dict(os.environ, **(env or {})), **more)


def python(text):
    return ["--", sys.executable, "-u", "-c", text]


def without_prefixes(data, prefix):
    """The bytes that the program wrote; every line, or piece after a \\r, has the prefix."""
    pieces = re.split(rb"(?<=\n)|(?<=\r)(?!\n)", data)
    expect(all(p.startswith(prefix) for p in pieces if p), data[:300])
    return b"".join(p[len(prefix):] for p in pieces if p)


def test_tagged_output_is_whole_and_apart():
    text = ("import os\n"
            "for i in range(3000): os.write(1, b'out %d\\n' % i); os.write(2, b'err %d\\n' % i)\n"
            "os.write(1, b'x' * 300000 + b'\\n')\n"
            "for i in range(5): os.write(1, b'\\r%d %%' % i)\n"
            "os.write(1, b'\\r\\nbytes \\x00\\xff\\n')\n"
            "os.write(1, b'no end')\nos.write(2, b'half')\nos._exit(7)\n")
    done = run("--tag-output", *python(text), env={"RANK": "3"})
    expect(done.returncode == 7, done.returncode)
    out = without_prefixes(done.stdout, f"{HOST}:3| ".encode())
    wanted = b"".join(b"out %d\n" % i for i in range(3000)) + b"x" * 300000 + b"\n"
    wanted += b"".join(b"\r%d %%" % i for i in range(5)) + b"\r\nbytes \x00\xff\nno end"
    expect(out == wanted, "standard output is whole")
    own, err = done.stderr.split(b"\n", 1)
    expect(own.startswith(b"collwatch: agent "), own)
    err, end = err[:err.rindex(b"collwatch: ")], err[err.rindex(b"collwatch: "):]
    expect(end.startswith(NOTHING), end)
    err = without_prefixes(err, f"{HOST}:3| ".encode())
    expect(err == b"".join(b"err %d\n" % i for i in range(3000)) + b"half", "standard error")


def test_end_of_the_program_is_the_end_of_run():
    for text, status in (("import os; os._exit(0)", 0), ("import os; os._exit(255)", 255),
                         ("import os; os.kill(os.getpid(), 9)", -9),
                         ("import os; os.kill(os.getpid(), 15)", -15)):
        done = run("--tag-output", *python(text))
        expect(done.returncode == status, (text, done))
    done = run("--tag-output", "--", "/nonexistent/program")
    expect(done.returncode == 127 and b"cannot run /nonexistent/program" in done.stderr, done)


def test_signals_reach_the_program():
    text = ("import signal, sys\n"
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(42))\nprint('ready')\n"
            "signal.pause()\n")
    p = subprocess.Popen([COLLWATCH, "run", "--tag-output", *python(text)],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    expect(b"ready" in p.stdout.readline(), "it runs")
    p.send_signal(signal.SIGTERM)
    p.stdout.close()
    expect(p.wait(120) == 42, p.returncode)


def test_preload_is_appended():
    done = run("--tag-output", *python("import os; print(os.environ['LD_PRELOAD'])"),
               env={"LD_PRELOAD": "libm.so.6"})
    expect(re.search(rb"\| libm\.so\.6:/.*/libcollwatch\.so\n", done.stdout), done)


class Standalone:
    """A user without rights, a job of three ranks under `run --standalone`; or under `run` with
    these options, where a script may use $loop and $run."""

    def __init__(self, fault, *options, script=None, path=None, **more):
        self.tmp = tempfile.mkdtemp(prefix="cw-own-")
        self.uid = 4321 if os.geteuid() == 0 else os.geteuid()
        os.chown(self.tmp, self.uid, -1)
        loop = (f"{open_copy(TRAIN_LOOP)} --step-ms 5 --elements 64 --log-every 0 "
                f"--uid-file {self.tmp}/uid {fault}")
        script = script or "for r in 0 1 2; do RANK=$r LOCAL_RANK=$r WORLD_SIZE=3 $loop & p=\"$p $!\"; done; "
        script += "trap 'kill $p; wait; exit 5' TERM; wait; exit 6"
        env = {k: v for k, v in os.environ.items() if not k.startswith("COLLWATCH")}
        env.update(TMPDIR=self.tmp, LD_LIBRARY_PATH=directory(), loop=loop, run=f"{COLLWATCH} run", **more)
        if path:
            env["PATH"] = f"{path}:{env['PATH']}"
        self.process = subprocess.Popen(
            [COLLWATCH, "run", *(options or ["--standalone"]), "--", "sh", "-c", script], env=env,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=open(self.tmp + "/err", "wb"), user=self.uid, group=self.uid, extra_groups=[])

    def err(self):
        with open(self.tmp + "/err", encoding="utf-8") as f:
            return f.read()

    def close(self):
        self.process.terminate()
        self.process.wait(120)
        shutil.rmtree(self.tmp)


@pytest.mark.open_build
def test_standalone_tells_of_a_hang_and_keeps_the_report():
    job = Standalone("--steps 0 --fault wrong-count --fault-rank 1 --fault-step 30")
    try:
        wait_until(lambda: "collwatch: more: collwatch report " in job.err(), "the report: " +
                   job.err())
        expect("rank 1 " in job.err(), job.err())
        job.process.terminate()
        expect(job.process.wait(120) == 5, "the program's own exit status")
        bundle = re.search(r"more: collwatch report (\S+)", job.err()).group(1)
        done = subprocess.run([COLLWATCH, "report", bundle], stdout=subprocess.PIPE, text=True,
                              check=True)
        expect("mismatch" in done.stdout, done.stdout)
        expect("1 hang found, kept in " in job.err(), job.err())
    finally:
        job.close()
    job = Standalone("--steps 30")
    try:
        expect(job.process.wait(120) == 6, job.err())
        expect("daemon reached" in job.err(), job.err())
        expect(not glob.glob(job.tmp + "/collwatch-*"), "nothing stays")
    finally:
        job.close()


HANGS = "--steps 0 --fault wrong-count --fault-rank 1 --fault-step 30"
REPORT = r"more: collwatch report (\S+)"


def reported(job):
    wait_until(lambda: re.search(REPORT, job.err()), "the report")
    return re.search(REPORT, job.err()).group(1)


@pytest.mark.open_build
def test_standalone_is_as_patient_as_asked_and_leaves_a_page_that_is_opened():
    with tempfile.TemporaryDirectory(prefix="cw-bin-") as path:
        os.chmod(path, 0o777)
        opener = path + "/xdg-open"
        with open(opener, "w", encoding="ascii") as f:
            f.write(f'#!/bin/sh\necho "$1:$LD_PRELOAD" >{path}/new && mv {path}/new {path}/opened\n')
        os.chmod(opener, 0o755)
        job = Standalone(HANGS, "--standalone", "--set", "stall_min=2s", "--set", "node_name=here", "--open",
                         path=path, BROWSER="none")
        try:
            bundle = reported(job)
            own = bundle.split("/state/")[0]
            expect(os.stat(own).st_mode & 0o7777 == 0o700, oct(os.stat(own).st_mode))
            with open(own + "/conf", encoding="utf-8") as f:
                conf = f.read()
            expect('stall_min= "2s"' in conf and "peer" not in conf, conf)
            done = subprocess.run([COLLWATCH, "status", "--json"], stdout=subprocess.PIPE, check=False,
                                  env=dict(os.environ, COLLWATCH_CONTROL_SOCKET=own + "/control.sock"))
            expect(done.returncode == 2, "a job hangs")
            status = json.loads(done.stdout)
            expect(status["node"] == "here" and status["peers"] == [], status)
            job.process.terminate()
            expect(job.process.wait(120) == 5, job.err())
            page = re.search(r"as a page: (\S+)", job.err()).group(1)
            with open(page, encoding="utf-8") as f:
                expect("rank 1" in f.read(), page)
            wait_until(lambda: os.path.exists(path + "/opened"), "it is opened")
            with open(path + "/opened", encoding="utf-8") as f:
                expect(f.read() == page + ":\n", "without the agent")
        finally:
            job.close()


def test_run_declines_settings_that_are_its_own():
    for words, why in ((("--standalone", "--set", "state_dir=/tmp"), b"state_dir is set by run itself"),
                       (("--standalone", "--set", "stall_min"), b'"stall_min" is not of the form KEY=VALUE'),
                       (("--standalone", "--set", 'mode=a"b'), b"must not contain quotes"),
                       (("--set", "mode=shadow"), b"need --standalone"), (("--html",), b"need --standalone")):
        done = run(*words, "--", "true")
        expect(done.returncode not in (0, 2) and why in done.stderr, (words, done))


def not_started(*words, why, env=None):
    """A mistake of the user's: without this the program would run unwatched."""
    done = run(*words, *python("print('ran')"), env=env)
    expect(done.returncode == 1 and done.stdout == b"" and why in done.stderr, (words, env, done))


def test_a_mistyped_setting_is_refused_before_the_start():
    with tempfile.TemporaryDirectory(prefix="cw-own-") as tmp:
        for setting, why in (("stall_min=soon", b"'soon' is not a duration"),
                             ("no_progres_after=10min", b"did you mean no_progress_after?"),
                             ("zzzqq=1", b"zzzqq")):
            not_started("--standalone", "--set", setting, why=why, env={"TMPDIR": tmp})
        expect(not os.listdir(tmp), "nothing stays")


def test_a_temporary_directory_that_is_too_long_for_a_socket_is_refused():
    with tempfile.TemporaryDirectory(prefix="cw-own-") as tmp:
        long = os.path.join(tmp, "x" * 100)
        os.mkdir(long)
        not_started("--standalone", why=b"TMPDIR is too long for a socket", env={"TMPDIR": long})
        not_started("--socket", long + "/agent.sock", why=b"is too long for a socket")


def test_a_mistyped_variable_is_refused_before_the_start():
    for name, value, why in (("COLLWATCH_DISABEL", "1", b"did you mean COLLWATCH_DISABLE?"),
                             ("COLLWATCH_SOCKT", "/x", b"did you mean COLLWATCH_SOCKET?"),
                             ("COLLWATCH_DISABLE", "maybe", b"it takes on, off"),
                             ("COLLWATCH_PROGRESS", "tmed", b"did you mean timed?"),
                             ("COLLWATCH_SUMMARY", "on", b"it takes off, sampled, full"),
                             ("COLLWATCH_POLICY", "trainig", b"did you mean training?"),
                             ("COLLWATCH_STOP_AT", "overflow", b"it takes nonfinite, headroom"),
                             ("COLLWATCH_JOB_TIMEOUT", "30", b"not a duration like 30min"),
                             ("COLLWATCH_RECORD", "here", b"not an absolute path"),
                             ("COLLWATCH_PEERS", "gpu[1-", b"without its ]")):
        more = {"COLLWATCH_PEER_KEY": "0" * 64} if name == "COLLWATCH_PEERS" else {}
        not_started(*(["--standalone"] if more else []), why=why, env={name: value, **more})


def test_variables_that_are_right_or_of_others_are_no_mistake():
    right = {"COLLWATCH_PROGRESS": "timed", "COLLWATCH_SUMMARY": "0", "COLLWATCH_CALL_STACKS": "TRUE",
             "COLLWATCH_STOP_AT": "headroom,nonfinite", "COLLWATCH_JOB_TIMEOUT": "0", "COLLWATCH_JOB": "a b",
             # Of a service in Kubernetes that is called collwatch.
             "COLLWATCH_SERVICE_HOST": "10.0.0.1", "COLLWATCH_PORT_7411_TCP_ADDR": "10.0.0.1"}
    done = run(*python("print('ran')"), env=right)
    expect(done.stdout == b"ran\n" and b"COLLWATCH_" not in done.stderr, done)
    done = run(*python("print('ran')"), env={"COLLWATCH_ZZZQQ": "1"})
    expect(done.stdout == b"ran\n" and b"COLLWATCH_ZZZQQ is not a variable of collwatch" in done.stderr, done)


SWITCHED_OFF = [{"COLLWATCH_DISABLE": word} for word in ("1", "true", "yes", "On")] + \
               [{"COLLWATCH": word} for word in ("0", "false", "NO", "Off")] + \
               [{"COLLWATCH": "on", "COLLWATCH_DISABLE": "on"},
                {"COLLWATCH": "off", "COLLWATCH_DISABLE": "off"}]
SWITCHED_ON = [{}, {"COLLWATCH": "1"}, {"COLLWATCH": "On", "COLLWATCH_DISABLE": "false"},
               {"COLLWATCH_DISABLE": "NO"}, {"COLLWATCH": "maybe", "COLLWATCH_DISABLE": ""}]


def test_task_prolog_reads_both_switches():
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp, socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(tmp + "/s")
        with open(f"{SOURCE}/deploy/slurm/task-prolog.in", encoding="utf-8") as f:
            script = f.read().replace("@agent@", AGENT)
        for switches, is_on in [(s, False) for s in SWITCHED_OFF] + [(s, True) for s in SWITCHED_ON]:
            done = subprocess.run(["sh", "-c", script], check=False, stdout=subprocess.PIPE, env={
                "PATH": os.environ["PATH"], "COLLWATCH_SOCKET": tmp + "/s", **switches})
            expect(done.returncode == 0 and bool(done.stdout) == is_on, (switches, done))


def test_each_word_for_on_disables():
    for switches in SWITCHED_OFF:
        done = run(*python("print('ran')"), env=switches)
        expect(done.stdout == b"ran\n" and b"the agent does nothing" in done.stderr, done)
        expect(b"loaded, " not in done.stderr, done)


def test_a_program_that_the_agent_cannot_enter_is_named_before_the_start():
    with tempfile.TemporaryDirectory(prefix="cw-enter-") as tmp:
        os.chmod(tmp, 0o755)
        static = tmp + "/static"
        done = subprocess.run([*CC.split(), "-static", "-xc", "-", "-o", static], check=False,
                              input=b"int main(void) { return 7; }", stderr=subprocess.DEVNULL)
        expect(done.returncode == 0, "a static libc is part of libc6-dev")
        done = run("--", static)
        expect(done.returncode == 7 and b"is linked statically, so the agent cannot be loaded into it" in done.stderr, done)
        expect(b"loaded, " not in done.stderr, done)
        # A loader that is run by itself preloads.
        loader = re.search(rb"interpreter: ([^\]]+)", subprocess.run(
            ["readelf", "-l", "/bin/true"], stdout=subprocess.PIPE, check=True).stdout).group(1).decode()
        expect(b"linked statically" not in run("--", loader, "/bin/true").stderr, loader)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make such programs")
@pytest.mark.open_build
def test_a_program_with_more_rights_than_its_caller_is_named_before_the_start():
    other = {"user": 4321, "group": 4321, "extra_groups": []}
    with tempfile.TemporaryDirectory(prefix="cw-enter-") as tmp:
        os.chmod(tmp, 0o755)
        program = shutil.copy("/bin/true", tmp + "/true")
        for mode, why in ((0o4755, b"is set-user-ID"), (0o2755, b"is set-group-ID")):
            os.chmod(program, mode)
            done = run("--", program, **other)
            expect(done.returncode == 0 and why in done.stderr and b"loaded" not in done.stderr, done)
            expect(b"loaded" in run("--", program).stderr, "root gains nothing by it")
        os.chmod(program, 0o755)
        if shutil.which("setcap"):
            subprocess.run(["setcap", "cap_net_raw+ep", program], check=True)
            done = run("--", program, **other)
            expect(b"has file capabilities" in done.stderr and b"loaded" not in done.stderr, done)


@pytest.mark.open_build
def test_daemons_of_one_user_on_two_nodes_are_one_cluster():
    ports = [unused_port() for _ in "ab"]
    peers = f"a=127.0.0.1:{ports[0]},b=127.0.0.1:{ports[1]}"
    ranks = ("for r in 0 1; do RANK=$r LOCAL_RANK=$r WORLD_SIZE=2 $run --standalone --set "
             "node_name=$(echo ab | cut -c$((r + 1))) -- $loop & p=\"$p $!\"; done; ")
    job = Standalone(HANGS, "--peers", peers, script=ranks, COLLWATCH_JOB="pair")
    try:
        bundle = reported(job)
        with open(bundle + "/incident.json", encoding="utf-8") as f:
            doc = json.load(f)
        expect(doc["coverage"]["ranks_seen"] == 2 and doc["coverage"]["ranks_expected"] == 2, doc["coverage"])
        # With two ranks there is no majority: the report names each, on its node.
        expect(sorted((c["rank"], c["host"]) for c in doc["culprits"]) == [(0, "a"), (1, "b")], doc["culprits"])
        expect(len(re.findall(REPORT, job.err())) == 1, job.err())
        keys = glob.glob(job.tmp + "/collwatch-*/key")
        expect(len(keys) == 2 and all(os.stat(key).st_mode & 0o7777 == 0o600 for key in keys), keys)
        texts = set()
        for key in keys:
            with open(key, encoding="ascii") as f:
                texts.add(f.read())
        expect(len(texts) == 1 and re.fullmatch("[0-9a-f]{64}", min(texts)), "one key, of this job")
    finally:
        job.close()


def test_this_host_is_known_among_the_peers_and_the_port_is_the_keys():
    shows = "import os; print(open(os.path.dirname(os.environ['COLLWATCH_SOCKET']) + '/conf').read())"

    def conf(peers, key):
        done = run("--standalone", *python(shows), env={"COLLWATCH_PEERS": peers, "COLLWATCH_PEER_KEY": key})
        expect(b"daemon reached" in done.stderr and b"not among" not in done.stderr, done)
        return done.stdout.decode()

    # Daemons listen there: of each key another port.
    of_keys = range(16384, 32768)
    port, own, last = (unused_port(of_keys) for _ in range(3))
    key = lambda of, length: f"{of - of_keys.start:04x}".ljust(length, "a")
    a, other = conf(f"cw-none[1-2],{HOST}", key(port, 64)), conf(f"{HOST},cw-none9:{own}", "f" * 128)
    expect(f'node_name = "{HOST}"\n' in a and f'"cw-none1=cw-none1:{port}",' in a and
           f'"{HOST}={HOST}:{port}"' in a, a)
    expect(f'"{HOST}={HOST}:{own}",' in other and f'"cw-none9=cw-none9:{own}"' in other, other)
    # As the domain has it, and the host does not.
    expect(f'node_name = "{HOST}.example.org"\n' in conf(f"{HOST}.example.org", key(last, 128)), "the same host")


def test_peers_that_cannot_be_are_refused_before_the_start():
    said = {"gpu[1-": b"--peers: ", 'a="b:1': b"is not a list of hosts", "a=b": b"is not NAME=ADDRESS:PORT",
            "gpu1:7501,gpu2": b'"7501,gpu2" is not a port'}
    for peers, why in said.items():
        not_started("--peers", peers, why=why)
    not_started("--standalone", why=b"COLLWATCH_PEER_KEY is not a key",
                env={"COLLWATCH_PEERS": "gpu[1-3]", "COLLWATCH_PEER_KEY": "x"})


def test_peers_that_are_other_hosts_are_said_and_the_program_runs():
    # A job that is handed on to hosts, none of them this one: of each another key, and its port by that.
    keys = set()
    for _ in range(2):
        done = run("--peers", "gpu[1-3]", *python("import os; print(os.environ['COLLWATCH_PEER_KEY'])"))
        expect(re.fullmatch(rb"[0-9a-f]{64}\n", done.stdout), done)
        keys.add(done.stdout)
    expect(len(keys) == 2, keys)
    done = run("--standalone", *python("print('ran')"), env={"COLLWATCH_PEERS": "gpu[1-3]",
                                                             "COLLWATCH_PEER_KEY": "0" * 64})
    expect(done.stdout == b"ran\n" and b"is not among the peers" in done.stderr and
           b"daemon reached" in done.stderr, done)


NOTHING = b"collwatch: no process reported an NCCL call on this host"


def trains(**more):
    """Arguments of a rank without a fault."""
    tmp = more.pop("tmp")
    return {"cwd": tmp, "env": {"LD_LIBRARY_PATH": directory(), "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0",
                                "TMPDIR": tmp}, **more}


def steps(tmp):
    return ["--", TRAIN_LOOP, "--steps", "3", "--step-ms", "1", "--elements", "16", "--log-every", "0",
            "--uid-file", tmp + "/uid"]


def test_a_program_without_an_nccl_call_ends_with_one_line():
    with tempfile.TemporaryDirectory(prefix="cw-none-") as tmp:
        for options in [], ["--tag-output"], ["--standalone"]:
            done = run(*options, *python("import sys; print('ran'); sys.exit(3)"), env={"TMPDIR": tmp})
            expect(done.returncode == 3 and b"ran\n" in done.stdout, done)
            expect(done.stderr.count(NOTHING) == 1 and done.stderr.rstrip().count(b"\n") == 1, done)
            done = run(*options, *steps(tmp), **trains(tmp=tmp))
            expect(done.returncode == 0 and NOTHING not in done.stderr, done)
            os.unlink(tmp + "/uid")


def test_that_line_is_not_printed_where_nothing_is_known_or_somebody_else_prints_it():
    done = run("--", COLLWATCH, "run", *python("print('ran')"))
    expect(done.stderr.count(NOTHING) == 1, "once, of two that run each other")
    done = run("--", "/nonexistent/program")
    expect(done.returncode != 0 and NOTHING not in done.stderr, done)
    done = run("--peers", "gpu[1-3]", *python("print('ran')"))
    expect(done.stdout == b"ran\n" and NOTHING not in done.stderr, "the ranks are on other hosts")
    # A name that a batch system has handed on from another host.
    done = run(*python("print('ran')"), env={"COLLWATCH_RUN": "collwatch-run-0123456789abcdef"})
    expect(done.stderr.count(NOTHING) == 1, done)


def test_the_process_that_stays_behind_is_no_child_of_the_program_and_holds_no_output():
    counts = ("import os, time\n"
              "print(os.path.exists('/proc/self/task/%d/children' % os.getpid()) and "
              "open('/proc/self/task/%d/children' % os.getpid()).read())")
    done = run(*python(counts))
    expect(done.stdout == b"\n" and NOTHING in done.stderr, done)
    with subprocess.Popen([COLLWATCH, "run", "--", "sh", "-c", "exec >&-; read x"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        expect(p.stdout.read() == b"", "ends though the program goes on")
        expect(p.poll() is None, "it goes on")
        p.stdin.close()
        expect(NOTHING in p.stderr.read(), "the line")


def small_files():
    """Too small for a flight record, large enough for the program's own files."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (200 << 10, 200 << 10))


def test_an_agent_without_a_record_is_reported_by_run():
    with tempfile.TemporaryDirectory(prefix="cw-none-") as tmp:
        for options in [], ["--tag-output"]:
            done = run(*options, *steps(tmp), **trains(tmp=tmp, preexec_fn=small_files))
            expect(done.returncode == 0 and b"done steps=3" in done.stdout, done)
            expect(done.stderr.count(b"the agent could not make a record: File too large; raise the file size limit")
                   == 1 and NOTHING not in done.stderr, done)
            os.unlink(tmp + "/uid")


def test_an_agent_without_a_record_is_reported_by_the_daemon(daemon):
    daemon.start()
    with tempfile.TemporaryDirectory(prefix="cw-none-") as tmp:
        more = trains(tmp=tmp, preexec_fn=small_files)
        env = dict(os.environ, **more.pop("env"), LD_PRELOAD=AGENT, COLLWATCH_SOCKET=daemon.path)
        done = subprocess.run(steps(tmp)[1:], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False, **more)
        expect(done.returncode == 0 and done.stderr == b"" and done.stdout.startswith(b"done steps=3"), done)
    wait_until(lambda: "is not watched: its agent could not make a flight record: File too large" in daemon.log(),
               daemon.log)
    expect(any("could not make a flight record (File too large)" in note for note in daemon.notes()), daemon.notes())


def check_hang_under_launcher(daemon, label):
    incident = daemon.wait_for_incident(label)
    doc = daemon.document(incident["id"])
    expect(doc["class"] == "mismatch" and [c["rank"] for c in doc["culprits"]] == [1], doc)
    return doc


def test_mpirun_ranks_are_labelled_and_the_hang_is_named(daemon):
    mpirun = shutil.which("mpirun")
    if not mpirun:
        pytest.skip("mpirun is not installed (openmpi-bin)")
    daemon.start()
    start = time.monotonic()
    launcher = subprocess.Popen(
        [mpirun, "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,tcp", "-n",
         "3", COLLWATCH, "run", "--tag-output", "--socket", daemon.path, "--",
         open_copy(TRAIN_LOOP), "--steps", "0", "--step-ms", "20", "--elements", "64",
         "--log-every", "10", "--uid-file", daemon.dir + "/uid", "--fault", "wrong-count",
         "--fault-rank", "1", "--fault-step", "50"],
        env=dict(os.environ, LD_LIBRARY_PATH=directory()), stdin=subprocess.DEVNULL,
        stdout=open(daemon.dir + "/out", "wb"), stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: daemon.status()["jobs"], "the job: ")
        doc = check_hang_under_launcher(daemon, "pmix:")
        expect(doc["group"] == "OMPI_COMM_WORLD_RANK", doc)
        expect(doc["coverage"]["ranks_seen"] == 3, doc)

        def out():
            with open(daemon.dir + "/out", encoding="utf-8", errors="replace") as f:
                return f.read()
        wait_until(lambda: all(f"{HOST}:{r}| " in out() for r in range(3)), out())
        print(f"# mpirun: job {doc['job']}, named after {time.monotonic() - start:.1f} s")
    finally:
        launcher.terminate()
        launcher.wait(120)
