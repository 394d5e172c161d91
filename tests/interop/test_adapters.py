"""--adapter: each verb with a base model and an adapter in PEFT's files computes what it computes with the model into which
PyTorch has merged the adapter."""

import concurrent.futures
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

import torch
import transformers
from safetensors.torch import load_file, save_file
from text_models import TEXTS, byte_level, shaken, sizes, tzoo, wordpiece

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "apps"))
from serving import Server  # noqa: E402

RANK, ALPHA = 2, 3


def near(a, b):
    """Equal JSON, whose numbers may differ by rounding."""
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-4 * max(1, abs(a))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(near(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(near, a, b))
    return a == b


class AdapterTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.base, self.merged, self.adapter = (self.root / name for name in ("base", "merged", "adapter"))
        torch.manual_seed(5)

    @torch.no_grad()
    def save(self, model, tokenizer, targets, **config):
        """The base model, an adapter of the targets, and the model with it."""
        for folder in (self.base, self.merged):
            tokenizer.save_pretrained(folder)
        model.save_pretrained(self.base)
        tensors = {}
        for name, module in model.named_modules():
            if not name.endswith(targets):
                continue
            conv = isinstance(module, transformers.pytorch_utils.Conv1D)
            rows, columns = module.weight.T.shape if conv else module.weight.shape
            a, b = torch.randn(RANK, columns) * 0.5, torch.randn(rows, RANK) * 0.5
            tensors |= {f"base_model.model.{name}.lora_A.weight": a, f"base_model.model.{name}.lora_B.weight": b}
            delta = b @ a * (ALPHA / RANK)
            module.weight += delta.T if conv else delta
        self.assertGreater(len(tensors), 0)
        model.save_pretrained(self.merged)
        self.adapter.mkdir()
        save_file(tensors, self.adapter / "adapter_model.safetensors")
        self.adapter.joinpath("adapter_config.json").write_text(json.dumps(
            {"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "target_modules": list(targets),
             "base_model_name_or_path": str(self.base), **config}))

    def run_verb(self, verb, *words, code=0):
        done = tzoo(verb, *map(str, words))
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def check(self, verb, *words, model="--model"):
        """With base and adapter what it prints with the merged model, which is not what it prints with the base alone."""
        def printed(*of):
            return [json.loads(line) for line in self.run_verb(verb, *of, *words, "--threads", "1").splitlines()]
        both, merged, base = (printed(*of) for of in ([model, self.base, "--adapter", self.adapter], [model, self.merged],
                                                      [model, self.base]))
        for answer in (*both, *merged, *base):
            for key in ("model", "tokens_per_second"):
                answer.pop(key, None)
        self.assertTrue(near(both, merged), f"{verb}: {both} instead of {merged}")
        self.assertFalse(near(both, base), f"{verb}: {both}")

    def decoder(self):
        tokenizer = byte_level(eos_token="</s>", pad_token="<pad>")
        config = transformers.GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=2, n_positions=64, eos_token_id=2,
                                         bos_token_id=None)
        self.save(shaken(transformers.GPT2LMHeadModel(config)), tokenizer, ("c_attn", "c_fc", "c_proj"))

    def test_decoder(self):
        self.decoder()
        text = self.root / "text.txt"
        text.write_text(" ".join(TEXTS) * 3)
        generate = ("--prompt", "and the", "--max_new_tokens", 12, "--temperature", 0, "--json", "--logprobs")
        self.check("generate", *generate)
        for weights in ("float32", "modules"):
            self.check("generate", *generate, "--weights", weights)
        self.check("evaluate", "--dataset", text, "--block_size", 16, "--json")
        self.check("lens", "--text", "and the earth", "--json", "--out_dir", self.root / "lens")
        # Alone it names its model, unless that is not here.
        words = ("--input_ids", "[[5, 6]]", "--max_new_tokens", 4, "--temperature", 0)
        self.assertEqual(self.run_verb("generate", "--adapter", self.adapter, *words),
                         self.run_verb("generate", "--model", self.merged, *words))
        self.assertIn("--adapter", self.run_verb("generate", "--model", self.adapter, *words, code=1))
        config = self.adapter / "adapter_config.json"
        config.write_text(config.read_text().replace(str(self.base), "someone/model"))
        self.assertIn("missing flag '--model'", self.run_verb("generate", "--adapter", self.adapter, *words, code=2))

    def test_an_output_projection_with_another_name_in_files(self):
        """GPT-NeoX's files say embed_out, its class since transformers 5 lm_head."""
        tokenizer = byte_level(eos_token="</s>", pad_token="<pad>")
        config = transformers.GPTNeoXConfig(vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
                                            intermediate_size=40, max_position_embeddings=64, eos_token_id=2, bos_token_id=None)
        self.save(shaken(transformers.GPTNeoXForCausalLM(config)), tokenizer, ("query_key_value", "lm_head"))
        self.check("generate", "--prompt", "and the", "--max_new_tokens", 12, "--temperature", 0, "--json", "--logprobs")
        text = self.root / "text.txt"
        text.write_text(" ".join(TEXTS) * 20)
        self.run_verb("train", "--init_from", self.base, "--dataset", text, "--out_dir", self.root / "run", "--lora_rank", 2,
                      "--lora_targets", "*", "--block_size", 16, "--max_iters", 2, "--eval_iters", 1, "--threads", 1)
        written = load_file(self.root / "run/final/adapter/adapter_model.safetensors")
        self.assertIn("base_model.model.lm_head.lora_A.weight", written)
        self.assertFalse([name for name in written if "embed_out" in name])

    def test_training_above_packed_weights(self):
        """--weights int8 trains adapters of the rounded model, and writes them alone; a resumed run goes on to the same bytes."""
        tokenizer = byte_level(eos_token="</s>", pad_token="<pad>")
        model = shaken(transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            intermediate_size=96, max_position_embeddings=64, tie_word_embeddings=False, eos_token_id=2, bos_token_id=None)))
        rounded = self.root / "rounded"
        for folder in (self.base, rounded):
            tokenizer.save_pretrained(folder)
        model.save_pretrained(self.base)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if name.endswith("_proj.weight"):
                    scale = weight.abs().amax(1, keepdim=True) / 127
                    weight.copy_((weight / scale).round() * scale)
        model.save_pretrained(rounded)
        text = self.root / "text.txt"
        text.write_text(" ".join(TEXTS) * 20)

        def train(run, base, *words, steps=4):
            self.run_verb("train", "--init_from", base, "--dataset", text, "--out_dir", self.root / run, "--lora_rank", 2, "--lora_targets",
                          "*.attention.*", "--lora_targets", "*.feed_forward.*", "--block_size", 16, "--batch_size", 2, "--max_iters", steps,
                          "--warmup_iters", 1, "--learning_rate", 0.02, "--eval_iters", 1, "--eval_interval", 2, "--log_interval", 1,
                          "--threads", 1, *words)
            return [json.loads(line) for line in (self.root / run / "metrics.jsonl").read_text().splitlines()]
        exact = train("exact", rounded)
        for run, words in (("packed", ()), ("recomputed", ("--activation_checkpointing",))):
            losses = train(run, self.base, "--weights", "int8", *words)
            for key in ("train_loss", "val_loss"):
                found, expected = ([line[key] for line in lines if key in line] for lines in (losses, exact))
                self.assertGreater(len(found), 1)
                torch.testing.assert_close(torch.tensor(found), torch.tensor(expected), rtol=1e-5, atol=0)
        final = self.root / "packed/final"
        ours, expected = (load_file(folder / "adapter_model.safetensors") for folder in (final, self.root / "exact/final/adapter"))
        self.assertEqual(ours.keys(), expected.keys())
        self.assertTrue(all(bool(tensor.any()) for tensor in ours.values()), "B stayed zero")
        for name, tensor in expected.items():
            torch.testing.assert_close(ours[name], tensor, rtol=0, atol=1e-4 * float(tensor.abs().max()), msg=name)
        self.assertFalse(list((self.root / "packed").glob("**/model.safetensors")), "the base model was copied")
        self.assertTrue((final / "tokenizer.json").exists())

        train("resumed", self.base, "--weights", "int8", "--lr_decay_iters", 4, steps=2)
        self.run_verb("train", "--init_from", "resume", "--out_dir", self.root / "resumed", "--max_iters", 4)
        self.assertEqual((self.root / "resumed/final/adapter_model.safetensors").read_bytes(),
                         (final / "adapter_model.safetensors").read_bytes())

        self.assertIn("adapters (train --weights), without a model", self.run_verb("inspect", self.root / "packed"))
        self.assertEqual(len(json.loads(self.run_verb("inspect", self.root / "packed", "--json"))["checkpoints"]), 4)

        # The adapter belongs to the model as it is in its file.
        words = ("--input_ids", "[[5, 6, 7]]", "--weights", "modules", "--output", self.root / "out.safetensors")
        self.run_verb("forward", "--adapter", final, *words)
        model = transformers.LlamaForCausalLM.from_pretrained(self.base)
        with torch.no_grad():
            for name, module in model.named_modules():
                key = f"base_model.model.{name}.lora_"
                if key + "A.weight" in ours:
                    module.weight += ours[key + "B.weight"] @ ours[key + "A.weight"] * 8
            torch.testing.assert_close(load_file(self.root / "out.safetensors")["logits"], model(torch.tensor([[5, 6, 7]])).logits,
                                       rtol=0, atol=1e-4)

        def refused(*words, base=self.base, code=2):
            return self.run_verb("train", "--init_from", base, "--dataset", text, "--out_dir", self.root / "no", *words, code=code)
        self.assertIn("only with --lora_rank", refused("--weights", "int8"))
        self.assertIn("name it with --init_from", refused("--weights", "int4", "--lora_rank", 2, base="scratch"))
        self.assertIn("not for the task mlm", refused("--weights", "int8", "--lora_rank", 2, "--task", "mlm"))
        self.assertIn("not with --adapter", refused("--weights", "int8", "--lora_rank", 2, "--adapter", final))
        self.assertFalse((self.root / "no").exists())

    def test_training_goes_on_with_an_adapter(self):
        """As PEFT trains one with is_trainable: its own rank, scale and targets; what is saved is an adapter again."""
        tokenizer = byte_level(eos_token="</s>", pad_token="<pad>")
        shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48}
        model = shaken(transformers.LlamaForCausalLM(transformers.LlamaConfig(
            vocab_size=len(tokenizer), max_position_embeddings=64, tie_word_embeddings=False, eos_token_id=2, bos_token_id=None, **shape)))
        tokenizer.save_pretrained(self.base)
        model.save_pretrained(self.base)
        text = self.root / "text.txt"
        text.write_text(" ".join(TEXTS) * 20)

        def train(run, start, *words, steps=4, code=0):
            out = self.run_verb("train", "--init_from", start, "--dataset", text, "--out_dir", self.root / run, "--block_size", 16,
                                "--batch_size", 2, "--max_iters", steps, "--warmup_iters", 1, "--lr_decay_iters", 4, "--learning_rate", 0.02,
                                "--eval_iters", 1, "--eval_interval", 2, "--threads", 1, *words, code=code)
            folder = self.root / run / "final" / ("" if "--weights" in words else "adapter")
            return out if code else (load_file(folder / "adapter_model.safetensors"), json.loads((folder / "adapter_config.json").read_text()), folder)
        new = ("--lora_rank", 2, "--lora_alpha", 3, "--lora_targets", "*.attention.*", "--lora_targets", "*.up")
        base = load_file(self.base / "model.safetensors")
        for name, kind in {"lora": (), "both": ("--lora_rslora", "--lora_dora"), "packed": ("--weights", "int8", "--lora_dora")}.items():
            with self.subTest(name):
                first, config, folder = train(name, self.base, *new, *kind)
                rslora, dora, weights = name == "both", name != "lora", kind[:2] if name == "packed" else ()
                self.assertEqual([config[key] for key in ("r", "lora_alpha", "use_rslora", "use_dora")], [2, 3, rslora, dora])
                merged = {} if weights else load_file(self.root / name / "final/model.safetensors")
                for key, found in merged.items():
                    module = "base_model.model." + key.removesuffix(".weight")
                    expected = base[key]
                    if module + ".lora_A.weight" in first:
                        expected = expected + first[module + ".lora_B.weight"] @ first[module + ".lora_A.weight"] * 3 / (2 ** 0.5 if rslora else 2)
                        if dora:
                            expected *= (first[module + ".lora_magnitude_vector"] / expected.norm(dim=1))[:, None]
                    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6, msg=key)
                # With a rate of nothing it is what it was, however the parts of a weight lie.
                same, again, _ = train(name + "-same", folder, *weights, "--learning_rate", 1e-30, "--min_lr", 1e-30, "--weight_decay", 0)
                self.assertEqual(again, config)
                self.assertEqual(same.keys(), first.keys())
                self.assertFalse([key for key in first if not torch.equal(first[key], same[key])])
                on, again, longer = train(name + "-on", folder, *weights, "--lora_rank", 2)
                self.assertEqual(again, config)
                self.assertFalse([key for key in first if torch.equal(first[key], on[key])])
                q, k = (on[f"base_model.model.model.layers.0.self_attn.{part}_proj.lora_A.weight"] for part in "qk")
                self.assertFalse(torch.equal(q, k), "parts of one weight share their A")
                train(name + "-half", folder, *weights, steps=2)
                shutil.move(folder, self.root / "elsewhere")
                self.run_verb("train", "--init_from", "resume", "--out_dir", self.root / (name + "-half"), "--max_iters", 4)
                shutil.move(self.root / "elsewhere", folder)
                self.assertEqual((longer / "adapter_model.safetensors").read_bytes(),
                                 (self.root / (name + "-half") / longer.relative_to(self.root / (name + "-on")) / "adapter_model.safetensors").read_bytes())
        # Of an adapter of keys alone nothing else becomes a part.
        few = {key: tensor for key, tensor in first.items() if "k_proj" in key}
        save_file(few, folder / "adapter_model.safetensors")
        self.assertEqual(train("few", folder)[0].keys(), few.keys())
        for words, said in ((("--lora_rank", 3), "--lora_rank 3: the adapter"), (("--lora_alpha", 8), "--lora_alpha 8"),
                            (("--lora_rslora",), "--lora_rslora true"), (("--lora_targets", "*"), "--lora_targets: not with"),
                            (("--adapter", folder), "--adapter: not with")):
            self.assertIn(said, train("no", folder, *words, code=2))
        for key, value in {"rank_pattern": {"k_proj": 1}, "alpha_pattern": {"k_proj": 1}, "bias": "all"}.items():
            folder.joinpath("adapter_config.json").write_text(json.dumps(config | {key: value}))
            self.assertIn(f"'{key}'", train("no", folder, code=1))
        self.assertFalse((self.root / "no").exists())

    def test_a_chat_template_goes_with_its_adapter(self):
        """Whatever template the base has, verbs with the adapter use that of its training."""
        template = "{% for m in messages %}## {{ m.role }}\n{{ m.content }}{{ eos_token }}\n{% endfor %}" \
                   "{% if add_generation_prompt %}## assistant\n{% endif %}"
        user, answer = ({"role": role, "content": text} for role, text in (("user", "and the earth"), ("assistant", "was void")))
        chats, jinja = self.root / "chats.jsonl", self.root / "t.jinja"
        chats.write_text(json.dumps({"messages": [user, answer]}) + "\n")
        jinja.write_text(template)
        self.decoder()
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.base)
        prompt = tokenizer.apply_chat_template([user], chat_template=template, tokenize=False, add_generation_prompt=True)
        for own in None, "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}":
            with self.subTest(own):
                tokenizer.chat_template = own
                tokenizer.save_pretrained(self.base)
                train = ("train", "--task", "chat", "--init_from", self.base, "--dataset", chats, "--val_dataset", chats, "--chat_template",
                         jinja, "--lora_rank", 2, "--block_size", 64, "--batch_size", 1, "--max_iters", 2, "--eval_iters", 1, "--threads", 1)
                run, merged = self.root / f"run{own is None}", self.root / f"merged{own is None}"
                self.run_verb(*train, "--weights", "int8", "--out_dir", run)
                self.run_verb(*train, "--out_dir", merged)
                for adapter in run / "final", merged / "final/adapter":
                    shown = self.run_verb("chat", "--adapter", adapter, "--messages", chats, "--print_prompt")
                    self.assertTrue(shown.startswith(prompt), shown)
                    self.run_verb("export", "--adapter", adapter, "--format", "huggingface", "--output", self.root / "whole")
                    self.assertEqual(transformers.AutoTokenizer.from_pretrained(self.root / "whole").chat_template, template)
                whole, found = (json.loads(self.run_verb("evaluate", "--task", "chat", "--dataset", chats, "--json", *of))["loss"]
                                for of in (("--model", merged / "final"), ("--adapter", merged / "final/adapter")))
                self.assertAlmostEqual(whole, found, places=5)
                self.run_verb("train", "--task", "chat", "--init_from", self.base, "--adapter", run / "final", "--dataset", chats,
                              "--val_dataset", chats, "--out_dir", self.root / f"more{own is None}", "--max_iters", 1, "--block_size", 64)
                again = self.root / f"more{own is None}/final"
                self.assertEqual(transformers.AutoTokenizer.from_pretrained(again).chat_template, template)
                server = Server(self.base, "--lora", f"tuned={run / 'final'}")
                try:
                    reply = server.post("/v1/chat/completions", model="tuned", messages=[user], max_tokens=2)
                    self.assertEqual(reply["usage"]["prompt_tokens"], len(tokenizer(prompt).input_ids))
                    self.assertEqual(server.request("POST", "/v1/chat/completions", {"model": "base", "messages": [user], "max_tokens": 2})[0],
                                     400 if own is None else 200)
                finally:
                    server.close()
        server = Server(self.base, "--adapter", run / "final", "--lora", f"tuned={run / 'final'}")
        try:
            server.post("/v1/completions", model="tuned", prompt="the", max_tokens=2)
            for path, fields in (("/v1/embeddings", {"input": "the"}), ("/look", {"text": "the"})):
                status, reply, _ = server.request("POST", path, {"model": "tuned", **fields})
                self.assertEqual((status, "is an adapter over another one" in reply), (400, True), reply)
        finally:
            server.close()

    def test_a_tokenizer_goes_with_its_adapter(self):
        """PEFT's users save one beside the adapter when they added tokens."""
        tokenizer = byte_level(eos_token="</s>", pad_token="<pad>")
        config = transformers.GPT2Config(vocab_size=len(tokenizer) + 1, n_embd=32, n_layer=2, n_head=2, n_positions=64, eos_token_id=2,
                                         bos_token_id=None)
        self.save(shaken(transformers.GPT2LMHeadModel(config)), tokenizer, ("c_attn",))
        tokenizer.add_tokens(["<earth>"])
        for folder in self.adapter, self.merged:
            tokenizer.save_pretrained(folder)
        self.check("generate", "--prompt", "<earth> was void", "--max_new_tokens", 12, "--temperature", 0, "--json", "--logprobs")
        self.run_verb("export", "--adapter", self.adapter, "--format", "huggingface", "--output", self.root / "whole")
        self.assertEqual(transformers.AutoTokenizer.from_pretrained(self.root / "whole")("<earth>").input_ids, [len(tokenizer) - 1])
        self.run_verb("export", "--adapter", self.adapter, "--format", "html", "--output", self.root / "page.html")
        self.assertIn("<earth>", (self.root / "page.html").read_text().replace("\\u003c", "<").replace("\\u003e", ">"))
        self.assertEqual(json.loads(self.run_verb("inspect", self.base, "--adapter", self.adapter, "--json"))["tokenizer"]["vocabulary"], len(tokenizer))
        done = tzoo("serve", str(self.base), "--lora", f"a={self.adapter}")
        self.assertEqual((done.returncode, "tokenizer has other tokens" in done.stderr), (1, True), done.stderr)

    def test_labels_and_a_relative_base_go_with_their_adapter(self):
        tokenizer = wordpiece()
        model = shaken(transformers.BertModel(transformers.BertConfig(**sizes(tokenizer), max_position_embeddings=64)))
        self.save(model, tokenizer, ("query", "key"))
        table = self.root / "table.tsv"
        table.write_text("text\tlabel\n" + "the earth\tgood\nand god\tbad\nthe beginning\tso so\n" * 2)
        done = tzoo("train", "--task", "classification", "--init_from", "base", "--dataset", "table.tsv", "--val_dataset", "table.tsv",
                    "--out_dir", "runs/tuned", "--lora_rank", "2", "--block_size", "8", "--max_iters", "1", "--threads", "1", cwd=self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        final = self.root / "runs/tuned/final"
        whole, found = (json.loads(self.run_verb("classify", *of, "--text", "the earth"))["scores"]
                        for of in (("--model", final), ("--adapter", final / "adapter")))
        self.assertEqual(sorted(found), ["bad", "good", "so so"])
        self.assertTrue(near(whole, found), (whole, found))
        config = final / "adapter/adapter_config.json"
        self.assertEqual(json.loads(config.read_text())["base_model_name_or_path"], "base")
        # Its training goes on with the head that it has.
        done = tzoo("train", "--task", "classification", "--init_from", str(final / "adapter"), "--dataset", "table.tsv", "--val_dataset", "table.tsv",
                    "--out_dir", "runs/on", "--block_size", "8", "--max_iters", "1", "--threads", "1", cwd=self.root)
        self.assertEqual((done.returncode, "newly initialised" in done.stderr), (0, False), done.stderr)
        on = self.root / "runs/on/final/adapter"
        before, after = (json.loads((folder / "adapter_config.json").read_text()) for folder in (final / "adapter", on))
        self.assertEqual(after, before)
        self.assertIn("classifier", after["modules_to_save"])
        before, after = (load_file(folder / "adapter_model.safetensors") for folder in (final / "adapter", on))
        self.assertEqual(after.keys(), before.keys())
        self.assertFalse([key for key in after if "classifier" in key and torch.equal(after[key], before[key])])
        self.assertEqual(sorted(json.loads(self.run_verb("classify", "--adapter", on, "--text", "the earth"))["scores"]), sorted(found))
        config.write_text(config.read_text().replace('"base"', '"../../../../base"'))
        self.assertEqual(found, json.loads(self.run_verb("classify", "--adapter", final / "adapter", "--text", "the earth"))["scores"])

    def test_exports(self):
        self.decoder()
        words = ("--input_ids", "[[5, 6, 7]]", "--output", self.root / "out.safetensors")
        merged = load_file(self.merged / "model.safetensors")

        def logits(*of):
            self.run_verb("forward", *of, *words, *(("--weights", "auto") if self.root / "packed" in of else ()))
            return load_file(self.root / "out.safetensors")["logits"]
        expected = logits("--model", self.merged)
        for form, more in (("huggingface", ("--verify",)), ("packed", ("--weights", "float32")), ("gguf", ("--weights", "f32"))):
            with self.subTest(form):
                target = self.root / form
                self.run_verb("export", "--model", self.base, "--adapter", self.adapter, "--format", form, "--output", target, *more)
                torch.testing.assert_close(logits("--model", target), expected, rtol=0, atol=1e-5 * float(expected.abs().max()))
        for name, tensor in load_file(self.root / "huggingface/model.safetensors").items():
            torch.testing.assert_close(tensor, merged[name], rtol=0, atol=1e-6)
        # An adapter fits the model's weights in GGUF, and packed ones not.
        gguf = self.root / "base.gguf"
        self.run_verb("export", "--model", self.base, "--format", "gguf", "--weights", "f32", "--output", gguf)
        torch.testing.assert_close(logits("--model", gguf, "--adapter", self.adapter), expected, rtol=0,
                                   atol=1e-5 * float(expected.abs().max()))
        done = self.run_verb("forward", "--model", self.root / "packed", "--adapter", self.adapter, *words, code=1)
        self.assertIn("packed for inference", done)
        self.assertIn(f"exported from, {self.base} --adapter {self.adapter}", done)
        # Merged with weights of 16 bits, they are packed as computed.
        save_file({name: tensor.bfloat16() for name, tensor in load_file(self.base / "model.safetensors").items()},
                  self.base / "model.safetensors", {"format": "pt"})
        expected = logits("--model", self.base, "--adapter", self.adapter, "--weights", "float32")
        shutil.rmtree(self.root / "packed")
        self.run_verb("export", "--model", self.base, "--adapter", self.adapter, "--format", "packed", "--weights", "float32",
                      "--output", self.root / "packed")
        torch.testing.assert_close(logits("--model", self.root / "packed"), expected, rtol=0, atol=1e-5 * float(expected.abs().max()))

    def test_server(self):
        self.decoder()
        answers = []
        for words in ((self.base, "--adapter", self.adapter), (self.merged,)):
            server = Server(*words)
            try:
                answers.append([server.post("/v1/completions", prompt="and the", max_tokens=8, temperature=0),
                                server.post("/v1/embeddings", input="the earth")])
            finally:
                server.close()
        texts = [answer[0]["choices"][0]["text"] for answer in answers]
        self.assertEqual(*texts)
        vectors = [answer[1]["data"][0]["embedding"] for answer in answers]
        self.assertTrue(near(*vectors))
        done = tzoo("serve", str(self.base), str(self.merged), "--adapter", str(self.adapter))
        self.assertEqual((done.returncode, "--adapter" in done.stderr), (2, True))

    def test_a_server_with_several(self):
        """Eight adapters of different ranks, scales and targets on one base: each answers as its merged model does, alone and beside the others."""
        tokenizer = byte_level(eos_token="</s>", pad_token="<pad>")
        sizes_of = {"vocab_size": len(tokenizer), "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32, "eos_token_id": 2, "bos_token_id": None}
        llama = transformers.LlamaConfig(**sizes_of, num_key_value_heads=2, intermediate_size=50, max_position_embeddings=256)
        gpt = transformers.GPT2Config(**sizes_of, n_positions=256)
        neox = transformers.GPTNeoXConfig(**sizes_of, intermediate_size=60, max_position_embeddings=256)
        kinds = [(transformers.LlamaForCausalLM, llama, ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]),
                 (transformers.GPT2LMHeadModel, gpt, ["attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"]),
                 (transformers.GPTNeoXForCausalLM, neox, ["query_key_value", "attention.dense", "dense_h_to_4h", "dense_4h_to_h"])]
        prompts = ["and the earth", "In the beginning", "light"]
        for model_class, config, targets in kinds:
            with self.subTest(config.model_type), torch.no_grad():
                folder = self.root / config.model_type
                model = shaken(model_class(config))
                tokenizer.save_pretrained(folder / "base")
                model.save_pretrained(folder / "base")
                weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
                words, expected = [], {}
                for number in range(8):
                    rank, alpha = 1 + number, 2 + number
                    chosen = [targets[number % len(targets)]] if number % 2 else targets
                    model.load_state_dict(weights)
                    tensors = {}
                    for name, module in model.named_modules():
                        if not name.endswith(tuple(chosen)):
                            continue
                        conv = isinstance(module, transformers.pytorch_utils.Conv1D)
                        rows, columns = module.weight.T.shape if conv else module.weight.shape
                        a, b = torch.randn(rank, columns) * 0.5, torch.randn(rows, rank) * 0.5
                        tensors |= {f"base_model.model.{name}.lora_A.weight": a, f"base_model.model.{name}.lora_B.weight": b}
                        delta = b @ a * (alpha / (rank ** 0.5 if number == 3 else rank))
                        module.weight += delta.T if conv else delta
                    adapter = folder / f"adapter{number}"
                    adapter.mkdir()
                    save_file(tensors, adapter / "adapter_model.safetensors")
                    adapter.joinpath("adapter_config.json").write_text(json.dumps(
                        {"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "target_modules": chosen, "use_rslora": number == 3}))
                    words += ["--lora", f"a{number}={adapter}"]
                    for prompt in prompts:
                        ids = tokenizer(prompt, return_tensors="pt").input_ids
                        written = model.generate(ids, max_new_tokens=12, do_sample=False, pad_token_id=1)[0, ids.shape[1]:]
                        expected[f"a{number}", prompt] = tokenizer.decode(written, skip_special_tokens=True)
                self.assertGreater(len({expected[name, prompts[0]] for name, _ in expected}), 4)
                for weight in ("float32", "int8"):
                    server = Server(folder / "base", *words, "--weights", weight, "--parallel", 16)
                    try:
                        def answer(key):
                            return server.post("/v1/completions", model=key[0], prompt=key[1], max_tokens=12, temperature=0, logprobs=1)["choices"][0]
                        keys = [*expected, *(("base", prompt) for prompt in prompts)]
                        alone = {key: answer(key) for key in keys}
                        with concurrent.futures.ThreadPoolExecutor(12) as pool:
                            together = dict(zip(keys, pool.map(answer, keys)))
                        self.assertEqual(together, alone)  # bit by bit, and whatever was read before
                        if weight == "float32":
                            self.assertEqual({key: alone[key]["text"] for key in expected}, expected)
                    finally:
                        server.close()
        base, plain = str(self.root / "llama/base"), self.root / "llama/adapter0"
        tensors, config = load_file(plain / "adapter_model.safetensors"), json.loads((plain / "adapter_config.json").read_text())
        sizes_of = {key.replace("lora_B.weight", "lora_magnitude_vector"): tensor.shape[0] for key, tensor in tensors.items() if "lora_B" in key}
        for name, more, change in (("dora", {key: torch.ones(size) for key, size in sizes_of.items()}, {"use_dora": True}),
                                   ("whole", {"base_model.model.model.norm.weight": torch.ones(32)}, {"modules_to_save": ["norm"]})):
            (self.root / name).mkdir()
            save_file(tensors | more, self.root / name / "adapter_model.safetensors")
            (self.root / name / "adapter_config.json").write_text(json.dumps(config | change))
        for words, said in [(("--lora", f"a={self.root / 'dora'}"), "has magnitudes of DoRA"), (("--lora", f"a={self.root / 'whole'}"), "is saved whole"),
                            (("--lora", "base=" + str(self.root / "llama/adapter0")), "another model is called 'base'"),
                            (("--lora", str(self.root / "llama/adapter0")), "expected NAME=DIR"),
                            (("--lora", "a=" + str(self.root / "gpt2/adapter0")), "is no module of the model"),
                            (("--lora", "a=" + str(self.root / "llama/adapter0"), "--weights", "modules"), "packed weights")]:
            done = tzoo("serve", base, *words)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr)

    def test_encoder(self):
        tokenizer = wordpiece()
        config = transformers.BertConfig(**sizes(tokenizer), max_position_embeddings=64)
        self.save(shaken(transformers.BertForMaskedLM(config)), tokenizer, ("query", "value", "output.dense"))
        self.check("fill-mask", "--text", "the [MASK] was god", "--json")
        self.check("embed", "--text", "the earth", "--text", "god said")
        self.check("rank", "--query", "the earth", "--document", "god said", "--document", "and the heaven")

    def test_new_head(self):
        """A classifier of the adapter on a model without one, with three labels."""
        tokenizer = wordpiece()
        config = transformers.BertConfig(**sizes(tokenizer), max_position_embeddings=64, num_labels=3)
        model = shaken(transformers.BertForSequenceClassification(config))
        self.save(model, tokenizer, ("query", "key"), task_type="SEQ_CLS", modules_to_save=["classifier"])
        base = load_file(self.base / "model.safetensors")
        head = {name: base.pop(name) for name in ("classifier.weight", "classifier.bias")}
        save_file(base, self.base / "model.safetensors", {"format": "pt"})
        path = self.adapter / "adapter_model.safetensors"
        # With bias "all", PEFT also writes the wrapper's two biases.
        wrapped = {"classifier.modules_to_save.bias": head["classifier.bias"].clone(), "classifier.original_module.bias": torch.ones(3)}
        save_file(load_file(path) | {"base_model.model." + name: tensor for name, tensor in (head | wrapped).items()}, path)
        config = json.loads(self.base.joinpath("config.json").read_text())
        for key in ("id2label", "label2id"):
            config.pop(key)
        self.base.joinpath("config.json").write_text(json.dumps(config | {"architectures": ["BertModel"]}))
        text = ("--text", "the earth was without form", "--threads", "1")
        answers = [json.loads(self.run_verb("classify", *of, *text))
                   for of in (("--model", self.base, "--adapter", self.adapter), ("--model", self.merged))]
        self.assertEqual(sorted(answers[0]["scores"]), ["LABEL_0", "LABEL_1", "LABEL_2"])
        self.assertTrue(near(*answers), answers)
        # Exported, it says its labels and its class.
        self.run_verb("export", "--adapter", self.adapter, "--format", "huggingface", "--output", self.root / "whole", "--verify")
        opened = transformers.AutoModelForSequenceClassification.from_pretrained(self.root / "whole").eval()
        self.assertEqual(opened.config.num_labels, 3)
        with torch.no_grad():
            ids = tokenizer("the earth was without form", return_tensors="pt")
            torch.testing.assert_close(opened(**ids).logits, model(**ids).logits)

    def test_a_head_with_fewer_labels_than_the_models(self):
        tokenizer = wordpiece()
        config = transformers.BertConfig(**sizes(tokenizer), max_position_embeddings=64, num_labels=2)
        model = shaken(transformers.BertForSequenceClassification(config))
        self.save(model, tokenizer, ("query", "key"), task_type="SEQ_CLS", modules_to_save=["classifier"])
        base = load_file(self.base / "model.safetensors")
        path = self.adapter / "adapter_model.safetensors"
        save_file(load_file(path) | {"base_model.model." + name: base[name] for name in ("classifier.weight", "classifier.bias")}, path)
        save_file(base | {"classifier.weight": torch.ones(3, config.hidden_size), "classifier.bias": torch.ones(3)},
                  self.base / "model.safetensors", {"format": "pt"})
        named = transformers.BertConfig.from_pretrained(self.base, id2label={0: "entailment", 1: "neutral", 2: "contradiction"})
        named.architectures = ["BertForSequenceClassification"]
        named.save_pretrained(self.base)
        self.run_verb("export", "--model", self.base, "--adapter", self.adapter, "--format", "huggingface", "--output", self.root / "whole",
                      "--verify")
        opened = transformers.AutoModelForSequenceClassification.from_pretrained(self.root / "whole").eval()
        with torch.no_grad():
            ids = tokenizer("the earth was without form", return_tensors="pt")
            torch.testing.assert_close(opened(**ids).logits, model(**ids).logits)

    def test_training_begins_with_the_merged_weights(self):
        self.decoder()
        text = self.root / "text.txt"
        text.write_text(" ".join(TEXTS) * 20)
        words = ("--dataset", text, "--block_size", 16, "--batch_size", 4, "--max_iters", 2, "--eval_interval", 2, "--eval_iters", 2,
                 "--threads", 1, "--seed", 3, "--warmup_iters", 0, "--optimizer", "sgd")
        self.run_verb("train", "--init_from", self.base, "--adapter", self.adapter, "--out_dir", self.root / "a", *words)
        self.run_verb("train", "--init_from", self.merged, "--out_dir", self.root / "b", *words)
        a, b = (load_file(self.root / run / "final/model.safetensors") for run in "ab")
        for name, tensor in a.items():
            torch.testing.assert_close(tensor, b[name], rtol=1e-4, atol=1e-5)
        # What is saved has the adapter: evaluating the run does not add it again.
        alone = [json.loads(self.run_verb("evaluate", "--model", self.root / run / "final", "--json"))["loss"] for run in "ab"]
        self.assertAlmostEqual(*alone, places=5)
        self.assertIn("--init_from DIR", self.run_verb("train", "--adapter", self.adapter, "--out_dir", self.root / "c", *words, code=2))


if __name__ == "__main__":
    unittest.main()
