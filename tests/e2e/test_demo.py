# SPDX-License-Identifier: Apache-2.0
"""End to end: daemons, agents in real processes, a fault, an alert over HTTP."""

import functools
import glob
import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

import pytest
from built import (AGENT, BUILD, COLLWATCH, COLLWATCH_LAB, COLLWATCHD, SIM_DIR,
                   TRAIN_LOOP_PY)
from demo_driver import EXPECTED, HAS_NAMESPACES, Demo, Draw, seeded, why_not
from incident_contract import deviations
from waiting import expect

# Each has its own sockets, ports and directory; none needs more than a fraction of a core.
AT_ONCE = 4
# An alert may take so many times what is promised: the machine may be loaded. tools/soak measures.
LENIENCE = 10


@functools.cache
def seed():
    return seeded("test_demo").getrandbits(64)


def draw(scenario):
    """The same for a seed, whichever tests are run."""
    return Draw.random(random.Random(f"{seed()} {scenario}"), scenario, max_ranks=8)


def check_run(demo, what, *options):
    result = demo.run(what, *options)
    expect(result.is_right, "wrong verdict: " + result.explain())
    left = demo.leftovers()
    expect(not left, f"left behind: {left}\n{result.explain()}")
    return result


def check_incident(result):
    doc, limit = result.document, LENIENCE * EXPECTED[result.draw.scenario].alert_within_s
    expect(not deviations(doc), f"{deviations(doc)} in {doc}")
    expect(doc["coverage"]["ranks_seen"] == result.draw.ranks, f"coverage: {doc['coverage']}")
    for culprit in doc["culprits"]:
        expect(culprit["host"].startswith("node-"), f"culprits: {doc['culprits']}")
    expect(result.delay_s is not None, "no alert came over HTTP:\n" + result.stderr)
    expect(result.delay_s <= limit, f"alert after {result.delay_s} s, limit {limit} s: "
           + result.explain())


def render(path, *options):
    return subprocess.run([COLLWATCH, "report", path, *options], check=True, text=True,
                          stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": "/nonexistent"}
                          ).stdout


# ---- every scenario once, with random ranks, nodes and culprit ----

def check_report_of_kept_bundle(demo, what):
    keep = demo.tmp + ".kept"
    try:
        result = check_run(demo, what, "--keep", keep)
        check_incident(result)
        (bundle,) = os.listdir(keep)
        bundle = os.path.join(keep, bundle)
        expect(result.document["bundle"] == bundle, "it says it is kept elsewhere")
        report = render(bundle)
        culprit = result.document["culprits"][0]
        expect(f"rank {result.draw.culprit} on {culprit['host']}, pid {culprit['pid']}" in report,
               "the culprit is not in the report:\n" + report)
        expect(re.search(r"> read_sample +\S*train_loop\.py:\d+", report),
               "the Python line is not in the report:\n" + report)
        expect(re.search(r"native, thread \d+", report) and "libc.so.6" in report,
               "native frames are not in the report:\n" + report)
        if os.geteuid() == 0 and os.path.exists("/sys/kernel/btf/vmlinux"):
            expect(re.search(r"main thread: has not run for \d+ s; in the kernel in \w*pipe_read",
                             report), "the kernel's word is not in the report:\n" + report)
        with open(os.path.join(bundle, "stacks.json"), encoding="utf-8") as f:
            stacks = json.load(f)
        expect(stacks["seen"] == result.draw.ranks, f"stacks of all ranks: {stacks}")
        expect(re.search(rf"rank {result.draw.culprit}: .*read_sample", report),
               "the culprit is no branch of its own among the stacks of all:\n" + report)
        # The bundle is all there is to a report: elsewhere, with no daemon, it reads the same.
        copy = os.path.join(demo.tmp, "elsewhere")
        shutil.copytree(bundle, copy)
        expect(render(copy) == report, "a copied bundle reads differently")
        expect(json.loads(render(copy, "--json"))["id"] == result.document["id"], "another id")
    finally:
        shutil.rmtree(keep, ignore_errors=True)


def check_hang(demo, what):
    check_incident(check_run(demo, what))


def check_postmortem(demo, what):
    keep = demo.tmp + ".kept"
    try:
        result = check_run(demo, what, "--keep", keep)
        doc, limit = result.document, LENIENCE * EXPECTED[what.scenario].alert_within_s
        expect(result.delay_s <= limit, f"after {result.delay_s} s, limit {limit} s")
        expect(not deviations(doc), f"{deviations(doc)} in {doc}")
        expect(len(doc["ends"]) == what.ranks, f"ends: {doc['ends']}")
        report = " ".join(render(os.path.join(keep, doc["id"])).split())
        expect(f"rank {what.culprit} " in report and "How they ended" in report, report)
    finally:
        shutil.rmtree(keep, ignore_errors=True)


def check_silence(demo, what):
    check_run(demo, what, "--seconds", "15")


def check_numbers_of_healthy_job(demo, what):
    doc = check_run(demo, what, "--seconds", "20").document
    expect(doc["ranks"] == what.ranks and doc["nodes"] == what.nodes, str(doc))
    expect(doc["watched_s"] >= 20 and doc["collectives"] > 0, str(doc))


CHECKS = {"never-entered": check_report_of_kept_bundle, "healthy": check_numbers_of_healthy_job}


def run_scenario(scenario):
    expected = EXPECTED[scenario]
    check = CHECKS.get(scenario, check_postmortem if expected.is_postmortem else
                       check_hang if expected.verdict else check_silence)
    with Demo(COLLWATCH) as demo:
        check(demo, draw(scenario))


def longest_first(test):
    expected = EXPECTED[test.scenario]
    return -(expected.alert_within_s or 30 + expected.lasts_s)


def scenario_test(scenario):
    """That it is got right, as a test that runs beside the others."""
    @pytest.mark.at_once(workers=AT_ONCE, key=longest_first)
    def test():
        if why_not(scenario):
            pytest.skip(why_not(scenario))
        print(f"# {draw(scenario)}", flush=True)
        run_scenario(scenario)
    test.scenario = scenario
    return test


globals().update({f"test_gets_{name.replace('-', '_')}_right": scenario_test(name) for name in EXPECTED})


# ---- the rest ----

def test_lists_the_scenarios_it_is_expected_to_have(demo):
    done = subprocess.run([COLLWATCH, "demo", "--list"], stdout=subprocess.PIPE, text=True,
                          env=demo.environment, check=True)
    expect({line.split()[0] for line in done.stdout.splitlines()} == set(EXPECTED), done.stdout)


def wait_for_line(process, text, within_s):
    seen, deadline = getattr(process, "seen", ""), time.monotonic() + within_s
    while text not in seen:
        left = deadline - time.monotonic()
        expect(left > 0 and select.select([process.stderr], [], [], left)[0],
               f'"{text}" did not come:\n{seen}')
        piece = os.read(process.stderr.fileno(), 4096).decode()
        expect(piece, f'ended before "{text}" came:\n{seen}')
        process.seen = seen = seen + piece


def test_leaves_nothing_behind_when_interrupted(demo):
    for signo, line in ((signal.SIGINT, "daemons up"), (signal.SIGTERM, "ranks running")):
        process = demo.start(Draw("never-entered", 4, 2, 1))
        try:
            wait_for_line(process, line, 120)
            expect(len(demo.processes()) > 2, "where are the demo's processes?")
            process.send_signal(signo)
            process.communicate(timeout=120)
            expect(process.returncode == -signo, f"exit status {process.returncode}")
            left = demo.leftovers()
            expect(not left, f"left behind after {signo.name}: {left}")
        finally:
            process.kill()
            process.communicate()


def ask_for_stacks(socket, *arguments):
    """With patience: one request in two seconds is answered."""
    deadline = time.monotonic() + 120
    while True:
        done = subprocess.run([COLLWATCH, "stacks", "--control", socket, *arguments], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if "try again" not in done.stderr or time.monotonic() > deadline:
            return done
        time.sleep(0.2)


def wait_for_job(socket, ranks):
    deadline = time.monotonic() + 120
    while True:
        done = subprocess.run([COLLWATCH, "status", "--json", "--control", socket], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        jobs = json.loads(done.stdout or "{}").get("jobs", [])
        if jobs and (not jobs[0]["led_here"] or jobs[0]["ranks"] == ranks):
            return jobs[0]
        expect(time.monotonic() < deadline, f"no job of {ranks} ranks: {jobs}")
        time.sleep(0.1)


def check_stacks_on_demand(demo):
    (site,) = os.listdir(demo.tmp)
    sockets = [os.path.join(demo.tmp, site, node, "control.sock") for node in ("node-a", "node-b")]
    jobs = [wait_for_job(socket, 4) for socket in sockets]
    expect(sorted(job["led_here"] for job in jobs) == [False, True], str(jobs))
    for socket, job in zip(sockets, jobs):  # the leader answers in each case
        done = ask_for_stacks(socket, "--json")
        expect(done.returncode == 0, f"{done.returncode}: {done.stderr}")
        doc = json.loads(done.stdout)
        expect(doc["schema"] == "collwatch.stacks/1" and doc["job"] == job["job"], str(doc))
        expect(doc["seen"] == 4 and not doc["note"], f"seen: {doc['seen']}, {doc['note']}")
        (python,) = [tree for tree in doc["trees"] if tree["kind"] == "python"]
        expect(python["ranks"] == "0-3" and "train_loop.py" in json.dumps(python), str(python))
    led = sockets[[job["led_here"] for job in jobs].index(True)]
    again = subprocess.run([COLLWATCH, "stacks", "--control", led, "1"], text=True,
                           stderr=subprocess.PIPE, stdout=subprocess.PIPE, check=False)
    expect(again.returncode in (0, 1), f"{again.returncode}: {again.stderr}")
    one = again if again.returncode == 0 else ask_for_stacks(led, "demo", "1")
    expect(one.returncode == 0 and re.search(r"rank 1 on node-[ab], pid \d+", one.stdout)
           and "native, thread" in one.stdout and re.search(r"train_loop\.py:\d+", one.stdout),
           one.stdout + one.stderr)
    for nothing in (["no-such-job"], ["demo", "77"]):
        done = ask_for_stacks(led, *nothing)
        expect(done.returncode == 3 and not done.stdout, f"{done.returncode}: {done.stderr}")


def test_shows_stacks_on_demand_and_leaves_no_process_behind_when_killed(demo):
    process = demo.start(Draw("healthy", 4, 2, 1), "--seconds", "3600")  # until it is killed
    wait_for_line(process, "ranks running", 120)
    check_stacks_on_demand(demo)
    process.kill()
    process.communicate(timeout=120)
    deadline = time.monotonic() + 120
    while demo.processes():
        expect(time.monotonic() < deadline, f"still running: {demo.processes()}")
        time.sleep(0.05)
    expect(not demo.traces_of_nodes(), f"left behind: {demo.traces_of_nodes()}")


def issued_at(side):
    """The line of the training program whose call of NCCL it is, not of the helpers behind it."""
    found = [re.search(r"(train_loop\.py):(\d+) in Trainer\.reduce_norms$", frame)
             for frame in side["op"].get("stack", [])]
    (match,) = filter(None, found)
    with open(TRAIN_LOOP_PY, encoding="utf-8") as source:
        return ":".join(match.groups()), source.read().split("\n")[int(match[2]) - 1]


def check_lines(bundle, incident):
    report, page = " ".join(render(bundle).split()), render(bundle, "--html")
    again = json.loads(subprocess.run([COLLWATCH, "analyze", bundle, "--json"], text=True,
                                      stdout=subprocess.PIPE, check=False).stdout)
    expect(again["where"] == incident["where"], f"analyze says {again['where']}")
    for side in incident["where"]["sides"]:
        place, line = issued_at(side)
        expect(("ncclAllGather" if side["ranks"] == "3" else "all_reduce") in line,
               f"ranks {side['ranks']}: {place}: {line}")
        file, number = map(re.escape, place.split(":"))
        issued = rf"issued in .*\bTrainer\.reduce_norms \((?:{file})?:{number}\)"
        expect(re.search(issued, report), f"{place} is not in the report:\n{report}")
        expect(re.search(issued, page), f"{place} is not on the page")


def test_names_the_lines_that_differing_calls_were_issued_from(demo):
    keep = demo.tmp + ".kept"
    try:
        result = check_run(demo, Draw("wrong-op", 4, 2, 3), "--call-stacks", "--keep", keep)
        check_incident(result)
        check_lines(os.path.join(keep, result.document["id"]), result.document)
    finally:
        shutil.rmtree(keep, ignore_errors=True)


def install(packages):
    """The parts of the build as tools/wheel lays them out; the command."""
    at, programs = os.path.join(packages, "collwatch"), os.path.dirname(TRAIN_LOOP_PY)
    for part in (COLLWATCH, COLLWATCH_LAB, COLLWATCHD, AGENT, f"{SIM_DIR}/libcuda.so.1",
                 f"{SIM_DIR}/libnccl.so.2", *glob.glob(f"{programs}/train_*.py")):
        to = os.path.join(at, "lab/programs" if part.startswith(programs)
                          else os.path.relpath(os.path.dirname(part), BUILD))
        os.makedirs(to, exist_ok=True)
        shutil.copy(part, to)
    return os.path.join(at, "cli/collwatch")


def test_names_the_line_of_a_program_that_is_an_installed_package():
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp:
        with Demo(install(f"{tmp}/lib/python3.11/site-packages")) as demo:
            result = check_run(demo, Draw("never-entered", 2, 1, 1))
    (culprit,) = result.document["culprits"]
    expect(re.match(r"read_sample \(train_loop\.py:\d+\), called by train \(:\d+\)$",
                    culprit["sits_in"]), culprit)
    expect(re.search(r"is stuck in read_sample \(train_loop\.py:\d+\) and never reached",
                     result.document["summary"]), result.document["summary"])


# ---- nodes ----

def nsenter(option, path, *command):
    return subprocess.run(["nsenter", f"--{option}={path}", *command], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


needs_namespaces = pytest.mark.skipif(
    not HAS_NAMESPACES, reason="namespaces are not permitted here, or there is no ip")


@needs_namespaces
def test_nodes_are_namespaces_with_names_of_their_own(demo):
    keep = os.path.join(demo.tmp, "kept")
    demo.environment["http_proxy"] = "http://127.0.0.1:9"  # of the site: leads nowhere from there
    process = demo.start(Draw("killed-rank", 4, 2, 3), "--keep", keep)
    try:
        wait_for_line(process, "ranks running", 120)
        process.send_signal(signal.SIGSTOP)  # it does not end while it is looked at
        hosts = [nsenter("uts", path, "uname", "-n") for path in demo.namespaces("uts").values()]
        expect(sorted(hosts) == ["node-a\n", "node-b\n"], f"host names: {hosts}")
        nets = demo.namespaces("net").values()
        addresses = [nsenter("net", path, "ip", "-o", "-4", "address", "show", "dev", "eth0")
                     for path in nets]
        expect(len(addresses) == 2 and addresses[0] != addresses[1], f"networks: {addresses}")
        expect(not demo.traces_of_nodes(), f"seen from outside: {demo.traces_of_nodes()}")
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=600)
        (bundle,) = os.listdir(keep)
        report = render(os.path.join(keep, bundle))
        expect(all(re.search(r"\b%s\b" % host.strip(), report) for host in hosts), report)
    finally:
        process.kill()
        process.communicate()
    shutil.rmtree(keep)
    expect(not demo.leftovers(), f"left behind: {demo.leftovers()}")


def links_of(pid):
    """Of all networks that process holds open, as ip shows them."""
    links = ""
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        try:
            is_network = os.readlink(path).startswith("net:")
        except FileNotFoundError:
            continue  # it has closed it since
        if is_network:
            links += nsenter("net", path, "ip", "-o", "link")
    return links


@needs_namespaces
def test_the_link_of_a_lost_node_is_down(demo):
    process = demo.start(Draw("dead-node", 4, 2, 3))
    try:
        wait_for_line(process, "ranks running", 120)
        expect(re.search(r"node-b@\S+ <[^>]*\bUP\b", links_of(process.pid)), "no link before")
        wait_for_line(process, "fault:", 120)
        process.send_signal(signal.SIGSTOP)  # it does not end while it is looked at
        links = links_of(process.pid)
        process.send_signal(signal.SIGCONT)
        expect(re.search(r"node-b@\S+ <(?![^>]*\bUP\b)", links), f"not down:\n{links}")
        expect(re.search(r"node-a@\S+ <[^>]*\bUP\b", links), f"the other is down:\n{links}")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
    finally:
        process.kill()
        process.communicate()
    expect(not demo.leftovers(), f"left behind: {demo.leftovers()}")


def test_nodes_are_on_loopback_when_that_is_asked_for(demo):
    process = demo.start(Draw("killed-rank", 4, 2, 1), "--no-namespaces")
    try:
        wait_for_line(process, "2 nodes, all on loopback (--no-namespaces)", 120)
        wait_for_line(process, "ranks running", 120)
        expect(not demo.namespaces("net") and not demo.namespaces("uts"), "namespaces")
        stdout, _ = process.communicate(timeout=600)
        expect([c["rank"] for c in json.loads(stdout)["culprits"]] == [1], stdout)
    finally:
        process.kill()
        process.communicate()
    expect(not demo.leftovers(), f"left behind: {demo.leftovers()}")


def test_nodes_are_on_loopback_where_namespaces_are_not_permitted(demo):
    missing = ["sys_admin", "net_admin"] if HAS_NAMESPACES else [None]
    for capability in missing:
        prefix = ["setpriv", "--bounding-set", "-" + capability] if capability else []
        result = demo.run(Draw("healthy", 2, 2, 1), "--seconds", "2", prefix=prefix)
        expect(result.is_right and result.document["namespaces"] is False, result.explain())
        said = re.findall("demo: 2 nodes, all on loopback: .+", result.stderr)
        expect(len(said) == 1, "it does not say why, in one line: " + result.explain())
        expect(not demo.leftovers(), f"left behind: {demo.leftovers()}")


def test_refuses_what_cannot_be_run(demo):
    for arguments in (["--ranks", "1"], ["--ranks", "65"], ["--ranks", "2", "--nodes", "3"],
                      ["--ranks", "4", "--culprit", "4"], ["no-such-scenario"], ["--ranks", "x"]):
        done = subprocess.run([COLLWATCH, "demo", *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=demo.environment, check=False)
        expect(done.returncode == 1, f"{arguments}: exit status {done.returncode}")
        expect(done.stderr and not done.stdout, f"{arguments}: {done.stdout} {done.stderr}")
    expect(not demo.leftovers(), "left behind")
