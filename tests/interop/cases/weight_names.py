"""Weights under other names than transformers writes today: tied ones under the other name, old names, a head of its own
beside tie_word_embeddings, buffers. tzoo forward computes what transformers' own load gives."""

import torch
from safetensors.torch import load_file, save_file, save_model

from cases.configurations import FAMILIES, fills_a_window
from cases.outcome import EQUAL, NO_REFERENCE, refused_by_name, tzoo
from forward_parity import difference, flags_of, hf

OLD = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}


def other_tied_name(chance, model, tensors):
    """One of a tied weight's names, whichever."""
    whole = dict(model.named_parameters(remove_duplicate=False))
    for name in [name for name in tensors if name in whole]:
        names = [other for other, weight in whole.items() if weight is whole[name]]
        if len(names) > 1:
            tensors[chance.choice(names)] = tensors.pop(name)


def old_endings(chance, model, tensors):
    for name in list(tensors):
        for ending, older in OLD.items():
            if name.endswith(ending):
                tensors[name.removesuffix(ending) + older] = tensors.pop(name)


def own_head(chance, model, tensors):
    head = model.get_output_embeddings()
    names = [name for name, weight in model.named_parameters(remove_duplicate=False) if head is not None and weight is head.weight]
    for name in names[-1:]:
        tensors[name] = head.weight.detach() + torch.randn_like(head.weight) * 0.1


def versions(chance, model, tensors):
    for part in ("model.encoder.", "model.decoder."):
        if any(name.startswith(part) for name in tensors):
            tensors[part + "version"] = torch.tensor([3.0])


def copies(chance, model, tensors):
    tensors.update({name: weight.detach().clone() for name, weight in model.named_parameters(remove_duplicate=False)})


CHANGES = [other_tied_name, other_tied_name, old_endings, own_head, versions, copies]


def check(chance, folder):
    suite = chance.choice(FAMILIES)()
    head, model, inputs = suite.random_model(chance.getrandbits(31))
    model.save_pretrained(folder)
    path = folder / "model.safetensors"
    if chance.random() < 0.2:
        save_model(model, str(path), {"format": "pt"})
    tensors = load_file(path)
    changes = chance.sample(CHANGES, chance.choice([0, 1, 1, 2]))
    for change in changes:
        change(chance, model, tensors)
    save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()}, path, {"format": "pt"})
    try:
        opened, report = type(model).from_pretrained(folder, output_loading_info=True, attn_implementation="eager")
        expected = hf.expected_tensors(opened.eval(), head, inputs)
    except Exception:
        return NO_REFERENCE
    if report["missing_keys"] or report["mismatched_keys"] or fills_a_window(opened, inputs):
        return NO_REFERENCE
    output = folder / "out.safetensors"
    done = tzoo("forward", "--model", folder, *flags_of(inputs), "--output", output, *(["--gradients"] if "labels" in inputs else []))
    if done.returncode:
        # A decoder with a table of its own is another model.
        return refused_by_name(done, *report["unexpected_keys"], "tied", "another name", "one weight for both")
    fault = difference(opened, head, inputs, load_file(output), expected)
    assert not fault, f"{type(model).__name__}, {[change.__name__ for change in changes]}: {fault}"
    return EQUAL
