# SPDX-License-Identifier: Apache-2.0
"""An HTTP server that takes alerts."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from ports import unused_port


class Receiver:
    """Takes alerts on a port of loopback. The port stays its own, also while it does not listen."""

    def __init__(self):
        self.keep = socket.socket()
        self.keep.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.port = unused_port()
        self.keep.bind(("127.0.0.1", self.port))
        self.posts = []  # (idempotency key, document)
        self.server = self.thread = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hook"

    def listen(self):
        posts = self.posts

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                posts.append((self.headers["Idempotency-Key"], json.loads(body)))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *args):  # pylint: disable=arguments-differ
                pass

        self.server = HTTPServer(("127.0.0.1", self.port), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def close(self):
        if self.server:
            self.server.shutdown()
            self.thread.join()
            self.server.server_close()
        self.server = None
        self.keep.close()

    def count(self, key):
        return sum(1 for k, _ in self.posts if k == key)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
