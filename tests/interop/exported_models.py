"""What tzoo export writes for other runtimes, called as Hugging Face's Optimum calls ONNX files: ONNX Runtime, torch.export."""

import pathlib
import re

import onnxruntime
import torch
from torch.export.pt2_archive._package import load_pt2

onnxruntime.set_default_logger_severity(3)  # errors


class Named:
    """A program that takes and gives tensors by name. Inputs that it lacks are passed over."""

    def empty_caches(self, batch):
        return {name: torch.zeros(batch, shape[1], 0, shape[3]) for name, shape in self.inputs.items() if name.startswith("past_key_values.")}


class Session(Named):
    """A file of ONNX."""

    def __init__(self, path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs = {port.name: port.shape for port in self.session.get_inputs()}
        self.outputs = [port.name for port in self.session.get_outputs()]

    def __call__(self, **inputs):
        given = {name: tensor.numpy() for name, tensor in inputs.items() if name in self.inputs}
        return dict(zip(self.outputs, map(torch.from_numpy, self.session.run(None, given))))


class Pt2Program(Named):
    """A program of torch.export, whose names have no dots; those of its outputs are not in it."""

    def __init__(self, program, outputs):
        self.run = program.module()
        shapes = {node.name: node.meta["val"].shape for node in program.graph.nodes if node.op == "placeholder"}
        self.inputs = {re.sub(r"_(\d+)_", r".\1.", name).replace("coder_", "coder."): shapes[name] for name in program.graph_signature.user_inputs}
        self.inputs = {{"decoder.input_ids": "input_ids", "encoder.hidden_states": "encoder_hidden_states",
                        "encoder.attention_mask": "encoder_attention_mask"}.get(name, name): shape for name, shape in self.inputs.items()}
        self.outputs = outputs

    def __call__(self, **inputs):
        found = self.run(*(inputs[name] for name in self.inputs))
        return dict(zip(self.outputs, found if isinstance(found, tuple) else (found,), strict=True))


def caches_of(outputs):
    return {name.replace("present", "past_key_values"): tensor for name, tensor in outputs.items() if name.startswith("present.")}


class ExportedModel:
    """`model`, or an encoder, the beginning of a decoder and its step."""

    def __init__(self, model=None, encoder=None, start=None, step=None):
        self.model, self.encoder, self.start, self.step = model, encoder, start, step

    @classmethod
    def from_onnx(cls, directory):
        sessions = {path.stem: Session(path) for path in pathlib.Path(directory).glob("*.onnx")}
        return cls(*(sessions.get(name) for name in ("model", "encoder_model", "decoder_model", "decoder_with_past_model")))

    @classmethod
    def from_pt2(cls, path):
        """The programs of --decoding."""
        programs = load_pt2(path).exported_programs
        caches = [name for name in Pt2Program(programs["step"], []).inputs if name.startswith("past_key_values.")]
        outputs = ["logits"] + [name.replace("past_key_values", "present") for name in caches]
        step = Pt2Program(programs["step"], [name for name in outputs if ".encoder." not in name])
        if "start" not in programs:
            return cls(step)
        return cls(None, Pt2Program(programs["encode"], ["last_hidden_state"]), Pt2Program(programs["start"], outputs), step)

    def forward(self, input_ids, attention_mask, decoder_input_ids=None, token_type_ids=None):
        """The outputs in their order, without caches. Positions count padding, as those of transformers' forward do."""
        if self.encoder:
            memory = self.encoder(input_ids=input_ids, attention_mask=attention_mask)["last_hidden_state"]
            return [self.start(input_ids=decoder_input_ids, encoder_hidden_states=memory, encoder_attention_mask=attention_mask)["logits"]]
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        given = {} if decoder_input_ids is None else dict(decoder_input_ids=decoder_input_ids)
        outputs = self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids,
                             position_ids=torch.arange(input_ids.size(1)).expand_as(input_ids), **given,
                             **self.model.empty_caches(len(input_ids)))
        return [tensor for name, tensor in outputs.items() if not name.startswith("present.")]

    def greedy(self, input_ids, attention_mask, count, start_id=None):
        """`count` ids for each row, by the caches."""
        found, mask = [], attention_mask
        if self.encoder:
            memory = self.encoder(input_ids=input_ids, attention_mask=mask)["last_hidden_state"]
            new = torch.full((len(input_ids), 1), start_id)
            outputs = self.start(input_ids=new, encoder_hidden_states=memory, encoder_attention_mask=mask)
            caches = caches_of(outputs)
            while True:
                new = outputs["logits"][:, -1].argmax(-1, keepdim=True)
                found.append(new)
                if len(found) == count:
                    return torch.cat(found, 1)
                outputs = self.step(input_ids=new, encoder_attention_mask=mask, **caches)
                caches |= caches_of(outputs)
        new, caches = input_ids, self.model.empty_caches(len(input_ids))
        for _ in range(count):
            outputs = self.model(input_ids=new, attention_mask=mask, position_ids=positions(mask)[:, -new.size(1):], **caches)
            new, caches = outputs["logits"][:, -1].argmax(-1, keepdim=True), caches_of(outputs)
            mask = torch.cat([mask, torch.ones_like(new)], 1)
            found.append(new)
        return torch.cat(found, 1)


def positions(mask):
    return (mask.cumsum(1) - 1).clamp(min=0)
