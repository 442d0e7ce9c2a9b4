# SPDX-License-Identifier: Apache-2.0
"""The page of a bundle as others read it: an XML parser, an HTML parser, a browser."""

import html.parser
import json
import os
import shutil
import struct
import subprocess
import tempfile
import xml.etree.ElementTree

import pytest
from built import COLLWATCH, MAKE_BUNDLE


SVG = "{http://www.w3.org/2000/svg}"
ID = "0123456789abcdef"
EVILS = ["<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "</title></style><svg>",
         "&#60;script&#62;]]>", "\u202egnp.exe\u202c"]

JOB = """scenario job
ranks {ranks} per-node {per_node}
comms tp size {tp}
comms dp size rest stride {tp}
program
	loop
		work 20ms
		all_reduce tp 8192
		reduce_scatter dp 16384
		sync
	end
end
fault {culprit} at 4s on tp all_reduce block
expect never_entered {culprit}
end
"""


class Bundle:
    """The bundle of a job that hangs because of `culprit`, and its page."""

    def __init__(self, ranks, tp, culprit):
        self.ranks, self.tp, self.culprit = ranks, tp, culprit

    def __enter__(self):
        self.tmp = tempfile.mkdtemp(prefix="cw-")
        with open(self.tmp + "/job.scn", "w", encoding="ascii") as f:
            f.write(JOB.format(ranks=self.ranks, per_node=8, tp=self.tp, culprit=self.culprit))
        subprocess.run([MAKE_BUNDLE, self.tmp + "/job.scn", "20", self.tmp], check=True,
                       stdout=subprocess.DEVNULL, timeout=120)
        self.path = f"{self.tmp}/{ID}"
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.tmp)

    def page(self):
        """The file, written by collwatch report --html."""
        path = self.tmp + "/page.html"
        done = subprocess.run([COLLWATCH, "report", "--html", "-o", path, self.path], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                              check=False)
        assert done.returncode == 0 and done.stdout == "", f"{done}"
        return path

    def change(self, name, change):
        """Reads a file of the bundle, lets it be changed, writes it."""
        path = f"{self.path}/{name}"
        document = []
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                document = json.load(f)
        document = change(document) or document
        with open(path, "w", encoding="utf-8") as f:
            json.dump(document, f)


class Parser(html.parser.HTMLParser):
    """As a browser sees it: the elements with their attributes."""

    def __init__(self, path):
        super().__init__()
        self.elements = []
        with open(path, encoding="utf-8") as f:
            self.feed(f.read())

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))


def check_harmless(path):
    """Nothing that runs, nothing that is fetched, and a policy that forbids both."""
    elements = Parser(path).elements
    policy = [a["content"] for t, a in elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert len(policy) == 1 and policy[0].startswith("default-src 'none'"), policy
    for tag, attributes in elements:
        assert tag not in ("script", "img", "link", "iframe", "object", "embed", "base", "form",
                           "a", "use", "image", "foreignobject"), tag
        for name, value in attributes.items():
            assert not name.startswith("on") and name not in ("src", "href", "style"), (tag, name)
            assert name == "xmlns" or "://" not in value, (tag, name, value)
    with open(path, encoding="utf-8") as f:
        style = f.read().split("<style>")[1].split("</style>")[0]
    assert "url(" not in style and "@import" not in style


def rows_of(tree):
    """Class attributes of the rows of the timeline."""
    return [e.get("class") for e in tree.iter(SVG + "rect")
            if e.get("class", "").split()[0] == "row"]


def test_a_page_of_eight_ranks_is_well_formed_and_needs_nobody():
    with Bundle(8, 2, 3) as bundle:
        path = bundle.page()
        tree = xml.etree.ElementTree.parse(path).getroot()
        text = "".join(tree.itertext())
        assert f"rank {bundle.culprit} (node-0" in text and "never reached" in text, text[:2000]
        assert rows_of(tree).count("row culprit") == 1, rows_of(tree)
        assert oct(os.stat(path).st_mode & 0o777) in ("0o640", "0o600"), "for everybody's eyes"
        check_harmless(path)


# The fault, and the text that the drawing of the waits must have for it.
DRAWN = {
    "a deadlock": ("all_reduce a\n\t\tall_reduce b", "fault 3 at 4s on a all_reduce swap",
                   ["in all_reduce #", "on a", "on b"]),
    "no rank is missing": ("all_reduce a", "fault 3 at 4s on a all_reduce wedge",
                          ["no rank is missing", "network, GPU or NCCL"]),
}


@pytest.mark.parametrize("name", DRAWN)
def test_waits_are_drawn_that_lead_to_nobody_in_particular(name):
    calls, fault, words = DRAWN[name]
    comms = "comm a all\ncomm b all"
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp:
        with open(tmp + "/job.scn", "w", encoding="ascii") as f:
            f.write(f"scenario job\nranks 8 per-node 4\n{comms}\nprogram\n\tloop\n\t\twork 20ms\n\t\t{calls}\n"
                    f"\t\tsync\n\tend\nend\n{fault}\nrun 500s\nexpect unknown\nend\n")
        subprocess.run([MAKE_BUNDLE, tmp + "/job.scn", "60", tmp], check=True, stdout=subprocess.DEVNULL, timeout=120)
        page = subprocess.run([COLLWATCH, "report", "--html", f"{tmp}/{ID}"], stdout=subprocess.PIPE, text=True,
                              timeout=120, check=True).stdout
    drawing = page[page.index("id=\"waits\""):]
    drawing = drawing[:drawing.index("</svg>")]
    missing = [word for word in words if word not in drawing]
    assert not missing and "marker-end" in drawing, f"{missing} in {drawing[:2000]}"


def test_a_page_of_a_thousand_ranks_is_as_short():
    with Bundle(1024, 8, 517) as bundle:
        path = bundle.page()
        tree = xml.etree.ElementTree.parse(path).getroot()
        rows = rows_of(tree)
        assert rows.count("row culprit") == 1 and len(rows) <= 8, rows
        names = ["".join(e.itertext()) for e in tree.iter(SVG + "text")]
        assert names.count("rank 517") == 2, names  # a box and a row of its own
        assert os.path.getsize(path) < 100_000, os.path.getsize(path)
        check_harmless(path)


# Text of a form of its own: a report with another text there is refused.
TIMES = ("last_progress", "stall", "confirmed", "resolved", "noticed")


def test_hostile_text_stays_text():
    evil = iter(EVILS * 100000)

    def poison(node):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            if isinstance(value, (dict, list)):
                poison(value)
            elif isinstance(value, str) and not value.startswith("0x") and key not in (
                    "schema", "id", "class", "status", *TIMES):
                node[key] = next(evil)

    def evidence(_):
        frames = [{"pc": "0x1", "symbol": next(evil), "module": next(evil), "file": next(evil),
                   "function": next(evil), "line": 7} for _ in range(3)]
        thread = {"tid": 1, "name": next(evil), "current": True, "frames": frames}
        return [{"schema": "collwatch.evidence/1", "host": "h", "pid": 1, "rank": 0,
                 "native": {"status": "ok", "threads": [thread]},
                 "python": {"status": "ok", "threads": [thread]},
                 "proc": {"status": "ok", "command": next(evil), "threads": [
                     {"tid": 1, "state": next(evil), "wchan": next(evil)}]}}]

    def stacks(_):
        node = {"name": next(evil), "file": next(evil), "line": 1, "module": next(evil), "n": 2,
                "ranks": next(evil), "ends": 1, "fold": False, "calls": []}
        return {"schema": "collwatch.stacks/1", "processes": 3, "seen": 2, "awaited": 0, "cut": 1,
                "not_collected": [{"ranks": next(evil), "n": 1, "why": next(evil)}],
                "trees": [{"kind": "python", "thread": next(evil), "n": 2, "ranks": "0",
                           "roots": [node]}]}

    with Bundle(8, 2, 3) as bundle:
        bundle.change("snapshot.json", poison)
        bundle.change("incident.json", poison)
        bundle.change("evidence.json", evidence)
        bundle.change("stacks.json", stacks)
        path = bundle.page()
        text = "".join(xml.etree.ElementTree.parse(path).getroot().itertext())
        assert EVILS[0] in text, "what was to be shown is not shown"
        assert "\u202e" not in text
        check_harmless(path)


def test_usage_errors_are_errors():
    for arguments in (["--html"], ["--html", "--json", "x"], ["-o", "x", "y"]):
        done = subprocess.run([COLLWATCH, "report", *arguments], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=120, check=False)
        assert done.returncode not in (0, 2), arguments
    with Bundle(8, 2, 3) as bundle:
        done = subprocess.run([COLLWATCH, "report", "--html", "-o", "/nowhere/page", bundle.path],
                              stderr=subprocess.PIPE, text=True, timeout=120, check=False)
        assert done.returncode == 1 and "cannot write /nowhere/page" in done.stderr, done


def screenshot(browser, page, size):
    """Draws the page; (width, height, bytes) of the picture, and the browser's complaints."""
    profile = tempfile.mkdtemp(prefix="cw-")
    try:
        done = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--enable-logging=stderr", f"--user-data-dir={profile}",
             f"--screenshot={profile}/page.png", "--window-size={},{}".format(*size),
             "file://" + page], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            timeout=120, check=False)
        with open(profile + "/page.png", "rb") as f:
            data = f.read()
    finally:
        shutil.rmtree(profile, ignore_errors=True)
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return (*struct.unpack(">II", data[16:24]), len(data)), complaints


def test_a_browser_draws_it_without_complaint():
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        pytest.skip("no chromium here")
    with Bundle(8, 2, 3) as bundle:
        page = bundle.page()
        for size in ((1200, 1600), (500, 2400)):
            (width, height, n_bytes), complaints = screenshot(browser, page, size)
            assert (width, height) == size, (width, height)
            assert n_bytes > 20000, f"{n_bytes} bytes: an empty page"
            assert not complaints, complaints
