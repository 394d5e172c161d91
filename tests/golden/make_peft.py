#!/usr/bin/env python3
"""Makes golden/peft/: random adapters of PEFT on tiny random models, and what PeftModel computes with them.

Run by hand when a fixture has to change, with a Python that has peft beside what third_party/interop has:  python make_peft.py

bases/NAME is a model as transformers writes it; CASE/ has an adapter as PEFT writes it, and expected.safetensors: inputs
and output, with its base and head in the metadata. GRADIENTS have gradients.safetensors, too: those of the adapter, trained
on with is_trainable, of the mean loss of the next tokens.
"""

import copy
import json
import pathlib
import shutil
import sys
import warnings

import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import BertConfig, GPT2Config, LlamaConfig, T5Config

FOLDER = pathlib.Path(__file__).parent / "peft"
sys.path.insert(0, str(FOLDER.parents[1] / "support"))
import huggingface as hf  # noqa: E402

SMALL = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 12, "vocab_size": 17,
         "max_position_embeddings": 16, "pad_token_id": 0}
LLAMA = LlamaConfig(**SMALL, num_key_value_heads=1, head_dim=4, attention_bias=True)
TIED = LlamaConfig(**SMALL, tie_word_embeddings=True)
BASES = {
    "gpt2": (transformers.GPT2LMHeadModel, GPT2Config(n_layer=2, n_head=2, n_embd=8, vocab_size=17, n_positions=16)),
    "llama": (transformers.LlamaForCausalLM, LLAMA),
    "llama-tied": (transformers.LlamaForCausalLM, TIED),
    "bert": (transformers.BertForMaskedLM, BertConfig(**SMALL)),
    "t5": (transformers.T5ForConditionalGeneration,
           T5Config(num_layers=2, num_heads=2, d_model=8, d_kv=4, d_ff=12, vocab_size=17, decoder_start_token_id=0,
                    feed_forward_proj="gated-gelu", tie_word_embeddings=True)),
}
CAUSAL, CLASSES = transformers.AutoModelForCausalLM, transformers.AutoModelForSequenceClassification
MASKED, BARE, BOTH = transformers.AutoModelForMaskedLM, transformers.AutoModel, transformers.AutoModelForSeq2SeqLM
# Of each case the base, its class and settings of the adapter; labels are those of a new head.
CASES = {
    "gpt2-lora": ("gpt2", CAUSAL, dict(target_modules=["c_attn", "attn.c_proj"], r=2, lora_alpha=6, fan_in_fan_out=True)),
    "gpt2-dora": ("gpt2", CAUSAL, dict(target_modules=r".*\.(mlp\.c_(fc|proj)|c_attn)", r=3, lora_alpha=2, use_dora=True,
                                       fan_in_fan_out=True)),
    "gpt2-embedding": ("gpt2", CAUSAL, dict(target_modules=["wte", "wpe", "c_fc"], r=2, fan_in_fan_out=True)),
    "gpt2-biases": ("gpt2", CAUSAL, dict(target_modules=["c_attn"], bias="all", r=2, fan_in_fan_out=True)),
    "llama-rslora": ("llama", CAUSAL, dict(target_modules=["q_proj", "v_proj", "gate_proj", "down_proj"], use_rslora=True, r=4,
                                           lora_alpha=6, rank_pattern={"v_proj": 2, r"layers\.0\.mlp\.gate_proj": 1},
                                           alpha_pattern={r"layers\.1\.self_attn\..*": 3})),
    "llama-dora": ("llama", CAUSAL, dict(target_modules="all-linear", use_dora=True, r=2)),
    "llama-dora-some": ("llama", CAUSAL, dict(target_modules=["k_proj", "v_proj", "up_proj"], use_dora=True, use_rslora=True, r=2,
                                              lora_alpha=3)),
    "llama-classes": ("llama", CLASSES, dict(target_modules=["k_proj", "up_proj"], task_type="SEQ_CLS", r=2, labels=3)),
    "llama-lm-head": ("llama-tied", CAUSAL, dict(target_modules=["lm_head", "o_proj"], r=2)),
    "llama-dora-embedding": ("llama-tied", CAUSAL, dict(target_modules=["embed_tokens", "o_proj"], use_dora=True, r=2)),
    "llama-saved": ("llama-tied", CAUSAL, dict(target_modules=["q_proj"], modules_to_save=["embed_tokens", "norm"],
                                               layers_to_transform=[1], r=2)),
    "bert-masked": ("bert", MASKED, dict(target_modules=["query", "value", "output.dense"], bias="lora_only", r=2)),
    "bert-embedding": ("bert", MASKED, dict(target_modules=["word_embeddings", "query"], r=2)),
    "bert-classes": ("bert", CLASSES, dict(target_modules=["key", "output.dense"], modules_to_save=["pooler"], task_type="SEQ_CLS",
                                           r=2, labels=5)),
    "bert-bare": ("bert", BARE, dict(target_modules=["query", "dense"], task_type="FEATURE_EXTRACTION", r=2)),
    "t5-lora": ("t5", BOTH, dict(target_modules=["q", "v", "wo", "wi_1", "relative_attention_bias"], r=2)),
    "t5-lm-head": ("t5", BOTH, dict(target_modules=["lm_head", "k"], task_type="SEQ_2_SEQ_LM", r=2)),
}
GRADIENTS = ["gpt2-lora", "gpt2-dora", "llama-dora", "llama-dora-some"]


def randomize(adapted):
    """Everything that the adapter trains: B and what DoRA multiplies begin as nothing."""
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if parameter.requires_grad:
                noise = torch.randn_like(parameter) * 0.2
                parameter.copy_(parameter * (1 + noise) if "magnitude" in name else parameter + noise)


def settled(folder):
    """Fixtures do not change with the release, or the order of a set."""
    path = folder / "adapter_config.json"
    config = json.loads(path.read_text())
    config.pop("peft_version")
    for key in ("target_modules", "modules_to_save"):
        if isinstance(config[key], list):
            config[key].sort()
    config["base_model_name_or_path"] = pathlib.Path(config["base_model_name_or_path"]).name
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    (folder / "README.md").unlink(missing_ok=True)


def save_gradients(name):
    base, auto, _ = CASES[name]
    model = auto.from_pretrained(FOLDER / "bases" / base, attn_implementation="eager")
    adapted = PeftModel.from_pretrained(model, FOLDER / name, is_trainable=True).eval()
    with safe_open(FOLDER / name / "expected.safetensors", "pt") as file:
        ids = file.get_tensor("input_ids")
    with hf.float64():
        adapted.double()(input_ids=ids, labels=ids).loss.backward()
    gradients = {key.replace(".default", "").replace("vector.weight", "vector"): parameter.grad.float().contiguous()
                 for key, parameter in adapted.named_parameters() if parameter.requires_grad}
    save_file(gradients, FOLDER / name / "gradients.safetensors")


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    for seed, (name, (cls, config)) in enumerate(BASES.items()):
        model = hf.random_model(cls, copy.deepcopy(config), seed)
        with torch.no_grad():  # near unity, so that float32 has six digits of the outputs
            for parameter in model.parameters():
                parameter.mul_(0.7)
        model.save_pretrained(FOLDER / "bases" / name)
        (FOLDER / "bases" / name / "generation_config.json").unlink(missing_ok=True)
    for seed, (name, (base, auto, settings)) in enumerate(CASES.items()):
        torch.manual_seed(seed)
        labels = {"num_labels": settings.pop("labels")} if "labels" in settings else {}
        model = auto.from_pretrained(FOLDER / "bases" / base, attn_implementation="eager", **labels)
        adapted = get_peft_model(model, LoraConfig(**settings))
        randomize(adapted)
        folder = FOLDER / name
        adapted.eval().save_pretrained(folder)
        settled(folder)
        ids = torch.randint(1, 17, (2, 7))
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if base == "t5":
            inputs["decoder_input_ids"] = torch.randint(1, 17, (2, 5))
        with torch.no_grad(), hf.float64():
            output = adapted.double()(**inputs)
        head = {CAUSAL: "causal-lm", CLASSES: "sequence-classification", MASKED: "masked-lm", BARE: "base", BOTH: "seq2seq-lm"}[auto]
        result = {"last_hidden_state" if auto is BARE else "logits": output[0].float().contiguous()}
        save_file({**inputs, **result}, folder / "expected.safetensors", {"base": base, "head": head})
        if name in GRADIENTS:
            save_gradients(name)
        print(name, sum(path.stat().st_size for path in folder.iterdir()), "bytes")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
