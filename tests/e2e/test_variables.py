# SPDX-License-Identifier: Apache-2.0
"""A job whose ranks differ in NCCL_* variables: the alert, the report and the record name each
variable and its values. The differing variable accuses no rank."""
import json
import subprocess

from built import COLLWATCH
from daemon import Daemon
from job import labels
from waiting import expect, wait_until

HANG = ["--step-ms", "20", "--log-every", "1", "--elements", "64", "--steps", "0", "--fault",
        "block-in-data-loader", "--fault-rank", "1", "--fault-step", "50"]


def test_each_differing_variable_is_named():
    ranks = labels(2, COLLWATCH_JOB="differ")
    ranks[0].update(NCCL_ALGO="Ring", NCCL_IB_HCA="corp0")
    ranks[1].update(NCCL_ALGO="Tree", NCCL_IB_HCA="corp1")
    with Daemon() as d:
        d.start()
        job = d.train("differ", ranks, HANG)
        d.wait_for(job)
        doc = wait_until(lambda: d.incident_of("differ"), "the hang is diagnosed")
        expect(doc["class"] == "never_entered" and [c["rank"] for c in doc["culprits"]] == [1], str(doc))
        wanted = ["NCCL_ALGO differs: Ring on rank 0, Tree on rank 1; ranks that differ in it are known to hang",
                  "NCCL_IB_HCA differs: corp0 on rank 0, corp1 on rank 1"]
        expect(doc.get("also") == wanted, str(doc))
        report = d.said("report", doc["id"])
        expect("corp1 on rank 1" in " ".join(report.split()), report)
        hidden = d.said("report", doc["id"], "--anonymise")
        expect("NCCL_IB_HCA" in hidden and "corp" not in hidden, hidden)
        shown = subprocess.run([COLLWATCH, "record", "show", str(job.ranks[1].pid), "--json"], check=True,
                               stdout=subprocess.PIPE)
        record = json.loads(shown.stdout)
        version = record["nccl_version"]
        notes = json.loads(d.said("doctor", "--json"))["notes"]
        is_known = 22703 <= version <= 22809
        expect(any("known hang: NCCL_NVLS_ENABLE, fixed in 2.29.2" in n for n in notes) == is_known, f"{version}: {notes}")
        expect(record["nccl_variables"] == "NCCL_ALGO=Tree NCCL_IB_HCA=corp1", str(record))
