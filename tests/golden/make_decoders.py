#!/usr/bin/env python3
"""Makes the folders of golden/ of decoders that are relatives of Llama: tiny random checkpoints, and what transformers
computes from them.

Run by hand, with the Python of third_party/interop, when a fixture has to change:  python make_decoders.py [FAMILY …]

Each case is a directory with config.json and model.safetensors, as transformers writes them, and expected.safetensors:
  input_ids, attention_mask, labels     the inputs: rows without padding, padded on the left, padded on the right
  logits (or last_hidden_state), loss   of those inputs
  hidden_states.N, attentions.N         Hugging Face's indexing
  grad.NAME                             of the loss, for each of named_parameters()
"""

import pathlib
import sys

import transformers as hub

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "support"))
import huggingface as hf  # noqa: E402

SMALL = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 12, "vocab_size": 17,
         "max_position_embeddings": 16, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
GROUPED = {"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 16,
           "intermediate_size": 20}
YARN = {"rope_type": "yarn", "rope_theta": 1000.0, "factor": 4.0, "original_max_position_embeddings": 8}
# A window of 4 leaves each query of a padded row a key to see.
MIXED = {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "sliding_window": 4}
CLASSIFIER = {"num_labels": 3, "pad_token_id": 2}

# folder: (name of the classes, configuration, changes of every case, further cases of a language model)
FAMILIES = {
    "qwen2": ("Qwen2", hub.Qwen2Config, {"num_key_value_heads": 2},
              {"grouped": {**GROUPED, "vocab_size": 19, "max_position_embeddings": 64, "tie_word_embeddings": True,
                           "rms_norm_eps": 1e-3}}),
    "mistral": ("Mistral", hub.MistralConfig, {**GROUPED, "sliding_window": 4}, {}),
    "qwen3": ("Qwen3", hub.Qwen3Config, {**GROUPED, "head_dim": 6, "rope_parameters": YARN}, {}),
    "gemma": ("Gemma", hub.GemmaConfig, {**GROUPED, "head_dim": 6}, {}),
    "gemma2": ("Gemma2", hub.Gemma2Config,
               {**GROUPED, **MIXED, "head_dim": 6, "query_pre_attn_scalar": 9, "attn_logit_softcapping": 2.0,
                "final_logit_softcapping": 3.0}, {}),
    "gemma3_text": ("Gemma3", hub.Gemma3TextConfig, {**GROUPED, **MIXED, "head_dim": 6, "query_pre_attn_scalar": 9}, {}),
    "olmo2": ("Olmo2", hub.Olmo2Config, GROUPED, {}),
    "phi3": ("Phi3", hub.Phi3Config,
             {**GROUPED, "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0, "partial_rotary_factor": 0.5}}, {}),
    "smollm3": ("SmolLM3", hub.SmolLM3Config, {**GROUPED, "no_rope_layer_interval": 2}, {}),
    "starcoder2": ("Starcoder2", hub.Starcoder2Config, {**GROUPED, "sliding_window": 4}, {}),
    "gpt_neox": ("GPTNeoX", hub.GPTNeoXConfig,
                 {"rope_parameters": {"rope_type": "default", "rope_theta": 1000.0, "partial_rotary_factor": 0.5}},
                 {"sequential": {"use_parallel_residual": False, "attention_bias": False, "tie_word_embeddings": True}}),
    "bloom": ("Bloom", hub.BloomConfig, {"n_layer": 2, "n_head": 2}, {}),
    "falcon": ("Falcon", hub.FalconConfig, {"hidden_size": 8},
               {"grouped": {**GROUPED, "num_kv_heads": 2, "new_decoder_architecture": True, "bias": True},
                "one-norm": {**GROUPED, "num_kv_heads": 2, "new_decoder_architecture": True, "num_ln_in_parallel_attn": 1},
                "sequential": {"parallel_attn": False, "multi_query": False}}),
    "opt": ("OPT", hub.OPTConfig, {"ffn_dim": 12},
            {"post-norm": {"do_layer_norm_before": False, "enable_bias": False, "pad_token_id": 1}}),
    "gptj": ("GPTJ", hub.GPTJConfig, {"rotary_dim": 2, "n_inner": 12}, {"whole": {"rotary_dim": 4, "n_inner": None}}),
    "mpt": ("Mpt", hub.MptConfig, {"hidden_size": 12, "num_attention_heads": 3},
            {"scaled": {"attn_config": {"softmax_scale": 0.7}, "tie_word_embeddings": False}}),
    "gpt_bigcode": ("GPTBigCode", hub.GPTBigCodeConfig, {"n_inner": 12}, {"multi-head": {"multi_query": False}}),
    "stablelm": ("StableLm", hub.StableLmConfig, {**GROUPED, "partial_rotary_factor": 0.5, "use_qkv_bias": True},
                 {"parallel": {"use_parallel_residual": True, "use_qkv_bias": False}}),
    "mixtral": ("Mixtral", hub.MixtralConfig, {**GROUPED, "num_local_experts": 3},
                {"balanced": {"output_router_logits": True, "router_aux_loss_coef": 0.5}}),
    "qwen2_moe": ("Qwen2Moe", hub.Qwen2MoeConfig,
                  {**GROUPED, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 6,
                   "shared_expert_intermediate_size": 10}, {"normalized": {"norm_topk_prob": True}}),
    "qwen3_moe": ("Qwen3Moe", hub.Qwen3MoeConfig,
                  {**GROUPED, "head_dim": 6, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 6,
                   "decoder_sparse_step": 2}, {"normalized": {"norm_topk_prob": True, "mlp_only_layers": [1], "decoder_sparse_step": 1}}),
    "nanochat": ("NanoChat", hub.NanoChatConfig, GROUPED,
                 {"tied": {"tie_word_embeddings": True, "final_logit_softcapping": None, "attention_bias": True,
                           "hidden_act": "gelu", "rope_parameters": {"rope_type": "default", "rope_theta": 1000.0}}}),
    "granite": ("Granite", hub.GraniteConfig,
                {**GROUPED, "embedding_multiplier": 1.5, "logits_scaling": 2.0, "residual_multiplier": 0.7,
                 "attention_multiplier": 0.3}, {"tied": {"tie_word_embeddings": True, "attention_bias": True}}),
}


def cases(name, more):
    """(case, head, class, changes)"""
    text = "Gemma3Text" if name == "Gemma3" else name
    yield "causal-lm", "causal-lm", name + "ForCausalLM", {}
    yield "base", "base", text + "Model", {}
    if hasattr(hub, text + "ForSequenceClassification"):
        yield "sequence-classification", "sequence-classification", text + "ForSequenceClassification", CLASSIFIER
    for case, changes in more.items():
        yield case, "causal-lm", name + "ForCausalLM", changes


def main():
    for family in sys.argv[1:] or FAMILIES:
        name, config, changes, more = FAMILIES[family]
        for seed, (case, head, cls, others) in enumerate(cases(name, more), 1):
            model = hf.random_model(getattr(hub, cls), config(**{**SMALL, **changes, **others}), seed)
            hf.write_case(FOLDER / family / case, model, head, seed, model)


if __name__ == "__main__":
    main()
