"""tzoo evaluate --suite beside transformers, by lm-evaluation-harness' rules (0.4.13), which this file states again: contexts
and continuations divided into tokens together, examples drawn by its sampler, jinja2 with StrictUndefined."""

import ast
import json
import math
import os
import pathlib
import random
import re
import shutil
import tempfile
import unittest

import jinja2
import torch
import transformers

from text_models import byte_level, shaken, tzoo

WORDS = "In the beginning God created the heaven and the earth ; and the earth was without form , and void".split()
JINJA = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
TASKS = {
    "choices": {"output_type": "multiple_choice", "doc_to_text": "Question: {{q}}\nAnswer:", "doc_to_target": "{{label.index(key)}}",
                "doc_to_choice": "{{options}}", "metric_list": [{"metric": m} for m in ("acc", "acc_norm", "acc_bytes", "exact_match")]},
    "shots": {"output_type": "multiple_choice", "doc_to_text": "{{q}}", "doc_to_target": "{{label.index(key)}}", "doc_to_choice": "options",
              "num_fewshot": 3, "description": "Choose.\n\n"},
    "pair": {"output_type": "multiple_choice", "doc_to_text": "", "doc_to_target": 1, "doc_to_choice": "{{[q, options[0]]}}"},
    "before": {"output_type": "multiple_choice", "doc_to_text": "{{label.index(key)}}", "doc_to_target": "{{q.split(' ')[-1]}}",
               "doc_to_choice": "{% set begun = q.split(' ')[0] %}{{[begun ~ options[0], begun, begun ~ '  ', begun ~ \"'\"]}}",
               "metric_list": [{"metric": "acc"}]},
    "last": {"output_type": "loglikelihood", "doc_to_text": "{{q.split(' ')[:-1]|join(' ')}}", "doc_to_target": "{{' ' + q.split(' ')[-1]}}"},
    "pages": {"output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{page}}"},
    "written": {"output_type": "generate_until", "doc_to_text": "{{q}} ", "doc_to_target": "{{options}}",
                "generation_kwargs": {"until": ["e", "\n"], "max_gen_toks": 9}},
}


def documents(seed):
    drawn = random.Random(seed)

    def text(most):
        return " ".join(drawn.choices(WORDS, k=drawn.randint(1, most)))

    for _ in range(24):
        options = [text(4) for _ in range(4)] + ["naïve 世界"]
        yield {"q": text(9) + drawn.choice(["", "", " ", "\n"]), "options": options[-4:], "label": list("ABCD"), "key": drawn.choice("ABCD"),
               "page": text(60)}


class Reference:
    """What the harness answers, with a model of transformers."""

    def __init__(self, model, tokenizer, task, docs):
        self.model, self.tokenizer, self.task, self.docs = model, tokenizer, task, docs
        self.length = model.config.max_position_embeddings
        self.prefix = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
        self.drawn = random.Random(1234)

    def field(self, key, doc):
        """A column, a constant, or a template's text, of which digits and lists are read as Python's."""
        spec = self.task[key]
        if not isinstance(spec, str):
            return spec
        if spec in doc:
            return doc[spec]
        text = JINJA.from_string(spec).render(**doc)
        if text.isdigit() and "doc_to_choice" in self.task or key == "doc_to_choice" or re.fullmatch(r"(?s)\[.*\]", text):
            return ast.literal_eval(text)
        return text

    def shot(self, doc):
        return self.field("doc_to_text", doc) + " " + self.field("doc_to_choice", doc)[self.field("doc_to_target", doc)] + "\n\n"

    def parts(self, doc):
        target = self.field("doc_to_target", doc)
        if self.task["output_type"] == "loglikelihood_rolling":
            return [("", target)]
        context = self.task.get("description", "")
        if count := self.task.get("num_fewshot", 0):
            context += "".join([self.shot(other) for other in self.drawn.sample(self.docs, count + 1) if other != doc][:count])
        asked = self.field("doc_to_text", doc)
        if self.task["output_type"] != "multiple_choice":
            return [(context + asked, target)]
        choices = self.field("doc_to_choice", doc)
        if isinstance(asked, int):
            return [(context + choice, f" {target}") for choice in choices]
        return [(context + asked, " " + choice) for choice in choices]

    def scored(self, before, after):
        """The log-probability of the ids `after`, and whether greedy decoding would write them."""
        ids = (before + after)[-(self.length + 1):]
        with torch.no_grad():
            known = torch.log_softmax(self.model(torch.tensor([ids[:-1]])).logits[0].double(), -1)[-len(after):]
        return known[range(len(after)), after].sum().item(), known.argmax(-1).tolist() == after

    def score(self, context, continuation):
        if context == "":
            ids = self.tokenizer.encode(continuation, add_special_tokens=False)
            return self.scored([self.prefix], ids) if ids[0] != self.prefix else self.scored(ids[:1], ids[1:])
        kept = context.rstrip()
        before = self.tokenizer.encode(kept)
        return self.scored(before, self.tokenizer.encode(context + continuation)[len(before):])

    def rolling(self, text):
        ids = [self.prefix, *self.tokenizer.encode(text)]
        windows = range(1, len(ids), self.length)
        return sum(self.scored(ids[:at], ids[at:at + self.length])[0] for at in windows)

    def written(self, context):
        room, ends = self.task["generation_kwargs"]["max_gen_toks"], self.task["generation_kwargs"]["until"]
        ids = self.tokenizer.encode(context)[-(self.length - room):]
        new = self.model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), max_new_tokens=room,
                                  do_sample=False, pad_token_id=0)[0, len(ids):]
        return re.split("|".join(map(re.escape, [*ends, self.tokenizer.eos_token])), self.tokenizer.decode(new, skip_special_tokens=True))[0]


class EvaluateSuite(unittest.TestCase):
    def check(self, name, found, reference, doc):
        if "text" in found:
            text = reference.written(reference.parts(doc)[0][0])
            self.assertEqual((found["text"], found["exact_match"]), (text, text in reference.field("doc_to_target", doc)))
            return
        if name == "pages":
            expected = reference.rolling(doc["page"])
            self.assertAlmostEqual(sum(found["log_probabilities"]), expected, delta=1e-5 * abs(expected))
            return
        pairs = [reference.score(*part) for part in reference.parts(doc)]
        for mine, theirs in zip(found["log_probabilities"], pairs, strict=True):
            self.assertAlmostEqual(mine, theirs[0], delta=1e-4)
        self.assertEqual(found["greedy"], [greedy for _, greedy in pairs])
        if name == "last":
            self.assertEqual(found["acc"], int(pairs[0][1]))
            return
        gold = reference.field("doc_to_text" if name == "before" else "doc_to_target", doc)
        sums, choices = [value for value, _ in pairs], reference.field("doc_to_choice", doc)
        for metric, length in [("acc", lambda text: 1), ("acc_norm", len), ("acc_bytes", lambda text: len(text.encode()))]:
            if metric in found:
                values = [value / length(choice) for value, choice in zip(sums, choices, strict=True)]
                self.assertEqual(found[metric], int(values.index(max(values)) == gold), (metric, found, pairs))

    def check_names(self, folder, all_scores):
        """The same task by its name, in a folder of tasks, from a dataset of the hub in the cache."""
        cache, tasks = folder / "home/hub/datasets--owner--tiny", folder / "tasks/below"
        (cache / "refs").mkdir(parents=True)
        (cache / "refs/main").write_text("c0ffee")
        part = cache / "snapshots/c0ffee/part"
        part.mkdir(parents=True)
        shutil.copy(folder / "docs.jsonl", part / "validation-00000-of-00001.jsonl")
        tasks.mkdir(parents=True)
        keys = {"dataset_path": "owner/tiny", "dataset_name": "part", "validation_split": "validation", "test_split": None, **TASKS["choices"]}
        for name, task, dataset in ("choices", "choices", "owner/tiny"), ("default", "other_name", "owner/tiny"), ("missing", "missing", "owner/none"):
            lines = [f"{key}: {json.dumps(value)}" for key, value in {**keys, "dataset_path": dataset}.items()]
            (tasks / f"{name}.yaml").write_text("\n".join([f"task: {task}", *lines]))
        home = {**os.environ, "HF_HOME": str(folder / "home"), "TZOO_SUITES": str(folder / "tasks"), "TZOO_DATA_DIR": str(folder / "data")}
        wanted = {score["metric"]: score["value"] for score in json.loads(all_scores) if score["task"] == "choices"}
        for name in "choices", "other_name":
            done = tzoo("evaluate", "--model", str(folder), "--suite", name, "--json", env=home)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual({score["metric"]: score["value"] for score in json.loads(done.stdout)}, wanted)
        for name, words, said in [("missing", (), "the dataset owner/none is not here; download it: tzoo pull datasets/owner/none"), ("nowhere", (), "neither a file nor a task in"),
                                  ("choices", ("--num_fewshot", "1"), None)]:
            done = tzoo("evaluate", "--model", str(folder), "--suite", name, "--json", *words, env=home)
            self.assertEqual(done.returncode == 0, said is None, done.stderr)
            self.assertIn(said or "", done.stderr)
        self.assertIn("TZOO_SUITES is the folder", tzoo("evaluate", "--model", str(folder), "--suite", "choices").stderr)

    def compare(self, model, tokenizer, seed):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            docs = list(documents(seed))
            (folder / "docs.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
            for task, keys in TASKS.items():
                data = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"validation": "docs.jsonl"}}, "validation_split": "validation"}
                (folder / f"{task}.yaml").write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in {"task": task, **data, **keys}.items()))
            (folder / "all.yaml").write_text("".join(f"- {task}.yaml\n" for task in TASKS))
            done = tzoo("evaluate", "--model", name, "--suite", f"{name}/all.yaml", "--output", f"{name}/answers.jsonl", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.check_names(folder, done.stdout)
            answers = {}
            for line in (folder / "answers.jsonl").read_text().splitlines():
                answers.setdefault(json.loads(line)["task"], []).append(json.loads(line))
            self.assertEqual(list(answers), list(TASKS))
            for task, found in answers.items():
                reference = Reference(model, tokenizer, TASKS[task], docs)
                for number, (answer, doc) in enumerate(zip(found, docs, strict=True)):
                    with self.subTest(task=task, question=number):
                        self.check(task, answer, reference, doc)
            scores = {(score["task"], score["metric"]): score["value"] for score in json.loads(done.stdout)}
            self.assertAlmostEqual(scores["choices", "acc"], sum(answer["acc"] for answer in answers["choices"]) / len(docs))
            total = sum(sum(answer["log_probabilities"]) for answer in answers["pages"])
            self.assertAlmostEqual(scores["pages", "bits_per_byte"], -total / math.log(2) / sum(len(doc["page"].encode()) for doc in docs))

    def test_gpt2(self):
        torch.manual_seed(2)
        tokenizer = byte_level(eos_token="</s>")
        self.compare(shaken(transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=2, n_positions=96, bos_token_id=2, eos_token_id=2)), 0.2), tokenizer, 1)

    def test_llama_with_a_first_token(self):
        torch.manual_seed(3)
        tokenizer = byte_level(bos_token="<s>", eos_token="</s>")
        from tokenizers.processors import TemplateProcessing
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
        self.compare(shaken(transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=128, bos_token_id=0, eos_token_id=2)), 0.2), tokenizer, 2)


if __name__ == "__main__":
    unittest.main()
