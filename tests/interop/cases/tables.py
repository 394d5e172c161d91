"""Tables of labelled texts, words, answers and pairs: the loss of tzoo evaluate is the one of transformers on what Python
reads from the file, and a faulty line is refused by its number."""

import json

import torch
import transformers
from text_models import LETTERS, TEXTS, WORDS, shaken, sizes, wordpiece
from torch.nn.functional import cross_entropy

from cases.outcome import EQUAL, REFUSED, tzoo

LABELS = ["bad", "good", "1", "true"]
ODD = ["\u2028", "x\x0by", '"', '""quoted""', "'", ",", ";", "\\t", "北京", "naïve", "🙂", "\u00a0", "#", "e\u0301", "[MASK]", "NA", "null"]
LENGTH = 64


def drawn_text(chance, most):
    return " ".join(chance.choice([*WORDS, *WORDS, *LETTERS, *ODD]) for _ in range(chance.randint(1, most)))


def classes(chance):
    row = {"text": drawn_text(chance, 9), "label": chance.choice(LABELS)}
    return row | {"text_pair": chance.choice(["", drawn_text(chance, 6)])}


def questions(chance):
    context = drawn_text(chance, 12)
    first = chance.randrange(len(context))
    answer = context[first:chance.randint(first, len(context))]
    answer = answer if answer == answer.strip() else ""
    return {"question": drawn_text(chance, 4), "context": context, "answer": answer, "answer_start": str(first) if answer else ""}


def pairs(chance):
    return {"source": drawn_text(chance, 8), "target": drawn_text(chance, 5)}


def sentences(chance):
    words = drawn_text(chance, 8).replace("\u00a0", " ").split() or ["a"]
    return {"tokens": words, "labels": [chance.choice(LABELS) for _ in words]}


def padded(rows, filling):
    return torch.tensor([row + [filling] * (max(map(len, rows)) - len(row)) for row in rows])


def batch_of(tokenizer, *texts, **options):
    return tokenizer(*texts, padding=True, truncation=True, max_length=LENGTH, return_tensors="pt", **options)


def loss_of_classes(model, tokenizer, rows):
    encoded = [tokenizer(row["text"], row["text_pair"] or None, truncation=True, max_length=LENGTH) for row in rows]
    logits = model(**tokenizer.pad(encoded, return_tensors="pt")).logits
    return cross_entropy(logits, torch.tensor([LABELS.index(row["label"]) for row in rows]))


def loss_of_sentences(model, tokenizer, rows):
    batch = batch_of(tokenizer, [row["tokens"] for row in rows], is_split_into_words=True)
    labels = torch.full(batch["input_ids"].shape, -100)
    for i, row in enumerate(rows):
        words = batch.word_ids(i)
        for place, word in enumerate(words):
            if word is not None and word not in words[:place]:
                labels[i, place] = LABELS.index(row["labels"][word])
    return cross_entropy(model(**batch).logits.flatten(0, 1), labels.flatten())


def loss_of_questions(model, tokenizer, rows):
    batch = tokenizer([row["question"] for row in rows], [row["context"] for row in rows], padding=True,
                      truncation="only_second", max_length=LENGTH, return_tensors="pt", return_offsets_mapping=True)
    offsets, spans = batch.pop("offset_mapping"), []
    for i, row in enumerate(rows):
        begin = int(row["answer_start"] or 0)
        end = begin + len(row["answer"])
        places = [place for place, sequence in enumerate(batch.sequence_ids(i))
                  if sequence == 1 and offsets[i, place, 0] < end and offsets[i, place, 1] > begin]
        whole = places and row["answer"] and offsets[i, places[-1], 1] >= end
        spans.append((places[0], places[-1]) if whole else (0, 0))
    output, spans = model(**batch), torch.tensor(spans)
    return (cross_entropy(output.start_logits, spans[:, 0]) + cross_entropy(output.end_logits, spans[:, 1])) / 2


def loss_of_pairs(model, tokenizer, rows):
    sources, targets = ([tokenizer(row[key])["input_ids"] for row in rows] for key in ("source", "target"))
    ids = padded(sources, 0)
    return model(input_ids=ids, attention_mask=ids.ne(0).long(), labels=padded(targets, -100)).loss


TASKS = {"classification": (classes, loss_of_classes, transformers.BertForSequenceClassification),
         "token_classification": (sentences, loss_of_sentences, transformers.BertForTokenClassification),
         "question_answering": (questions, loss_of_questions, transformers.BertForQuestionAnswering),
         "seq2seq": (pairs, loss_of_pairs, transformers.T5ForConditionalGeneration)}


def write_model(model_class, folder):
    tokenizer = wordpiece()
    tokenizer.eos_token = "[SEP]"
    size = sizes(tokenizer)
    if model_class is transformers.T5ForConditionalGeneration:
        config = transformers.T5Config(vocab_size=len(tokenizer), d_model=16, d_kv=8, d_ff=24, num_layers=1, num_heads=2,
                                       decoder_start_token_id=0, eos_token_id=3)
    else:
        names = {"id2label": dict(enumerate(LABELS)), "label2id": {name: i for i, name in enumerate(LABELS)}}
        config = transformers.BertConfig(**size, max_position_embeddings=LENGTH,
                                         **({} if "Question" in model_class.__name__ else names))
    model = shaken(model_class(config), 0.3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


def as_json(chance, row):
    """An object; labels may be a number or a truth value, whose JSON is the label."""
    row = dict(row)
    if row.get("label") in ("1", "true") and chance.random() < 0.5:
        row["label"] = json.loads(row["label"])
    if "answer_start" in row and chance.random() < 0.5:
        answer, start = row.pop("answer"), row.pop("answer_start")
        row["answers"] = {"text": [answer] if answer else [], "answer_start": [int(start)] if answer else []}
    items = list({**row, **chance.choice([{}, {"id": 7}, {"more": [None]}])}.items())
    chance.shuffle(items)
    return json.dumps(dict(items), ensure_ascii=chance.random() < 0.5)


def lines_of(chance, rows, is_json):
    """[line] of a table and the index of each row's line."""
    if is_json:
        return [as_json(chance, row) for row in rows], list(range(len(rows)))
    if "tokens" in rows[0]:
        lines, places = [], []
        for row in rows:
            places.append(len(lines))
            lines += [f"{word}\t{label}" for word, label in zip(row["tokens"], row["labels"])] + [""] * chance.choice([1, 1, 2])
        return lines, places
    columns = list(rows[0])
    has_header = chance.random() < 0.6
    if has_header:
        chance.shuffle(columns)
        columns += chance.choice([[], ["more"]])
    body = ["\t".join(row.get(column, "-") for column in columns) for row in rows]
    return ["\t".join(columns)] * has_header + body, [has_header + i for i in range(len(rows))]


def faulty(chance, line, is_json, task):
    """The line with a fault."""
    if is_json:
        row = json.loads(line)
        key = chance.choice([key for key in row if key in ("text", "label", "question", "context", "source", "target", "tokens", "labels")])
        return chance.choice([line[:-1], "[]", "", "nothing", json.dumps(row | {key: [[]]}), json.dumps(row | {key: {}}),
                              json.dumps({other: value for other, value in row.items() if other != key}), line + line,
                              line[:1] + "\udcff" + line[1:]])
    faults = [line + "\tmore\tand more", line.replace("\t", " "), "\udcc3(" + line]
    if task == "token_classification":
        faults += [line.split("\t")[0] + "\tunknown", "\t" + line.split("\t")[1], line.split("\t")[0] + "\t"]
    else:
        faults += ["\t" * line.count("\t"), ""]
    return chance.choice(faults)


def check(chance, folder):
    task = chance.choice(list(TASKS))
    draw, loss_of, model_class = TASKS[task]
    rows = [draw(chance) for _ in range(chance.randint(2, 12))]
    is_json = chance.random() < 0.5
    lines, places = lines_of(chance, rows, is_json)
    fault = chance.choice(places[:-1]) if chance.random() < 0.4 else None
    if fault is not None:
        lines[fault] = faulty(chance, lines[fault], is_json, task)
    end = chance.choice(["\n", "\n", "\r\n"])
    text = chance.choice(["", "", "\ufeff"]) + end.join(lines) + chance.choice(["", end, end * 3])
    table = folder / ("table.jsonl" if is_json else chance.choice(["table.tsv", "table.txt"]))
    table.write_bytes(text.encode(errors="surrogateescape"))
    model, tokenizer = write_model(model_class, folder / "model")
    done = tzoo("evaluate", "--model", folder / "model", "--task", task, "--dataset", table, "--batch_size", 64, "--json")
    if fault is not None:
        assert done.returncode == 1 and f"line {fault + 1}" in done.stderr, \
            f"line {fault + 1}, {lines[fault]!a}: {done.stderr} {done.stdout}"
        return REFUSED
    assert done.returncode == 0, f"{done.stderr} of {text!a}"
    with torch.no_grad():
        expected = loss_of(model, tokenizer, rows).item()
    found = json.loads(done.stdout)["loss"]
    assert abs(found - expected) < 1e-5 * abs(expected), f"{task}: loss {found} instead of {expected} of {text!a}"
    return EQUAL
