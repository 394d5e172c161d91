"""A `tzoo serve` of a test, and requests to it with the standard library."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time

from tzoo_runner import PROGRAM, CommandTest

# A request that takes seconds.
SLOW = {"prompt": "a", "max_tokens": 3800, "temperature": 1, "seed": 1}


class Server:
    """Runs `tzoo serve` on a free port until close()."""

    def __init__(self, *args, **environment):
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--port", "0", "--threads", "2", *map(str, args)],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        self.notes = ""
        for line in self.process.stderr:
            if found := re.match(r"listening on http://(.*):(\d+) ", line):
                self.host, self.port = found[1].strip("[]"), int(found[2])
                return
            self.notes += line
        raise AssertionError(f"tzoo serve did not begin: {self.notes}")

    def close(self, signal_number=signal.SIGTERM):
        """The exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        code = self.process.wait(timeout=60)
        self.process.stderr.close()
        return code

    def connect(self, timeout=60):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def request(self, method, path, body=None, **headers):
        """(status, body, headers); a body that is no text is sent as JSON."""
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        if body is not None:
            headers.setdefault("Content_Type", "application/json")
        connection = self.connect()
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        data = answer.read().decode()
        connection.close()
        return answer.status, data, answer.headers

    def post(self, path, **fields):
        """The JSON of an answer that must be good."""
        status, data, _ = self.request("POST", path, fields)
        if status != 200:
            raise AssertionError(f"{path} {fields}: {status} {data}")
        return json.loads(data)

    def events(self, path, **fields):
        """The events of a stream, which must end with [DONE]."""
        status, data, headers = self.request("POST", path, {**fields, "stream": True})
        if status != 200 or not headers["Content-Type"].startswith("text/event-stream"):
            raise AssertionError(f"{path} {fields}: {status} {data}")
        lines = [line.removeprefix("data: ") for line in data.split("\n\n") if line]
        if lines[-1] != "[DONE]":
            raise AssertionError(data)
        return [json.loads(line) for line in lines[:-1]]

    def raw(self, data, timeout=30):
        """What the server answers to these bytes, until it closes the connection."""
        with socket.create_connection((self.host, self.port), timeout=timeout) as connection:
            answer = b""
            try:
                connection.sendall(data)
                while piece := connection.recv(65536):
                    answer += piece
            except (BrokenPipeError, ConnectionResetError):
                pass
            return answer.decode(errors="replace")

    def metric(self, name):
        data = self.request("GET", "/metrics")[1]
        return float(re.search(rf"^{re.escape(name)} (\S+)$", data, re.MULTILINE)[1])


class ServeTest(CommandTest):
    def assert_refused(self, answer, status, *words, param=None):
        code, data, _ = answer
        self.assertEqual(code, status, data)
        error = json.loads(data)["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        for word in words:
            self.assertIn(word, error["message"])
        if param is not None:
            self.assertEqual(error["param"], param)
        return error

    def wait_until(self, holds):
        for _ in range(600):
            if holds():
                return
            time.sleep(0.05)
        self.fail("it did not come to that")
