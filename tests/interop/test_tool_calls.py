"""Calls of tools over HTTP: how each kind of template writes them is found, arguments fit the tools' schemas, streams say the same, and
what a client sends back makes transformers' prompt."""

import json
import os
import pathlib
import random
import re
import sys
import tempfile
import unittest

import jsonschema
import openai

from chat_templates import TEMPLATES
from text_models import chat_gpt2

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from serving import Server, ServeTest  # noqa: E402

# Arguments as a text, markers that are special tokens, nothing of JSON before the name.
TEMPLATES["text"] = """{{ bos_token }}{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}{% if m['role'] == 'assistant' and m['tool_calls'] %}
{{- '<|assistant|>' + (m['content'] or '') + '<|calls|>' }}{% for call in m['tool_calls'] %}{{ '<|call|>function<|sep|>' + call['function']['name'] + '\n```json\n' + call['function']['arguments'] + '\n```' }}
{%- endfor %}{{ '<|/calls|>' + eos_token }}{% else %}{{ '<|' + m['role'] + '|>' + m['content'] }}{% if m['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endif %}{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|><think>' }}{% endif %}"""
TEMPLATES["silent"] = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}"
FORMATS = ["qwen2.5", "llama3.1", "mistral0.3", "text"]
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|eot_id|>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
           "<|calls|>", "<|call|>", "<|sep|>", "<|/calls|>"]
MARKERS = {"qwen2.5": "<tool_call>", "mistral0.3": "[TOOL_CALLS]", "text": "<|calls|>"}
ROUNDS = 6 if "ZOO_TEST_SHORT" in os.environ else 25


def schema(generator, depth=0):
    kinds = ["text", "number", "enum", "boolean", "list", *(["object"] if depth < 2 else [])]
    kind = generator.choice(kinds)
    if kind == "text":
        return {"type": "string", "maxLength": generator.randint(1, 8)}
    if kind == "number":
        return {"type": "integer", "minimum": generator.randint(-50, 0), "maximum": generator.randint(1, 50)}
    if kind == "enum":
        return {"enum": generator.sample(["ab", "c d", 3, None, 'quo"te', "é"], 3)}
    if kind == "boolean":
        return {"type": "boolean"}
    if kind == "list":
        return {"type": "array", "items": schema(generator, depth + 1), "maxItems": generator.randint(1, 2)}
    return parameters(generator, depth + 1)


def parameters(generator, depth=0):
    names = generator.sample(["city", "unit", "days", "note"], generator.randint(0, 3))
    return {"type": "object", "properties": {name: schema(generator, depth) for name in names},
            "required": [name for name in names if generator.random() < 0.6], "additionalProperties": False}


def tool(name, form):
    return {"type": "function", "function": {"name": name, "description": "about " + name, "parameters": form}}


def dense(text):
    return "".join(text.split())


class ToolCallTest(ServeTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        model, tokenizer = chat_gpt2(SPECIAL)
        cls.tokenizer = tokenizer
        words = []
        for name in [*FORMATS, "silent"]:
            directory = pathlib.Path(folder.name, name)
            tokenizer.chat_template = TEMPLATES[name]
            model.save_pretrained(directory)
            tokenizer.save_pretrained(directory)
            words += ["--model", directory]
        cls.server = Server(*words, "--parallel", 4)
        cls.addClassCleanup(cls.server.close)
        cls.client = openai.OpenAI(base_url=f"http://127.0.0.1:{cls.server.port}/v1", api_key="none", max_retries=0)

    def prompt(self, name, messages, tools, **more):
        return self.tokenizer.apply_chat_template(messages, tools=tools, chat_template=TEMPLATES[name], tokenize=False, **more)

    def streamed(self, request):
        """The message of a stream, put together from its changes."""
        content, calls, reason = "", [], None
        for chunk in self.client.chat.completions.create(**request, stream=True):
            delta, reason = chunk.choices[0].delta, chunk.choices[0].finish_reason
            content += delta.content or ""
            for call in delta.tool_calls or []:
                if call.id:
                    self.assertEqual(call.index, len(calls))
                    calls.append([call.function.name, ""])
                calls[call.index][1] += call.function.arguments
        return content, calls, reason

    def checked(self, name, tools, found, messages):
        """Each call is one of the tools' and valid; the answer is what the template writes for these calls."""
        choice = found.choices[0]
        forms = {each["function"]["name"]: each["function"]["parameters"] for each in tools}
        calls = choice.message.tool_calls or []
        for call in calls:
            jsonschema.validate(json.loads(call.function.arguments), forms[call.function.name])
        if calls and choice.finish_reason != "length":
            written = b"".join(bytes(entry.bytes) for entry in choice.logprobs.content).decode(errors="replace")
            written = written[max(0, written.find(MARKERS.get(name, "{"))):]
            as_text = name == "text"
            turns = [{"id": call.id, "type": "function", "function": {
                "name": call.function.name, "arguments": call.function.arguments if as_text else json.loads(call.function.arguments)}}
                for call in calls]
            turn = {"role": "assistant", "content": choice.message.content or "", "tool_calls": turns}
            whole = self.prompt(name, [*messages, turn], tools)
            written = written.removesuffix("</s>").removesuffix("<|im_end|>").removesuffix("<|eot_id|>")
            for call in calls:  # transformers' tojson writes other letters than ASCII as they are
                whole = whole.replace(json.dumps(call.id), '"id"')
            if name == "mistral0.3":
                written = re.sub(r'"[0-9A-Za-z]{9}"\}', '"id"}', written)
            self.assertIn(dense(written), dense(whole))
        return calls

    def test_forced_and_free_calls(self):
        generator = random.Random(3)
        for name in FORMATS:
            several = 0
            for i in range(ROUNDS):
                tools = [tool(each, parameters(generator)) for each in ("weather", "get_time-2", "sum.of")[:generator.randint(1, 3)]]
                messages = [{"role": "user", "content": f"question {i}"}]
                request = {"model": name, "messages": messages, "tools": tools, "seed": i, "max_tokens": 400, "temperature": 1.0}
                with self.subTest(name=name, i=i):
                    for choice in ("required", {"type": "function", "function": {"name": "weather"}}):
                        found = self.client.chat.completions.create(**request, tool_choice=choice, logprobs=True)
                        calls = self.checked(name, tools, found, messages)
                        self.assertGreater(len(calls), 0)
                        several += len(calls) > 1
                        named = choice != "required"
                        self.assertEqual(found.choices[0].finish_reason, "stop" if named else "tool_calls")
                        if named:
                            self.assertEqual([call.function.name for call in calls], ["weather"])
                        content, stream, reason = self.streamed({**request, "tool_choice": choice})
                        self.assertEqual((content, stream, reason), ("", [[call.function.name, call.function.arguments] for call in calls],
                                                                     found.choices[0].finish_reason))
                    # What its model writes by itself: a marker that is likely begins a call, any other text does not.
                    marker = MARKERS.get(name)
                    bias = {str(self.tokenizer.convert_tokens_to_ids(marker)): 8 + i % 3} if marker else {}
                    for one in (True, False):
                        free = {**request, "logit_bias": bias, "parallel_tool_calls": not one, "max_tokens": 150}
                        found = self.client.chat.completions.create(**free, logprobs=True)
                        if found.choices[0].finish_reason == "length":
                            continue
                        calls = self.checked(name, tools, found, messages)
                        if one:
                            self.assertLessEqual(len(calls), 1)
                        content, stream, reason = self.streamed(free)
                        self.assertEqual((content, stream, reason), (found.choices[0].message.content or "", [
                            [call.function.name, call.function.arguments] for call in calls], found.choices[0].finish_reason))
            self.assertEqual(several > 0, name != "llama3.1")  # whose template writes one call

    def test_an_answer_beside_tools_fits_its_format(self):
        form = {"type": "object", "properties": {"note": {"type": "string", "maxLength": 3}, "n": {"enum": [1, 2]}},
                "required": ["note", "n"], "additionalProperties": False}
        messages, tools = [{"role": "user", "content": "a"}], [tool("weather", form)]
        for name in FORMATS:
            request = {"model": name, "messages": messages, "tools": tools, "max_tokens": 300, "temperature": 1.0,
                       "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": form}}}
            called = set()
            for seed in range(8):
                request["logit_bias"] = {str(self.tokenizer.convert_tokens_to_ids(MARKERS.get(name, "{") if seed % 2 else "{")): 100}
                found = self.client.chat.completions.create(**request, seed=seed, logprobs=True)
                calls, content = self.checked(name, tools, found, messages), found.choices[0].message.content
                called.add(len(calls) > 0)
                if not calls:
                    jsonschema.validate(json.loads(content), form)
                    self.assertEqual(found.choices[0].finish_reason, "stop")
                self.assertEqual(self.streamed({**request, "seed": seed}), (content or "", [
                    [call.function.name, call.function.arguments] for call in calls], found.choices[0].finish_reason))
            self.assertEqual(called, {True, False}, name)
            found = self.client.chat.completions.create(**request, seed=1, logprobs=True, tool_choice="required")
            self.assertGreater(len(self.checked(name, tools, found, messages)), 0)

    def test_some_tools_are_allowed(self):
        """The prompt has all tools, but calls are of those that are allowed, whether the model or the request begins them."""
        empty = {"type": "object", "properties": {}, "additionalProperties": False}
        tools = [tool(name, empty) for name in ("weather", "get_time-2", "sum.of")]
        request = {"model": "qwen2.5", "messages": [{"role": "user", "content": "a"}], "tools": tools, "max_tokens": 200}
        bias = {str(self.tokenizer.convert_tokens_to_ids("<tool_call>")): 100}
        full = self.client.chat.completions.create(**request, tool_choice="required").usage.prompt_tokens
        for mode, more in (("required", {}), ("auto", {"logit_bias": bias, "parallel_tool_calls": False})):
            called = set()
            for seed in range(8):
                names = [{"type": "function", "function": {"name": name}} for name in ("sum.of", "weather")]
                choice = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": names}}
                found = self.client.chat.completions.create(**request, seed=seed, tool_choice=choice, **more)
                self.assertEqual((found.usage.prompt_tokens, found.choices[0].finish_reason), (full, "tool_calls"))
                called |= {call.function.name for call in found.choices[0].message.tool_calls}
            self.assertEqual(called, {"sum.of", "weather"})

    def test_results_come_back(self):
        tools = [tool("weather", {"type": "object", "properties": {"city": {"type": "string"}}})]
        arguments = {"city": "Rome", "n": [1, {"a": None}]}
        for name in FORMATS:
            call = {"id": "abcdefgh1", "type": "function", "function": {"name": "weather", "arguments": json.dumps(arguments)}}
            sent = [{"role": "user", "content": "and?"}, {"role": "assistant", "content": "", "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "abcdefgh1", "content": "12"}]
            as_object = {**call, "function": {"name": "weather", "arguments": json.dumps(arguments) if name == "text" else arguments}}
            known = [sent[0], {**sent[1], "tool_calls": [as_object]}, sent[2]]
            ids = self.tokenizer(self.prompt(name, known, tools, add_generation_prompt=True), add_special_tokens=False)["input_ids"]
            found = self.client.chat.completions.create(model=name, messages=sent, tools=tools, max_tokens=1)
            self.assertEqual(found.usage.prompt_tokens, len(ids), name)
            unsaid = {**sent[1], "content": None}  # as this server's own answers have it
            again = self.client.chat.completions.create(model=name, messages=[sent[0], unsaid, sent[2]], tools=tools, max_tokens=1)
            self.assertEqual(again.usage.prompt_tokens, len(ids), name)
            counts = []
            for given in ("", "{}"):  # as some clients send that there are none
                turn = {**sent[1], "tool_calls": [{**call, "function": {"name": "weather", "arguments": given}}]}
                counts.append(self.client.chat.completions.create(model=name, messages=[sent[0], turn, sent[2]], max_tokens=1).usage.prompt_tokens)
            self.assertEqual(*counts)

    def test_a_template_that_needs_a_text_gets_one_beside_calls(self):
        call = {"id": "abcdefgh1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        messages = [{"role": "user", "content": "and?"}, {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "abcdefgh1", "content": "12"}]
        counts = []
        for content in (None, ""):
            messages[1]["content"] = content
            counts.append(self.client.chat.completions.create(model="silent", messages=messages, max_tokens=1).usage.prompt_tokens)
        del messages[1]["content"]
        counts.append(self.client.chat.completions.create(model="silent", messages=messages, max_tokens=1).usage.prompt_tokens)
        self.assertEqual(len(set(counts)), 1, counts)

    def test_tools_without_parameters(self):
        """OpenAI's reference: a function without them has an empty list of parameters."""
        messages = [{"role": "user", "content": "a"}]
        for form, same in [({}, {}), ({"parameters": None}, {}), ({"parameters": {"type": "object"}}, None)]:
            tools = [{"type": "function", "function": {"name": f"t{i}", **form}} for i in range(8)]
            found = self.client.chat.completions.create(model="qwen2.5", messages=messages, tools=tools, tool_choice="required", max_tokens=400, seed=1)
            for call in found.choices[0].message.tool_calls:
                arguments = json.loads(call.function.arguments)
                self.assertEqual(arguments, arguments if same is None else same)

    def test_stop_strings_and_calls(self):
        request = {"model": "qwen2.5", "messages": [{"role": "user", "content": "a"}], "tools": [tool("weather", {"type": "object", "properties": {}})],
                   "seed": 1}
        for stop in ("\n", "}"):
            found = self.client.chat.completions.create(**request, tool_choice="required", stop=[stop]).choices[0]
            self.assertEqual([found.finish_reason, found.message.tool_calls[0].function.arguments], ["tool_calls", "{}"])
            self.assertEqual(self.streamed({**request, "tool_choice": "required", "stop": [stop]})[1:], (
                [["weather", "{}"]] * len(found.message.tool_calls), "tool_calls"))
        # A call that its model begins by itself is cut where the client wants it, and is none to act on.
        bias = {str(self.tokenizer.convert_tokens_to_ids("<tool_call>")): 100}
        for stop, arguments, reason in (("}", "{", "stop"), ("</tool_call>", "{}", "tool_calls")):
            fields = {**request, "stop": [stop], "logit_bias": bias}
            found = self.client.chat.completions.create(**fields).choices[0]
            self.assertEqual([found.finish_reason, found.message.tool_calls[0].function.arguments], [reason, arguments])
            self.assertEqual(self.streamed(fields)[1:], ([["weather", arguments]], reason))

    def test_refusals(self):
        good = tool("weather", {"type": "object", "properties": {}})
        cases = [({"tool_choice": "required"}, "needs 'tools'"),
                 ({"tools": [good], "tool_choice": {"type": "function", "function": {"name": "rain"}}}, "no tool"),
                 ({"tools": [good, good]}, "two tools"), ({"tools": [{"type": "code"}]}, r"tools\[0\]"),
                 ({"tools": [tool("a b", {})]}, "letters"), ({"tools": [tool("a", {"type": "array"})]}, "schema of an object"),
                 ({"tools": [tool("a", {"properties": {"b": {"$ref": "#"}}})]}, "parameters of a"),
                 ({"tools": [good], "tool_choice": "always"}, "tool_choice"), ({"tools": [good], "tool_choice": "required", "max_tokens": 2}, "max_tokens"),
                 ({"tools": [good], "extra_body": {"regex": "("}}, "'regex' is refused"), ({"tools": [good], "model": "silent"}, "no place"),
                 ({"tools": [good], "model": "silent", "tool_choice": "required"}, "cannot force")]
        named = [{"type": "function", "function": {"name": "weather"}}]
        for allowed, words in [({"mode": "auto", "tools": [{"type": "function", "function": {"name": "rain"}}]}, "'rain', which is no tool"),
                               ({"mode": "none", "tools": named}, "mode auto or required"), ({"mode": "auto", "tools": []}, "names of functions"),
                               ({"mode": "auto", "tools": [*named, {"type": "mcp"}]}, "names of functions"), ({"tools": named}, "mode auto")]:
            cases.append(({"tools": [good], "tool_choice": {"type": "allowed_tools", "allowed_tools": allowed}}, words))
        choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": named}}
        cases += [({"tool_choice": choice}, "needs 'tools'"), ({"tools": [good], "model": "silent", "tool_choice": choice}, "cannot restrict")]
        cases += [({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [
                     {"id": "abcdefgh1", "type": "function", "function": {"name": "a", "arguments": arguments}}]}]}, "JSON text of an object")
                   for arguments in ("{", '{"a": ' + "[" * 15000 + "]" * 15000 + "}")]
        cases += [({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "tool_calls": calls}]}, words)
                  for calls, words in (({"a": 1}, "must be a list of calls"), ([{"id": "a", "type": "custom"}], r"tool_calls\[0\]' must be an object with"))]
        for fields, words in cases:
            request = {"model": "qwen2.5", "messages": [{"role": "user", "content": "a"}], **fields}
            with self.assertRaisesRegex(openai.BadRequestError, words, msg=str(fields)):
                self.client.chat.completions.create(**request)
        none = self.client.chat.completions.create(model="silent", messages=[{"role": "user", "content": "a"}], tools=[good], tool_choice="none", max_tokens=3)
        self.assertIsNone(none.choices[0].message.tool_calls)


if __name__ == "__main__":
    unittest.main()
