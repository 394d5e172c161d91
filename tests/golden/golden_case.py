"""Writes the cases of golden/: a checkpoint as transformers writes it, inputs for it and what it computes from them."""

import json
import pathlib
import sys

from safetensors.torch import save_file

GOLDEN = pathlib.Path(__file__).parent
sys.path.insert(0, str(GOLDEN.parent / "support"))
import huggingface as hf  # noqa: E402


def write_case(name, model, head, saved=None, change=lambda config: None, length=7):
    """`saved` is what is written, if not the whole model; `change` alters config.json."""
    directory = GOLDEN / name
    (saved or model).save_pretrained(directory)
    (directory / "generation_config.json").unlink(missing_ok=True)
    path = directory / "config.json"
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    inputs = hf.random_inputs(model, head, length, left=2, right=3)
    save_file({**inputs, **hf.expected_tensors(model, head, inputs)}, directory / "expected.safetensors")
    print(name, sum(file.stat().st_size for file in directory.iterdir()), "bytes")
