# SPDX-License-Identifier: Apache-2.0
"""The output of `report --anonymise` for bundles where we replace every string of a schema, an
example or a real snapshot by a secret."""

import itertools
import json
import os
import re
import subprocess
import tempfile
from random import Random

from built import BUILD, COLLWATCH, MAKE_BUNDLE


DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../docs")
OWN_WORDS = os.path.join(BUILD, "lib/report/anonymise/own_words.h")
ID = "0123456789abcdef"
SCENARIO = """scenario job
ranks 8 per-node 4
comm world all
program
	loop
		work 20ms
		all_reduce world 8192
		sync
	end
end
fault 3 at 4s on world all_reduce block
run 500s
expect unknown
end
"""

# Forms of secrets; {} is a unique word, and the test searches for it.
SHAPES = ["{}", "{}.corp.example", "node-{}-17", "/home/{}/my project/{}.py", "{}@login", "ns/{}:8080",
          "python3 -m {}.main --token={} 'a {}'", "gpu_{}_v2.py", "Trainer.{}::run<{}>(int)", "über-{}",
          "was killed by {} (pid 7, {}); uid 1000", "http://{}/hook?key={}", "rank 3 on {}.", "{}\n\t{}",
          "name:{}", "{}+0x1f", "lib{}.so.2", "…/{}/x ← {}"]
# The kernel's own names stay; the others are times, rank numbers and the kind of the document.
NO_SECRETS = {"kernel_stack", "wchan", "syscall", "schema", "taken", "ranks"}


class Secrets:
    def __init__(self):
        self.numbers, self.shapes = itertools.count(), itertools.cycle(SHAPES)
        self.definitions, self.depth = {}, 0

    def new(self):
        return next(self.shapes).replace("{}", f"pLanted{next(self.numbers)}secret")

    def in_schema(self, schema):
        """An instance with all parts that a schema describes; of one that holds itself, two levels."""
        self.definitions.update(schema.get("$defs", {}))
        if "$ref" in schema:
            return self.in_definition(self.definitions[schema["$ref"].split("/")[-1]])
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        if "anyOf" in schema:
            return self.in_schema(next(s for s in schema["anyOf"] if s.get("type") != "null"))
        kind = schema["type"]
        if kind == "object":
            return {name: ID if name == "id" else self.in_schema(inner)
                    for name, inner in schema["properties"].items()}
        if kind == "array":
            return [self.in_schema(schema["items"]) for _ in SHAPES[self.depth and -1:]]
        if kind == "string":
            pattern = schema.get("pattern", r"\S")
            for fixed in "0-3", "0x1f", "2026-11-21T07:53:33.123Z", "outside_nccl":
                if r"\S" not in pattern and re.match(pattern, fixed):
                    return fixed
            return self.new()
        return {"integer": 3, "number": 1.5, "boolean": True}[kind]

    def in_definition(self, schema):
        self.depth += 1
        instance = self.in_schema(schema) if self.depth <= 2 else []
        self.depth -= 1
        return instance

    def in_example(self, value, key=""):
        if isinstance(value, dict):
            return {k: self.in_example(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [self.in_example(v, key) for v in value]
        is_plain = not isinstance(value, str) or key in NO_SECRETS or value.startswith("0x")
        return value if is_plain else self.new()


def write(path, doc):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(doc, f)


def read(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def example_of(name):
    """The one in docs/schemas.md."""
    with open(DOCS + "/schemas.md", encoding="utf-8") as f:
        section = f.read().split(f"## {name}\n")[1]
    return json.loads(re.search(r"```json\n(.*?)```", section, re.DOTALL).group(1))


def made_bundle(tmp):
    with open(tmp + "/job.scn", "w", encoding="ascii") as f:
        f.write(SCENARIO)
    subprocess.run([MAKE_BUNDLE, tmp + "/job.scn", "60", tmp], check=True, stdout=subprocess.DEVNULL,
                   timeout=120)
    return f"{tmp}/{ID}"


def printed(*command):
    done = subprocess.run([COLLWATCH, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=120, check=False)
    assert done.returncode in (0, 2), done
    return done.stdout.decode()


def secrets_in(text):
    return sorted(set(re.findall(r"\w*planted\w*", text, re.IGNORECASE)))


def plant(path, secrets):
    """Plants secrets in the document with a schema, and in those with an example or from a real
    job."""
    write(path + "/incident.json", secrets.in_schema(read(f"{DOCS}/schemas/incident.json")))
    evidence = example_of("collwatch.evidence/1")
    write(path + "/evidence.json", [secrets.in_example(evidence) for _ in SHAPES])
    write(path + "/stacks.json", secrets.in_example(example_of("collwatch.stacks/1")))
    write(path + "/snapshot.json", secrets.in_example(read(path + "/snapshot.json")))


def shown_of(path, tmp, *options):
    copy = f"{tmp}/copy{len(os.listdir(tmp))}"
    printed("report", *options, "--copy", copy, path)
    shown = {"text": printed("report", *options, path),
             "all frames": printed("report", *options, "--all-frames", path),
             "page": printed("report", *options, "--html", path),
             "json": printed("report", *options, "--json", path)}
    for name in os.listdir(copy):
        with open(f"{copy}/{name}", encoding="utf-8") as f:
            shown["copy's " + name] = f.read()
    return shown, copy


def test_no_secret_of_any_field_is_shown():
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp:
        path = made_bundle(tmp)
        secrets = Secrets()
        plant(path, secrets)
        assert next(secrets.numbers) > 1000, "hardly any field was found"
        plain, _ = shown_of(path, tmp)
        assert all(secrets_in(text) for text in plain.values()), {k: len(secrets_in(v)) for k, v in plain.items()}
        for severity in "page", "failed":
            write(path + "/incident.json", {**read(path + "/incident.json"), "severity": severity})
            for name, text in shown_of(path, tmp, "--anonymise")[0].items():
                assert not secrets_in(text), (name, re.findall(".{60}planted.{60}", text, re.I | re.S)[:5])


def test_a_report_without_names_says_the_same():
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp:
        path = made_bundle(tmp)
        incident = read(path + "/incident.json")
        del incident["summary_said"]  # a text without sayings loses its names word by word
        hosts = {c["host"] for c in incident["culprits"]}
        incident.update(uid=4711, user="alice", job="slurm:99812", command="collwatch report " + ID,
                        leader="gpu17", summary=f"rank 3 on {next(iter(hosts))} never came; gpu17 and "
                        "10.7.0.3 wait, so does fe80::1f:2 of job 99812 of uid 4711 (alice) for 12 s.")
        for one in incident["culprits"]:
            del one["reason_said"]
            one.update(pod="train-0", pod_namespace="ml", container="c0ffee123456",
                       reason="in pod ml/train-0 on gpu17")
        write(path + "/incident.json", incident)
        shown, copy = shown_of(path, tmp, "--anonymise")
        doc = json.loads(shown["json"])
        assert doc["summary"] == ("rank 3 on node-1 never came; node-2 and address-1 wait, so does "
                                  "address-2 of job job-1 of uid 2 (user-1) for 12 s."), doc["summary"]
        assert (doc["job"], doc["uid"], doc["user"], doc["leader"]) == ("slurm:job-1", 2, "user-1", "node-2"), doc
        assert doc["command"] == incident["command"] and doc["id"] == ID, doc
        one = doc["culprits"][0]
        assert (one["host"], one["reason"]) == ("node-1", "in pod namespace-1/pod-1 on node-2"), one
        for same in "class", "detail", "confidence", "hang", "victims", "times", "coverage":
            if same != "coverage":
                assert doc[same] == incident[same], (same, doc[same])
        assert doc["where"]["coll_seq"] == incident["where"]["coll_seq"], doc
        again = [json.loads(printed("analyze", "--json", which)) for which in (path, copy)]
        for same in "class", "detail", "confidence":
            assert again[0][same] == again[1][same] == doc[same], again
        nodes = {n["name"] for n in read(copy + "/snapshot.json")["nodes"]}
        assert one["host"] in nodes and all(re.fullmatch(r"node-\d+", n) for n in nodes), nodes


# Names that programs everywhere give to groups, functions and files: they stay (is_everybodys()).
EVERYBODYS = {"world", "dp", "tp", "pp", "ep", "cp", "module", "lambda", "listcomp", "genexpr", "forward", "backward",
              "train"}


def vocabulary():
    """The words of our own sentences, as the command knows them."""
    with open(OWN_WORDS, encoding="ascii") as f:
        return [word for word in re.findall(r'"([^"]+)"', f.read())
                if re.fullmatch("[a-z_]{2,}", word) and word not in EVERYBODYS and not word.startswith("__")]


def named_bundle(path, docs, names):
    """The bundle with these hosts, user, job and file: whole words of all texts."""
    host, other, user, job, file = names
    words = {"node-0": host, "node-1": other, "somebody": user, "something": job, "somefile": file}
    for name, text in docs.items():
        text = re.sub(r"(?<![\w-])(%s)(?![\w-])" % "|".join(words), lambda m: words[m[1]], text)
        with open(f"{path}/{name}", "w", encoding="utf-8") as f:
            f.write(text)


def with_names(path):
    """The documents of a bundle, with a user, a job, and evidence that names a file."""
    incident = read(path + "/incident.json")
    culprit = incident["culprits"][0]
    incident.update(uid=4711, user="somebody", job="name:something")
    write(path + "/incident.json", incident)
    evidence = example_of("collwatch.evidence/1")
    evidence.update(host=culprit["host"], pid=culprit["pid"], rank=culprit["rank"])
    evidence["python"] = {"status": "ok", "reason": "", "threads": [{
        "id": "0x7", "tid": culprit["pid"], "current": True, "name": "python3", "gil": None, "note": None,
        "frames": [{"file": "/home/somebody/somefile.py", "line": 88, "function": "main"}]}]}
    write(path + "/evidence.json", [evidence])
    docs = {}
    for name in os.listdir(path):
        with open(f"{path}/{name}", encoding="utf-8") as f:
            docs[name] = f.read()
    return docs


def test_names_that_are_words_of_ours_are_hidden_like_any_others():
    draws, random = int(os.environ.get("ANONYMISE_DRAWS", "40")), Random(os.environ.get("E2E_SEED", "1"))
    words = vocabulary()
    assert len(words) > 1000, "hardly any word was found"
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp:
        path = made_bundle(tmp)
        docs = with_names(path)
        for _ in range(draws):
            ours = random.sample(words, 5)
            anyone = [f"zq{random.randrange(16 ** 6):06x}q" for _ in range(5)]
            shown = []
            for names in ours, anyone:
                named_bundle(path, docs, names)
                shown.append([printed("report", "--anonymise", *how, path) for how in ([], ["--json"], ["--html"])])
            for with_ours, with_anyone in zip(*shown):
                different = [pair for pair in zip(with_ours.splitlines(), with_anyone.splitlines()) if len(set(pair)) > 1]
                assert with_ours == with_anyone, (ours, different[:3])
                assert not any(name in with_anyone for name in anyone), anyone


def test_a_copy_never_goes_where_something_is():
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp:
        path = made_bundle(tmp)
        done = subprocess.run([COLLWATCH, "report", "--copy", tmp, path], stderr=subprocess.PIPE,
                              check=False, timeout=120)
        assert done.returncode == 1 and b"exists already" in done.stderr, done
        printed("report", "--copy", tmp + "/new/", path)
        for name in os.listdir(path):
            assert read(f"{tmp}/new/{name}") == read(f"{path}/{name}"), name
