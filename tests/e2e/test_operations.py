# SPDX-License-Identifier: Apache-2.0
"""Guarantees for an operator: alerts survive the absence of their receiver and of the daemon, users
do not see each other, jobs stay apart, shadow and mute, reload.

Options: [--down SECONDS]     how long the receiver is away
"""

import fcntl
import os
import re
import signal
import struct
import subprocess
import termios
import time

import pytest
from built import COLLWATCH
from daemon import samples_of
from incident_contract import deviations
from job import labels
from waiting import expect, wait_until

ALICE, BOB = 4321, 4322


def torchrun(port):
    """torchrun 2.x sets this without --rdzv-id: the run id is the word "none"."""
    return [dict(LOCAL_RANK=str(r), RANK=str(r), GROUP_RANK="0", ROLE_RANK=str(r),
                 ROLE_NAME="default", LOCAL_WORLD_SIZE="2", WORLD_SIZE="2", GROUP_WORLD_SIZE="1",
                 ROLE_WORLD_SIZE="2", MASTER_ADDR="localhost", MASTER_PORT=str(port),
                 TORCHELASTIC_RESTART_COUNT="0", TORCHELASTIC_MAX_RESTARTS="0",
                 TORCHELASTIC_RUN_ID="none", TORCHELASTIC_USE_AGENT_STORE="True",
                 TORCH_NCCL_ASYNC_ERROR_HANDLING="1", OMP_NUM_THREADS="1",
                 TORCHELASTIC_ERROR_FILE="/dev/null") for r in range(2)]


def users_with_one_job_value_do_not_meet(world):
    for uid in (ALICE, BOB):
        jobs = world.status(uid)["jobs"]
        expect([(j["uid"], j["ranks"]) for j in jobs] == [(uid, 2)], jobs)
    labels = [j["job"] for j in world.status()["jobs"] if j["uid"] in (ALICE, BOB)]
    expect(len(labels) == 2 and len({label.split(":")[-1] for label in labels}) == 1, labels)
    seen = world.said("status")
    expect(all(f" of uid {uid}  2 of 2 ranks" in seen for uid in (ALICE, BOB)), seen)
    seen = world.ask("status", uid=ALICE, check=False).stdout
    expect("2 of 2 ranks" in seen and " of uid" not in seen, seen)


def jobs_with_run_id_none_stay_two(world):
    jobs = [j for j in world.status()["jobs"] if j["uid"] == 0]
    expect([(j["ranks"], j["ranks_expected"]) for j in jobs] == [(2, 2)] * 2, jobs)
    expect(len({j["job"] for j in jobs}) == 2, jobs)


def calls_are_counted(now):
    counts = {n.split("{", 1)[1]: v for n, v in now.items() if n.startswith("collwatch_op_latency_seconds_count{")}
    expect(counts and all(v > 0 for v in counts.values()), now)
    for labels_, n in counts.items():
        whole = f'collwatch_op_latency_seconds_bucket{{{labels_[:-1]},le="+Inf"}}'
        expect(now[whole] == n, f"{whole}: {now[whole]}, not {n}")
    for kind in {labels_.split(",")[0] for labels_ in counts}:
        by_size = sum(n for labels_, n in counts.items() if labels_.startswith(kind + ","))
        expect(by_size == now[f"collwatch_ops_total{{{kind}}}"], f"{kind}: {by_size}")


def counters(scraped):
    return {n: v for n, v in scraped.items()
            if n.split("{")[0].endswith(("_total", "_bucket", "_sum", "_count"))}


def counters_only_grow(before, after):
    less = {n: (v, after.get(n)) for n, v in counters(before).items() if after.get(n, -1) < v}
    expect(not less, less)


def metrics_tell_of_jobs_and_ranks(world):
    # The daemon has just started: its first tick says nothing about lateness.
    wait_until(lambda: world.scrape()["collwatch_loop_late_seconds_count"] > 0, "a second tick")
    wanted = {'collwatch_jobs{state="healthy"}': 4, "collwatch_ranks": 8, "collwatch_shadow": 0,
              'collwatch_processes{state="connected"}': 8, "collwatch_peers": 0,
              'collwatch_incidents_total{class="process_dead"}': 0}
    # Ranks that get no processor for seconds are suspected for so long.
    now = wait_until(lambda: wanted.items() <= (seen := world.scrape()).items() and seen,
                     f"{wanted} in {world.scrape()}")
    expect(1 << 20 < now["collwatch_resident_memory_bytes"] < 64 << 20, now)
    # Ops have samples once they were called; the file is older than the socket's answer.
    def text():
        with open(world.dir + "/collwatch.prom", encoding="utf-8") as f:
            return f.read()
    wait_until(lambda: set(samples_of(text())) == set(world.scrape()), "the file has the same samples")
    text = text()
    calls_are_counted(wait_until(lambda: (seen := world.scrape()) and "op_latency_seconds_count" in str(seen) and seen,
                                 "calls"))
    expect(os.stat(world.dir + "/collwatch.prom").st_mode & 0o777 == 0o644, "for everybody")
    expect(not any("train" in name or "rank=" in name for name in now), "no job, no rank: " + text)


def watch_is_one_screen(world, rows=24, columns=80):
    """A terminal of that size shows one screen between one look and the next."""
    screen, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
    p = subprocess.Popen([COLLWATCH, "status", "--watch", "--control",
                          world.control], stdin=subprocess.DEVNULL, stdout=terminal)
    os.close(terminal)
    try:
        shown = b""
        while shown.count(b"\033[H\033[J") < 2:
            shown += os.read(screen, 65536)
    finally:
        p.kill()
        p.wait()
        os.close(screen)
    text = re.sub(r"\033\[[0-9;]*m", "", shown.split(b"\033[H\033[J")[1].decode())
    lines = text.splitlines()
    expect(sum(max(1, -(-len(line) // columns)) for line in lines) < rows, text)
    jobs = [line for line in lines if "2 of 2 ranks" in line]
    expect(len(jobs) == 4 and all(line.split()[0] in ("healthy", "suspect") for line in jobs), text)


def only_alice_hears_of_her_incident(world, incident):
    expect(incident["uid"] == ALICE, incident)
    expect([i["id"] for i in world.incidents(ALICE)] == [incident["id"]], "hers")
    expect(world.incidents(BOB) == [], world.incidents(BOB))
    done = world.ask("report", incident["id"], uid=BOB, check=False)
    expect(done.returncode == 3 and not done.stdout, done)
    def others():
        return [j["state"] for j in world.status()["jobs"] if j["uid"] != ALICE]
    wait_until(lambda: others() == ["healthy"] * 3, f"the others are well: {others()}")


@pytest.mark.root  # to be several users
def test_alert_arrives_once_although_receiver_and_daemon_were_away(pytestconfig, daemon, receiver):
    down_s = pytestconfig.getoption("--down")
    daemon.configure(f'webhook_url = "{receiver.url}"\n'
                    f'metrics_socket = "{daemon.dir}/metrics.sock"\n'
                    f'metrics_textfile = "{daemon.dir}/collwatch.prom"')
    daemon.start()
    alice = daemon.train("alice", labels(2, COLLWATCH_JOB="train"), user=ALICE)
    daemon.train("bob", labels(2, COLLWATCH_JOB="train"), user=BOB)
    torch = daemon.train("torch-1", torchrun(29500))
    daemon.train("torch-2", torchrun(29501))
    daemon.wait_for_all()
    users_with_one_job_value_do_not_meet(daemon)
    jobs_with_run_id_none_stay_two(daemon)
    metrics_tell_of_jobs_and_ranks(daemon)
    watch_is_one_screen(daemon)

    before = daemon.scrape()
    alice.kill(1)
    down_since = time.monotonic()
    incident = daemon.wait_for_incident("train")
    only_alice_hears_of_her_incident(daemon, incident)
    counters_only_grow(before, daemon.scrape())
    tried = f"webhook: alert inc={incident['id']} to 127.0.0.1: "
    wait_until(lambda: tried in daemon.log(), "an attempt")
    daemon.stop()
    before = daemon.log().count(tried)
    daemon.start()
    wait_until(lambda: daemon.log().count(tried) > before, "an attempt of the next daemon")
    wait_until(lambda: time.monotonic() - down_since > down_s, "the outage", down_s + 120)
    expect(receiver.posts == [], receiver.posts)
    receiver.listen()
    # the longest wait between attempts after two minutes of them is 64 s
    wait_until(lambda: receiver.posts, "the alert", 120 + down_s)
    took = time.monotonic() - down_since
    wait_until(lambda: daemon.is_settled(incident["id"]), "noted as sent")
    check_document(receiver, incident)

    daemon.stop()
    daemon.start()
    wait_until(lambda: (daemon.job("29500") or {}).get("ranks") == 2,
               "the ranks are back at the daemon")
    torch.kill(0)
    wait_until(lambda: len(receiver.posts) > 1, "the alert of another job")
    expect(receiver.count(incident["id"]) == 1, receiver.posts)
    expect(len(receiver.posts) == 2 and ":29500" in receiver.posts[1][1]["job"],
           receiver.posts)
    wait_until(lambda: daemon.scrape()["collwatch_webhook_delivered_total"] == 1,
               "the receiver's answer has come")
    daemon.stop()
    expect(not os.path.exists(daemon.dir + "/collwatch.prom"), "a stopped daemon's numbers")
    print(f"# receiver away for {down_s:.0f} s: alert {took:.1f} s after the fault, once")


def check_document(receiver, incident):
    key, doc = receiver.posts[0]
    expect(key == incident["id"] == doc["id"] and not deviations(doc), [deviations(doc), doc])
    expect(doc["class"] == "process_dead" and [c["rank"] for c in doc["culprits"]] == [1], doc)


def config_of(world, receiver, mode):
    return f'webhook_url = "{receiver.url}"\nmode = {mode}'


def reload_is_all_or_nothing(world, receiver):
    refused = "which needs a restart; the old configuration stays"
    world.reload(config_of(world, receiver, "alert") + "\nstate_max = 2GiB", "state_max changed")
    expect(refused in world.log(), world.log())
    expect(any("mode = shadow" in n for n in world.status()["notes"]), "nothing of it is applied")
    world.reload("mode = loud", "mode: 'loud' is not one of alert|shadow")
    expect(any("mode = shadow" in n for n in world.status()["notes"]), "nothing of it is applied")
    world.reload(config_of(world, receiver, "alert"), "configuration reloaded")
    expect(not any("mode = shadow" in n for n in world.status()["notes"]), world.status())


def slack_is_told_in_its_own_words(world, receiver, uid):
    """From the next alert on, with the same key; one has gone out before."""
    world.reload(config_of(world, receiver, "alert") + "\nwebhook_format = slack",
                 "configuration reloaded")
    late = world.train("late", labels(2, COLLWATCH_JOB="late"), user=uid)
    wait_until(lambda: (world.job("late") or {}).get("collectives", 0) > 20, "it trains")
    late.kill(1)
    incident = world.wait_for_incident("late")
    wait_until(lambda: len(receiver.posts) > 1, "the alert for Slack")
    key, message = receiver.posts[1]
    expect(key == incident["id"] and message["blocks"] and "schema" not in message, message)
    expect("late" in str(message["blocks"]) and "process dead" in str(message["blocks"]), message)


def test_configuration_that_does_not_come_keeps_nobody_waiting(daemon):
    """As on a file server that does not answer: a FIFO without a writer."""
    daemon.configure("")
    daemon.start()
    os.unlink(daemon.conf)
    os.mkfifo(daemon.conf)
    daemon.send(signal.SIGHUP)
    asked, slowest = time.monotonic(), 0.0
    says = "reading it takes longer than 10 s; the old configuration stays"
    while says not in daemon.log() and time.monotonic() - asked < 100:
        before = time.monotonic()
        daemon.status()
        slowest = max(slowest, time.monotonic() - before)
        time.sleep(0.1)
    expect(says in daemon.log(), daemon.log())
    expect(slowest < 5, f"an answer took {slowest:.1f} s")
    print(f"# slowest answer meanwhile {slowest * 1000:.0f} ms")
    os.unlink(daemon.conf)
    daemon.reload("mode = shadow", "configuration reloaded")
    expect(any("mode = shadow" in n for n in daemon.status()["notes"]), daemon.status())


def test_a_reload_that_fails_is_in_status_and_metrics(daemon):
    daemon.configure(f'metrics_socket = "{daemon.dir}/metrics.sock"')
    daemon.start()
    same = f'metrics_socket = "{daemon.dir}/metrics.sock"\n'
    gauge, count = "collwatch_config_last_reload_successful", "collwatch_config_reload_failures_total"
    before = daemon.scrape()
    expect((before[gauge], before[count], daemon.status()["reload"]) == (1, 0, None), before)
    daemon.reload(same + "stall_min = soon", "the old configuration stays")
    reload = daemon.status()["reload"]
    expect(reload["result"] == "refused" and "stall_min" in reload["why"] and 0 <= reload["ago_s"] < 60, reload)
    expect("the old configuration is in use" in daemon.said("status"), daemon.said("status"))
    daemon.reload(same + "state_max = 2GiB", "the old configuration stays")
    reload = daemon.status()["reload"]
    expect((reload["result"], reload["why"]) == ("needs_restart", "state_max"), reload)
    expect("needs a restart (state_max)" in daemon.said("status"), daemon.said("status"))
    failed = daemon.scrape()
    expect((failed[gauge], failed[count]) == (0, 2), failed)
    daemon.reload(same, "configuration reloaded")
    after = daemon.scrape()
    expect((after[gauge], after[count], daemon.status()["reload"]["result"]) == (1, 2, "done"), after)
    expect("old configuration" not in daemon.said("status"), daemon.said("status"))


@pytest.mark.root
def test_why_a_reload_failed_is_for_those_who_see_all(daemon):
    """It may quote the file, where a URL is a secret."""
    daemon.start()
    daemon.reload('webhook_url = "https://x.invalid/T0K3N" S3CR3T', "the old configuration stays")
    status = daemon.ask("status", "--json", uid=4321).stdout
    expect('"refused"' in status and "S3CR3T" not in status and "T0K3N" not in status, status)
    expect("root sees the reason" in status, status)
    expect("S3CR3T" in str(daemon.status()["reload"]), daemon.status())


def test_muted_and_shadowed_jobs_alert_nobody(daemon, receiver):
    receiver.listen()
    daemon.configure(config_of(daemon, receiver, "shadow"))
    daemon.start()
    uid = ALICE if os.geteuid() == 0 else None
    jobs = {name: daemon.train(name, labels(2, COLLWATCH_JOB=name), user=uid)
            for name in ("shadowed", "muted", "loud")}
    daemon.wait_for_all()
    jobs["shadowed"].kill(1)
    shadowed = daemon.wait_for_incident("shadowed")["id"]
    expect(daemon.document(shadowed)["suppressed"] == "shadow", daemon.document(shadowed))
    wait_until(lambda: daemon.job("shadowed")["suppressed"] == "shadow", "in status")
    expect("would have alerted (shadow)" in daemon.log(), daemon.log())
    reload_is_all_or_nothing(daemon, receiver)

    done = daemon.ask("mute", "muted", "--for", "1h", uid=BOB, check=False)
    expect(os.geteuid() != 0 or done.returncode == 3, done)
    out = daemon.ask("mute", "muted", "--for", "1h", uid=uid).stdout
    expect("muted on node-a until 20" in out, out)
    expect(daemon.ask("mute", "nosuch", check=False).returncode == 3, "no such job")
    daemon.stop()
    daemon.start()
    wait_until(lambda: (daemon.job("muted") or {}).get("ranks") == 2, "it is back")
    expect(daemon.job("muted")["muted"]["node"] == "node-a", daemon.status())
    expect("muted on node-a" in daemon.ask("status", check=False).stdout, "for people")
    jobs["muted"].kill(1)
    muted = daemon.wait_for_incident("muted")["id"]
    expect(daemon.document(muted)["suppressed"] == "muted", daemon.document(muted))

    out = daemon.ask("mute", "muted", "--unmute", uid=uid).stdout
    expect("alerts are sent again" in out, out)
    expect(daemon.ask("mute", "muted", "--unmute", check=False).returncode == 3, "twice")
    jobs["loud"].kill(1)
    wait_until(lambda: receiver.posts, "the alert of the third")
    expect([doc["job"].split(":")[-1] for _, doc in receiver.posts] == ["loud"],
           receiver.posts)
    expect(receiver.posts[0][1].get("suppressed") is None, receiver.posts)
    slack_is_told_in_its_own_words(daemon, receiver, uid)
