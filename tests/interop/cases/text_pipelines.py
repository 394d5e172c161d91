"""Small random models of the verbs that read text, beside the pipelines of transformers or, for those that version 5 lacks,
what their last version did."""

import json

import torch
import transformers
from forward_parity import ROUNDINGS, SMALLEST, hf
from test_answer import AnswerTest, text_of
from test_classify import ClassifyTest
from text_models import byte_level, shaken, sizes, wordpiece

from cases.outcome import EQUAL, tzoo

TEXTS = 25


def roberta_tokenizer():
    return byte_level(cls_token="<s>", sep_token="</s>", bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>",
                      mask_token="<mask>", model_max_length=250)


def drawn_model(chance, head, folder, **options):
    """A model of the head "ForMaskedLM" or another and its tokenizer."""
    family = chance.choice(["Bert", "Roberta", "DistilBert", "Albert"])
    tokenizer = roberta_tokenizer() if family == "Roberta" else wordpiece()
    size = sizes(tokenizer)
    if family == "DistilBert":
        size = {"vocab_size": len(tokenizer), "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}
        tokenizer.model_input_names = ["input_ids", "attention_mask"]
    config = getattr(transformers, family + "Config")(**size, max_position_embeddings=256, **options)
    model = shaken(getattr(transformers, family + head)(config))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


def texts_of(chance):
    return [text_of(chance, 12) for _ in range(TEXTS)]


def results(verb, folder, texts, *flags):
    done = tzoo(verb, "--model", folder, "--input", "-", *flags, stdin="".join(text + "\n" for text in texts))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.split("\n")[:-1]]


def compare_with_float64(found, theirs, model, again, what):
    """Lists of scores: ours are as near to float64's as float32's rounding lets those of transformers be."""
    model.double()
    with hf.float64():
        exact = again()
    model.float()
    limit = 1e-5 + ROUNDINGS * max((abs(one - other) for one, other in zip(theirs, exact, strict=True)), default=0)
    for ours, wanted in zip(found, exact, strict=True):
        assert abs(ours - wanted) <= limit, f"{what}: {ours} instead of {wanted}, where transformers allows {limit}"


def text_classification(chance, folder):
    problem = chance.choice([None, "single_label_classification", "multi_label_classification"])
    model, tokenizer = drawn_model(chance, "ForSequenceClassification", folder, num_labels=chance.randint(2, 5), problem_type=problem)
    texts = texts_of(chance)
    pipeline = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer)
    by_label = lambda: [{entry["label"]: entry["score"] for entry in scores} for scores in pipeline(texts, top_k=None)]
    expected, lines = by_label(), results("classify", folder, texts, "--batch_size", chance.randint(1, 9))
    assert [set(line["scores"]) for line in lines] == [set(scores) for scores in expected]
    flat = lambda rows: [scores[label] for scores in rows for label in sorted(scores)]
    compare_with_float64(flat([line["scores"] for line in lines]), flat(expected), model, lambda: flat(by_label()), texts)


def token_classification(chance, folder):
    suite = ClassifyTest()
    suite.directory = str(folder)
    tokenizer = chance.choice([roberta_tokenizer, wordpiece])()
    model = suite.tagger(tokenizer, chance.getrandbits(31))
    strategy = chance.choice(["none", "simple", "first", "average", "max"])
    pipeline = transformers.pipeline("token-classification", model=model, tokenizer=tokenizer, aggregation_strategy=strategy)
    texts = texts_of(chance)
    key = "entity" if strategy == "none" else "entity_group"
    expected = [pipeline(text) for text in texts]
    lines = results("classify", folder, texts, "--aggregation", strategy)
    for text, line, entities in zip(texts, lines, expected, strict=True):
        found = [(entity["label"], entity["start"], entity["end"]) for entity in line["entities"]]
        assert found == [(entity[key], entity["start"], entity["end"]) for entity in entities], f"{strategy}, {text!a}: {found}, {entities}"
    flat = lambda rows: [float(entity["score"]) for entities in rows for entity in entities]
    compare_with_float64(flat([line["entities"] for line in lines]), flat(expected), model,
                         lambda: flat([pipeline(text) for text in texts]), texts)


def fill_mask(chance, folder):
    model, tokenizer = drawn_model(chance, "ForMaskedLM", folder)
    texts = []
    for _ in range(TEXTS):
        words = text_of(chance, 9).split(" ")
        for _ in range(chance.choice([1, 1, 2])):
            words.insert(chance.randint(0, len(words)), tokenizer.mask_token)
        texts.append(" ".join(words))
    pipeline = transformers.pipeline("fill-mask", model=model, tokenizer=tokenizer, top_k=4)

    def guessed():
        """Of each mask of each text; the pipeline has one list less where a text has one mask."""
        found = [pipeline(text) for text in texts]
        return [guesses for entry in found for guesses in (entry if isinstance(entry[0], list) else [entry])]

    expected = guessed()
    found = [guesses for line in results("fill-mask", folder, texts, "--top_k", 4, "--json") for guesses in line["masks"]]
    for ours, theirs in zip(found, expected, strict=True):
        assert [(guess["id"], guess["text"]) for guess in ours] == [(entry["token"], entry["sequence"]) for entry in theirs], \
            f"{ours} instead of {theirs}"
    flat = lambda rows: [guess["score"] for guesses in rows for guess in guesses]
    compare_with_float64(flat(found), flat(expected), model, lambda: flat(guessed()), texts)


def feature_extraction(chance, folder):
    model, tokenizer = drawn_model(chance, "Model", folder)
    texts = texts_of(chance)
    pooling = chance.choice(["mean", "cls", "max"])
    pipeline = transformers.pipeline("feature-extraction", model=model, tokenizer=tokenizer, return_tensors=True)
    pools = {"mean": lambda x: x.mean(0), "cls": lambda x: x[0], "max": lambda x: x.max(0).values}
    theirs = [pools[pooling](pipeline(text)[0]) for text in texts]
    model.double()
    with hf.float64():
        exact = [pools[pooling](pipeline(text)[0]) for text in texts]
    distance = lambda found, wanted: ((found - wanted).abs().max() / wanted.abs().max()).item()
    limit = SMALLEST + ROUNDINGS * max(map(distance, theirs, exact))
    lines = results("embed", folder, texts, "--pooling", pooling, "--no_normalize")
    for text, line, wanted in zip(texts, lines, exact, strict=True):
        error = distance(torch.tensor(line["embedding"]), wanted)
        assert error <= limit, f"{text!a}: {error} from float64, where transformers allows {limit}"


@torch.no_grad()
def text_to_text(chance, folder):
    """Text2Text, translation and summarization differ in their prefix and in the model's generation_config.json."""
    tokenizer = wordpiece()
    tokenizer.eos_token = "[SEP]"
    model = shaken(transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=40, num_layers=2, num_heads=4, tie_word_embeddings=False, pad_token_id=0,
        decoder_start_token_id=0, eos_token_id=3)), 0.3)
    said = {"max_new_tokens": chance.randint(1, 14), **chance.choice([{}, {"num_beams": 4, "early_stopping": True},
            {"num_beams": 2, "length_penalty": 2.0, "no_repeat_ngram_size": 2, "min_length": 5}])}
    for key, value in said.items():
        setattr(model.generation_config, key, value)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    prefix, texts = chance.choice(["", "and the ", "summarize: "]), texts_of(chance)
    batch = tokenizer([prefix + text for text in texts], return_tensors="pt", padding=True)
    ids = model.generate(batch["input_ids"], attention_mask=batch["attention_mask"], do_sample=False)
    found = results("translate", folder, texts, "--prefix", prefix, "--batch_size", chance.randint(1, 9), "--json")
    for text, line, row in zip(texts, found, ids, strict=True):
        expected = tokenizer.decode(row, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert line["translation"] == expected, f"{said}, {prefix + text!a}: {line} instead of {expected}"


def question_answering(chance, folder):
    suite = AnswerTest()
    suite.directory = str(folder)
    tokenizer, model = chance.choice([suite.bert, suite.roberta])(chance.getrandbits(31))
    for _ in range(2):  # a process each
        suite.check(tokenizer, model, chance)


def check(chance, folder):
    chance.choice([text_classification, token_classification, fill_mask, feature_extraction, text_to_text, question_answering])(
        chance, folder)
    return EQUAL
