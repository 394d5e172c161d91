"""tzoo lens, patch, ablate, steer and attention --rollout beside transformers with PyTorch's hooks, computing in float64."""

import itertools
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import tokenizers
import torch
import transformers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import huggingface as hf  # noqa: E402
from text_models import byte_level  # noqa: E402

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "on", "a", "mat", "dog", "ran"]
CLEAN, CORRUPTED, TARGET = "the cat sat on [MASK] mat", "the dog ran on [MASK] mat", "a dog sat"
TOKEN, OTHER = "sat", "dog"
IDS = {"vocab_size": len(WORDS), "bos_token_id": None, "eos_token_id": 2, "pad_token_id": 0}


def save_tokenizer(directory):
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[PAD]"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    transformers.PreTrainedTokenizerFast(tokenizer_object=model, pad_token="[PAD]", unk_token="[PAD]", eos_token="[SEP]",
                                         mask_token="[MASK]", model_input_names=["input_ids", "token_type_ids", "attention_mask"]
                                         ).save_pretrained(directory)


def ids_of(text):
    return torch.tensor([[WORDS.index(word) for word in text.split()]])


def first(output):
    return output[0] if isinstance(output, tuple) else output


def on_output(module, change):
    """change(what the module gives) replaces it, unless it is None."""
    def hook(_, __, output):
        changed = change(first(output))
        if changed is None:
            return None
        return (changed, *output[1:]) if isinstance(output, tuple) else changed

    return module.register_forward_hook(hook)


def on_input(module, change):
    def hook(_, given):
        changed = change(given[0])
        return None if changed is None else (changed, *given[1:])

    return module.register_forward_pre_hook(hook)


def eps_of(norm):
    return norm.eps if hasattr(norm, "eps") else norm.variance_epsilon


def weight_of(norm):
    return norm.weight + 1 if "Gemma" in type(norm).__name__ else norm.weight


class Reference:
    """A model of transformers with its parts: the modules that give the residual stream and what is added to it, and those
    that read the heads. A site is (part, layer) or (part, layer, head)."""

    def __init__(self, model, parts, readout, heads, target=None, final_norm=None, linear=None,
                 end_norm=None):
        self.model, self.parts, self.readout, self.heads, self.target = model, parts, readout, heads, target
        self.final_norm = final_norm  # of pre-LN, whose logits are a sum
        self.linear = linear or (lambda x: model.get_output_embeddings()(x))  # the projection, without a bias
        self.end_norm = end_norm  # of a layer's attention

    def forward(self, text, **options):
        inputs = {"input_ids": ids_of(text), **options}
        if self.target:
            inputs["decoder_input_ids"] = torch.cat([torch.tensor([[0]]), ids_of(self.target)], 1)
        with torch.no_grad(), hf.float64():
            return self.model(**inputs)

    def run(self, text, changes=()):
        """Logits [T, V] with changes [(site, function of its output [1, T, W])], and every part's output."""
        seen, handles = {}, []
        for part, modules in self.parts.items():
            for layer, module in enumerate(modules):
                # A module that all layers share is called once for each.
                turn = itertools.count() if modules[0] is modules[-1] else itertools.repeat(layer)

                def change(value, site=(part, layer), turn=turn):
                    if next(turn) != site[1]:
                        return None
                    value = value.clone()
                    for at, replace in changes:
                        if at[:2] != site:
                            continue
                        of = self.head(value, at[2]) if len(at) > 2 else value
                        of.copy_(replace(of))
                    seen[site] = value
                    return value

                handles.append((on_input if "head" in part else on_output)(module, change))
        try:
            output = self.forward(text, output_hidden_states=True)
        finally:
            for handle in handles:
                handle.remove()
        states = output.decoder_hidden_states if self.target else output.hidden_states
        return output.logits[0], seen, states[0]

    def head(self, value, head):
        width = value.shape[-1] // self.heads
        return value[..., head * width:(head + 1) * width]

    def projected(self, part, layer, head, seen):
        """What a head adds to the residual stream, without the projection's bias; through a norm after it as that is."""
        module, z = self.parts[part][layer], seen[part, layer]
        alone = torch.zeros_like(z)
        self.head(alone, head).copy_(self.head(z, head))
        is_conv = isinstance(module, transformers.pytorch_utils.Conv1D)  # [in, out], unlike a linear layer
        own = alone @ (module.weight if is_conv else module.weight.T)
        if self.end_norm is None:
            return own
        whole, norm = module(z), self.end_norm(layer)
        return own * (whole.pow(2).mean(-1, keepdim=True) + eps_of(norm)).rsqrt() * weight_of(norm)

    def value(self, seen, site):
        return self.head(seen[site[:2]], site[2]) if len(site) > 2 else seen[site]


def kinds(reference):
    """(name of --what, part, whether by heads, stack or None for the only one) of everything that can be patched."""
    for part in reference.parts:
        stack = ("encoder" if part.startswith("encoder_") else "decoder") if reference.target else None
        name = part.removeprefix("encoder_")
        yield name, part, "head" in name, stack


def parity(make):
    """The tests of the family that make(transformers' seed) gives."""

    class Parity(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            folder = tempfile.TemporaryDirectory()
            cls.addClassCleanup(folder.cleanup)
            cls.directory = pathlib.Path(folder.name)
            reference = make(5)
            reference.model.save_pretrained(cls.directory)
            save_tokenizer(cls.directory)
            reference.model.double()
            cls.reference, cls.position = reference, -1
            if "MaskedLM" in type(reference.model).__name__:
                cls.position = CLEAN.split().index("[MASK]")

        def tzoo(self, verb, *words):
            words = [*words, *(["--target", self.reference.target] if self.reference.target else [])]
            out = self.directory / "out"
            # Without gnuplot: the pictures are somebody else's test.
            done = subprocess.run([os.environ["TZOO"], verb, self.directory, "--out_dir", out, *words],
                                  env={**os.environ, "PATH": ""}, capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout) if "--json" in words else out

        def assert_close(self, actual, expected, what, scale=None):
            actual, expected = torch.tensor(actual, dtype=torch.float64), torch.as_tensor(expected).double()
            self.assertEqual(actual.shape, expected.shape, what)
            error = (actual - expected).abs().max().item() / (scale or expected.abs().max().item())
            self.assertLess(error, 1e-5, what)

        def answer(self, text, changes=()):
            return self.reference.run(text, changes)[0][self.position]

        def test_lens(self):
            reference = self.reference
            _, seen, embedded = reference.run(CLEAN)
            layers = len(reference.parts["residual"])
            found = self.tzoo("lens", "--text", CLEAN, "--top_k", str(len(WORDS)), "--token", TOKEN, "--json")
            self.assertEqual([row["layer"] for row in found["layers"]], ["input", *map(str, range(layers))])
            with torch.no_grad(), hf.float64():
                states = [embedded, *(seen["residual", i] for i in range(layers))]
                logs = [reference.readout(state)[0].log_softmax(-1) for state in states]
            for row, log_p, state in zip(found["layers"], logs, states, strict=True):
                p, cells = log_p.exp(), row["positions"]
                probabilities = [{a["id"]: a["probability"] for a in cell["answers"]} for cell in cells]
                self.assert_close([[of[i] for i in range(len(WORDS))] for of in probabilities], p, "probabilities")
                for cell in cells:
                    ordered = [answer["probability"] for answer in cell["answers"]]
                    self.assertEqual(ordered, sorted(ordered, reverse=True))
                self.assert_close([c["entropy"] for c in cells], -(p * log_p).sum(-1) / math.log(2), "entropy")
                divergence = (logs[-1].exp() * (logs[-1] - log_p)).sum(-1) / math.log(2)
                self.assert_close([c["divergence"] for c in cells], divergence, "divergence", scale=max(
                    1.0, divergence.abs().max().item()))
                self.assert_close([c["length"] for c in cells], state[0].norm(dim=-1), "length of the stream")
                own = p[:, WORDS.index(TOKEN)]
                self.assert_close([c["token"]["probability"] for c in cells], own, "token")
                ranks = (p > own[:, None]).sum(-1) + 1
                self.assertEqual([c["token"]["rank"] for c in cells], ranks.tolist())
            self.assert_close([list(p) for p in logs[-1].exp()], self.reference.run(CLEAN)[0].softmax(-1), "last")

        def test_patches(self):
            token, other = WORDS.index(TOKEN), WORDS.index(OTHER)
            clean, source, _ = self.reference.run(CLEAN)
            for name, part, by_head, stack in kinds(self.reference):
                with self.subTest(part=part):
                    words = ["--what", name, *(["--stack", stack] if stack else [])]
                    found = self.tzoo("patch", "--text", CLEAN, "--corrupted", CORRUPTED, "--token", TOKEN, "--json",
                                      *words)
                    length = source[part, 0].shape[1]
                    expected = []
                    for layer in range(len(self.reference.parts[part])):
                        expected.append([])
                        for column in range(self.reference.heads if by_head else length):
                            site = (part, layer, column) if by_head else (part, layer)
                            value = self.reference.value(source, site)

                            def patched(of, value=value, at=column):
                                if by_head:
                                    return value
                                of = of.clone()
                                of[:, at] = value[:, at]
                                return of

                            expected[-1].append(self.answer(CORRUPTED, [(site, patched)]).softmax(-1)[token].item())
                    self.assert_close(found["patched"], torch.tensor(expected), part)
                    self.assert_close(found["clean"], clean[self.position].softmax(-1)[token], "clean")
                    self.assert_close(found["corrupted"], self.answer(CORRUPTED).softmax(-1)[token], "corrupted")
            found = self.tzoo("patch", "--text", CLEAN, "--corrupted", CORRUPTED, "--token", TOKEN, "--other", OTHER,
                              "--json")
            logits = self.answer(CLEAN)
            self.assert_close(found["clean"], logits[token] - logits[other], "logit difference",
                              scale=logits.abs().max().item())

        def ablated(self, *words):
            found = self.tzoo("ablate", "--text", CLEAN, "--top_k", str(len(WORDS)), "--json", *words)
            off = {answer["id"]: answer["off"] for answer in found["answers"]}
            return [off[i] for i in range(len(WORDS))]

        def test_ablations(self):
            clean, seen, embedded = self.reference.run(CLEAN)
            sites = [("head", 0, 1), ("head", 1, 0), ("feed_forward", 0), ("attention", 1)]
            flags = ["--heads", "0.1,1.0", "--sublayers", "0.feed_forward,1.attention"]
            if "cross_head" in self.reference.parts:
                sites += [("cross_head", 0, 0), ("cross_attention", 1)]
                flags += ["--cross_heads", "0.0", "--sublayers", "1.cross_attention"]
            zero = self.answer(CLEAN, [(site, torch.zeros_like) for site in sites]).softmax(-1)
            self.assert_close(self.ablated(*flags), zero, "zero")

            def mean_of(site):
                mean = self.reference.value(seen, site).mean(1, keepdim=True)
                return site, lambda of: mean.expand_as(of)

            mean = self.answer(CLEAN, [mean_of(site) for site in sites]).softmax(-1)
            self.assertGreater((mean - zero).abs().max().item(), 1e-4)
            self.assert_close(self.ablated(*flags, "--with", "mean"), mean, "mean")

            # A layer that is off gives what the layer before it gives.
            skipped = self.answer(CLEAN, [(("residual", 1), lambda of: seen["residual", 0])]).softmax(-1)
            self.assert_close(self.ablated("--layers", "1"), skipped, "layer")

        def test_each_head(self):
            found = self.tzoo("ablate", "--text", CLEAN, "--token", TOKEN, "--each", "head", "--json")
            expected = [[self.answer(CLEAN, [(("head", layer, head), torch.zeros_like)]).softmax(-1)[WORDS.index(TOKEN)]
                         for head in range(self.reference.heads)] for layer in range(len(found["off"]))]
            self.assert_close(found["off"], torch.tensor(expected), "each head")

        def test_attribution(self):
            reference, token = self.reference, WORDS.index(TOKEN)
            words = ["--text", CLEAN, "--token", TOKEN, "--attribution", "--json"]
            if not reference.final_norm:
                with self.assertRaisesRegex(AssertionError, "not a sum of the sublayers' shares"):
                    self.tzoo("lens", *words)
                return
            found = self.tzoo("lens", *words)["attribution"]
            _, seen, embedded = reference.run(CLEAN)
            layers = len(reference.parts["residual"])
            last = seen["residual", layers - 1]
            # With mean and scale of the last state the norm is linear.
            norm = reference.final_norm
            centred = last - last.mean(-1, keepdim=True) if hasattr(norm, "normalized_shape") else last
            scale = 1 / (centred.pow(2).mean(-1, keepdim=True) + eps_of(norm)).sqrt()
            weight = weight_of(norm)
            direction = reference.linear(torch.eye(last.shape[-1], dtype=torch.float64))[:, token]

            def share(part):
                part = part - part.mean(-1, keepdim=True) if centred is not last else part
                return (part * scale * weight @ direction)[0, -1].item()

            with torch.no_grad():
                largest = max(abs(found["logit"]), 1.0)
                self.assert_close(found.get("capped_logit", found["logit"]), reference.run(CLEAN)[0][-1, token], "logit", largest)
                self.assert_close(found["embeddings"], share(embedded), "embeddings", largest)
                for name in [name for name in ("attention", "cross_attention", "feed_forward") if name in found]:
                    expected = [share(seen[name, layer]) for layer in range(layers)]
                    self.assert_close(found[name], torch.tensor(expected), name, largest)
                total = found["embeddings"] + found["biases"] + sum(
                    sum(found.get(name, [])) for name in ("attention", "cross_attention", "feed_forward"))
                self.assert_close(total, found["logit"], "sum", largest)
                for name, part in (("heads", "head"), ("cross_heads", "cross_head")):
                    for layer in range(layers if name in found else 0):
                        for head in range(reference.heads):
                            expected = share(reference.projected(part, layer, head, seen))
                            self.assert_close(found[name][layer][head], expected, name, largest)

        def test_steering(self):
            reference, layer, strength = self.reference, 1, 2.5
            sets = {"toward": ["the cat sat", "a dog ran on"], "away": ["on a mat", "the mat", "dog"]}
            words = ["--prompt", CLEAN, "--layer", str(layer), "--strength", str(strength), "--top_k", "99", "--max_new_tokens", "4", "--json"]
            for name, texts in sets.items():
                (self.directory / name).write_text("\n".join(texts) + "\n\n")
                words += [f"--{name}", str(self.directory / name)]
            done = subprocess.run([os.environ["TZOO"], "steer", self.directory, *words], capture_output=True, text=True, timeout=300)
            if reference.target or "MaskedLM" in type(reference.model).__name__:
                self.assertEqual(done.returncode, 1)
                self.assertIn("expected causal-lm", done.stderr)
                return
            self.assertEqual(done.returncode, 0, done.stderr)
            found = json.loads(done.stdout)
            toward, away = (torch.stack([reference.run(text)[1]["residual", layer][0, -1] for text in texts]).mean(0) for texts in sets.values())
            direction = toward - away
            self.assert_close(found["direction"], direction, "direction")
            self.assert_close(found["length"], direction.norm(), "length")
            steered = [(("residual", layer), lambda of: of + strength * direction)]
            for name, changes in ("without", ()), ("with", steered):
                first_tokens = {each["id"]: each[name] for each in found["first_tokens"]}
                self.assert_close([first_tokens[i] for i in range(len(WORDS))], self.answer(CLEAN, changes).softmax(-1), name)
                text = CLEAN
                for _ in range(4):
                    best = self.answer(text, changes).argmax().item()
                    if best == IDS["eos_token_id"]:
                        break
                    text += " " + WORDS[best]
                special = ("[PAD]", "[MASK]", "[SEP]")
                self.assertEqual(found[name].split(), [word for word in text.split()[len(CLEAN.split()):] if word not in special], name)
            self.assertGreater((self.answer(CLEAN, steered) - self.answer(CLEAN)).abs().max().item(), 1e-2)

        def test_rollout(self):
            out = self.tzoo("attention", "--text", CLEAN, "--rollout")
            found = json.loads((out / "attention.json").read_text())["maps"]
            output = self.reference.forward(CLEAN, output_attentions=True)
            expected = {"decoder": output.attentions} if not self.reference.target else {
                "encoder": output.encoder_attentions, "decoder": output.decoder_attentions}
            self.assertEqual(len(found), len(expected))
            for maps, attentions in zip(found, expected.values(), strict=True):
                rollout = torch.eye(attentions[0].shape[-1], dtype=torch.float64)
                for layer, weights in enumerate(attentions):
                    mixed = 0.5 * weights[0].mean(0) + 0.5 * torch.eye(len(rollout))
                    rollout = mixed / mixed.sum(-1, keepdim=True) @ rollout
                    # attention.json has six digits.
                    self.assert_close(maps["weights"][layer][0], rollout, "rollout")

    return Parity


def gpt2(seed):
    config = transformers.GPT2Config(n_positions=16, n_embd=12, n_layer=3, n_head=2, **IDS)
    model = hf.random_model(transformers.GPT2LMHeadModel, config, seed)
    blocks = model.transformer.h
    return Reference(model, {"residual": blocks, "attention": [b.attn for b in blocks],
                             "feed_forward": [b.mlp for b in blocks], "head": [b.attn.c_proj for b in blocks]},
                     lambda x: model.lm_head(model.transformer.ln_f(x)), 2, final_norm=model.transformer.ln_f)


def llama(seed):
    config = transformers.LlamaConfig(hidden_size=16, intermediate_size=20, num_hidden_layers=3, num_attention_heads=4,
                                      num_key_value_heads=2, max_position_embeddings=16, **IDS)
    model = hf.random_model(transformers.LlamaForCausalLM, config, seed)
    blocks = model.model.layers
    return Reference(model, {"residual": blocks, "attention": [b.self_attn for b in blocks],
                             "feed_forward": [b.mlp for b in blocks], "head": [b.self_attn.o_proj for b in blocks]},
                     lambda x: model.lm_head(model.model.norm(x)), 4, final_norm=model.model.norm)


def gpt_neox(seed):
    config = transformers.GPTNeoXConfig(hidden_size=16, intermediate_size=20, num_hidden_layers=3, num_attention_heads=2,
                                        max_position_embeddings=16, use_parallel_residual=True, **IDS)
    model = hf.random_model(transformers.GPTNeoXForCausalLM, config, seed)
    blocks = model.gpt_neox.layers
    return Reference(model, {"residual": blocks, "attention": [b.attention for b in blocks],
                             "feed_forward": [b.mlp for b in blocks], "head": [b.attention.dense for b in blocks]},
                     lambda x: model.get_output_embeddings()(model.gpt_neox.final_layer_norm(x)), 2,
                     final_norm=model.gpt_neox.final_layer_norm)


def gemma2(seed):
    config = transformers.Gemma2Config(hidden_size=12, intermediate_size=20, num_hidden_layers=3, num_attention_heads=4,
                                       num_key_value_heads=2, head_dim=6, max_position_embeddings=16, sliding_window=3,
                                       attn_logit_softcapping=2.0, final_logit_softcapping=3.0,
                                       query_pre_attn_scalar=6, **IDS)
    model = hf.random_model(transformers.Gemma2ForCausalLM, config, seed)
    blocks = model.model.layers

    def readout(x):
        return 3.0 * torch.tanh(model.lm_head(model.model.norm(x)) / 3.0)

    # Each term of the stream has passed a norm of its own.
    return Reference(model, {"residual": blocks, "attention": [b.post_attention_layernorm for b in blocks],
                             "feed_forward": [b.post_feedforward_layernorm for b in blocks],
                             "head": [b.self_attn.o_proj for b in blocks]}, readout, 4, final_norm=model.model.norm,
                     end_norm=lambda layer: blocks[layer].post_attention_layernorm)


def olmo2(seed):
    config = transformers.Olmo2Config(hidden_size=16, intermediate_size=20, num_hidden_layers=3, num_attention_heads=4,
                                      num_key_value_heads=2, max_position_embeddings=16, **IDS)
    model = hf.random_model(transformers.Olmo2ForCausalLM, config, seed)
    blocks = model.model.layers
    return Reference(model, {"residual": blocks, "attention": [b.post_attention_layernorm for b in blocks],
                             "feed_forward": [b.post_feedforward_layernorm for b in blocks],
                             "head": [b.self_attn.o_proj for b in blocks]},
                     lambda x: model.lm_head(model.model.norm(x)), 4, final_norm=model.model.norm,
                     end_norm=lambda layer: blocks[layer].post_attention_layernorm)


def gptj(seed):
    config = transformers.GPTJConfig(n_positions=16, n_embd=16, n_layer=3, n_head=2, rotary_dim=4, **IDS)
    model = hf.random_model(transformers.GPTJForCausalLM, config, seed)
    blocks = model.transformer.h
    return Reference(model, {"residual": blocks, "attention": [b.attn for b in blocks],
                             "feed_forward": [b.mlp for b in blocks], "head": [b.attn.out_proj for b in blocks]},
                     lambda x: model.lm_head(model.transformer.ln_f(x)), 2, final_norm=model.transformer.ln_f,
                     linear=lambda x: x @ model.lm_head.weight.T)


def bert(seed):
    config = transformers.BertConfig(vocab_size=len(WORDS), hidden_size=12, num_hidden_layers=3, num_attention_heads=2,
                                     intermediate_size=16, max_position_embeddings=20, pad_token_id=0)
    model = hf.random_model(transformers.BertForMaskedLM, config, seed)
    blocks = model.bert.encoder.layer
    return Reference(model, {"residual": blocks, "attention": [b.attention.output.dense for b in blocks],
                             "feed_forward": [b.output.dense for b in blocks],
                             "head": [b.attention.output.dense for b in blocks]}, model.cls, 2)


def albert(seed):
    config = transformers.AlbertConfig(vocab_size=len(WORDS), embedding_size=8, hidden_size=12, num_hidden_layers=3,
                                       num_attention_heads=2, intermediate_size=16, max_position_embeddings=20,
                                       bos_token_id=1, eos_token_id=2, pad_token_id=0)
    model = hf.random_model(transformers.AlbertForMaskedLM, config, seed)
    blocks = 3 * [model.albert.encoder.albert_layer_groups[0].albert_layers[0]]
    return Reference(model, {"residual": blocks, "attention": [b.attention.dense for b in blocks],
                             "feed_forward": [b.ffn_output for b in blocks],
                             "head": [b.attention.dense for b in blocks]}, model.predictions, 2)


def of_two_stacks(names, encoder, decoder):
    """The parts of the decoder, and of the encoder with a prefix; names(block) gives a stack's."""
    parts = {}
    for prefix, blocks in (("", decoder), ("encoder_", encoder)):
        for block in blocks:
            for name, module in names(block).items():
                parts.setdefault(prefix + name, []).append(module)
    return parts


def t5(seed):
    config = transformers.T5Config(vocab_size=len(WORDS), d_model=12, d_kv=5, d_ff=16, num_layers=2, num_decoder_layers=3,
                                   num_heads=2, decoder_start_token_id=0, eos_token_id=2, pad_token_id=0,
                                   relative_attention_num_buckets=8, relative_attention_max_distance=10)
    model = hf.random_model(transformers.T5ForConditionalGeneration, config, seed)

    def names(block):
        own, cross = block.layer[0].SelfAttention, block.layer[1] if len(block.layer) == 3 else None
        found = {"residual": block, "attention": own, "feed_forward": block.layer[-1].DenseReluDense, "head": own.o}
        return found | ({"cross_attention": cross.EncDecAttention, "cross_head": cross.EncDecAttention.o} if cross else {})

    def readout(x):
        return model.lm_head(model.decoder.final_layer_norm(x) * 12 ** -0.5)

    return Reference(model, of_two_stacks(names, model.encoder.block, model.decoder.block), readout, 2, TARGET,
                     final_norm=model.decoder.final_layer_norm, linear=lambda x: model.lm_head(x * 12 ** -0.5))


def bart(seed):
    config = transformers.BartConfig(vocab_size=len(WORDS), d_model=12, encoder_layers=2, decoder_layers=3,
                                     encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16,
                                     decoder_ffn_dim=16, max_position_embeddings=16, bos_token_id=1, eos_token_id=2,
                                     pad_token_id=0, decoder_start_token_id=0, forced_eos_token_id=None)
    model = hf.random_model(transformers.BartForConditionalGeneration, config, seed)

    def names(block):
        found = {"residual": block, "attention": block.self_attn, "feed_forward": block.fc2,
                 "head": block.self_attn.out_proj}
        if hasattr(block, "encoder_attn"):
            found |= {"cross_attention": block.encoder_attn, "cross_head": block.encoder_attn.out_proj}
        return found

    return Reference(model, of_two_stacks(names, model.model.encoder.layers, model.model.decoder.layers),
                     lambda x: model.lm_head(x) + model.final_logits_bias, 2, TARGET)


class Labels(unittest.TestCase):
    """A classifier's label is the answer; what has none is refused by name."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = pathlib.Path(folder.name)
        config = transformers.BertConfig(
            vocab_size=len(WORDS), hidden_size=12, num_hidden_layers=3, num_attention_heads=2, intermediate_size=16,
            max_position_embeddings=20, pad_token_id=0, id2label={0: "bad", 1: "good"}, label2id={"bad": 0, "good": 1})
        self.config = config

    def save(self, kind):
        model = hf.random_model(kind, self.config, 4)
        model.save_pretrained(self.directory)
        save_tokenizer(self.directory)
        return model.double()

    def tzoo(self, verb, *words):
        return subprocess.run([os.environ["TZOO"], verb, self.directory, "--out_dir", self.directory / "out", *words],
                              env={**os.environ, "PATH": ""}, capture_output=True, text=True, timeout=300)

    def test_the_label_without_a_sublayer(self):
        model = self.save(transformers.BertForSequenceClassification)
        done = self.tzoo("ablate", "--text", CLEAN, "--sublayers", "1.attention", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {answer["token"]: (answer["on"], answer["off"]) for answer in json.loads(done.stdout)["answers"]}
        with torch.no_grad(), hf.float64():
            on = model(input_ids=ids_of(CLEAN)).logits[0].softmax(-1)
            on_output(model.bert.encoder.layer[1].attention.output.dense, torch.zeros_like)
            off = model(input_ids=ids_of(CLEAN)).logits[0].softmax(-1)
        for i, label in enumerate(("bad", "good")):
            self.assertAlmostEqual(found[label][0], on[i].item(), delta=1e-5)
            self.assertAlmostEqual(found[label][1], off[i].item(), delta=1e-5)
        done = self.tzoo("patch", "--text", CLEAN, "--corrupted", CORRUPTED, "--token", "good", "--json")
        self.assertAlmostEqual(json.loads(done.stdout)["clean"], on[1].item(), delta=1e-5)
        done = self.tzoo("patch", "--text", CLEAN, "--corrupted", CORRUPTED, "--token", "fine")
        self.assertIn("--token fine: the model's labels are bad, good", done.stderr)
        self.assertEqual(self.tzoo("ablate", "--text", CLEAN, "--position", "1").returncode, 2)
        done = self.tzoo("lens", "--text", CLEAN)
        self.assertEqual(done.returncode, 1)
        self.assertIn("logits at every position", done.stderr)

    def test_a_word_is_the_likelier_of_its_tokens_with_and_without_a_space(self):
        tokens = byte_level()
        config = transformers.GPT2Config(n_positions=32, n_embd=12, n_layer=2, n_head=2, vocab_size=len(tokens),
                                         bos_token_id=None, eos_token_id=None)
        chosen = set()
        for seed in range(6):
            hf.random_model(transformers.GPT2LMHeadModel, config, seed).save_pretrained(self.directory)
            tokens.save_pretrained(self.directory)
            done = self.tzoo("lens", "--text", "in", "--top_k", str(len(tokens)), "--token", "the", "--json")
            found = json.loads(done.stdout)
            last = {answer["token"]: answer["probability"] for answer in found["layers"][-1]["positions"][-1]["answers"]}
            self.assertEqual(found["token"]["token"], max(("the", "Ġthe"), key=last.get))
            chosen.add(found["token"]["token"])
        self.assertEqual(chosen, {"the", "Ġthe"})

    def test_a_masked_language_model_needs_a_mask(self):
        self.save(transformers.BertForMaskedLM)
        for verb, words in (("ablate", []), ("patch", ["--corrupted", "the dog"])):
            done = self.tzoo(verb, "--text", "the cat", *words)
            self.assertEqual(done.returncode, 1)
            self.assertIn("--text: it has no [MASK] token", done.stderr)
            self.assertEqual(self.tzoo(verb, "--text", "the cat", "--position", "1", *words).returncode, 0)
        self.assertEqual(self.tzoo("lens", "--text", "the cat").returncode, 0)
        self.assertIn("'bird': one token is expected, and this is [PAD]", self.tzoo("lens", "--text", "the cat", "--token", "bird").stderr)
        self.assertEqual(self.tzoo("lens", "--text", "the cat", "--token", "[PAD]").returncode, 0)

    def test_a_model_without_logits(self):
        self.save(transformers.BertModel)
        for verb, words in (("lens", []), ("ablate", []), ("patch", ["--corrupted", CORRUPTED])):
            done = self.tzoo(verb, "--text", CLEAN, *words)
            self.assertEqual(done.returncode, 1)
            self.assertIn("logits", done.stderr)


class Gpt2(parity(gpt2)):
    pass


class Llama(parity(llama)):
    pass


class GptNeoX(parity(gpt_neox)):
    pass


class Gemma2(parity(gemma2)):
    pass


class Olmo2(parity(olmo2)):
    pass


class GptJ(parity(gptj)):
    pass


class Bert(parity(bert)):
    pass


class Albert(parity(albert)):
    pass


class T5(parity(t5)):
    pass


class Bart(parity(bart)):
    pass


if __name__ == "__main__":
    unittest.main()
