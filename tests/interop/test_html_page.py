"""tzoo export --format html: the page in a real browser, from a file, beside tzoo serve, whose /look is compared with transformers."""

import base64
import json
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

import numpy
import tokenizers
import transformers
from selenium.webdriver.common.keys import Keys
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

import test_tokenizers as texts
from browser import Browser
from test_analysis import hf
from text_models import tzoo

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from serving import Server  # noqa: E402

GALLERY = pathlib.Path(__file__).resolve().parents[2] / "apps/page_engine"
GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
KINDS = {"ForCausalLM": "decoder", "LMHeadModel": "decoder", "ForMaskedLM": "encoder", "ForConditionalGeneration": "pair", "MTModel": "pair"}
REFUSED = {"deberta-v2": "position = disentangled", "mpnet": "position = learned_and_t5_buckets", "mixtral": "num_experts = 3",
           "qwen2_moe": "num_experts = 4", "qwen3_moe": "num_experts = 4"}
# Answers of the page's engine: a worker of the engine's text, as the page makes one.
ASK = """
const [engine, header, weights, requests, done] = arguments;
const worker = new Worker(URL.createObjectURL(new Blob([engine], { type: "text/javascript" }))), answers = [];
const plain = (value) => JSON.parse(JSON.stringify(value, (_, each) => (each instanceof Uint8Array ? btoa(String.fromCharCode(...each)) : each)));
worker.onmessage = ({ data }) => { answers.push(plain(data)); if (answers.length > requests.length) { worker.terminate(); done(answers.slice(1)); } };
worker.onerror = ({ message }) => done([{ error: { message } }]);
worker.postMessage({ number: -1, header: JSON.parse(header), weights });
requests.forEach((request, number) => worker.postMessage({ number, ...request }));
"""


def words(count, by, number, first):
    return " ".join(f"w{(by * i + first) % count}" for i in range(number))


def save_words(directory, count):
    model = tokenizers.Tokenizer(models.WordLevel({f"w{i}": i for i in range(count)}, unk_token="w0"))
    model.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    model.save(str(directory / "tokenizer.json"))


def export(directory, page, *flags):
    return tzoo("export", "--model", directory, "--format", "html", "--output", page, *flags)


def parts_of(page):
    text = page.read_text()
    engine, header = (re.search(rf'<script type="[^"]*" id="{name}">(.*?)</script>', text, re.DOTALL)[1] for name in ("engine", "model-header"))
    weights = re.search('<script type="text/plain" class="model-weights">(.*?)</script>', text)[1]
    return engine, header, [weights[:400], weights[400:]]  # a large model's are in pieces


class HtmlPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.browser.driver.set_script_timeout(120)

    def ask(self, page, requests):
        self.browser.open("about:blank")
        return self.browser.driver.execute_async_script(ASK, *parts_of(page), requests)

    def assert_near(self, found, expected, where, tolerance=1e-4):
        if isinstance(expected, dict):
            self.assertEqual(sorted(found), sorted(expected), where)
            for key in expected.keys() - {"rest"}:
                self.assert_near(found[key], expected[key], f"{where}.{key}", tolerance)
        elif isinstance(expected, list):
            self.assertEqual(len(found), len(expected), where)
            for i, (one, other) in enumerate(zip(found, expected)):
                self.assert_near(one, other, f"{where}[{i}]", tolerance)
        elif ".steps." in where and isinstance(expected, str):
            found, expected = (numpy.frombuffer(base64.b64decode(each), numpy.float32) for each in (found, expected))
            self.assertEqual(found.shape, expected.shape, where)
            self.assertEqual((found == -numpy.inf).tolist(), (expected == -numpy.inf).tolist(), where)
            seen = expected != -numpy.inf
            most = max(1, abs(expected[seen]).max(initial=0))
            self.assertLess(abs(found[seen] - expected[seen]).max(initial=0), tolerance * most, where)
        elif where.endswith((".weights", ".rollout")):
            found, expected = base64.b64decode(found), base64.b64decode(expected)
            self.assertEqual(len(found), len(expected), where)
            self.assertLessEqual(max(abs(a - b) for a, b in zip(found, expected)), 1, where)
        elif isinstance(expected, float):
            self.assertLess(abs(found - expected), tolerance * max(1, abs(expected)), where)
        else:
            self.assertEqual(found, expected, where)

    def requests(self, kind, count):
        base = {"text": words(count, 3, 9, 2), "layer": 0} | ({"target": "w3 w4 w1"} if kind == "pair" else {})
        patch = {"patch_text": words(count, 5, 9, 1), "patch_layer": 0}
        yield from (base, base | {"heads": ["0.1"]}, base | {"sublayers": ["0.attention", "0.feed_forward"]}, base | {"layers": ["0"]},
                    base | {"position": 1}, base | {"heads": ["0.0"], "sublayers": ["0.feed_forward"], "with": "mean"},
                    base | {"head": 1}, base | {"head": 0, "query": 2}, base | patch | {"patch_positions": [1]}, base | patch | {"patch_part": "head", "patch_head": 1})
        if kind == "pair":
            yield from (base | {"head": 1, "query": 2, "cross": True}, base | {"stack": "encoder", "head": 1}, base | {"stack": "encoder"}, base | {"cross_heads": ["0.1"]}, base | {"stack": "encoder", "sublayers": ["0.attention"]})
        if kind != "encoder":  # a run goes on, is shortened, and is another one's beginning
            yield from (base | {"append": [3, 5]}, base | {"append": [3]}, base | {"append": [4, 2], "heads": ["0.1"]})

    def test_every_family_answers_as_the_server(self):
        saved, expected_refusals = [], set(REFUSED)
        for config in sorted(GOLDEN.glob("*/*/config.json")):
            settings = json.loads(config.read_text())
            kind = next((kind for end, kind in KINDS.items() if (settings.get("architectures") or [""])[0].endswith(end)), None)
            if kind is None:
                continue
            family, directory = config.parent.parent.name, self.folder / f"{config.parent.parent.name}-{config.parent.name}"
            directory.mkdir()
            for file in config.parent.iterdir():
                (directory / file.name).symlink_to(file)
            save_words(directory, settings["vocab_size"])
            done = export(directory, directory.with_suffix(".html"), "--weights", "float32")
            if family in REFUSED:
                self.assertIn(f"the page's engine has no {REFUSED[family]}", done.stderr)
                expected_refusals.discard(family)
                continue
            self.assertEqual(done.returncode, 0, done.stderr)
            saved.append((directory, kind, settings["vocab_size"]))
        odd = self.folder / "t5-odd"  # buckets that no half has alike
        hf.random_model(transformers.T5ForConditionalGeneration, transformers.T5Config(
            vocab_size=17, d_model=12, d_kv=6, d_ff=16, num_layers=2, num_heads=2, relative_attention_num_buckets=7,
            relative_attention_max_distance=8, pad_token_id=0, decoder_start_token_id=0, eos_token_id=1), 3).save_pretrained(odd)
        save_words(odd, 17)
        self.assertEqual(export(odd, odd.with_suffix(".html"), "--weights", "float32").returncode, 0)
        saved.append((odd, "pair", 17))
        self.assertEqual(expected_refusals, set())
        self.assertGreater(len(saved), 50)
        server = Server(*[word for directory, *_ in saved for word in ("--model", directory)])
        self.addCleanup(server.close)
        for directory, kind, count in saved:
            requests = list(self.requests(kind, count))
            answers = self.ask(directory.with_suffix(".html"), [{"path": "/look", "fields": fields} for fields in requests])
            for fields, found in zip(requests, answers, strict=True):
                where = f"{directory.name} {fields}"
                self.assertNotIn("error", found, where)
                self.assert_near(found["answer"], server.post("/look", model=directory.name, **fields), where)

    def test_int8_is_the_model_with_rounded_weights(self):
        """float32 arithmetic with each row rounded to its largest weight / 127: as tzoo computes it with such weights in float32."""
        directory, rounded = self.folder / "whole", self.folder / "rounded"
        model = hf.random_model(transformers.GPT2LMHeadModel, transformers.GPT2Config(
            n_positions=32, n_embd=12, n_layer=2, n_head=2, vocab_size=17, bos_token_id=None, eos_token_id=None), 3)
        model.save_pretrained(directory)
        for name, weight in model.named_parameters():
            if weight.dim() == 2 and "wpe" not in name:
                rows = weight.data.T if "wte" not in name else weight.data  # Conv1D has its outputs in columns
                scale = rows.abs().amax(1, keepdim=True) / 127
                rows.copy_((rows / scale).round() * scale)
        model.save_pretrained(rounded)
        for each in (directory, rounded):
            save_words(each, 17)
        self.assertEqual(export(directory, self.folder / "int8.html").returncode, 0)
        server = Server("--model", rounded)
        self.addCleanup(server.close)
        fields = {"text": words(17, 3, 9, 2), "layer": 1}
        found = self.ask(self.folder / "int8.html", [{"path": "/look", "fields": fields}])[0]["answer"]
        self.assert_near(found["answer"], server.post("/look", **fields)["answer"], "int8", 1e-5)

    def assert_encodes_alike(self, directory, lines):
        page = directory.with_suffix(".html")
        done = export(directory, page)
        self.assertEqual(done.returncode, 0, done.stderr)
        answers = self.ask(page, [{"path": "/tokenize", "fields": {"content": line, "add_special": True}} for line in lines])
        expected = [json.loads(line)["ids"] for line in texts.tzoo("encode", directory, lines, "--json", "--offsets")]
        for line, found, ids in zip(lines, answers, expected, strict=True):
            self.assertEqual(found.get("answer", found), {"tokens": ids}, f"{directory.name}: {line!r}")

    def test_tokenizers(self):
        def trained(model, trainer, **parts):
            made = tokenizers.Tokenizer(model)
            for name, part in parts.items():
                setattr(made, name, part)
            made.train_from_iterator(texts.CORPUS[:1500], trainer)
            return made

        alphabet = pre_tokenizers.ByteLevel.alphabet()
        llama3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
        made = {
            "gpt2": trained(models.BPE(), trainers.BpeTrainer(vocab_size=900, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"]),
                            pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=False), decoder=decoders.ByteLevel()),
            "llama3": trained(models.BPE(ignore_merges=True), trainers.BpeTrainer(vocab_size=900, initial_alphabet=alphabet, special_tokens=["<s>"]),
                              pre_tokenizer=pre_tokenizers.Sequence([pre_tokenizers.Split(tokenizers.Regex(llama3), "isolated"),
                                                                     pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
                              decoder=decoders.ByteLevel(), post_processor=processors.TemplateProcessing("<s> $A", None, [("<s>", 0)])),
            "llama2": trained(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"),
                              trainers.BpeTrainer(vocab_size=900, limit_alphabet=200,
                                                  special_tokens=["<unk>", "<s>", *(f"<0x{i:02X}>" for i in range(256))]),
                              normalizer=normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
                              decoder=decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                                         decoders.Strip(" ", 1, 0)])),
            "bert": trained(models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer(vocab_size=900, special_tokens=texts.BERT_TOKENS),
                            normalizer=normalizers.BertNormalizer(), pre_tokenizer=pre_tokenizers.BertPreTokenizer(),
                            decoder=decoders.WordPiece(), post_processor=processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))),
            "words": trained(models.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(vocab_size=300, special_tokens=["<unk>"]),
                             pre_tokenizer=pre_tokenizers.Whitespace()),
            "many pieces": tokenizers.Tokenizer(models.Unigram([("<unk>", 0), *((chr(97 + i) if i < 26 else f"x{i}", -3 - i / 1e5) for i in range(150000))], unk_id=0)),
            "unigram": trained(models.Unigram(), trainers.UnigramTrainer(vocab_size=900, special_tokens=["<unk>"], unk_token="<unk>"),
                               normalizer=normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Lowercase()]),
                               pre_tokenizer=pre_tokenizers.Metaspace(), decoder=decoders.Metaspace()),
        }
        # Letters of Unicode 8, which tokenizers and a browser class alike.
        lines = ["constructor __proto__", "``undefined``", "aⅧb ⅷ"] + [line for line in texts.LINES[8:1500] if all(ord(c) < 0x500 or 0x4E00 <= ord(c) < 0x4F00 for c in line)]
        self.assertGreater(len(lines), 100)
        for name, tokenizer in made.items():
            directory = self.folder / f"tokens-{name}"
            sizes = {"vocab_size": tokenizer.get_vocab_size() + 1, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1,
                     "bos_token_id": None, "eos_token_id": None}
            kind, config = ((transformers.LlamaForCausalLM, transformers.LlamaConfig(intermediate_size=4, **sizes)) if name == "llama2" else
                            (transformers.GPT2LMHeadModel, transformers.GPT2Config(**sizes)))
            hf.random_model(kind, config, 1).save_pretrained(directory)
            if name.startswith("llama"):  # transformers' class changes parts of Llama's and adds a token to the other
                tokenizer.save(str(directory / "tokenizer.json"))
                settings = {"tokenizer_class": "LlamaTokenizer", "legacy": False} if name == "llama2" else {}
                (directory / "tokenizer_config.json").write_text(json.dumps(settings))
                self.assert_encodes_alike(directory, lines[:60])
            transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(directory)
            if name == "unigram":  # older files have the pattern itself
                parts = json.loads((directory / "tokenizer.json").read_text())
                parts["normalizer"]["normalizers"][0]["pattern"] = "``"
                (directory / "tokenizer.json").write_text(json.dumps(parts))
            self.assert_encodes_alike(directory, lines)

    def test_the_page(self):
        letters = self.folder / "letters"
        (self.folder / "letters.txt").write_text("the cat sat on a mat")
        self.assertEqual(tzoo("tokenizer", "train", "--kind", "char", "--input", self.folder / "letters.txt", "--out_dir", letters).returncode, 0)
        hf.random_model(transformers.GPT2LMHeadModel, transformers.GPT2Config(
            n_positions=32, n_embd=12, n_layer=2, n_head=2, vocab_size=len(set("the cat sat on a mat")), bos_token_id=None,
            eos_token_id=None), 3).save_pretrained(letters)
        page = self.folder / "letters <b>.html"
        self.assertEqual(export(letters, page, "--weights", "float32").returncode, 0)
        server = Server("--model", letters)
        self.addCleanup(server.close)
        browser = self.browser
        browser.open(page.as_uri())

        def bars():
            return browser.script("return [...document.querySelectorAll('#bars .name')].map((each) => each.firstChild.textContent)")

        def type_text(text):
            browser.one("#text").send_keys(Keys.CONTROL, "a", Keys.NULL, text)

        browser.wait(bars)
        type_text("the cat")
        best = server.post("/look", text="the cat")["answer"]["names"]
        browser.wait(lambda: [name.replace("␣", " ") for name in bars()[:5]] == best[:5])
        self.assertIn("letters: gpt2, causal-lm, 2 blocks of 2 heads, width 12", browser.one("#about").text)
        self.assertIn("context of 32 tokens", browser.one("#about").text)
        # A part is switched off on the page.
        browser.one("[data-site='heads 0.1']").click()
        moved = server.post("/look", text="the cat", heads=["0.1"])["answer"]["divergence"]
        browser.wait(lambda: browser.one("#moved").text.startswith("The distribution moved by"))
        self.assertAlmostEqual(float(re.search(r"by ([\d.e-]+) bits", browser.one("#moved").text)[1]), moved, delta=1e-2 * moved)
        browser.one("#chips button").click()
        browser.wait(lambda: not browser.one("#moved").is_displayed())
        # The same seed gives the same text, beyond the context's end.
        runs = []
        for _ in range(2):
            type_text("the cat")
            browser.script("document.getElementById('seed').value = '7'")
            browser.one("#run").click()
            browser.wait(lambda: browser.one("#run").text == "Run" and browser.one("#slid").is_displayed())
            runs.append(browser.one("#text").get_property("value"))
        self.assertEqual(runs[0], runs[1])
        self.assertGreaterEqual(len(runs[0]), 16)
        # Errors stand at their cause, and are the server's, with their fields.
        type_text("the Cat")
        browser.wait(lambda: "does not know “C”" in browser.one("#text-error").text)
        self.assertEqual(browser.script("return performance.getEntriesByType('resource').filter(({ name }) => !name.startsWith('blob:'))"), [])
        self.assertEqual(browser.faults(), [])
        requests = [{"text": "the cat " * 5}, {"text": ""}]
        for fields, found in zip(requests, self.ask(page, [{"path": "/look", "fields": fields} for fields in requests]), strict=True):
            expected = json.loads(server.request("POST", "/look", fields)[1])["error"]
            for each in ("message", "tokens", "limit"):
                self.assertEqual(found["error"].get(each), expected.get(each), fields)

    def test_the_gallery(self):
        """A front page is made from the pages' files, saved, and opened again beside them."""
        pages, directories = [], []
        for name, weights in (("one", "int8"), ("two <b>", "float32")):
            directory = self.folder / name
            hf.random_model(transformers.GPT2LMHeadModel, transformers.GPT2Config(
                n_positions=8, n_embd=4, n_layer=1, n_head=1, vocab_size=17, bos_token_id=None, eos_token_id=None), 1).save_pretrained(directory)
            save_words(directory, 17)
            directories.append(directory)
            pages.append(self.folder / f"{name}.html")
            self.assertEqual(export(directory, pages[-1], "--weights", weights).returncode, 0)
        browser = self.browser
        browser.open((GALLERY / "gallery.html").as_uri())
        browser.one("#files").send_keys("\n".join(map(str, [*pages, self.folder / "one/tokenizer.json"])))
        browser.wait(lambda: browser.one("#refused").text.endswith("tokenizer.json") and len(browser.all("#cards li")) == 2)
        browser.one("[data-field=line]").send_keys("w1 </script> w2")
        browser.one("#heading").send_keys(" of 2026")
        browser.script("window.made = []; const url = URL.createObjectURL; URL.createObjectURL = (blob) => { made.push(blob); return url(blob); }")
        browser.one("#save").click()
        (self.folder / "index.html").write_text(browser.driver.execute_async_script("const [done] = arguments; made[0].text().then(done)"))
        browser.open((self.folder / "index.html").as_uri())
        self.assertEqual(browser.one("h1").text, "Models of 2026")
        self.assertEqual([each.text for each in browser.all("h2")], ["one", "two <b>"])
        self.assertEqual(browser.one("q").text, "w1 </script> w2")
        self.assertIn("gpt2: writes texts. 1 block of 1 head, width 4", browser.one(".about").text)
        pictures = [each.get_attribute("src") for each in browser.all("img")]
        self.assertTrue(all(each.startswith("data:image/png") for each in pictures))
        # The same weights, rounded or not, look alike: a pixel's share of blue differs by what was rounded.
        colours = [browser.driver.execute_async_script(
            "const [at, done] = arguments, image = document.images[at]; image.decode().then(() => { const c = document.createElement('canvas');"
            " c.width = image.naturalWidth; c.height = image.naturalHeight; const x = c.getContext('2d'); x.drawImage(image, 0, 0);"
            " done([...x.getImageData(0, 0, c.width, c.height).data]); })", at) for at in range(2)]
        self.assertEqual(len(colours[0]), 4 * 4 * 17)
        weights = transformers.GPT2LMHeadModel.from_pretrained(self.folder / "two <b>").transformer.wte.weight.detach().flatten().tolist()
        for i, weight in enumerate(weights):
            red, blue = colours[1][4 * i], colours[1][4 * i + 2]
            self.assertEqual(weight > 0, blue > red, i)
        for width in (390, 1280):
            for dark in (False, True):
                browser.resize(width, 900, dark)
                self.assertEqual(browser.hindrances(), [])
        browser.resize(1280, 1000)
        browser.all("h2 a")[1].click()
        browser.wait(lambda: browser.all("#bars li") and "two <b>" in browser.one("#about").text)
        self.assertEqual(browser.faults(), [])

        # The same of tzoo itself, from the models.
        def made(site, *words):
            return tzoo("export", "--format", "html", "--output", site, "--weights", "float32", *words)
        site, words = self.folder / "site", [word for each in directories for word in ("--gallery", str(each))]
        for _ in range(2):  # it replaces its own
            done = made(site, *words)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(each.name for each in site.iterdir()), ["index.html", "one.html", "two <b>.html"])
        self.assertEqual((site / "two <b>.html").read_bytes(), pages[1].read_bytes())
        browser.open((site / "index.html").as_uri())
        self.assertEqual([each.text for each in browser.all("h2")], ["one", "two <b>"])
        self.assertIn("gpt2: writes texts. 1 block of 1 head, width 4", browser.one(".about").text)
        self.assertEqual(browser.all("img")[1].get_attribute("src"), pictures[1])
        browser.all("h2 a")[1].click()
        browser.wait(lambda: browser.all("#bars li") and "two <b>" in browser.one("#about").text)
        self.assertEqual(browser.faults(), [])
        shutil.copy(self.folder / "index.html", site)  # as somebody has changed it
        for words, said in [(words, "exists and is no front page"), ((*words, "--gallery", str(directories[0])), "another page is called"),
                            ((*words, "--model", str(directories[0])), "--gallery names the models"), ((*words, "--format", "onnx"), "needs --format html")]:
            done = made(site, *words)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr)
        self.assertEqual((site / "index.html").read_bytes(), (self.folder / "index.html").read_bytes())

    def test_a_tokenizer_that_differs_is_an_error(self):
        directory = self.folder / "differs"
        hf.random_model(transformers.GPT2LMHeadModel, transformers.GPT2Config(
            n_positions=8, n_embd=4, n_layer=1, n_head=1, vocab_size=17, bos_token_id=None, eos_token_id=None), 1).save_pretrained(directory)
        save_words(directory, 17)
        self.assertEqual(export(directory, self.folder / "differs.html").returncode, 0)
        page = self.folder / "differs.html"
        header = json.loads(parts_of(page)[1])
        self.assertGreater(len(header["probes"]), 1)
        page.write_text(page.read_text().replace('"w5":5', '"w5":6').replace('"w6":6,', '"w6":5,'))
        self.browser.open(page.as_uri())
        self.browser.wait(lambda: "tokenizer does not encode" in self.browser.one("#status").text)


if __name__ == "__main__":
    unittest.main()
