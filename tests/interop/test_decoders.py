"""tzoo forward, generate and export beside transformers: random models of the decoders that are relatives of Llama."""

import functools
import json
import os
import random
import sys
import unittest

import transformers
from forward_parity import ForwardParity, hf
from generation_parity import GenerationParity
from test_llama import random_rope


def layer_types(draw, layers):
    return draw.choice([None, [draw.choice(["sliding_attention", "full_attention"]) for _ in range(layers)]])


def mistral(draw, layers):
    return dict(sliding_window=draw.choice([None, 2, 4, 40]))


def qwen3(draw, layers):
    windows = draw.random() < 0.5
    return dict(attention_bias=draw.random() < 0.5, use_sliding_window=windows, sliding_window=draw.choice([2, 5]),
                max_window_layers=draw.choice([0, 1, 2]), layer_types=layer_types(draw, layers) if windows else None)


def qwen2(draw, layers):
    return {key: value for key, value in qwen3(draw, layers).items() if key != "attention_bias"}


def gemma(draw, layers):
    return dict(attention_bias=draw.random() < 0.5, hidden_act=draw.choice(["gelu_pytorch_tanh", "gelu", "silu", "relu"]))


def gemma3(draw, layers):
    ropes = {"full_attention": random_rope(draw),
             "sliding_attention": {"rope_type": "default", "rope_theta": draw.choice([50.0, 1000.0])}}
    found = {**gemma2(draw, layers), "attn_logit_softcapping": None, "rope_parameters": ropes}
    if draw.random() < 0.5:
        found.update(layer_types=None, sliding_window_pattern=draw.choice([2, 3]))
    return found


def gemma2(draw, layers):
    return dict(attention_bias=draw.random() < 0.5, hidden_activation=draw.choice(["gelu_pytorch_tanh", "gelu", "silu"]),
                query_pre_attn_scalar=draw.choice([16, 50, 256]), sliding_window=draw.choice([2, 3, 40]),
                attn_logit_softcapping=draw.choice([None, 2.0, 50.0]), final_logit_softcapping=draw.choice([None, 3.0, 30.0]),
                layer_types=layer_types(draw, layers))


def olmo2(draw, layers):
    return dict(attention_bias=draw.random() < 0.5)


def phi3(draw, layers):
    rope = random_rope(draw)
    if rope["rope_type"] != "default":  # of the others transformers lets Phi-3 have longrope alone
        rope = {"rope_type": "default", "rope_theta": 100.0}
    return dict(rope_parameters={**rope, "partial_rotary_factor": draw.choice([0.5, 1.0])}, resid_pdrop=0.1,
                sliding_window=draw.choice([None, 4]))


def smollm3(draw, layers):
    return dict(attention_bias=draw.random() < 0.5, mlp_bias=draw.random() < 0.5, no_rope_layer_interval=draw.choice([1, 2, 3]),
                no_rope_layers=draw.choice([None, [draw.choice([0, 1]) for _ in range(layers)]]))


def starcoder2(draw, layers):
    return dict(use_bias=draw.random() < 0.5, sliding_window=draw.choice([None, 3, 40]), residual_dropout=0.1,
                embedding_dropout=0.1, hidden_act=draw.choice(["gelu_pytorch_tanh", "relu"]))


def gpt_neox(draw, layers):
    return dict(use_parallel_residual=draw.random() < 0.5, attention_bias=draw.random() < 0.5, hidden_dropout=0.1,
                hidden_act=draw.choice(["gelu", "relu"]),
                rope_parameters={**random_rope(draw), "partial_rotary_factor": draw.choice([0.5, 1.0])})


def opt(draw, layers):
    return dict(enable_bias=draw.random() < 0.5, do_layer_norm_before=draw.random() < 0.7, dropout=0.1,
                activation_function=draw.choice(["relu", "gelu"]), rope_parameters=None)


def bloom(draw, layers):
    return dict(n_layer=layers, hidden_dropout=0.1, rope_parameters=None)


def falcon(draw, layers):
    grouped = draw.random() < 0.5
    parallel = grouped or draw.random() < 0.5
    return dict(new_decoder_architecture=grouped, multi_query=draw.random() < 0.5,
                **({} if grouped else {"num_kv_heads": None}), bias=draw.random() < 0.5,
                parallel_attn=parallel, num_ln_in_parallel_attn=draw.choice([None, 1, 2]) if grouped else None,
                activation=draw.choice(["gelu", "relu"]), **({} if parallel else {"attention_dropout": 0.0}))


def gptj(draw, layers):
    return dict(rotary_dim=draw.choice([2, 4]), n_inner=draw.choice([None, 9]), resid_pdrop=0.1, embd_pdrop=0.1,
                activation_function=draw.choice(["gelu_new", "relu"]), tie_word_embeddings=False)


def mpt(draw, layers):
    return dict(attn_config=dict(softmax_scale=draw.choice([None, 0.4])))


def gpt_bigcode(draw, layers):
    return dict(multi_query=draw.random() < 0.5, n_inner=draw.choice([None, 9]), resid_pdrop=0.1,
                activation_function=draw.choice(["gelu_pytorch_tanh", "relu"]))


def stablelm(draw, layers):
    return dict(use_qkv_bias=draw.random() < 0.5, use_parallel_residual=draw.random() < 0.5,
                rope_parameters={**random_rope(draw), "partial_rotary_factor": draw.choice([0.5, 1.0])})


def granite(draw, layers):
    return dict(attention_bias=draw.random() < 0.5, mlp_bias=draw.random() < 0.5,
                **{name: draw.choice([0.5, 1.0, 3.0]) for name in ("embedding_multiplier", "logits_scaling",
                                                                   "residual_multiplier", "attention_multiplier")})


def router_loss(draw):
    return dict(output_router_logits=draw.random() < 0.5, router_aux_loss_coef=draw.choice([0.001, 0.3]))


def mixtral(draw, layers):
    experts = draw.choice([2, 3, 8])
    return dict(num_local_experts=experts, num_experts_per_tok=draw.randint(1, experts),
                sliding_window=draw.choice([None, 3, 40]), **router_loss(draw))


def qwen_experts(draw, layers):
    experts = draw.choice([2, 3, 8])
    return dict(num_experts=experts, num_experts_per_tok=draw.randint(1, experts), norm_topk_prob=draw.random() < 0.5,
                moe_intermediate_size=draw.choice([5, 16]), decoder_sparse_step=draw.choice([1, 1, 2]) if layers > 1 else 1,
                mlp_only_layers=draw.choice([[], [0]]) if layers > 2 else [], **router_loss(draw))


def qwen3_moe(draw, layers):
    windows = draw.random() < 0.5
    return dict(attention_bias=draw.random() < 0.5, use_sliding_window=windows, sliding_window=draw.choice([2, 5]),
                head_dim=draw.choice([6, 16]), **qwen_experts(draw, layers))


def qwen2_moe(draw, layers):
    windows = draw.random() < 0.5
    return dict(qkv_bias=draw.random() < 0.5, use_sliding_window=windows, sliding_window=draw.choice([2, 5]),
                max_window_layers=draw.choice([0, 1, 2]), layer_types=layer_types(draw, layers) if windows else None,
                shared_expert_intermediate_size=draw.choice([3, 16]), **qwen_experts(draw, layers))


def nanochat(draw, layers):
    rope = random_rope(draw)
    if rope["rope_type"] == "yarn":  # whose factor of the rotated numbers is refused
        rope = {"rope_type": "default", "rope_theta": 100.0}
    return dict(rope_parameters=rope, attention_bias=draw.random() < 0.5, hidden_act=draw.choice(["relu2", "gelu"]),
                final_logit_softcapping=draw.choice([None, 3.0, 15.0]))


EPSILONS = ("rms_norm_eps", "layer_norm_eps", "norm_epsilon", "layer_norm_epsilon")
# model_type: (configuration, base model, name of the other classes, changes)
FAMILIES = {
    "mistral": (transformers.MistralConfig, transformers.MistralModel, "Mistral", mistral),
    "qwen2": (transformers.Qwen2Config, transformers.Qwen2Model, "Qwen2", qwen2),
    "qwen3": (transformers.Qwen3Config, transformers.Qwen3Model, "Qwen3", qwen3),
    "gemma": (transformers.GemmaConfig, transformers.GemmaModel, "Gemma", gemma),
    "gemma2": (transformers.Gemma2Config, transformers.Gemma2Model, "Gemma2", gemma2),
    "gemma3_text": (transformers.Gemma3TextConfig, transformers.Gemma3TextModel, "Gemma3", gemma3),
    "olmo2": (transformers.Olmo2Config, transformers.Olmo2Model, "Olmo2", olmo2),
    "phi3": (transformers.Phi3Config, transformers.Phi3Model, "Phi3", phi3),
    "smollm3": (transformers.SmolLM3Config, transformers.SmolLM3Model, "SmolLM3", smollm3),
    "starcoder2": (transformers.Starcoder2Config, transformers.Starcoder2Model, "Starcoder2", starcoder2),
    "gpt_neox": (transformers.GPTNeoXConfig, transformers.GPTNeoXModel, "GPTNeoX", gpt_neox),
    "bloom": (transformers.BloomConfig, transformers.BloomModel, "Bloom", bloom),
    "falcon": (transformers.FalconConfig, transformers.FalconModel, "Falcon", falcon),
    "opt": (transformers.OPTConfig, transformers.OPTModel, "OPT", opt),
    "gptj": (transformers.GPTJConfig, transformers.GPTJModel, "GPTJ", gptj),
    "mpt": (transformers.MptConfig, transformers.MptModel, "Mpt", mpt),
    "gpt_bigcode": (transformers.GPTBigCodeConfig, transformers.GPTBigCodeModel, "GPTBigCode", gpt_bigcode),
    "stablelm": (transformers.StableLmConfig, transformers.StableLmModel, "StableLm", stablelm),
    "mixtral": (transformers.MixtralConfig, transformers.MixtralModel, "Mixtral", mixtral),
    "qwen2_moe": (transformers.Qwen2MoeConfig, transformers.Qwen2MoeModel, "Qwen2Moe", qwen2_moe),
    "qwen3_moe": (transformers.Qwen3MoeConfig, transformers.Qwen3MoeModel, "Qwen3Moe", qwen3_moe),
    "nanochat": (transformers.NanoChatConfig, transformers.NanoChatModel, "NanoChat", nanochat),
    "granite": (transformers.GraniteConfig, transformers.GraniteModel, "Granite", granite),
}


class DecoderParity(ForwardParity, GenerationParity):
    def save(self, model, head, directory, seed):
        model.save_pretrained(directory)
        period = getattr(model.config, "_sliding_window_pattern", 6)
        if period != 6:  # files of transformers 4 may have it in place of the types
            path = os.path.join(directory, "config.json")
            with open(path, encoding="utf-8") as file:
                config = json.load(file)
            del config["layer_types"]
            with open(path, "w", encoding="utf-8") as file:
                json.dump({**config, "sliding_window_pattern": period}, file)
        return []

    @classmethod
    @functools.cache
    def has(cls, name):
        return hasattr(cls.CONFIG(), name) and not isinstance(getattr(cls.CONFIG, name, None), property)

    @classmethod
    def config(cls, draw, sizes):
        common = dict(
            max_position_embeddings=31, rope_parameters=random_rope(draw), tie_word_embeddings=draw.random() < 0.5,
            pad_token_id=draw.choice([0, 3]), num_labels=draw.choice([1, 2, 5]),
            attention_dropout=0.1,  # must not act outside of training
            bos_token_id=None, eos_token_id=None)
        common.update({name: draw.choice([1e-6, 1e-3]) for name in EPSILONS})
        common.update(sizes)
        common = {name: value for name, value in common.items() if cls.has(name)}
        return cls.CONFIG(**{**common, **cls.CHANGES(draw, sizes["num_hidden_layers"])})

    @classmethod
    def random_config(cls, draw, head):
        heads, head_dim, inner = draw.choice([1, 2, 4, 6]), draw.choice([4, 8, 12]), draw.choice([7, 16, 33])
        kv_heads = draw.choice([n for n in (1, 2, 3) if heads % n == 0])
        return cls.config(draw, dict(
            num_hidden_layers=draw.choice([1, 2, 3]), num_attention_heads=heads,
            num_key_value_heads=kv_heads, num_kv_heads=kv_heads, n_head=heads, hidden_size=heads * head_dim,
            head_dim=draw.choice([head_dim, 6, 16]), intermediate_size=inner, ffn_dim=inner, ffn_hidden_size=inner,
            vocab_size=draw.randint(6, 90)))

    def generator(self, seed):
        config = self.config(random.Random(seed), dict(
            num_hidden_layers=2, num_attention_heads=4, n_head=4, num_key_value_heads=[1, 2, 4][seed % 3],
            num_kv_heads=[1, 2, 4][seed % 3], hidden_size=32, head_dim=8,
            intermediate_size=40, ffn_dim=40, ffn_hidden_size=40, vocab_size=61,
            tie_word_embeddings=False))  # a tied model is apt to repeat its tokens
        config.max_position_embeddings = 64
        config.pad_token_id = 0
        if getattr(config, "output_router_logits", False):
            config.output_router_logits = False  # with which transformers cannot generate
        return self.first_varied(seed, lambda number: hf.random_model(self.HEADS["causal-lm"], config, seed + 100 * number), 20)


def test_of(model_type):
    config, base, name, changes = FAMILIES[model_type]
    text = "Gemma3Text" if name == "Gemma3" else name
    heads = {"causal-lm": getattr(transformers, name + "ForCausalLM"), "base": base,
             "sequence-classification": getattr(transformers, text + "ForSequenceClassification", None)}
    heads = {head: cls for head, cls in heads.items() if cls is not None}
    return type(name + "Test", (DecoderParity, unittest.TestCase),
                dict(CONFIG=config, HEADS=heads, CHANGES=staticmethod(changes)))


def load_tests(loader, tests, pattern):
    return unittest.TestSuite(loader.loadTestsFromTestCase(test_of(name)) for name in CHOSEN)


# Families of the command line, or all.
CHOSEN = [word for word in sys.argv[1:] if word in FAMILIES] or list(FAMILIES)

if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word not in FAMILIES])
