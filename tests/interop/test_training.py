"""The first ten updates of a training, beside transformers and torch.optim on the same weights and batches.

Muon's iterations are compared in float64 instead of bfloat16, whose rounding would decide the losses.
"""

import copy
import json
import math
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import torch
import transformers

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER))
from philox import Stream  # noqa: E402
from text_models import byte_level  # noqa: E402

UPDATES, RATE, DECAY, BETAS, EPS, CLIP, SEED = 10, 3e-3, 0.1, (0.9, 0.99), 1e-6, 0.5, 1337


class TrajectoryTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        torch.manual_seed(3)

    def losses_of_tzoo(self, model, **flags):
        model.save_pretrained(self.folder / "start")
        values = dict(init_from=self.folder / "start", out_dir=self.folder / "run", max_iters=UPDATES, eval_interval=UPDATES, eval_iters=1,
                      log_interval=1, decay_lr="false", learning_rate=RATE, weight_decay=DECAY, beta1=BETAS[0], beta2=BETAS[1],
                      adam_eps=EPS, grad_clip=CLIP, seed=SEED, threads=1, device="cpu", **flags)
        words = [str(word) for name, value in values.items() for word in (f"--{name}", value)]
        done = subprocess.run([os.environ["TZOO"], "train", *words], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        return [line["train_loss"] for line in lines[:UPDATES]], [line["grad_norm"] for line in lines[:UPDATES]]

    def losses_of_torch(self, model, batch, muon=None):
        """batch(update) gives the keywords of the model's forward; muon: the adjust_lr_fn of torch.optim.Muon."""
        hidden = [p for name, p in model.named_parameters() if muon and p.dim() == 2 and "bias" not in name and re.search(r"[.]\d+[.]", name)]
        mine = {id(p) for p in hidden}
        decayed = [p for p in model.parameters() if p.dim() >= 2 and id(p) not in mine]
        others = [p for p in model.parameters() if p.dim() < 2]
        groups = [{"params": decayed, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=RATE, betas=BETAS, eps=EPS)
        second = torch.optim.Muon(hidden, lr=RATE, weight_decay=DECAY, adjust_lr_fn=muon) if muon else None
        losses, norms = [], []
        model.train()
        for update in range(UPDATES):
            loss = model(**batch(update)).loss
            loss.backward()
            norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)))
            optimizer.step()
            if second is not None:
                with unittest.mock.patch.object(torch.Tensor, "bfloat16", lambda tensor: tensor.double()):
                    second.step()
            model.zero_grad()
            losses.append(float(loss.detach()))
        return losses, norms

    def compare_optimizers(self, model, batch, **flags):
        theirs = [self.losses_of_torch(copy.deepcopy(model), batch, muon) for muon in (None, "match_rms_adamw")]
        for optimizer, losses in zip(("adamw", "muon"), theirs):
            with self.subTest(optimizer):
                self.compare(self.losses_of_tzoo(model, optimizer=optimizer, overwrite="true", **flags), losses)

    def compare(self, ours, theirs):
        for name, mine, reference in zip(("loss", "norm"), ours, theirs):
            for update, (a, b) in enumerate(zip(mine, reference)):
                self.assertAlmostEqual(a / b, 1, delta=1e-5 if name == "loss" else 1e-3, msg=f"{name} of update {update}")
        self.assertLess(ours[0][-1], ours[0][0] - 0.05)  # they have moved

    def write_tokens(self, ids, vocab_size):
        """Token files that hold one block and the token after it: there is nothing to draw."""
        data = self.folder / "data"
        data.mkdir()
        for split in ("train", "val"):
            (data / f"{split}.bin").write_bytes(struct.pack(f"<{len(ids)}H", *ids))
        meta = {"format_version": 1, "dtype": "uint16", "vocab_size": vocab_size, "tokenizer": "char", "train_tokens": len(ids),
                "val_tokens": len(ids), "source_sha256": "0" * 64}
        (data / "meta.json").write_text(json.dumps(meta))
        return data

    def test_gpt2(self):
        config = transformers.GPT2Config(vocab_size=40, n_embd=32, n_layer=2, n_head=2, n_positions=17, embd_pdrop=0, attn_pdrop=0,
                                         resid_pdrop=0, bos_token_id=None, eos_token_id=None)
        model = transformers.GPT2LMHeadModel(config)
        ids = torch.randint(40, (17,)).tolist()
        row = torch.tensor([ids])  # which transformers shifts itself: 17 ids are 16 predictions
        self.compare_optimizers(model, lambda update: {"input_ids": row, "labels": row}, task="lm", dataset=self.write_tokens(ids, 40),
                                block_size=16, batch_size=2)

    def test_documents_of_a_table_end_in_the_end_token(self):
        """Losses equal those of token files that are written here; bits per byte is their validation loss by the texts' bytes."""
        draw = random.Random(3)
        texts = [" ".join(draw.choice(["the", "and", "in", "ünïcode", "x"]) for _ in range(draw.randint(1, 30))) for _ in range(25)]
        tokenizer = byte_level(bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>")
        (self.folder / "start").mkdir()
        tokenizer.save_pretrained(self.folder / "start")
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=1, n_head=2, n_positions=16,
                                                                     bos_token_id=0, eos_token_id=2))
        table = self.folder / "documents.jsonl"
        table.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        ids = [tokenizer.encode(text, add_special_tokens=False) + [2] for text in texts]
        splits = sum(ids[:23], []), sum(ids[23:], [])  # the last tenth validates
        data = self.write_tokens(splits[0], len(tokenizer))
        (data / "val.bin").write_bytes(struct.pack(f"<{len(splits[1])}H", *splits[1]))
        meta = json.loads((data / "meta.json").read_text())
        (data / "meta.json").write_text(json.dumps(meta | {"val_tokens": len(splits[1])}))
        words = dict(task="lm", block_size=16, batch_size=3, overwrite="true")
        expected = self.losses_of_tzoo(model, dataset=data, **words)
        self.assertEqual(self.losses_of_tzoo(model, dataset=table, **words), expected)
        last = json.loads((self.folder / "run/metrics.jsonl").read_text().splitlines()[-1])
        share = len(splits[1]) / sum(len(text.encode()) for text in texts[23:])
        self.assertAlmostEqual(last["val_bits_per_byte"], last["val_loss"] / math.log(2) * share, places=5)

    def test_bert_mlm(self):
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(chr(ord("a") + i) for i in range(26))]
        size, block, rows = len(words), 24, 4
        config = transformers.BertConfig(vocab_size=size, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48,
                                         max_position_embeddings=block, hidden_dropout_prob=0, attention_probs_dropout_prob=0)
        model = transformers.BertForMaskedLM(config)
        raw = torch.randint(5, size, (block - 2 + 1,)).tolist()
        data = self.write_tokens(raw, size)
        start = self.folder / "start"
        start.mkdir()
        (start / "vocab.txt").write_text("\n".join(words) + "\n")
        (start / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))

        def masked(update):
            all_ids, all_labels = [], []
            for row in range(rows):
                ids = [2, *raw[:block - 2], 3]
                draws = Stream(SEED, 0, update, row)
                chosen = [0 < i < block - 1 and draws.uniform() < 0.4 for i in range(block)]
                labels = [token if choice else -100 for token, choice in zip(ids, chosen)]
                for i in range(block):
                    if chosen[i]:
                        share, other = draws.uniform(), draws.below(size)
                        ids[i] = 4 if share < 0.8 else other if share < 0.9 else ids[i]
                all_ids.append(ids)
                all_labels.append(labels)
            return {"input_ids": torch.tensor(all_ids), "labels": torch.tensor(all_labels)}

        self.compare_optimizers(model, masked, task="mlm", dataset=data, block_size=block, batch_size=2, gradient_accumulation_steps=2,
                                mlm_probability=0.4)

    def test_t5_with_label_smoothing(self):
        letters = "abcdefgh "
        vocabulary = {"<pad>": 0, "</s>": 1, "<unk>": 2, **{c: i + 3 for i, c in enumerate(letters)}}
        config = transformers.T5Config(vocab_size=len(vocabulary), d_model=32, d_kv=16, d_ff=48, num_layers=2, num_heads=2, dropout_rate=0,
                                       decoder_start_token_id=0, feed_forward_proj="relu", initializer_factor=0.5)
        model = transformers.T5ForConditionalGeneration(config)
        start = self.folder / "start"
        start.mkdir()
        special = [{"id": i, "content": c, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
                   for i, c in enumerate(("<pad>", "</s>", "<unk>"))]
        around = [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}]
        (start / "tokenizer.json").write_text(json.dumps({
            "version": "1.0", "added_tokens": special, "normalizer": None, "pre_tokenizer": None, "decoder": {"type": "Fuse"},
            "post_processor": {"type": "TemplateProcessing", "single": around, "pair": around,
                               "special_tokens": {"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}}},
            "model": {"type": "BPE", "vocab": vocabulary, "merges": [], "unk_token": "<unk>"}}))
        (start / "tokenizer_config.json").write_text(json.dumps(
            {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}))
        pairs = [("abc", "cba"), ("a b d e", "edba"), ("hg", "gh hg gh"), ("fade", "edaf")]
        table = self.folder / "pairs.tsv"
        table.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))

        encode = lambda text: [vocabulary[c] for c in text] + [1]
        pad = lambda rows, value: torch.tensor([row + [value] * (max(map(len, rows)) - len(row)) for row in rows])
        sources, targets = [encode(s) for s, _ in pairs], [encode(t) for _, t in pairs]
        batch = {"input_ids": pad(sources, 0), "attention_mask": pad([[1] * len(s) for s in sources], 0), "labels": pad(targets, -100)}
        smoother = transformers.trainer_pt_utils.LabelSmoother(epsilon=0.1)

        class Smoothed(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model, self.save_pretrained = model, model.save_pretrained

            def forward(self, **inputs):
                return transformers.utils.ModelOutput(loss=smoother(self.model(**inputs), inputs["labels"]))

        self.compare_optimizers(Smoothed(), lambda update: batch, task="seq2seq", dataset=table, val_dataset=table, block_size=16,
                                batch_size=4, label_smoothing=0.1)


if __name__ == "__main__":
    unittest.main()
