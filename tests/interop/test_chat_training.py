"""The task chat beside transformers: which tokens are the assistant's, the loss on them, and what is refused."""

import itertools
import json
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import unittest

import jinja2
import torch
import transformers

from chat_templates import TEMPLATES as SHIPPED
from text_models import byte_level, tzoo

# What the assistant writes stands in [[ ]]: {% generation %} in one form of each template, nothing in the other.
TEMPLATES = {
    "chatml": "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}[[{{ m.content }}<|im_end|>\n]]{% else %}"
              "{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
    "llama2": "{% for m in messages %}{% if m.role == 'assistant' %}[[{{ ' ' + m.content.strip() + ' ' + eos_token }}]]{% else %}"
              "{{ bos_token + '[INST] ' + m.content + ' [/INST]' }}{% endif %}{% endfor %}",
    "header": "{{ bos_token }}{% for m in messages %}{{ '<|start|>' + m['role'] + '<|end|>\\n\\n' }}{% if m['role'] == 'assistant' %}"
              "[[{{ m['content'] | trim + '<|eot|>' }}]]{% else %}{{ m['content'] | trim + '<|eot|>' }}{% endif %}{% endfor %}"
              "{% if add_generation_prompt %}{{ '<|start|>assistant<|end|>\\n\\n' }}{% endif %}",
}
# By hand: what each turn of the assistant has before and after its content in the templates that models ship, and what the
# last turn alone has there.
PARTS = {"llama2": (" ", " </s>"), "llama3": ("", "<|eot_id|>"), "llama3.1": ("", "<|eot_id|>"), "qwen2": ("", "<|im_end|>\n"),
         "qwen2.5": ("", "<|im_end|>\n"), "qwen3": ("", "<|im_end|>\n", "<think>\n\n</think>\n\n", ""), "mistral0.1": ("", "</s> "),
         "mistral0.3": (" ", "</s>"), "gemma": ("", "<end_of_turn>\n"), "gemma3": ("", "<end_of_turn>\n"),
         "phi3": ("", "<|end|>\n", "", "</s>"), "phi4": ("", "<|end|>", "", "</s>"), "chatml": ("", "<|im_end|>\n\n"),
         "zephyr": ("<|assistant|>\n", "</s>\n")}
TEXTS = ["hello", "what is 2+2?", "  padded  ", "línea\nnueva", "日本語 ❤️", "a 'quote' \"x\" & <b>", "the and in the", "x" * 30]
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|eot|>", "[INST]"]


def written(template, marked):
    begin, end = ("{% generation %}", "{% endgeneration %}") if marked else ("", "")
    return template.replace("[[", begin).replace("]]", end)


def conversation(draw):
    messages = []
    for _ in range(draw.randint(1, 3)):
        messages += [{"role": "user", "content": draw.choice(TEXTS)}, {"role": "assistant", "content": draw.choice(TEXTS)}]
    return messages


class ChatTrainingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = pathlib.Path(folder.name)
        cls.tokenizer = byte_level(bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>")
        cls.tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL})
        torch.manual_seed(1)
        cls.model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=len(cls.tokenizer), n_embd=32, n_layer=2, n_head=2, n_positions=256, embd_pdrop=0, attn_pdrop=0, resid_pdrop=0,
            bos_token_id=0, eos_token_id=2, pad_token_id=1))
        cls.model.save_pretrained(cls.root / "model")
        cls.tokenizer.save_pretrained(cls.root / "model")

    def write(self, name, text):
        path = self.root / name
        path.write_text(text)
        return str(path)

    def masked(self, messages, template):
        done = tzoo("chat", "--model", str(self.root / "model"), "--messages", "-", "--chat_template", self.write("t.jinja", template),
                    "--print_prompt", "--json", "--assistant_mask", "--no_add_generation_prompt", stdin=json.dumps(messages))
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr

    def parts(self, ours):
        """The texts that a mask marks."""
        runs = itertools.groupby(zip(ours["ids"], ours["assistant_mask"]), key=lambda pair: pair[1])
        return [self.tokenizer.decode([token for token, _ in run]) for is_part, run in runs if is_part]

    def reference(self, messages, template):
        return self.tokenizer.apply_chat_template(messages, chat_template=written(template, True), return_dict=True,
                                                  return_assistant_tokens_mask=True)

    def train(self, dataset, *words, template=None, steps=3):
        flags = ["--chat_template", self.write("t.jinja", template)] if template else []
        out = tempfile.mkdtemp(dir=self.root)
        done = tzoo("train", "--task", "chat", "--init_from", str(self.root / "model"), "--dataset", dataset, "--val_dataset", dataset,
                    "--out_dir", out, "--max_iters", str(steps), "--eval_interval", str(steps), "--eval_iters", "1", "--log_interval", "1",
                    "--decay_lr", "false", "--learning_rate", "1e-3", "--weight_decay", "0", "--grad_clip", "0", "--device", "cpu",
                    "--block_size", "256", *flags, *words)
        return done, pathlib.Path(out)

    def test_masks(self):
        draw = random.Random(7)
        for name, template in TEMPLATES.items():
            for case in range(6):
                messages = conversation(draw)
                expected = self.reference(messages, template)
                for marked in (True, False):
                    with self.subTest(template=name, case=case, marked=marked):
                        ours = self.masked(messages, written(template, marked))
                        self.assertEqual(ours["ids"], expected["input_ids"])
                        self.assertEqual(ours["assistant_mask"], expected["assistant_masks"])
                        self.assertIn(1, ours["assistant_mask"])

    def test_parts_in_the_templates_that_models_ship(self):
        turns = [{"role": "user", "content": "as"}, {"role": "assistant", "content": "bé"}] * 2 + [
            {"role": "user", "content": "as <b>"}, {"role": "assistant", "content": "as"}]
        told = 0
        for (name, (before, after, *last)), system, count in itertools.product(PARTS.items(), (False, True), (1, 3)):
            messages = [{"role": "system", "content": "so"}] * system + turns[-2 * count:]
            try:
                expected = self.tokenizer.apply_chat_template(messages, chat_template=SHIPPED[name], return_dict=True,
                                                              return_assistant_tokens_mask="{% generation %}" in SHIPPED[name])
            except jinja2.TemplateError:
                continue
            with self.subTest(template=name, system=system, turns=count):
                ours = self.masked(messages, SHIPPED[name])
                self.assertEqual(ours["ids"], expected["input_ids"])
                if "{% generation %}" in SHIPPED[name]:
                    self.assertEqual(ours["assistant_mask"], expected["assistant_masks"])
                parts = [before + message["content"] + after for message in messages if message["role"] == "assistant"]
                if last:
                    parts[-1] = last[0] + parts[-1] + last[1]
                self.assertEqual(self.parts(ours), parts)
                told += 1
        self.assertEqual(told, 4 * len(PARTS) - 4)  # Gemma's and one of Mistral's have no place for a system message

    def test_parts_of_calls_and_of_thoughts(self):
        """A template that writes thoughts in the last turn alone, as Qwen3's does; what asks for an answer is no part of it."""
        template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if loop.last and m.role == 'assistant' %}<think></think>{% endif %}" \
                   "{{ m.content or '' }}{% for c in m.tool_calls or [] %}<call>{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}" \
                   "<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
        call = {"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}
        messages = [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "content": "b"},
                    {"role": "assistant", "content": "  c  "}]
        self.assertEqual(self.parts(self.masked(messages, template)), ['<call>f{"x": 1}<|im_end|>', "<think></think>  c  <|im_end|>"])

    def test_a_part_that_cannot_be_told_is_refused(self):
        last = "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if loop.last %}<think></think>{% endif %}{{ m.content }}{% endfor %}" \
               "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
        messages = [{"role": r, "content": c} for r, c in (("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"))]
        self.assertEqual(self.parts(self.masked(messages, last)), ["b", "<think></think>d"])
        twice, other = last.replace("{{ m.content }}", "{{ m.content * 2 }}"), last.replace("{{ m.content }}", "{{ m.content }}{{ loop.revindex }}")
        for template in twice, other:
            self.assertIn("message 2: the chat template renders it otherwise", self.masked(messages, template))
            dataset = self.write("chats.jsonl", json.dumps({"messages": messages}) + "\n")
            done, _ = self.train(dataset, template=template)
            self.assertEqual(done.returncode, 1)
            self.assertIn("chats.jsonl, line 1: message 2", done.stderr)

    def test_conversations_that_cannot_be_used_are_left_out(self):
        template = written(TEMPLATES["chatml"], False)
        good = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        lines = [{"messages": chat} for chat in (good[1:] + good, good, good[1:])]
        dataset = self.write("chats.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        done, run = self.train(dataset, template=template, steps=1)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("note: 4 conversations cannot be used and are left out, such as ", done.stderr)  # of both files
        self.assertIn("chats.jsonl, line 3: the assistant's message is the first: there is no prompt", done.stderr)
        alone, expected = self.train(self.write("good.jsonl", json.dumps(lines[1]) + "\n"), template=template, steps=1)
        self.assertEqual(alone.returncode, 0, alone.stderr)
        first = [json.loads((out / "metrics.jsonl").read_text().splitlines()[0])["train_loss"] for out in (run, expected)]
        self.assertEqual(*first)

    def test_loss(self):
        draw = random.Random(8)
        chats = [conversation(draw) for _ in range(4)]
        template = TEMPLATES["chatml"]
        dataset = self.write("chats.jsonl", "".join(json.dumps({"messages": m}) + "\n" for m in chats))
        others = self.root / "model/additional_chat_templates"
        others.mkdir()
        self.addCleanup(shutil.rmtree, others)
        (others / "tool_use.jinja").write_text("{% for m in messages %}old {{ m.role }}{% endfor %}")
        done, run = self.train(dataset, "--batch_size", "4", template=written(template, True))
        self.assertEqual(done.returncode, 0, done.stderr)
        ours = [json.loads(line)["train_loss"] for line in (run / "metrics.jsonl").read_text().splitlines()][:3]

        encoded = [self.reference(m, template) for m in chats]
        width = max(len(e["input_ids"]) for e in encoded)
        pad = lambda rows, value: torch.tensor([row + [value] * (width - len(row)) for row in rows])
        ids, mask = pad([e["input_ids"] for e in encoded], 1), pad([[1] * len(e["input_ids"]) for e in encoded], 0)
        answers = pad([e["assistant_masks"] for e in encoded], 0)
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, betas=(0.9, 0.99), eps=1e-8, weight_decay=0)
        theirs = []
        self.model.train()
        for _ in range(3):
            loss = self.model(input_ids=ids, attention_mask=mask, labels=torch.where(answers == 1, ids, -100)).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            theirs.append(float(loss.detach()))
        for a, b in zip(ours, theirs):
            self.assertAlmostEqual(a / b, 1, delta=1e-5)

        # The model keeps the template that it has learnt, and no other.
        self.assertFalse((run / "final/additional_chat_templates").exists())
        final = transformers.AutoTokenizer.from_pretrained(run / "final")
        self.assertEqual(final.chat_template, written(template, True))

    def test_a_run_goes_on_and_is_evaluated_without_its_template_file(self):
        draw = random.Random(9)
        dataset = self.write("chats.jsonl", "".join(json.dumps({"messages": conversation(draw)}) + "\n" for _ in range(4)))
        done, run = self.train(dataset, template=written(TEMPLATES["chatml"], False))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("note:", done.stderr)
        (self.root / "t.jinja").unlink()
        done = tzoo("train", "--init_from", "resume", "--out_dir", str(run), "--max_iters", "4")
        self.assertEqual(done.returncode, 0, done.stderr)
        # The task is the run's; packed weights agree with the modules.
        losses = []
        for words in ((), ("--dataset", dataset), ("--dataset", dataset, "--weights", "float32")):
            done = tzoo("evaluate", "--model", str(run / "final"), "--json", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            losses.append(json.loads(done.stdout)["loss"])
        for loss in losses[1:]:
            self.assertAlmostEqual(loss, losses[0], places=5)

    def test_what_a_template_leaves_out_is_noted(self):
        messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        call = {"type": "function", "function": {"name": "f", "arguments": {}}}
        endless = "{% for m in messages %}{{ m.role }}\n{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}"
        for record, template, note in (({"messages": messages}, endless, "end in no token that ends an answer"),
                                       ({"messages": messages, "tools": [call]}, written(TEMPLATES["chatml"], True), "2 conversations have tools")):
            done, _ = self.train(self.write("noted.jsonl", json.dumps(record) + "\n"), "--batch_size", "1", template=template, steps=1)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(note, done.stderr)

    def test_a_checkpoint_with_adapters_apart_is_no_model(self):
        draw = random.Random(10)
        dataset = self.write("chats.jsonl", "".join(json.dumps({"messages": conversation(draw)}) + "\n" for _ in range(4)))
        done, run = self.train(dataset, "--lora_rank", "2", template=written(TEMPLATES["chatml"], True))
        self.assertEqual(done.returncode, 0, done.stderr)
        step = str(next((run / "checkpoints").iterdir()))
        for words in (("generate", "--prompt", "a"), ("export", "--format", "huggingface", "--output", str(self.root / "out"))):
            done = tzoo(words[0], "--model", step, *words[1:])
            self.assertEqual(done.returncode, 1)
            self.assertIn("holds a model before its adapters (lora.safetensors)", done.stderr)
        done = tzoo("train", "--init_from", "resume", "--out_dir", str(run), "--max_iters", "4")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_shapes_of_files(self):
        plain = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "the"}]
        shapes = {"messages": {"messages": plain}, "sharegpt": {"conversations": [{"from": "human", "value": "hello"},
                                                                                 {"from": "gpt", "value": "the"}]},
                  "alpaca": {"instruction": "hello", "input": "", "output": "the"}, "pairs": {"prompt": "hello", "completion": "the"},
                  "lists": {"prompt": plain[:1], "completion": plain[1:]}}
        system = [{"role": "system", "content": "be brief"}, *plain]
        advised = {"in-messages": {"messages": system}, "beside": {"system": "be brief", "messages": plain}}
        losses = {}
        for name, shape in (shapes | advised).items():
            dataset = self.write(f"{name}.jsonl", json.dumps(shape) + "\n")
            done, run = self.train(dataset, "--batch_size", "1", steps=1)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("no chat template", done.stderr)
            losses[name] = json.loads((run / "metrics.jsonl").read_text().splitlines()[0])["train_loss"]
        self.assertEqual(len({losses[name] for name in shapes}), 1, losses)
        self.assertEqual(losses["beside"], losses["in-messages"])
        self.assertNotEqual(losses["beside"], losses["messages"])
        prompt = tzoo("chat", "--model", str(run / "final"), "--messages", "-", "--print_prompt", stdin=json.dumps(plain[:1]))
        self.assertEqual(prompt.stdout, "User:\nhello\nAssistant:\n")

    def test_the_completion_alone_is_learnt(self):
        messages = [{"role": role, "content": text} for role, text in zip(("user", "assistant") * 2, ("hello", "the", "and", "in the"))]
        dataset = self.write("last.jsonl", json.dumps({"prompt": messages[:3], "completion": messages[3:]}) + "\n")
        for marked in True, False:
            done, run = self.train(dataset, "--batch_size", "1", template=written(TEMPLATES["chatml"], marked), steps=1)
            self.assertEqual(done.returncode, 0, done.stderr)
            whole, before = (self.reference(part, TEMPLATES["chatml"]) for part in (messages, messages[:3]))
            ids, masks = torch.tensor([whole["input_ids"]]), torch.tensor([whole["assistant_masks"]])
            masks[0, :len(before["input_ids"])] = 0
            with torch.no_grad():
                model = transformers.GPT2LMHeadModel.from_pretrained(self.root / "model")
                loss = model(input_ids=ids, labels=torch.where(masks == 1, ids, -100)).loss.item()
            ours = json.loads((run / "metrics.jsonl").read_text().splitlines()[0])["train_loss"]
            self.assertAlmostEqual(ours / loss, 1, delta=1e-5)

    def test_wrong_files(self):
        user, answer = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}
        for record, message in (({"messages": [user]}, "no message is the assistant's"),
                                ({"messages": "a"}, "'messages' must be a list"),
                                ({"messages": [{"content": "a"}]}, "expected messages with a 'role'"),
                                ({"prompt": [user, answer], "completion": []}, "'completion' is empty"),
                                ({"prompt": [user, answer], "completion": [user]}, "no message of 'completion' is the assistant's"),
                                ({"mesages": [user, answer]}, "did you mean 'messages'"),
                                ({"conversations": [{"from": "robot", "value": "a"}]}, "unknown role 'robot'"),
                                ({"system": "c", "messages": [dict(user, role="system"), user, answer]}, "'system' stands beside"),
                                ({"instruction": "a"}, "'output' is missing; --columns output=NAME"),
                                ({"messages": [user, dict(answer, content="")]}, "a message of the assistant is empty"),
                                ({"messages": [dict(user, role="usr"), answer]}, "texts of the roles system, user and assistant"),
                                ({"messages": [user, answer], "tools": [{"type": "function"}]}, "has no place for tools"),
                                ({"text": "a"}, "expected 'messages', 'conversations'"),
                                ({"messages": [user, dict(answer, content="x" * 300)]}, "no conversation has an answer within")):
            with self.subTest(message):
                words = ("--block_size", "5") if "within" in message else ()
                done, _ = self.train(self.write("wrong.jsonl", json.dumps(record) + "\n"), *words)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(message, done.stderr)
        twice = self.write("wrong.jsonl", json.dumps({"messages": [user, answer], "chat": [user, answer]}) + "\n")
        done, _ = self.train(twice, "--columns", "messages=chat")
        self.assertIn("two keys are 'messages' by --columns", done.stderr)


if __name__ == "__main__":
    unittest.main()
