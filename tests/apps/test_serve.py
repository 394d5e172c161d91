"""`tzoo serve`: its API, and what happens to requests that wait, fail or are left."""

import base64
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import socket
import tempfile
import threading
import unittest

import tiny_checkpoint
from serving import SLOW, Server, ServeTest
from tzoo_runner import run

PROMPT = "the cat sat on"


class Api(ServeTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = tiny_checkpoint.write_checkpoint(
            os.path.join(cls.folder.name, "tiny"), tokenizer=True, n_positions=4000, generation={"eos_token_id": 3}
        )
        cls.second = tiny_checkpoint.write_checkpoint(os.path.join(cls.folder.name, "second"), tokenizer=True, seed=2)
        cls.server = Server("--model", cls.model, "--model", cls.second, "--parallel", 4, "--queue", 3)

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        cls.folder.cleanup()

    def generated(self, model, *flags, prompt=PROMPT):
        """What `tzoo generate` writes."""
        printed = self.succeed(
            "generate", "--model", model, "--prompt", prompt, "--json", "--threads", 2, "--generation_defaults", "file", *flags
        )
        return json.loads(printed)

    def refused(self, status, *words, param=None, path="/v1/completions", **fields):
        return self.assert_refused(self.server.request("POST", path, fields), status, *words, param=param)

    def test_ids_are_those_of_generate(self):
        cases = [
            ({"temperature": 0}, ["--temperature", 0]),
            ({"temperature": 0.9, "top_k": 9, "top_p": 0.9, "min_p": 0.01, "seed": 5},
             ["--temperature", 0.9, "--top_k", 9, "--top_p", 0.9, "--min_p", 0.01, "--seed", 5]),
            ({"presence_penalty": 0.5, "frequency_penalty": 0.3, "seed": 6, "temperature": 1},
             ["--presence_penalty", 0.5, "--frequency_penalty", 0.3, "--seed", 6, "--temperature", 1, "--top_k", 0]),
            ({"repetition_penalty": 1.5, "no_repeat_ngram_size": 2, "temperature": 0},
             ["--repetition_penalty", 1.5, "--no_repeat_ngram_size", 2, "--temperature", 0]),
            ({"logit_bias": {"4": 50, "5": -100}, "temperature": 1, "seed": 2},
             ["--logit_bias", '{"4": 50, "5": -100}', "--temperature", 1, "--seed", 2, "--top_k", 0]),
            ({"regex": "(cat|dog)+", "temperature": 1, "seed": 3},
             ["--regex", "(cat|dog)+", "--temperature", 1, "--seed", 3, "--top_k", 0]),
            ({"temperature": 1000, "seed": 7}, ["--temperature", 1000, "--seed", 7, "--top_k", 0]),
            ({"temperature": 0.9, "seed": 7, "top_k": -1}, ["--temperature", 0.9, "--seed", 7, "--top_k", 0]),
            ({"repetition_penalty": 0.001, "temperature": 0}, ["--repetition_penalty", 0.001, "--temperature", 0]),
            ({"stop": ["q", "zz"], "temperature": 1, "seed": 4},
             ["--stop", "q", "--stop", "zz", "--temperature", 1, "--seed", 4, "--top_k", 0]),
            ({"n": 3, "temperature": 1, "seed": 8},
             ["--num_samples", 3, "--temperature", 1, "--seed", 8, "--top_k", 0]),
            ({"n": 9, "temperature": 1, "seed": 9},  # more than there are rows
             ["--num_samples", 9, "--temperature", 1, "--seed", 9, "--top_k", 0]),
        ]
        expected = [self.generated(self.model, *flags, "--max_new_tokens", 40)["text"] for _, flags in cases]
        found = [None] * len(cases)

        def ask(i):
            fields = {"prompt": PROMPT, "max_tokens": 40, **cases[i][0]}
            whole = self.server.post("/v1/completions", **fields)
            texts = [choice["text"] for choice in whole["choices"]]
            streamed = [""] * len(texts)
            for event in self.server.events("/v1/completions", **fields):
                for choice in event["choices"]:
                    streamed[choice["index"]] += choice["text"]
            found[i] = texts if texts == streamed else (texts, streamed)

        # All at once and in turns of two: they share batches of every kind, and none waits in vain.
        for half in (range(0, 3), range(3, 6), range(6, 9), range(9, 12)):
            threads = [threading.Thread(target=ask, args=(i,)) for i in half]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for i, (fields, _) in enumerate(cases):
            self.assertEqual(found[i], expected[i], fields)

    def test_a_stop_string_that_several_tokens_write(self):
        whole = self.generated(self.model, "--temperature", 0, "--max_new_tokens", 30, "--logit_bias", '{"3": -100}')["text"][0]
        stop = whole[4:7]
        fields = {"prompt": PROMPT, "max_tokens": 30, "temperature": 0, "logit_bias": {"3": -100}, "stop": stop}
        expected = whole[:whole.index(stop)]
        found = self.server.post("/v1/completions", **fields)["choices"][0]
        self.assertEqual((found["text"], found["finish_reason"]), (expected, "stop"))
        streamed = [event["choices"][0]["text"] for event in self.server.events("/v1/completions", **fields)]
        self.assertEqual("".join(streamed), expected)

    def test_prompts(self):
        ids = json.loads(run("tokenizer", "encode", "--model", self.model, "--json", stdin=PROMPT + "\n").out)
        one = self.server.post("/v1/completions", prompt=PROMPT, temperature=0)["choices"][0]["text"]
        other = self.server.post("/v1/completions", prompt="a dog", temperature=0)["choices"][0]["text"]
        for prompt, texts in [(ids, [one]), ([PROMPT, "a dog"], [one, other]), ([ids, ids], [one, one])]:
            found = self.server.post("/v1/completions", prompt=prompt, temperature=0)
            self.assertEqual([choice["text"] for choice in found["choices"]], texts)
        usage = found["usage"]
        self.assertEqual(usage["prompt_tokens"], 2 * len(ids))
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
        found = self.server.post("/v1/completions", prompt=PROMPT, temperature=0, echo=True)
        self.assertEqual(found["choices"][0]["text"], PROMPT + one)

    def test_what_a_prompt_before_it_has_read_is_not_read_again(self):
        prompt = f"{PROMPT} {PROMPT} a cat"
        ids = json.loads(run("tokenizer", "encode", "--model", self.model, "--json", stdin=prompt + "\n").out)
        first = self.server.post("/v1/completions", prompt=prompt, temperature=0, max_tokens=9)
        before = self.server.metric("tzoo_prompt_tokens_cached_total")
        again = self.server.post("/v1/completions", prompt=prompt, temperature=0, max_tokens=9)
        self.assertEqual(again["choices"], first["choices"])
        self.assertEqual(again["usage"]["prompt_tokens"], len(ids))
        self.assertEqual(again["usage"]["prompt_tokens_details"], {"cached_tokens": len(ids) - 1})
        self.assertEqual(self.server.metric("tzoo_prompt_tokens_cached_total") - before, len(ids) - 1)

    def test_finish_reason(self):
        stopped = self.server.post("/v1/completions", prompt=PROMPT, regex="(dog)", max_tokens=20)
        self.assertEqual((stopped["choices"][0]["text"], stopped["choices"][0]["finish_reason"]), ("dog", "stop"))
        free = self.server.post("/v1/completions", prompt=PROMPT, regex="(dog){9}", max_tokens=-1)["choices"][0]
        self.assertEqual((free["text"], free["finish_reason"]), ("dog" * 9, "stop"))
        cut = self.server.post("/v1/completions", prompt=PROMPT, logit_bias={"4": 100}, max_tokens=7, temperature=0)
        self.assertEqual(cut["choices"][0]["finish_reason"], "length")
        self.assertEqual(cut["usage"]["completion_tokens"], 7)

    def test_a_constraint_of_many_requests_is_built_once(self):
        count = lambda: self.server.metric("tzoo_constraints_built_total")
        before = count()
        ask = lambda _: self.server.post("/v1/completions", prompt=PROMPT, regex="(cat|dog){1,300}", max_tokens=4)
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            texts = [answer["choices"][0]["text"] for answer in pool.map(ask, range(8))]
        for text in texts:
            self.assertRegex(text, "^(cat|dog)+$")
        self.assertEqual(count() - before, 1)
        for word in ("dog", "dogdog", "dog"):
            text = self.server.post("/v1/completions", prompt=PROMPT, regex=f"({word})")["choices"][0]["text"]
            self.assertEqual(text, word)
        self.assertEqual(count() - before, 3)

    def test_logprobs(self):
        found = self.server.post(
            "/v1/completions", prompt="the", max_tokens=3, temperature=0, logprobs=2, echo=True, logit_bias={"3": -100}
        )["choices"][0]["logprobs"]
        self.assertEqual(found["tokens"][:3], ["t", "h", "e"])
        self.assertEqual(len(found["tokens"]), 6)
        self.assertIsNone(found["token_logprobs"][0])
        self.assertEqual(found["text_offset"], list(range(6)))
        for token, value, best in list(zip(found["tokens"], found["token_logprobs"], found["top_logprobs"]))[1:]:
            self.assertEqual(best[token], value)  # as at OpenAI, though it may not be one of the two likeliest
            self.assertLessEqual(value, max(best.values()))
            self.assertLess(value, 0)
            self.assertIn(len(best), (2, 3))
        scored = self.server.post("/v1/completions", prompt="the", max_tokens=0, logprobs=0, echo=True)["choices"][0]
        self.assertEqual(scored["text"], "the")
        self.assertEqual(scored["logprobs"]["token_logprobs"], found["token_logprobs"][:3])

    def test_the_best_of_several_texts(self):
        """OpenAI: those with the highest log probability per token."""
        fields = {"prompt": [PROMPT, "a dog"], "max_tokens": 12, "temperature": 1, "seed": 3}
        every = self.server.post("/v1/completions", **fields, n=6, logprobs=0)

        def mean(choice):
            values = choice["logprobs"]["token_logprobs"]
            return sum(values) / len(values)

        for n in (1, 2):
            expected = [choice for i in (0, 6) for choice in sorted(every["choices"][i:i + 6], key=mean, reverse=True)[:n]]
            found = self.server.post("/v1/completions", **fields, n=n, best_of=6)
            self.assertEqual([(choice["index"], choice["text"]) for choice in found["choices"]],
                             [(i, choice["text"]) for i, choice in enumerate(expected)])
            self.assertEqual({choice["logprobs"] for choice in found["choices"]}, {None})
            self.assertEqual(found["usage"]["completion_tokens"], every["usage"]["completion_tokens"])
        found = self.server.post("/v1/completions", **fields, best_of=6, logprobs=0)["choices"]
        self.assertEqual(list(map(mean, found)), [max(map(mean, every["choices"][i:i + 6])) for i in (0, 6)])

    def test_models(self):
        listed = json.loads(self.server.request("GET", "/v1/models")[1])
        self.assertEqual([model["id"] for model in listed["data"]], ["tiny", "second"])
        self.assertEqual({(model["family"], model["head"]) for model in listed["data"]}, {("gpt2", "causal-lm")})
        self.assertEqual(json.loads(self.server.request("GET", "/v1/models/second")[1])["id"], "second")
        self.assert_refused(self.server.request("GET", "/v1/models/third"), 404, "no such model")
        expected = self.generated(self.second, "--temperature", 0, "--max_new_tokens", 5)["text"]
        found = self.server.post("/v1/completions", model="second", prompt=PROMPT, temperature=0, max_tokens=5)
        self.assertEqual([found["choices"][0]["text"]], expected)
        self.assertEqual(self.refused(404, "'third'", model="third", prompt="a")["code"], "model_not_found")

    def test_tokens(self):
        ids = self.server.post("/tokenize", content=PROMPT)["tokens"]
        self.assertEqual(self.server.post("/detokenize", tokens=ids)["content"], PROMPT)
        pieces = self.server.post("/tokenize", content="é世", with_pieces=True)["tokens"]
        self.assertEqual([piece["piece"] for piece in pieces], ["é", "世"])
        self.refused(400, "tokens", path="/detokenize", tokens=[99999])
        self.refused(400, "content", path="/tokenize", content=7)

    def test_embeddings_of_a_decoder(self):
        embed = lambda model, text: json.loads(self.succeed("embed", "--model", model, "--text", text, "--threads", 2))["embedding"]
        for name, model in [("tiny", self.model), ("second", self.second)]:
            found = self.server.post("/v1/embeddings", model=name, input=[PROMPT, "a"])
            for entry, text in zip(found["data"], [PROMPT, "a"], strict=True):
                for actual, expected in zip(entry["embedding"], embed(model, text), strict=True):
                    self.assertAlmostEqual(actual, expected, places=6)
            self.assertEqual(found["usage"], {"prompt_tokens": len(PROMPT) + 1, "total_tokens": len(PROMPT) + 1})
        # Ids as they are: of the characters in the order of the vocabulary.
        ids = self.server.post("/tokenize", content=PROMPT)["tokens"]
        vector = lambda **fields: self.server.post("/v1/embeddings", **fields)["data"]
        text = vector(input=PROMPT)
        self.assertEqual(vector(input=ids), text)
        self.assertEqual(vector(input=[ids[:1], ids])[1]["embedding"], text[0]["embedding"])
        self.assertEqual(self.server.post("/v1/embeddings", input=[[1, 2], [3]])["usage"]["prompt_tokens"], 3)
        refused = lambda *words, **fields: self.refused(400, *words, path="/v1/embeddings", param="input", **fields)
        for given in ([1, "a"], [[1], "a"], ["a", [1]], [[]], [], [-1], [1.5], {"a": 1}, [[1], 2]):
            refused("'input'", input=given)
        refused("999", input=[999])
        # A text beyond the model's positions: the server counts, or cuts if it is asked to.
        long = PROMPT * 3
        error = refused(f"{len(long)} tokens", "reads 24", "'truncate': true", model="second", input=["a", long])
        self.assertEqual(error["code"], "context_length_exceeded")
        refused("25 tokens", "reads 24", model="second", input=[1] * 25)
        cut = self.server.post("/v1/embeddings", model="second", input=["a", long], truncate=True)
        self.assertEqual(cut["usage"]["prompt_tokens"], 25)
        for actual, expected in zip(cut["data"][1]["embedding"], embed(self.second, long[:24]), strict=True):
            self.assertAlmostEqual(actual, expected, places=6)
        self.assertEqual(self.server.post("/v1/embeddings", model="second", input=[1] * 25, truncate=True)["usage"]["total_tokens"], 24)

    def test_misspelt_fields_are_named_with_the_right_ones(self):
        for path, field, wrong in [("/v1/completions", "prompt", "promt"), ("/v1/embeddings", "input", "inputs"),
                                   ("/tokenize", "content", "contents"), ("/detokenize", "tokens", "token")]:
            self.refused(400, f"'{wrong}' is not supported here; did you mean '{field}'?", path=path, param=wrong, **{wrong: "a"})
        self.refused(400, "'temprature' is not supported here; did you mean 'temperature'?", prompt="a", temprature=1)
        self.refused(400, "'prompt' is missing", temperature=1)

    def test_fields_that_are_refused(self):
        for fields, words in [
            ({}, ["prompt", "missing"]),
            ({"prompt": ""}, ["prompt", "empty"]),
            ({"prompt": []}, ["prompt", "empty"]),
            ({"prompt": {"a": 1}}, ["prompt"]),
            ({"prompt": [1, "a"]}, ["prompt"]),
            ({"prompt": [[1], [-2]]}, ["prompt"]),
            ({"prompt": [10**12]}, ["prompt"]),
            ({"prompt": [99999]}, ["prompt", "99999"]),
            ({"prompt": "a", "temperature": -1}, ["temperature", "-1"]),
            ({"prompt": "a", "temperature": "hot"}, ["temperature", "hot"]),
            ({"prompt": "a", "temperature": True}, ["temperature"]),
            ({"prompt": "a", "top_p": 2}, ["top_p"]),
            ({"prompt": "a", "typical_p": 0}, ["'typical_p'", "above 0.0 and at most 1.0"]),
            ({"prompt": "a", "n": 10**9}, ["'n'", "1 to 128"]),
            ({"prompt": "a", "n": 0}, ["'n'"]),
            ({"prompt": "a", "n": 1.5}, ["'n'"]),
            ({"prompt": "a", "n": 2**64 - 1}, ["'n'"]),
            ({"prompt": "a", "seed": -2}, ["seed"]),
            ({"prompt": "a", "max_tokens": 0}, ["max_tokens"]),
            ({"prompt": "a", "max_tokens": -5}, ["max_tokens"]),
            ({"prompt": "a", "logprobs": 1000}, ["logprobs"]),
            ({"prompt": "a", "stop": [1]}, ["stop"]),
            ({"prompt": "a", "stop": ["x"] * 100}, ["stop", "16"]),
            ({"prompt": "a", "logit_bias": {"99999": 1}}, ["logit_bias", "99999"]),
            ({"prompt": "a", "logit_bias": {"1": 1000}}, ["logit_bias"]),
            ({"prompt": "a", "logit_bias": {"7": 1, "007": 2}}, ["logit_bias", "'007'"]),
            ({"prompt": "a", "logit_bias": [1]}, ["logit_bias"]),
            ({"prompt": "a", "regex": "("}, ["regex"]),
            ({"prompt": "a", "json_schema": {"type": "nothing"}}, ["json_schema"]),
            ({"prompt": "a", "regex": "a", "json_schema": {}}, ["regex", "only one"]),
            ({"prompt": "a", "regex": "b{50}", "max_tokens": 5}, ["50"]),
            ({"prompt": "a", "response_format": {"type": "json_objects"}}, ["response_format", "json_object"]),
            ({"prompt": "a", "stream": 1}, ["stream"]),
            ({"prompt": "a", "stream_options": {"include_usage": True}}, ["stream_options"]),
            ({"prompt": "a", "best_of": 2, "n": 3}, ["'best_of' must be at least 'n'"]),
            ({"prompt": "a", "best_of": 3, "stream": True}, ["'best_of'", "streamed"]),
            ({"prompt": "a", "suffix": "b"}, ["suffix"]),
            ({"prompt": "a", "num_beams": 4}, ["num_beams", "not supported"]),
            ({"prompt": "a", "model": 7}, ["model"]),
        ]:
            with self.subTest(fields=fields):
                error = self.refused(404 if fields.get("model") == "x" else 400, *words, **fields)
                self.assertEqual(error["type"], "invalid_request_error")
        error = self.refused(400, "4000", prompt="a", max_tokens=4001)
        self.assertEqual((error["param"], error["code"]), ("max_tokens", "context_length_exceeded"))
        self.refused(400, "takes 60 tokens, more than the 3 that 'max_tokens' leaves", param="max_tokens",
                     prompt="a", regex="(bcd){20}", max_tokens=3)

    def test_looking_inside_names_the_field(self):
        for field, value, words in [
            ("heads", ["99.0"], "'heads' 99.0: expected a layer from 0 to"),
            ("sublayers", ["0.head"], "'sublayers' 0.head: expected attention, cross_attention or feed_forward, got 'head'"),
            ("stack", "encoder", "'stack' encoder: the model has none"),
            ("position", 99, "'position' 99: there are 5 tokens, numbered from 0 to 4"),
            ("text_pair", "b", "'text_pair': only an encoder reads two texts, and this model is not one"),
        ]:
            with self.subTest(field=field):
                self.refused(400, words, path="/look", param=field, text="a cab", **{field: value})

    def test_others_take_turns_with_a_look(self):
        # The means of a site, the pass with interventions and the plain one beside it are a turn each.
        before = self.server.metric("tzoo_job_pieces_total")
        self.server.post("/look", text="a cab", heads=["0.0"], **{"with": "mean"})
        self.assertGreaterEqual(self.server.metric("tzoo_job_pieces_total") - before, 3)

    def test_fields_that_change_nothing(self):
        plain = self.server.post("/v1/completions", prompt="a", temperature=0)["choices"]
        more = {"user": "me", "metadata": {"a": "b"}, "store": True, "suffix": None, "best_of": None, "logit_bias": None,
                "seed": -1, "stop": ""}
        self.assertEqual(self.server.post("/v1/completions", prompt="a", temperature=0, **more)["choices"], plain)

    def test_whole_numbers_with_a_point_are_integers(self):
        plain = self.server.post("/v1/completions", prompt=[4, 5], max_tokens=3, seed=5, top_k=9)["choices"]
        found = self.server.post("/v1/completions", prompt=[4.0, 5.0], max_tokens=3.0, seed=5.0, top_k=9.0)["choices"]
        self.assertEqual(found, plain)
        self.assertEqual(self.server.post("/detokenize", tokens=[4.0]), self.server.post("/detokenize", tokens=[4]))
        self.refused(400, "'max_tokens'", prompt="a", max_tokens=1e300)

    def test_bodies_that_are_refused(self):
        for body, words in [
            ("", ["byte"]),
            ("{", ["byte 2"]),
            ("[1]", ["object"]),
            ('{"prompt": "a", "temperature": NaN}', ["'temperature'"]),
            ('{"prompt": "a", "top_p": 1e999}', ["'top_p'"]),
            ('{"prompt": "\\ud800"}', ["'prompt'"]),
            (b'{"prompt": "\xff"}', ["UTF-8", "byte 12"]),
            ("[" * 100000, ["JSON"]),
            ('{"prompt":' + "[" * 5000, ["prompt"]),
        ]:
            with self.subTest(body=body[:40]):
                self.assert_refused(self.server.request("POST", "/v1/completions", body), 400, *words)

    def test_seeds_differ_unless_given(self):
        texts = {self.server.post("/v1/completions", prompt="a", max_tokens=30)["choices"][0]["text"] for _ in range(9)}
        self.assertGreater(len(texts), 3)  # some may end at once, and are equal then

    def test_paths_and_methods(self):
        for path in ("/etc/passwd", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/v1/models/../../etc/passwd",
                     "//etc/passwd", "/v1", "/index.html", "/a%00b", "/v1/completions/"):
            self.assert_refused(self.server.request("GET", path), 404)
        self.assert_refused(self.server.request("GET", "/run"), 404, "--run")
        self.assert_refused(self.server.request("GET", "/v1/completions"), 405, "POST")
        self.assert_refused(self.server.request("POST", "/health", {}), 405, "GET")
        self.assert_refused(self.server.request("DELETE", "/v1/models/tiny"), 405, "DELETE")
        for path, kind in [("/v1/audio/transcriptions", "multipart/form-data; boundary=x"), ("/v1/audio/speech", "application/json"),
                           ("/v1/images/generations", "application/json"), ("/v1/images/edits", "multipart/form-data; boundary=x")]:
            self.assert_refused(self.server.request("POST", path, "{}", Content_Type=kind), 404, "no models of sounds or images")
        status, page, headers = self.server.request("GET", "/")
        self.assertEqual(status, 200)
        self.assertIn("<title>tzoo serve</title>", page)
        policy = headers["Content-Security-Policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        # The policy names the script and the style that stand in the page, and nothing is fetched.
        for tag in ("script", "style"):
            inside = re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[1]
            digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
            self.assertIn(f"{tag}-src 'sha256-{digest}'", policy)
        self.assertNotRegex(page, r"(src|href|url)\s*[=(]|https?://(?!www\.w3\.org/2000/svg\b)|@import")
        self.assertEqual(json.loads(self.server.request("GET", "/health")[1]), {"status": "ok"})

    def test_a_run_that_is_none_is_told_at_once(self):
        result = run("serve", "--model", self.model, "--run", self.folder.name, "--port", 0)
        self.assert_one_error(result, 1, "metrics.jsonl", self.folder.name)

    def test_a_model_without_the_head_is_refused_by_name(self):
        self.refused(400, "tiny", "chat template", path="/v1/chat/completions", messages=[{"role": "user", "content": "a"}])
        for path, fields in [("/fill-mask", {"text": "a"}), ("/classify", {"text": "a"}),
                             ("/answer", {"question": "a", "context": "b"}), ("/translate", {"text": "a"})]:
            self.refused(400, "tiny", "causal-lm", path=path, param="model", **fields)

    def open_stream(self):
        connection = self.server.connect()
        connection.request("POST", "/v1/completions", json.dumps({**SLOW, "stream": True, "logit_bias": {"3": -100}}),
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.readline()  # it has begun
        return connection, answer

    def test_a_client_that_leaves_stops_its_row(self):
        streams = [self.open_stream() for _ in range(2)]
        self.wait_until(lambda: self.server.metric("tzoo_batch_rows") == 2)
        for connection, answer in streams:
            answer.close()
            connection.close()
        self.wait_until(lambda: self.server.metric("tzoo_batch_rows") == 0)
        # One that waits for a whole answer, too.
        with socket.create_connection((self.server.host, self.server.port)) as waiting:
            waiting.sendall(self.head_and_body({**SLOW, "logit_bias": {"3": -100}}))
            self.wait_until(lambda: self.server.metric("tzoo_batch_rows") == 1)
            before = self.server.metric("tzoo_generated_tokens_total")
        self.wait_until(lambda: self.server.metric("tzoo_batch_rows") == 0)
        self.assertLess(self.server.metric("tzoo_generated_tokens_total") - before, 2000)  # of 3800

    @staticmethod
    def head_and_body(fields, version="1.1"):
        body = json.dumps(fields)
        return (f"POST /v1/completions HTTP/{version}\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}").encode()

    def test_a_client_that_closes_its_own_side_is_answered(self):
        fields = {**SLOW, "max_tokens": 1000, "logit_bias": {"3": -100}}
        text = self.server.post("/v1/completions", **fields)["choices"][0]["text"]
        for version, more, words in [("1.1", {}, "^(HTTP/1.1 100 Continue\n\n)?HTTP/1.1 200 OK"), ("1.1", {"stream": True}, "^HTTP/1.1 200 OK.*\\[DONE\\]"),
                                     ("1.0", {"max_tokens": SLOW["max_tokens"]}, " 499 .*the client closed")]:
            with socket.create_connection((self.server.host, self.server.port)) as waiting:
                waiting.sendall(self.head_and_body({**fields, **more}, version))
                self.wait_until(lambda: self.server.metric("tzoo_batch_rows") == 1)
                waiting.shutdown(socket.SHUT_WR)
                answer = waiting.makefile().read()
            self.assertRegex(answer, "(?s)" + words)
            if not more:
                self.assertEqual(json.loads(answer.splitlines()[-1])["choices"][0]["text"], text)

    def test_a_full_queue_says_so(self):
        streams = [self.open_stream() for _ in range(4)]  # all rows are taken
        waiting = []
        for _ in range(3):
            connection = self.server.connect()
            connection.request("POST", "/v1/completions", json.dumps({"prompt": "a"}), {"Content-Type": "application/json"})
            waiting.append(connection)
            self.wait_until(lambda: self.server.metric("tzoo_requests_waiting") == len(waiting))
        error = self.refused(429, "wait", prompt="a")
        self.assertEqual((error["type"], error["code"]), ("rate_limit_error", "queue_full"))
        for connection, answer in streams:
            answer.close()
            connection.close()
        for connection in waiting:  # and then they are answered
            self.assertEqual(connection.getresponse().status, 200)
            connection.close()


class PackedModels(ServeTest):
    def test_one_that_writes_and_one_that_embeds(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        writing = tiny_checkpoint.write_checkpoint(os.path.join(folder, "writing"), tokenizer=True)
        bare = tiny_checkpoint.write_checkpoint(os.path.join(folder, "bare"), tokenizer=True, architectures=["GPT2Model"])
        packed = ("--weights", "int8", "--cache", "int8")  # the cache is the first one's alone
        server = Server("--model", writing, "--model", bare, *packed)
        self.addCleanup(server.close)
        found = server.post("/v1/embeddings", model="bare", input=PROMPT)["data"][0]["embedding"]
        printed = self.succeed("embed", "--model", bare, "--text", PROMPT, "--weights", "int8", "--json", "--threads", 2)
        for actual, expected in zip(found, json.loads(printed)["embedding"], strict=True):
            self.assertAlmostEqual(actual, expected, places=6)
        text = server.post("/v1/completions", model="writing", prompt=PROMPT, max_tokens=8, temperature=0)["choices"][0]["text"]
        expected = json.loads(self.succeed("generate", "--model", writing, "--prompt", PROMPT, "--max_new_tokens", 8,
                                           "--temperature", 0, "--json", *packed))["text"]
        self.assertEqual([text], expected)


class KeptCache(ServeTest):
    def ask(self, *words, prompt, cached, notes=""):
        """Starts a server, asks it once, and gives the choices when it has ended."""
        server = Server("--model", self.model, "--cache_file", self.file, *words)
        found = server.post("/v1/completions", prompt=prompt, temperature=0, max_tokens=9, logprobs=2)
        self.assertEqual(server.close(), 0)
        self.assertEqual(found["usage"]["prompt_tokens_details"]["cached_tokens"], cached)
        self.assertIn(notes, server.notes)
        return found["choices"]

    def test_from_one_start_to_the_next(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.model = tiny_checkpoint.write_checkpoint(os.path.join(folder, "tiny"), tokenizer=True, n_positions=400)
        other = tiny_checkpoint.write_checkpoint(os.path.join(folder, "other"), tokenizer=True, n_positions=400, seed=2)
        self.file = os.path.join(self.model, "cache.bin")  # is not taken for a part of the model
        prompt, longer = "a cat on the mat " * 6, "a cat on the mat " * 7
        for words in (), ("--weights", "int8", "--cache", "int8"), ("--parallel", "1", "--cache_mb", "0", "--weights", "bfloat16"):
            with self.subTest(words):
                cold = self.ask(*words, prompt=prompt, cached=0)
                self.assertEqual(os.stat(self.file).st_mode & 0o777, 0o600)
                self.assertEqual(self.ask(*words, prompt=prompt, cached=len(prompt) - 1), cold)
                warm = self.ask(*words, prompt=longer, cached=len(prompt))
                self.assertEqual(self.ask("--context", "50", *words, prompt="a cat", cached=0)[0]["finish_reason"], "length")
                os.unlink(self.file)
                self.assertEqual(self.ask(*words, prompt=longer, cached=0), warm)
                os.unlink(self.file)

        self.ask(prompt=prompt, cached=0)
        with open(self.file, "rb") as file:
            kept = file.read()
        self.ask("--cache", "int8", prompt=prompt, cached=0, notes="is of another model, version or setting; it is not read, and replaced")
        for damaged, said in [(kept[:-9] + b"x" + kept[-8:], "is damaged; delete it"), (kept[:200], "is damaged; delete it")]:
            with open(self.file, "wb") as file:
                file.write(damaged)
            self.assert_one_error(run("serve", "--model", self.model, "--cache_file", self.file, "--port", 0), 1, said)
            with open(self.file, "rb") as file:
                self.assertEqual(file.read(), damaged)
        os.unlink(self.file)
        self.ask(prompt=prompt, cached=0)
        os.utime(os.path.join(self.model, "model.safetensors"))
        self.ask(prompt=prompt, cached=0, notes="is of another model")
        weights = os.path.join(self.model, "model.safetensors")
        times = os.stat(weights)
        shutil.copyfile(os.path.join(other, "model.safetensors"), weights)
        os.utime(weights, ns=(times.st_atime_ns, times.st_mtime_ns))
        self.ask(prompt=prompt, cached=0, notes="is of another model")
        for words, code, said in [(("--model", other), 2, "is of one model, and there are 2"), (("--cache_file", os.path.join(folder, "none/cache")), 1, "none/cache"),
                                  (("--weights", "modules"), 1, "--cache_file: this session holds nothing of rows that have ended"),
                                  (("--cache_file", os.path.join(self.model, "config.json")), 1, "holds no KV cache; expected another file")]:
            self.assert_one_error(run("serve", "--model", self.model, "--cache_file", self.file, "--port", 0, *words), code, said)
        bare = tiny_checkpoint.write_checkpoint(os.path.join(folder, "bare"), tokenizer=True, architectures=["GPT2Model"])
        self.assert_one_error(run("serve", "--model", bare, "--cache_file", self.file, "--port", 0), 2, "error: --cache_file: bare writes no texts")


class LaterParts(ServeTest):
    def test_what_is_read_later_is_of_the_same_files(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        model, other = (tiny_checkpoint.write_checkpoint(os.path.join(folder, name), tokenizer=True, seed=seed)
                        for name, seed in (("tiny", 1), ("other", 2)))
        server = Server("--model", model)
        self.addCleanup(server.close)
        os.replace(os.path.join(other, "model.safetensors"), os.path.join(model, "model.safetensors"))
        for path, fields in (("/v1/embeddings", {"input": "a"}), ("/look", {"text": "a"})):
            self.assert_refused(server.request("POST", path, fields), 400, "has other files than at the server's start")
        server.post("/v1/completions", prompt="a", max_tokens=1)

    def test_a_stop_text_with_the_space_that_a_text_loses(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        vocabulary = ["<unk>", "a", "b", "\u2581", "\u2581a", "\u2581b"]
        model = tiny_checkpoint.write_checkpoint(os.path.join(folder, "tiny"), vocab_size=len(vocabulary))
        spaces = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
        unknown = {"id": 0, "content": "<unk>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        tiny_checkpoint.write_json(model, "tokenizer.json", {
            "version": "1.0", "added_tokens": [unknown], "pre_tokenizer": spaces, "decoder": spaces,
            "model": {"type": "BPE", "unk_token": "<unk>", "vocab": {text: i for i, text in enumerate(vocabulary)},
                      "merges": [["\u2581", "a"], ["\u2581", "b"]]}})
        tiny_checkpoint.write_json(model, "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast",
                                                                    "chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"})
        server = Server("--model", model)
        self.addCleanup(server.close)
        for stop, text, reason in ((None, "b b b", "length"), (" b", "", "stop"), ("b b", "", "stop"), (" b b b b", "b b b", "length"),
                                   (" bb", "b b b", "length")):
            with self.subTest(stop=stop):
                found = server.post("/v1/chat/completions", messages=[{"role": "user", "content": "a"}], max_tokens=3, temperature=0,
                                    logit_bias={"5": 100}, **({"stop": stop} if stop else {}))["choices"][0]
                self.assertEqual((found["message"]["content"], found["finish_reason"]), (text, reason))


class SharedPasses(ServeTest):
    def test_texts_of_many_clients_share_passes(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        model = tiny_checkpoint.write_checkpoint(os.path.join(folder, "bare"), tokenizer=True, architectures=["GPT2Model"], n_positions=64)
        server = Server("--model", model)
        self.addCleanup(server.close)

        def embedded(texts):
            return [each["embedding"] for each in server.post("/v1/embeddings", input=texts)["data"]]

        texts = [PROMPT[:length] for length in range(1, len(PROMPT) + 1)]
        alone = [embedded(text)[0] for text in texts]
        before = server.metric("tzoo_text_passes_total")
        with concurrent.futures.ThreadPoolExecutor(len(texts) + 1) as clients:
            long = clients.submit(embedded, ["a cat on a cat" * 4] * 2048)  # the others wait behind its passes
            self.wait_until(lambda: server.metric("tzoo_text_passes_total") > before)
            found = list(clients.map(embedded, texts))
            self.assertEqual(len(long.result()), 2048)
        for (actual,), expected in zip(found, alone, strict=True):
            for ours, theirs in zip(actual, expected, strict=True):
                self.assertAlmostEqual(ours, theirs, places=6)
        self.assertLess(server.metric("tzoo_text_passes_total") - before, 2048 / 32 + len(texts))

    def test_long_texts_of_a_request_are_no_single_pass(self):
        """Others wait for 2048 tokens at most, or for one text that is longer."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        model = tiny_checkpoint.write_checkpoint(os.path.join(folder, "bare"), tokenizer=True, architectures=["GPT2Model"], n_positions=3000)
        server = Server("--model", model)
        self.addCleanup(server.close)
        for texts, passes in [(["a" * 512] * 32, 8), (["a" * 3000] * 2 + ["b"] * 31, 3), (["b"] * 33, 2)]:
            before = server.metric("tzoo_text_passes_total")
            answer = server.post("/v1/embeddings", input=texts)
            self.assertEqual(answer["usage"]["prompt_tokens"], sum(map(len, texts)))
            self.assertEqual(server.metric("tzoo_text_passes_total") - before, passes)


if __name__ == "__main__":
    unittest.main()
