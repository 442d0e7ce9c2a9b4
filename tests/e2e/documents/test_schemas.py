# SPDX-License-Identifier: Apache-2.0
"""The installed schemas, for readers with tools of their own: we make them of the contracts
(documents_contract.py). The output of daemon and command is valid for a validator that is not ours.
"""

import copy
import glob
import json
import os
import signal
import subprocess
import tempfile

import jsonschema
from built import COLLWATCH
from documents_contract import CONTRACTS, deviations, name_of
from job import FOREVER, Job
from json_schema import schema_of
from waiting import wait_until

SCHEMAS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../docs/schemas")
# A rank's recorder after a call that every rank has completed.
ALL_WELL = {"version": "2.9", "pg_config": {"0": {"desc": "default_pg", "ranks": [0, 1]}},
            "entries": [{"process_group": ["0", "default_pg"], "profiling_name": "nccl:all_reduce",
                         "collective_seq_id": 7, "state": "completed", "input_sizes": [[8]],
                         "input_dtypes": ["Float"], "output_sizes": [[8]], "output_dtypes": ["Float"]}]}
DIFFERS = [*FOREVER, "--fault", "wrong-count", "--fault-rank", "1", "--fault-step", "30"]


def schema(name):
    with open(f"{SCHEMAS}/{name}.json", encoding="utf-8") as f:
        return json.load(f)


def test_the_schemas_are_the_contracts():
    for name, contract in CONTRACTS.items():
        wanted = json.dumps(schema_of(f"collwatch.{name}/1", contract), indent=1) + "\n"
        path = f"{SCHEMAS}/{name}.json"
        if os.environ.get("COLLWATCH_UPDATE_GOLDEN"):
            with open(path, "w", encoding="utf-8") as f:
                f.write(wanted)
        with open(path, encoding="utf-8") as f:
            assert f.read() == wanted, f"{path} is stale: run this with COLLWATCH_UPDATE_GOLDEN=1"
        jsonschema.Draft202012Validator.check_schema(schema(name))
    assert {os.path.basename(path) for path in glob.glob(SCHEMAS + "/*")} == {name + ".json" for name in CONTRACTS}


class Seen:
    """Documents that were held against contract and schema, by the name of theirs."""

    def __init__(self):
        self.names = set()

    def hold(self, doc):
        name = name_of(doc)
        found = deviations(doc) or [e.message for e in jsonschema.Draft202012Validator(schema(name)).iter_errors(doc)]
        assert not found, f"{name}: {found[:10]} in {json.dumps(doc)[:2000]}"
        self.names.add(name)
        return doc


def printed(*words):
    done = subprocess.run([COLLWATCH, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, check=False)
    assert done.stdout, (words, done)
    return json.loads(done.stdout)


def one_that_is_otherwise_is_found(status):
    """By the schema as well as by the contract."""
    muted = next(i for i, job in enumerate(status["jobs"]) if job["muted"])
    validator = jsonschema.Draft202012Validator(schema("status"))
    for change in (lambda d: d.pop("node"), lambda d: d["jobs"][muted].update(state="odd"),
                   lambda d: d["jobs"][muted].update(ranks=2.5), lambda d: d["agents"].pop("dead"),
                   lambda d: d["jobs"][muted]["muted"].update(until="soon"),
                   lambda d: d.update(peers=[{"node": "b", "state": "refused: ", "dropped": 0}])):
        wrong = copy.deepcopy(status)
        change(wrong)
        assert deviations(wrong) and not validator.is_valid(wrong), wrong


def posted(receiver, wanted):
    return next((doc for _, doc in receiver.posts if doc["schema"] == wanted), None)


def cpus_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return next(line.split()[1] for line in f if line.startswith("Cpus_allowed_list:"))


def the_cpus_of_culprits_are_told(daemon, receiver, incident):
    """In the bundle, in the alert, and in both reports."""
    wait_until(lambda: "cpus" in daemon.document(incident)["culprits"][0], "the evidence is there")
    for doc in daemon.document(incident), posted(receiver, "collwatch.incident/1"):
        for culprit in doc["culprits"]:
            assert culprit["cpus"] == cpus_of(culprit["pid"]), culprit
    cpus = daemon.document(incident)["culprits"][0]["cpus"]
    for words in ("report", incident), ("report", incident, "--html"):
        assert f", CPUs {cpus}" in daemon.ask(*words).stdout, words


def test_what_daemon_and_command_say_is_as_the_schemas_promise(daemon, receiver):
    seen = Seen()
    receiver.listen()
    daemon.configure(f'webhook_url = "{receiver.url}"\nalert_burst = "1"\nalert_fold = "2s"\n')
    daemon.start(COLLWATCH_SUMMARY="")
    with tempfile.TemporaryDirectory(prefix="cw-") as at:
        jobs = [Job(name, 2, DIFFERS if name != "well" else FOREVER, daemon, variables={"COLLWATCH_RECORD": at})
                for name in ("well", "one", "two", "three")]
        try:
            wait_until(lambda: posted(receiver, "collwatch.folded/1"), lambda: f"one alert of more: {daemon.log()}")
            incident = daemon.wait_for_incident("one")
            the_cpus_of_culprits_are_told(daemon, receiver, incident["id"])
            for words in ("status",), ("status", "--ops"), ("report",), ("report", incident["id"]), ("stacks", "one"):
                seen.hold(daemon.answer(*words))
            seen.hold(printed("doctor", "--config", daemon.conf, "--socket", daemon.path, "--control", daemon.control,
                              "--json"))
            seen.hold(printed("record", "show", str(jobs[1].ranks[0].pid), "--json"))
            seen.hold(daemon.answer("mute", "one", "--for", "1h"))
            one_that_is_otherwise_is_found(seen.hold(daemon.status()))
            # A crash: a job whose ranks are killed from outside was cancelled, and has no post-mortem.
            for rank in jobs[1].ranks:
                rank.send_signal(signal.SIGSEGV)
            wait_until(lambda: daemon.postmortems("one"), lambda: f"a post-mortem: {daemon.log()}")
        finally:
            for job in jobs:
                job.close()
    for path in glob.glob(daemon.state + "/incidents/*/*.json"):
        with open(path, encoding="utf-8") as f:
            found = json.load(f)
        for doc in found if isinstance(found, list) else [found]:
            seen.hold(doc)
    for _, doc in receiver.posts:
        seen.hold(doc)
    # Documents that need no daemon; agent_numerics, agent_baseline, torch_modules and deaths check
    # the tensors of jobs.
    with tempfile.TemporaryDirectory(prefix="cw-") as at:
        for rank in range(2):
            with open(f"{at}/nccl_trace_rank_{rank}.json", "w", encoding="ascii") as f:
                json.dump(ALL_WELL, f)
        seen.hold(printed("analyze", "--flight-recorder", at, "--json"))
    assert seen.names == set(CONTRACTS) - {"numerics", "summaries", "baseline_check", "tensors", "modules"}, seen.names
