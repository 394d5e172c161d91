"""POST /v1/messages as the `anthropic` package uses it: whole and streamed, tools and the turn after, errors. Texts and prompts are those of
/v1/chat/completions, which test_openai_client.py compares with transformers."""

import json
import pathlib
import sys
import tempfile
import unittest

import anthropic
import jsonschema
import openai

from chat_templates import TEMPLATES
from text_models import chat_gpt2

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "apps"))
from serving import SLOW, Server, ServeTest  # noqa: E402

SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 6}, "days": {"enum": [1, 2]}},
          "required": ["city", "days"], "additionalProperties": False}
TOOLS = [{"name": "weather", "description": "about weather", "input_schema": SCHEMA}, {"name": "time", "input_schema": SCHEMA}]
OF_CHAT = [{"type": "function", "function": {"name": "weather", "description": "about weather", "parameters": SCHEMA}},
           {"type": "function", "function": {"name": "time", "parameters": SCHEMA}}]
QUESTION = [{"role": "user", "content": "and the beginning?"}]
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "void"}}
GREEDY = {"temperature": 0}  # which the package leaves to extra_body


class AnthropicTest(ServeTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        model, tokenizer = chat_gpt2(["<|im_start|>", "<|im_end|>"])
        tokenizer.chat_template = TEMPLATES["qwen2.5"]
        directory = pathlib.Path(folder.name, "gpt")
        model.save_pretrained(directory)
        tokenizer.save_pretrained(directory)
        cls.server = Server("--model", directory, "--api_key", "sesame", "--parallel", 4)
        cls.addClassCleanup(cls.server.close)
        url = f"http://127.0.0.1:{cls.server.port}"
        cls.client = anthropic.Anthropic(base_url=url, api_key="sesame", max_retries=0)
        cls.chat = openai.OpenAI(base_url=url + "/v1", api_key="sesame", max_retries=0).chat.completions

    def create(self, **fields):
        return self.client.messages.create(**{"model": "gpt", "max_tokens": 30, "messages": QUESTION, "extra_body": GREEDY, **fields})

    def streamed(self, **fields):
        """The message that the package puts together from the events, and their types."""
        with self.client.messages.stream(**{"model": "gpt", "max_tokens": 30, "messages": QUESTION, "extra_body": GREEDY, **fields}) as stream:
            types = [event.type for event in stream]
            return stream.get_final_message(), types

    def test_text_whole_and_streamed(self):
        conversation = [*QUESTION, {"role": "assistant", "content": [{"type": "text", "text": "the "}, {"type": "text", "text": "earth"}]},
                        {"role": "user", "content": [{"type": "text", "text": "and?", "cache_control": {"type": "ephemeral"}}]}]
        same = [{"role": "system", "content": "Be brief."}, *QUESTION, {"role": "assistant", "content": "the earth"}, {"role": "user", "content": "and?"}]
        expected = self.chat.create(model="gpt", messages=same, max_tokens=30, temperature=0)
        text = expected.choices[0].message.content
        fields = {"system": [{"type": "text", "text": "Be "}, {"type": "text", "text": "brief."}], "messages": conversation, "metadata": {"user_id": "a"}}
        found = self.create(**fields)
        self.assertEqual((found.type, found.role, found.model), ("message", "assistant", "gpt"))
        self.assertEqual([(block.type, block.text) for block in found.content], [("text", text)])
        self.assertEqual((found.stop_reason, found.stop_sequence), ("max_tokens" if expected.choices[0].finish_reason == "length" else "end_turn", None))
        usage = found.usage
        self.assertEqual((usage.input_tokens + usage.cache_read_input_tokens, usage.output_tokens),
                         (expected.usage.prompt_tokens, expected.usage.completion_tokens))
        self.assertGreater(usage.cache_read_input_tokens, 0)  # the chat has read the same prompt
        message, types = self.streamed(**fields)
        self.assertEqual(([block.text for block in message.content], message.stop_reason, message.usage.output_tokens),
                         ([text], found.stop_reason, usage.output_tokens))
        self.assertEqual(message.usage.input_tokens + message.usage.cache_read_input_tokens, expected.usage.prompt_tokens)
        raw = [event.type for event in self.create(**fields, stream=True)]
        self.assertEqual([raw[0], raw[1], *raw[-3:]], ["message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop"])
        self.assertEqual(set(raw[2:-3]), {"content_block_delta"})

    def test_tokens_are_counted(self):
        for fields in ({}, {"system": "Be brief."}, {"tools": TOOLS}):
            counted = self.client.messages.count_tokens(model="gpt", messages=QUESTION, **fields).input_tokens
            usage = self.create(max_tokens=1, **fields).usage
            self.assertEqual(counted, usage.input_tokens + usage.cache_read_input_tokens)
        count = lambda words: self.client.messages.count_tokens(
            model="gpt", messages=[{"role": "user", "content": "void " * words}]).input_tokens
        ten, twenty = count(10), count(20)
        self.assertEqual(count(9990), ten + 998 * (twenty - ten))  # more than the context
        with self.assertRaisesRegex(anthropic.BadRequestError, "messages"):
            self.client.messages.count_tokens(model="gpt", messages=[])

    def test_what_other_models_add_to_a_conversation(self):
        """Documents are texts; thoughts are no part of it, as of the turns before in Anthropic's own models."""
        parts = {"type": "content", "content": [{"type": "text", "text": "In the "}, {"type": "text", "text": "beginning"}]}
        thoughts = [{"type": "thinking", "thinking": "hm", "signature": "x"}, {"type": "redacted_thinking", "data": "y"}]
        conversation = [{"role": "user", "content": [{**DOCUMENT, "title": "the", "context": "word", "citations": {"enabled": False}},
                                                     {"type": "document", "source": parts}, {"type": "text", "text": "and?"}]},
                        {"role": "assistant", "content": [*thoughts, {"type": "text", "text": "light"}]}, {"role": "user", "content": "so?"}]
        same = [{"role": "user", "content": "the\nword\nvoid\nIn the beginning\nand?"}, {"role": "assistant", "content": "light"},
                {"role": "user", "content": "so?"}]
        expected = self.chat.create(model="gpt", messages=same, max_tokens=30, temperature=0)
        found = self.create(messages=conversation, thinking={"type": "disabled"})
        self.assertEqual(found.content[0].text, expected.choices[0].message.content)
        counted = self.client.messages.count_tokens(model="gpt", messages=conversation, thinking={"type": "disabled"})
        self.assertEqual(counted.input_tokens, expected.usage.prompt_tokens)

    def test_structured_output(self):
        config = {"format": {"type": "json_schema", "schema": SCHEMA}}
        for found in (self.create(output_config=config, max_tokens=100), self.streamed(output_config=config, max_tokens=100)[0]):
            jsonschema.validate(json.loads(found.content[0].text), SCHEMA)
            self.assertEqual(found.stop_reason, "end_turn")

    def test_more_tokens_than_the_context_leaves(self):
        question = [{"role": "user", "content": "void " * 800}]
        room = 4096 - self.client.messages.count_tokens(model="gpt", messages=question).input_tokens
        for tokens, reason in ((room + 1, "model_context_window_exceeded"), (8000, "model_context_window_exceeded"), (room, "max_tokens")):
            for found in (self.create(messages=question, max_tokens=tokens), self.streamed(messages=question, max_tokens=tokens)[0]):
                self.assertEqual((found.stop_reason, found.usage.output_tokens), (reason, room))
        self.assertEqual(self.create(messages=question, max_tokens=1).stop_reason, "max_tokens")

    def test_stop_sequences(self):
        text = self.create().content[0].text
        stop = text[5:8]
        for found in (self.create(stop_sequences=["never in it", stop]), self.streamed(stop_sequences=["never in it", stop])[0]):
            self.assertEqual((found.stop_reason, found.stop_sequence, found.content[0].text), ("stop_sequence", stop, text.split(stop)[0]))
        # Of two that begin alike the shorter one is complete first; an empty one stops nothing.
        found = self.create(stop_sequences=[stop, stop[:1], ""])
        self.assertEqual((found.stop_sequence, found.content[0].text), (stop[:1], text.split(stop[:1])[0]))

    def test_tools_and_the_turn_after(self):
        for choice, of_chat in [({"type": "any"}, "required"), ({"type": "tool", "name": "time", "disable_parallel_tool_use": True},
                                                                {"type": "function", "function": {"name": "time"}})]:
            fields = {"tools": TOOLS, "tool_choice": choice, "max_tokens": 300}
            expected = self.chat.create(model="gpt", messages=QUESTION, tools=OF_CHAT, tool_choice=of_chat, max_tokens=300, temperature=0)
            found = self.create(**fields)
            calls = [(block.name, block.input) for block in found.content]
            self.assertEqual(calls, [(call.function.name, json.loads(call.function.arguments)) for call in expected.choices[0].message.tool_calls])
            self.assertGreater(len(calls), 0)
            for name, arguments in calls:
                jsonschema.validate(arguments, SCHEMA)
                self.assertEqual(name, "time" if choice["type"] == "tool" else name)
            self.assertEqual(found.stop_reason, "tool_use")
            message, types = self.streamed(**fields)
            self.assertEqual(([(block.name, block.input) for block in message.content], message.stop_reason), (calls, "tool_use"))
            self.assertIn("input_json", types)
        # As a client goes on: the message as it came, and results in the user's.
        results = [{"type": "tool_result", "tool_use_id": block.id, "content": [{"type": "text", "text": "12"}]} for block in found.content]
        turns = [*QUESTION, {"role": "assistant", "content": found.content}, {"role": "user", "content": [*results, {"type": "text", "text": "so?"}]}]
        of_calls = [{"id": block.id, "type": "function", "function": {"name": block.name, "arguments": json.dumps(block.input)}} for block in found.content]
        same = [*QUESTION, {"role": "assistant", "content": "", "tool_calls": of_calls},
                *({"role": "tool", "tool_call_id": block.id, "content": "12"} for block in found.content), {"role": "user", "content": "so?"}]
        for choice in ("auto", "none"):
            found = self.create(messages=turns, tools=TOOLS, tool_choice={"type": choice})
            expected = self.chat.create(model="gpt", messages=same, tools=OF_CHAT, tool_choice=choice, max_tokens=30, temperature=0)
            self.assertEqual(found.usage.input_tokens + found.usage.cache_read_input_tokens, expected.usage.prompt_tokens)
            self.assertEqual("".join(block.text for block in found.content), expected.choices[0].message.content)

        silent = [{**results[0], "content": None}]
        empty = [{**results[0], "content": ""}]
        counts = [self.client.messages.count_tokens(model="gpt", messages=[*turns[:-1], {"role": "user", "content": each}]) for each in (silent, empty)]
        self.assertEqual(*counts)

    def test_errors_are_the_packages_exceptions(self):
        text = [{"type": "text", "text": "a"}]
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
        for fields, words in [
            ({"messages": [{"role": "user", "content": [*text, image]}]}, r"'messages\[0\]\.content\[1\]' of type 'image'"),
            ({"system": [image]}, r"'system\[0\]' of type 'image'"), ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "'thinking'"),
            ({"messages": [*QUESTION, {"role": "assistant", "content": "In"}]}, "beginning of an answer is not continued"),
            ({"messages": []}, "'messages'"), ({"messages": [{"role": "tool", "content": "a"}]}, r"'messages\[0\]\.role'"),
            ({"messages": [{"role": "user", "content": [{"type": "tool_use", "id": "a", "name": "b", "input": {}}]}]}, "'tool_use'"),
            ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, r"'tools\[0\]' of type 'web_search_20250305'"),
            ({"tools": [{"name": "a", "input_schema": {"type": "array"}}]}, r"'tools\[0\]\.input_schema'"),
            ({"tools": [{"name": "a b", "input_schema": SCHEMA}]}, r"'tools\[0\]\.name'"),
            ({"tool_choice": {"type": "any"}}, "'tool_choice' needs 'tools'"), ({"tools": TOOLS, "tool_choice": {"type": "any"}, "max_tokens": 3}, "'max_tokens'"), ({"stop_sequences": [3]}, "'stop_sequences'"),
            ({"extra_body": {"temperature": -1}}, "'temperature'"), ({"extra_body": {"mcp_servers": []}}, "'mcp_servers'"),
            ({"output_config": {"effort": "low"}}, "'output_config.effort'"),
            ({"output_config": {"format": {"type": "json_schema", "schema": {"type": "nothing"}}}}, r"output_config\.format.* is refused"),
            ({"output_config": {"format": {"type": "text"}}}, r"output_config\.format.* must be"),
            ({"messages": [{"role": "user", "content": "void " * 4100}]}, "context is 4096 tokens.*'max_tokens'"),
            ({"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "url", "url": "x"}}]}]}, r"content\[0\]\.source' of type 'url'"),
            ({"messages": [{"role": "user", "content": [{**DOCUMENT, "citations": {"enabled": True}}]}]}, r"content\[0\]\.citations' must not"),
            ({"messages": [{"role": "user", "content": [{"type": "thinking", "thinking": "a", "signature": "b"}]}]}, "of type 'thinking'"),
        ]:
            with self.assertRaisesRegex(anthropic.BadRequestError, words, msg=str(fields)) as caught:
                self.create(**fields)
            body = caught.exception.body
            self.assertEqual((body["type"], body["error"]["type"]), ("error", "invalid_request_error"))
        status, data, _ = self.server.request("POST", "/v1/messages", {"messages": QUESTION}, x_api_key="sesame")
        self.assertEqual((status, json.loads(data)["error"]["message"]), (400, "'max_tokens' is missing"))
        with self.assertRaises(anthropic.NotFoundError) as caught:
            self.create(model="gpt-9")
        self.assertEqual(caught.exception.body["error"]["type"], "not_found_error")
        with self.assertRaises(anthropic.AuthenticationError):
            self.client.with_options(api_key="wrong").messages.create(model="gpt", max_tokens=1, messages=QUESTION)
        bearer = anthropic.Anthropic(base_url=self.client.base_url, auth_token="sesame", max_retries=0)
        self.assertEqual(bearer.messages.create(model="gpt", max_tokens=1, messages=QUESTION).usage.output_tokens, 1)

    def test_a_stream_is_told_that_the_server_stops(self):
        server = Server("--model", pathlib.Path(self.server.process.args[self.server.process.args.index("--model") + 1]))
        self.addCleanup(server.close)
        client = anthropic.Anthropic(base_url=f"http://127.0.0.1:{server.port}", api_key="none", max_retries=0)
        events = iter(client.messages.create(model="gpt", max_tokens=SLOW["max_tokens"], messages=QUESTION, stream=True,
                                             extra_body=GREEDY))
        next(events)
        server.process.terminate()
        with self.assertRaisesRegex(anthropic.APIStatusError, "the server stops"):
            list(events)


if __name__ == "__main__":
    unittest.main()
