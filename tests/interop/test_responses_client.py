"""POST /v1/responses as the `openai` package uses it: whole and streamed, tools and the turn after, conversations that the server keeps.
Texts and prompts are those of /v1/chat/completions, which test_openai_client.py compares with transformers."""

import json
import pathlib
import re
import sys
import tempfile
import unittest
from typing import Literal

import jsonschema
import openai
import pydantic
import tokenizers
import torch
import transformers

from chat_templates import TEMPLATES
from text_models import chat_gpt2, shaken

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from serving import Server, ServeTest  # noqa: E402

SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 6}, "days": {"enum": [1, 2]}},
          "required": ["city", "days"], "additionalProperties": False}
TOOLS = [{"type": "function", "name": name, "description": "about " + name, "parameters": SCHEMA, "strict": True} for name in ("weather", "time")]
OF_CHAT = [{"type": "function", "function": {key: value for key, value in tool.items() if key != "type"}} for tool in TOOLS]
QUESTION = {"role": "user", "content": "and the beginning?"}
LOGPROBS = ["message.output_text.logprobs"]


class Forecast(pydantic.BaseModel):
    sky: Literal["clear", "rain"]
    days: Literal[1, 2]


def byte_pieces(others=()):
    """A tokenizer like Llama's with a piece for each byte; with other pieces too, words begin with "▁"."""
    vocabulary = {piece: i for i, piece in enumerate(["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *others])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True))
    steps = [tokenizers.decoders.ByteFallback(), tokenizers.decoders.Fuse()]
    if others:
        tokenizer.normalizer = tokenizers.normalizers.Sequence([tokenizers.normalizers.Prepend("▁"), tokenizers.normalizers.Replace(" ", "▁")])
        steps = [tokenizers.decoders.Replace("▁", " "), *steps, tokenizers.decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = tokenizers.decoders.Sequence(steps)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>")


class SpacesTest(ServeTest):
    def test_offsets_count_the_piece_of_a_space(self):
        tokenizer = byte_pieces(["▁", *"dog"])
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=1, n_head=2,
                                                                     n_positions=64, bos_token_id=1, eos_token_id=2))
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            server = Server("--model", folder)
            self.addCleanup(server.close)
            found = server.post("/v1/completions", prompt="d o g", echo=True, max_tokens=0, logprobs=0)["choices"][0]
            self.assertEqual((found["text"], found["logprobs"]["tokens"]), ("d o g", [" ", "d", " ", "o", " ", "g"]))
            self.assertEqual(found["logprobs"]["text_offset"], [0, 0, 1, 2, 3, 4])


class BytesTest(ServeTest):
    def test_a_whole_answer_is_what_its_stream_adds_up_to(self):
        """Also where bytes make no characters: of those beside them, the parts of a stream keep what is one."""
        torch.manual_seed(2)
        tokenizer = byte_pieces()
        tokenizer.chat_template = TEMPLATES["qwen2.5"]
        model = shaken(transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=1, n_head=2,
                                                                            n_positions=512, bos_token_id=1, eos_token_id=2)))
        with tempfile.TemporaryDirectory() as folder:
            directory = pathlib.Path(folder, "bytes")
            model.save_pretrained(directory)
            tokenizer.save_pretrained(directory)
            server = Server("--model", directory)
            self.addCleanup(server.close)
            client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0)
            mixed = 0
            for seed in range(12):
                fields = {"model": "bytes", "max_tokens": 24, "temperature": 1, "seed": seed}
                whole = client.completions.create(prompt="ab", **fields).choices[0].text
                self.assertEqual("".join(chunk.choices[0].text for chunk in client.completions.create(prompt="ab", **fields, stream=True)), whole)
                fields["messages"] = [QUESTION]
                said = client.chat.completions.create(**fields).choices[0].message.content
                parts = [chunk.choices[0].delta.content or "" for chunk in client.chat.completions.create(**fields, stream=True)]
                self.assertEqual("".join(parts), said)
                mixed += len(set(whole + said)) > 1 and "\ufffd" in whole
            self.assertGreater(mixed, 0)


class ResponsesTest(ServeTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        model, tokenizer = chat_gpt2(["<|im_start|>", "<|im_end|>"])
        tokenizer.chat_template = TEMPLATES["qwen2.5"]
        directory = pathlib.Path(folder.name, "gpt")
        model.save_pretrained(directory)
        tokenizer.save_pretrained(directory)
        cls.server = Server("--model", directory, "--parallel", 4)
        cls.addClassCleanup(cls.server.close)
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{cls.server.port}/v1", api_key="none", max_retries=0)
        cls.responses, cls.chat = client.responses, client.chat.completions

    def create(self, **fields):
        return self.responses.create(**{"model": "gpt", "input": "and the beginning?", "max_output_tokens": 30, "temperature": 0, **fields})

    def streamed(self, **fields):
        """The answer that the package puts together from the events, and their types."""
        with self.responses.stream(**{"model": "gpt", "input": "and the beginning?", "max_output_tokens": 30, "temperature": 0, **fields}) as stream:
            events = list(stream)
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
        return events[-1].response, events

    def chatted(self, messages, **fields):
        return self.chat.create(**{"model": "gpt", "messages": messages, "max_tokens": 30, "temperature": 0, **fields})

    def test_text_whole_and_streamed(self):
        same = [{"role": "system", "content": "Be brief."}, QUESTION, {"role": "assistant", "content": "the earth"}, {"role": "user", "content": "and?"}]
        turns = [QUESTION, {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "the earth", "annotations": []}]},
                 {"role": "user", "content": [{"type": "input_text", "text": "an"}, {"type": "input_text", "text": "d?"}]}]
        expected = self.chatted(same)
        found = self.create(instructions="Be brief.", input=turns, metadata={"a": "b"})
        self.assertEqual(found.output_text, expected.choices[0].message.content)
        cut = expected.choices[0].finish_reason == "length"
        self.assertEqual((found.status, found.object, found.model, found.instructions, found.metadata),
                         ("incomplete" if cut else "completed", "response", "gpt", "Be brief.", {"a": "b"}))
        self.assertEqual(found.incomplete_details.reason if cut else None, "max_output_tokens" if cut else None)
        usage = found.usage
        self.assertEqual((usage.input_tokens, usage.output_tokens, usage.total_tokens),
                         (expected.usage.prompt_tokens, expected.usage.completion_tokens, expected.usage.total_tokens))
        self.assertGreater(usage.input_tokens_details.cached_tokens, 0)  # the chat has read the same prompt
        streamed, events = self.streamed(instructions="Be brief.", input=turns)
        types = [event.type for event in events]
        self.assertEqual(types[:4], ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"])
        self.assertEqual(types[-4:], ["response.output_text.done", "response.content_part.done", "response.output_item.done", f"response.{found.status}"])
        self.assertEqual("".join(event.delta for event in events if event.type == "response.output_text.delta"), found.output_text)
        self.assertEqual((streamed.output_text, streamed.status, streamed.usage), (found.output_text, found.status, found.usage))

    def test_tools_and_the_turn_after(self):
        time = {"type": "function", "function": {"name": "time"}}
        for choice, of_chat in [("required", "required"), ({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "time"}]},
                                                           {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [time]}}),
                                ({"type": "function", "name": "time"}, time)]:
            fields = {"tools": TOOLS, "tool_choice": choice, "max_output_tokens": 300}
            expected = self.chatted([QUESTION], tools=OF_CHAT, tool_choice=of_chat, max_tokens=300).choices[0].message.tool_calls
            found = self.create(**fields)
            calls = [(item.type, item.name, item.arguments) for item in found.output]
            self.assertEqual(calls, [("function_call", call.function.name, call.function.arguments) for call in expected])
            self.assertEqual(found.status, "completed")
            for call in calls:
                jsonschema.validate(json.loads(call[2]), SCHEMA)
            streamed, events = self.streamed(**fields)
            self.assertEqual([(item.type, item.name, item.arguments) for item in streamed.output], calls)
            done = [event.arguments for event in events if event.type == "response.function_call_arguments.done"]
            self.assertEqual(done, [call[2] for call in calls])
            self.assertEqual("".join(event.delta for event in events if event.type == "response.function_call_arguments.delta"), "".join(done))
        # As a client goes on: the items as they came, and results; or results alone after the kept conversation.
        results = [{"type": "function_call_output", "call_id": item.call_id, "output": "12"} for item in found.output]
        of_calls = [{"id": item.call_id, "type": "function", "function": {"name": item.name, "arguments": item.arguments}} for item in found.output]
        expected = self.chatted([QUESTION, {"role": "assistant", "content": "", "tool_calls": of_calls},
                                 *({"role": "tool", "tool_call_id": item.call_id, "content": "12"} for item in found.output)], tools=OF_CHAT)
        given = [QUESTION, *(item.model_dump(exclude_none=True) for item in found.output), *results]
        none = [{"type": "function_call", "call_id": "a", "name": "time", "arguments": text} for text in ("", "{}")]
        self.assertEqual(*(self.create(input=[QUESTION, call, {**results[0], "call_id": "a"}]).usage.input_tokens for call in none))
        for fields in ({"input": given}, {"input": results, "previous_response_id": found.id}):
            after = self.create(tools=TOOLS, **fields)
            self.assertEqual((after.output_text, after.usage.input_tokens), (expected.choices[0].message.content, expected.usage.prompt_tokens))

    def test_what_is_cut(self):
        found, events = self.streamed(max_output_tokens=3)
        self.assertEqual([event.item.status for event in events if event.type == "response.output_item.done"], ["incomplete"])
        self.assertEqual([found.output[0].status, found.status], ["incomplete"] * 2)
        # A whole call at the last token.
        fields = {"tools": [{**TOOLS[0], "parameters": {"type": "object", "properties": {}}}], "tool_choice": "required"}
        with self.assertRaisesRegex(openai.BadRequestError, r"takes \d+ tokens") as caught:
            self.create(**fields, max_output_tokens=1)
        fewest = int(re.search(r"takes (\d+) tokens", str(caught.exception))[1])
        found, events = self.streamed(**fields, max_output_tokens=fewest)
        self.assertEqual([found.status, *((item.status, item.arguments) for item in found.output)], ["incomplete", ("completed", "{}")])
        self.assertEqual([event.item.status for event in events if event.type == "response.output_item.done"], ["completed"])
        call = {"id": found.output[0].call_id, "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        expected = self.chatted([QUESTION, {"role": "assistant", "content": "", "tool_calls": [call]},
                                 {"role": "tool", "tool_call_id": call["id"], "content": "12"}])
        after = self.create(input=[{"type": "function_call_output", "call_id": call["id"], "output": "12"}], previous_response_id=found.id)
        self.assertEqual(after.usage.input_tokens, expected.usage.prompt_tokens)

    def test_kept_conversations(self):
        first = self.create(instructions="Be brief.")
        second = self.create(input=[{"role": "user", "content": "so?"}], previous_response_id=first.id)  # instructions are not kept
        messages = [QUESTION, {"role": "assistant", "content": first.output_text}, {"role": "user", "content": "so?"}]
        self.assertEqual(second.output_text, self.chatted(messages).choices[0].message.content)
        self.assertEqual(second.previous_response_id, first.id)
        third = self.create(input="then?", previous_response_id=second.id)
        messages += [{"role": "assistant", "content": second.output_text}, {"role": "user", "content": "then?"}]
        self.assertEqual(third.output_text, self.chatted(messages).choices[0].message.content)
        streamed, _ = self.streamed(store=False)
        for id in ("resp_1", streamed.id):
            with self.assertRaises(openai.NotFoundError) as caught:
                self.create(previous_response_id=id)
            self.assertEqual((caught.exception.code, caught.exception.param), ("previous_response_not_found", "previous_response_id"))
        for _ in range(1000):  # as many as are kept
            self.server.post("/v1/responses", input="a", max_output_tokens=1)
        with self.assertRaises(openai.NotFoundError):
            self.create(previous_response_id=third.id)

    def test_kept_answers(self):
        first, (second, _) = self.create(metadata={"a": "b"}), self.streamed(max_output_tokens=3)
        for answer in (first, second):
            self.assertEqual(self.responses.retrieve(answer.id).to_dict(), answer.to_dict())
        with self.assertRaisesRegex(openai.BadRequestError, "'stream' must be false"):
            self.responses.retrieve(first.id, stream=True)
        self.assertEqual(self.server.request("GET", f"/v1/responses/{first.id}?upstream=true")[0], 200)
        self.assertEqual(self.server.request("HEAD", f"/v1/responses/{first.id}")[0], 200)  # which deletes nothing
        connection = self.server.connect()  # that goes on after a DELETE
        for status in (200, 404):
            connection.request("DELETE", f"/v1/responses/{first.id}")
            answer = connection.getresponse()
            self.assertEqual((answer.status, json.loads(answer.read()).get("deleted")), (status, True if status == 200 else None))
        connection.close()
        self.responses.delete(second.id)
        for ask in (self.responses.retrieve, self.responses.delete, lambda id: self.create(previous_response_id=id)):
            with self.assertRaisesRegex(openai.NotFoundError, "kept here"):
                ask(second.id)

    def test_logprobs(self):
        fields = {"include": LOGPROBS, "top_logprobs": 2}
        expected = [entry.to_dict() for entry in self.chatted([QUESTION], logprobs=True, top_logprobs=2).choices[0].logprobs.content]
        whole, (streamed, events) = self.create(**fields), self.streamed(**fields)
        for found in (whole, streamed):
            part = found.output[0].content[0]
            self.assertEqual(b"".join(bytes(entry.bytes) for entry in part.logprobs).decode(errors="replace"), part.text)  # not the end token
            self.assertEqual([entry.to_dict() for entry in part.logprobs], expected[:len(part.logprobs)])
            self.assertEqual(found.top_logprobs, 2)
        entries = [entry.to_dict() for event in events if event.type == "response.output_text.delta" for entry in event.logprobs]
        done = [entry.to_dict() for event in events if event.type == "response.output_text.done" for entry in event.logprobs]
        self.assertEqual((entries, done), (expected[:len(entries)],) * 2)
        self.assertEqual(self.create().output[0].content[0].logprobs, [])
        calls = self.create(tools=TOOLS, tool_choice="required", max_output_tokens=300, include=LOGPROBS)  # calls have none
        self.assertEqual({item.type for item in calls.output}, {"function_call"})

    def test_input_items(self):
        call = {"type": "function_call", "call_id": "a", "name": "time", "arguments": "{}"}
        first = self.create(input=[QUESTION, call, {"type": "function_call_output", "call_id": "a", "output": "12"}])
        second = self.create(input="so?", previous_response_id=first.id)
        pages = self.responses.input_items.list(second.id, order="asc", limit=2)
        self.assertEqual((pages.first_id, pages.last_id, pages.has_more), (pages.data[0].id, pages.data[1].id, True))
        items = list(pages)  # of all pages
        said = [item.content[0].text if item.type == "message" else item.call_id for item in items]
        self.assertEqual(said, ["and the beginning?", "a", "a", first.output_text, "so?"])
        self.assertEqual([item.type for item in items[1:4]], ["function_call", "function_call_output", "message"])
        self.assertEqual((items[3].id, items[4].role, items[4].content[0].type), (first.output[0].id, "user", "input_text"))
        self.assertEqual(len({item.id for item in items}), 5)
        self.assertEqual([item.id for item in self.responses.input_items.list(second.id)], [item.id for item in items[::-1]])
        for fields in ({"after": "msg_1"}, {"limit": 0}, {"order": "up"}, {"extra_query": {"before": "a"}}):
            with self.assertRaisesRegex(openai.BadRequestError, next(iter(fields.get("extra_query", fields)))):
                self.responses.input_items.list(second.id, **fields)
        with self.assertRaises(openai.NotFoundError):
            self.responses.input_items.list("resp_1")

    def test_what_other_servers_answers_and_clients_add(self):
        no = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "the earth"}]}
        turns = [QUESTION, no, {"role": "user", "content": "and?"}]
        expected = self.chatted([QUESTION, {"role": "assistant", "content": "the earth"}, turns[2]])
        in_chat = {**no, "content": [{"type": "text", "text": "the "}, {"type": "refusal", "refusal": "earth"}]}
        self.assertEqual(self.chatted([QUESTION, in_chat, turns[2]]).usage.prompt_tokens, expected.usage.prompt_tokens)
        for effort in (None, "none"):
            found = self.create(input=turns, reasoning={"effort": effort}, text={"verbosity": "low"})
            self.assertEqual(found.output_text, expected.choices[0].message.content)

    def test_an_empty_answer_is_a_turn(self):
        model, tokenizer = chat_gpt2(["<|im_start|>", "<|im_end|>"])
        tokenizer.chat_template = ("{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
                                   "{{ raise_exception('roles must alternate') }}{% endif %}{{ m['content'] }}{% endfor %}")
        model.generation_config.forced_eos_token_id = tokenizer.eos_token_id  # the last token: here the only one
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            server = Server("--model", folder)
            self.addCleanup(server.close)
            first = server.post("/v1/responses", input="and", max_output_tokens=1)
            self.assertEqual(first["output"], [])
            after = server.post("/v1/responses", input="void", max_output_tokens=1, previous_response_id=first["id"])
            self.assertEqual(after["status"], "completed")

    def test_the_error_of_a_stream(self):
        server = Server("--model", self.server.process.args[self.server.process.args.index("--model") + 1], "--seconds", 0.01)
        self.addCleanup(server.close)
        data = server.request("POST", "/v1/responses", {"input": "a", "max_output_tokens": 3800, "temperature": 0, "stream": True})[1]
        self.assertRegex(data, r'"type":"error","sequence_number":\d+,"code":null,"message":"the request took longer than 0.01 seconds","param":null')

    def test_structured_output(self):
        for seed in range(2):
            fields = {"model": "gpt", "input": "and?", "max_output_tokens": 100, "text_format": Forecast, "extra_body": {"seed": seed}}
            self.assertIn(self.responses.parse(**fields).output_parsed.sky, ("clear", "rain"))
        found = self.create(text={"format": {"type": "json_object"}}, max_output_tokens=100)
        self.assertIsInstance(json.loads(found.output_text), dict)

    def test_refusals(self):
        image = {"type": "input_image", "image_url": "x"}
        for fields, words in [
            ({"input": [{"role": "user", "content": [image]}]}, r"'input\[0\]\.content\[0\]' of type 'input_image'"),
            ({"input": [QUESTION, {"type": "reasoning", "id": "a", "summary": []}]}, r"'input\[1\]' of type 'reasoning'"),
            ({"input": [{"type": "function_call", "call_id": "a", "name": "b", "arguments": "{"}]}, r"'input\[0\]\.arguments'"),
            ({"input": []}, "'input'"), ({"tools": [{"type": "web_search"}]}, r"'tools\[0\]' of type 'web_search'"),
            ({"tools": [{**TOOLS[0], "parameters": {"type": "array"}}]}, r"'tools\[0\]\.parameters'"), ({"tool_choice": "required"}, "'tool_choice'"),
            ({"tools": [{**TOOLS[0], "name": "a b"}]}, r"'tools\[0\]\.name'"), ({"tool_choice": {"type": "mcp", "server_label": "a"}}, "'tool_choice' of type 'mcp'"),
            ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp", "server_label": "a"}]}}, "of type 'mcp'"),
            ({"max_output_tokens": 5000}, "context is 4096 tokens.*'max_output_tokens'"), ({"background": True}, "'background'"),
            ({"truncation": "auto"}, "'truncation'"), ({"include": ["file_search_call.results"]}, "'include'"), ({"top_logprobs": 2}, "'top_logprobs'"),
            ({"top_logprobs": "a", "include": LOGPROBS}, "'top_logprobs'"), ({"temperature": -1}, "'temperature'"),
            ({"reasoning": {"effort": "low"}}, "'reasoning.effort'"), ({"reasoning": {"summary": "auto"}}, "'summary'"), ({"extra_body": {"output": []}}, "'output'"), ({"text": {"verbose": "low"}}, r"'text\.verbose'"), ({"text": {"verbosity": 3}}, r"'text\.verbosity'"),
            ({"text": {"format": {"type": "json_schema", "name": "a", "schema": {"$ref": "#"}}}}, r"'text\.format'"), ({"conversation": "a"}, "'conversation'"),
        ]:
            with self.assertRaisesRegex(openai.BadRequestError, words, msg=str(fields)):
                self.create(**fields)


if __name__ == "__main__":
    unittest.main()
