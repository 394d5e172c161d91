"""Writes tiny random GPT-2 checkpoints in Hugging Face's layout, with the standard library alone."""

import json
import math
import os
import random
import struct

# The size of the "char" tokenizer below.
CHARS = "\n abcdefghijklmnopqrstuvwxyz.é世😀"


def write_safetensors(path, tensors):
    """tensors: name -> (shape, numbers), all float32."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (shape, numbers) in tensors.items():
        packed = struct.pack(f"<{len(numbers)}f", *numbers)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def gpt2_shapes(config):
    width, shapes = config["n_embd"], {}
    shapes["wte.weight"] = [config["vocab_size"], width]
    shapes["wpe.weight"] = [config["n_positions"], width]
    for layer in range(config["n_layer"]):
        h = f"h.{layer}."
        shapes.update({h + "ln_1.weight": [width], h + "ln_1.bias": [width]})
        shapes.update({h + "attn.c_attn.weight": [width, 3 * width], h + "attn.c_attn.bias": [3 * width]})
        shapes.update({h + "attn.c_proj.weight": [width, width], h + "attn.c_proj.bias": [width]})
        shapes.update({h + "ln_2.weight": [width], h + "ln_2.bias": [width]})
        shapes.update({h + "mlp.c_fc.weight": [width, 4 * width], h + "mlp.c_fc.bias": [4 * width]})
        shapes.update({h + "mlp.c_proj.weight": [4 * width, width], h + "mlp.c_proj.bias": [width]})
    shapes.update({"ln_f.weight": [width], "ln_f.bias": [width]})
    return {"transformer." + name: shape for name, shape in shapes.items()}


def gpt2_tensors(config, seed=1):
    """Weights so large that the model's next tokens depend on every token before."""
    chance = random.Random(seed)
    tensors = {}
    for name, shape in gpt2_shapes(config).items():
        near = 1.0 if ".ln_" in name and name.endswith("weight") else 0.0
        tensors[name] = (shape, [near + chance.uniform(-0.6, 0.6) for _ in range(math.prod(shape))])
    return tensors


def write_json(directory, name, value):
    with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
        json.dump(value, file)


def write_char_tokenizer(directory, chars=CHARS):
    model = {"type": "BPE", "vocab": {c: i for i, c in enumerate(sorted(chars))}, "merges": []}
    tokenizer = {"version": "1.0", "added_tokens": [], "decoder": {"type": "Fuse"}, "model": model}
    write_json(directory, "tokenizer.json", tokenizer)


def write_checkpoint(directory, tokenizer=False, change=None, generation=None, seed=1, **config):
    """A GPT-2 of 2 layers, 2 heads, width 16, context 24. `change(tensors)` alters what is written."""
    os.makedirs(directory, exist_ok=True)
    config = {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "vocab_size": len(CHARS),
        "n_embd": 16,
        "n_layer": 2,
        "n_head": 2,
        "n_positions": 24,
        "bos_token_id": None,
        "eos_token_id": None,
        **config,
    }
    tensors = gpt2_tensors(config, seed)
    if change:
        change(tensors)
    write_safetensors(os.path.join(directory, "model.safetensors"), tensors)
    write_json(directory, "config.json", config)
    if generation is not None:
        write_json(directory, "generation_config.json", generation)
    if tokenizer:
        write_char_tokenizer(directory)
    return directory
