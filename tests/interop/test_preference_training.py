"""The task preference beside plain PyTorch in double precision, on transformers' GPT-2 and Llama: losses, every gradient and
the weights after updates, figures, resuming, and what is refused. The formulas are those of TRL's trainers."""

import json
import pathlib
import tempfile
import unittest

import safetensors.torch
import torch
import transformers
from torch.nn.functional import logsigmoid

from sgd_training import SgdTraining
from text_models import byte_level, shaken, tzoo

TEMPLATE = ("{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content + eos_token }}{% endgeneration %}"
            "{% else %}{{ '<' + m.role + '>' + m.content + '\\n' }}{% endif %}{% endfor %}")
PAIRS = [{"prompt": "the end?", "chosen": "and in the", "rejected": "no"}, {"prompt": "sing", "chosen": "la la", "rejected": "the the the"},
         {"prompt": "2+2", "chosen": "four", "rejected": "in the end five"}, {"prompt": "x", "chosen": "y", "rejected": "zz"}]
LABELLED = [{"prompt": pair["prompt"], "completion": pair[key], "label": key == "chosen"}
            for pair, key in zip(PAIRS, ("chosen", "rejected", "rejected", "chosen"))]
STEPS, RATE = 20, 0.01


def messages(row, key):
    return [{"role": "user", "content": row["prompt"]}, {"role": "assistant", "content": row[key]}]


class PreferenceTrainingTest(SgdTraining, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = pathlib.Path(folder.name)
        cls.tokenizer = byte_level(bos_token="<s>", eos_token="</s>", pad_token="<pad>")
        cls.tokenizer.chat_template = TEMPLATE
        ids = {"vocab_size": len(cls.tokenizer), "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
        torch.manual_seed(3)
        gpt2 = transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=64, embd_pdrop=0, attn_pdrop=0, resid_pdrop=0, **ids)
        llama = transformers.LlamaConfig(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
                                         max_position_embeddings=64, tie_word_embeddings=False, **ids)
        for name, config in ("gpt2", gpt2), ("llama", llama):
            model = shaken(transformers.AutoModelForCausalLM.from_config(config), 0.1)
            model.save_pretrained(cls.root / name)
            cls.tokenizer.save_pretrained(cls.root / name)

    def train(self, records, *words, model="gpt2", steps=STEPS, rate=RATE, batch=None):
        dataset = self.root / "rows.jsonl"
        dataset.write_text("".join(json.dumps(record) + "\n" for record in records))
        return self.train_rows("preference", model, dataset, *words, steps=steps, rate=rate, batch=batch or len(records))

    def encoded(self, row, key):
        """Ids of the prompt, and of the answer."""
        out = self.tokenizer.apply_chat_template(messages(row, key), return_dict=True, return_assistant_tokens_mask=True)
        begin = out["assistant_masks"].index(1)
        return out["input_ids"][:begin], out["input_ids"][begin:]

    def log_probs(self, model, prompt, answer):
        """Of each token after the first, and the last of these that are the answer's."""
        ids = torch.tensor([prompt + answer])
        each = model(ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        return each, each[len(prompt) - 1:]

    def paired(self, kind, beta, smoothing=0):
        def loss(model, reference):
            losses, rewards, whole = [], [], []
            for row in PAIRS:
                ratio = {}
                for key in "chosen", "rejected":
                    texts = self.encoded(row, key)
                    every, own = self.log_probs(model, *texts)
                    with torch.no_grad():
                        base = self.log_probs(reference, *texts)[1]
                    ratio[key] = {"dpo": own.sum() - base.sum(), "ipo": own.mean() - base.mean(), "orpo": own.mean()}[kind]
                    whole += [every] if key == "chosen" else []
                c, r = ratio["chosen"], ratio["rejected"]
                rewards.append((beta * c.item(), beta * r.item()))
                if kind == "dpo":
                    losses.append(-logsigmoid(beta * (c - r)) * (1 - smoothing) - logsigmoid(-beta * (c - r)) * smoothing)
                elif kind == "ipo":
                    losses.append((c - r - 1 / (2 * beta)) ** 2)
                else:
                    losses.append(-beta * logsigmoid((c - r) - (torch.log1p(-c.exp()) - torch.log1p(-r.exp()))))
            extra = -torch.cat(whole).mean() if kind == "orpo" else 0
            good, bad = (torch.tensor(side) for side in zip(*rewards))
            figures = {"rewards_chosen": good.mean(), "rewards_rejected": bad.mean(), "rewards_accuracies": (good > bad).double().mean(),
                       "rewards_margins": (good - bad).mean()}
            return torch.stack(losses).mean() + extra, figures
        return loss

    def kto(self, answers, beta):
        """answers: row, key and whether it is the chosen one, in the order of the data."""
        def loss(model, reference):
            def ratio(prompt, answer):
                with torch.no_grad():
                    base = self.log_probs(reference, prompt, answer)[1].sum()
                return self.log_probs(model, prompt, answer)[1].sum() - base
            texts = [self.encoded(row, key) for row, key, _ in answers]
            with torch.no_grad():
                kl = torch.stack([ratio(texts[i][0], texts[i - 1][1]) for i in range(len(texts))]).mean().clamp(min=0)
            ratios = [ratio(*text) for text in texts]
            good = [x for x, answer in zip(ratios, answers) if answer[2]]
            bad = [x for x, answer in zip(ratios, answers) if not answer[2]]
            losses = [1 - torch.sigmoid(beta * (x - kl)) for x in good] + [1 - torch.sigmoid(beta * (kl - x)) for x in bad]
            means = [beta * torch.stack(side).mean().item() for side in (good, bad)]
            return torch.stack(losses).mean(), {"rewards_chosen": means[0], "rewards_rejected": means[1],
                                                "rewards_margins": means[0] - means[1], "kl": kl}
        return loss

    def cases(self):
        split = [(row, key, key == "chosen") for key in ("chosen", "rejected") for row in PAIRS]
        single = [(row, "completion", row["label"]) for row in LABELLED]
        return [(PAIRS, (), self.paired("dpo", 0.1)), (PAIRS, ("--beta", "0.5", "--label_smoothing", "0.2"), self.paired("dpo", 0.5, 0.2)),
                (PAIRS, ("--preference_loss", "ipo", "--beta", "0.8"), self.paired("ipo", 0.8)),
                (PAIRS, ("--preference_loss", "orpo", "--beta", "0.3"), self.paired("orpo", 0.3)),
                (PAIRS, ("--preference_loss", "kto", "--beta", "0.3", "--batch_size", "8"), self.kto(split, 0.3)),
                (LABELLED, ("--preference_loss", "kto", "--beta", "0.5"), self.kto(single, 0.5))]

    def load(self, name):
        return transformers.AutoModelForCausalLM.from_pretrained(self.root / name).double()

    def test_losses_and_weights(self):
        divergences = []
        for name, cases in ("gpt2", self.cases()), ("llama", self.cases()[::5]):  # the gradients of all are tested on llama
            for records, words, loss in cases:
                with self.subTest(model=name, words=words):
                    run = self.trained(records, *words, model=name)
                    model, start, reference = (self.load(name) for _ in range(3))
                    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
                    rows = self.metrics(run)
                    for row in rows[:STEPS]:
                        value, figures = loss(model, reference)
                        self.assertAlmostEqual(row["train_loss"] / value.item(), 1, delta=1e-5)
                        for key, figure in figures.items():
                            self.assertAlmostEqual(row["train_" + key], float(figure), delta=1e-5 * max(1, abs(float(figure))), msg=key)
                        divergences.append(float(figures.get("kl", 0)))
                        optimizer.zero_grad()
                        value.backward()
                        optimizer.step()
                    with torch.no_grad():  # the evaluation has the same figures
                        value, figures = loss(model, reference)
                    self.assertAlmostEqual(rows[-1]["val_loss"] / value.item(), 1, delta=1e-5)
                    for key, figure in figures.items():
                        self.assertAlmostEqual(rows[-1]["val_" + key], float(figure), delta=2e-5 * max(1, abs(float(figure))), msg=key)
                    ours = safetensors.torch.load_file(run / "final/model.safetensors")
                    moved = 0
                    for key, theirs in model.named_parameters():
                        self.assertLessEqual((ours[key] - theirs).abs().max().item(), 1e-5 * max(theirs.abs().max().item(), 0.1), key)
                        moved = max(moved, (theirs - start.get_parameter(key)).abs().max().item())
                    self.assertGreater(moved, 0.005)  # else the test would tell nothing
        self.assertGreater(max(divergences), 0.01)

    def test_ranks_share_a_batch(self):
        cases = self.cases()
        for records, words, _ in (cases[0], *cases[2:]):
            with self.subTest(words):
                half = str(int(words[-1]) // 2 if "--batch_size" in words else len(records) // 2)
                one = self.trained(records, *words, model="llama")
                two = self.trained(records, *words, "--batch_size", half, "--processes", "2", model="llama")
                self.same_run(one, two)

    def test_dropout_is_off_as_in_the_reference(self):
        for file in (self.root / "gpt2").iterdir():
            (self.root / "dropout").mkdir(exist_ok=True)
            (self.root / "dropout" / file.name).write_bytes(file.read_bytes())
        config = json.loads((self.root / "dropout/config.json").read_text())
        (self.root / "dropout/config.json").write_text(json.dumps({**config, "resid_pdrop": 0.5, "embd_pdrop": 0.5, "attn_pdrop": 0.5}))
        plain, dropout = (self.trained(PAIRS, model=model, steps=2) / "final/model.safetensors" for model in ("gpt2", "dropout"))
        self.assertEqual(dropout.read_bytes(), plain.read_bytes())

    def test_gradients(self):
        for name, cases in ("gpt2", self.cases()[::5]), ("llama", self.cases()):
            for records, words, loss in cases:
                with self.subTest(model=name, words=words):
                    # With rate 1 the step of the weights is the gradient.
                    run = self.trained(records, *words, model=name, steps=1, rate=1)
                    model, reference = self.load(name), self.load(name)
                    loss(model, reference)[0].backward()
                    ours = safetensors.torch.load_file(run / "final/model.safetensors")
                    largest = max(parameter.grad.abs().max().item() for parameter in model.parameters())
                    for key, parameter in model.named_parameters():
                        found = parameter.detach() - ours[key].double()
                        self.assertLessEqual((found - parameter.grad).abs().max().item(), 1e-5 * largest, key)

    def test_resuming(self):
        for words in ((), ("--lora_rank", "2"), ("--preference_loss", "kto"), ("--preference_loss", "orpo")):
            with self.subTest(words):
                whole = self.trained(PAIRS, *words, batch=2)
                half = self.trained(PAIRS, *words, batch=2, steps=3)
                done = tzoo("train", "--init_from", "resume", "--out_dir", str(half), "--max_iters", str(STEPS))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual((half / "final/model.safetensors").read_bytes(), (whole / "final/model.safetensors").read_bytes())
                self.assertNotEqual((half / "final/model.safetensors").read_bytes(), (self.root / "gpt2/model.safetensors").read_bytes())
                self.assertEqual((half / "reference.safetensors").exists(), "orpo" not in words)
        (whole, half) = (self.trained(PAIRS, batch=2, steps=1) for _ in range(2))
        (half / "reference.safetensors").unlink()
        done = tzoo("train", "--init_from", "resume", "--out_dir", str(half), "--max_iters", "2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("reference.safetensors", done.stderr)
        tensors = safetensors.torch.load_file(whole / "reference.safetensors")
        safetensors.torch.save_file(tensors | {"train": tensors["train"][:2].clone()}, whole / "reference.safetensors")
        done = tzoo("train", "--init_from", "resume", "--out_dir", str(whole), "--max_iters", "2")
        self.assertIn("expected 'train' of 4 rows", done.stderr)

    def test_adapters_have_the_loss_of_the_weights(self):
        first, run = self.metrics(self.trained(PAIRS, steps=1))[0], self.trained(PAIRS, "--lora_rank", "2")
        self.assertAlmostEqual(self.metrics(run)[0]["train_loss"], first["train_loss"], places=6)
        self.assertLess(self.metrics(run)[-1]["val_loss"], first["train_loss"])

    def test_shapes_of_files(self):
        user, chosen, rejected = ([{"role": role, "content": pair[key]} for pair in PAIRS]
                                  for role, key in (("user", "prompt"), ("assistant", "chosen"), ("assistant", "rejected")))
        lists = [{"prompt": [u], "chosen": [c], "rejected": [r]} for u, c, r in zip(user, chosen, rejected)]
        whole = [{"chosen": [u, c], "rejected": [u, r]} for u, c, r in zip(user, chosen, rejected)]
        both = [row | {"prompt": pair["prompt"]} for row, pair in zip(whole, PAIRS)]
        wanted = self.metrics(self.trained(PAIRS, steps=2))
        for name, records in ("lists", lists), ("whole", whole), ("both", both):
            found = self.metrics(self.trained(records, steps=2))
            self.assertEqual([row["train_loss"] for row in found], [row["train_loss"] for row in wanted], name)
        # What the assistant said before is no answer.
        history = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        longer = [{"prompt": history + [u], "chosen": [c], "rejected": [r]} for u, c, r in zip(user, chosen, rejected)]
        plain = TEMPLATE.replace("{% generation %}", "").replace("{% endgeneration %}", "")
        losses = []
        for template in TEMPLATE, plain:
            (self.root / "t.jinja").write_text(template)
            losses.append(self.metrics(self.trained(longer, "--chat_template", str(self.root / "t.jinja"), "--preference_loss", "ipo", steps=2)))
        model, reference = self.load("gpt2"), self.load("gpt2")
        self.assertEqual(losses[0][1]["train_loss"], losses[1][1]["train_loss"])
        rewards = []
        with torch.no_grad():
            begin = self.tokenizer.apply_chat_template(history, tokenize=True, return_dict=True)["input_ids"]
            for row in PAIRS:
                prompt, answer = self.encoded(row, "chosen")
                rewards.append(self.log_probs(model, begin + prompt, answer)[1].sum().item())
        run = self.trained(longer, "--preference_loss", "dpo", steps=1)
        stored = safetensors.torch.load_file(run / "reference.safetensors")["train"]
        for ours, theirs in zip(stored[:, 0].tolist(), rewards):
            self.assertAlmostEqual(ours / theirs, 1, delta=1e-5)

    def test_hostile_data(self):
        good = PAIRS[0]
        for record, words, said in [
                ({"prompt": "a", "chosen": "b"}, (), "line 2: 'rejected' is missing"),
                (good | {"rejected": ""}, (), "line 2: 'rejected' is empty"),
                (good | {"chosen": [{"role": "assistant", "content": ""}]}, (), "a message of the assistant is empty"),
                (good | {"chosen": []}, (), "line 2: 'chosen' is empty"),
                (good | {"chosen": [{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]}, (), "'chosen' is not the assistant's"),
                ({"chosen": "a", "rejected": "b"}, (), "line 2: 'prompt' is missing"),
                ({"prompt": "z", "chosen": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
                  "rejected": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "c"}]}, (), "'prompt' is not what"),
                (LABELLED[0], (), "line 2: expected the shape of the first line, 'chosen' and 'rejected'"),
                ({"prompt": "a"}, (), "expected 'prompt' with 'chosen' and 'rejected'"),
                ({"prompt": "a", "chosn": "b", "rejected": "c"}, (), "did you mean 'chosen'"),
                (PAIRS[1], ("--preference_loss", "orpo", "--label_smoothing", "0.1"), "--label_smoothing: only for --preference_loss dpo"),
                (PAIRS[1], ("--label_smoothing", "0.5"), "--label_smoothing 0.5"),
                (PAIRS[1], ("--preference_loss", "kto", "--batch_size", "1"), "--batch_size 1"),
                (PAIRS[1], ("--disagreement", "positions"), "--disagreement: not for the task preference"),
                (PAIRS[1], ("--loss", "mse"), "--loss: only for the task embedding or ranking, not preference"),
                (PAIRS[1], ("--block_size", "8"), "no prompt has answers that differ within 8 tokens")]:
            with self.subTest(said):
                done, run = self.train([good, record], *words, steps=1)
                self.assertEqual((done.returncode != 0, done.stderr.count("error:")), (True, 1), done.stderr)
                self.assertIn(said, done.stderr)
                self.assertFalse((run / "checkpoints").exists())
        for label in 1, "yes", None:
            done, _ = self.train([LABELLED[0] | {"label": label}], "--preference_loss", "kto", batch=2)
            self.assertIn("'label' must be true or false", done.stderr)
        done, _ = self.train(LABELLED)
        self.assertIn("single answers with a label, which only --preference_loss kto learns from", done.stderr)
        done = tzoo("train", "--task", "mlm", "--beta", "0.2", "--out_dir", str(self.root / "none"))
        self.assertIn("--beta: only for the task preference, not mlm", done.stderr)
        done = tzoo("train", "--task", "preference", "--dataset", str(self.root / "rows.jsonl"), "--out_dir", str(self.root / "none"))
        self.assertIn("--task preference tunes a model that exists", done.stderr)
        done = tzoo("train", "--task", "preference", "--init_from", str(self.root / "gpt2"), "--out_dir", str(self.root / "none"))
        self.assertIn("missing flag '--dataset': a .jsonl file of prompts with chosen and rejected answers", done.stderr)

    def test_what_is_left_out_is_said(self):
        same, late = PAIRS[0] | {"rejected": PAIRS[0]["chosen"]}, {"prompt": "p" * 60, "chosen": "a", "rejected": "b"}
        long = {"prompt": "q", "chosen": "yes " * 12, "rejected": "no " * 14}
        done, run = self.train([*PAIRS, same, late, long], "--block_size", "40", steps=1, batch=5)
        self.assertEqual(done.returncode, 0, done.stderr)
        # Each twice: the data and the validation set are the same file.
        for said in ("2 pairs have the same answers within --block_size 40 and are left out",
                     "2 conversations have no answer within --block_size 40 and are left out",
                     "4 of 20 examples are cut to --block_size 40"):
            self.assertIn(said, done.stderr)
        stored = safetensors.torch.load_file(run / "reference.safetensors")["train"]
        prompt, answer = self.encoded(long, "chosen")
        with torch.no_grad():
            cut = self.log_probs(self.load("gpt2"), prompt, answer[:40 - len(prompt)])[1].sum().item()
        self.assertAlmostEqual(stored[4, 0].item() / cut, 1, delta=1e-5)


if __name__ == "__main__":
    unittest.main()
