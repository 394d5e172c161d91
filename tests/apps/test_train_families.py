"""tzoo train with every family of the registry, from its first preset shrunk to a width of 64: it learns, resumes bit for bit, and
what it writes says the same in every engine."""

import concurrent.futures
import json
import pathlib
import shutil
import tempfile
import unittest

from tzoo_runner import CommandTest, run  # also the path to support/
from tier import SHORT

WORDS = [f"the {a} {b} of the {c}" for a in ("old", "new", "red") for b in ("house", "tree") for c in ("king", "sea")]
WIDTH = 64
TASKS = {"causal-lm": "lm", "seq2seq-lm": "seq2seq", "base": "mlm", "sequence-classification": "classification"}
DATA = {"lm": "text.txt", "seq2seq": "pairs.tsv", "mlm": "text.txt", "classification": "classes.tsv", "span_corruption": "text.txt"}
TOKENIZERS = {"lm": "char", "seq2seq": "char", "mlm": "wordpiece", "classification": "wordpiece", "span_corruption": "byte_bpe"}
# Least fall of the loss in 50 updates: a token's is about 3 at first, that of two classes 0.7.
LEARNT = {"lm": 1.0, "seq2seq": 1.0, "mlm": 0.3, "classification": 0.1, "span_corruption": 1.0}


def registry():
    """The first preset of each family."""
    presets = {}
    for preset in json.loads(run("models", "--json").out):
        presets.setdefault(preset["family"], preset)
    return presets


def is_of_tutorials(preset):
    return preset["family"].startswith("tutorial-")


def shrunk(preset):
    """Flags for its proportions: heads that share keys, the feed-forward's width, and at most three layers. The tutorials' models
    have the number of heads that they show."""
    heads = preset["heads"] if is_of_tutorials(preset) else 4
    sizes = dict(n_layer=min(preset["layers"], 3), n_head=heads, n_embd=WIDTH)
    if preset["kv_heads"] != preset["heads"]:
        sizes["n_kv_head"] = max(1, heads * preset["kv_heads"] // preset["heads"])
    if not is_of_tutorials(preset):
        sizes["n_inner"] = WIDTH * preset["feed_forward"] // preset["width"]
    return sizes


def write_mpnet_tokenizer(folder):
    """MPNet's padding is always token 1."""
    special = ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"]
    words = sorted({word for line in WORDS for word in line.split()})
    folder.mkdir()
    (folder / "vocab.txt").write_text("".join(token + "\n" for token in special + words))
    roles = dict(cls_token="<s>", pad_token="<pad>", sep_token="</s>", unk_token="[UNK]", mask_token="<mask>")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MPNetTokenizer", **roles}))
    return folder


class TrainFamiliesTest(CommandTest):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "text.txt").write_text("".join(line + "\n" for line in WORDS * 30))
        (self.folder / "pairs.tsv").write_text("".join(f"{line[4:]}\t{line[4:12]}\n" for line in WORDS * 5))
        (self.folder / "classes.tsv").write_text("".join(f"{line}\t{line.split()[-1]}\n" for line in WORDS * 5))
        self.tokenizers = {"mpnet": write_mpnet_tokenizer(self.folder / "mpnet-tokenizer")}

    def task_of(self, preset):
        # mBART's targets end in the id of a language, which seq2seq does not write.
        return "span_corruption" if preset["family"] == "mbart" else TASKS[preset["head"]]

    def train(self, preset, name, **more):
        task = self.task_of(preset)
        tokenizer = self.tokenizers.get(preset["family"], TOKENIZERS[task])
        values = dict(task=task, dataset=self.folder / DATA[task], tokenizer=tokenizer, model_type=preset["family"], **shrunk(preset),
                      block_size=32, batch_size=8, learning_rate=1e-2, min_lr=1e-3, warmup_iters=5, lr_decay_iters=50, eval_interval=25,
                      eval_iters=2, log_interval=1, threads=1, out_dir=self.folder / name)
        if tokenizer in ("wordpiece", "byte_bpe"):
            values["vocab_size"] = 60 if tokenizer == "wordpiece" else 400
        values.update(more)
        result = run("train", *(word for flag, value in values.items() for word in (f"--{flag}", str(value))))
        self.assertEqual(result.code, 0, result.err)
        return self.folder / name

    def said(self, *words):
        return json.loads(self.succeed(*words, "--threads", 1, "--json"))

    def answers(self, task, model, *weights):
        """(words or ids, their probabilities)"""
        if task == "mlm":
            mask = json.loads((model / "tokenizer_config.json").read_text())["mask_token"]
            said = self.said("fill-mask", "--model", model, "--text", f"the old {mask} of the sea", *weights)
            guesses = said["masks"][0]
            return [guess["token"] for guess in guesses], [guess["score"] for guess in guesses]
        prompt = "the old " if task == "lm" else "old tree of the sea"
        said = self.said("generate", "--model", model, "--prompt", prompt, "--max_new_tokens", 24, "--temperature", 0, "--logprobs",
                         *weights)
        return said["ids"][0], said["logprobs"][0]

    def check_answers(self, task, expected, model, *weights):
        found = self.answers(task, model, *weights)
        self.assertEqual(found[0], expected[0])
        self.assertLess(max(abs(a - b) for a, b in zip(found[1], expected[1])), 1e-4)

    def check_engines(self, preset, folder):
        model, task = folder / "final", self.task_of(preset)
        expected = self.answers(task, model, "--weights", "modules")
        self.check_answers(task, expected, model, "--weights", "float32")
        if task in ("lm", "mlm"):
            losses = [self.said("evaluate", "--model", model, "--weights", weights)["loss"] for weights in ("modules", "float32")]
            self.assertAlmostEqual(losses[1] / losses[0], 1, delta=1e-5)
        else:
            self.assert_one_error(run("evaluate", "--model", model, "--weights", "float32"), 2, "--weights float32", "modules alone")
        for form in ("torchscript", "huggingface"):
            target = self.folder / f"{folder.name}.{form}"
            exported = run("export", "--model", model, "--format", form, "--output", target, "--verify")
            self.assertEqual(exported.code, 0, exported)
        self.check_answers(task, expected, target, "--weights", "modules")

    def check_tutorials(self, folder):
        """They run as modules alone; the rest is refused by name."""
        model = folder / "final"
        self.succeed("export", "--model", model, "--format", "huggingface", "--output", self.folder / f"{folder.name}.hf", "--verify")
        self.assert_one_error(run("export", "--model", model, "--output", self.folder / f"{folder.name}.pt"), 1, "TorchScript")
        self.assert_one_error(run("evaluate", "--model", model, "--weights", "float32"), 2, "--weights")

    def check(self, preset):
        family = preset["family"]
        whole = self.train(preset, family, max_iters=50)
        lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
        losses = [line["val_loss"] for line in lines if "val_loss" in line]
        self.assertLess(losses[-1], losses[0] - LEARNT[self.task_of(preset)])
        # As a kill after half of the updates leaves it: what was written later is gone.
        half = pathlib.Path(shutil.copytree(whole, self.folder / (family + "-half")))
        for later in ("checkpoints/step-00000050", "best", "final"):
            shutil.rmtree(half / later)
        self.train(preset, half.name, max_iters=50, init_from="resume")
        weights = [(folder / "final/model.safetensors").read_bytes() for folder in (whole, half)]
        self.assertTrue(weights[0] == weights[1], "a resumed run ends in other weights")
        self.check_tutorials(whole) if is_of_tutorials(preset) else self.check_engines(preset, whole)

    def test_fifty_updates(self):
        presets = registry()
        self.assertGreater(len(presets), 40)
        if SHORT:  # each shape, task and engine
            presets = {family: presets[family] for family in ("gpt2", "albert", "t5", "qwen3_moe", "bert", "tutorial-embeddings")}
        with concurrent.futures.ThreadPoolExecutor(2) as threads:
            checks = {family: threads.submit(self.check, preset) for family, preset in presets.items()}
        for family, check in checks.items():
            with self.subTest(family=family):
                check.result()


if __name__ == "__main__":
    unittest.main()
