"""`tzoo serve`: its limits, its end, and what others can do to the one who runs it."""

import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import resource
import signal
import socket
import tempfile
import time
import unittest

import tiny_checkpoint
from serving import SLOW, Server, ServeTest
from tzoo_runner import run


class Access(ServeTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = tiny_checkpoint.write_checkpoint(os.path.join(folder.name, "tiny"), tokenizer=True, n_positions=4000)

    def serve(self, *args):
        server = Server("--model", self.model, *args)
        self.addCleanup(server.close)
        return server

    def test_pages_of_others(self):
        server = self.serve("--allow_origin", "http://friend.example")
        ask = lambda **headers: server.request("POST", "/v1/completions", {"prompt": "a"}, **headers)
        # DNS rebinding: the name of somebody else leads here.
        for host in ("evil.example", "evil.example:8080", "localhost.evil.example", "", "127.0.0.1.evil.example"):
            self.assert_refused(ask(Host=host), 403, "Host")
        for host in ("localhost", f"127.0.0.1:{server.port}", "LOCALHOST:1", "[::1]:80"):
            self.assertEqual(ask(Host=host)[0], 200)
        # CSRF: a page asks, or sends what needs no asking.
        for origin in ("http://evil.example", "null", f"http://127.0.0.1:{server.port + 1}", "https://friend.example"):
            self.assert_refused(ask(Origin=origin), 403, "allow_origin")
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
            self.assert_refused(ask(Content_Type=kind), 415, "application/json")
        own = f"http://127.0.0.1:{server.port}"
        status, _, headers = ask(Origin=own)
        self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (200, None))
        status, _, headers = ask(Origin="http://friend.example")
        self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (200, "http://friend.example"))
        status, _, headers = server.request("OPTIONS", "/v1/completions", Origin="http://friend.example")
        self.assertEqual((status, headers["Access-Control-Allow-Headers"]), (204, "Authorization, Content-Type, X-Api-Key, Anthropic-Version"))
        self.assert_refused(server.request("OPTIONS", "/v1/completions", Origin="http://evil.example"), 403)

    def test_key(self):
        server = self.serve("--api_key", "sesame")
        for key in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "sesame"}, {"Authorization": "Bearer sesamee"}):
            error = self.assert_refused(server.request("GET", "/v1/models", **key), 401)
            self.assertEqual(error["code"], "invalid_api_key")
        for scheme in ("Bearer", "bearer"):  # RFC 9110, section 11.1
            self.assertEqual(server.request("GET", "/v1/models", Authorization=f"{scheme} sesame")[0], 200)
        for key, status in [("sesame", 200), ("Sesame", 401), ("", 401), ("Bearer sesame", 401)]:
            self.assertEqual(server.request("GET", "/v1/models", X_Api_Key=key)[0], status)
        self.assertEqual(server.request("GET", "/health")[0], 200)
        self.assertNotIn("tiny", server.request("GET", "/")[1])
        self.assert_refused(server.request("GET", "/metrics"), 401)

    def test_a_key_that_no_list_of_processes_shows(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(folder, "key")
        with open(path, "w") as file:
            file.write("open sesame\n")
        serve = lambda *args, **environment: run("serve", "--model", self.model, *args, **environment)
        self.assert_one_error(serve("--api_key_file", path), 2, "--api_key_file", "without blanks")
        self.assert_one_error(serve("--api_key_file", folder), 1, "--api_key_file", "no regular file")
        self.assert_one_error(serve("--api_key_file", path, "--api_key", "a"), 2, "--api_key and --api_key_file")
        self.assert_one_error(serve("--api_key_file", path, "--no_api_key"), 2, "--no_api_key and --api_key_file")
        self.assert_one_error(serve(TZOO_API_KEY="\x01"), 2, "TZOO_API_KEY")
        with open(path, "w") as file:
            file.write("sesame\r\n")
        for mode, note in [(0o600, ""), (0o644, f"note: others can read {path}")]:
            os.chmod(path, mode)
            server = Server("--model", self.model, "--host", "0.0.0.0", "--api_key_file", path, TZOO_API_KEY="other")
            self.addCleanup(server.close)
            self.assertEqual(server.notes[:len(note) or None], note)
            with open(f"/proc/{server.process.pid}/cmdline") as line:
                self.assertNotIn("sesame", line.read())
            for key, status in [("sesame", 200), ("other", 401), ("", 401)]:
                self.assertEqual(server.request("GET", "/v1/models", Host="localhost", Authorization=f"Bearer {key}")[0], status)
        server = Server("--model", self.model, TZOO_API_KEY="other")
        self.addCleanup(server.close)
        for key, status in [("other", 200), ("sesame", 401)]:
            self.assertEqual(server.request("GET", "/v1/models", Authorization=f"Bearer {key}")[0], status)
        server = Server("--model", self.model, "--no_api_key", TZOO_API_KEY="other")
        self.addCleanup(server.close)
        self.assertEqual(server.request("GET", "/v1/models")[0], 200)

    def test_names_of_models(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        paths = [os.path.join(folder, name) for name in ("a/run/final", "b/run/final", "c/last", "d=e")]
        for path in paths:
            tiny_checkpoint.write_checkpoint(path, tokenizer=True)
        given = [*paths, "mine=" + paths[0]]
        server = Server(*[word for path in given for word in ("--model", path)])
        self.addCleanup(server.close)
        names = [model["id"] for model in json.loads(server.request("GET", "/v1/models")[1])["data"]]
        self.assertEqual(names, ["a/run/final", "b/run/final", "last", "d=e", "mine"])
        for name in names:
            self.assertEqual(json.loads(server.request("GET", "/v1/models/" + name)[1])["id"], name)
            self.assertEqual(server.post("/v1/completions", model=name, prompt="a", max_tokens=1)["model"], name)
        for given in ([paths[0], paths[0]], ["x=" + paths[0], "x=" + paths[1]], ["last=" + paths[0], paths[2]]):
            self.assert_one_error(run("serve", "--model", given[0], "--model", given[1]), 2, "two models are called", "NAME=DIR")
        self.assert_one_error(run("serve", "--model", "=" + paths[0]), 2, "NAME=DIR")

    def test_another_address_needs_a_key(self):
        self.assert_one_error(run("serve", "--model", self.model, "--host", "0.0.0.0"), 2, "--host 0.0.0.0", "--api_key")
        self.assert_one_error(
            run("serve", "--model", self.model, "--api_key", "a", "--no_api_key"), 2, "--no_api_key and --api_key"
        )
        server = self.serve("--host", "0.0.0.0", "--no_api_key")
        self.assertEqual(server.request("GET", "/v1/models", Host="127.0.0.1")[0], 200)
        self.assert_refused(server.request("GET", "/v1/models", Host="evil.example"), 403)

    def test_further_names(self):
        server = self.serve("--allow_host", "MyBox", "--allow_host", "other:8080")
        for host in ("mybox", "MYBOX:1", "other"):
            self.assertEqual(server.request("GET", "/v1/models", Host=host)[0], 200)
        self.assert_one_error(run("serve", "--model", self.model, "--allow_host", "a:b"), 2, "--allow_host a:b", "name of a host")
        for origin in ("*", "localhost:3000", "http://localhost:3000/", "http://a/b", "HTTP://a.example", "http://A.example", "http://a.example:80",
                       "https://a.example:443", "http://", "http://a b"):
            self.assert_one_error(run("serve", "--model", self.model, "--allow_origin", origin), 2, f"--allow_origin {origin}: expected an origin")

    def test_a_seed_for_requests_without_one(self):
        server = self.serve("--seed", 5)
        texts = {server.post("/v1/completions", prompt="a", max_tokens=30, **more)["choices"][0]["text"]
                 for more in ({}, {}, {"seed": 5})}
        self.assertEqual(len(texts), 1)

    def test_mistakes_at_the_beginning(self):
        self.assert_one_error(run("serve"), 2, "model")
        self.assert_one_error(run("serve", "--model", self.model + "/nothing"), 1, "nothing")
        server = self.serve()
        self.assert_one_error(run("serve", "--model", self.model, "--port", server.port), 1, str(server.port), "another program has the port")
        self.assert_one_error(run("serve", "--model", self.model, "--host", "203.0.113.9", "--no_api_key"), 1, "203.0.113.9",
                              "this machine does not have the address")
        self.assert_one_error(run("serve", "--model", self.model, "--port", 65536), 2, "--port")
        self.assert_refused(self.serve("--seconds", 0.04).request("POST", "/v1/completions", SLOW), 503, "longer than 0.04 seconds")
        self.assert_one_error(run("serve", "--model", self.model, "--context", 2**62), 2, "--context", str(2**62), "2147483647")


class Limits(ServeTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = tiny_checkpoint.write_checkpoint(os.path.join(folder.name, "tiny"), tokenizer=True, n_positions=4000)
        self.server = self.serve("--max_body_kb", 64, "--request_seconds", 2)

    def serve(self, *args):
        server = Server("--model", self.model, *args)
        self.addCleanup(server.close)
        return server

    def assert_alive(self):
        self.assertEqual(self.server.request("GET", "/health")[0], 200)

    def test_large_bodies_and_headers(self):
        head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        for length in (10**12, 65 << 10, -1, 2**64):
            answer = self.server.raw(f"{head}Content-Length: {length}\r\n\r\n{{".encode())
            self.assertRegex(answer, r"^HTTP/1.1 (413|400) ")
            self.assertIn('"error"', answer)
        self.assertIn(" 411 ", self.server.raw(f"{head}Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n".encode()))
        self.assertIn(" 411 ", self.server.raw(f"{head}\r\n".encode()))
        self.assertIn(" 415 ", self.server.raw(f"{head}Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{{}}".encode()))
        many = "".join(f"X-{i}: {'a' * 100}\r\n" for i in range(1000))
        self.assertRegex(self.server.raw(f"GET /health HTTP/1.1\r\nHost: localhost\r\n{many}\r\n".encode()), " 4(31|00) ")
        self.assertRegex(self.server.raw(b"GET /" + b"a" * 10000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"), " 414 ")
        self.assertRegex(self.server.raw(b"GET /health HTTP/1.1\r\nHost: a" + b"a" * 100000 + b"\r\n\r\n"), " 4\\d\\d ")
        self.assert_alive()

    def test_heads_that_others_may_read_in_another_way(self):
        body = b'{"prompt": "a", "max_tokens": 1}'
        head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
        length = b"Content-Length: %d\r\n" % len(body)
        self.assertIn(" 200 ", self.server.raw(head + length + b"\r\n" + body))
        for more, words in [
            (length + b"Content-Length: 3\r\n", "Content-Length is there more than once"),
            (length + length, "Content-Length is there more than once"),
            (length + b"Transfer-Encoding: chunked\r\n", "a Content-Length and a Transfer-Encoding"),
            (length + b"Host: evil.example\r\n", "Host is there more than once"),
            (length + b"Origin: http://localhost\r\nOrigin: null\r\n", "Origin is there more than once"),
            (length + b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n", "Authorization is there more than once"),
            (length + b"X-Api-Key: a\r\nX-Api-Key: b\r\n", "X-Api-Key is there more than once"),
            (b"Content-Length : %d\r\n" % len(body) + length, "a name that none may have"),
            (length + b" X: a\r\n", "a name that none may have"),
        ]:
            answer = self.server.raw(head + more + b"\r\n" + body)
            self.assertTrue(answer.startswith("HTTP/1.1 400 "), (more, answer))
            self.assertIn(words, answer)
            self.assertEqual(answer.count("HTTP/1.1 "), 1, answer)
        inner = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for more in (b"Content-Length: %d" % len(inner), b"Transfer-Encoding: chunked"):
            answer = self.server.raw(b"OPTIONS /v1/models HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n%s\r\n\r\n%s"
                                     % (more, inner))
            self.assertRegex(answer, "^HTTP/1.1 4")
            self.assertEqual(answer.count("HTTP/1.1 "), 1, answer)
        # Lines that end with LF alone: the library would pass over the first, and take the body for a request.
        answer = self.server.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 55\nX: a\r\n\r\n"
                                 b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX: 12345678\r\n\r\n")
        self.assertNotIn("HTTP/1.1 200 ", answer)
        self.assert_alive()

    def test_clients_of_http_1_0(self):
        body = b'{"prompt": "a", "max_tokens": 2, "stream": true}'
        for more in (b"", b"Connection: Keep-Alive\r\n"):  # they name no host and read no chunks
            answer = self.server.raw(b"POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s"
                                     % (more, len(body), body))
            self.assertRegex(answer, r"(?s)^HTTP/1.1 200 .*\r\n\r\ndata: \{.*data: \[DONE\]\n\n$")
            self.assertNotIn("chunked", answer)

    def test_other_chat_apis_of_clients_that_close_their_own_side(self):
        chat = tiny_checkpoint.write_checkpoint(self.model + "-chat", tokenizer=True, n_positions=4000)
        tiny_checkpoint.write_json(chat, "tokenizer_config.json", {"chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"})
        server = Server("--model", chat)
        self.addCleanup(server.close)
        for path, fields in (("/v1/messages", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 3800}),
                             ("/v1/responses", {"input": "a", "max_output_tokens": 3800})):
            body = json.dumps({"model": "tiny-chat", "temperature": 1, **fields}).encode()
            with socket.create_connection((server.host, server.port)) as client:
                client.sendall(b"POST %s HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (path.encode(), len(body), body))
                client.shutdown(socket.SHUT_WR)
                self.assertRegex(client.makefile().read(), "^HTTP/1.1 499 ")

    def test_without_a_thread_a_client_is_told_to_come_again(self):
        size = int(re.search(r"VmSize:\s+(\d+) kB", pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text())[1]) << 10
        resource.prlimit(self.server.process.pid, resource.RLIMIT_AS, (size + (4 << 20), resource.RLIM_INFINITY))
        statuses = [self.server.request("GET", "/health")[0] for _ in range(3)]
        resource.prlimit(self.server.process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        self.assertIn(503, statuses)
        self.assert_alive()

    def test_heads_in_another_form(self):
        """A target that names the host (RFC 9112, section 3.2.2), and empty lines before a request (2.2)."""
        for head, status in [(b"GET http://localhost/health HTTP/1.1\r\nHost: evil.example", 200),
                             (b"GET http://evil.example/health HTTP/1.1\r\nHost: localhost", 403),
                             (b"GET http://localhost HTTP/1.1\r\nHost: localhost", 200),
                             (b"\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost", 200)]:
            answer = self.server.raw(head + b"\r\nConnection: close\r\n\r\n")
            self.assertTrue(answer.startswith(f"HTTP/1.1 {status} "), (head, answer))

    def test_a_text_without_memory_ends_alone(self):
        wide = tiny_checkpoint.write_checkpoint(os.path.join(os.path.dirname(self.model), "wide"), tokenizer=True, n_positions=9000, n_embd=64)
        server = Server("--model", wide, "--context", 9000)  # its cache holds 4,096 tokens of a text, then twice as many
        self.addCleanup(server.close)
        with open(f"/proc/{server.process.pid}/statm") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (size + (200 << 20),) * 2)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            other = pool.submit(server.post, "/v1/completions", prompt="a", max_tokens=1000, temperature=0)
            self.wait_until(lambda: server.metric("tzoo_batch_rows") == 1)
            self.assert_refused(server.request("POST", "/v1/completions", {"prompt": "a" * 4200, "max_tokens": 4}), 503, "memory")
            self.assertFalse(other.done())
        self.assertEqual(other.result()["usage"]["completion_tokens"], 1000)

    def test_the_most_new_tokens_are_no_mistake_of_a_request_without_a_number(self):
        server = self.serve("--max_new_tokens", 8)
        self.assertLessEqual(server.post("/v1/completions", prompt="a")["usage"]["completion_tokens"], 8)

    def test_a_full_queue_of_jobs(self):
        server = self.serve("--queue", 1)
        body = {"input": ["a cat on a cat" * 4] * 1000}
        server.post("/v1/embeddings", input="a")  # loads what embeds
        with concurrent.futures.ThreadPoolExecutor(8) as clients:
            answers = list(clients.map(lambda _: server.request("POST", "/v1/embeddings", body), range(8)))
        self.assertEqual({status for status, *_ in answers}, {200, 429})
        self.assert_refused(next(answer for answer in answers if answer[0] == 429), 429, "too many requests wait")

    def test_garbage(self):
        for data in (b"\x00" * 100 + b"\r\n\r\n", b"hello\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
                     b"GET /health HTTP/9.9\r\n\r\n", b"GET /health HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
            self.assertRegex(self.server.raw(data), r"^(HTTP/1.1 4\d\d |$)", data)
        self.assert_alive()

    def test_a_request_that_trickles_in_is_cut_off(self):
        begin = time.monotonic()
        with socket.create_connection((self.server.host, self.server.port), timeout=30) as slow:
            slow.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
            answer = b""
            slow.settimeout(0.2)
            while time.monotonic() - begin < 20:
                try:
                    slow.sendall(b"a")
                    piece = slow.recv(4096)
                except TimeoutError:
                    continue
                except OSError:
                    break
                if not piece:
                    break
                answer += piece
        self.assertLess(time.monotonic() - begin, 20)
        self.assertIn(b" 408 ", answer)
        self.assert_alive()

    def test_connections_that_say_nothing_do_not_shut_others_out(self):
        server = self.serve("--connections", 5)
        silent = [socket.create_connection((server.host, server.port)) for _ in range(5)]
        self.wait_until(lambda: " 503 " in server.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        for connection in silent:
            connection.close()
        self.wait_until(lambda: " 200 " in server.raw(
            b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))

    def test_refused_connections_hold_up_nobody(self):
        server = self.serve("--connections", 1)
        with socket.create_connection((server.host, server.port)) as first:
            self.wait_until(lambda: server.raw(b"\r\n").startswith("HTTP/1.1 503 "))
            # They never close. Each is answered once the one before it is refused: 100 s at half a second each.
            begin = time.monotonic()
            refused = [socket.create_connection((server.host, server.port)) for _ in range(200)]
            for connection in refused:
                self.assertEqual(connection.recv(12), b"HTTP/1.1 503")
            self.assertLess(time.monotonic() - begin, 50)
            first.shutdown(socket.SHUT_RDWR)
            self.wait_until(lambda: server.request("GET", "/health")[0] == 200)
            for connection in refused:
                connection.close()

    def test_requests_of_one_connection(self):
        connection = self.server.connect()
        for _ in range(3):
            connection.request("GET", "/health")
            self.assertEqual(connection.getresponse().read(), b'{"status":"ok"}')
        connection.close()


class Ending(ServeTest):
    def test_a_file_that_becomes_shorter_ends_it_with_a_line(self):
        with tempfile.TemporaryDirectory() as folder:
            model = tiny_checkpoint.write_checkpoint(os.path.join(folder, "tiny"), tokenizer=True, n_embd=64)
            packed = os.path.join(folder, "packed")
            result = run("export", "--model", model, "--format", "packed", "--weights", "float32", "--output", packed)
            self.assertEqual(result.code, 0, result)
            server = Server("--model", packed)
            self.addCleanup(server.close)
            server.post("/v1/completions", prompt="a", max_tokens=2)
            weights = max((os.path.join(packed, name) for name in os.listdir(packed)), key=os.path.getsize)
            os.truncate(weights, 0)
            with self.assertRaises((OSError, http.client.HTTPException)):
                server.post("/v1/completions", prompt="a", max_tokens=2)
            self.assertEqual(server.process.wait(timeout=60), 1)
            self.assertEqual(server.process.stderr.read(),
                             f"error: {weights} became shorter while it was in use, or its disk failed; "
                             "replace a file by renaming a new one\n")

    def test_signals_end_it_well(self):
        with tempfile.TemporaryDirectory() as folder:
            model = tiny_checkpoint.write_checkpoint(folder, tokenizer=True, n_positions=4000)
            for number in (signal.SIGTERM, signal.SIGINT):
                self.assertEqual(Server("--model", model).close(number), 0)

    def test_half_a_request_does_not_hold_it_up(self):
        with tempfile.TemporaryDirectory() as folder:
            model = tiny_checkpoint.write_checkpoint(folder, tokenizer=True)
            server = Server("--model", model, "--request_seconds", 600)
            with socket.create_connection((server.host, server.port)) as client:
                client.sendall(b"GET /health HTTP/1.1\r\n")
                self.assertEqual(server.close(), 0)

    def test_a_stream_is_told_that_the_server_stops(self):
        with tempfile.TemporaryDirectory() as folder:
            model = tiny_checkpoint.write_checkpoint(folder, tokenizer=True, n_positions=4000)
            server = Server("--model", model)
            connection = server.connect()
            connection.request("POST", "/v1/completions", json.dumps({**SLOW, "stream": True}),
                               {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.readline()
            code = server.close()
            try:
                rest = answer.read().decode()
            except Exception as error:  # the last chunk may be missing
                rest = getattr(error, "partial", b"").decode()
            self.assertEqual(code, 0)
            self.assertIn("the server stops", rest)
            connection.close()


if __name__ == "__main__":
    unittest.main()
