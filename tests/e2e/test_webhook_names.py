# SPDX-License-Identifier: Apache-2.0
"""Alerts to a webhook that is given by name: with a name server that does not answer, with TLS, and
through a proxy. All of it in a network namespace with a resolv.conf of its own; needs root, else
says so."""

import contextlib
import json
import socket
import ssl
import subprocess
import threading

import pytest
from built import COLLWATCHD
from daemon import Daemon
from dns_lib import NameServer, mount_over, own_network
from receiver import Receiver
from waiting import expect, wait_until

HOOKS, PROXY = "hooks.collwatch.test", "proxy.collwatch.test"
# Asks for 25 s, every 5 s.
PATIENT = "timeout:5 attempts:5"
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
# Less than a look-up takes.
STOP_S = 20


def set_up(stack, options):
    world = stack.enter_context(Daemon())
    own_network(world.dir, options)
    dns = NameServer()
    dns.start()
    stack.callback(dns.end)
    receiver = Receiver()
    stack.callback(receiver.close)
    dns.addresses = ["127.0.0.1"]
    return world, dns, receiver


def configure(world, url):
    world.configure(f'webhook_url = "{url}"\nmetrics_socket = "{world.dir}/metrics.sock"\n')


def one_dies(world, name):
    """An alert is due; returns its id. The job goes on waiting: an alert of an ended one would page
    no engineer."""
    job = world.train(name)
    world.wait_for(job)
    job.kill(1)
    return world.wait_for_incident(name)["id"]


@pytest.mark.namespaces
@pytest.mark.forked  # into a network of its own
def test_name_server_that_is_silent_holds_up_nothing_but_the_alert():
    with contextlib.ExitStack() as stack:
        world, dns, receiver = set_up(stack, PATIENT)
        configure(world, f"http://{HOOKS}:{receiver.port}/hook")
        receiver.listen()
        dns.say = dns.silent
        world.start()
        incident = one_dies(world, "first")
        wait_until(lambda: HOOKS in dns.names, "the name is asked for")
        # The first look-up is given up, and another one begins.
        wait_until(lambda: "the name server does not answer" in world.log(),
                   "the attempt fails: " + world.log())
        held = world.scrape()["collwatch_loop_held_up_max_seconds"]
        expect(held < STOP_S, f"the loop was held up for {held} s")
        expect(not receiver.posts, "no address is known")
        dns.say = dns.right
        wait_until(lambda: receiver.count(incident), "the alert arrives: " + world.log())

        dns.say = dns.silent
        asked = dns.asked
        one_dies(world, "second")
        wait_until(lambda: dns.asked > asked, "the name is asked for")
        world.process.terminate()
        try:
            world.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            raise AssertionError("the daemon does not stop while a name is looked up") from None
        world.process = None


@pytest.mark.namespaces
@pytest.mark.forked  # into a network of its own
def test_doctor_tells_that_the_name_server_is_silent():
    with contextlib.ExitStack() as stack:
        world, dns, receiver = set_up(stack, PATIENT)
        configure(world, f"http://{HOOKS}:{receiver.port}/hook")
        dns.say = dns.silent
        try:
            done = subprocess.run([COLLWATCHD, "--config", world.conf, "--findings"], timeout=120,
                                  stdout=subprocess.PIPE, check=True)
        except subprocess.TimeoutExpired:
            raise AssertionError("the check hangs with the name server") from None
        found = {f["name"]: f["what"] for f in json.loads(done.stdout)}
        expect("the name server does not answer" in found.get("webhook-unreachable", ""), found)


# ---- TLS, through a proxy ----

def make_certificates(directory):
    """An authority, which this machine trusts from now on, and a certificate for each name."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=directory, check=True, stderr=subprocess.DEVNULL)

    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test", "-days", "2")
    for name in (HOOKS, PROXY):
        with open(f"{directory}/{name}.ext", "w", encoding="ascii") as f:
            f.write(f"subjectAltName=DNS:{name}\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", name + ".key", "-out", name + ".csr", "-subj", "/CN=" + name)
        openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                "-out", name + ".pem", "-days", "2", "-extfile", name + ".ext")
    mount_over(BUNDLE, directory + "/ca.pem")


class SecureReceiver(Receiver):
    """Shows the certificate of `shows`; notes the names in the requests for one."""

    def __init__(self, directory):
        super().__init__()
        self.directory, self.shows, self.names = directory, HOOKS, []

    def wrap(self, conn):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        base = f"{self.directory}/{self.shows}"
        context.load_cert_chain(base + ".pem", base + ".key")
        context.sni_callback = lambda _conn, name, _context: self.names.append(name)
        return context.wrap_socket(conn, server_side=True)

    def listen(self):
        super().listen()
        plain = self.server.get_request

        def get_request():
            conn, address = plain()
            return self.wrap(conn), address  # a client's refusal raises OSError

        self.server.get_request = get_request


class Proxy(threading.Thread):
    """Takes CONNECT to any name and port, and leads to that port of this machine."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.targets = []

    def run(self):
        while True:
            try:
                conn, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def serve(self, conn):
        head = b""
        while b"\r\n\r\n" not in head:
            head += conn.recv(4096)
        target = head.split()[1].decode()
        self.targets.append(target)
        with conn, socket.create_connection(("127.0.0.1", int(target.split(":")[1]))) as out:
            conn.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            back = threading.Thread(target=self.copy, args=(out, conn), daemon=True)
            back.start()
            self.copy(conn, out)
            back.join()

    @staticmethod
    def copy(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def end(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.join()


@pytest.mark.namespaces
@pytest.mark.forked  # into a network of its own
def test_certificate_has_to_be_of_the_name_in_the_url():
    with contextlib.ExitStack() as stack:
        world, _dns, receiver = set_up(stack, PATIENT)
        make_certificates(world.dir)
        receiver = SecureReceiver(world.dir)
        stack.callback(receiver.close)
        receiver.shows = PROXY
        receiver.listen()
        configure(world, f"https://{HOOKS}:{receiver.port}/hook")
        world.start()
        incident = one_dies(world, "tls")
        wait_until(lambda: "certificate" in world.log(), "it is refused: " + world.log())
        expect(not receiver.posts, "nothing is told to a stranger")
        receiver.shows = HOOKS
        wait_until(lambda: receiver.count(incident), "the alert arrives: " + world.log())
        expect(set(receiver.names) == {HOOKS}, receiver.names)


@pytest.mark.namespaces
@pytest.mark.forked  # into a network of its own
def test_proxy_of_the_environment_leads_to_a_name_it_alone_knows():
    with contextlib.ExitStack() as stack:
        world, dns, receiver = set_up(stack, PATIENT)
        make_certificates(world.dir)
        receiver = SecureReceiver(world.dir)
        stack.callback(receiver.close)
        receiver.listen()
        proxy = Proxy()
        proxy.start()
        stack.callback(proxy.end)
        dns.unknown = {HOOKS}
        configure(world, f"https://{HOOKS}:{receiver.port}/hook")
        world.start(https_proxy=f"http://{PROXY}:{proxy.port}", no_proxy="localhost,10.0.0.0/8")
        incident = one_dies(world, "proxied")
        wait_until(lambda: receiver.count(incident), "the alert arrives: " + world.log())
        expect(set(proxy.targets) == {f"{HOOKS}:{receiver.port}"}, proxy.targets)
        expect(dns.names == {PROXY}, dns.names)
