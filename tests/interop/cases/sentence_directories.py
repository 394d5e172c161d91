"""Sentence-Transformers directories of random modules: tzoo embed computes the formula of each module on transformers'
outputs, or refuses a module or key by name."""

import torch
from test_sentence_modules import ACTIVATIONS, LEGACY, SentenceModulesTest
from text_models import TEXTS, configure

from cases.outcome import EQUAL, refused_by_name, tzoo

# Modules and keys that the zoo lacks: (module, its configuration, the name in the message).
UNKNOWN = [("WordWeights", {}, "WordWeights"), ("CNN", {"in_word_embedding_dimension": 16}, "CNN"), ("LSTM", {}, "LSTM"),
           ("WeightedLayerPooling", {"num_hidden_layers": 2}, "WeightedLayerPooling"), ("Asym", {}, "Asym"),
           ("Dense", {"in_features": 16, "out_features": 16, "bias": True, "gain": 2,
                      "activation_function": "torch.nn.modules.activation.Tanh"}, "gain"),
           ("Normalize", {"p": 1}, "p")]


class Directory(SentenceModulesTest):
    """Its modules after the pooling, as functions of a vector."""

    def __init__(self, folder):
        super().__init__()
        self.directory, self.modules, self.functions = folder, [], []

    def then(self, vector):
        for function in self.functions:
            vector = function(vector)
        return vector

    def add_module(self, chance, width):
        """Returns the width of what comes out."""
        kind = chance.choice(["Dense", "Dense", "Dropout", "LayerNorm", "Normalize"])
        if kind == "Dense":
            return self.add_dense(chance, width)
        if kind == "LayerNorm":
            norm = torch.nn.LayerNorm(width)
            torch.nn.init.normal_(norm.weight)
            torch.nn.init.normal_(norm.bias)
            self.add("LayerNorm", {"dimension": width}, {"norm.weight": norm.weight.data, "norm.bias": norm.bias.data})
            self.functions.append(norm)
        elif kind == "Dropout":
            self.add("Dropout", {"dropout": 0.5})
        else:
            self.add("Normalize")
            self.functions.append(lambda vector: torch.nn.functional.normalize(vector, dim=0))
        return width

    def add_dense(self, chance, width):
        out, has_bias, activation = chance.choice([width, 9, 21]), chance.random() < 0.5, chance.choice(ACTIVATIONS)
        dense, residual = torch.nn.Linear(width, out, bias=has_bias), chance.random() < 0.3
        other = torch.nn.Linear(width, out, bias=False) if out != width else torch.nn.Identity()
        tensors = {f"linear.{name}": tensor.data for name, tensor in dense.named_parameters()}
        if residual and out != width:
            tensors["residual.weight"] = other.weight.data
        config = {"in_features": width, "out_features": out, "bias": has_bias, "activation_function": f"torch.nn.modules.{activation}"}
        self.add("Dense", config | ({"use_residual": True} if residual else {}), tensors)
        function = getattr(torch.nn, activation.split(".")[1])()
        self.functions.append(lambda vector: function(dense(vector)) + (other(vector) if residual else 0))
        return out


def check(chance, folder):
    directory = Directory(folder)
    tokenizer, model = directory.bert()
    modes = chance.sample(sorted(LEGACY), chance.choice([1, 1, 2, 3]))
    legacy, include = chance.random() < 0.5, chance.random() < 0.5
    directory.pooling(modes, legacy, include_prompt=include)
    modes = [mode for mode in LEGACY if mode in modes] if legacy else modes
    width = 16 * len(modes)
    for _ in range(chance.choice([0, 1, 2, 4])):
        width = directory.add_module(chance, width)
    limit, file_limit = chance.choice([(64, None), (9, None), (30, 12), (12, 30)])
    configure(folder, tokenizer, model_max_length=limit, truncation_side=chance.choice(["left", "right"]))
    directory.write("sentence_bert_config.json", {"max_seq_length": file_limit, "do_lower_case": False})
    prompts, default = {"query": "God said: ", "passage": "the earth "}, chance.choice([None, "query"])
    shortest = chance.choice([None, 5])
    directory.write("config_sentence_transformers.json", {"prompts": prompts, "default_prompt_name": default, "truncate_dim": shortest})
    name = chance.choice([None, "passage"])
    prompt = prompts.get(name or default, "")
    words = ["--prompt_name", name] if name else []
    if chance.random() < 0.15:
        kind, config, said = chance.choice(UNKNOWN)
        directory.add(kind, config)
        return refused_by_name(tzoo("embed", "--model", folder, "--text", "a"), said)
    expected = directory.reference(tokenizer, model, TEXTS, modes, prompt=prompt, include_prompt=include, limit=file_limit or limit,
                                   then=directory.then)
    directory.check(expected[:, :shortest], TEXTS, *words)
    return EQUAL
