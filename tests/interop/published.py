"""What the checkpoints that `tzoo models` lists say in their files on the hub: config.json, generation_config.json,
tokenizer_config.json and special_tokens_map.json, with their sizes and ids as they are there.

Each preset is a Checkpoint. Its facts are those of the published files; where one of them is not known for sure, the class's
defaults fill it (`facts`). Left out or shortened: versions and paths, chat templates, long lists of tokens and of factors.
"""

import dataclasses

NO_LIMIT = 1000000000000000019884624838656  # transformers' "no model_max_length"


@dataclasses.dataclass
class Checkpoint:
    config: dict
    generation: dict | None  # None: the repository has no such file
    vocabulary: str  # a function of published_vocabularies.py
    special: dict  # content: id, of the tokens that the settings name
    tokens: int  # of the tokenizer, whose vocabulary may be smaller or larger than the model's
    settings: dict  # tokenizer_config.json
    roles: dict | None = None  # special_tokens_map.json
    names: str = ""  # how the hub's file calls its tensors: NAMES in test_published.py
    facts: str = "published"  # or "published and defaults of the class"


def token(content, **flags):
    return {"__type": "AddedToken", "content": content, "lstrip": False, "normalized": True, "rstrip": False, "single_word": False} | flags


def numbered(pattern, first, count):
    return {pattern.format(i): first + i for i in range(count)}


FROM_CONFIG = {"_from_model_config": True}
ALL = {}

# --- GPT-2's vocabulary ---------------------------------------------------------------------------------------------------
SUMMARY = {"summary_activation": None, "summary_first_dropout": 0.1, "summary_proj_to_labels": True, "summary_type": "cls_index",
           "summary_use_proj": True}
GPT2 = {"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256,
        "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2",
        "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1, **SUMMARY,
        "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}}, "vocab_size": 50257}
GPT2_ENDS = {"bos_token_id": 50256, "eos_token_id": 50256}
for name, sizes in {"gpt2": {}, "gpt2-medium": {"n_embd": 1024, "n_head": 16, "n_layer": 24},
                    "gpt2-large": {"n_embd": 1280, "n_head": 20, "n_layer": 36},
                    "gpt2-xl": {"n_embd": 1600, "n_head": 25, "n_layer": 48, "output_past": True}}.items():
    more = {} if name == "gpt2" else {"n_special": 0, "predict_special_tokens": True}
    ALL[name] = Checkpoint(GPT2 | more | sizes, FROM_CONFIG | GPT2_ENDS, "gpt2", {"<|endoftext|>": 50256}, 50257,
                           {"model_max_length": 1024}, names="gpt2")

ENDOFTEXT = {role: token("<|endoftext|>") for role in ("bos_token", "eos_token", "unk_token")}
ALL["gpt-j-6b"] = Checkpoint(
    {"activation_function": "gelu_new", "architectures": ["GPTJForCausalLM"], "attn_pdrop": 0.0, "bos_token_id": 50256,
     "embd_pdrop": 0.0, "eos_token_id": 50256, "gradient_checkpointing": False, "initializer_range": 0.02,
     "layer_norm_epsilon": 1e-05, "model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_inner": None, "n_layer": 28,
     "n_positions": 2048, "resid_pdrop": 0.0, "rotary": True, "rotary_dim": 64, "scale_attn_weights": True, **SUMMARY,
     "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50, "temperature": 1.0}},
     "tie_word_embeddings": False, "tokenizer_class": "GPT2Tokenizer", "use_cache": True, "vocab_size": 50400},
    None, "gpt2", {"<|endoftext|>": 50256, **numbered("<|extratoken_{}|>", 50257, 143)}, 50400,
    {"add_prefix_space": False, "errors": "replace", "model_max_length": 2048, "special_tokens_map_file": None,
     "tokenizer_class": "GPT2Tokenizer", **ENDOFTEXT}, names="gptj")

OPT = {"activation_dropout": 0.0, "activation_function": "relu", "architectures": ["OPTForCausalLM"], "attention_dropout": 0.0,
       "bos_token_id": 2, "do_layer_norm_before": True, "dropout": 0.1, "eos_token_id": 2, "ffn_dim": 3072, "hidden_size": 768,
       "init_std": 0.02, "layerdrop": 0.0, "max_position_embeddings": 2048, "model_type": "opt", "num_attention_heads": 12,
       "num_hidden_layers": 12, "pad_token_id": 1, "prefix": "</s>", "torch_dtype": "float16", "use_cache": True,
       "vocab_size": 50272, "word_embed_proj_dim": 768}
OPT_ROLES = {"bos_token": token("</s>"), "eos_token": token("</s>"), "unk_token": token("</s>"), "pad_token": token("<pad>")}
for name, sizes in {"opt-125m": {}, "opt-1.3b": {"ffn_dim": 8192, "hidden_size": 2048, "num_attention_heads": 32,
                                                 "num_hidden_layers": 24, "word_embed_proj_dim": 2048},
                    "opt-6.7b": {"_remove_final_layer_norm": False, "ffn_dim": 16384, "hidden_size": 4096,
                                 "num_attention_heads": 32, "num_hidden_layers": 32, "word_embed_proj_dim": 4096}}.items():
    ALL[name] = Checkpoint(
        OPT | sizes, FROM_CONFIG | {"bos_token_id": 2, "eos_token_id": 2, "pad_token_id": 1}, "opt",
        {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}, 50265,
        {"errors": "replace", **OPT_ROLES, "add_prefix_space": False, "add_bos_token": True, "special_tokens_map_file": None,
         "name_or_path": "patrickvonplaten/opt-30b", "tokenizer_class": "GPT2Tokenizer"}, roles=OPT_ROLES)

# --- Llama, Mistral, Phi-3: sentencepiece's BPE -----------------------------------------------------------------------------
UNK_S = {"<unk>": 0, "<s>": 1, "</s>": 2}
LLAMA = {"architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
         "intermediate_size": 11008, "max_position_embeddings": 4096, "model_type": "llama", "num_attention_heads": 32,
         "num_hidden_layers": 32, "num_key_value_heads": 32, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": None,
         "tie_word_embeddings": False, "use_cache": True}
SAMPLED = {"do_sample": True, "temperature": 0.6, "max_length": 4096, "top_p": 0.9}
LLAMA_ROLES = {role: token(content, normalized=False) for role, content in
               (("bos_token", "<s>"), ("eos_token", "</s>"), ("unk_token", "<unk>"))}
ALL["llama-2-7b"] = Checkpoint(
    LLAMA | {"bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float16", "vocab_size": 32000},
    {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, **SAMPLED}, "llama", UNK_S, 32000,
    {"add_bos_token": True, "add_eos_token": False, **LLAMA_ROLES, "clean_up_tokenization_spaces": False, "legacy": False,
     "model_max_length": NO_LIMIT, "pad_token": None, "padding_side": "right", "sp_model_kwargs": {},
     "tokenizer_class": "LlamaTokenizer"}, roles=LLAMA_ROLES, names="rotary")

LLAMA3_SPECIAL = {"<|begin_of_text|>": 128000, "<|end_of_text|>": 128001, **numbered("<|reserved_special_token_{}|>", 128002, 4),
                  "<|start_header_id|>": 128006, "<|end_header_id|>": 128007, "<|eot_id|>": 128009}
LLAMA3 = LLAMA | {"attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": 128001,
                  "intermediate_size": 14336, "max_position_embeddings": 8192, "num_key_value_heads": 8, "rope_theta": 500000.0,
                  "torch_dtype": "bfloat16", "vocab_size": 128256}
LLAMA32 = LLAMA3 | {"head_dim": 64, "hidden_size": 2048, "intermediate_size": 8192, "max_position_embeddings": 131072,
                    "mlp_bias": False, "num_hidden_layers": 16, "tie_word_embeddings": True,
                    "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                                     "original_max_position_embeddings": 8192, "rope_type": "llama3"}}
for name, config in {"llama-3-8b": LLAMA3, "llama-3.2-1b": LLAMA32,
                     "llama-3.2-3b": LLAMA32 | {"head_dim": 128, "hidden_size": 3072, "num_attention_heads": 24,
                                                "num_hidden_layers": 28}}.items():
    ALL[name] = Checkpoint(
        config, FROM_CONFIG | {"bos_token_id": 128000, "eos_token_id": 128001, **SAMPLED}, "llama3", LLAMA3_SPECIAL, 128256,
        {"added_tokens_decoder": ..., "bos_token": "<|begin_of_text|>", "clean_up_tokenization_spaces": True,
         "eos_token": "<|end_of_text|>", "model_input_names": ["input_ids", "attention_mask"], "model_max_length": NO_LIMIT,
         "tokenizer_class": "PreTrainedTokenizerFast"})

MISTRAL = {"architectures": ["MistralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 2,
           "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
           "max_position_embeddings": 32768, "model_type": "mistral", "num_attention_heads": 32, "num_hidden_layers": 32,
           "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 10000.0, "sliding_window": 4096,
           "tie_word_embeddings": False, "torch_dtype": "bfloat16", "use_cache": True, "vocab_size": 32000}
MISTRAL_SETTINGS = {"add_bos_token": True, "add_eos_token": False, "added_tokens_decoder": ..., "additional_special_tokens": [],
                    "bos_token": "<s>", "clean_up_tokenization_spaces": False, "eos_token": "</s>", "legacy": True,
                    "model_max_length": NO_LIMIT, "pad_token": None, "sp_model_kwargs": {}, "spaces_between_special_tokens": False,
                    "tokenizer_class": "LlamaTokenizer", "unk_token": "<unk>", "use_default_system_prompt": False}
S_ENDS = FROM_CONFIG | {"bos_token_id": 1, "eos_token_id": 2}
ALL["mistral-7b"] = Checkpoint(MISTRAL, S_ENDS, "llama", UNK_S, 32000, MISTRAL_SETTINGS)
ALL["mistral-7b-v0.3"] = Checkpoint(
    MISTRAL | {"rope_theta": 1000000.0, "sliding_window": None, "vocab_size": 32768}, S_ENDS, "llama",
    UNK_S | {"[INST]": 3, "[/INST]": 4, "[TOOL_CALLS]": 5}, 32768,
    MISTRAL_SETTINGS | {"add_prefix_space": True, "legacy": False})
MIXTRAL = {key: value for key, value in MISTRAL.items() if key != "sliding_window"} | {
    "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "num_experts_per_tok": 2, "num_local_experts": 8,
    "output_router_logits": False, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.02, "sliding_window": None}
ALL["mixtral-8x7b"] = Checkpoint(MIXTRAL, S_ENDS, "llama", UNK_S, 32000, MISTRAL_SETTINGS)
ALL["mixtral-8x22b"] = Checkpoint(
    MIXTRAL | {"hidden_size": 6144, "intermediate_size": 16384, "max_position_embeddings": 65536, "num_attention_heads": 48,
               "num_hidden_layers": 56, "router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0},
    S_ENDS, "llama", UNK_S, 32000, MISTRAL_SETTINGS)

PHI3 = {"architectures": ["Phi3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config", "AutoModelForCausalLM": "modeling_phi3.Phi3ForCausalLM"},
        "bos_token_id": 1, "embd_pdrop": 0.0, "eos_token_id": 32000, "hidden_act": "silu", "hidden_size": 3072,
        "initializer_range": 0.02, "intermediate_size": 8192, "max_position_embeddings": 4096, "model_type": "phi3",
        "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "original_max_position_embeddings": 4096,
        "pad_token_id": 32000, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 10000.0,
        "sliding_window": 2047, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "use_cache": True, "vocab_size": 32064}
PHI3_ADDED = {"<|endoftext|>": 32000, "<|assistant|>": 32001, "<|placeholder1|>": 32002, "<|placeholder2|>": 32003,
              "<|placeholder3|>": 32004, "<|placeholder4|>": 32005, "<|system|>": 32006, "<|end|>": 32007,
              "<|placeholder5|>": 32008, "<|placeholder6|>": 32009, "<|user|>": 32010}
PHI3_TEMPLATE = "{% for m in messages %}{{'<|' + m['role'] + '|>\n' + m['content'] + '<|end|>\n'}}{% endfor %}" \
                "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}"
ALL["phi-3-mini-4k"] = Checkpoint(
    PHI3, FROM_CONFIG | {"bos_token_id": 1, "eos_token_id": [32000, 32001, 32007], "pad_token_id": 32000}, "phi3",
    UNK_S | PHI3_ADDED, 32011,
    {"add_bos_token": False, "add_eos_token": False, "added_tokens_decoder": ..., "bos_token": "<s>",
     "chat_template": PHI3_TEMPLATE, "clean_up_tokenization_spaces": False, "eos_token": "<|endoftext|>", "legacy": False,
     "model_max_length": 4096, "pad_token": "<|endoftext|>", "padding_side": "left", "sp_model_kwargs": {},
     "tokenizer_class": "LlamaTokenizer", "unk_token": "<unk>", "use_default_system_prompt": False})
ENDOFTEXT_GPT2 = {"add_prefix_space": False, "added_tokens_decoder": ..., "bos_token": "<|endoftext|>",
                  "clean_up_tokenization_spaces": False, "eos_token": "<|endoftext|>", "tokenizer_class": "GPT2Tokenizer",
                  "unk_token": "<|endoftext|>"}
ALL["phi-4-mini"] = Checkpoint(
    PHI3 | {"bos_token_id": 199999, "eos_token_id": 199999, "full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": False,
            "max_position_embeddings": 131072, "mlp_bias": False, "num_attention_heads": 24, "num_key_value_heads": 8,
            "pad_token_id": 199999, "partial_rotary_factor": 0.75, "sliding_window": 262144, "tie_word_embeddings": True,
            "rope_scaling": {"long_factor": [1 + 0.9 * i for i in range(48)], "short_factor": [1.0] * 48, "type": "longrope"},
            "vocab_size": 200064},
    FROM_CONFIG | {"bos_token_id": 199999, "eos_token_id": [200020, 199999], "pad_token_id": 199999}, "tiktoken",
    {"<|endoftext|>": 199999, "<|endofprompt|>": 200018, "<|assistant|>": 200019, "<|end|>": 200020, "<|user|>": 200021,
     "<|system|>": 200022, "<|tool|>": 200023}, 200029,
    ENDOFTEXT_GPT2 | {"add_bos_token": False, "add_eos_token": False, "chat_template": PHI3_TEMPLATE.replace("\n", ""),
                      "model_max_length": 131072, "pad_token": "<|endoftext|>"})
ALL["phi-4"] = Checkpoint(
    {key: value for key, value in PHI3.items() if key != "auto_map"} |
    {"bos_token_id": 100257, "eos_token_id": 100265, "hidden_size": 5120, "intermediate_size": 17920,
     "max_position_embeddings": 16384, "num_attention_heads": 40, "num_hidden_layers": 40, "num_key_value_heads": 10,
     "original_max_position_embeddings": 16384, "pad_token_id": 100349, "rope_theta": 250000, "sliding_window": None,
     "vocab_size": 100352},
    FROM_CONFIG | {"bos_token_id": 100257, "eos_token_id": [100257, 100265], "pad_token_id": 100349}, "tiktoken",
    {"<|dummy_0|>": 100256, "<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|im_start|>": 100264, "<|im_end|>": 100265,
     "<|im_sep|>": 100266, "<|dummy_85|>": 100349}, 100352,
    ENDOFTEXT_GPT2 | {"eos_token": "<|im_end|>", "model_max_length": 16384, "pad_token": "<|dummy_85|>",
                      "chat_template": "{% for m in messages %}{{'<|im_start|>' + m['role'] + '<|im_sep|>' + m['content'] + "
                                       "'<|im_end|>'}}{% endfor %}{% if add_generation_prompt %}"
                                       "{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}"})

# --- Qwen ---------------------------------------------------------------------------------------------------------------------
QWEN_SPECIAL = {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645, "<|vision_pad|>": 151654,
                "<tool_call>": 151657, "</tool_call>": 151658, "<|file_sep|>": 151664}
QWEN_CHAT = "{% for m in messages %}{{'<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>' + '\n'}}{% endfor %}" \
            "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
QWEN_SETTINGS = {"add_bos_token": False, "add_prefix_space": False, "added_tokens_decoder": ..., "bos_token": None,
                 "additional_special_tokens": ["<|im_start|>", "<|im_end|>", "<|vision_pad|>"], "chat_template": QWEN_CHAT,
                 "clean_up_tokenization_spaces": False, "eos_token": "<|endoftext|>", "errors": "replace",
                 "model_max_length": 131072, "pad_token": "<|endoftext|>", "split_special_tokens": False,
                 "tokenizer_class": "Qwen2Tokenizer", "unk_token": None}
QWEN2 = {"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151643,
         "hidden_act": "silu", "hidden_size": 896, "initializer_range": 0.02, "intermediate_size": 4864,
         "max_position_embeddings": 32768, "max_window_layers": 24, "model_type": "qwen2", "num_attention_heads": 14,
         "num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
         "sliding_window": 32768, "tie_word_embeddings": True, "torch_dtype": "bfloat16", "use_cache": True, "use_mrope": False,
         "use_sliding_window": False, "vocab_size": 151936}
QWEN_ENDS = {"bos_token_id": 151643, "do_sample": False, "eos_token_id": 151643, "max_new_tokens": 2048}
for name, sizes in {"qwen2.5-0.5b": {}, "qwen2.5-1.5b": {"hidden_size": 1536, "intermediate_size": 8960, "num_attention_heads": 12,
                                                         "num_hidden_layers": 28, "max_window_layers": 28},
                    "qwen2.5-3b": {"hidden_size": 2048, "intermediate_size": 11008, "num_attention_heads": 16,
                                   "num_hidden_layers": 36, "max_window_layers": 36}}.items():
    ALL[name] = Checkpoint(QWEN2 | sizes, QWEN_ENDS, "qwen", QWEN_SPECIAL, 151665, QWEN_SETTINGS)
QWEN3 = {key: value for key, value in QWEN2.items() if key != "use_mrope"} | {
    "architectures": ["Qwen3ForCausalLM"], "attention_bias": False, "eos_token_id": 151645, "head_dim": 128, "hidden_size": 1024,
    "intermediate_size": 3072, "max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3",
    "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8, "rope_scaling": None, "rope_theta": 1000000,
    "sliding_window": None}
QWEN3_ENDS = {"bos_token_id": 151643, "do_sample": True, "eos_token_id": [151645, 151643], "pad_token_id": 151643,
              "temperature": 0.6, "top_k": 20, "top_p": 0.95}
QWEN3_SPECIAL = QWEN_SPECIAL | {"<think>": 151667, "</think>": 151668}
QWEN3_SETTINGS = QWEN_SETTINGS | {"eos_token": "<|im_end|>"}
QWEN3_MOE = QWEN3 | {"architectures": ["Qwen3MoeForCausalLM"], "decoder_sparse_step": 1, "hidden_size": 2048,
                     "intermediate_size": 6144, "max_window_layers": 48, "mlp_only_layers": [], "model_type": "qwen3_moe",
                     "moe_intermediate_size": 768, "norm_topk_prob": True, "num_attention_heads": 32, "num_experts": 128,
                     "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4, "output_router_logits": False,
                     "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "tie_word_embeddings": False}
for name, config in {
        "qwen3-0.6b": QWEN3, "qwen3-1.7b": QWEN3 | {"hidden_size": 2048, "intermediate_size": 6144},
        "qwen3-4b": QWEN3 | {"hidden_size": 2560, "intermediate_size": 9728, "num_attention_heads": 32, "num_hidden_layers": 36,
                             "max_window_layers": 36},
        "qwen3-30b-a3b": QWEN3_MOE,
        "qwen3-235b-a22b": QWEN3_MOE | {"hidden_size": 4096, "intermediate_size": 12288, "max_window_layers": 94,
                                        "moe_intermediate_size": 1536, "num_attention_heads": 64, "num_hidden_layers": 94}}.items():
    ALL[name] = Checkpoint(config, QWEN3_ENDS, "qwen", QWEN3_SPECIAL, 151669, QWEN3_SETTINGS)
QWEN2_MOE = {key: value for key, value in QWEN2.items() if key != "use_mrope"} | {
    "architectures": ["Qwen2MoeForCausalLM"], "decoder_sparse_step": 1, "hidden_size": 2048, "intermediate_size": 5632,
    "max_position_embeddings": 8192, "max_window_layers": 21, "model_type": "qwen2_moe", "moe_intermediate_size": 1408,
    "norm_topk_prob": False, "num_attention_heads": 16, "num_experts": 60, "num_experts_per_tok": 4, "num_key_value_heads": 16,
    "output_router_logits": False, "router_aux_loss_coef": 0.001, "shared_expert_intermediate_size": 5632,
    "tie_word_embeddings": False}
QWEN15_SPECIAL = {name: QWEN_SPECIAL[name] for name in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")}
QWEN15_SETTINGS = QWEN_SETTINGS | {"additional_special_tokens": ["<|im_start|>", "<|im_end|>"], "model_max_length": 32768}
ALL["qwen1.5-moe-a2.7b"] = Checkpoint(QWEN2_MOE, QWEN_ENDS, "qwen", QWEN15_SPECIAL, 151646, QWEN15_SETTINGS)
ALL["qwen2-57b-a14b"] = Checkpoint(
    QWEN2_MOE | {"hidden_size": 3584, "intermediate_size": 18944, "max_position_embeddings": 32768, "max_window_layers": 28,
                 "moe_intermediate_size": 2560, "num_attention_heads": 28, "num_experts": 64, "num_experts_per_tok": 8,
                 "num_hidden_layers": 28, "num_key_value_heads": 4, "shared_expert_intermediate_size": 20480,
                 "sliding_window": 32768},
    QWEN_ENDS, "qwen", QWEN15_SPECIAL, 151646, QWEN15_SETTINGS)

# --- Gemma ----------------------------------------------------------------------------------------------------------------------
GEMMA = {"architectures": ["GemmaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 2,
         "eos_token_id": 1, "head_dim": 256, "hidden_act": "gelu", "hidden_size": 2048, "initializer_range": 0.02,
         "intermediate_size": 16384, "max_position_embeddings": 8192, "model_type": "gemma", "num_attention_heads": 8,
         "num_hidden_layers": 18, "num_key_value_heads": 1, "pad_token_id": 0, "rms_norm_eps": 1e-06, "rope_scaling": None,
         "rope_theta": 10000.0, "torch_dtype": "bfloat16", "use_cache": True, "vocab_size": 256000}
GEMMA_SPECIAL = {"<pad>": 0, "<eos>": 1, "<bos>": 2, "<unk>": 3, "<mask>": 4, "<start_of_turn>": 106, "<end_of_turn>": 107}
GEMMA_ENDS = FROM_CONFIG | {"bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0}
GEMMA_SETTINGS = {"add_bos_token": True, "add_eos_token": False, "added_tokens_decoder": ..., "bos_token": "<bos>",
                  "additional_special_tokens": ["<start_of_turn>", "<end_of_turn>"], "clean_up_tokenization_spaces": False,
                  "eos_token": "<eos>", "legacy": None, "model_max_length": NO_LIMIT, "pad_token": "<pad>", "sp_model_kwargs": {},
                  "spaces_between_special_tokens": False, "tokenizer_class": "GemmaTokenizer", "unk_token": "<unk>",
                  "use_default_system_prompt": False}
GEMMA2 = GEMMA | {"architectures": ["Gemma2ForCausalLM"], "attn_logit_softcapping": 50.0, "cache_implementation": "hybrid",
                  "final_logit_softcapping": 30.0, "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
                  "hidden_size": 2304, "intermediate_size": 9216, "model_type": "gemma2", "num_hidden_layers": 26,
                  "num_key_value_heads": 4, "query_pre_attn_scalar": 256, "sliding_window": 4096, "torch_dtype": "float32"}
for name in ("rope_scaling",):
    GEMMA2.pop(name)
for name, config in {
        "gemma-2b": GEMMA, "gemma-7b": GEMMA | {"hidden_size": 3072, "intermediate_size": 24576, "num_attention_heads": 16,
                                                "num_hidden_layers": 28, "num_key_value_heads": 16},
        "gemma-2-2b": GEMMA2, "gemma-2-9b": GEMMA2 | {"hidden_size": 3584, "intermediate_size": 14336, "num_attention_heads": 16,
                                                      "num_hidden_layers": 42, "num_key_value_heads": 8,
                                                      "sliding_window_size": 4096}}.items():
    more = {"cache_implementation": "hybrid"} if config["model_type"] == "gemma2" else {}
    ALL[name] = Checkpoint(config, GEMMA_ENDS | more, "gemma", GEMMA_SPECIAL, 256000, GEMMA_SETTINGS)
GEMMA3 = {key: value for key, value in GEMMA2.items() if key != "hidden_act"} | {
    "architectures": ["Gemma3ForCausalLM"], "attn_logit_softcapping": None, "final_logit_softcapping": None, "hidden_size": 1152,
    "intermediate_size": 6912, "max_position_embeddings": 32768, "model_type": "gemma3_text", "num_attention_heads": 4,
    "num_key_value_heads": 1, "rope_local_base_freq": 10000, "rope_scaling": None, "rope_theta": 1000000, "sliding_window": 512,
    "sliding_window_pattern": 6, "torch_dtype": "bfloat16", "vocab_size": 262144}
GEMMA3_270M = {key: value for key, value in GEMMA3.items() if key not in ("cache_implementation", "sliding_window_pattern")} | {
    "_sliding_window_pattern": 6, "hidden_size": 640, "intermediate_size": 2048, "num_hidden_layers": 18,
    "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 3, "rope_local_base_freq": 10000.0,
    "rope_theta": 1000000.0, "use_bidirectional_attention": False}
GEMMA3_SPECIAL = {"<pad>": 0, "<eos>": 1, "<bos>": 2, "<unk>": 3, "<mask>": 4, "<start_of_turn>": 105, "<end_of_turn>": 106,
                  "<image_soft_token>": 262144}
GEMMA3_SETTINGS = {key: value for key, value in GEMMA_SETTINGS.items() if key not in ("additional_special_tokens", "legacy")} | {
    "boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>",
    "extra_special_tokens": {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>"},
    "processor_class": "Gemma3Processor", "sp_model_kwargs": None}
for name, config in {"gemma-3-270m": GEMMA3_270M, "gemma-3-1b": GEMMA3}.items():
    ALL[name] = Checkpoint(
        config, {"bos_token_id": 2, "cache_implementation": "hybrid", "do_sample": True, "eos_token_id": [1, 106],
                 "pad_token_id": 0, "top_k": 64, "top_p": 0.95}, "gemma",
        GEMMA3_SPECIAL | {"<start_of_image>": 255999, "<end_of_image>": 256000}, 262145, GEMMA3_SETTINGS)

# --- Other decoders ---------------------------------------------------------------------------------------------------------------
OLMO2 = {"architectures": ["Olmo2ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "eos_token_id": 100257,
         "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 8192,
         "max_position_embeddings": 4096, "model_type": "olmo2", "num_attention_heads": 16, "num_hidden_layers": 16,
         "num_key_value_heads": 16, "pad_token_id": 100277, "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 500000,
         "tie_word_embeddings": False, "torch_dtype": "float32", "use_cache": True, "vocab_size": 100352}
for name, sizes in {"olmo-2-1b": {}, "olmo-2-7b": {"hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32,
                                                   "num_hidden_layers": 32, "num_key_value_heads": 32, "use_cache": False}}.items():
    ALL[name] = Checkpoint(
        OLMO2 | sizes, FROM_CONFIG | {"eos_token_id": 100257, "pad_token_id": 100277}, "tiktoken",
        {"<|extra_id_0|>": 100256, "<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "|||IP_ADDRESS|||": 100261,
         "<|endofprompt|>": 100276, "<|pad|>": 100277}, 100278,
        ENDOFTEXT_GPT2 | {"model_max_length": 8192, "pad_token": "<|pad|>"})

ALL["smollm3-3b"] = Checkpoint(
    {"architectures": ["SmolLM3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 128000,
     "eos_token_id": 128012, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 11008,
     "layer_types": ["full_attention"] * 36, "max_position_embeddings": 65536, "max_window_layers": 28, "mlp_bias": False,
     "model_type": "smollm3", "no_rope_layer_interval": 4, "no_rope_layers": [1, 1, 1, 0] * 9, "num_attention_heads": 16,
     "num_hidden_layers": 36, "num_key_value_heads": 4, "pad_token_id": 128004, "pretraining_tp": 2, "rms_norm_eps": 1e-06,
     "rope_scaling": None, "rope_theta": 5000000.0, "sliding_window": None, "torch_dtype": "bfloat16", "use_cache": False,
     "use_sliding_window": False, "vocab_size": 128256},
    {"_from_model_config": True, "bos_token_id": 128000, "do_sample": True, "eos_token_id": 128012, "pad_token_id": 128004,
     "temperature": 0.6, "top_p": 0.95}, "llama3",
    {"<|begin_of_text|>": 128000, "<|end_of_text|>": 128001, "<think>": 128002, "</think>": 128003, "<|finetune_right_pad_id|>": 128004,
     "<|im_start|>": 128011, "<|im_end|>": 128012}, 128256,
    {"added_tokens_decoder": ..., "bos_token": None, "clean_up_tokenization_spaces": True, "eos_token": "<|im_end|>",
     "fast": False, "model_input_names": ["input_ids", "attention_mask"], "model_max_length": 131072,
     "pad_token": "<|finetune_right_pad_id|>", "chat_template": QWEN_CHAT, "tokenizer_class": "PreTrainedTokenizerFast"})

STARCODER2 = {"activation_function": "gelu", "architectures": ["Starcoder2ForCausalLM"], "attention_dropout": 0.1,
              "attention_softmax_in_fp32": True, "bos_token_id": 0, "embedding_dropout": 0.1, "eos_token_id": 0,
              "hidden_act": "gelu_pytorch_tanh", "hidden_size": 3072, "initializer_range": 0.018042, "intermediate_size": 12288,
              "layer_norm_epsilon": 1e-05, "max_position_embeddings": 16384, "mlp_type": "default", "model_type": "starcoder2",
              "norm_epsilon": 1e-05, "norm_type": "layer_norm", "num_attention_heads": 24, "num_hidden_layers": 30,
              "num_key_value_heads": 2, "residual_dropout": 0.1, "rope_theta": 999999.4420358813,
              "scale_attention_softmax_in_fp32": True, "scale_attn_weights": True, "sliding_window": 4096,
              "torch_dtype": "bfloat16", "use_bias": True, "use_cache": True, "vocab_size": 49152}
CODE_SPECIAL = {token: i for i, token in enumerate([
    "<|endoftext|>", "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>", "<filename>", "<gh_stars>", "<issue_start>",
    "<issue_comment>", "<issue_closed>", "<jupyter_start>", "<jupyter_text>", "<jupyter_code>", "<jupyter_output>",
    "<empty_output>", "<commit_before>", "<commit_msg>", "<commit_after>", "<reponame>"])}
CODE_SETTINGS = {"add_prefix_space": False, "additional_special_tokens": list(CODE_SPECIAL), "bos_token": "<|endoftext|>",
                 "clean_up_tokenization_spaces": False, "eos_token": "<|endoftext|>", "model_max_length": NO_LIMIT,
                 "tokenizer_class": "GPT2Tokenizer", "unk_token": "<|endoftext|>", "vocab_size": 49152}
CODE_ENDS = FROM_CONFIG | {"bos_token_id": 0, "eos_token_id": 0}
for name, sizes in {"starcoder2-3b": {}, "starcoder2-7b": {"hidden_size": 4608, "intermediate_size": 18432, "num_attention_heads": 36,
                                                           "num_hidden_layers": 32, "num_key_value_heads": 4,
                                                           "rope_theta": 1000000}}.items():
    ALL[name] = Checkpoint(STARCODER2 | sizes, CODE_ENDS, "code", CODE_SPECIAL, 49152,
                           CODE_SETTINGS | {"added_tokens_decoder": ...})
BIGCODE = {"activation_function": "gelu", "architectures": ["GPTBigCodeForCausalLM"], "attention_softmax_in_fp32": True,
           "attn_pdrop": 0.1, "bos_token_id": 0, "embd_pdrop": 0.1, "eos_token_id": 0, "inference_runner": 0,
           "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "max_batch_size": None, "max_sequence_length": None,
           "model_type": "gpt_bigcode", "multi_query": True, "n_embd": 6144, "n_head": 48, "n_inner": 24576, "n_layer": 40,
           "n_positions": 8192, "pad_key_length": True, "pre_allocate_kv_cache": False, "resid_pdrop": 0.1,
           "scale_attention_softmax_in_fp32": True, "scale_attn_weights": True, **SUMMARY, "torch_dtype": "float32",
           "use_cache": True, "validate_runner_input": True, "vocab_size": 49152}
ALL["starcoder"] = Checkpoint(BIGCODE, CODE_ENDS, "code", CODE_SPECIAL, 49152, CODE_SETTINGS)
ALL["starcoderbase-1b"] = Checkpoint(
    BIGCODE | {"activation_function": "gelu_pytorch_tanh", "n_embd": 2048, "n_head": 16, "n_inner": 8192, "n_layer": 24},
    CODE_ENDS, "code", CODE_SPECIAL, 49152, CODE_SETTINGS)
ALL["gpt_bigcode-santacoder"] = Checkpoint(
    {key: value for key, value in BIGCODE.items() if key not in ("pad_key_length", "pre_allocate_kv_cache", "validate_runner_input")} |
    {"activation_function": "gelu_fast", "bos_token_id": 49152, "eos_token_id": 49152, "n_embd": 2048, "n_head": 16, "n_inner": 8192,
     "n_layer": 24, "n_positions": 2048, "vocab_size": 49280},
    FROM_CONFIG | {"bos_token_id": 49152, "eos_token_id": 49152}, "code_last",
    {"<|endoftext|>": 49152, "<fim-prefix>": 49153, "<fim-middle>": 49154, "<fim-suffix>": 49155, "<fim-pad>": 49156}, 49157,
    {"errors": "replace", "tokenizer_class": "GPT2TokenizerFast", "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>",
     "add_prefix_space": False, "model_max_length": 2048})

NEOX = {"architectures": ["GPTNeoXForCausalLM"], "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "gelu", "hidden_size": 512,
        "initializer_range": 0.02, "intermediate_size": 2048, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048,
        "model_type": "gpt_neox", "num_attention_heads": 8, "num_hidden_layers": 6, "rotary_emb_base": 10000, "rotary_pct": 0.25,
        "tie_word_embeddings": False, "torch_dtype": "float16", "use_cache": True, "use_parallel_residual": True,
        "vocab_size": 50304}
NEOX_SPECIAL = {"<|endoftext|>": 0, "<|padding|>": 1, **{" " * count: 50254 + 24 - count for count in range(24, 1, -1)}}
NEOX_SETTINGS = {"add_prefix_space": False, "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>",
                 "name_or_path": "EleutherAI/gpt-neox-20b", "tokenizer_class": "GPTNeoXTokenizer", "unk_token": "<|endoftext|>"}
for name, sizes in {
        "pythia-70m": {}, "pythia-160m": {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 12},
        "pythia-410m": {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24},
        "pythia-1b": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16},
        "gpt-neox-20b": {"attention_probs_dropout_prob": 0, "hidden_act": "gelu_fast", "hidden_dropout_prob": 0, "hidden_size": 6144,
                         "intermediate_size": 24576, "num_attention_heads": 64, "num_hidden_layers": 44, "vocab_size": 50432}}.items():
    ALL[name] = Checkpoint(NEOX | sizes, FROM_CONFIG | {"bos_token_id": 0, "eos_token_id": 0} if name == "gpt-neox-20b" else None,
                           "neox", NEOX_SPECIAL, 50277, NEOX_SETTINGS, names="neox")
ALL["mpt-7b"] = Checkpoint(
    {"architectures": ["MPTForCausalLM"],
     "attn_config": {"alibi": True, "alibi_bias_max": 8, "attn_impl": "torch", "attn_pdrop": 0, "attn_type": "multihead_attention",
                     "attn_uses_sequence_id": False, "clip_qkv": None, "prefix_lm": False, "qk_ln": False, "softmax_scale": None},
     "auto_map": {"AutoConfig": "configuration_mpt.MPTConfig", "AutoModelForCausalLM": "modeling_mpt.MPTForCausalLM"},
     "d_model": 4096, "emb_pdrop": 0, "embedding_fraction": 1.0, "expansion_ratio": 4,
     "init_config": {"emb_init_std": None, "emb_init_uniform_lim": None, "fan_mode": "fan_in", "init_div_is_residual": True,
                     "init_gain": 0, "init_nonlinearity": "relu", "init_std": 0.02, "name": "kaiming_normal_", "verbose": 0},
     "init_device": "cpu", "learned_pos_emb": True, "logit_scale": None, "max_seq_len": 2048, "model_type": "mpt", "n_heads": 32,
     "n_layers": 32, "no_bias": True, "norm_type": "low_precision_layernorm", "resid_pdrop": 0,
     "tokenizer_name": "EleutherAI/gpt-neox-20b", "torch_dtype": "bfloat16", "use_cache": False, "verbose": 0, "vocab_size": 50432},
    FROM_CONFIG | {"eos_token_id": 0, "use_cache": False}, "neox", NEOX_SPECIAL, 50277,
    {"add_prefix_space": False, "bos_token": "<|endoftext|>", "clean_up_tokenization_spaces": True, "eos_token": "<|endoftext|>",
     "model_max_length": 2048, "tokenizer_class": "GPTNeoXTokenizer", "unk_token": "<|endoftext|>"})
STABLELM = {"architectures": ["StableLmForCausalLM"], "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "silu", "hidden_size": 2560,
            "initializer_range": 0.02, "intermediate_size": 6912, "layer_norm_eps": 1e-05, "max_position_embeddings": 4096,
            "model_type": "stablelm", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
            "partial_rotary_factor": 0.25, "rope_theta": 10000, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
            "use_cache": True, "use_qkv_bias": False, "vocab_size": 50304}
ALL["stablelm-3b-4e1t"] = Checkpoint(STABLELM, FROM_CONFIG | {"bos_token_id": 0, "eos_token_id": 0}, "neox", NEOX_SPECIAL, 50277,
                                     NEOX_SETTINGS | {"model_max_length": NO_LIMIT, "clean_up_tokenization_spaces": True})
ALL["stablelm-2-1_6b"] = Checkpoint(
    STABLELM | {"attention_dropout": 0.0, "bos_token_id": 100257, "eos_token_id": 100257, "hidden_dropout": 0.0, "hidden_size": 2048,
                "intermediate_size": 5632, "num_hidden_layers": 24, "torch_dtype": "float16", "use_qkv_bias": True,
                "vocab_size": 100352},
    FROM_CONFIG | {"bos_token_id": 100257, "eos_token_id": 100257}, "tiktoken",
    {"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|endofprompt|>": 100276, "<|im_start|>": 100278, "<|im_end|>": 100279}, 100289,
    ENDOFTEXT_GPT2 | {"model_max_length": 2048, "pad_token": "<|endoftext|>"})
ALL["granite-3.0-2b"] = Checkpoint(
    {"architectures": ["GraniteForCausalLM"], "attention_bias": False, "attention_dropout": 0.1, "attention_multiplier": 0.015625,
     "bos_token_id": 0, "embedding_multiplier": 12.0, "eos_token_id": 0, "hidden_act": "silu", "hidden_size": 2048,
     "initializer_range": 0.02, "intermediate_size": 8192, "logits_scaling": 8.0, "max_position_embeddings": 4096, "mlp_bias": False,
     "model_type": "granite", "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 8, "pad_token_id": 0,
     "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 10000.0, "tie_word_embeddings": True,
     "torch_dtype": "float32", "use_cache": True, "vocab_size": 49155},
    FROM_CONFIG | {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}, "code",
    CODE_SPECIAL | {"<|start_of_role|>": 49152, "<|end_of_role|>": 49153, "<|tool_call|>": 49154}, 49155,
    CODE_SETTINGS | {"added_tokens_decoder": ..., "errors": "replace", "model_max_length": 9223372036854775807,
                     "pad_token": "<|endoftext|>", "padding_side": "left"})

BLOOM = {"apply_residual_connection_post_layernorm": False, "architectures": ["BloomForCausalLM"], "attention_dropout": 0.0,
         "attention_softmax_in_fp32": True, "bias_dropout_fusion": True, "bos_token_id": 1, "eos_token_id": 2, "hidden_dropout": 0.0,
         "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "masked_softmax_fusion": True, "model_type": "bloom", "n_embed": 1024,
         "n_inner": None, "n_layer": 24, "num_attention_heads": 16, "offset_alibi": 100, "pad_token_id": 3, "pretraining_tp": 1,
         "seq_length": 2048, "skip_bias_add": True, "skip_bias_add_qkv": False, "slow_but_exact": False, "unk_token_id": 0,
         "use_cache": True, "vocab_size": 250880}
BLOOM_SPECIAL = {"<unk>": 0, "<s>": 1, "</s>": 2, "<pad>": 3}
BLOOM_ROLES = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
for name, sizes in {"bloom-560m": {}, "bloom-1b7": {"n_embed": 2048}, "bloom-7b1": {"n_embed": 4096, "n_layer": 30,
                                                                                    "num_attention_heads": 32}}.items():
    ALL[name] = Checkpoint(
        BLOOM | sizes, None if name == "bloom-560m" else FROM_CONFIG | {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3},
        "bloom", BLOOM_SPECIAL, 250680, {**BLOOM_ROLES, "name_or_path": "bigscience/tokenizer", "special_tokens_map_file": None,
                                         "tokenizer_class": "BloomTokenizerFast", "padding_side": "left"},
        roles=BLOOM_ROLES, names="bloom")
FALCON = {"alibi": False, "apply_residual_connection_post_layernorm": False, "architectures": ["FalconForCausalLM"],
          "attention_dropout": 0.0, "auto_map": {"AutoModel": "modeling_falcon.FalconModel"}, "bias": False, "bos_token_id": 11,
          "eos_token_id": 11, "hidden_dropout": 0.0, "hidden_size": 4544, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
          "model_type": "falcon", "multi_query": True, "new_decoder_architecture": False, "num_attention_heads": 71,
          "num_hidden_layers": 32, "parallel_attn": True, "torch_dtype": "bfloat16", "use_cache": True, "vocab_size": 65024}
FALCON_SPECIAL = {token: i for i, token in enumerate([
    ">>TITLE<<", ">>ABSTRACT<<", ">>INTRODUCTION<<", ">>SUMMARY<<", ">>COMMENT<<", ">>ANSWER<<", ">>QUESTION<<", ">>DOMAIN<<",
    ">>PREFIX<<", ">>SUFFIX<<", ">>MIDDLE<<", "<|endoftext|>"])}
for name, sizes in {"falcon-7b": {}, "falcon-40b": {"hidden_size": 8192, "new_decoder_architecture": True, "num_attention_heads": 128,
                                                    "num_hidden_layers": 60, "num_kv_heads": 8}}.items():
    ALL[name] = Checkpoint(
        FALCON | sizes, FROM_CONFIG | {"bos_token_id": 11, "eos_token_id": 11}, "falcon", FALCON_SPECIAL, 65024,
        {"add_prefix_space": False, "eos_token": "<|endoftext|>", "model_input_names": ["input_ids", "attention_mask"],
         "model_max_length": 2048, "name_or_path": "tiiuae/falcon_tokenizer", "special_tokens_map_file": None,
         "tokenizer_class": "PreTrainedTokenizerFast"},
        roles={"additional_special_tokens": list(FALCON_SPECIAL)[:-1], "eos_token": "<|endoftext|>"})

# --- BERT and its relatives -------------------------------------------------------------------------------------------------------
BERT = {"architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1, "gradient_checkpointing": False, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1, "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-12,
        "max_position_embeddings": 512, "model_type": "bert", "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0,
        "position_embedding_type": "absolute", "type_vocab_size": 2, "use_cache": True, "vocab_size": 30522}
POOLER = {"directionality": "bidi", "pooler_fc_size": 768, "pooler_num_attention_heads": 12, "pooler_num_fc_layers": 3,
          "pooler_size_per_head": 128, "pooler_type": "first_token_transform"}
BERT_SPECIAL = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "[MASK]": 103}
LARGE = {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 24}
for name, sizes in {"bert-base-uncased": {}, "bert-large-uncased": LARGE, "bert-base-cased": {"vocab_size": 28996},
                    "bert-large-cased": LARGE | POOLER | {"vocab_size": 28996},
                    "bert-tiny": {"hidden_size": 128, "intermediate_size": 512, "num_attention_heads": 2, "num_hidden_layers": 2},
                    "bert-mini": {"hidden_size": 256, "intermediate_size": 1024, "num_attention_heads": 4,
                                  "num_hidden_layers": 4}}.items():
    case = "cased" if name.endswith("-cased") else "uncased"
    small = {"architectures": ["BertModel"]} if name in ("bert-tiny", "bert-mini") else {}
    ALL[name] = Checkpoint(
        BERT | sizes | small, None, "bert_" + case, BERT_SPECIAL, 28996 if case == "cased" else 30522,
        {"do_lower_case": case == "uncased", "model_max_length": 512, "tokenizer_class": "BertTokenizer"}, names="gamma")
DISTIL = {"activation": "gelu", "architectures": ["DistilBertForMaskedLM"], "attention_dropout": 0.1, "dim": 768, "dropout": 0.1,
          "hidden_dim": 3072, "initializer_range": 0.02, "max_position_embeddings": 512, "model_type": "distilbert", "n_heads": 12,
          "n_layers": 6, "pad_token_id": 0, "qa_dropout": 0.1, "seq_classif_dropout": 0.2, "sinusoidal_pos_embds": False,
          "tie_weights_": True, "vocab_size": 30522}
ALL["distilbert-base-uncased"] = Checkpoint(DISTIL, None, "bert_uncased", BERT_SPECIAL, 30522,
                                            {"do_lower_case": True, "model_max_length": 512})
ALL["distilbert-base-cased"] = Checkpoint(DISTIL | {"output_past": True, "vocab_size": 28996}, None, "bert_cased", BERT_SPECIAL, 28996,
                                          {"do_lower_case": False, "model_max_length": 512})
ROBERTA = {key: value for key, value in BERT.items() if key not in ("gradient_checkpointing", "position_embedding_type", "use_cache")} | {
    "architectures": ["RobertaForMaskedLM"], "bos_token_id": 0, "eos_token_id": 2, "layer_norm_eps": 1e-05,
    "max_position_embeddings": 514, "model_type": "roberta", "pad_token_id": 1, "type_vocab_size": 1, "vocab_size": 50265}
ROBERTA_SPECIAL = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 50264}
XLMR = ROBERTA | {"architectures": ["XLMRobertaForMaskedLM"], "model_type": "xlm-roberta", "output_past": True,
                  "position_embedding_type": "absolute", "use_cache": True, "vocab_size": 250002}
for size, sizes in {"base": {}, "large": LARGE}.items():
    ALL["roberta-" + size] = Checkpoint(ROBERTA | sizes, None, "roberta", ROBERTA_SPECIAL, 50265, {"model_max_length": 512}, names="roberta")
    ALL["xlm-roberta-" + size] = Checkpoint(XLMR | sizes, None, "xlmr", ROBERTA_SPECIAL | {"<mask>": 250001}, 250002,
                                            {"model_max_length": 512}, names="xlmr")
ALBERT = {"architectures": ["AlbertForMaskedLM"], "attention_probs_dropout_prob": 0, "bos_token_id": 2, "classifier_dropout_prob": 0.1,
          "down_scale_factor": 1, "embedding_size": 128, "eos_token_id": 3, "gap_size": 0, "hidden_act": "gelu_new",
          "hidden_dropout_prob": 0, "hidden_size": 768, "initializer_range": 0.02, "inner_group_num": 1, "intermediate_size": 3072,
          "layer_norm_eps": 1e-12, "max_position_embeddings": 512, "model_type": "albert", "net_structure_type": 0,
          "num_attention_heads": 12, "num_hidden_groups": 1, "num_hidden_layers": 12, "num_memory_blocks": 0, "pad_token_id": 0,
          "type_vocab_size": 2, "vocab_size": 30000}
for name, sizes in {"albert-base-v2": {}, "albert-large-v2": LARGE,
                    "albert-xlarge-v2": {"hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 16, "num_hidden_layers": 24},
                    "albert-xxlarge-v2": {"hidden_size": 4096, "intermediate_size": 16384, "num_attention_heads": 64,
                                          "layers_to_keep": []}}.items():
    ALL[name] = Checkpoint(ALBERT | sizes, None, "albert", {"<pad>": 0, "<unk>": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}, 30000,
                           {"model_max_length": 512})
ELECTRA = BERT | {"architectures": ["ElectraForPreTraining"], "embedding_size": 768, "model_type": "electra", "summary_activation": "gelu",
                  "summary_last_dropout": 0.1, "summary_type": "first", "summary_use_proj": True}
for key in ("gradient_checkpointing", "use_cache"):
    ELECTRA.pop(key)
ELECTRA_SMALL = {"embedding_size": 128, "hidden_size": 256, "intermediate_size": 1024, "num_attention_heads": 4}
for name, sizes in {"small-discriminator": ELECTRA_SMALL, "base-discriminator": {}, "large-discriminator": LARGE | {"embedding_size": 1024},
                    "small-generator": ELECTRA_SMALL,
                    "base-generator": ELECTRA_SMALL | {"embedding_size": 768},
                    "large-generator": ELECTRA_SMALL | {"embedding_size": 1024, "num_hidden_layers": 24}}.items():
    head = {"architectures": ["ElectraForMaskedLM"]} if name.endswith("generator") else {}
    ALL["electra-" + name] = Checkpoint(ELECTRA | sizes | head, None, "bert_uncased", BERT_SPECIAL, 30522,
                                        {"do_lower_case": True, "model_max_length": 512})
MPNET = {key: value for key, value in ROBERTA.items() if key != "type_vocab_size"} | {
    "architectures": ["MPNetForMaskedLM"], "model_type": "mpnet", "relative_attention_num_buckets": 32, "vocab_size": 30527}
MPNET_SPECIAL = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "[UNK]": 104, "<mask>": 30526}
MPNET_SETTINGS = {"do_lower_case": True, "bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "cls_token": "<s>",
                  "unk_token": "[UNK]", "pad_token": "<pad>", "mask_token": "<mask>", "tokenize_chinese_chars": True,
                  "strip_accents": None, "model_max_length": 512, "tokenizer_class": "MPNetTokenizer"}
ALL["mpnet-base"] = Checkpoint(MPNET, None, "mpnet", MPNET_SPECIAL, 30527, {"do_lower_case": True, "model_max_length": 512})
ALL["all-mpnet-base-v2"] = Checkpoint(MPNET | {"architectures": ["MPNetForMaskedLM"], "gradient_checkpointing": False}, None, "mpnet",
                                      MPNET_SPECIAL, 30527, MPNET_SETTINGS)
DEBERTA = {"attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 768,
           "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-07, "max_position_embeddings": 512,
           "max_relative_positions": -1, "model_type": "deberta-v2", "norm_rel_ebd": "layer_norm", "num_attention_heads": 12,
           "num_hidden_layers": 12, "pos_att_type": "p2c|c2p", "position_biased_input": False, "position_buckets": 256,
           "relative_attention": True, "share_att_key": True, "type_vocab_size": 0, "vocab_size": 128100}
for size, sizes in {"xsmall": {"hidden_size": 384, "intermediate_size": 1536, "num_attention_heads": 6}, "small": {"num_hidden_layers": 6},
                    "base": {}, "large": LARGE}.items():
    ALL["deberta-v3-" + size] = Checkpoint(
        DEBERTA | sizes, None, "deberta", {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3, "[MASK]": 128000}, 128001,
        {"do_lower_case": False, "vocab_type": "spm"}, names="deberta")
MODERN = {"architectures": ["ModernBertForMaskedLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 50281,
          "classifier_activation": "gelu", "classifier_bias": False, "classifier_dropout": 0.0, "classifier_pooling": "mean",
          "cls_token_id": 50281, "decoder_bias": True, "deterministic_flash_attn": False, "embedding_dropout": 0.0, "eos_token_id": 50282,
          "global_attn_every_n_layers": 3, "global_rope_theta": 160000.0, "gradient_checkpointing": False, "hidden_activation": "gelu",
          "hidden_size": 768, "initializer_cutoff_factor": 2.0, "initializer_range": 0.02, "intermediate_size": 1152,
          "layer_norm_eps": 1e-05, "local_attention": 128, "local_rope_theta": 10000.0, "max_position_embeddings": 8192, "mlp_bias": False,
          "mlp_dropout": 0.0, "model_type": "modernbert", "norm_bias": False, "norm_eps": 1e-05, "num_attention_heads": 12,
          "num_hidden_layers": 22, "pad_token_id": 50283, "position_embedding_type": "absolute", "sep_token_id": 50282,
          "tie_word_embeddings": True, "torch_dtype": "float32", "vocab_size": 50368}
for size, sizes in {"base": {}, "large": {"hidden_size": 1024, "intermediate_size": 2624, "num_attention_heads": 16,
                                          "num_hidden_layers": 28}}.items():
    ALL["ModernBERT-" + size] = Checkpoint(
        MODERN | sizes, None, "modernbert",
        {"|||IP_ADDRESS|||": 0, "<|padding|>": 1, **{" " * count: 50278 - count for count in range(24, 1, -1)}, "<|endoftext|>": 50279,
         "[UNK]": 50280, "[CLS]": 50281, "[SEP]": 50282, "[PAD]": 50283, "[MASK]": 50284, **numbered("[unused{}]", 50285, 83)}, 50368,
        {"added_tokens_decoder": ..., "clean_up_tokenization_spaces": True, "cls_token": "[CLS]", "extra_special_tokens": {},
         "mask_token": "[MASK]", "model_input_names": ["input_ids", "attention_mask"], "model_max_length": 8192, "pad_token": "[PAD]",
         "sep_token": "[SEP]", "tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"})
ALL["nomic-embed-text-v1.5"] = Checkpoint(
    {"hidden_act": "silu", "hidden_size": 768, "intermediate_size": 3072, "layer_norm_eps": 1e-12, "max_position_embeddings": 2048,
     "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 0, "rope_parameters": {"rope_theta": 1000.0, "rope_type": "default"},
     "activation_function": "swiglu", "architectures": ["NomicBertModel"], "attn_pdrop": 0.0,
     "auto_map": {"AutoModel": "nomic-ai/nomic-bert-2048--modeling_hf_nomic_bert.NomicBertModel"}, "bos_token_id": None, "causal": False,
     "dense_seq_output": True, "embd_pdrop": 0.0, "eos_token_id": None, "fused_bias_fc": True, "fused_dropout_add_ln": True,
     "initializer_range": 0.02, "layer_norm_epsilon": 1e-12, "max_trained_positions": 2048, "mlp_fc1_bias": False, "mlp_fc2_bias": False,
     "model_type": "nomic_bert", "n_embd": 768, "n_head": 12, "n_inner": 3072, "n_layer": 12, "n_positions": 8192,
     "pad_vocab_size_multiple": 64, "parallel_block": False, "parallel_block_tied_norm": False, "prenorm": False, "qkv_proj_bias": False,
     "reorder_and_upcast_attn": False, "resid_pdrop": 0.0, "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0,
     "rotary_emb_interleaved": False, "rotary_emb_scale_base": None, "rotary_scaling_factor": None, "scale_attn_by_inverse_layer_idx": False,
     "scale_attn_weights": True, **SUMMARY, "torch_dtype": "float32", "type_vocab_size": 2, "use_cache": True, "use_flash_attn": True,
     "use_rms_norm": False, "use_xentropy": True, "vocab_size": 30528},
    None, "bert_uncased", BERT_SPECIAL, 30522,
    {"added_tokens_decoder": ..., "clean_up_tokenization_spaces": True, "cls_token": "[CLS]", "do_lower_case": True, "mask_token": "[MASK]",
     "model_max_length": 8192, "pad_token": "[PAD]", "sep_token": "[SEP]", "strip_accents": None, "tokenize_chinese_chars": True,
     "tokenizer_class": "BertTokenizer", "unk_token": "[UNK]"})

# --- T5 -----------------------------------------------------------------------------------------------------------------------------
T5 = {"architectures": ["T5ForConditionalGeneration"], "d_ff": 2048, "d_kv": 64, "d_model": 512, "decoder_start_token_id": 0,
      "dropout_rate": 0.1, "eos_token_id": 1, "initializer_factor": 1.0, "is_encoder_decoder": True, "layer_norm_epsilon": 1e-06,
      "model_type": "t5", "n_positions": 512, "num_heads": 8, "num_layers": 6, "output_past": True, "pad_token_id": 0,
      "relative_attention_num_buckets": 32, "vocab_size": 32128,
      "task_specific_params": {"summarization": {"early_stopping": True, "length_penalty": 2.0, "max_length": 200, "min_length": 30,
                                                 "no_repeat_ngram_size": 3, "num_beams": 4, "prefix": "summarize: "},
                               "translation_en_to_de": {"early_stopping": True, "max_length": 300, "num_beams": 4,
                                                        "prefix": "translate English to German: "}}}
T5_SPECIAL = {"<pad>": 0, "</s>": 1, "<unk>": 2, **{f"<extra_id_{99 - i}>": 32000 + i for i in range(100)}}
T5_ENDS = FROM_CONFIG | {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
T5_ROLES = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
SENTINELS = [f"<extra_id_{i}>" for i in range(100)]
T5_BASE, T5_LARGE = ({"d_ff": 3072, "d_model": 768, "num_heads": 12, "num_layers": 12},
                     {"d_ff": 4096, "d_model": 1024, "num_heads": 16, "num_layers": 24})
for size, sizes in {"small": {}, "base": T5_BASE, "large": T5_LARGE}.items():
    ALL["t5-" + size] = Checkpoint(T5 | sizes, T5_ENDS, "t5", T5_SPECIAL, 32100, {"model_max_length": 512}, names="t5")
T5_V11 = {key: value for key, value in T5.items() if key not in ("n_positions", "task_specific_params")} | {
    "d_ff": 1024, "feed_forward_proj": "gated-gelu", "num_decoder_layers": 8, "num_heads": 6, "num_layers": 8, "tie_word_embeddings": False}
V11_BASE, V11_LARGE = ({"d_ff": 2048, "d_model": 768, "num_decoder_layers": 12, "num_heads": 12, "num_layers": 12},
                       {"d_ff": 2816, "d_model": 1024, "num_decoder_layers": 24, "num_heads": 16, "num_layers": 24})
MT5 = {key: value for key, value in T5_V11.items() if key != "output_past"} | {
    "architectures": ["MT5ForConditionalGeneration"], "model_type": "mt5", "tokenizer_class": "T5Tokenizer", "vocab_size": 250112}
UMT5 = T5_V11 | {"architectures": ["UMT5ForConditionalGeneration"], "dense_act_fn": "gelu_new", "is_gated_act": True, "model_type": "umt5",
                 "relative_attention_max_distance": 128, "scalable_attention": True, "tokenizer_class": "T5Tokenizer", "use_cache": True,
                 "vocab_size": 256384}
for size, sizes in {"small": {}, "base": V11_BASE, "large": V11_LARGE}.items():
    ALL["t5-v1_1-" + size] = Checkpoint(
        T5_V11 | sizes, T5_ENDS, "t5_pieces", T5_SPECIAL, 32100,
        {**T5_ROLES, "extra_ids": 100, "additional_special_tokens": SENTINELS}, roles=T5_ROLES | {"additional_special_tokens": SENTINELS})
    ALL["mt5-" + size] = Checkpoint(
        MT5 | sizes, T5_ENDS, "t5_pieces", {"<pad>": 0, "</s>": 1, "<unk>": 2}, 250100,
        {**T5_ROLES, "extra_ids": 0, "additional_special_tokens": None, "special_tokens_map_file": None, "sp_model_kwargs": {},
         "tokenizer_class": "T5Tokenizer"}, roles=T5_ROLES)
for size, sizes in {"small": {}, "base": V11_BASE,
                    "xxl": {"d_ff": 10240, "d_model": 4096, "num_decoder_layers": 24, "num_heads": 64, "num_layers": 24}}.items():
    ALL["umt5-" + size] = Checkpoint(
        UMT5 | sizes, T5_ENDS, "umt5", {"<pad>": 0, "</s>": 1, "<s>": 2, "<unk>": 3, **{f"<extra_id_{i}>": 256299 - i for i in range(299, -1, -1)}}, 256300,
        {**T5_ROLES, "added_tokens_decoder": ..., "bos_token": "<s>", "clean_up_tokenization_spaces": True, "extra_ids": 300,
         "additional_special_tokens": [f"<extra_id_{i}>" for i in range(300)],
         "model_max_length": NO_LIMIT, "sp_model_kwargs": {}, "spaces_between_special_tokens": False, "tokenizer_class": "T5Tokenizer"})

# --- BART, mBART, PEGASUS, Marian, M2M-100 ----------------------------------------------------------------------------------------------
LABELS = {"id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}, "label2id": {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2}}


def stacks(layers, heads, inner, layerdrop=0.0):
    return {f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in
            (("attention_heads", heads), ("ffn_dim", inner), ("layerdrop", layerdrop), ("layers", layers))} | {"num_hidden_layers": layers}


BART = {"activation_dropout": 0.1, "activation_function": "gelu", "add_bias_logits": False, "add_final_layer_norm": False,
        "architectures": ["BartModel"], "attention_dropout": 0.1, "bos_token_id": 0, "classif_dropout": 0.1, "classifier_dropout": 0.0,
        "d_model": 768, **stacks(6, 12, 3072), "decoder_start_token_id": 2, "dropout": 0.1, "early_stopping": True, "eos_token_id": 2,
        "forced_bos_token_id": 0, "forced_eos_token_id": 2, "gradient_checkpointing": False, **LABELS, "init_std": 0.02,
        "is_encoder_decoder": True, "max_position_embeddings": 1024, "model_type": "bart", "no_repeat_ngram_size": 3,
        "normalize_before": False, "normalize_embedding": True, "num_beams": 4, "pad_token_id": 1, "scale_embedding": False,
        "task_specific_params": {"summarization": {"length_penalty": 1.0, "max_length": 128, "min_length": 12, "num_beams": 4}},
        "torch_dtype": "float32", "use_cache": True, "vocab_size": 50265}
BART_ENDS = {"bos_token_id": 0, "decoder_start_token_id": 2, "early_stopping": True, "eos_token_id": 2, "forced_bos_token_id": 0,
             "forced_eos_token_id": 2, "no_repeat_ngram_size": 3, "num_beams": 4, "pad_token_id": 1}
BART_LARGE = {"d_model": 1024, **stacks(12, 16, 4096)}
ALL["bart-base"] = Checkpoint(BART, FROM_CONFIG | BART_ENDS, "roberta", ROBERTA_SPECIAL, 50265, {"model_max_length": 1024}, names="bart")
ALL["bart-large"] = Checkpoint(BART | BART_LARGE, FROM_CONFIG | BART_ENDS, "roberta", ROBERTA_SPECIAL, 50265, {"model_max_length": 1024},
                               names="bart")
CNN = {"length_penalty": 2.0, "max_length": 142, "min_length": 56}
ALL["distilbart-cnn-12-6"] = Checkpoint(
    {key: value for key, value in BART.items() if key not in ("gradient_checkpointing", "task_specific_params", "torch_dtype")} | BART_LARGE |
    CNN | {"_num_labels": 3, "activation_dropout": 0.0, "architectures": ["BartForConditionalGeneration"], "attention_dropout": 0.0,
           "classif_dropout": 0.0, "decoder_layers": 6, "extra_pos_embeddings": 2, "force_bos_token_to_be_generated": True, "output_past": True,
           "prefix": " ", "replacing_rate": 0, "static_position_embeddings": False, "student_decoder_layers": None,
           "student_encoder_layers": None, "vocab_size": 50264},
    FROM_CONFIG | BART_ENDS | CNN, "roberta", ROBERTA_SPECIAL, 50265, {"model_max_length": 1024})
MBART = {key: value for key, value in BART.items() if key not in
         ("decoder_start_token_id", "early_stopping", "forced_bos_token_id", "gradient_checkpointing", "no_repeat_ngram_size", "torch_dtype")} | \
    BART_LARGE | {
    "_num_labels": 3, "activation_dropout": 0.0, "add_final_layer_norm": True, "architectures": ["MBartForConditionalGeneration"],
    "attention_dropout": 0.0, "classif_dropout": 0.0, "max_length": 1024, "model_type": "mbart", "normalize_before": True, "num_beams": 5,
    "output_past": True, "scale_embedding": True, "static_position_embeddings": False,
    "task_specific_params": {"translation_en_to_ro": {"decoder_start_token_id": 250020}}, "vocab_size": 250027}
CC25 = ("ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX ro_RO ru_RU "
        "si_LK tr_TR vi_VN zh_CN").split()
CC50 = CC25 + ("af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF pt_XX sv_SE sw_KE ta_IN te_IN "
               "th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI").split()
FAIRSEQ = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
ALL["mbart-large-cc25"] = Checkpoint(
    MBART, FROM_CONFIG | {"bos_token_id": 0, "eos_token_id": 2, "forced_eos_token_id": 2, "max_length": 1024, "num_beams": 5, "pad_token_id": 1},
    "mbart", FAIRSEQ | {code: 250001 + i for i, code in enumerate(CC25)} | {"<mask>": 250026}, 250027, {"model_max_length": 1024})
ALL["mbart-large-50"] = Checkpoint(
    MBART | {"decoder_start_token_id": 2, "early_stopping": True, "gradient_checkpointing": False, "max_length": 200,
             "tokenizer_class": "MBart50Tokenizer", "vocab_size": 250054},
    FROM_CONFIG | {"bos_token_id": 0, "decoder_start_token_id": 2, "early_stopping": True, "eos_token_id": 2, "forced_eos_token_id": 2,
                   "max_length": 200, "num_beams": 5, "pad_token_id": 1},
    "mbart50", FAIRSEQ | {code: 250001 + i for i, code in enumerate(CC50)} | {"<mask>": 250053}, 250054,
    {"src_lang": "en_XX", "tgt_lang": None, "eos_token": "</s>", "unk_token": "<unk>", "sep_token": "</s>", "cls_token": "<s>",
     "pad_token": "<pad>", "mask_token": token("<mask>", lstrip=True, normalized=True), "additional_special_tokens": CC50,
     "language_codes": "ML50", "sp_model_kwargs": {}, "tokenizer_class": "MBart50Tokenizer"})
PEGASUS = MBART | {"activation_dropout": 0.1, "activation_function": "relu", "architectures": ["PegasusForConditionalGeneration"],
                   "attention_dropout": 0.1, **stacks(16, 16, 4096), "decoder_start_token_id": 0, "eos_token_id": 1, "extra_pos_embeddings": 1,
                   "force_bos_token_to_be_generated": False, "forced_eos_token_id": 1, "gradient_checkpointing": False, "length_penalty": 0.8,
                   "max_length": 256, "model_type": "pegasus", "normalize_embedding": False, "num_beams": 8, "pad_token_id": 0,
                   "static_position_embeddings": True, "vocab_size": 96103,
                   "task_specific_params": {"summarization_aeslc": {"length_penalty": 0.6, "max_length": 32, "max_position_embeddings": 512}}}
for key in ("_num_labels", "output_past"):
    PEGASUS.pop(key)
PEGASUS_ENDS = FROM_CONFIG | {"bos_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1, "forced_eos_token_id": 1, "length_penalty": 0.8,
                              "max_length": 256, "num_beams": 8, "pad_token_id": 0}
PEGASUS_SPECIAL = {"<pad>": 0, "</s>": 1, "<mask_1>": 2, "<mask_2>": 3, **{f"<unk_{i}>": 2 + i for i in range(2, 103)}, "<unk>": 105}
PEGASUS_ROLES = {"eos_token": "</s>", "mask_token": "<mask_2>", "pad_token": "<pad>", "unk_token": "<unk>",
                 "additional_special_tokens": ["<mask_1>", *(f"<unk_{i}>" for i in range(2, 103))]}
for name, sizes in {"pegasus-large": {}, "pegasus-xsum": {"length_penalty": 0.6, "max_length": 64}}.items():
    more = {"max_position_embeddings": 512} if sizes else {}
    ALL[name] = Checkpoint(
        PEGASUS | sizes | more, PEGASUS_ENDS | sizes, "pegasus", PEGASUS_SPECIAL, 96103,
        {**PEGASUS_ROLES, "full_tokenizer_file": None, "mask_token_sent": "<mask_1>", "offset": 103, "model_max_length": 1024 >> bool(sizes),
         "special_tokens_map_file": None, "sp_model_kwargs": {}, "tokenizer_class": "PegasusTokenizer", "tokenizer_file": None},
        roles=PEGASUS_ROLES)
MARIAN = {key: value for key, value in MBART.items() if key != "output_past"} | {
    "activation_function": "swish", "add_final_layer_norm": False, "architectures": ["MarianMTModel"], "bad_words_ids": [[58100]],
    "d_model": 512, **stacks(6, 8, 2048), "decoder_start_token_id": 58100, "decoder_vocab_size": 58101, "eos_token_id": 0,
    "forced_eos_token_id": 0, "gradient_checkpointing": False, "max_length": 512, "max_position_embeddings": 512, "model_type": "marian",
    "normalize_before": False, "normalize_embedding": False, "num_beams": 6, "pad_token_id": 58100, "share_encoder_decoder_embeddings": True,
    "static_position_embeddings": True, "vocab_size": 58101}
MARIAN.pop("task_specific_params")
for name, pad in {"opus-mt-en-de": 58100, "opus-mt-en-fr": 59513}.items():
    ids = {"bad_words_ids": [[pad]], "decoder_start_token_id": pad, "pad_token_id": pad}
    ALL[name] = Checkpoint(
        MARIAN | ids | {"decoder_vocab_size": pad + 1, "vocab_size": pad + 1},
        ids | {"bos_token_id": 0, "eos_token_id": 0, "forced_eos_token_id": 0, "max_length": 512, "num_beams": 4 if name[-2:] == "fr" else 6,
               "renormalize_logits": True},
        "marian", {"</s>": 0, "<unk>": 1, "<pad>": pad}, pad + 1, {"target_lang": name[-2:], "source_lang": "en"})
M2M = {"activation_dropout": 0.0, "activation_function": "relu", "architectures": ["M2M100ForConditionalGeneration"], "attention_dropout": 0.1,
       "bos_token_id": 0, "d_model": 1024, **stacks(12, 16, 4096, 0.05), "decoder_start_token_id": 2, "dropout": 0.1, "early_stopping": True,
       "eos_token_id": 2, "gradient_checkpointing": False, "init_std": 0.02, "is_encoder_decoder": True, "max_length": 200,
       "max_position_embeddings": 1024, "model_type": "m2m_100", "num_beams": 5, "pad_token_id": 1, "scale_embedding": True, "use_cache": True,
       "vocab_size": 128112}
M2M_CODES = ("af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy id ig ilo is it "
             "ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk sl so sq sr ss su sv sw "
             "ta th tl tn tr uk ur uz vi wo xh yi yo zh zu").split()
M2M_ROLES = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "sep_token": "</s>", "pad_token": "<pad>"}
M2M_ENDS = {"bos_token_id": 0, "decoder_start_token_id": 2, "eos_token_id": 2, "max_length": 200, "pad_token_id": 1}
for name, sizes in {"m2m100_418M": {}, "m2m100_1.2B": stacks(24, 16, 8192, 0.05)}.items():
    ALL[name] = Checkpoint(
        M2M | sizes, FROM_CONFIG | M2M_ENDS | {"early_stopping": True, "num_beams": 5}, "m2m",
        FAIRSEQ | {f"__{code}__": 128004 + i for i, code in enumerate(M2M_CODES)}, 128112,
        {"src_lang": None, "tgt_lang": None, **M2M_ROLES, "additional_special_tokens": [f"__{code}__" for code in M2M_CODES],
         "language_codes": "m2m100", "num_madeup_words": 8, "special_tokens_map_file": None, "tokenizer_file": None,
         "tokenizer_class": "M2M100Tokenizer"},
        roles=M2M_ROLES | {"additional_special_tokens": [f"__{code}__" for code in M2M_CODES]})
NLLB = {key: value for key, value in M2M.items() if key not in ("early_stopping", "gradient_checkpointing", "num_beams")} | stacks(12, 16, 4096, 0) | {
    "tokenizer_class": "NllbTokenizer", "torch_dtype": "float32", "vocab_size": 256206}
NLLB_CODES = ["ace_Arab", "deu_Latn", "eng_Latn", "fra_Latn", "zul_Latn"]  # five of 202
NLLB_SPECIAL = FAIRSEQ | {"ace_Arab": 256001, "deu_Latn": 256042, "eng_Latn": 256047, "fra_Latn": 256057, "zul_Latn": 256202, "<mask>": 256203}
for name, sizes in {"nllb-200-distilled-600M": {}, "nllb-200-distilled-1.3B": stacks(24, 16, 8192, 0),
                    "nllb-200-3.3B": {"d_model": 2048, **stacks(24, 16, 8192, 0)}}.items():
    ALL[name] = Checkpoint(
        NLLB | sizes, FROM_CONFIG | M2M_ENDS, "nllb", NLLB_SPECIAL, 256204,
        {**M2M_ROLES, "cls_token": "<s>", "mask_token": token("<mask>", lstrip=True), "name_or_path": "facebook/" + name, "sp_model_kwargs": {},
         "special_tokens_map_file": None, "src_lang": None, "tgt_lang": None, "tokenizer_class": "NllbTokenizer", "tokenizer_file": None},
        roles=M2M_ROLES | {"additional_special_tokens": NLLB_CODES, "cls_token": "<s>", "mask_token": token("<mask>", lstrip=True)})

for name in ("gpt_bigcode-santacoder", "mbart-large-cc25", "pegasus-large", "phi-4-mini", "qwen2.5-1.5b", "qwen2-57b-a14b",
             "stablelm-2-1_6b", "umt5-base", "umt5-xxl"):
    ALL[name].facts = "published and defaults of the class"
