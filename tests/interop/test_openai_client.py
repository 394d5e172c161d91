"""tzoo serve as the `openai` package uses it, beside transformers: a GPT-2 that chats, a BERT with each head, a T5."""

import concurrent.futures
import json
import pathlib
import re
import select
import socket
import sys
import tempfile
import threading
import time
import unittest

import openai
import torch
import transformers

from text_models import TEXTS, byte_level, lines, shaken, sizes, wordpiece

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from serving import Server, ServeTest  # noqa: E402

CHATML = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
          "{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
MARKERS = ["<fim_prefix>", "<fim_suffix>", "<fim_middle>"]
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "and the beginning?"}]
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]


def save(model, tokenizer, directory):
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)


class OpenAiTest(ServeTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        torch.manual_seed(1)
        cls.tokenizer = byte_level(bos_token="<s>", eos_token="</s>")
        cls.tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
        cls.tokenizer.chat_template = CHATML
        cls.gpt = shaken(transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=len(cls.tokenizer), n_embd=32, n_layer=2, n_head=2, n_positions=300, bos_token_id=0, eos_token_id=2)))
        save(cls.gpt, cls.tokenizer, cls.folder / "gpt")
        cls.words = wordpiece()
        config = transformers.BertConfig(**sizes(cls.words))
        cls.bert = shaken(transformers.BertModel(config))
        save(cls.bert, cls.words, cls.folder / "bert")
        cls.labels = shaken(transformers.BertForSequenceClassification(config))
        save(cls.labels, cls.words, cls.folder / "labels")
        for name, kind in [("mask", transformers.BertForMaskedLM), ("answers", transformers.BertForQuestionAnswering)]:
            save(shaken(kind(config)), cls.words, cls.folder / name)
        cls.ranker = shaken(transformers.BertForSequenceClassification(transformers.BertConfig(**sizes(cls.words), num_labels=1)))
        save(cls.ranker, cls.words, cls.folder / "ranker")
        # As sentence-transformers 6 saves a CrossEncoder: a transformer without a Pooling.
        (cls.folder / "labels/modules.json").write_text(json.dumps(
            [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}]))
        (cls.folder / "labels/config_sentence_transformers.json").write_text('{"model_type": "CrossEncoder"}')
        t5 = transformers.T5Config(vocab_size=len(cls.words), d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2,
                                   decoder_start_token_id=0, eos_token_id=3, pad_token_id=0)
        writer = shaken(transformers.T5ForConditionalGeneration(t5))
        save(writer, cls.words, cls.folder / "t5")
        path = cls.folder / "t5/generation_config.json"  # which only counts with beams
        path.write_text(json.dumps(json.loads(path.read_text()) | {"length_penalty": -2.0, "early_stopping": True}))
        writer.generation_config.min_new_tokens = 4000
        save(writer, cls.words, cls.folder / "endless")
        coder = byte_level(bos_token="<s>", eos_token="</s>")
        coder.add_special_tokens({"additional_special_tokens": MARKERS})
        config = transformers.GPT2Config(vocab_size=len(coder), n_embd=32, n_layer=2, n_head=2, n_positions=300, bos_token_id=0, eos_token_id=2)
        save(shaken(transformers.GPT2LMHeadModel(config)), coder, cls.folder / "coder")
        models = [word for name in ("gpt", "bert", "mask", "labels", "ranker", "answers", "t5", "endless", "coder") for word in ("--model", cls.folder / name)]
        cls.server = Server(*models, "--api_key", "sesame", "--parallel", 4)
        cls.addClassCleanup(cls.server.close)
        cls.client = openai.OpenAI(base_url=f"http://127.0.0.1:{cls.server.port}/v1", api_key="sesame", max_retries=0)

    def post(self, path, **fields):
        status, data, _ = self.server.request("POST", path, fields, Authorization="Bearer sesame")
        self.assertEqual(status, 200, data)
        return json.loads(data)

    def continued(self, ids, count, ends=(2,)):
        """What transformers writes after these ids, and the logits of each new token."""
        done = self.gpt.generate(torch.tensor([ids]), max_new_tokens=count, do_sample=False, pad_token_id=0,
                                 eos_token_id=list(ends), output_logits=True, return_dict_in_generate=True)
        return done.sequences[0, len(ids):].tolist(), [row[0] for row in done.logits]

    def test_models(self):
        self.assertEqual([model.id for model in self.client.models.list()],
                         ["gpt", "bert", "mask", "labels", "ranker", "answers", "t5", "endless", "coder"])
        self.assertEqual(self.client.models.retrieve("gpt").id, "gpt")

    def pooled(self, text):
        with torch.no_grad():
            return self.bert(**self.words(text, return_tensors="pt")).last_hidden_state[0].mean(0)

    def test_gap(self):
        def filled(prompt, **fields):
            return self.client.completions.create(model="coder", prompt=prompt, max_tokens=20, temperature=0, **fields).choices[0].text

        before, after, gap = MARKERS
        expected = filled(f"{before}In the {after} of the earth{gap}")
        self.assertEqual(filled("In the ", suffix=" of the earth"), expected)
        self.assertEqual(filled(["In the "] * 2, suffix=" of the earth"), expected)
        self.assertNotEqual(filled("In the "), expected)
        self.assertEqual(filled("In the ", suffix=""), filled("In the "))
        for fields, said in [({"prompt": [5, 6], "suffix": "x"}, "needs a prompt that is a text"),
                             ({"prompt": "x", "suffix": "x", "echo": True}, "with 'echo'")]:
            with self.assertRaisesRegex(openai.BadRequestError, said):
                self.client.completions.create(model="coder", max_tokens=5, **fields)
        with self.assertRaisesRegex(openai.BadRequestError, "no markers of a gap"):
            self.client.completions.create(model="gpt", prompt="a", suffix="b")

    def test_text_embeddings_inference(self):
        texts = ["let there be light", "the earth was without form", "god"]
        pooled = torch.stack([self.pooled(text) for text in texts])
        vectors = torch.nn.functional.normalize(pooled, dim=1)
        found = self.post("/embed", model="bert", inputs=texts, truncate=True)
        torch.testing.assert_close(torch.tensor(found), vectors, atol=1e-5, rtol=0)
        torch.testing.assert_close(torch.tensor(self.post("/embed", model="bert", inputs=texts[0])), vectors[:1], atol=1e-5, rtol=0)
        ids = self.words.encode(texts[1])
        torch.testing.assert_close(torch.tensor(self.post("/embed", model="bert", inputs=ids)), vectors[1:2], atol=1e-5, rtol=0)
        shorter = self.post("/embed", model="bert", inputs=texts, dimensions=4)
        torch.testing.assert_close(torch.tensor(shorter), torch.nn.functional.normalize(vectors[:, :4], dim=1), atol=1e-5, rtol=0)
        for dimensions in (None, 4):
            found = self.post("/embed", model="bert", inputs=texts, normalize=False, dimensions=dimensions)
            torch.testing.assert_close(torch.tensor(found), pooled[:, :dimensions], atol=1e-4, rtol=1e-4)
        similar = self.post("/similarity", model="bert", inputs={"source_sentence": texts[0], "sentences": texts[1:]}, parameters={"truncate": True})
        torch.testing.assert_close(torch.tensor(similar), vectors[1:] @ vectors[0], atol=1e-5, rtol=0)

        with torch.no_grad():
            scores = torch.stack([self.ranker(**self.words(texts[0], text, return_tensors="pt")).logits[0, 0] for text in texts])
        for raw, expected in [(True, scores), (False, scores.sigmoid())]:
            ranks = self.post("/rerank", model="ranker", query=texts[0], texts=texts, raw_scores=raw, return_text=True)
            order = expected.argsort(descending=True).tolist()
            self.assertEqual([(rank["index"], rank["text"]) for rank in ranks], [(i, texts[i]) for i in order])
            torch.testing.assert_close(torch.tensor([rank["score"] for rank in ranks]), expected[order], atol=1e-5, rtol=1e-5)
        with torch.no_grad():
            logits = self.labels(**self.words(*texts[:2], return_tensors="pt")).logits[0]
        for model, expected in [("ranker", scores[1:2]), ("labels", logits)]:
            raw = self.post("/predict", model=model, inputs=texts[:2], raw_scores=True)
            self.assertEqual([label["label"] for label in raw], [f"LABEL_{i}" for i in expected.argsort(descending=True)])
            torch.testing.assert_close(torch.tensor([label["score"] for label in raw]), expected.sort(descending=True).values, atol=1e-5, rtol=1e-5)
        predicted = self.post("/predict", model="ranker", inputs=texts[:2])
        self.assertEqual([label["label"] for label in predicted], ["LABEL_0"])
        self.assertAlmostEqual(predicted[0]["score"], scores[1].sigmoid().item(), places=5)

        with torch.no_grad():
            expected = [self.labels(**self.words(*pair, return_tensors="pt")).logits[0].softmax(0) for pair in (texts[:1], texts[:2])]
        labels = self.post("/predict", model="labels", inputs=[texts[:1], texts[:2]])
        self.assertEqual(len(self.post("/predict", model="labels", inputs=texts[0])), 2)  # of one text, no list of lists
        for row, each in zip(labels, expected, strict=True):
            self.assertEqual([label["label"] for label in row], [f"LABEL_{i}" for i in each.argsort(descending=True)])
            torch.testing.assert_close(torch.tensor([label["score"] for label in row]), each.sort(descending=True).values, atol=1e-5, rtol=0)

        long = "light " * 600
        alone, paired = len(self.words.encode(long)), len(self.words.encode("god", long))
        for path, fields, said in [("/embed", {"model": "bert", "inputs": long}, "cut it by 'truncate'"),
                                   ("/embed", {"model": "bert", "inputs": "a", "truncation_direction": "Left"}, "must be right"),
                                   ("/embed", {"model": "bert", "inputs": ids, "prompt_name": "query"}, "'prompt_name' needs 'inputs'"),
                                   ("/similarity", {"model": "bert", "inputs": {"source_sentence": "a"}}, "'sentences' must be"),
                                   ("/similarity", {"model": "bert", "inputs": {"source_sentence": "a", "sentences": ["b"], "c": 1}}, "'c' is not"),
                                   ("/predict", {"model": "labels", "inputs": [["a", "b", "c"]]}, "one or two texts"),
                                   ("/predict", {"model": "labels", "inputs": long, "truncate": False}, f"'inputs': {alone} tokens, but at most 512"),
                                   ("/rerank", {"model": "ranker", "query": "god", "texts": ["a", long], "truncate": False}, f"'texts': {paired} tokens"),
                                   ("/rerank", {"model": "bert", "query": "god", "texts": ["a", long], "truncate": False}, f"'texts': {alone} tokens")]:
            status, data, _ = self.server.request("POST", path, fields, Authorization="Bearer sesame")
            self.assertEqual(status, 400, data)
            self.assertIn(said, json.loads(data)["error"]["message"])
        for model in ("ranker", "bert"):
            ranks = [self.post("/rerank", model=model, query=texts[0], texts=texts, **more) for more in ({}, {"truncate": False})]
            self.assertEqual(*ranks)

    def test_scores_that_are_no_probabilities(self):
        """TEI's sigmoid does not depend on a cross-encoder's activation; the values of a regression are those of transformers' pipeline."""
        torch.manual_seed(3)
        values = shaken(transformers.BertForSequenceClassification(
            transformers.BertConfig(**sizes(self.words), num_labels=3, problem_type="regression")))
        save(values, self.words, self.folder / "values")
        save(self.ranker, self.words, self.folder / "identity")
        path = self.folder / "identity/config.json"
        activation = {"activation_fn": "torch.nn.modules.linear.Identity", "version": "4.1.0"}
        path.write_text(json.dumps(json.loads(path.read_text()) | {"sentence_transformers": activation}))
        server = Server("--model", self.folder / "values", "--model", self.folder / "identity")
        self.addCleanup(server.close)
        with torch.no_grad():
            logit = self.ranker(**self.words("god", "light", return_tensors="pt")).logits[0, 0]
            expected = values(**self.words("god", return_tensors="pt")).logits[0]
        for raw, score in [(True, logit), (False, logit.sigmoid())]:
            found = server.post("/rerank", model="identity", query="god", texts=["light"], raw_scores=raw)
            self.assertAlmostEqual(found[0]["score"], score.item(), places=4)
        found = server.post("/predict", model="values", inputs="god")
        self.assertEqual([label["label"] for label in found], [f"LABEL_{i}" for i in expected.argsort(descending=True)])
        torch.testing.assert_close(torch.tensor([label["score"] for label in found]), expected.sort(descending=True).values, atol=1e-4, rtol=0)

    def test_a_context_within_which_positions_do_not_depend_on_the_length(self):
        rope = {"rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8, "rope_theta": 10000.0,
                "original_max_position_embeddings": 64}
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=len(self.tokenizer), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
            max_position_embeddings=256, rope_parameters=rope, bos_token_id=0, eos_token_id=2))
        save(shaken(model), self.tokenizer, self.folder / "longrope")
        server = Server("--model", self.folder / "longrope")
        self.addCleanup(server.close)
        found = server.post("/v1/completions", prompt="and the", max_tokens=-1, temperature=0, logit_bias={"2": -100})
        self.assertEqual((found["usage"]["total_tokens"], found["choices"][0]["finish_reason"]), (64, "length"))

    def test_completions(self):
        prompts = ["and the", "In the beginning", "word", "the earth and the", "x", "and and and", "light", "void; "]

        def check(prompt):
            ids, logits = self.continued(self.tokenizer.encode(prompt), 30)
            expected = self.tokenizer.decode(ids, skip_special_tokens=True)
            found = self.client.completions.create(model="gpt", prompt=prompt, max_tokens=30, temperature=0, logprobs=3)
            self.assertEqual(found.choices[0].text, expected)
            self.assertEqual(found.usage.completion_tokens, len(ids))
            self.assertEqual(found.choices[0].finish_reason, "stop" if ids[-1] == 2 else "length")
            for id, row, value in zip(ids, logits, found.choices[0].logprobs.token_logprobs, strict=True):
                self.assertAlmostEqual(value, torch.log_softmax(row.double(), 0)[id].item(), places=4)
            streamed = self.client.completions.create(
                model="gpt", prompt=prompt, max_tokens=30, temperature=0, stream=True, stream_options={"include_usage": True})
            chunks = list(streamed)
            self.assertEqual("".join(chunk.choices[0].text for chunk in chunks[:-1]), expected)
            self.assertEqual(chunks[-1].usage.completion_tokens, found.usage.completion_tokens)
            self.assertEqual(chunks[-1].usage.prompt_tokens, found.usage.prompt_tokens)

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(check, prompts))

    def test_requests_of_lm_evaluation_harness(self):
        """Its local-completions (0.4.13) sends ids, several prompts at once, and reads the log-probabilities of an echo, whose last
        token is the one that it has to ask for; a written answer ends at its stop texts."""
        contexts = [self.tokenizer.encode(text) for text in ("In the beginning", "and the", "word")]
        rows = [ids + self.tokenizer.encode(text) for ids, text in zip(contexts, (" and the earth", " in", "and void"), strict=True)]
        found = self.post("/v1/completions", model="gpt", prompt=rows, temperature=0, max_tokens=1, logprobs=1, seed=1234, echo=True)
        for choice, ids, context in zip(sorted(found["choices"], key=lambda each: each["index"]), rows, contexts, strict=True):
            with torch.no_grad():
                known = torch.log_softmax(self.gpt(torch.tensor([ids])).logits[0].double(), -1)[len(context) - 1:-1]
            lists, after = choice["logprobs"], ids[len(context):]
            self.assertAlmostEqual(sum(lists["token_logprobs"][len(context):-1]), known[range(len(after)), after].sum().item(), places=4)
            pairs = zip(lists["token_logprobs"][len(context):-1], lists["top_logprobs"][len(context):-1], strict=True)
            self.assertEqual(all(value == max(top.values()) for value, top in pairs), known.argmax(-1).tolist() == after)
        # Another answer to a question that has been scored: the question is not read again.
        again = self.post("/v1/completions", model="gpt", prompt=[contexts[0] + rows[1][-3:]], temperature=0, max_tokens=1, logprobs=1, seed=1234, echo=True)
        self.assertGreaterEqual(again["usage"]["prompt_tokens_details"]["cached_tokens"], len(contexts[0]) - 1)
        scores, known = (sorted(each["choices"], key=lambda one: one["index"])[0]["logprobs"] for each in (again, found))
        for name in ("token_logprobs", "top_logprobs"):
            self.assertEqual(scores[name][:len(contexts[0])], known[name][:len(contexts[0])])
        ids, _ = self.continued(contexts[0], 20)
        expected = self.tokenizer.decode(ids, skip_special_tokens=True)
        stop = max({letter for letter in expected if letter.isascii()}, key=expected.index)  # the last to appear
        found = self.post("/v1/completions", model="gpt", prompt=[contexts[0]], max_tokens=20, temperature=0, stop=[stop, "</s>"], seed=1234)
        self.assertEqual(found["choices"][0]["text"], expected.split(stop)[0])

    def test_scores_of_a_prompt(self):
        ids = self.tokenizer.encode("In the beginning and the earth")
        found = self.client.completions.create(model="gpt", prompt=ids, max_tokens=0, echo=True, logprobs=1).choices[0]
        with torch.no_grad():
            expected = torch.log_softmax(self.gpt(torch.tensor([ids])).logits[0].double(), -1)
        self.assertEqual(len(found.logprobs.token_logprobs), len(ids))
        for i in range(1, len(ids)):
            self.assertAlmostEqual(found.logprobs.token_logprobs[i], expected[i - 1, ids[i]].item(), places=4)
            self.assertAlmostEqual(max(found.logprobs.top_logprobs[i].values()), expected[i - 1].max().item(), places=4)

        # Stray bytes are U+FFFD each, and a character of two tokens is one.
        pieces = ["a", "©", "b", "Ã", "©", "â", "c"]  # in byte-level BPE, these signs above ASCII are bytes of the same number
        found = self.client.completions.create(model="gpt", prompt=self.tokenizer.convert_tokens_to_ids(pieces), max_tokens=0, echo=True, logprobs=0)
        self.assertEqual(found.choices[0].text, "".join(pieces).encode("latin-1").decode(errors="replace"))
        self.assertEqual(found.choices[0].logprobs.text_offset, [0, 1, 2, 3, 3, 4, 5])

    def test_chat(self):
        for tools in (None, TOOLS):
            more = {"tools": tools} if tools else {}
            ids = self.tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True, return_dict=False, tools=tools)
            end = self.tokenizer.convert_tokens_to_ids("<|im_end|>")
            new, logits = self.continued(ids, 40, (2, end))
            expected = self.tokenizer.decode(new, skip_special_tokens=True)
            found = self.client.chat.completions.create(model="gpt", messages=MESSAGES, max_tokens=40, temperature=0,
                                                        logprobs=True, top_logprobs=2, **more)
            self.assertEqual(found.choices[0].message.content, expected)
            self.assertEqual(found.usage.prompt_tokens, len(ids))
            entry = found.choices[0].logprobs.content[0]
            self.assertAlmostEqual(entry.logprob, torch.log_softmax(logits[0].double(), 0)[new[0]].item(), places=4)
            self.assertEqual(bytes(entry.bytes).decode(errors="replace"), entry.token)
            of_tokens = b"".join(bytes(each.bytes) for each in found.choices[0].logprobs.content)
            self.assertEqual(of_tokens.decode(errors="replace").replace("<|im_end|>", "").replace("</s>", ""), expected)
            self.assertEqual(len(entry.top_logprobs), 2)
            chunks = list(self.client.chat.completions.create(
                model="gpt", messages=MESSAGES, max_completion_tokens=40, temperature=0, stream=True, **more))
            self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
            self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks), expected)
            self.assertEqual(chunks[-1].choices[0].finish_reason, found.choices[0].finish_reason)
        parts = [{"role": "developer", "content": "Be brief."},
                 {"role": "user", "content": [{"type": "text", "text": "and the "}, {"type": "text", "text": "beginning?"}]}]
        same = self.client.chat.completions.create(model="gpt", messages=parts, max_tokens=40, temperature=0)
        plain = self.client.chat.completions.create(model="gpt", messages=MESSAGES, max_tokens=40, temperature=0)
        self.assertEqual(same.choices[0].message.content, plain.choices[0].message.content)
        turn = {"role": "assistant", "content": None}  # as some clients send what had no text
        silent = self.client.chat.completions.create(model="gpt", messages=[*MESSAGES, turn, MESSAGES[-1]], max_tokens=9, temperature=0)
        empty = self.client.chat.completions.create(model="gpt", messages=[*MESSAGES, {**turn, "content": ""}, MESSAGES[-1]],
                                                    max_tokens=9, temperature=0)
        self.assertEqual(silent.choices[0].message.content, empty.choices[0].message.content)
        count = lambda turn: self.client.chat.completions.create(model="gpt", messages=[*MESSAGES, turn, MESSAGES[-1]], max_tokens=1).usage.prompt_tokens
        said = {**turn, "content": "no"}
        self.assertEqual(count({"role": "assistant", "refusal": "no"}), count(said))
        self.assertEqual([count({**turn, "tool_calls": none}) for none in ([], None)], [silent.usage.prompt_tokens] * 2)
        self.assertEqual(count({**said, "tool_calls": []}), count(said))

    def test_structured_output(self):
        schema = {"type": "object", "properties": {"word": {"enum": ["earth", "void"]}, "n": {"type": "integer", "maximum": 9, "minimum": 0}},
                  "required": ["word", "n"], "additionalProperties": False}
        for seed in range(3):
            found = self.client.chat.completions.create(
                model="gpt", messages=MESSAGES, seed=seed, max_tokens=60,
                response_format={"type": "json_schema", "json_schema": {"name": "a", "strict": True, "schema": schema}})
            value = json.loads(found.choices[0].message.content)
            self.assertIn(value["word"], ("earth", "void"))
            self.assertEqual(found.choices[0].finish_reason, "stop")
        for form in ({"type": "json_object", "schema": schema}, {"type": "json_object", "value": schema}):  # llama.cpp's, huggingface_hub's
            found = self.client.chat.completions.create(model="gpt", messages=MESSAGES, max_tokens=60, response_format=form)
            self.assertIn(json.loads(found.choices[0].message.content)["word"], ("earth", "void"))
        for form, name in [({"type": "json_object", "shema": schema}, "shema"), ({"type": "text", "schema": schema}, "schema"),
                           ({"type": "json_schema", "json_schema": {"schema": schema, "strickt": True}}, "strickt")]:
            with self.assertRaisesRegex(openai.BadRequestError, f"'{name}' is not supported"):
                self.client.chat.completions.create(model="gpt", messages=MESSAGES, response_format=form)
        # Any object, not only the empty one.
        found = self.client.chat.completions.create(
            model="gpt", messages=MESSAGES, temperature=0, max_tokens=60, response_format={"type": "json_object"},
            logit_bias={str(self.tokenizer.convert_tokens_to_ids('"')): 100})
        self.assertIn("", json.loads(found.choices[0].message.content))

    def test_embeddings(self):
        batch = self.words(TEXTS, padding=True, return_tensors="pt")
        with torch.no_grad():
            states = self.bert(**batch).last_hidden_state
        kept = batch["attention_mask"].unsqueeze(-1).float()
        expected = torch.nn.functional.normalize((states * kept).sum(1) / kept.sum(1), dim=1)
        for form in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):  # the package decodes base64
            found = self.client.embeddings.create(model="bert", input=TEXTS, **form)
            if form.get("encoding_format") == "base64":
                continue
            vectors = torch.tensor([entry.embedding for entry in found.data])
            self.assertLessEqual((vectors - expected).abs().max().item(), 1e-5)
        self.assertEqual(found.usage.prompt_tokens, int(batch["attention_mask"].sum()))
        found = self.client.embeddings.create(model="bert", input=TEXTS, dimensions=5)
        first = torch.nn.functional.normalize(expected[:, :5], dim=1)
        self.assertLessEqual((torch.tensor([entry.embedding for entry in found.data]) - first).abs().max().item(), 1e-5)
        width = expected.shape[1]
        with self.assertRaisesRegex(openai.BadRequestError, f"'dimensions'.* at most {width}.* got {width + 1}"):
            self.client.embeddings.create(model="bert", input=TEXTS, dimensions=width + 1)
        single = self.client.embeddings.create(model="mask", input="word").data[0].embedding
        printed = lines("embed", "--model", str(self.folder / "mask"), "--text", "word")[0]["embedding"]
        self.assertLessEqual((torch.tensor(single) - torch.tensor(printed)).abs().max().item(), 1e-6)

    def test_rerank(self):
        query, documents = "god said", [*TEXTS[1:], "light"]
        with torch.no_grad():
            pairs = self.words([query] * len(documents), documents, padding=True, return_tensors="pt")
            by_pairs = self.ranker(**pairs).logits[:, 0].sigmoid()
        vectors = torch.tensor([entry.embedding for entry in self.client.embeddings.create(model="bert", input=[query, *documents]).data])
        for model, scores in [("ranker", by_pairs), ("bert", vectors[1:] @ vectors[0])]:
            order = scores.argsort(descending=True).tolist()
            for path in ("/v1/rerank", "/rerank", "/v2/rerank"):
                whole = self.post(path, model=model, query=query, documents=documents)
                self.assertRegex(whole["id"], "^rerank-")
                tokens = pairs["attention_mask"].sum().item() if model == "ranker" else sum(len(self.words.encode(text)) for text in [query, *documents])
                self.assertEqual((whole["usage"], whole["meta"]), ({"total_tokens": tokens}, {"billed_units": {"search_units": 1}}))
                found = whole["results"]
                self.assertEqual([entry["index"] for entry in found], order)
                for entry in found:
                    self.assertAlmostEqual(entry["relevance_score"], scores[entry["index"]].item(), delta=1e-5)
            # As Cohere's clients ask.
            two = self.post("/v1/rerank", model=model, query=query, documents=[{"text": text} for text in documents], top_n=2, return_documents=True)
            self.assertEqual(two["results"], [{**entry, "document": {"text": documents[entry["index"]]}} for entry in found[:2]])
        for model, documents, words in [("t5", ["a"], "makes no embeddings"), ("labels", ["a"], "one label"),
                                        ("bert", [], "'documents'"), ("bert", ["a", ""], "'documents'"), ("bert", [{"title": "a"}], "'documents'")]:
            status, data, _ = self.server.request("POST", "/rerank", {"model": model, "query": "a", "documents": documents}, Authorization="Bearer sesame")
            self.assertEqual(status, 400, data)
            self.assertIn(words, json.loads(data)["error"]["message"])

    def test_embeddings_of_ids_and_of_other_heads(self):
        ids = self.words(TEXTS[0])["input_ids"]
        found = self.client.embeddings.create(model="bert", input=[ids, ids[:3]])
        of_text = self.client.embeddings.create(model="bert", input=TEXTS[0])
        self.assertEqual(found.data[0].embedding, of_text.data[0].embedding)
        self.assertEqual(found.usage.prompt_tokens, len(ids) + 3)
        for model in ("gpt", "answers"):
            single = self.client.embeddings.create(model=model, input=TEXTS[1]).data[0].embedding
            printed = lines("embed", "--model", str(self.folder / model), "--text", TEXTS[1])[0]["embedding"]
            self.assertLessEqual((torch.tensor(single) - torch.tensor(printed)).abs().max().item(), 1e-6)

    # A request whose answer nobody waits for.
    def open_request(self, path, **fields):
        body = json.dumps(fields).encode()
        connection = socket.create_connection((self.server.host, self.server.port))
        connection.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sesame\r\nConnection: close\r\n"
                           b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(body)) + body)
        return connection

    def pieces(self):
        text = self.server.request("GET", "/metrics", Authorization="Bearer sesame")[1]
        return int(re.search(r"^tzoo_job_pieces_total (\d+)$", text, re.MULTILINE)[1])

    def waits(self, connection):
        return not select.select([connection], [], [], 0)[0]

    LONG = {"model": "endless", "text": TEXTS[0], "max_new_tokens": 4096, "num_beams": 16}

    def test_others_take_turns_with_a_long_translation(self):
        with self.open_request("/translate", **self.LONG) as connection:
            before = self.pieces()
            self.wait_until(lambda: self.pieces() > before + 3)
            self.client.completions.create(model="gpt", prompt="a", max_tokens=20)
            self.client.embeddings.create(model="bert", input=TEXTS)
            self.post("/translate", model="t5", text=TEXTS, max_new_tokens=3)
            for path, fields in [("/fill-mask", {"model": "mask", "text": "the [MASK]"}), ("/classify", {"model": "labels", "text": "a"}),
                                 ("/answer", {"model": "answers", "question": "who?", "context": TEXTS[0]})]:
                self.post(path, **fields)
            self.assertTrue(self.waits(connection))  # its 4,096 steps are not yet done

    def test_a_client_that_leaves_ends_its_job(self):
        # With the pieces that it would take: steps, texts, passes of eight windows.
        for path, whole, fields in [
            ("/translate", 4096, self.LONG), ("/fill-mask", 1000, {"model": "mask", "text": ["the [MASK]"] * 1000}),
            ("/answer", 500, {"model": "answers", "question": "who?", "context": "the " * 20000, "max_length": 12, "stride": 1}),
        ]:
            before = self.pieces()
            with self.open_request(path, **fields) as connection:
                self.wait_until(lambda: self.pieces() > before)
                self.assertTrue(self.waits(connection), path)
            counts = [-2, -1]
            while counts[-1] != counts[-2]:
                time.sleep(0.1)
                counts.append(self.pieces())
            self.assertLess(counts[-1] - before, whole, path)

    def test_the_end_of_the_server_ends_a_translation(self):
        server = Server("--model", self.folder / "endless")
        self.addCleanup(server.close)
        done = {}
        thread = threading.Thread(target=lambda: done.update(answer=server.request("POST", "/translate", self.LONG)))
        thread.start()
        self.wait_until(lambda: server.metric("tzoo_job_pieces_total") > 3)
        self.assertEqual(server.close(), 0)
        thread.join()
        self.assertEqual(done["answer"][0], 503)
        self.assertIn("the server stops", done["answer"][1])

    def test_a_text_beyond_the_context_is_not_translated(self):
        server = Server("--model", self.folder / "t5", "--context", 20)
        self.addCleanup(server.close)
        status, data, _ = server.request("POST", "/translate", {"text": ["a", "the " * 30]})
        self.assertEqual((status, json.loads(data)["error"]["code"]), (400, "context_length_exceeded"))
        self.assertRegex(json.loads(data)["error"]["message"], r"'text' has \d\d tokens; at most 20 are translated \(--context\)")

    def test_the_endpoints_of_other_heads_answer_as_their_verbs(self):
        def rounded(value):
            if isinstance(value, float):
                return round(value, 4)
            if isinstance(value, dict):
                return {key: rounded(one) for key, one in value.items()}
            return [rounded(one) for one in value] if isinstance(value, list) else value

        text = "and the [MASK] was [MASK]"
        for path, fields, verb in [
            ("/fill-mask", {"model": "mask", "text": text, "top_k": 3}, ["fill-mask", "--text", text, "--top_k", "3", "--json"]),
            ("/classify", {"model": "labels", "text": TEXTS[:2]}, ["classify", "--text", TEXTS[0], "--text", TEXTS[1]]),
            ("/classify", {"model": "labels", "text": TEXTS[:2], "text_pair": TEXTS[1:3]},
             ["classify", "--text", TEXTS[0], "--text_pair", TEXTS[1], "--text", TEXTS[1], "--text_pair", TEXTS[2]]),
            ("/answer", {"model": "answers", "question": "who?", "context": TEXTS[0], "top_k": 3},
             ["answer", "--question", "who?", "--context", TEXTS[0], "--top_k", "3", "--json"]),
            ("/translate", {"model": "t5", "text": TEXTS, "max_new_tokens": 12, "num_beams": 4},
             ["translate", *(word for text in TEXTS for word in ("--text", text)), "--max_new_tokens", "12", "--num_beams", "4", "--json"]),
            ("/translate", {"model": "t5", "text": TEXTS[:2], "prefix": "the ", "max_new_tokens": 9},
             ["translate", "--text", TEXTS[0], "--text", TEXTS[1], "--prefix", "the ", "--max_new_tokens", "9", "--json"]),
        ]:
            expected = lines(verb[0], "--model", str(self.folder / fields["model"]), *verb[1:])
            self.assertEqual(rounded(self.post(path, **fields)["results"]), rounded(expected), path)

    def test_errors_are_the_packages_exceptions(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.completions.create(model="gpt", prompt="a", temperature=-1)
        self.assertEqual((caught.exception.param, caught.exception.type), ("temperature", "invalid_request_error"))
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.completions.create(model="gpt-9", prompt="a")
        self.assertEqual(caught.exception.code, "model_not_found")
        with self.assertRaises(openai.AuthenticationError):
            self.client.with_options(api_key="wrong").models.list()
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.completions.create(model="gpt", prompt="a", max_tokens=5000)
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        for messages, word in [([], "messages"), ([{"role": "user"}], "messages[0].content"), ([{"content": "a"}], "messages[0]"),
                               ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], "messages[0].content")]:
            with self.assertRaises(openai.BadRequestError) as caught:
                self.client.chat.completions.create(model="gpt", messages=messages)
            self.assertIn(word, str(caught.exception))
        for more, word in [({"tool_choice": "required"}, "tool_choice"), ({"top_logprobs": 2}, "top_logprobs"),
                           ({"extra_body": {"functions": []}}, "functions"), ({"modalities": ["audio"]}, "modalities"),
                           ({"reasoning_effort": "low"}, "reasoning_effort")]:
            with self.assertRaises(openai.BadRequestError) as caught:
                self.client.chat.completions.create(model="gpt", messages=MESSAGES, **more)
            self.assertIn(word, str(caught.exception))
        for model, call in [("t5", lambda: self.client.completions.create(model="t5", prompt="a")),
                            ("t5", lambda: self.client.embeddings.create(model="t5", input="a"))]:
            with self.assertRaises(openai.BadRequestError) as caught:
                call()
            self.assertIn(f"'{model}' has a", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
