"""tzoo bench, and --weights."""

import json
import math
import pathlib
import tempfile
import unittest

from tiny_checkpoint import write_checkpoint
from tzoo_runner import WITHOUT_BFLOAT16, CommandTest, run  # also the path to support/
import tier

GOLDEN = pathlib.Path(__file__).parents[1] / "golden"
KINDS = ["float32", "bfloat16", "int8", "int4"]


class BenchTest(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = str(self.folder / "model")
        write_checkpoint(self.model, tokenizer=True)

    def figures(self, *words):
        return json.loads(self.succeed("bench", *words))

    def test_decoding_and_prefill_of_all_kinds_of_weights(self):
        sizes = {}
        for kind in KINDS:
            found = self.figures("decode", "--model", self.model, "--weights", kind, "--prompt_tokens", 4,
                                 "--new_tokens", 6, "--batch_size", 2, "--rounds", 1, "--threads", 2)
            self.assertEqual((found["work"], found["weights"], found["threads"]), ("decode", kind, 2))
            for name in ("decode_tokens_per_second", "prefill_ms", "peak_memory_mb", "memory_gb_per_second"):
                self.assertGreater(found[name], 0)
            sizes[kind] = found["packed_mb"]
        self.assertGreater(sizes["float32"], sizes["bfloat16"])
        self.assertGreater(sizes["bfloat16"], sizes["int8"])
        found = self.figures("prefill", "--model", self.model, "--prompt_tokens", 9, "--rounds", 1)
        self.assertNotIn("decode_tokens_per_second", found)
        self.assertGreater(self.figures("load", "--model", self.model, "--rounds", 1)["seconds_to_first_token"], 0)

    @tier.long
    def test_the_machine_and_what_work_reaches_of_it(self):
        found = self.figures("compare", "--json", "--threads", 2, "--rounds", 1)
        # Elsewhere training in bfloat16 computes in float32, whose row is there.
        trained = KINDS[:2] if found["kernels"] in ("portable", "avx512_bf16", "amx_bf16", "neon_bf16") else KINDS[:1]
        self.assertEqual((found["work"], found["threads"], list(found["products_gflops"])), ("compare", 2, KINDS))
        self.assertEqual([(row["work"], row["numbers"], row["limit"]) for row in found["reached"]],
                         [(work, kind, limit) for kind in KINDS for work, limit in (("decode", "memory"), ("prefill", "products"))] +
                         [("train", kind, "products") for kind in trained])
        for value in (found["memory_gb_per_second"], *found["products_gflops"].values(),
                      *(row[name] for row in found["reached"] for name in ("tokens_per_second", "share"))):
            self.assertGreater(value, 0)

    def test_the_kernels_are_those_that_zoo_kernels_names(self):
        words = ("bench", "prefill", "--model", self.model, "--prompt_tokens", 9, "--rounds", 1)
        self.assertEqual(json.loads(self.succeed(*words, ZOO_KERNELS="portable"))["kernels"], "portable")

    def test_an_update_of_a_training_and_what_it_goes_into(self):
        tiny = ("--n_layer", 1, "--n_head", 2, "--n_embd", 16, "--block_size", 16, "--batch_size", 4, "--vocab_size", 40, "--rounds", 3,
                "--threads", 1)
        for task, family, dtype, tokens in (("lm", "gpt2", "float32", 64), ("mlm", "bert", "bfloat16", 64), ("seq2seq", "t5", "float16", 128)):
            found = self.figures("train", "--task", task, *tiny, "--dtype", dtype)
            self.assertEqual([found[name] for name in ("work", "task", "model_type", "dtype", "updates", "threads", "ranks")],
                             ["train", task, family, dtype, 3, 1, 1])
            for name in ("data_ms", "forward_ms", "backward_ms", "optimizer_ms", "update_ms_min", "update_mb", "peak_memory_mb"):
                self.assertGreater(found[name], 0)
            self.assertAlmostEqual(found["tokens_per_second"] * found["update_ms"] / 1000, tokens, places=3)
            self.assertLess(abs(found["loss"] - math.log(40)), 1)  # that of guessing
        for kernels, type in ((WITHOUT_BFLOAT16, "float32"), ("portable", "bfloat16")):
            words = ("bench", "train", *tiny, "--dtype", "bfloat16")
            found = json.loads(self.succeed(*words, ZOO_KERNELS=kernels))
            self.assertEqual((found["dtype"], found["computed_in"]), ("bfloat16", type))

    def test_a_training_of_a_recipe_of_a_checkpoint_and_of_less_memory(self):
        found = self.figures("train", "--recipe", "gpt-4x128", "--rounds", 1, "--threads", 1)
        # Embeddings, and in each layer 12 matrices of C x C and the gains of two norms; nanoGPT says 0.80M.
        self.assertEqual(found["parameters"], 65 * 128 + 64 * 128 + 4 * (12 * 128 * 128 + 2 * 128) + 128)
        self.assertEqual((found["recipe"], found["batch_size"], found["block_size"]), ("gpt-4x128", 12, 64))
        text = self.folder / "long.txt"
        text.write_text("the cat sat on the mat. " * 60)
        found = self.figures("train", "--init_from", self.model, "--dataset", text, "--block_size", 16, "--rounds", 1,
                             "--gradient_accumulation_steps", 2, "--batch_size", 3)
        self.assertAlmostEqual(found["tokens_per_second"] * found["update_ms"] / 1000, 2 * 3 * 16, places=3)
        deep = ("--n_layer", 8, "--n_embd", 32, "--batch_size", 8, "--vocab_size", 20, "--rounds", 1)
        kept, recomputed = (self.figures("train", *deep, "--activation_checkpointing", value)["update_mb"] for value in ("false", "true"))
        self.assertLess(recomputed, kept / 2)
        self.assert_one_error(run("bench", "train", "--task", "classification"), 2, "--dataset random", "classification")

    def test_modules_and_packed_weights_say_the_same(self):
        words = ("generate", "--model", self.model, "--input_ids", "[[3, 1, 4, 1, 5], [9]]", "--temperature", 0,
                 "--max_new_tokens", 40, "--json")
        ids = [json.loads(self.succeed(*words, "--weights", kind))["ids"] for kind in ("modules", "float32", "auto")]
        self.assertEqual(ids[0], ids[1])
        self.assertEqual(ids[0], ids[2])

    def test_kinds_of_caches(self):
        words = ("decode", "--model", self.model, "--prompt_tokens", 4, "--new_tokens", 6, "--rounds", 1)
        # Two heads of 8 in each of two layers: 8 of keys and, up to 16, of values, and a scale for each of both.
        for kind, bytes_per_token in (("float32", 4 * 24 * 4), ("bfloat16", 4 * 24 * 2), ("int8", 4 * (24 + 8))):
            found = self.figures(*words, "--weights", "bfloat16", "--cache", kind)
            self.assertEqual((found["cache"], found["cache_bytes_per_token"]), (kind, bytes_per_token))
        for weights, kind in (("float32", "float32"), ("int8", "bfloat16")):
            self.assertEqual(self.figures(*words, "--weights", weights)["cache_bytes_per_token"],
                             self.figures(*words, "--weights", weights, "--cache", kind)["cache_bytes_per_token"])
        begin = ("generate", "--model", self.model, "--input_ids", "[[1]]", "--cache", "int8")
        self.assert_one_error(run(*begin, "--weights", "modules"), 2, "--cache int8", "--weights modules")
        self.assert_one_error(run("evaluate", "--model", self.model, "--dataset", "x", "--cache", "int8"), 2, "--cache", "--weights")
        text = self.text()
        errors = [json.loads(self.succeed("evaluate", "--model", self.model, "--dataset", text, "--block_size", 16,
                                          "--eval_iters", 1, "--weights", "float32", "--cache", kind, "--json"))["largest_logit_error"]
                  for kind in ("float32", "int8", "bfloat16")]
        self.assertLess(errors[0], 1e-3)
        self.assertGreater(errors[1], errors[0])
        self.assertGreater(errors[2], errors[0])

    def text(self):
        text = self.folder / "text.txt"
        text.write_text("the cat sat on the mat. " * 60)
        return text

    def test_perplexity_by_precision(self):
        text = self.text()
        loss, error = {}, {}
        for kind in ("modules", *KINDS):
            done = run("evaluate", "--model", self.model, "--dataset", text, "--block_size", 16, "--eval_iters", 3,
                       "--weights", kind, "--json")
            self.assertEqual(done.code, 0, done.err)
            found = json.loads(done.out)
            self.assertAlmostEqual(math.log(found["perplexity"]), found["loss"], places=4)
            loss[kind], error[kind] = found["loss"], found.get("largest_logit_error")
        self.assertAlmostEqual(loss["modules"], loss["float32"], places=4)
        self.assertNotEqual(loss["float32"], loss["int8"])
        self.assertAlmostEqual(loss["bfloat16"] / loss["float32"], 1, delta=0.05)
        self.assertIsNone(error["modules"])
        self.assertLess(error["float32"], 1e-3)
        # bfloat16 has 8 bits, int8 7 and a common scale, int4 3.
        self.assertLess(error["float32"], error["bfloat16"])
        self.assertLess(error["bfloat16"], error["int4"])
        self.assertLess(error["int8"], error["int4"])

    def test_a_decoder_encodes_sentences(self):
        for kind in ("modules", *KINDS):
            self.assertGreater(self.figures("encode", "--model", self.model, "--lengths", "3,9", "--weights", kind)["sentences_per_second"], 0)

    def test_what_does_not_fit_is_said(self):
        for lengths in ("3,", "3;9", "0", "3,99999"):
            self.assert_one_error(run("bench", "encode", "--model", self.model, "--lengths", lengths), 2, "--lengths: expected numbers in [1, ", lengths)
        done = run("bench", "encode", "--model", GOLDEN / "t5" / "base")
        self.assert_one_error(done, 1, "is an encoder-decoder; use bench t5")
        for weights in ("auto", "int8"):
            done = run("bench", "decode", "--model", GOLDEN / "bert" / "base", "--weights", weights)
            self.assert_one_error(done, 1, "bert", "base head", "causal-lm")
        done = run("generate", "--model", self.model, "--input_ids", "[[1]]", "--weights", "int3")
        self.assert_one_error(done, 2, "--weights", "int4")


if __name__ == "__main__":
    unittest.main()
