#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A webhook's server in a process of its own: writes one alert a line.

usage: alert_receiver.py ADDRESS PORT FILE
"""
import http.server
import json
import sys


def receive(address, port, path):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with open(path, "ab") as f:
                f.write(json.dumps(json.loads(body)).encode() + b"\n")
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass
    with http.server.ThreadingHTTPServer((address, port), Handler) as server:
        open(path, "ab").close()  # listening
        server.serve_forever()


receive(sys.argv[1], int(sys.argv[2]), sys.argv[3])
