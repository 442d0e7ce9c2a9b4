# SPDX-License-Identifier: Apache-2.0
"""A user gives hostile names to his job, his program, its threads and its host: with escapes of
terminals, line breaks, characters that reverse the text after them, markup, and commands of a shell
or a chat. Wherever collwatch prints them, they are text: in the log, in bundles, alerts for
programs and for Slack, reports, pages and metrics."""
import html.parser
import json
import os
import re
import shutil
import unicodedata

import pytest
from built import TRAIN_LOOP
from daemon import Daemon
from job import labels
from receiver import Receiver
from waiting import expect, wait_until

pytestmark = pytest.mark.root  # to be another user
USER = 23120
LABEL = ('a\x1b[2J\x07b\u202ecod\u2066x</script><img src=x onerror=alert(1)>"\'&\n{job="x"}'
         '<!channel> <@U1> <http://x|y> `id` $(id) %s%n\r\u2028]]>\x7f\x9b31m\u200b')
# Of a program: not more than a name of a file.
NAME = 'p\x1b[2J\n<!channel><b onmouseover=alert(1)>\u202e\'"`id`\x9b31m\x07'
TREACHEROUS = "\u2028\u2029\u200b\u200c\u200d\u200e\u200f\u061c\ufeff"


def is_harmless(character):
    """As lib/common/text.h has it, said once more."""
    return not (unicodedata.category(character) in ("Cc", "Cs") or character in TREACHEROUS
                or "\u202a" <= character <= "\u202e" or "\u2066" <= character <= "\u2069")


def check_line(where, text, allowed="\n"):
    bad = {c for c in text if c not in allowed and not is_harmless(c)}
    expect(not bad, f"{where}: {bad} in {text!r}")


def strings(value):
    if isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)
    elif isinstance(value, str):
        yield value


def check_document(where, document):
    seen = list(strings(document))
    for text in seen:
        check_line(where, text, "\n\t")
    return seen


class Page(html.parser.HTMLParser):
    """Elements and attributes that a page has."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def marked_up(value):
    """Slack's markup for commands, which plain texts must not contain."""
    if isinstance(value, dict):
        if value.get("type") != "plain_text":
            for one in value.values():
                yield from marked_up(one)
    elif isinstance(value, list):
        for one in value:
            yield from marked_up(one)
    elif isinstance(value, str):
        yield value


class Setup:
    def __init__(self, world, receiver):
        self.world, self.receiver = world, receiver
        self.program = f"{world.dir}/{NAME}"
        shutil.copy(TRAIN_LOOP, self.program)

    def settings(self, form):
        return (f'webhook_url = "{self.receiver.url}"\nwebhook_format = {form}\n'
                f'metrics_socket = "{self.world.dir}/metrics.sock"')

    def hang(self, label):
        """One rank dies, the others wait: all ranks and their programs have such names."""
        job = self.world.train(label, labels(3, COLLWATCH_JOB=label), program=self.program, user=USER)
        before = len(self.receiver.posts)
        wait_until(lambda: any(j["ranks"] == 3 and j["collectives"] > 20 and j["state"] == "healthy"
                               for j in self.world.status()["jobs"]), lambda: f"training: {self.world.log()}")
        job.kill(1)
        wait_until(lambda: len(self.receiver.posts) > before,
                   lambda: f"the alert: {self.world.log()}")
        return self.receiver.posts[-1]


@pytest.fixture(name="setup", scope="module")
def setup_of_such_names():
    with Receiver() as receiver, Daemon() as world:
        receiver.listen()
        setup = Setup(world, receiver)
        world.configure(setup.settings("generic"))
        world.start()
        yield setup


def test_names_are_text_wherever_they_are_said(setup):
    key, document = setup.hang(LABEL)
    world = setup.world
    own = f"{world.state}/incidents/{key}"
    wait_until(lambda: world.is_settled(key), "the alert is settled")
    said = check_document("the alert", document)
    expect(any("</script><img" in text for text in said), "the label is as it was but for that")
    texts = []
    for name in os.listdir(own):
        with open(f"{own}/{name}", encoding="utf-8") as f:
            texts += check_document(name, json.load(f))
    expect(any("onmouseover" in text for text in texts), "the program's name is in the evidence")
    for words in [["status"], ["report"], ["report", key], ["report", own], ["analyze", own],
                  ["report", own, "--anonymise"], ["stacks", "--job", LABEL], ["mute"]]:
        done = world.ask(*words, check=False)
        check_line(" ".join(words[:1]), done.stdout)
        check_line(" ".join(words[:1]), done.stderr)
    check_line("the log", world.log())
    for line in world.log().splitlines():
        expect(not line.startswith("{job="), "a line of his own: " + line)
    page = Page(world.ask("report", own, "--html").stdout)
    expect(not page.tags & {"img", "iframe", "base", "script"}, page.tags)
    expect(not any(name.startswith("on") for name in page.attributes), page.attributes)
    for sample in world.scrape():
        plain = re.sub('size="[<>]=? ', 'size="', sample)
        expect(re.fullmatch(r'\w+(\{[\w="/.,+ -]*\})?', plain) and "onerror" not in sample, sample)


def test_slack_is_sent_no_command(setup):
    setup.world.reload(setup.settings("slack"), "configuration reloaded")
    _, message = setup.hang("2" + LABEL)
    check_document("Slack's", message)
    # Our own markup: a time, which Slack shows by the reader's clock.
    everything = re.sub(r"<!date\^\d+\^\{date_short_pretty\} at \{time_secs\}\|[-\d: ]+UTC>", "",
                        "\n".join(marked_up(message)))
    expect("channel" in everything, message)
    expect(not re.search(r"<[!@#]|<https?://x", everything), message)
