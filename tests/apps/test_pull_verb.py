"""tzoo pull against a server on this machine that speaks the hub's few paths."""

import hashlib
import http.server
import json
import os
import pathlib
import shutil
import tempfile
import threading
import unittest
import urllib.parse

from tiny_checkpoint import write_checkpoint
from tzoo_runner import CommandTest, run

COMMIT, NEWER = "0123456789abcdef0123456789abcdef01234567", "89abcdef0123456789abcdef0123456789abcdef"
CONFIG, WEIGHTS = b'{"model_type": "gpt2"}\n', bytes(range(256)) * 4000


def git_hash(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Hub(http.server.ThreadingHTTPServer):
    """Serves `files` of the repository owner/tiny; `faults` has an action for the next requests of a file."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {"config.json": CONFIG, "model.safetensors": WEIGHTS, "README.md": b"words", ".gitattributes": b"*",
                      "onnx/model.safetensors": b"of another program", "pytorch_model.bin": b"a pickle"}
        self.entries, self.commit, self.listed = None, COMMIT, None
        self.faults, self.requests, self.authorizations = {}, [], {}

    def url(self, host="127.0.0.1"):
        return f"http://{host}:{self.server_port}"

    def listing(self):
        entries = []
        for name, content in self.files.items():
            entry = {"rfilename": name, "size": len(content), "blobId": git_hash(content)}
            if name.endswith((".safetensors", ".bin")):
                entry["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
            entries.append(entry)
        return {"sha": self.commit, "siblings": self.entries or entries}


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, status, content=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        hub, path = self.server, self.path.split("?")[0]
        hub.requests.append((path, self.headers.get("Range")))
        hub.authorizations[path] = self.headers.get("Authorization")
        name = path.rsplit("/", 1)[-1] if path.startswith("/api/") else path.split("/", 5)[-1]
        action = hub.faults.get(name, []) and hub.faults[name].pop(0)
        if action:
            return action(self)
        if path.startswith("/api/models/owner/tiny/revision/"):
            return self.answer(200, json.dumps(hub.listing()).encode() if hub.listed is None else hub.listed)
        if path == "/api/datasets/owner/tiny/revision/refs%2fconvert%2fparquet":
            return self.answer(200, json.dumps(hub.listing()).encode())
        if path.startswith(f"/datasets/owner/tiny/resolve/{hub.commit}/"):
            return self.send(hub.files[urllib.parse.unquote(path.split("/", 6)[-1])])
        if path.startswith("/content/"):
            return self.send(hub.files[path.removeprefix("/content/")])
        if path.startswith(f"/owner/tiny/resolve/{hub.commit}/") and name in hub.files:
            return self.send(hub.files[name])
        return self.answer(404, X_Error_Message="Entry not found")

    def send(self, content):
        asked = self.headers.get("Range")
        if not asked:
            return self.answer(200, content)
        begin = int(asked.removeprefix("bytes=").rstrip("-"))
        return self.answer(206, content[begin:], Content_Range=f"bytes {begin}-{len(content) - 1}/{len(content)}")

    def send_part(self, count):
        """The headers of a whole answer and its first bytes; then the connection is cut."""
        content = WEIGHTS[int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").rstrip("-")):]
        begin = len(WEIGHTS) - len(content)
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(content)))
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(WEIGHTS) - 1}/{len(WEIGHTS)}")
        self.end_headers()
        self.wfile.write(content[:count])
        self.wfile.flush()
        self.connection.close()


class PullTest(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.cache = self.home / "hub/models--owner--tiny"
        self.hub = Hub()
        threading.Thread(target=self.hub.serve_forever, daemon=True).start()
        self.addCleanup(self.hub.server_close)
        self.addCleanup(self.hub.shutdown)

    def pull(self, name="owner/tiny", *words, **environment):
        return run("pull", name, *words, **{"HF_HOME": str(self.home), "HF_ENDPOINT": self.hub.url(), "HF_HUB_CACHE": "",
                                    "HF_TOKEN": "", "no_proxy": "*", **environment})

    def pulled(self, *words, **environment):
        result = self.pull(*words, **environment)
        self.assertEqual(result.code, 0, result)
        folder = pathlib.Path(result.out.strip())
        self.assertEqual(sorted(file.name for file in folder.iterdir()), ["config.json", "model.safetensors"])
        self.assertEqual((folder / "config.json").read_bytes(), CONFIG)
        self.assertEqual((folder / "model.safetensors").read_bytes(), self.hub.files["model.safetensors"])
        return folder

    def refused(self, *words, **environment):
        self.assert_one_error(self.pull(**environment), 1, *words)
        self.assertFalse((self.cache / "refs/main").exists())
        self.assertEqual([path for path in self.cache.glob("snapshots/*/*")], [])

    def bytes_of(self, file):
        return [asked for path, asked in self.hub.requests if path.endswith("/" + file)]

    def test_the_cache_is_laid_out_as_pythons_hub_does(self):
        folder = self.pulled()
        self.assertEqual(folder, self.cache / "snapshots" / COMMIT)
        self.assertEqual((self.cache / "refs/main").read_text(), COMMIT)
        weights = hashlib.sha256(WEIGHTS).hexdigest()
        self.assertEqual(sorted(path.name for path in (self.cache / "blobs").iterdir()), sorted([git_hash(CONFIG), weights]))
        self.assertEqual(os.readlink(folder / "model.safetensors"), f"../../blobs/{weights}")

    def test_chat_templates_are_fetched(self):
        names = ["chat_template.jinja", "additional_chat_templates/tool_use.jinja"]
        self.hub.files |= {name: name.encode() for name in names}
        folder = pathlib.Path(self.pull().out.strip())
        self.assertEqual([(folder / name).read_text() for name in names], names)

    def test_a_dataset(self):
        self.hub.files = {"data/train-0 of #1.parquet": b"rows", "data/validation.parquet": b"more", "a.jsonl.zst": b"packed", "b.txt": b"text",
                          "tiny.py": b"a script", "README.md": b"words", "config.json": CONFIG}
        name = "datasets/owner/tiny@refs/convert/parquet"
        def pulled(*words):
            result = self.pull(name, *words)
            self.assertEqual(result.code, 0, result)
            folder = pathlib.Path(result.out.strip())
            return folder, {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}

        folder, train = pulled("--include", "data/train-*", "--include", "*.txt")
        self.assertEqual(folder, self.home / "hub/datasets--owner--tiny/snapshots" / COMMIT)
        self.assertEqual(sorted(train), ["b.txt", "data/train-0 of #1.parquet"])
        read = {name: content for name, content in self.hub.files.items() if name.endswith((".parquet", ".zst", ".txt"))}
        self.assertEqual(pulled()[1], read)
        self.assertEqual((self.home / "hub/datasets--owner--tiny/refs/refs/convert/parquet").read_text(), COMMIT)
        self.assert_one_error(self.pull(name, "--include", "*.xlsx"), 1, "no .parquet, .jsonl, .tsv, .csv or .txt file that --include names")
        self.assert_one_error(self.pull("owner/tiny", "--include", "*.txt"), 2, "--include: only for datasets")
        self.assert_one_error(run("generate", "--model", "datasets/owner/tiny", "--prompt", "a", HF_HOME=str(self.home)), 1, "datasets/owner/tiny")

    def test_a_second_pull_fetches_only_what_has_changed(self):
        self.pulled()
        self.hub.requests.clear()
        self.pulled()
        self.assertEqual(self.bytes_of("model.safetensors") + self.bytes_of("config.json"), [])
        self.hub.commit, self.hub.files["model.safetensors"] = NEWER, b"other weights"
        self.assertEqual(self.pulled(), self.cache / "snapshots" / NEWER)
        self.assertEqual((len(self.bytes_of("model.safetensors")), self.bytes_of("config.json")), (1, []))
        self.assertTrue((self.cache / "snapshots" / COMMIT).is_dir())

    def test_a_cut_connection_is_continued(self):
        self.hub.faults["model.safetensors"] = [lambda handler: handler.send_part(300_000)] * 2
        self.pulled()
        begins = [int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0 for asked in self.bytes_of("model.safetensors")]
        self.assertEqual(begins, [0, 300_000, 600_000])

    def test_a_killed_pull_is_continued_by_the_next(self):
        blobs = self.cache / "blobs"
        blobs.mkdir(parents=True)
        partial = blobs / (hashlib.sha256(WEIGHTS).hexdigest() + ".incomplete")
        partial.write_bytes(WEIGHTS[:1000])
        self.pulled()
        self.assertEqual(self.bytes_of("model.safetensors"), ["bytes=1000-"])
        self.assertFalse(partial.exists())

    def test_a_pull_that_goes_on_needs_space_for_the_rest_alone(self):
        size = shutil.disk_usage(self.home).free + (1 << 30)
        self.hub.entries = [{"rfilename": "model.safetensors", "size": size, "lfs": {"sha256": "0" * 64}}]
        self.refused("are needed, and the disk has")
        with open(self.cache / "blobs" / ("0" * 64 + ".incomplete"), "wb") as partial:
            partial.truncate(size - 9)  # takes no space
        self.hub.faults["model.safetensors"] = [lambda handler: handler.answer(404)]
        self.refused("not found")

    def test_an_adapter(self):
        adapter = {"adapter_config.json": b'{"base_model_name_or_path": "owner/tiny"}', "adapter_model.safetensors": b"weights"}
        self.pulled()
        self.hub.files, self.hub.commit = adapter, NEWER
        folder = pathlib.Path(self.pull("owner/tiny@v2").out.strip())
        self.assertEqual({file.name: file.read_bytes() for file in folder.iterdir()}, adapter)
        # Its base model is found in the cache, too: the error is that of its own file.
        done = run("inspect", "--adapter", "owner/tiny@v2", HF_HOME=str(self.home), HF_HUB_CACHE="")
        self.assert_one_error(done, 1, "'peft_type' is absent")

    def test_a_server_without_ranges_sends_the_whole(self):
        self.hub.faults["model.safetensors"] = [lambda handler: handler.send_part(1000),
                                                lambda handler: handler.answer(200, WEIGHTS)]
        self.pulled()

    def test_wrong_bytes_are_not_kept(self):
        wrong = bytes(len(WEIGHTS))
        for content in (wrong, WEIGHTS + b"more"):
            self.hub.faults["model.safetensors"] = [lambda handler: handler.answer(200, content)]
            self.refused("model.safetensors", "differ from the hub's listing")
            self.assertEqual([path.stat().st_size for path in (self.cache / "blobs").glob("*.incomplete")], [0])
        self.pulled()

    def test_errors_of_the_server_say_what_to_do(self):
        listing = "main"
        for status, words in ((401, ["access denied", "HF_TOKEN"]), (403, ["access denied"]), (404, ["not found", "revision"])):
            self.hub.faults[listing] = [lambda handler, status=status: handler.answer(status, X_Error_Message="by request")]
            self.refused(*words, "by request")
        self.hub.faults[listing] = [lambda handler: handler.answer(401)]
        self.refused("does not give access", HF_TOKEN="hf_wrong")
        self.hub.faults[listing] = [lambda handler: handler.answer(429, Retry_After="100000")]
        self.refused("too many requests")

    def test_a_busy_server_is_asked_again(self):
        self.hub.faults["main"] = [lambda handler: handler.answer(429, Retry_After="1"), lambda handler: handler.answer(503)]
        self.pulled()

    def test_a_token_stays_with_the_first_host(self):
        elsewhere = Hub()
        threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
        self.addCleanup(elsewhere.server_close)
        self.addCleanup(elsewhere.shutdown)
        self.hub.faults["model.safetensors"] = [
            lambda handler: handler.answer(302, Location=elsewhere.url("localhost") + "/content/model.safetensors")]
        self.pulled(HF_TOKEN="hf_secret")
        self.assertEqual(set(self.hub.authorizations.values()), {"Bearer hf_secret"})
        self.assertEqual(elsewhere.authorizations, {"/content/model.safetensors": None})

    def test_the_stored_token_is_where_python_stores_it(self):
        caches = self.home / "caches"
        (caches / "huggingface").mkdir(parents=True)
        (caches / "huggingface/token").write_text("hf_stored\r\n")
        for number, places in enumerate((dict(HF_HOME="", XDG_CACHE_HOME=str(caches)), dict(HF_HOME="~/caches/huggingface", HOME=str(self.home)),
                                         dict(HUGGINGFACE_HUB_CACHE="~/hub", HF_HOME="~/caches/huggingface", HOME=str(self.home)))):
            self.hub.authorizations.clear()
            self.assertEqual(self.pull(**places).code, 0)
            self.assertEqual(set(self.hub.authorizations.values()), {"Bearer hf_stored"}, number)

    def test_endless_redirects_end(self):
        again = [lambda handler: handler.answer(302, Location=self.hub.url() + handler.path)] * 100
        self.hub.faults["main"] = again
        self.refused("redirects")

    def test_hostile_names_are_refused(self):
        for name in ("../../evil.json", "/etc/evil.json", "a/../../evil.json", "..\\evil.json", "", "1_a/../config.json"):
            self.hub.entries = [{"rfilename": name, "size": 1, "blobId": "0" * 40}]
            self.refused("is no name for a file")
        self.assertEqual(list(self.home.rglob("evil*")), [])

    def test_listings_that_are_none_are_refused(self):
        good = {"rfilename": "model.safetensors", "size": 3, "lfs": {"sha256": "0" * 64}}
        for listed in (b"", b"<html>", b"[]", b"{}", b'{"sha": "main", "siblings": []}', b'{"sha": 5, "siblings": {}}'):
            self.hub.listed = listed
            self.refused("expected the hub's description")
        for change in ({"size": -1}, {"size": "3"}, {"size": 1 << 62}, {"lfs": {"sha256": "../x"}}, {"lfs": {}}):
            self.hub.listed = json.dumps({"sha": COMMIT, "siblings": [{**good, **change}]}).encode()
            self.refused("has no size and hash")
        self.hub.listed = json.dumps({"sha": COMMIT, "siblings": [{"rfilename": "pytorch_model.bin"}]}).encode()
        self.refused("no model.safetensors")

    def test_names_that_are_none_are_refused(self):
        for name in ("", "..", "a/b/c", "../x", "owner/..", "owner/-x", "a--b", "owner/tiny@", "owner/tiny@../x", "a b"):
            self.assert_one_error(self.pull(name), 1, "is no model of the hub")
        self.assertEqual(self.hub.requests, [])

    def test_two_pulls_do_not_write_one_file(self):
        started, go_on = threading.Event(), threading.Event()

        def wait(handler):
            started.set()
            go_on.wait(60)
            handler.send(WEIGHTS)

        self.hub.faults["model.safetensors"] = [wait]
        first = threading.Thread(target=self.pulled)
        first.start()
        started.wait(60)
        second = self.pull()
        go_on.set()
        first.join()
        self.assert_one_error(second, 1, "another process is downloading")

    def test_a_pulled_model_is_found_by_its_name(self):
        checkpoint = self.home / "checkpoint"
        write_checkpoint(checkpoint)
        self.hub.files = {file.name: file.read_bytes() for file in checkpoint.iterdir()}
        ids = ["--input_ids", "[[1, 2]]", "--max_new_tokens", "4", "--temperature", "0"]
        places = {"HF_HOME": str(self.home), "HF_HUB_CACHE": ""}
        self.assert_one_error(run("generate", "--model", "owner/tiny", *ids, **places), 1, "tzoo pull owner/tiny")
        self.assertEqual(self.pull("owner/tiny@v1").code, 0)
        self.assert_one_error(run("generate", "--model", "owner/tiny", *ids, **places), 1, "tzoo pull owner/tiny")
        self.assertEqual(self.pull().code, 0)
        expected = run("generate", "--model", checkpoint, *ids)
        self.assertEqual(expected.code, 0, expected)
        for name in ("owner/tiny", "owner/tiny@v1", "owner/tiny@" + COMMIT):
            self.assertEqual(run("generate", "--model", name, *ids, **places).out, expected.out)
        self.assertIn("gpt2", self.succeed("inspect", "owner/tiny", **places))

    def test_files_of_weights_say_what_to_give(self):
        for name, words in (("model.safetensors", "give the directory"), ("model.bin", "Python pickle"), ("model.pt", "Python pickle")):
            (self.home / name).write_bytes(b"")
            result = run("generate", "--model", self.home / name, "--prompt", "a")
            self.assert_one_error(result, 1, words)

    def test_no_server(self):
        self.hub.shutdown()
        self.hub.server_close()
        self.refused("continues the download", HF_ENDPOINT="ftp://127.0.0.1")


if __name__ == "__main__":
    unittest.main()
