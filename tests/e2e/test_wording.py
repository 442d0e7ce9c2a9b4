# SPDX-License-Identifier: Apache-2.0
"""A daemon's texts while jobs hang, fail and are well: no word of them is for programs, and none a
slip. Of documents of every class: documents/test_contract.py."""

import json
import os
import re
import signal

import pytest
from daemon import Daemon
from job import FOREVER, labels
from receiver import Receiver
from waiting import expect, wait_until
from wording import key_in, sentences_of, slip

RANKS, FAULTY = 2, 1
# As launchers leave them; of each the label has another rule.
JOBS = {
    "hangs": {"COLLWATCH_JOB": "hangs"},
    "differs": {"SLURM_JOB_ID": "4711", "SLURM_PROCID": "0"},
    "killed": {"TORCHELASTIC_RUN_ID": "killed"},
    "trains": {"MASTER_ADDR": "node-a", "MASTER_PORT": "29500"},
}
FAULTS = {"hangs": "block-in-data-loader", "differs": "wrong-count"}
# Functions of their program, which reports name.
OF_JOBS = ("train_loop", "read_sample", "block_in_data_loader", "batch_isend_irecv")
# A line of the log names its job and incident as people look for them: job=name:train inc=….
FIELDS = re.compile(r"\b(?:job|inc|uid)=\S+")


# A user types the text in `…`; Slack formats a date.
TYPED = re.compile(r"`[^`]*`|<!date\^[^|]*\|")


def config_of(receiver, form):
    return (f'log_level = notice\nwebhook_format = {form}\nwebhook_url = "{receiver.url}"\n'
            f'notice_webhook_url = "{receiver.url}/notices"\nwebhook_postmortems = true')


def texts_of(message):
    """The texts of a message for Slack that people read."""
    if isinstance(message, dict):
        for name, inner in message.items():
            if name == "text" and isinstance(inner, str):
                yield TYPED.sub("", inner)
            else:
                yield from texts_of(inner)
    elif isinstance(message, list):
        for inner in message:
            yield from texts_of(inner)


def posted(receiver, n=0):
    """{kind: text} of the posts after the first n."""
    told = {}
    for key, body in receiver.posts[n:]:
        if "blocks" in body:
            told[f"Slack {key}"] = "\n".join(texts_of(body))
        else:
            told.update({f"{body['schema']} {key} {at}": text for at, text in sentences_of(body)})
    return told


@pytest.fixture(scope="module", name="told")
def what_is_told_of_all():
    """{what: text}"""
    with Receiver() as receiver, Daemon(config_of(receiver, "slack")) as daemon:
        receiver.listen()
        daemon.start()
        jobs = {}
        for name, variables in JOBS.items():
            fault = ["--fault", FAULTS[name], "--fault-rank", str(FAULTY), "--fault-step", "30"] if name in FAULTS else []
            jobs[name] = daemon.train(name, labels(RANKS, **variables), [*FOREVER, *fault])
        wait_until(lambda: len(daemon.status()["jobs"]) == len(JOBS) or None, "all jobs are seen")
        wait_until(lambda: all(j["collectives"] > 0 for j in daemon.status()["jobs"]), "they train")
        os.kill(jobs["killed"].ranks[FAULTY].pid, signal.SIGKILL)
        pages = wait_until(lambda: (found := [d for d in daemon.documents() if d["severity"] == "page"]) and
                           len(found) >= 3 and found, lambda: f"three pages: {daemon.log()}")
        wait_until(lambda: len(receiver.posts) >= 3, lambda: f"three of them posted: {receiver.posts}")
        daemon.reload(config_of(receiver, "generic"), "configuration reloaded")
        jobs["killed"].close()  # then the cause of death goes out
        daemon.jobs.remove(jobs["killed"])
        wait_until(daemon.postmortems, "a post-mortem")
        told = {"status": daemon.said("status"), "ops": daemon.said("status", "--ops"),
                "calls": re.sub(r"<style>.*?</style>|<[^>]*>", " ", daemon.said("status", "--ops", "--html"), flags=re.DOTALL), "list": daemon.said("report"),
                "stacks": daemon.said("stacks", "hangs"), "mute": daemon.said("mute", "trains:29500") +
                daemon.said("status")}
        for incident in daemon.bundles():
            told[f"report {incident}"] = daemon.said("report", incident)
            page = daemon.said("report", incident, "--html")
            told[f"page {incident}"] = re.sub(r"<style>.*?</style>|<[^>]*>", " ", page, flags=re.DOTALL)
        os.kill(jobs["trains"].ranks[FAULTY].pid, signal.SIGKILL)
        wait_until(lambda: any("schema" in body for _, body in receiver.posts), "a document is posted")
        told.update(posted(receiver))
        told["log"] = FIELDS.sub("", daemon.log())
        told["classes"] = json.dumps(sorted(d["class"] for d in pages))
    return told


def test_what_is_looked_at_is_there(told):
    expect({"mismatch", "never_entered", "process_dead"} <= set(json.loads(told.pop("classes"))), told)
    empty = [what for what, text in told.items() if not text.strip()]
    expect(not empty, f"nothing is said of {empty}")
    expect(sum(what.startswith("page ") for what in told) >= 3, list(told))
    expect(sum(what.startswith("Slack ") for what in told) >= 3, list(told))
    expect(any(what.startswith("collwatch.incident/1 ") for what in told), list(told))


def test_no_word_for_programs_reaches_a_person(told):
    slips = [f"{what}: {slip(text)}" for what, text in told.items() if what != "classes" and slip(text)]
    expect(not slips, "\n".join(slips))


def test_no_key_stands_in_what_is_posted(told):
    slips = [f"{what}: {key_in(text)} in: {text}" for what, text in told.items()
             if what.startswith(("Slack ", "collwatch.")) and key_in(text, OF_JOBS)]
    expect(not slips, "\n".join(slips))


@pytest.mark.parametrize("text", [
    "its last_progress is not known", "the peer is never_seen", "see job_timeout, please", "no_progress_after."])
def test_a_key_is_seen(text):
    expect(key_in(text), text)


@pytest.mark.parametrize("text", [
    "all_reduce #31 on tp", "read_sample (train_loop.py:229)", "in /var/lib/state_dir/x", "`collwatch a_b`", "no option 'a_b'",
    "<!date^1^{date_short_pretty}|2026>"])
def test_what_is_no_key_is_none(text):
    expect(not key_in(TYPED.sub("", text)), text)


def test_keys_that_people_write_are_known():
    expect(not key_in("set state_dir", ["state_dir"]), "state_dir")


@pytest.mark.parametrize("text", [
    "rank 3 never_entered", "job name:train hangs", "1 nodes report", "for 0.0 s", "#31 on comm comm_0",
    "has waited for (null)", "rank 4294967295 is gone", "on dp , and", "is gone.. It"])
def test_a_slip_is_seen(text):
    expect(slip(text), text)


@pytest.mark.parametrize("text", [
    "all_reduce #31 on tp", "ranks 0-1 hang", "node-1 (ranks 0,1)", "after 10.0 s", "127.0.0.1 ranks", "name: tp"])
def test_what_is_right_is_no_slip(text):
    expect(not slip(text), text)
