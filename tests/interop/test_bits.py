"""Packed inference has the same bits however it is asked: alone, among other rows, after a prompt in pieces or one whose
beginning was read before, with any number of threads, and with each set of instructions that has fused multiply-adds."""

import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import torch
import transformers

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from serving import Server  # noqa: E402
from text_models import byte_level  # noqa: E402

PROGRAM = os.environ["TZOO_PROGRAM"]
THREADS = (2, 3)  # beside one
WEIGHTS = ("float32", "bfloat16", "int8", "int4")
# These add up a row's products in one order. Three exceptions: BFLOAT16_PRODUCTS multiply bfloat16 weights by instructions of
# their own, amx_bf16 also a cache of bfloat16, and portable rounds each product before it adds it.
KERNELS = ("avx2", "avx_vnni", "avx512", "avx512_bf16", "amx_bf16", "portable")
BFLOAT16_PRODUCTS = ("avx512_bf16", "amx_bf16")


def runs_here(kernels):
    return subprocess.run([PROGRAM, "data", "list"], env={**os.environ, "ZOO_KERNELS": kernels}, capture_output=True).returncode == 0


class BitsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.model = folder.name
        torch.manual_seed(3)
        tokenizer = byte_level(bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>")
        config = transformers.Qwen2Config(vocab_size=len(tokenizer), hidden_size=96, intermediate_size=224, num_hidden_layers=2,
                                          num_attention_heads=6, num_key_value_heads=2, max_position_embeddings=2048, initializer_range=0.2,
                                          bos_token_id=0, eos_token_id=2, pad_token_id=1)
        transformers.Qwen2ForCausalLM(config).save_pretrained(cls.model)
        tokenizer.save_pretrained(cls.model)
        draw = random.Random(7)
        # Lengths around the pieces in which long prompts are read.
        cls.prompts = [[draw.randrange(3, len(tokenizer)) for _ in range(length)] for length in (1, 33, 130, 511, 900)]

    def answers(self, weights, kernels, threads, prompts):
        """Ids and log-probabilities of each prompt's continuation, of one run for all."""
        done = subprocess.run([PROGRAM, "generate", "--model", self.model, "--input_ids", json.dumps(prompts), "--json", "--logprobs",
                               "--temperature", "0", "--max_new_tokens", "6", "--weights", weights, "--threads", str(threads)],
                              env={**os.environ, **({"ZOO_KERNELS": kernels} if kernels else {})}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        return list(zip(answer["ids"], answer["logprobs"]))

    def test_command_line(self):
        for weights in WEIGHTS:
            expected = {}
            for number, kernels in enumerate(filter(runs_here, KERNELS)):
                own = (kernels == "portable" or (weights == "bfloat16" and kernels in BFLOAT16_PRODUCTS)
                       or (weights != "float32" and kernels == "amx_bf16"))
                order = kernels if own else "fused"
                if number == 0:
                    expected[order] = [self.answers(weights, kernels, 1, [prompt])[0] for prompt in self.prompts]
                    self.assertEqual(len({json.dumps(each) for each in expected[order]}), len(self.prompts))
                elif order not in expected:
                    expected[order] = self.answers(weights, kernels, 1, self.prompts)
                for threads in THREADS if number == 0 else THREADS[-1:]:
                    with self.subTest(weights=weights, kernels=kernels, threads=threads):
                        self.assertEqual(self.answers(weights, kernels, threads, self.prompts), expected[order])
            for order, rows in expected.items():
                for (_, ours), (_, theirs) in zip(expected["portable"], rows):
                    with self.subTest(weights=weights, order=order):
                        self.assertAlmostEqual(ours[0], theirs[0], delta=1e-4 if weights == "float32" else 0.05)

    def test_server(self):
        rows = [prompt[:length] for prompt in self.prompts[2:] for length in (len(prompt) // 2, len(prompt))] + self.prompts[:2]
        for weights in WEIGHTS:
            expected = [logprobs for _, logprobs in self.answers(weights, "", 1, rows)]
            server = Server("--model", self.model, "--weights", weights, "--parallel", "8")
            try:
                def asked(row):
                    answer = server.post("/v1/completions", prompt=row, max_tokens=6, temperature=0, logprobs=0)
                    return answer["choices"][0]["logprobs"]["token_logprobs"], answer["usage"]["prompt_tokens_details"]["cached_tokens"]

                with concurrent.futures.ThreadPoolExecutor(8) as clients:
                    for name, order in (("together", rows), ("reused", rows[::-1]), ("twice each", rows + rows)):
                        found = list(clients.map(asked, order))
                        for row, (logprobs, _) in zip(order, found):
                            with self.subTest(weights=weights, way=name, length=len(row)):
                                self.assertEqual(logprobs, expected[rows.index(row)])
                        reused = sum(cached for _, cached in found)
                self.assertGreater(reused, 0)
            finally:
                server.close()


if __name__ == "__main__":
    unittest.main()
