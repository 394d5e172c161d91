"""What the tests of tzoo forward beside transformers share: random models, their comparison, the way there and back."""

import copy
import json
import math
import os
import random
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import huggingface as hf  # noqa: E402
from tier import SHORT  # noqa: E402

SEEDS = range(8 if SHORT else 12)  # the parity table draws others each day

# How far float32 may be from float64: relative to the tensor's largest value, and in roundings of the reference.
SMALLEST, ROUNDINGS = 1e-6, 6


def tzoo(*words):
    return subprocess.run([os.environ["TZOO"], *words], capture_output=True, text=True, timeout=300)


def flags_of(inputs):
    return [word for name, value in inputs.items() for word in ("--" + name, json.dumps(value.tolist()))]


def largest_error(model, names, actual, exact, mask):
    errors = ((hf.relative_error(model, name, actual, exact, mask), name) for name in names)
    return max(((math.inf if math.isnan(error) else error, name) for error, name in errors), default=(0, ""))


def roundings(model, head, inputs, expected, exact, names):
    """Largest errors of float32 in transformers: in `expected`, then in models whose weights differ by a rounding. Where
    little is left of large numbers (the gradient of a loss near 0), one of them alone may be exact by luck."""
    yield largest_error(model, names, expected, exact, inputs["attention_mask"])[0]
    generator = torch.Generator().manual_seed(0)
    for _ in range(4):
        other = copy.deepcopy(model)
        with torch.no_grad():
            for weight in other.parameters():
                weight.mul_(1 + torch.randn(weight.shape, generator=generator) * torch.finfo(torch.float32).eps)
        theirs = hf.expected_tensors(other, head, inputs)
        yield largest_error(model, names, theirs, hf.exact_tensors(other, head, inputs), inputs["attention_mask"])[0]


def error_of(model, head, inputs, actual, expected, exact, names):
    """(error, fault): how far the tensors are from float64, and what rounding does not explain of it."""
    error, name = largest_error(model, names, actual, exact, inputs["attention_mask"])
    rounding = 0
    for found in roundings(model, head, inputs, expected, exact, names):
        rounding = max(rounding, found)
        if error <= SMALLEST + ROUNDINGS * rounding:
            return error, ""
    return error, f"{name} is {error:.1e} from float64, where transformers' float32 is at most {rounding:.1e} from it"


def difference(model, head, inputs, actual, expected):
    """Of `actual` and transformers computing in float64, if rounding does not explain it: it may be a few times the largest
    that float32 has there, of outputs and gradients each. Empty if it does."""
    if sorted(actual) != sorted(expected):
        return f"tensors {sorted(actual)} instead of {sorted(expected)}"
    exact = hf.exact_tensors(model, head, inputs)
    for names in ([n for n in expected if n.startswith("grad.")], [n for n in expected if not n.startswith("grad.")]):
        fault = error_of(model, head, inputs, actual, expected, exact, names)[1]
        if fault:
            return fault
    return ""


class ForwardParity:
    """Mixed into a TestCase that has HEADS {head: class} and random_config(draw, head)."""

    COMPUTED = ()  # names of tensors that transformers computes, and so leaves out of files

    def random_model(self, seed):
        draw = random.Random(seed)
        head = list(self.HEADS)[seed % len(self.HEADS)]  # each, and with other configurations each time
        model = hf.random_model(self.HEADS[head], self.random_config(draw, head), seed)
        length = draw.randint(5, hf.longest_input(model))
        left, right = draw.randint(1, length - 3), draw.randint(1, length - 3)
        kind = model.config.model_type
        if kind == "modernbert" or getattr(model.config, "use_bidirectional_attention", False):
            # No defined answer where padding fills a window. Gemma's is exclusive.
            window = model.config.sliding_window - (kind == "gemma3_text")
            left, right = min(left, window), min(right, window)
        return head, model, hf.random_inputs(model, head, length, left, right)

    def forward(self, directory, inputs, *words):
        path = os.path.join(directory, "out.safetensors")
        done = tzoo("forward", "--model", directory, *flags_of(inputs), "--output", path, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return load_file(path)

    def save(self, model, head, directory, seed):
        """Saves the model; a family may save it in another form that must load as well."""
        model.save_pretrained(directory)
        return []

    def test_random_models(self):
        for seed in SEEDS:
            head, model, inputs = self.random_model(seed)
            expected = hf.expected_tensors(model, head, inputs)
            with self.subTest(seed=seed, head=head), tempfile.TemporaryDirectory() as directory:
                words = self.save(model, head, directory, seed)
                actual = self.forward(directory, inputs, *words, *(["--gradients"] if "labels" in inputs else []))
                self.assertEqual(difference(model, head, inputs, actual, expected), "")

    def test_theirs_to_ours_to_theirs(self):
        """Every tensor comes back bit for bit, and from_pretrained opens what came back as the class that it was."""
        for seed in range(len(self.HEADS)):
            head, model, inputs = self.random_model(seed)
            with self.subTest(head=head), tempfile.TemporaryDirectory() as folder:
                source, target = os.path.join(folder, "theirs"), os.path.join(folder, "ours")
                model.save_pretrained(source)
                done = tzoo("export", "--model", source, "--format", "huggingface", "--output", target, "--verify")
                self.assertEqual(done.returncode, 0, done.stderr)
                before, after = (load_file(os.path.join(path, "model.safetensors")) for path in (source, target))
                self.assertEqual(sorted(set(after) - set(self.COMPUTED)), sorted(set(before) - set(self.COMPUTED)))
                for name, tensor in before.items():
                    self.assertTrue(torch.equal(after[name].view(torch.uint8), tensor.view(torch.uint8)), name)
                with open(os.path.join(target, "config.json"), encoding="utf-8") as file:
                    self.assertEqual(json.load(file)["architectures"], [type(model).__name__])
                opened, report = type(model).from_pretrained(target, output_loading_info=True, attn_implementation="eager")
                self.assertEqual({key: list(names) for key, names in report.items() if names}, {})
                for name, tensor in model.state_dict().items():
                    self.assertTrue(torch.equal(opened.state_dict()[name], tensor), name)
                # The configuration, by what is computed: in float64, since PyTorch's float32 depends on where weights lie.
                with torch.no_grad(), hf.float64():
                    outputs = (hf.call(each.double(), head, inputs).values() for each in (opened, model))
                    for found, expected in zip(*outputs):
                        if isinstance(expected, torch.Tensor):
                            torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)

    def check_faults(self, directory, cases):
        """cases: [words, exit code, texts that the error must hold]."""
        output = os.path.join(directory, "out.safetensors")
        for words, code, said in cases:
            with self.subTest(words=words):
                done = tzoo("forward", "--model", directory, "--output", output, *words)
                self.assertEqual(done.returncode, code, done.stderr)
                errors = [line for line in done.stderr.splitlines() if line.startswith("error:")]
                self.assertEqual(len(errors), 1, done.stderr)
                for text in said:
                    self.assertIn(text, errors[0])
                self.assertFalse(os.path.exists(output))
