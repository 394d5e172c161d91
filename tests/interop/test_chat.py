"""tzoo chat --print_prompt beside transformers' apply_chat_template: prompts, their ids, and what is refused."""

import concurrent.futures
import json
import os
import pathlib
import pty
import random
import subprocess
import sys
import tempfile
import unittest

import torch
import transformers
from transformers.utils.chat_template_utils import render_jinja_template

from chat_templates import SNIPPETS, TEMPLATES, VARIABLES
from text_models import tzoo, wordpiece

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import tier  # noqa: E402

CONVERSATIONS = int(os.environ.get("ZOO_CONVERSATIONS", 12))  # of each template; 50 by hand
TEXTS = ["hello", "what is 2+2?", "  padded  ", "", "línea\nnueva", "日本語 ❤️", "a 'quote' \"x\" & <b>", "tab\tx",
         "<think>\nhm\n</think>\n\nanswer", "</think> after", "{{ a }} {% b %}", "x" * 100, "line1\r\nline2"]
TOOLS = [
    {"type": "function", "function": {"name": "weather", "description": "Gets <b>weather</b> & more é", "parameters": {
        "type": "object", "properties": {
            "city": {"type": "string", "enum": ["a", "it's"]}, "days": {"type": "integer", "default": 3},
            "deep": {"type": "array", "items": {"type": "object", "properties": {"y": {"type": "number"}, "X": {}}}}},
        "required": ["city"]}}},
    {"type": "function", "function": {"name": "nothing", "description": "-", "parameters": {
        "type": "object", "properties": {}}}},
]
ARGUMENTS = [{"city": "é", "days": 2, "ok": True, "n": None, "f": 1.5e-7, "l": [1, "x"]}, '{"city": "a"}']


def conversation(draw):
    messages = [{"role": "system", "content": draw.choice(TEXTS)}] if draw.random() < 0.5 else []
    for _ in range(draw.randint(1, 4)):
        messages.append({"role": "user", "content": draw.choice(TEXTS)})
        kind = draw.random()
        if kind < 0.2:
            call = {"id": "abcdefghi", "type": "function",
                    "function": {"name": "weather", "arguments": draw.choice(ARGUMENTS)}}
            messages.append({"role": "assistant", "content": draw.choice([None, ""]), "tool_calls": [call]})
            messages.append({"role": "tool", "content": "sunny", "name": "weather", "tool_call_id": "abcdefghi"})
        messages.append({"role": "assistant", "content": draw.choice(TEXTS)})
        if kind > 0.8:
            messages[-1]["reasoning_content"] = "because é"
    if draw.random() < 0.6:
        messages.pop()
    if draw.random() < 0.08:
        messages.append({"role": "stranger", "content": "x"})
    return messages


class ChatTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.directory = pathlib.Path(folder.name)
        cls.tokenizer = wordpiece()
        cls.tokenizer.add_special_tokens({"bos_token": "<s>", "eos_token": "</s>"})
        cls.tokenizer.save_pretrained(cls.directory)

    def write(self, name, content):
        path = self.directory / name
        path.write_bytes((content if isinstance(content, str) else json.dumps(content)).encode())
        self.addCleanup(path.unlink, missing_ok=True)
        return path

    def prompt(self, messages, *words, tools=None):
        """The object that the verb prints, or its error."""
        if tools is not None:
            words = (*words, "--tools", str(self.tools[len(tools)]))
        done = tzoo("chat", "--model", str(self.directory), "--messages", "-", "--print_prompt", "--json", *words,
                    stdin=json.dumps(messages))
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr

    def check(self, template, name, case):
        messages, tools, adds = case
        words = ["--chat_template", str(template)] + ([] if adds else ["--no_add_generation_prompt"])
        found = self.prompt(messages, *words, tools=tools)
        options = {"tools": tools, "add_generation_prompt": adds, "chat_template": TEMPLATES[name]}
        try:
            expected = self.tokenizer.apply_chat_template(messages, tokenize=False, **options)
        except Exception:  # jinja2's errors and Python's; ours is an error, too
            self.assertIsInstance(found, str, f"{name}: {messages}")
            self.assertRegex(found, r"line \d+: ", name)
            return 0
        self.assertIsInstance(found, dict, f"{name}: {found}")
        self.assertEqual(found["prompt"], expected, name)
        ids = self.tokenizer.apply_chat_template(messages, return_dict=False, **options)
        self.assertEqual(found["ids"], ids, name)
        return 1

    def test_templates(self):
        self.tools = {n: self.write(f"tools{n}.json", TOOLS[:n]) for n in (1, 2)}
        for name, text in TEMPLATES.items():
            draw = random.Random(name)
            template = self.write(f"{name}.jinja", text)
            cases = [(conversation(draw), draw.choice([None, TOOLS[:1], TOOLS]), draw.random() < 0.5) for _ in range(CONVERSATIONS)]
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                equal = sum(pool.map(lambda case: self.check(template, name, case), cases))
            self.assertGreater(equal, CONVERSATIONS // 10, name)

    def render(self, template, **variables):
        """The prompt of a template that sees the variables as the last message."""
        return self.prompt([{"role": "user", **variables}], "--chat_template", str(self.write("one.jinja", template)))

    def test_python_values(self):
        names = "".join(f"{{% set {name} = messages[0].{name} %}}" for name in VARIABLES if name != "none")
        found = self.render(names + SNIPPETS, **{name: value for name, value in VARIABLES.items() if name != "none"})
        self.assertIsInstance(found, dict, found)
        expected = render_jinja_template([[{"role": "user"}]], chat_template=SNIPPETS, **VARIABLES)[0][0]
        for line, ours in zip(expected.split("\n"), found["prompt"].split("\n"), strict=True):
            self.assertEqual(ours, line)

    def test_what_is_outside_of_the_subset_is_named(self):
        for template, named in [
            ("{% include 'a' %}", "line 1: tag 'include'"),
            ("\n\n{{ x|urlize }}", "line 3: filter 'urlize'"),
            ("{{ x is sameas 1 }}", "test 'sameas'"),
            ("{{ [1]|map('urlize')|list }}", "filter 'urlize'"),
            ("{{ [1]|select('sameas', 1)|list }}", "test 'sameas'"),
            ("a\n{{ [].append(1) }}", "line 2: 'append' of a list"),
            ("{{ lipsum() }}", "'lipsum'"),
            ("{{ f(*x) }}", "'*'"),
            ("{{ messages.__class__ }}", "line 1: the attribute '__class__' is not allowed"),
            ("{{ messages['__class__'] }}", "'__class__' is not allowed"),
            ("{% macro m() %}{{ caller() }}{% endmacro %}", "'caller'"),
            ("{% for x in y recursive %}{% endfor %}", "'recursive'"),
            ("{{ '{:x}'.format(1) }}", "the format 'x' of an integer"), ("{{ '{0.a}'.format(1) }}", "the field '0.a'"),
            ("{{ '%(a)s' % {} }}", "the format '(a)s' of a mapping"), ("{{ '%r'|format(1) }}", "the format 'r' of an integer"),
            ("{{ '%s'|format(a=1) }}", "filter 'format'"), ("{{ 'a'.format_map({}) }}", "'format_map'"),
            ("{{ ('%s'|safe) % ('{:s}'|safe).format('a'|safe) }}", "the format 's' of a text marked safe"),
            ("{{ {(1, 2): 3} }}", "a key of a mapping is a list"), ("{{ namespace({1: 2}) }}", "a name is an integer"),
            ("{% break %}", "'break'"),
            ("{{ 1", "'{{'"), ("{# a", "comment"), ("{{ 'a }}", "string"), ("{% if x %}", "'endif'"),
            ("{{ a b }}", "'b'"), ("{{ 'é' § }}", "'§'"), ("{{ '\\N{DASH}' }}", "\\N"), ("{{ 99999999999999999999 }}", "too large"),
        ]:
            found = self.render(template)
            self.assertIsInstance(found, str, template)
            self.assertIn(named, found, template)
            self.assertNotIn("Fault", found)

    def test_what_is_not_reached_is_not_refused(self):
        for part in ("x|urlize", "x is sameas 1", "[1]|map('urlize')|list", "[].append(1)", "lipsum()", "x.title()", "x.nothing()"):
            template = "{% if messages|length > 1 %}{{ " + part + " }}{% endif %}{{ (" + part + ") if messages|length > 1 else 'b' }}"
            found = self.render(template)
            self.assertIsInstance(found, dict, found)
            self.assertEqual(found["prompt"], render_jinja_template([[{"role": "user"}]], chat_template=template)[0][0])

    def test_filters_of_nothing_give_nothing(self):
        for value in ("none", "false", "0", "''", "nothing", "[]", "{}"):
            for filter in ("map('upper')", "map('nothing')", "select", "reject('nothing')", "selectattr('a')", "rejectattr('a', 'none')", "map"):
                template = "{{ " + value + "|" + filter + "|list|length }}"
                found = self.render(template)
                self.assertIsInstance(found, dict, found)
                self.assertEqual(found["prompt"], render_jinja_template([[{"role": "user"}]], chat_template=template)[0][0], template)

    def test_what_python_refuses_is_refused(self):
        for template, named in [
            ("a\n{{ nothing.more }}", "line 2: 'nothing' is undefined"), ("{{ 1 + 'a' }}", "an integer + a text"),
            ("{{ nothing + 1 }}", "'nothing' is undefined"), ("{{ 1 // 0 }}", "division by zero"), ("{{ 1 < 'a' }}", "no order"),
            ("{{ nothing|tojson }}", "tojson"), ("{% for x in 5 %}{% endfor %}", "looped"), ("{{ 'a'|indent(x) }}", "indent"),
            ("{{ [1]|map('upper')|length }}", "length"), ("{{ raise_exception('no, thanks') }}", "no, thanks"),
            ("\n{{ '{}{}'.format(1) }}", "line 2: method 'format': the field ''"), ("{{ '{0}{}'.format(1) }}", "the field ''"),
            ("{{ '{a'.format(a=1) }}", "brace"), ("{{ '}'.format() }}", "brace"), ("{{ '{:d}'.format(1.5) }}", "the format 'd' of a number"),
            ("{{ '{:s}'.format(1) }}", "the format 's'"), ("{{ '{:.f}'.format(1) }}", "the format '.f'"), ("{{ '%' % 1 }}", "the format ''"),
            ("{{ '%s%s' % 'a' }}", "more formats"), ("{{ '%s' % (1, 2) }}", "fewer formats"), ("{{ '%d' % 'a' }}", "of a text"),
            ("{{ 'a'|safe + 1 }}", "a text marked safe + an integer"), ("{{ {[1]: 2} }}", "a key of a mapping is a list"),
            ("{{ {1: 2, 'a': 3}|dictsort }}", "no order"), ("{{ {1: 2, 'a': 3}|tojson(sort_keys=true) }}", "no order"),
            ("a\n{% filter length %}\n\nb{% endfilter %}", "line 2: the block is an integer"), ("{% filter upper %}", "'endfilter'"),
            ("{% filter upper is string %}a{% endfilter %}", "'is'"), ("{% filter nothing %}a{% endfilter %}", "filter 'nothing'"),
            ("{% set x.y = 1 %}", "namespace"), ("{{ {}.items() }}", "printed"), ("{{ none|length }}", "None"),
        ]:
            with self.assertRaises(Exception):
                render_jinja_template([[{"role": "user"}]], chat_template=template.replace("{{ {}.items() }}", "{{ nothing() }}"))
            found = self.render(template)
            self.assertIsInstance(found, str, template)
            self.assertIn(named, found, template)

    # Two lists of 40 levels, each of whose two items are one list: equal, but 2 ** 40 comparisons.
    DOUBLINGS = ("{% set n = namespace(x=['a'], y=['a']) %}{% for i in range(40) %}"
                 "{% set n.x = [n.x, n.x] %}{% set n.y = [n.y, n.y] %}{% endfor %}")
    LONG = "{% set x = 'a' * 200000 %}"

    def test_long_texts_and_lists_as_in_jinja(self):
        for template in [
            "{{ '  a  b \u00a0c  '.split() }}{{ '  a  b c  '.split(none, 1) }}{{ '  a  b c  '.rsplit(none, 1) }}{{ ' a '.split(none, 0) }}",
            "{{ ' a '.rsplit(none, 0) }}{{ 'aaa'.rsplit('aa') }}{{ 'aaa'.split('aa') }}{{ 'abcabca'.rsplit('a', 2) }}{{ ''.split() }}{{ ''.split('a') }}",
            "{{ 'abab'.rfind('ab') }}{{ 'abab'.find('ab') }}{{ 'ab'.rfind('x') }}{{ 'é\u4e16éx'.rfind('é') }}{{ 'aaaa'.count('aa') }}{{ ''.find('') }}",
            "{{ '1_000'|int }}{{ '1__0'|int }}{{ '_1'|int }}{{ '1_'|int }}{{ 'abcba'.strip('ab') }}{{ 'x'.strip('') }}",
            "{{ ['a\x7f\\\\u007f', {'b': [1, none]}]|tojson(ensure_ascii=true) }}{{ [[1, 2], [1, 3]]|max }}{{ [[2], [1]]|sort }}",
        ]:
            self.assertEqual(self.render(template)["prompt"], render_jinja_template([[{"role": "user"}]], chat_template=template)[0][0], template)

    def test_hostile_templates_end(self):
        loop = "{% for a in range(99999) %}{% for b in range(99999) %}{{ a }}{% endfor %}{% endfor %}"
        grow = "{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}"
        deep = "{% set n = namespace(x=[]) %}{% for i in range(9999) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x }}"
        for template, named in [
            (loop, "too many steps"), (grow, "too much memory"), (deep, "nested too deeply"),
            ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested too deeply"),
            ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "nested too deeply"),
            ("{{ 1" + "+1" * 5000 + " }}", "nested too deeply"), ("{{ " + "-" * 5000 + "1 }}", "nested too deeply"),
            ("{% if 1 %}" * 5000 + "{% endif %}" * 5000, "nested too deeply"), ("{{ 'a' * 10 ** 15 }}", "too"),
            ("{{ 'a'|indent(10 ** 15) }}", "too much memory"), ("{{ ('a' * 10 ** 7)|join|length }}", "too much memory"), ("{% set n = namespace() %}{% set n.n = n %}", "namespace"),
            ("{{ 9223372036854775807 + 1 }}", "too large"), ("{{ (-9223372036854775807 - 1) // -1 }}", "too large"),
        ]:
            self.assertIn(named, self.render(template), template[:80])

    def assert_refused(self, cases):
        for template, named in cases:
            self.assertIn(named, self.render(template), template[:200])

    def of_shared_lists(self, *cases):
        return [(self.DOUBLINGS + "{{ " + what + " }}", f"{name}: the template takes too many steps") for what, name in cases]

    def of_a_long_text(self, *cases):
        return [(self.LONG + "{% for i in range(99999) %}{% set y = " + what + " %}{% endfor %}", named) for what, named in cases]

    def test_work_is_counted_by_every_operation(self):
        self.assert_refused(
            self.of_shared_lists(("n.x == n.y", "test '=='"), ("n.x < n.y", "test '<'"), ("n.x in [n.y]", "test 'in'"),
                                 ("[n.x, n.y, n.x]|sort|length", "filter 'sort'"))
            + self.of_a_long_text(("x.split('b')", "method 'split'"), ("x.find('b')", "method 'find'"), ("'b' in x", "test 'in'"),
                                  ("x.strip()", "method 'strip'"), ("x|length", "filter 'length'"), ("x[i]", "too many steps"))
            + [(self.LONG + "{{ ([x] * 99999)|string|length }}", "filter 'string'"),
               (self.LONG + "{{ ('{0}' * 9999).format(x)|length }}", "method 'format'"), (self.LONG + "{{ '%s' * 9999 % ((x,) * 9999) }}", "too much memory"),
               (self.LONG + "{{ ('<'|safe).join([x] * 9999)|length }}", "method 'join'"),
               ("{% set x = {" + ", ".join(f"{i}: 1" for i in range(9999)) + "} %}", "too many steps"),
               (self.LONG + "{{ " + " ~ ".join(["x"] * 2000) + " }}", "too much memory")])

    @tier.long
    def test_work_is_counted_by_other_operations(self):
        self.assert_refused(
            self.of_shared_lists(("n.x != n.y", "test '!='"), ("[n.x, n.y]|unique|list|length", "filter 'unique'"),
                                 ("[n.x, n.y]|max|length", "filter 'max'"))
            + self.of_a_long_text(
                ("x.rsplit()", "method 'rsplit'"), ("x|trim", "filter 'trim'"), ("x[i:i + 1]", "too many steps"),
                ("x == x ~ ''", "too much memory"), ("x.startswith(('b', 'aa' * 9, x))", "method 'startswith'"), ("x|int", "filter 'int'"),
                ("x.count('aa')", "method 'count'"), ("'{}'.format(x)", "method 'format'"), ("'%s' % x", "too much memory"), ("x|safe + 'a'", "too much memory"),
                ("(x|safe).split('b')", "method 'split'"), ("x.isalpha()", "method 'isalpha'"))
            + [(self.LONG + "{{ ([x] * 99999)|tojson|length }}", "filter 'tojson'"),
               ("{{ ([1] * 9999)|tojson(indent='a' * 99999)|length }}", "filter 'tojson'"),
               ("{{ ('a' * 10 ** 7)|title|length }}", "filter 'title'"),
               ("{% set x = {" + ", ".join(f"'{i}': 1" for i in range(30000)) + "} %}", "too many steps")])

    def test_files_of_a_checkpoint(self):
        question = [{"role": "user", "content": "hi"}]
        config_path = self.directory / "tokenizer_config.json"
        config = json.loads(config_path.read_text())
        self.addCleanup(config_path.write_text, config_path.read_text())
        self.tools = {1: self.write("tools1.json", TOOLS[:1])}

        def check(**options):
            theirs = transformers.AutoTokenizer.from_pretrained(self.directory)
            self.assertEqual(self.prompt(question, **options)["prompt"],
                             theirs.apply_chat_template(question, tokenize=False, add_generation_prompt=True, **options))

        self.assertIn("--chat_template FILE", self.prompt(question))
        self.write("chat_template.json", {"chat_template": "of the processor"})
        self.assertEqual(self.prompt(question)["prompt"], "of the processor")
        config_path.write_text(json.dumps(config | {"chat_template": "{{ bos_token }}config{{ cls_token }}"}))
        check()
        config_path.write_text(json.dumps(config | {"chat_template": "{{ image_token }}{{ eot_token }}", "image_token": "<image>",
                                                    "extra_special_tokens": {"eot_token": "<|eot|>"}}))
        check()
        named = [{"name": "default", "template": "first"}, {"name": "tool_use", "template": "{{ tools }}"}]
        config_path.write_text(json.dumps(config | {"chat_template": named}))
        check()
        check(tools=TOOLS[:1])
        self.write("chat_template.jinja", "file{{ eos_token }}")
        check()
        check(tools=TOOLS[:1])
        config_path.write_text(json.dumps(config | {"chat_template": 5}))
        (self.directory / "chat_template.jinja").write_text("")
        for messages, named in [([], "empty"), ({"role": "user"}, "--messages"), (["x"], "objects")]:
            self.assertIn(named, self.prompt(messages))

    def save_model(self, positions=256):
        torch.manual_seed(0)
        vocab = len(self.tokenizer)
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=vocab, n_positions=positions, n_embd=16, n_layer=1, n_head=2, bos_token_id=vocab - 2,
            eos_token_id=vocab - 1)).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.4)
        model.save_pretrained(self.directory)
        for name in ("config.json", "generation_config.json", "model.safetensors"):
            self.addCleanup((self.directory / name).unlink)
        return model

    def chat(self, *words, stdin=None):
        done = tzoo("chat", "--model", str(self.directory), "--chat_template", str(self.template), "--temperature", "0",
                    "--max_new_tokens", "6", *words, stdin=stdin)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_answers(self):
        model = self.save_model()
        self.template = self.write("t.jinja", TEMPLATES["chatml"].replace("<|im_end|>", "[SEP]"))
        messages = [{"role": "system", "content": "and"}, {"role": "user", "content": "the earth"}]
        ids = self.tokenizer.apply_chat_template(messages, chat_template=self.template.read_text(),
                                                 add_generation_prompt=True, return_dict=False)
        ends = [self.tokenizer.eos_token_id, self.tokenizer.sep_token_id]  # the file's and the template's
        expected = model.generate(torch.tensor([ids]), max_new_tokens=6, do_sample=False, eos_token_id=ends,
                                  pad_token_id=0)[0, len(ids):].tolist()
        found = json.loads(self.chat("--messages", "-", "--json", stdin=json.dumps(messages)).stdout)
        self.assertEqual(found["ids"], [expected])
        text = found["text"][0]
        self.assertEqual(self.chat("--messages", "-", stdin=json.dumps(messages)).stdout, text + "\n")

        # In the terminal: the same conversation gives the same answer, also after /reset.
        more = [*messages, {"role": "assistant", "content": text}, {"role": "user", "content": "god\nlight"}]
        second = json.loads(self.chat("--messages", "-", "--json", stdin=json.dumps(more)).stdout)["text"][0]
        done = self.chat(stdin="/system and\nthe earth\ngod\\\nlight\n/reset\n/no\n\nthe earth\n/help\n/exit\nignored\n")
        self.assertEqual(done.stdout, f"{text}\n{second}\n{text}\n")
        self.assertIn("error: '/no' is no command", done.stderr)
        self.assertIn("/reset ", done.stderr)

    def test_lines_are_edited_at_a_terminal(self):
        self.save_model()
        self.template = self.write("t.jinja", TEMPLATES["chatml"])
        piped = self.chat(stdin="the earth\nthe earth\n").stdout.splitlines()
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [os.environ["TZOO"], "chat", "--model", str(self.directory), "--chat_template", str(self.template),
             "--temperature", "0", "--max_new_tokens", "6"], stdin=theirs, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=os.environ | {"TERM": "xterm", "INPUTRC": "/dev/null"}, text=True)
        os.close(theirs)
        os.write(ours, b"the erth\x1b[D\x1b[D\x1b[Da\r")  # three characters back
        self.assertEqual(process.stdout.readline(), piped[0] + "\n")
        os.write(ours, b"\x1b[A\r")  # the line before
        self.assertEqual(process.stdout.readline(), piped[1] + "\n")
        os.write(ours, b"/exit\r")
        self.assertEqual(process.communicate(timeout=60)[0], "")
        self.assertEqual(process.returncode, 0)
        os.close(ours)

    def test_the_oldest_turns_make_room(self):
        self.save_model(positions=64)
        self.template = self.write("t.jinja", "{% for m in messages %}{{ m.role[0] }} {{ m.content }} {% endfor %}")
        long = "and " * 70
        done = self.chat(stdin=f"/system god\n{'the ' * 40}\n{'and ' * 40}\n{long}\nearth\n")
        self.assertEqual(len(done.stdout.splitlines()), 3)
        self.assertIn("note: the oldest 2 messages no longer fit", done.stderr)
        self.assertRegex(done.stderr, r"error: the message makes a prompt of \d+ tokens; the model reads 64")
        last = [{"role": "system", "content": "god"}, {"role": "user", "content": "and " * 40}]
        alone = json.loads(self.chat("--messages", "-", "--json", stdin=json.dumps(last)).stdout)["text"][0]
        self.assertEqual(done.stdout.splitlines()[1], alone)

    def test_max_length_counts_the_prompt_of_each_answer(self):
        self.save_model()
        self.template = self.write("t.jinja", "{% for m in messages %}{{ m.role[0] }} {{ m.content }} {% endfor %}")

        def chat(*words, stdin):
            done = tzoo("chat", "--model", str(self.directory), "--chat_template", str(self.template), "--temperature", "0",
                        "--max_length", "30", *words, stdin=stdin)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done

        message = "the " * 12  # two of them leave no room
        alone = json.loads(chat("--messages", "-", "--json", stdin=json.dumps([{"role": "user", "content": message}])).stdout)
        done = chat(stdin=f"{message}\n" * 3)
        self.assertEqual(done.stdout.splitlines(), alone["text"] * 3)
        self.assertEqual(done.stderr.count("note: the oldest 2 messages no longer fit"), 2)

    def test_an_answer_is_the_best_of_the_beams(self):
        self.save_model()
        self.template = self.write("t.jinja", TEMPLATES["chatml"])
        said = []
        for returned in (1, 3):
            (self.directory / "generation_config.json").write_text(
                json.dumps({"num_beams": 3, "num_return_sequences": returned}))
            found = json.loads(self.chat("--messages", "-", "--json", stdin='[{"role": "user", "content": "god"}]').stdout)
            self.assertEqual(len(found["ids"]), 1)
            said.append((found["ids"], self.chat(stdin="the earth\ngod\n").stdout))
        self.assertEqual(said[0], said[1])

    def test_wrong_usage(self):
        for words, named in [(["--print_prompt"], "--messages"), (["--json"], "--messages"),
                             (["--num_samples", "2"], "--num_samples")]:
            done = tzoo("chat", "--model", str(self.directory), *words, stdin="")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(named, done.stderr)


if __name__ == "__main__":
    unittest.main()
