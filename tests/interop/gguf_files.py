"""GGUF files of transformers' models as llama.cpp's converter writes them: names and types by the package `gguf`, the
changes of weights by the converter's documentation."""

import gguf
import numpy as np
import torch
from forward_parity import hf

ARCHITECTURES = {"llama": gguf.MODEL_ARCH.LLAMA, "qwen2": gguf.MODEL_ARCH.QWEN2, "qwen3": gguf.MODEL_ARCH.QWEN3,
                 "gemma": gguf.MODEL_ARCH.GEMMA, "gemma2": gguf.MODEL_ARCH.GEMMA2, "gemma3_text": gguf.MODEL_ARCH.GEMMA3,
                 "gpt2": gguf.MODEL_ARCH.GPT2, "phi3": gguf.MODEL_ARCH.PHI3, "bert": gguf.MODEL_ARCH.BERT, "t5": gguf.MODEL_ARCH.T5,
                 "mixtral": gguf.MODEL_ARCH.LLAMA, "qwen2_moe": gguf.MODEL_ARCH.QWEN2MOE, "qwen3_moe": gguf.MODEL_ARCH.QWEN3MOE,
                 "nomic_bert": gguf.MODEL_ARCH.NOMIC_BERT, "smollm3": gguf.MODEL_ARCH.SMOLLM3, "granite": gguf.MODEL_ARCH.GRANITE,
                 "olmo2": gguf.MODEL_ARCH.OLMO2}
OF_NEIGHBOURS = ("llama", "mixtral", "smollm3", "granite")  # they rotate pairs of neighbours
TYPES = gguf.GGMLQuantizationType
# Types without a quantizer in numpy: random blocks, whose scales are these halves (offset in the block).
SCALES = {TYPES.Q4_K: (0, 2), TYPES.Q5_K: (0, 2), TYPES.Q6_K: (208,)}


def permuted(weight, heads):
    """Rows of each head from halves, as transformers rotates, to neighbours."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def converted(name, weight, config):
    kind = config.model_type
    if kind in OF_NEIGHBOURS and ".q_proj." in name:
        return permuted(weight, config.num_attention_heads)
    if kind in OF_NEIGHBOURS and ".k_proj." in name:
        return permuted(weight, config.num_key_value_heads)
    if kind.startswith("gemma") and name.endswith("norm.weight"):
        return weight + 1
    if name.endswith("shared_expert_gate.weight"):
        return weight[0]
    if kind == "gpt2" and name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
        return weight.T
    return weight


def name_map(config):
    layers = max(getattr(config, name, None) or 0 for name in ("num_hidden_layers", "num_layers", "num_decoder_layers"))
    return gguf.get_tensor_name_map(ARCHITECTURES[config.model_type], layers)


def of_files(model):
    """The state with the names of files: experts' matrices by kind, and Nomic BERT's older names."""
    state = model.state_dict()
    if model.config.model_type == "nomic_bert":
        named = hf.with_nomic_names({"grad." + name: weight for name, weight in state.items()})
        return {name.removeprefix("grad."): weight for name, weight in named.items()}
    for name, weight in list(state.items()):
        if name.endswith("experts.gate_up_proj"):
            state.pop(name)
            state[name.replace("gate_up_proj", "gate_proj.weight")], state[name.replace("gate_up_proj", "up_proj.weight")] = \
                weight.chunk(2, 1)
        elif name.endswith("experts.down_proj"):
            state[name + ".weight"] = state.pop(name)
    return state


def tensors(model):
    """{name in the file: weight}."""
    config, weights = model.config, {}
    names = name_map(config)
    tied = getattr(config, "tie_word_embeddings", False)
    for name, weight in of_files(model).items():
        skipped = name.startswith("pooler.") or name.endswith((".attn.bias", ".masked_bias")) or tied and name == "lm_head.weight"
        if skipped or name in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"):
            continue
        new = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert new, name
        weights[new] = np.ascontiguousarray(converted(name, weight.detach().float().numpy(), config))
    return weights


def random_blocks(shape, kind, random):
    block, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (int(np.prod(shape)) // block, size), dtype=np.uint8)
    for offset in SCALES[kind]:
        largest = 0.0002 if kind == TYPES.Q6_K else 0.001
        scale = ((random.random(len(blocks)) * 2 - 1) * largest).astype(np.float16)
        blocks[:, offset:offset + 2] = scale.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(*shape[:-1], -1)


def data_of(weight, kind, random):
    """The bytes of a matrix in the type, and the numbers that they stand for."""
    if weight.ndim < 2:
        return weight, TYPES.F32, weight
    data = random_blocks(weight.shape, kind, random) if kind in SCALES else gguf.quants.quantize(weight, kind)
    return data, kind, gguf.quants.dequantize(data, kind).reshape(weight.shape)


def add_sizes(writer, config):
    kind = config.model_type
    get = lambda *names: next(getattr(config, name) for name in names if getattr(config, name, None) is not None)  # noqa: E731
    writer.add_block_count(get("num_hidden_layers", "n_layer"))
    writer.add_context_length(getattr(config, "max_position_embeddings", None) or 512)
    writer.add_embedding_length(get("hidden_size"))
    writer.add_feed_forward_length(4 * config.n_embd if kind == "gpt2" else get("intermediate_size", "d_ff"))
    writer.add_head_count(get("num_attention_heads"))
    if kind == "nomic_bert":
        writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
        writer.add_causal_attention(False)
    if kind in ("mixtral", "qwen2_moe", "qwen3_moe"):
        writer.add_expert_count(get("num_local_experts", "num_experts"))
        writer.add_expert_used_count(config.num_experts_per_tok)
    if kind in ("qwen2_moe", "qwen3_moe"):
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)
    if kind == "qwen2_moe":
        writer.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)
    if kind in ("gpt2", "bert", "nomic_bert"):
        writer.add_layer_norm_eps(get("layer_norm_epsilon", "layer_norm_eps"))
        return
    writer.add_layer_norm_rms_eps(get("rms_norm_eps", "layer_norm_epsilon"))
    if kind == "t5":
        writer.add_decoder_block_count(config.num_decoder_layers)
        writer.add_key_length(config.d_kv)
        writer.add_value_length(config.d_kv)
        writer.add_relative_attn_buckets_count(config.relative_attention_num_buckets)
        writer.add_decoder_start_token_id(config.decoder_start_token_id)
        return
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    heads = config.num_key_value_heads
    writer.add_head_count_kv([heads] * config.num_hidden_layers if kind == "smollm3" else heads)  # as newer files write it
    if kind == "llama":  # keys that change no number
        writer.add_tensor_data_layout("Meta AI original pth")
        writer.add_rope_scaling_finetuned(True)
    writer.add_key_length(head)
    writer.add_value_length(head)
    rope = config.rope_parameters.get("full_attention", config.rope_parameters)
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_rope_dimension_count(int(head * rope.get("partial_rotary_factor", 1.0)))
    if rope.get("rope_type") == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    if kind == "granite":
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_logit_scale(config.logits_scaling)
    if kind in ("gemma2", "gemma3_text"):  # Gemma 3's layers with a window have llama.cpp's base, 10,000
        writer.add_sliding_window(config.sliding_window)
    if kind == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)


def write(path, model, kind=TYPES.F32, random=None, add=None, extra=()):
    """Writes the model with matrices of the type, or of kind(name of the tensor). Sets its weights to the numbers in the file. add(writer) adds keys;
    `extra`: names and data of more tensors."""
    writer = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[ARCHITECTURES[model.config.model_type]])
    add_sizes(writer, model.config)
    if add is not None:
        add(writer)
    numbers = {}
    for name, weight in tensors(model).items():
        plain = name.startswith(("position_embd", "token_types")) or "attn_rel_b" in name or "ffn_gate_inp" in name
        data, used, numbers[name] = data_of(weight, TYPES.F32 if plain else kind(name) if callable(kind) else kind, random)
        writer.add_tensor(name, data, raw_dtype=used if used not in (TYPES.F32, TYPES.F16) else None)
    for name, data in extra:
        writer.add_tensor(name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return numbers


def set_numbers(model, numbers):
    """Gives the model the weights that the file holds."""
    names = name_map(model.config)
    heads = {".q_proj.": "num_attention_heads", ".k_proj.": "num_key_value_heads"}
    with torch.no_grad():
        for name, weight in of_files(model).items():  # which are parts of the model's memory
            new = names.get_name(name, try_suffixes=(".weight", ".bias"))
            if new not in numbers:
                continue
            value = numbers[new]
            part = next((part for part in heads if part in name), None)
            if model.config.model_type in OF_NEIGHBOURS and part:
                count = getattr(model.config, heads[part])
                value = value.reshape(count, -1, 2, *value.shape[1:]).swapaxes(1, 2).reshape(value.shape)
            elif model.config.model_type.startswith("gemma") and name.endswith("norm.weight"):
                value = value - 1
            elif name.endswith("shared_expert_gate.weight"):
                value = value[None]
            elif value.shape != tuple(weight.shape) or model.config.model_type == "gpt2" and ".c_" in name and value.ndim == 2:
                value = value.T
            weight.copy_(torch.from_numpy(np.array(value)))
            if name.endswith("attn.Wqkv.weight"):  # joined from three
                layer = model.layers[int(name.split(".")[2])].self_attn
                for own, each in zip((layer.q_proj, layer.k_proj, layer.v_proj), weight.chunk(3)):
                    own.weight.copy_(each)
