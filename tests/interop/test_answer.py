"""tzoo answer beside transformers' question answering pipeline as in 4.49, which is written out here: later versions also
add up the scores of equal answers, and version 5 has no such pipeline."""

import tempfile
import unittest

import numpy
import random
import torch
import transformers

from text_models import LETTERS, TEXTS, WORDS, byte_level, configure, lines, shaken, sizes, tzoo, wordpiece


def softmax(logits):
    scores = numpy.exp(logits - logits.max())
    return scores / scores.sum()


def words_around(encoding, first, last):
    """token_to_word and word_to_chars: the words of the tokens, as far as they lie in the window."""
    words = (encoding.token_to_word(first), encoding.token_to_word(last))
    if None in words:
        return encoding.offsets[first][0], encoding.offsets[last][1]
    return encoding.word_to_chars(words[0], 1)[0], encoding.word_to_chars(words[1], 1)[1]


@torch.no_grad()
def pipeline(model, tokenizer, question, context, *, length, stride, top_k=1, longest=15, impossible=False, align=True):
    """Answers as (score, start, end), best first."""
    batch = tokenizer(question, context, truncation="only_second", max_length=length, stride=stride,
                      return_overflowing_tokens=True)
    answers, null_score = [], 1e6
    for window, encoding in enumerate(batch.encodings):
        output = model(**{name: torch.tensor([batch[name][window]]) for name in tokenizer.model_input_names})
        inside = numpy.array([sequence == 1 for sequence in batch.sequence_ids(window)])
        inside |= numpy.array(encoding.ids) == tokenizer.cls_token_id
        start = softmax(numpy.where(inside, output.start_logits[0].numpy(), numpy.float32(-10000)))
        end = softmax(numpy.where(inside, output.end_logits[0].numpy(), numpy.float32(-10000)))
        null_score = min(null_score, float(start[0] * end[0]))
        start[0] = end[0] = 0
        scores = numpy.tril(numpy.triu(numpy.outer(start, end)), longest - 1)
        for place in numpy.argsort(-scores, axis=None, kind="stable")[:top_k]:
            first, last = numpy.unravel_index(place, scores.shape)
            if scores[first, last] > 0:
                ends = words_around(encoding, first, last) if align else (encoding.offsets[first][0],
                                                                          encoding.offsets[last][1])
                answers.append((float(scores[first, last]), *ends))
    if impossible:
        answers.append((null_score, 0, 0))
    return sorted(answers, key=lambda answer: answer[0], reverse=True)[:top_k]


def text_of(rng, most):
    others = ["Paris,", "naïve", "北京", "🙂", "I'd", "3,14", "x²", "godliness", "earthed"]
    words = [rng.choice([*WORDS, *TEXTS[0].split(), *others]) for _ in range(rng.randint(1, most))]
    return " ".join(words)


class AnswerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.directory = folder.name

    def make(self, tokenizer, config, seed):
        torch.manual_seed(seed)
        model_class = {"bert": transformers.BertForQuestionAnswering, "roberta": transformers.RobertaForQuestionAnswering}
        model = shaken(model_class[config.model_type](config), 0.3)
        model.save_pretrained(self.directory)
        tokenizer.save_pretrained(self.directory)
        return model

    def bert(self, seed=0, **settings):
        tokenizer = wordpiece()
        config = transformers.BertConfig(**sizes(tokenizer), max_position_embeddings=512)
        return tokenizer, self.make(tokenizer, config, seed)

    def roberta(self, seed=0):
        tokenizer = byte_level(cls_token="<s>", sep_token="</s>", bos_token="<s>", eos_token="</s>", pad_token="<pad>",
                               unk_token="<unk>", mask_token="<mask>", model_max_length=512)
        config = transformers.RobertaConfig(**sizes(tokenizer), max_position_embeddings=514, type_vocab_size=1)
        return tokenizer, self.make(tokenizer, config, seed)

    def answer(self, question, context, *flags):
        return lines("answer", "--model", self.directory, "--question", question, "--context", "-", "--json", *flags,
                     stdin=context)

    def check(self, tokenizer, model, rng):
        question, context = text_of(rng, 6), text_of(rng, rng.choice([5, 40, 300]))
        options = {"top_k": rng.choice([1, 1, 4]), "longest": rng.choice([1, 15, 40]), "impossible": rng.random() < 0.5,
                   "align": rng.random() < 0.7}
        flags = ["--top_k", str(options["top_k"]), "--max_answer_length", str(options["longest"]),
                 f"--impossible={str(options['impossible']).lower()}",
                 f"--align_to_words={str(options['align']).lower()}"]
        length, stride = 384, 128
        if rng.random() < 0.6:
            length, stride = rng.choice([(80, 16), (100, 0), (200, 60)])
            flags += ["--max_length", str(length), "--stride", str(stride)]
        expected = pipeline(model, tokenizer, question, context, length=length, stride=stride, **options)
        found = self.answer(question, context, *flags)
        self.assertEqual([(line["start"], line["end"]) for line in found], [answer[1:] for answer in expected],
                         (question, context, flags))
        for line, (score, start, end) in zip(found, expected, strict=True):
            self.assertEqual(line["text"], context[start:end])
            self.assertLess(abs(line["score"] - score), 1e-4 * score)
        return expected

    def test_equals_the_pipeline(self):
        rng, nothing = random.Random(15), 0
        for make in self.bert, self.roberta:
            for seed in range(2):
                tokenizer, model = make(seed)
                for _ in range(25):
                    nothing += self.check(tokenizer, model, rng)[0][1:] == (0, 0)
        self.assertGreater(nothing, 2)  # cases in which "no answer" wins were among them

    def test_length_and_stride(self):
        """Of the tokenizer's model_max_length at most 384, and half of that at most 128."""
        for most, length, stride in [(None, 384, 128), (100, 100, 50)]:
            tokenizer, model = self.bert()
            if most:
                configure(self.directory, tokenizer, model_max_length=most)
            context = " ".join(TEXTS) * 20
            expected = pipeline(model, tokenizer, "Who?", context, length=length, stride=stride, top_k=9)
            self.assertEqual([(line["start"], line["end"]) for line in self.answer("Who?", context, "--top_k", "9")],
                             [answer[1:] for answer in expected])

    def test_truncation_side(self):
        """The first window is then the last one: the answers are the same, but others windows are cut."""
        tokenizer, model = self.bert(seed=3)
        configure(self.directory, tokenizer, truncation_side="left")
        context = " ".join(TEXTS) * 5
        expected = pipeline(model, tokenizer, "Who?", context, length=90, stride=10, top_k=9)
        found = self.answer("Who?", context, "--top_k", "9", "--max_length", "90", "--stride", "10")
        self.assertEqual([(line["start"], line["end"]) for line in found], [answer[1:] for answer in expected])

    def test_faults(self):
        tokenizer, _ = self.bert()
        words = ["answer", "--model", self.directory, "--question", "Who?", "--context", " ".join(LETTERS) * 9]
        for flags, code, said in [(["--max_length", "1000"], 2, "--max_length: 1000 is more than the model's limit of 512"),
                                  (["--max_length", "20", "--stride", "15"], 1, "no room"),
                                  (["--question", ""], 1, "--question: the text is empty"),
                                  (["--context", ""], 1, "--context: the text is empty")]:
            done = tzoo(*words, *flags)
            self.assertEqual((done.returncode, done.stderr.count("error:"), "exception" in done.stderr), (code, 1, False))
            self.assertIn(said, done.stderr)
        configure(self.directory, tokenizer, padding_side="left")
        self.assertIn("padding_side", tzoo(*words).stderr)


if __name__ == "__main__":
    unittest.main()
