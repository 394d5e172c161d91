#include "apps/verbs/generate/generate_flags.h"

#include <regex>

#include "apps/hub/hub_cache.h"
#include "apps/training/records/run_directory.h"
#include "data/base/error.h"

namespace zoo {
namespace {

void add_model(Flags& flags, GenerateFlags& values) {
  flags.group("Input");
  add_model_flag(flags, values.model);
  flags.choice("generation_defaults", values.generation_defaults, {"file", "ours"},
               "defaults of flags that are not given: the checkpoint's generation_config.json where it says "
               "something, or those of this help alone");
}

// Declares fields of the settings, as models/tasks states them.
void add_fields(Flags& flags, GenerationSettings& settings, std::initializer_list<const char*> names) {
  const std::regex quoted_field("'([a-z_]+)'");
  for (const char* name : names) {
    const GenerationField field = field_of(settings, name);
    const std::string help = std::regex_replace(std::string(field.help), quoted_field, "--$1");
    std::visit([&](auto* member) { flags.add(name, *member, help, field.range); }, field.member);
  }
}

void add_choice_of_tokens(Flags& flags, GenerateFlags& values) {
  flags.group("Sampling");
  add_fields(flags, values, {"max_new_tokens", "max_length", "context"});
  flags.add("num_samples", values.num_samples, "number of samples per prompt", between(1, kMostBatchRows));
  add_fields(flags, values, {"temperature", "top_k", "top_p", "min_p", "typical_p"});

  flags.group("Penalties and constraints");
  add_fields(flags, values,
             {"repetition_penalty", "presence_penalty", "frequency_penalty", "no_repeat_ngram_size"});
  flags.add("bad_words", values.bad_words, "a text that must not be generated");
  flags.add("bad_words_ids", values.bad_words_ids,
            "token sequences that must not be generated, a list for each",
            {.placeholder = "'[[1, 2], [3]]'"});
  flags.add("suppress_tokens", values.suppress_tokens, "ids that must not be generated",
            {.placeholder = "'[1, 2]'"});
  flags.add("begin_suppress_tokens", values.begin_suppress_tokens, "ids that must not be the first new token",
            {.placeholder = "'[1, 2]'"});
  add_fields(flags, values, {"min_length", "min_new_tokens", "forced_bos_token_id"});
  flags.add("forced_eos_token_id", values.forced_eos_token_ids,
            "id, or list of ids, one of which must be the last token when --max_new_tokens is reached",
            {.placeholder = "ID|'[1, 2]'"});
  flags.add("logit_bias", values.logit_bias,
            "numbers added to the logits of ids before all else: a JSON object, as OpenAI's API takes it",
            {.placeholder = "'{\"7\": -100}'"});
  flags.add(
      "regex", values.regex,
      "structured output: all of the new text matches this regular expression of Python (re.fullmatch); "
      "'pattern' of a JSON schema is ECMAScript's",
      {.placeholder = "PATTERN"});
  flags.add("json_schema", values.json_schema,
            "structured output: the new text is JSON that fits this schema, in a file or in place",
            {.placeholder = "FILE|'{…}'"});
  flags.add("stop", values.stop, "end a row before this text");

  flags.group("Beam search");
  add_fields(flags, values, {"num_beams", "length_penalty"});
  flags.add("early_stopping", values.early_stopping, "stop as soon as num_beams texts are complete");
  add_fields(flags, values, {"num_return_sequences"});

  flags.group("Speculative decoding");
  flags.add("draft_model", values.draft_model,
            "smaller model with the same vocabulary: it drafts tokens that the model checks in one pass; "
            "faster, with the same distribution",
            {.placeholder = "DIR"});
  add_fields(flags, values, {"draft_tokens", "prompt_lookup_num_tokens"});

  flags.group("Output");
  flags.add("json", values.json, "print one JSON object with the new ids, their text and tokens per second");
  flags.add("logprobs", values.logprobs, "with --json: add the log-probability of each new id");
  flags.add("color", values.color, "colour each token by its probability: red is improbable, green probable");
  flags.add_weights(values.compute);
  flags.add_cache(values.compute);
  flags.add_compute(values.compute);
}

void check_choice_of_tokens(const Flags& flags, const GenerateFlags& values) {
  if (values.logprobs && !values.json) throw UsageError("--logprobs: needs --json");
  if (values.color && values.json) throw UsageError("--color: cannot be combined with --json");
  if (values.regex && !values.json_schema.empty())
    throw UsageError("--regex and --json_schema: give only one of them");
  const bool beams = values.options.beams.num_beams > 1;
  for (const char* flag : {"draft_model", "prompt_lookup_num_tokens"})
    if (beams && flags.given(flag)) throw UsageError("--", flag, ": cannot be combined with --num_beams");
  if (flags.given("draft_model") && flags.given("prompt_lookup_num_tokens"))
    throw UsageError("--draft_model and --prompt_lookup_num_tokens: give only one of them");
  if (beams && values.num_samples > 1)
    throw UsageError(
        "--num_samples: cannot be combined with --num_beams; --num_return_sequences gives several beams");
}

// After generation_config.json, which may have num_beams.
void check_beams(const Flags& flags, const GenerateFlags& values) {
  if (values.options.beams.num_beams > 1) return;
  for (const char* flag : {"length_penalty", "early_stopping", "num_return_sequences"})
    if (flags.given(flag)) throw UsageError("--", flag, ": needs --num_beams of 2 or more");
}

}  // namespace

bool parse_generate_flags(const Arguments& arguments, GenerateFlags& values) {
  Flags flags(arguments.command,
              "Continues a text, or token ids, with a language model. An encoder-decoder generates its "
              "answer to the text.");
  add_model(flags, values);
  flags.add("prompt", values.prompt,
            "text to continue; - reads it from standard input, FILE:PATH from a file; default: the model's "
            "start token, else a line break",
            {.placeholder = "TEXT|-|FILE:PATH"});
  flags.add("input_ids", values.input_ids, "token ids to continue instead of a text, a list for each row",
            {.placeholder = "'[[1, 2], [3]]'"});
  flags.add("interactive", values.interactive,
            "continue what you type, line by line; Ctrl-C stops a reply, Ctrl-D quits");
  add_choice_of_tokens(flags, values);
  flags.example("tzoo generate --model runs/kjv-char/final --prompt \"In the beginning\" --temperature 0.7");
  if (!flags.parse(arguments)) return false;
  if (values.prompt && values.input_ids) throw UsageError("--prompt and --input_ids: give only one of them");
  if (values.interactive && (values.prompt || values.input_ids || values.json))
    throw UsageError(
        "--interactive: reads prompts line by line and prints text; give no --prompt, --input_ids or --json");
  if (values.interactive && (values.num_samples > 1 || values.options.beams.num_return_sequences > 1))
    throw UsageError(
        "--interactive: gives one reply per line; leave out --num_samples and --num_return_sequences");
  check_choice_of_tokens(flags, values);
  apply_generation_config(values, flags);
  check_beams(flags, values);
  if (values.interactive) values.options.beams.num_return_sequences = 1;
  return true;
}

bool parse_chat_flags(const Arguments& arguments, GenerateFlags& values, ChatFlags& chat) {
  Flags flags(
      arguments.command,
      "Talks with a model whose checkpoint has a chat template. Line by line: Ctrl-C stops an answer, "
      "Ctrl-D or /exit ends, /help lists the commands. With --messages one answer to a conversation "
      "from a file.");
  add_model(flags, values);
  flags.add("chat_template", chat.chat_template, "Jinja template to use instead of the checkpoint's",
            {.placeholder = "FILE"});
  flags.add(
      "messages", chat.messages,
      "answer this conversation and end: a JSON list of objects with role and content; - reads standard "
      "input",
      {.placeholder = "FILE|-"});
  flags.add("tools", chat.tools, "functions that the model may call: a JSON list, as transformers takes it",
            {.placeholder = "FILE"});
  flags.add("add_generation_prompt", chat.add_generation_prompt,
            "with --messages: end the prompt with the beginning of an answer");
  flags.add(
      "print_prompt", chat.print_prompt,
      "with --messages: print the prompt and generate nothing; needs no weights. With --json also its ids");
  flags.add("assistant_mask", chat.assistant_mask,
            "with --print_prompt and --json: also 1 for each id that the assistant writes, which a training "
            "of the task chat learns, and 0 for the others");
  add_choice_of_tokens(flags, values);
  flags.example("tzoo chat --model Qwen/Qwen2.5-0.5B-Instruct");
  if (!flags.parse(arguments)) return false;
  check_choice_of_tokens(flags, values);
  if (values.num_samples > 1 || values.options.beams.num_return_sequences > 1)
    throw UsageError("--num_samples and --num_return_sequences: chat gives one answer");
  if (chat.assistant_mask && !(chat.print_prompt && values.json))
    throw UsageError("--assistant_mask: needs --print_prompt and --json");
  if (!chat.messages && (values.json || chat.print_prompt || !chat.add_generation_prompt))
    throw UsageError("--json, --print_prompt and --no_add_generation_prompt: need --messages");
  if (chat.print_prompt) return true;
  apply_generation_config(values, flags);
  check_beams(flags, values);
  values.options.beams.num_return_sequences = 1;
  return true;
}

void apply_generation_config(GenerateFlags& values, const Flags& flags) {
  const ModelPath& model = values.model;
  if (!std::filesystem::exists(model / "config.json") && RunDirectory(model, 0).holds_run())
    throw Error("--model: ", model,
                " is the directory of a training run; its models are in final/, best/ and checkpoints/");
  values.checkpoint = read_writing_checkpoint(model);
  values.generation_config = read_generation_config(model, values.checkpoint->json);
  if (flags.given("max_new_tokens")) values.max_length.reset();
  if (values.generation_defaults != "file") return;
  apply_generation_config(values, *values.generation_config,
                          [&](std::string_view name) { return flags.given(name); });
}

}  // namespace zoo
