"""Random models of Hugging Face transformers, inputs for them and what they compute: for golden/ and interop/.

A head has the name that tzoo's flags use. Names of tensors are those that `tzoo forward` writes.
"""

import contextlib
import copy
import json
import shutil
from unittest import mock

import torch
from safetensors.torch import save_file

QUESTION_ANSWERING = "question-answering"
CAUSAL = ("gpt2", "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "olmo2",
          "phi3", "smollm3", "starcoder2", "gpt_neox", "opt", "bloom", "falcon", "gptj", "mpt", "gpt_bigcode", "stablelm", "granite",
          "mixtral", "qwen2_moe", "qwen3_moe", "nanochat")
ENCODER_DECODERS = ("t5", "mt5", "umt5", "bart", "mbart", "pegasus", "marian", "m2m_100")
LISTS = ("hidden_states", "attentions", "encoder_hidden_states", "decoder_hidden_states", "encoder_attentions",
         "decoder_attentions", "cross_attentions")
SENTENCE_HEADS = ("sequence-classification", "next-sentence")


def randomize(model):
    """Every weight drawn wide: initial biases of zero and norms of one would hide a mistake."""
    with torch.no_grad():
        for name, parameter in (*model.named_parameters(), *model.named_buffers()):
            if "embed_positions" in name and not parameter.requires_grad or not (
                    isinstance(parameter, torch.nn.Parameter) or name == "final_logits_bias"):
                continue  # a table of sinusoids or another of the family's own numbers
            is_norm_weight = ("norm" in name.lower() or ".ln_" in name) and name.endswith(".weight")
            is_one = is_norm_weight and not model.config.model_type.startswith("gemma")  # which adds 1 itself
            parameter.copy_(torch.randn_like(parameter) * 0.3 + (1.0 if is_one else 0.0))
    return model.eval()


def random_model(cls, config, seed):
    torch.manual_seed(seed)
    config._attn_implementation = "eager"  # the only one that gives its attention weights
    config._experts_implementation = "eager"  # the only one in float64
    return randomize(cls(config))


def is_causal(model):
    return model.config.model_type in CAUSAL


def is_encoder_decoder(model):
    return model.config.model_type in ENCODER_DECODERS and not type(model).__name__.endswith("EncoderModel")


def longest_input(model):
    config = model.config
    if config.model_type in ("t5", "mt5", "umt5", "bloom", "mpt"):  # which have no limit
        return 40
    if config.model_type in ("roberta", "xlm-roberta"):  # counts from after the padding's position
        return config.max_position_embeddings - config.pad_token_id - 1
    if config.model_type == "mpnet":  # which has its padding at 1
        return config.max_position_embeddings - 2
    return config.max_position_embeddings


def padded_ids(model, length, left, right):
    """Ids and mask of three rows: one whole, one padded on the left, one on the right."""
    config = model.config
    ids = torch.randint(config.vocab_size, (3, length))
    mask = torch.ones_like(ids)
    mask[1, :left] = 0
    mask[2, length - right:] = 0
    if config.pad_token_id is not None:
        ids[ids == config.pad_token_id] = (config.pad_token_id + 1) % config.vocab_size
        ids[mask == 0] = config.pad_token_id
        ids[0, 1] = config.pad_token_id  # and one that is not hidden: its embedding has no gradient
    return ids, mask


def labels_of(model, head, ids, mask):
    """Random labels in the head's form, some of them ignored; none is predicted from a query that sees no key."""
    config, (batch, length) = model.config, ids.shape
    if head == "base":
        return None
    if head == QUESTION_ANSWERING:
        spans = torch.randint(length, (batch, 2)).sort(-1).values
        spans[0, 1] = length + 2  # outside the input: ignored
        return spans
    if head in SENTENCE_HEADS:
        labels = 2 if head == "next-sentence" else config.num_labels
        problem = getattr(config, "problem_type", None)
        if problem == "multi_label_classification":
            return torch.randint(2, (batch, labels)).float()
        if problem == "regression" or (problem is None and labels == 1):
            return torch.randn(batch) if labels == 1 else torch.randn(batch, labels)
        return torch.randint(labels, (batch,))
    if head == "replaced-tokens":
        return torch.randint(2, ids.shape)
    classes = config.num_labels if head == "token-classification" else config.vocab_size
    labels = torch.randint(classes, ids.shape).masked_fill(torch.rand(ids.shape) < 0.2, -100)
    labels = labels.masked_fill(mask == 0, -100)
    if is_causal(model):  # the label after the first visible token is the first that is predicted from one
        labels[1, :int((mask[1] == 0).sum()) + 1] = -100
    labels[0, 1] = 0  # there is one at least
    return labels


def decoder_inputs(model, head, batch):
    """Labels, which the model shifts right itself, or ids for its decoder beside them; of a bare model the ids alone."""
    length, shifts = int(torch.randint(1, 25, ())), bool(torch.randint(2, ()))
    ids = torch.randint(model.config.vocab_size, (batch, length))
    if head == "base":
        return {"decoder_input_ids": ids}
    labels = torch.randint(model.config.vocab_size, ids.shape).masked_fill(torch.rand(ids.shape) < 0.2, -100)
    labels[0, 0] = 1  # there is one at least
    return {"labels": labels} if shifts else {"labels": labels, "decoder_input_ids": ids}


def random_inputs(model, head, length, left, right):
    """What `tzoo forward` takes, from torch's generator."""
    ids, mask = padded_ids(model, length, left, right)
    inputs = {"input_ids": ids, "attention_mask": mask}
    if is_encoder_decoder(model) and head in ("base", "seq2seq-lm"):
        return {**inputs, **decoder_inputs(model, head, len(ids))}
    if is_encoder_decoder(model) and head in SENTENCE_HEADS:  # which are classified at their last end token
        end = model.config.eos_token_id
        ids[ids == end] = next(i for i in range(model.config.vocab_size) if i not in (end, model.config.pad_token_id))
        ids[:, length // 2] = end
    types = getattr(model.config, "type_vocab_size", 0)
    if types:
        inputs["token_type_ids"] = torch.randint(types, ids.shape)
    labels = labels_of(model, head, ids, mask)
    if labels is not None:
        inputs["labels"] = labels
    if head == "pretraining":
        inputs["next_sentence_label"] = torch.randint(2, (len(ids),))
    return inputs


def call(model, head, inputs, **options):
    inputs = dict(inputs)
    model.config._experts_implementation = "eager"  # the only one in float64
    if head == QUESTION_ANSWERING and "labels" in inputs:
        labels = inputs.pop("labels")
        inputs["start_positions"], inputs["end_positions"] = labels[:, 0], labels[:, 1]
    if model.config.model_type == "albert" and "next_sentence_label" in inputs:
        inputs["sentence_order_label"] = inputs.pop("next_sentence_label")
    return model(**inputs, return_dict=True, **options)


# Names of Nomic BERT's weights, whose files keep older ones: (transformers', theirs).
NOMIC_NAMES = (("embeddings.LayerNorm.", "emb_ln."), (".layers.", ".encoder.layers."), ("self_attn.o_proj", "attn.out_proj"),
               ("up_proj", "fc11"), ("gate_proj", "fc12"), ("down_proj", "fc2"), ("post_attention_layernorm", "norm1"),
               ("post_mlp_layernorm", "norm2"))


def with_nomic_names(tensors):
    """Gradients by the names of files, in which queries, keys and values are one weight."""
    renamed = {}
    for name, tensor in tensors.items():
        if "self_attn.k_proj" in name or "self_attn.v_proj" in name:
            continue
        if "self_attn.q_proj" in name:
            tensor = torch.cat([tensors[name.replace("q_proj", part + "_proj")] for part in "qkv"])
            name = name.replace("self_attn.q_proj", "attn.Wqkv")
        if name.startswith("grad."):
            for ours, theirs in NOMIC_NAMES:
                name = name.replace(ours, theirs)
        renamed[name] = tensor
    return renamed


def with_expert_names(model, tensors):
    """Gradients by the names of files, which have each expert's matrices."""
    split = {}
    for name, tensor in tensors.items():
        mixtral = model.config.model_type == "mixtral"
        block = name.replace(".mlp.", ".block_sparse_moe.") if mixtral else name
        if name.endswith("experts.gate_up_proj"):
            parts = ("w1", "w3") if mixtral else ("gate_proj", "up_proj")
            for e, both in enumerate(tensor):
                for part, each in zip(parts, both.chunk(2)):
                    split[block.replace("gate_up_proj", f"{e}.{part}.weight")] = each
        elif name.endswith("experts.down_proj"):
            for e, each in enumerate(tensor):
                split[block.replace("down_proj", f"{e}.{'w2' if mixtral else 'down_proj'}.weight")] = each
        else:
            split[block] = tensor
    return split


def expected_tensors(model, head, inputs):
    """All that `tzoo forward --gradients` writes; without labels no loss and no gradients."""
    output = call(model, head, inputs, output_hidden_states=True, output_attentions=True)
    names = {"base": ["last_hidden_state", "pooler_output"], QUESTION_ANSWERING: ["start_logits", "end_logits"],
             "pretraining": ["prediction_logits", "seq_relationship_logits"]}
    if model.config.model_type == "deberta-v2" and head == "sequence-classification":  # which drops a dimension beside labels
        output["logits"] = output["logits"].reshape(len(inputs["input_ids"]), -1)
    if "sop_logits" in output:  # ALBERT's name
        output["seq_relationship_logits"] = output["sop_logits"]
    tensors = {name: output[name] for name in names.get(head, ["logits"]) if name in output}
    for name in LISTS:
        tensors.update({f"{name}.{i}": tensor for i, tensor in enumerate(output.get(name) or ())})
    if "labels" in inputs:
        model.zero_grad()
        output.loss.backward()
        tensors["loss"] = output.loss
        for name, parameter in model.named_parameters():
            if model.config.model_type in ("pegasus", "marian") and "embed_positions" in name:  # sinusoids
                continue
            if model.config.model_type == "gpt_neox":  # whose files keep an older name
                name = name.replace("lm_head.", "embed_out.")
            if model.config.model_type == "xlm-roberta" and model.config.tie_word_embeddings:  # files have the other name
                name = name.replace("lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight")
            # A weight that nothing reads has none: the bias beside an untied output projection.
            tensors["grad." + name] = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    if model.config.model_type == "nomic_bert":
        tensors = with_nomic_names(tensors)
    if model.config.model_type in ("mixtral", "qwen2_moe", "qwen3_moe"):
        tensors = with_expert_names(model, tensors)
    return {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}


@contextlib.contextmanager
def float64():
    """transformers asks for float32 inside of its models (norms, softmax, rotary angles): that is float64 here."""
    with mock.patch.multiple(torch, float32=torch.float64, float=torch.float64), \
            mock.patch.object(torch.Tensor, "float", torch.Tensor.double):
        yield


def exact_tensors(model, head, inputs):
    """expected_tensors computed in float64: the reference for the rounding of both sides."""
    wide = {name: tensor.double() if tensor.is_floating_point() else tensor for name, tensor in inputs.items()}
    with float64():
        return expected_tensors(copy.deepcopy(model).double(), head, wide)


def without_hidden_rows(model, name, tensor, mask):
    """A query whose keys are all hidden (left padding under a causal mask, or padding that fills its window) has no
    defined answer: transformers spreads its attention evenly, the zoo gives zeros."""
    kind, both_sides = name.split(".")[0], model.config.model_type == "modernbert"
    if not (is_causal(model) or both_sides) or kind in ("loss", "grad") or tensor.dim() < 3:
        return tensor
    length = mask.size(-1)
    window = getattr(model.config, "sliding_window", None)
    distance = torch.arange(length)[:, None] - torch.arange(length)  # from a key to a query
    near = distance.abs() <= window if both_sides else (distance >= 0) & (distance < (window or length))
    seen = (near & mask.bool()[:, None]).any(-1)
    return tensor * (seen[:, None, :, None] if kind == "attentions" else seen[:, :, None])


def write_case(directory, model, head, seed, saved=None, change=lambda config: None):
    """A case of golden/: config.json and model.safetensors as transformers writes them (of `saved` instead of the
    model, if given; `change` alters config.json), and expected.safetensors with inputs, outputs and gradients, its head in the metadata."""
    torch.manual_seed(seed)
    length = min(7, longest_input(model))
    inputs = random_inputs(model, head, length, left=2, right=3)
    shutil.rmtree(directory, ignore_errors=True)
    (saved or model).save_pretrained(directory)
    (directory / "generation_config.json").unlink(missing_ok=True)
    config = json.loads((directory / "config.json").read_text())
    config.pop("transformers_version")  # a fixture does not change with it
    change(config)
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    save_file({**inputs, **expected_tensors(model, head, inputs)}, directory / "expected.safetensors", {"head": head})
    print(directory.name, sum(path.stat().st_size for path in directory.iterdir()), "bytes")


def scale_of(name, expected):
    """What an error of tensor `name` is relative to: its largest value. A gradient that is zero except for rounding (the
    bias of keys moves no softmax) is measured by the largest of all, a tenth of it."""
    own = expected[name].abs().max()
    if name.startswith("grad."):
        largest = max(tensor.abs().max() for other, tensor in expected.items() if other.startswith("grad."))
        if own < 1e-5 * largest:
            return largest / 10
    return own.clamp_min(1e-12)


def relative_error(model, name, actual, expected, mask):
    """Of the tensor `name` in `actual` and `expected`, two dictionaries."""
    difference = without_hidden_rows(model, name, actual[name] - expected[name], mask)
    return (difference.abs().max() / scale_of(name, expected)).item()
