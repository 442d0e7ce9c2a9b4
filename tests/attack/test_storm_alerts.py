# SPDX-License-Identifier: Apache-2.0
"""One user's jobs hang by the hundred, and thousands of alerts of that user have gone out. The
engineer on call gets a few messages that cover all of them. Another user's alert goes out at once,
and an alert whose receiver was down goes out in the end. Two busy loops run beside the daemon,
which has the settings of its unit.

At full size (E2E_SCALE=1): 200 jobs that hang at once, 4,096 ids of alerts
"""
import subprocess
import time

import attack_lib
import pytest
from built import COLLWATCHD
from crowd_lib import crowd, daemon_of_the_unit
from waiting import expect as check
from waiting import wait_until

SCALE = attack_lib.scale()
JOBS = attack_lib.scaled(200, SCALE, 10)
IDS = max(attack_lib.scaled(4096, SCALE), 4096)  # a file: it costs nothing
BURST, FOLD_S = 5, 5
GREEDY_UID, VICTIM_UID = 22000, 22001
ALERT_S = 120
pytestmark = pytest.mark.root  # to be several users


def rate_config():
    """Daemons of before have no such keys."""
    known = subprocess.run([COLLWATCHD, "--help-config"], stdout=subprocess.PIPE, text=True,
                           check=False).stdout
    return f'alert_burst = "{BURST}"\nalert_fold = "{FOLD_S}s"\n' if "alert_fold" in known else ""


def posts_of(receiver, uid):
    return [doc for _, doc in list(receiver.posts) if doc.get("uid") == uid]


def alerted(posts):
    return sum(doc.get("count", 1) for doc in posts)


def test_hundreds_of_hangs_of_one_user_are_a_few_messages(receiver):
    with daemon_of_the_unit(
            f'webhook_url = "{receiver.url}"\n{rate_config()}') as d:
        receiver.listen()
        with crowd(d, GREEDY_UID, JOBS, 2, "hang") as greedy:
            wait_until(lambda: greedy.up() == greedy.n, "all ranks registered", 180)
            began = time.monotonic()

            def has_begun():
                nonlocal began
                looked = time.monotonic()
                if posts_of(receiver, GREEDY_UID):
                    return True
                began = looked  # there was none; a late first look counts from here
                return False
            wait_until(has_begun, "the first alert", ALERT_S)
            with crowd(d, VICTIM_UID, 1, 2, "hang"):
                wait_until(lambda: posts_of(receiver, VICTIM_UID), "the victim's alert", ALERT_S)
                victims = posts_of(receiver, VICTIM_UID)
                check(victims[0]["schema"] == "collwatch.incident/1", victims)
                wait_until(lambda: alerted(posts_of(receiver, GREEDY_UID)) >= JOBS, "all hangs are told",
                           ALERT_S)
            took = time.monotonic() - began
        posts = posts_of(receiver, GREEDY_UID)
        print(f"# {alerted(posts)} hangs were told in {len(posts)} messages", flush=True)
        check(len(posts) <= BURST + took / FOLD_S + 2,
              f"{len(posts)} messages about one user in {took:.0f} s")
        check(alerted(posts) == JOBS, f"{alerted(posts)} of {JOBS} hangs were told")
        check(len(d.bundles()) >= JOBS + 1, f"{len(d.bundles())} bundles")


def write_sent(d, wall_ns):
    with open(d.state + "/sent", "w", encoding="ascii") as f:
        for i in range(IDS):
            f.write(f"{0x10000 + i:x} {wall_ns} sent {GREEDY_UID}\n")


def test_thousands_of_young_ids_do_not_stop_the_spool(receiver):
    with daemon_of_the_unit(f'webhook_url = "{receiver.url}"\n') as d:
        with crowd(d, VICTIM_UID, 1, 2, "hang") as victim:
            wait_until(lambda: d.incident_of(victim.job()), "the victim's hang is told", ALERT_S)
        d.stop()
        write_sent(d, time.time_ns())
        receiver.listen()
        d.start(preexec=attack_lib.unit_settings)
        wait_until(lambda: posts_of(receiver, VICTIM_UID), "the victim's alert goes out")
        check(len(posts_of(receiver, VICTIM_UID)) == 1, receiver.posts)
