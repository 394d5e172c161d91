"""tzoo evaluate --suite: tasks in lm-evaluation-harness' files. The model is uniform (all weights 0), so that each token has
the log-probability -ln V, whatever stands before it: all figures are computed by hand."""

import json
import math
import pathlib
import tempfile
import unittest

from tiny_checkpoint import CHARS, write_checkpoint, write_json
from tzoo_runner import CommandTest, run

V = len(CHARS)
NEPERS = -math.log(V)
PLACES = [{"q": "the cat ", "options": ["sat", "in a box"], "label": 0},
          {"q": "a dog", "options": ["ran", "is", "ate"], "label": 1},
          {"q": "so", "options": ["be it", "not", "may"], "label": 1}]
CHOICE = {"task": "places", "output_type": "multiple_choice", "data": "places.jsonl", "doc_to_text": "{{q}}",
          "doc_to_target": "label", "doc_to_choice": "options"}


def zero(tensors):
    for name, (shape, numbers) in tensors.items():
        tensors[name] = (shape, [0.0] * len(numbers))


class EvaluateSuite(CommandTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.model = write_checkpoint(cls.folder / "model", tokenizer=True, change=zero)
        tokenizer = json.loads((cls.folder / "model/tokenizer.json").read_text())
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        tokenizer["added_tokens"] = [{"id": 0, "content": "\n", "special": True, **flags}]
        write_json(cls.model, "tokenizer.json", tokenizer)
        write_json(cls.model, "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "\n"})

    def write_lines(self, name, documents):
        (self.folder / name).write_text("".join(json.dumps(each) + "\n" for each in documents), encoding="utf-8")

    def write_task(self, name="task.json", base=CHOICE, **keys):
        """A task's file; a key that is None is left out."""
        self.write_lines("places.jsonl", PLACES)
        write_json(self.folder, name, {key: value for key, value in {**base, **keys}.items() if value is not None})
        return self.folder / name

    def evaluate(self, file, *words):
        """The scores by metric, and the answers."""
        answers = self.folder / "answers.jsonl"
        scores = json.loads(self.succeed("evaluate", "--model", self.model, "--suite", file, "--json", "--output", answers, *words))
        return {score["metric"]: score for score in scores}, [json.loads(line) for line in answers.read_text().splitlines()]

    def refused(self, *words, code=1, flags=(), **keys):
        self.assert_one_error(run("evaluate", "--model", self.model, "--suite", self.write_task(**keys), *flags), code, *words)

    def test_choices(self):
        scores, answers = self.evaluate(self.write_task())
        # Each choice stands after a space, which the first context ends with already: it counts twice.
        lengths = [[5, 10], [4, 3, 4], [6, 4, 4]]
        for answer, expected in zip(answers, lengths, strict=True):
            for found, length in zip(answer["log_probabilities"], expected, strict=True):
                self.assertAlmostEqual(found, length * NEPERS, places=4)
        # The shortest wins, of equal ones the first; divided by their characters the longest does.
        self.assertEqual([answer["chosen"] for answer in answers], [0, 1, 1])
        self.assertEqual([answer["acc"] for answer in answers], [1, 1, 1])
        self.assertEqual([answer["acc_norm"] for answer in answers], [0, 0, 0])
        self.assertEqual((scores["acc"]["value"], scores["acc"]["stderr"], scores["acc"]["n"]), (1, 0, 3))
        self.assertEqual(scores["acc_norm"]["value"], 0)

    def test_a_table_for_people(self):
        text = self.succeed("evaluate", "--model", self.model, "--suite", self.write_task())
        self.assertEqual(text.split(), "task metric value stderr n places acc 1.0000 0.0000 3 places acc_norm 0.0000 0.0000 3".split())

    def test_standard_error(self):
        self.write_lines("places.jsonl", PLACES)
        scores, _ = self.evaluate(self.write_task(doc_to_target=0))
        self.assertAlmostEqual(scores["acc"]["value"], 1 / 3)
        self.assertAlmostEqual(scores["acc"]["stderr"], math.sqrt((4 / 9 + 1 / 9 + 1 / 9) / 2 / 3))

    def test_choices_before_the_target(self):
        self.write_lines("wino.jsonl", [{"s": "the _ is in the box", "a": "cat", "b": "dogs", "n": "2"}])
        scores, answers = self.evaluate(self.write_task(
            data="wino.jsonl", doc_to_text="{{n|int - 1}}", doc_to_target="{{s.split('_')[1]|trim}}",
            doc_to_choice="{{[s.split('_')[0] ~ a, s.split('_')[0] ~ b]}}"))
        for found in answers[0]["log_probabilities"]:
            self.assertAlmostEqual(found, len(" is in the box") * NEPERS, places=4)
        self.assertEqual((answers[0]["right"], answers[0]["chosen"], scores["acc"]["value"]), (1, 0, 0))

    def test_loglikelihood_and_an_empty_context(self):
        self.write_lines("words.jsonl", [{"text": "the end"}, {"text": " a b"}, {"text": "dog"}])
        keys = dict(output_type="loglikelihood", data="words.jsonl", doc_to_choice=None, doc_to_text="{{text.split(' ')[:-1]|join(' ')}}")
        scores, answers = self.evaluate(self.write_task(doc_to_target="{{' ' + text.split(' ')[-1]}}", **keys))
        for answer, length in zip(answers, [4, 2, 4], strict=True):
            self.assertAlmostEqual(answer["log_probabilities"][0], length * NEPERS, places=4)
        self.assertAlmostEqual(scores["perplexity"]["value"], V ** (10 / 3), delta=1)
        self.assertEqual((scores["acc"]["value"], scores["perplexity"]["stderr"]), (0, None))
        # The token 0 is the most probable of equal ones: "\n".
        _, answers = self.evaluate(self.write_task(doc_to_target="\n", **keys), "--limit", 2)
        self.assertEqual([answer["greedy"] for answer in answers], [[True]] * 2)
        self.refused("question 3", "adds no token", doc_to_target="\n", **keys)

    def test_rolling(self):
        pages = ["the café is in\na  town " * 4, "a"]
        self.write_lines("pages.jsonl", [{"page": page} for page in pages])
        scores, answers = self.evaluate(self.write_task(output_type="loglikelihood_rolling", data="pages.jsonl", doc_to_text="",
                                                        doc_to_target="{{page}}", doc_to_choice=None))
        tokens, total = sum(map(len, pages)), sum(len(page.encode()) for page in pages)
        # Windows of the model's 24 positions.
        self.assertEqual([len(answer["log_probabilities"]) for answer in answers], [4, 1])
        self.assertAlmostEqual(sum(answers[0]["log_probabilities"]), len(pages[0]) * NEPERS, places=3)
        self.assertAlmostEqual(scores["bits_per_byte"]["value"], tokens * math.log2(V) / total, places=5)
        self.assertAlmostEqual(scores["byte_perplexity"]["value"], V ** (tokens / total), places=3)
        self.assertAlmostEqual(math.log(scores["word_perplexity"]["value"]), -tokens * NEPERS / (6 * 4 + 1 + 1), places=5)

    def test_written_answers(self):
        self.write_lines("asked.jsonl", [{"q": "the cat", "a": ["no", ""]}, {"q": "dog", "a": ["\n"]}])
        scores, answers = self.evaluate(self.write_task(
            output_type="generate_until", data="asked.jsonl", doc_to_target="{{a}}", doc_to_choice=None,
            generation_kwargs={"until": ["x"], "max_gen_toks": 5}))
        # The most probable of equal tokens is the end token.
        self.assertEqual([(answer["text"], answer["exact_match"]) for answer in answers], [("", 1), ("", 0)])
        self.assertEqual(scores["exact_match"]["value"], 0.5)

    def test_rules_of_written_answers(self):
        self.write_lines("asked.jsonl", [{"q": "the cat", "a": "Oh, no"}, {"q": "dog", "a": "[invalid]"}])
        keys = dict(output_type="generate_until", data="asked.jsonl", doc_to_target="a", doc_to_choice=None, dataset_name=None,
                    repeats=1, generation_kwargs={"max_gen_toks": 5})
        both = [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True, "ignore_case": True, "ignore_punctuation": True,
                 "regexes_to_ignore": ["[a-n ]", "O"]}]
        scores, answers = self.evaluate(self.write_task(**keys, metric_list=both, filter_list=[
            {"name": "first", "filter": [{"function": "take_first"}]},
            {"name": "number", "filter": [{"function": "regex", "regex_pattern": "(-?[0-9]+)", "group_select": -1}, {"function": "take_first"}]}]))
        # The model writes nothing: right where all of the target is ignored, or where the filter finds nothing.
        self.assertEqual([(answer["exact_match,first"], answer["exact_match,number"]) for answer in answers], [(0, 0), (0, 1)])
        scores, _ = self.evaluate(self.write_task(**keys, metric_list=[dict(both[0], regexes_to_ignore=["[a-z]", "O", " "])]))
        self.assertEqual(scores["exact_match"]["value"], 1)
        self.refused("repeats", "5", **{**keys, "repeats": 5})
        self.refused("dataset_name", **{**keys, "dataset_name": 5})
        self.refused("filter_list", "lowercase", **keys, filter_list=[{"name": "x", "filter": [{"function": "lowercase"}, {"function": "take_first"}]}])
        self.refused("filter_list", "\\w", **keys, filter_list=[{"name": "x", "filter": [{"function": "regex", "regex_pattern": "\\w"}, {"function": "take_first"}]}])
        self.refused("filter_list", "empty", **keys, filter_list=[])
        self.refused("ignore_case", metric_list=[{"metric": "acc", "ignore_case": True}])

    def test_written_answers_of_beams(self):
        """An answer is the best beam of its own question, also where the model's file asks for several."""
        self.write_lines("asked.jsonl", [{"q": "the cat"}, {"q": "dog"}])
        task = self.write_task(output_type="generate_until", data="asked.jsonl", doc_to_target="{{q}}", doc_to_choice=None,
                               generation_kwargs={"until": ["."], "max_gen_toks": 5})
        texts = []
        for returned in (1, 3):
            model = write_checkpoint(self.folder / f"beams{returned}", tokenizer=True,
                                     generation={"num_beams": 3, "num_return_sequences": returned, "do_sample": False})
            output = self.folder / "written.jsonl"
            self.succeed("evaluate", "--model", model, "--suite", task, "--json", "--output", output)
            texts.append([json.loads(line)["text"] for line in output.read_text().splitlines()])
        self.assertEqual(texts[0], texts[1])

    def test_examples(self):
        """How many tokens a choice has does not depend on the examples, but what the context has does: 24 positions."""
        _, answers = self.evaluate(self.write_task(num_fewshot=2, fewshot_config={"sampler": "first_n"}))
        self.assertAlmostEqual(answers[1]["log_probabilities"][0], 4 * NEPERS, places=4)
        self.refused("num_fewshot", "question 1", num_fewshot=3)

    def test_yaml(self):
        self.write_lines("places.jsonl", PLACES)
        (self.folder / "base.yaml").write_text("""# a comment
output_type: multiple_choice
dataset_path: json
dataset_kwargs: {data_files: {validation: places.jsonl}}
validation_split: validation
doc_to_text: |
  {% if q %}
  {{q}}{% endif %}
doc_to_target: label
doc_to_choice: options
should_decontaminate: yes
metric_list:
  - metric: acc
    higher_is_better: True
metadata: {version: 1.0}
""")
        (self.folder / "first.yaml").write_text("include: base.yaml\ntask: first\n")
        (self.folder / "second.yaml").write_text("include: base.yaml\ntask: second\ntarget_delimiter: \"\"\nmetric_list: [{metric: acc_norm}]\n")
        (self.folder / "all.yaml").write_text("- first.yaml\n- second.yaml\n")
        scores = json.loads(self.succeed("evaluate", "--model", self.model, "--suite", self.folder / "all.yaml", "--json", "--limit", 2))
        self.assertEqual([(s["task"], s["metric"], s["n"]) for s in scores], [("first", "acc", 2), ("second", "acc_norm", 2)])
        for text, *words in [("task: !function utils.f\n", "line 1", "!function"), ("task: [\n", "line 2"),
                             ("task: 1e5\n", "line 1", "1e5", "quotes"), ("a: 0o7\n", "0o7"), ("text\n", "keys of a task")]:
            (self.folder / "bad.yaml").write_text(text)
            self.assert_one_error(run("evaluate", "--model", self.model, "--suite", self.folder / "bad.yaml"), 1, "bad.yaml", *words)

    def test_refusals(self):
        self.refused("'process_docs'", "not supported", process_docs="!function f")
        self.refused("'doc_to_txt'", "doc_to_text", doc_to_txt="q")
        self.refused("task is missing", task=None)
        self.refused("doc_to_choice is missing", doc_to_choice=None)
        self.refused("output_type", "rank", output_type="rank")
        self.refused("metric_list", "f1", metric_list=[{"metric": "f1"}])
        self.refused("metric_list", "median", metric_list=[{"metric": "acc", "aggregation": "median"}])
        self.refused("filter_list", filter_list=[{"name": "x", "filter": [{"function": "regex"}]}])
        self.refused("sampling", generation_kwargs={"do_sample": True, "temperature": 0.5})
        self.refused("sampler", num_fewshot=1, fewshot_config={"sampler": "balanced"})
        self.refused("question 1", "'missing' is undefined", doc_to_text="{{missing}}")
        self.refused("question 1", "gives 7", "2 choices", doc_to_target=7)
        self.refused("question 2", "gives \"sat\"", doc_to_target="sat")
        self.refused("expected a list", doc_to_choice="{{q}}")
        self.refused("tojson", doc_to_text="{{q|tojson}}")
        self.refused("nothing.jsonl", data="nothing.jsonl")
        self.refused("split \"test\"", data=None, dataset_path="json", test_split="test", dataset_kwargs={"data_files": {"train": "places.jsonl"}})
        self.refused("differs in kind", metric_list=["acc"])
        self.refused("question 1", "26 tokens", "24", doc_to_choice=["x" * 24, "y"])
        self.write_lines("gaps.jsonl", [{"q": "a", "options": ["b", "c"], "label": 0}, {"q": "b", "options": ["c", "d"]}])
        self.refused("question 2", "gives null", data="gaps.jsonl")
        (self.folder / "broken.jsonl").write_text('{"q": "a"}\n[1]\n')
        self.refused("broken.jsonl", "line 2", data="broken.jsonl")

    def test_flags(self):
        self.refused("--dataset", "--suite", code=2, flags=("--dataset", "x"))
        self.assert_one_error(run("evaluate", "--model", self.model, "--dataset", "x", "--limit", 3), 2, "--limit", "--suite")


if __name__ == "__main__":
    unittest.main()
