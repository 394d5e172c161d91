"""tzoo train --teacher beside plain PyTorch in double precision, on transformers' GPT-2 and Llama: losses, every gradient and
the weights after updates, figures, packed teachers, resuming, and what is refused."""

import fcntl
import json
import math
import pathlib
import struct
import tempfile
import unittest

import safetensors.torch
import torch
import transformers
from torch.nn.functional import cross_entropy, kl_div

from sgd_training import SgdTraining
from text_models import byte_level, shaken, tzoo

TEMPLATE = ("{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content + eos_token }}{% endgeneration %}"
            "{% else %}{{ '<' + m.role + '>' + m.content + '\\n' }}{% endif %}{% endfor %}")
CHATS = [{"messages": [{"role": "user", "content": a}, {"role": "assistant", "content": b}]}
         for a, b in (("the end?", "and in the"), ("sing", "la la"), ("2+2", "four"), ("x", "in the beginning"))]
STEPS, RATE = 20, 0.05


def divergence(kind, q, p, temperature, top_k):
    """Mean over the rows, of logits [N, V]; of the top k tokens by p and of all others as one, if there is a top k."""
    q, p = ((x / temperature).log_softmax(-1) for x in (q, p))
    if top_k:
        ids = p.topk(top_k).indices
        q, p = (torch.cat([x.gather(1, ids), (1 - x.gather(1, ids).exp().sum(1, keepdim=True)).log()], 1) for x in (q, p))
    return kl_div(q, p, reduction="batchmean", log_target=True) if kind == "forward" else kl_div(p, q, reduction="batchmean", log_target=True)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class DistillationTest(SgdTraining, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = pathlib.Path(folder.name)
        cls.tokenizer = byte_level(bos_token="<s>", eos_token="</s>", pad_token="<pad>")
        cls.tokenizer.chat_template = TEMPLATE
        ids = {"vocab_size": len(cls.tokenizer), "bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
        torch.manual_seed(3)
        # A teacher in training would drop half of its states.
        configs = {"student": transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=64, embd_pdrop=0, attn_pdrop=0, resid_pdrop=0, **ids),
                   "gpt2": transformers.GPT2Config(n_embd=32, n_layer=3, n_head=4, n_positions=96, embd_pdrop=0.5, attn_pdrop=0.5, resid_pdrop=0.5, **ids),
                   "llama": transformers.LlamaConfig(hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
                                                     max_position_embeddings=64, tie_word_embeddings=False, **ids)}
        for name, config in configs.items():
            shaken(transformers.AutoModelForCausalLM.from_config(config), 0.15).save_pretrained(cls.root / name)
            cls.tokenizer.save_pretrained(cls.root / name)
        cls.ids = torch.randint(5, len(cls.tokenizer), (25,))
        cls.block = cls.root / "tokens"
        cls.block.mkdir()
        for split in ("train", "val"):
            (cls.block / f"{split}.bin").write_bytes(struct.pack("<25H", *cls.ids.tolist()))
        meta = {"format_version": 1, "dtype": "uint16", "vocab_size": len(cls.tokenizer), "tokenizer": "char", "train_tokens": 25,
                "val_tokens": 25, "source_sha256": "0" * 64}
        (cls.block / "meta.json").write_text(json.dumps(meta))
        cls.chats = cls.root / "chats.jsonl"
        cls.chats.write_text("".join(json.dumps(chat) + "\n" for chat in CHATS))

    def train(self, task, *words, teacher="gpt2", steps=STEPS, rate=RATE, batch=4):
        shape = ("--block_size", "24") if task == "lm" else ()
        given = ("--teacher", str(self.root / teacher)) if teacher else ()
        return self.train_rows(task, "student", self.block if task == "lm" else self.chats, *given, *shape, *words, steps=steps, rate=rate, batch=batch)

    def load(self, name):
        return transformers.AutoModelForCausalLM.from_pretrained(self.root / name).double().eval()

    def pairs(self, task, model):
        """Logits [N, V] where a target is learnt, and the targets [N]."""
        if task == "lm":
            return model(self.ids[None]).logits[0, :-1], self.ids[1:]
        logits, targets = [], []
        for chat in CHATS:
            out = self.tokenizer.apply_chat_template(chat["messages"], return_dict=True, return_assistant_tokens_mask=True)
            ids, begin = torch.tensor(out["input_ids"]), out["assistant_masks"].index(1)
            logits.append(model(ids[None]).logits[0, begin - 1:-1])
            targets.append(ids[begin:])
        return torch.cat(logits), torch.cat(targets)

    def loss(self, task, student, teacher, kind="forward", weight=0.5, temperature=1.0, top_k=0):
        """The training loss, the cross-entropy and the divergence."""
        q, targets = self.pairs(task, student)
        with torch.no_grad():
            p = self.pairs(task, teacher)[0]
        kl = divergence(kind, q, p, temperature, top_k)
        text = cross_entropy(q, targets)
        return (1 - weight) * text + weight * temperature ** 2 * kl, text, kl

    CASES = [((), {}),
             (("--distillation_weight", "0.8", "--distillation_temperature", "2.5"), {"weight": 0.8, "temperature": 2.5}),
             (("--distillation", "reverse_kl", "--distillation_temperature", "0.7"), {"kind": "reverse", "temperature": 0.7}),
             (("--distillation", "reverse_kl", "--distillation_weight", "1"), {"kind": "reverse", "weight": 1}),
             (("--teacher_top_k", "3", "--distillation_temperature", "1.5"), {"top_k": 3, "temperature": 1.5}),
             (("--teacher_top_k", "9", "--distillation", "reverse_kl"), {"top_k": 9, "kind": "reverse"})]

    def test_losses_and_weights(self):
        for task in "lm", "chat":
            for teacher, (words, options) in zip(("gpt2", "llama") * 3, self.CASES):
                with self.subTest(task=task, words=words):
                    run = self.trained(task, *words, teacher=teacher)
                    student, start, known = self.load("student"), self.load("student"), self.load(teacher)
                    optimizer = torch.optim.SGD(student.parameters(), lr=RATE)
                    rows = self.metrics(run)
                    for row in rows[:STEPS]:
                        value, _, kl = self.loss(task, student, known, **options)
                        self.assertAlmostEqual(row["train_loss"] / value.item(), 1, delta=1e-5)
                        self.assertAlmostEqual(row["train_kl"] / kl.item(), 1, delta=1e-5)
                        optimizer.zero_grad()
                        value.backward()
                        optimizer.step()
                    with torch.no_grad():  # an evaluation has the loss of the text alone
                        _, text, kl = self.loss(task, student, known, **options)
                    self.assertAlmostEqual(rows[-1]["val_loss"] / text.item(), 1, delta=1e-5)
                    self.assertAlmostEqual(rows[-1]["val_kl"] / kl.item(), 1, delta=1e-5)
                    ours = safetensors.torch.load_file(run / "final/model.safetensors")
                    moved = 0
                    for key, theirs in student.named_parameters():
                        self.assertLessEqual((ours[key] - theirs).abs().max().item(), 1e-5 * max(theirs.abs().max().item(), 0.1), key)
                        moved = max(moved, (theirs - start.get_parameter(key)).abs().max().item())
                    self.assertGreater(moved, 0.02)  # else the test would tell nothing

    def test_gradients(self):
        for task in "lm", "chat":
            for words, options in self.CASES:
                with self.subTest(task=task, words=words):
                    # With rate 1 the step of the weights is the gradient.
                    run = self.trained(task, *words, steps=1, rate=1)
                    student = self.load("student")
                    self.loss(task, student, self.load("gpt2"), **options)[0].backward()
                    ours = safetensors.torch.load_file(run / "final/model.safetensors")
                    largest = max(parameter.grad.abs().max().item() for parameter in student.parameters())
                    for key, parameter in student.named_parameters():
                        found = parameter.detach() - ours[key].double()
                        self.assertLessEqual((found - parameter.grad).abs().max().item(), 1e-5 * largest, key)

    def test_packed_teachers(self):
        exact = self.metrics(self.trained("chat", steps=2))[:2]
        for name, words, tolerance in [("float32", ("--format", "packed", "--weights", "float32"), 1e-5), ("t.gguf", ("--format", "gguf", "--weights", "f32"), 1e-5),
                                       ("int8", ("--format", "packed", "--weights", "int8"), 0.02)]:
            with self.subTest(name):
                done = tzoo("export", "--model", str(self.root / "gpt2"), "--output", str(self.root / name), *words)
                self.assertEqual(done.returncode, 0, done.stderr)
                for row, wanted in zip(self.metrics(self.trained("chat", teacher=name, steps=2)), exact):
                    self.assertAlmostEqual(row["train_kl"] / wanted["train_kl"], 1, delta=tolerance)
                    self.assertEqual(name == "int8", abs(row["train_kl"] / wanted["train_kl"] - 1) > 1e-5)
                done, _ = self.train("chat", "--documents", "pack", teacher=name)
                self.assertIn("is packed or a GGUF file, which reads no rows of --documents pack", done.stderr)

    def test_packed_documents_micro_steps_and_ranks_have_the_same_losses(self):
        for words in (("--documents", "pack", "--block_size", "60"), ("--batch_size", "2", "--gradient_accumulation_steps", "2", "--eval_iters", "2"),
                      ("--batch_size", "2", "--processes", "2")):
            for whole, row in zip(self.metrics(self.trained("chat", "--block_size", "60", steps=3)), self.metrics(self.trained("chat", *words, steps=3))):
                for key in ("train_loss",) if "--processes" in words else ("train_loss", "train_kl", "val_kl"):
                    if key in whole:
                        self.assertAlmostEqual(row[key] / whole[key], 1, delta=1e-5, msg=f"{words} {key}")

    def test_teacher_files(self):
        """A text is asked for once, whatever run and row it is in; the file says what it is for, and is whole or refused."""
        file, top = self.root / "answers", ("--teacher_top_k", "5")
        kept, resume = (*top, "--teacher_file", str(file)), ("--block_size", "60")
        exact = self.metrics(self.trained("chat", *top, *resume, steps=3))
        run = self.trained("chat", *kept, *resume, steps=3)
        answers, written = file.read_bytes(), file.stat().st_mtime_ns
        targets = len(self.pairs("chat", self.load("gpt2"))[1])
        self.assertEqual(len(answers), answers.index(b"\n") + 1 + len(CHATS) * 40 + targets * 4 * (5 + 6))
        done = tzoo("train", "--init_from", "resume", "--out_dir", str(run), "--max_iters", "4")
        self.assertEqual(done.returncode, 0, done.stderr)
        for found in (run, *(self.trained("chat", *kept, "--block_size", "60", *words, steps=3)
                             for words in ((), ("--documents", "pack"), ("--batch_size", "2", "--gradient_accumulation_steps", "2")))):
            for row, wanted in zip(self.metrics(found)[:3], exact):
                self.assertAlmostEqual(row["train_loss"] / wanted["train_loss"], 1, delta=1e-6)
        self.trained("chat", *kept, "--init_from", str(self.root / "llama"), steps=1)  # another student
        self.assertEqual((file.read_bytes(), file.stat().st_mtime_ns), (answers, written))

        # What the file says is what is learnt, whatever the teacher would say now.
        flat, at = bytearray(answers), answers.index(b"\n") + 1
        while at < len(flat):
            count = int.from_bytes(flat[at + 32:at + 36], "little")
            end = at + 40 + count * 4 * (5 + 6)
            flat[end - count * 24:end] = struct.pack("<f", -math.log(6)) * (6 * count)
            flat[at + 36:at + 40] = crc32c(flat[at:at + 36] + flat[at + 40:end]).to_bytes(4, "little")
            at = end
        file.write_bytes(flat)
        logits, _ = self.pairs("chat", self.load("student"))
        ids = self.pairs("chat", self.load("gpt2"))[0].topk(5).indices
        known = logits.log_softmax(-1).gather(1, ids)
        q = torch.cat([known, (1 - known.exp().sum(1, keepdim=True)).log()], 1)
        wanted = kl_div(q, torch.full_like(q, -math.log(6)), reduction="batchmean", log_target=True).item()
        self.assertAlmostEqual(self.metrics(self.trained("chat", *kept, steps=1))[0]["train_kl"] / wanted, 1, delta=1e-5)

        file.write_bytes(answers[:-3])  # cut short by a kill
        self.trained("chat", *kept, steps=1)
        self.assertEqual(file.read_bytes(), answers)
        file.write_bytes(answers[:20])
        self.trained("chat", *kept, steps=1)
        self.assertEqual(sorted(file.read_bytes()), sorted(answers))
        at = answers.index(b"\n") + 1 + 32
        file.write_bytes(answers[:at] + b"\xff\xff\xff\x7f" + answers[at + 4:])  # a number of positions
        self.assertIn("is damaged at byte", self.train("chat", *kept, steps=1)[0].stderr)
        file.write_bytes(answers[:-3] + b"abc")
        for words, said in [((), "is damaged at byte"), (("--distillation_temperature", "2"), "has other answers than these: tzoo teacher 1: 5 tokens by"),
                            (("--teacher_top_k", "4"), "has other answers than these"), (("--teacher_file", str(self.root)), "Is a directory")]:
            with self.subTest(said):
                done, _ = self.train("chat", *kept, *words, steps=1)
                self.assertEqual((done.returncode, done.stderr.count("error:")), (1, 1), done.stderr)
                self.assertIn(said, done.stderr)
        with file.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.assertIn("is in use by another run", self.train("chat", *kept, steps=1)[0].stderr)
        file.unlink()
        self.trained("chat", *kept, "--batch_size", "2", "--processes", "2", steps=1)
        self.assertTrue((self.root / "answers.rank1").exists())

    def test_resuming(self):
        whole, half = self.trained("chat", "--dropout", "0", batch=2, steps=6), self.trained("chat", "--dropout", "0", batch=2, steps=3)
        resume = ("train", "--init_from", "resume", "--out_dir", str(half), "--max_iters", "6")
        for other in ("--teacher", str(self.root / "llama")), ("--distillation_weight", "0.4"), ("--distillation", "reverse_kl"):
            done = tzoo(*resume, *other)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"a resumed run cannot change {other[0]} {other[1]}", done.stderr)
        self.assertEqual(json.loads((half / "run_config.json").read_text())["teacher"], str(self.root / "gpt2"))
        done = tzoo(*resume)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((half / "final/model.safetensors").read_bytes(), (whole / "final/model.safetensors").read_bytes())
        weights = self.root / "gpt2/model.safetensors"
        data = weights.read_bytes()
        self.addCleanup(weights.write_bytes, data)
        weights.write_bytes(data[:-4] + b"\0\0\0\0")
        done = tzoo(*resume[:-1], "9")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"--teacher: {self.root / 'gpt2'} has changed since", done.stderr)

    def test_a_student_from_scratch(self):
        scratch = ("--init_from", "scratch", "--n_layer", "1", "--n_head", "2", "--n_embd", "16")
        rows = self.metrics(self.trained("chat", *scratch, "--tokenizer", str(self.root / "gpt2"), "--block_size", "64", "--distillation_weight", "1", rate=0.5))
        self.assertLess(rows[-1]["val_kl"], 0.9 * rows[0]["val_kl"])
        done, _ = self.train("lm", *scratch)
        self.assertIn("tokens has no tokenizer to compare with the teacher's", done.stderr)
        text = self.root / "text.txt"
        text.write_text("in the beginning\n" * 50)
        done, _ = self.train("lm", *scratch, "--tokenizer", "byte", "--dataset", str(text), "--val_dataset", str(text))
        self.assertIn(f"a student from scratch takes --tokenizer '{self.root / 'gpt2'}'", done.stderr)

    def test_dry_run(self):
        done, run = self.train("chat", "--dry_run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"time of an update +\d+ ms")
        self.assertFalse((run / "checkpoints").exists())

    def test_what_is_refused(self):
        def saved(name, tokenizer, **changes):
            config = transformers.AutoConfig.from_pretrained(self.root / "gpt2", **changes)
            transformers.AutoModelForCausalLM.from_config(config).save_pretrained(self.root / name)
            if tokenizer is not None:
                tokenizer.save_pretrained(self.root / name)
        saved("larger", self.tokenizer, vocab_size=len(self.tokenizer) + 8)
        saved("silent", None)
        saved("short", self.tokenizer, n_positions=16)
        saved("other", self.tokenizer)
        file = self.root / "other/tokenizer.json"
        content = json.loads(file.read_text())
        vocabulary = content["model"]["vocab"]
        vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
        file.write_text(json.dumps(content))
        transformers.GPT2ForSequenceClassification(transformers.AutoConfig.from_pretrained(self.root / "gpt2")).save_pretrained(self.root / "classifier")
        a = min(vocabulary["a"], vocabulary["b"])
        for task, words, teacher, said in [
                ("chat", (), "larger", f"has a vocabulary of {len(self.tokenizer) + 8} tokens, the student of {len(self.tokenizer)}"),
                ("chat", (), "silent", "silent"), ("chat", (), "classifier", "has a sequence-classification head; expected causal-lm"),
                ("chat", (), "other", f"has another tokenizer than the student, whose id {a} is another token"),
                ("chat", (), "none", "none"), ("lm", (), "short", "has 16 positions, fewer than --block_size 24"),
                ("chat", ("--disagreement", "positions"), "gpt2", "--teacher: not with --disagreement, --loss"),
                ("preference", (), "gpt2", "--teacher: only for the task lm or chat or embedding, not preference"),
                ("chat", ("--distillation", "reverse_kl"), None, "--distillation, its weight and temperature: only with --teacher"),
                ("chat", ("--distillation_weight", "0.1"), None, "weight and temperature: only with"),
                ("chat", ("--teacher_top_k", "3"), None, "--teacher_top_k, --teacher_file: only with --teacher for lm and chat"),
                ("chat", ("--teacher_file", "x"), "gpt2", "--teacher_file: needs --teacher_top_k"),
                ("lm", ("--teacher_file", "x", "--teacher_top_k", "3"), "gpt2", "for --task lm only with --documents pack"),
                ("chat", ("--teacher_top_k", str(len(self.tokenizer))), "gpt2", f"the vocabulary has {len(self.tokenizer)} tokens; 0 compares all"),
                ("chat", ("--distillation_temperature", "2"), None, "temperature: only with --teacher for lm")]:
            with self.subTest(said):
                done, run = self.train(task, *words, teacher=teacher, steps=1)
                self.assertEqual((done.returncode != 0, done.stderr.count("error:")), (True, 1), done.stderr)
                self.assertIn(said, done.stderr)
                self.assertFalse((run / "checkpoints").exists())


if __name__ == "__main__":
    unittest.main()
