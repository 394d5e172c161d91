"""Rows that pack several documents, beside transformers, which reads each document in a pass of its own: losses of ten updates."""

import json
import math
import pathlib
import random
import string
import tempfile
import unittest
import unittest.mock

import tokenizers
import torch
import transformers

from text_models import byte_level, tzoo

UPDATES = 10
TEMPLATE = "{% for m in messages %}{{ m.role }}: {% if m.role == 'assistant' %}{% generation %}{{ m.content }}{{ eos_token }}" \
           "{% endgeneration %}{% else %}{{ m.content }}\n{% endif %}{% endfor %}"


class DocumentsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = pathlib.Path(folder.name)
        cls.tokenizer = byte_level(bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>")
        common = dict(vocab_size=len(cls.tokenizer), bos_token_id=0, eos_token_id=2, pad_token_id=1)
        cls.configs = {
            "gpt2": transformers.GPT2Config(n_embd=32, n_layer=2, n_head=2, n_positions=96, embd_pdrop=0, attn_pdrop=0, resid_pdrop=0, **common),
            "mistral": transformers.MistralConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                                                  num_key_value_heads=2, sliding_window=9, max_position_embeddings=96, **common),
            "bloom": transformers.BloomConfig(hidden_size=32, n_layer=2, n_head=4, hidden_dropout=0, attention_dropout=0, **common)}

    def check(self, name, documents, *words):
        """documents: the ids and the target of each, as our rows have them; all rows are one batch."""
        softmax, logits = torch.nn.functional.softmax, []

        def noting(x, *args, **kwargs):
            logits.append(x.max().item())
            return softmax(x, *args, **kwargs)
        torch.manual_seed(1)
        model = transformers.AutoModelForCausalLM.from_config(self.configs[name], attn_implementation="eager")
        model.save_pretrained(self.root / name)
        self.tokenizer.save_pretrained(self.root / name)
        out = self.root / f"{name}-run"
        done = tzoo("train", "--init_from", str(self.root / name), "--out_dir", str(out), "--overwrite", "--documents", "pack",
                    "--max_iters", str(UPDATES), "--eval_interval", str(UPDATES), "--log_interval", "1", "--decay_lr", "false",
                    "--learning_rate", "1e-3", "--weight_decay", "0", "--grad_clip", "0", "--device", "cpu", "--layer_norms", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        ours = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()][:UPDATES]

        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), eps=1e-8, weight_decay=0)
        targets = sum(target != -100 for _, each in documents for target in each)
        model.train()
        for update in range(UPDATES):
            logits.clear()
            with unittest.mock.patch("torch.nn.functional.softmax", noting):
                loss = sum(torch.nn.functional.cross_entropy(model(torch.tensor([ids])).logits[0], torch.tensor(each), reduction="sum")
                           for ids, each in documents) / targets
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            self.assertAlmostEqual(ours[update]["train_loss"] / float(loss.detach()), 1, delta=1e-5, msg=f"{name}, update {update}")
            self.assertEqual(len(logits), 2 * len(documents))
            if name != "bloom":  # whose bias counts from the first position there, and from the query here
                for layer, found in enumerate(ours[update]["attention_logit_maxima"]):
                    self.assertAlmostEqual(found, max(logits[layer::2]), delta=1e-4, msg=f"{name}, update {update}, layer {layer}")

    def write(self, name, rows):
        path = self.root / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    def test_texts(self):
        draw = random.Random(5)
        texts = ["".join(draw.choices(string.ascii_uppercase, k=length)) for length in (20, 20, 9, 29, 31, 7, 18, 20)]
        dataset = self.write("texts.jsonl", [{"text": text} for text in texts])
        documents = []
        for text in texts:
            ids = self.tokenizer.encode(text)
            self.assertEqual(len(ids), len(text))
            ids = ([2] if documents else []) + ids + [2]  # from the end token of the document before it
            documents.append((ids[:-1], ids[1:]))
        # Rows of 41: 32 + 8, 30 + 10, 21 + 19 and 21 + 20.
        for name in self.configs:
            self.check(name, documents, "--dataset", dataset, "--val_dataset", dataset, "--block_size", "41", "--batch_size", "4")

    def test_a_tokenizer_with_a_token_before_each_text(self):
        plain = self.tokenizer
        self.tokenizer = byte_level(bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>")
        self.tokenizer.backend_tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 0)])
        texts = ["AB" * 9, "CDE" * 5, "F" * 20]
        dataset = self.write("begun.jsonl", [{"text": text} for text in texts])
        documents = [((ids := self.tokenizer(text).input_ids + [2])[:-1], ids[1:]) for text in texts]
        self.assertEqual(documents[0][0][:2], [0, plain.encode("A")[0]])
        self.check("gpt2", documents, "--dataset", dataset, "--val_dataset", dataset, "--block_size", "41", "--batch_size", "2")

    def test_conversations(self):
        chats = [[{"role": "user", "content": "What is 2+2?"}, {"role": "assistant", "content": "Four."}],
                 [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"},
                  {"role": "user", "content": "Bye"}, {"role": "assistant", "content": "See you."}],
                 [{"role": "user", "content": "Name a colour."}, {"role": "assistant", "content": "Blue, as the sky."}]]
        dataset = self.write("chats.jsonl", [{"messages": chat} for chat in chats])
        template = self.root / "chat.jinja"
        template.write_text(TEMPLATE)
        documents = []
        for chat in chats:
            one = self.tokenizer.apply_chat_template(chat, chat_template=TEMPLATE, return_dict=True, return_assistant_tokens_mask=True)
            labels = [token if kept else -100 for token, kept in zip(one["input_ids"], one["assistant_masks"])]
            documents.append((one["input_ids"][:-1], labels[1:]))
        lengths = sorted(len(ids) for ids, _ in documents)
        self.assertTrue(sum(lengths[:2]) <= 96 < sum(lengths))  # two rows
        for name in ("gpt2", "mistral"):
            self.check(name, documents, "--task", "chat", "--dataset", dataset, "--val_dataset", dataset, "--chat_template", str(template),
                       "--block_size", "96", "--batch_size", "2")

    def test_a_large_file_is_encoded_where_it_is_read(self):
        name, model = "gpt2", transformers.AutoModelForCausalLM.from_config(self.configs["gpt2"])
        model.save_pretrained(self.root / name)
        self.tokenizer.save_pretrained(self.root / name)
        draw = random.Random(6)
        texts = ["".join(draw.choices(string.ascii_letters, k=length)) for length in range(1, 2000, 7)]
        lines = [json.dumps({"text": text}) + "\n" for text in texts]
        large = self.root / "large.jsonl"
        large.write_text("".join(lines) * (66_000_000 // sum(map(len, lines)) + 1))

        def train(out, updates, *words, start=name):
            return tzoo("train", "--init_from", str(self.root / start) if start == name else start, "--dataset", str(large), "--out_dir", str(self.root / out),
                        "--max_iters", str(updates), "--eval_interval", "2", "--eval_iters", "1", "--log_interval", "1", "--block_size", "32",
                        "--batch_size", "2", "--device", "cpu", *words)

        for out, steps in ("whole", (4,)), ("halves", (2, 4)):
            for i, updates in enumerate(steps):
                done = train(out, updates, "--decay_lr", "false", start="resume" if i else name)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("on disk meanwhile", done.stderr)
        weights = [(self.root / out / "final/model.safetensors").read_bytes() for out in ("whole", "halves")]
        self.assertEqual(*weights)
        metrics = [json.loads(line) for line in (self.root / "whole/metrics.jsonl").read_text().splitlines()]
        tokens = sum(len(self.tokenizer.encode(text)) + 1 for text in texts)
        per_byte = metrics[0]["val_bits_per_byte"] / metrics[0]["val_loss"] * math.log(2)
        self.assertAlmostEqual(per_byte, tokens / sum(map(len, texts)), delta=1e-4)
        # A row that cannot be read ends the run while it learns from others.
        begin = large.read_bytes().index(b"\n", large.stat().st_size // 2) + 1
        line = large.read_bytes()[:begin].count(b"\n") + 1
        for broken, said in (b"[", "expected a JSON object"), (b'{"text": "\xff', "invalid UTF-8 at its byte 10"):
            with large.open("r+b") as file:
                file.seek(begin)
                file.write(broken)
            done = train("broken", 1_000_000, "--eval_interval", "1000000", "--overwrite")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"large.jsonl, line {line}: {said}", done.stderr)


if __name__ == "__main__":
    unittest.main()
