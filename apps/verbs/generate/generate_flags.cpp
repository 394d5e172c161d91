#include "apps/verbs/generate/generate_flags.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/hub/find_model.h"
#include "apps/verbs/generate/generation_config_flags.h"
#include "data/base/error.h"
#include "data/base/json_text.h"

namespace zoo {
namespace {

using nlohmann::json;

void add_model(Flags& flags, GenerateFlags& values) {
  flags.group("Input");
  add_model_flag(flags, values.model);
  flags.choice("generation_defaults", values.generation_defaults, {"file", "ours"},
               "defaults of flags that are not given: the checkpoint's generation_config.json where it says "
               "something, or those of this help alone");
}

void add_input(Flags& flags, GenerateFlags& values) {
  flags
      .add("prompt", values.prompt,
           "text to continue; - reads it from standard input, FILE:PATH from a file; default: the model's "
           "start token, else a line break")
      .placeholder("TEXT|-|FILE:PATH");
  flags.add("input_ids", values.input_ids, "token ids to continue instead of a text, a list for each row")
      .placeholder("'[[1, 2], [3]]'");
  flags.add("interactive", values.interactive,
            "continue what you type, line by line; Ctrl-C stops a reply, Ctrl-D quits");
}

void add_sampling(Flags& flags, GenerateFlags& values) {
  flags.group("Sampling");
  flags
      .add("max_new_tokens", values.options.max_new_tokens,
           "most tokens to generate per row; an end token stops earlier")
      .at_least(1);
  flags
      .add("max_length", values.max_length,
           "maximum total length in tokens, prompt included (of an encoder-decoder: of its answer); "
           "--max_new_tokens overrides it")
      .at_least(1);
  flags
      .add("context", values.options.context,
           "tokens that a decoder sees; a longer text goes on from the last half of them, so that the KV "
           "cache "
           "grows no more; 0: as many as its positions allow")
      .at_least(0);
  flags.add("num_samples", values.num_samples, "number of samples per prompt").between(1, kMostBatchRows);
  flags
      .add("temperature", values.temperature,
           "below 1 less random, above 1 more random, 0 greedy decoding; default: 0.8; 0 for beam search, "
           "whose candidates are drawn above 0")
      .between(0, 1e6);
  flags
      .add("top_k", values.options.sampling.top_k,
           "top-k sampling: draw from the K most probable tokens; 0: off")
      .at_least(0);
  flags
      .add(
          "top_p", values.options.sampling.top_p,
          "nucleus sampling: draw from the most probable tokens that together reach this probability; 1: off")
      .between(0, 1);
  flags
      .add("min_p", values.options.sampling.min_p,
           "draw from tokens with at least this share of the highest probability; 0: off")
      .between(0, 1);
  flags
      .add("typical_p", values.options.sampling.typical_p,
           "typical sampling: draw from the tokens whose information is closest to the entropy and that "
           "together reach this probability; 1: off")
      .between(0, 1);
}

void add_history(Flags& flags, GenerateFlags& values) {
  flags.group("Penalties and constraints");
  flags
      .add("repetition_penalty", values.options.history.repetition_penalty,
           "make tokens that are already in the text less probable: positive logits are divided by this, "
           "negative ones multiplied; 1: off")
      .above(0);
  flags
      .add("presence_penalty", values.options.history.presence_penalty,
           "subtracted from the logit of a token that was generated before")
      .between(-1e6, 1e6);
  flags
      .add("frequency_penalty", values.options.history.frequency_penalty,
           "subtracted from a token's logit once for each time it was generated before")
      .between(-1e6, 1e6);
  flags
      .add("no_repeat_ngram_size", values.options.history.no_repeat_ngram_size,
           "never repeat N tokens in the same order; 0: off")
      .at_least(0);
  flags.add("bad_words", values.bad_words, "a text that must not be generated").placeholder("TEXT");
  flags
      .add("bad_words_ids", values.bad_words_ids,
           "token sequences that must not be generated, a list for each")
      .placeholder("'[[1, 2], [3]]'");
  flags.add("suppress_tokens", values.suppress_tokens, "ids that must not be generated")
      .placeholder("'[1, 2]'");
  flags.add("begin_suppress_tokens", values.begin_suppress_tokens, "ids that must not be the first new token")
      .placeholder("'[1, 2]'");
  flags
      .add("min_length", values.options.history.min_length,
           "minimum total length in tokens, prompt included; --min_new_tokens overrides it")
      .at_least(0);
  flags.add("min_new_tokens", values.options.history.min_new_tokens, "minimum number of new tokens")
      .at_least(0);
  flags
      .add("forced_bos_token_id", values.options.history.forced_bos_token_id,
           "id of the token that must follow a row's start token")
      .at_least(0);
  flags
      .add("forced_eos_token_id", values.forced_eos_token_ids,
           "id, or list of ids, one of which must be the last token when --max_new_tokens is reached")
      .placeholder("ID|'[1, 2]'");
  flags
      .add("logit_bias", values.logit_bias,
           "numbers added to the logits of ids before all else: a JSON object, as OpenAI's API takes it")
      .placeholder("'{\"7\": -100}'");
  flags
      .add("regex", values.regex,
           "structured output: all of the new text matches this regular expression of Python (re.fullmatch); "
           "'pattern' of a JSON schema is ECMAScript's")
      .placeholder("PATTERN");
  flags
      .add("json_schema", values.json_schema,
           "structured output: the new text is JSON that fits this schema, in a file or in place")
      .placeholder("FILE|'{…}'");
  flags.add("stop", values.stop, "end a row before this text").placeholder("TEXT");
}

void add_beams(Flags& flags, GenerateFlags& values) {
  flags.group("Beam search");
  flags.add("num_beams", values.options.beams.num_beams, "number of beams; 1: no beam search")
      .between(1, BeamOptions::kMostBeams);
  flags
      .add("length_penalty", values.options.beams.length_penalty,
           "a beam's score is divided by its length to this power: above 0 favours long texts")
      .between(-1e3, 1e3);
  flags.add("early_stopping", values.early_stopping, "stop as soon as num_beams texts are complete");
  flags
      .add("num_return_sequences", values.options.beams.num_return_sequences,
           "number of beams to return per prompt, best first")
      .at_least(1);
  flags
      .add("num_beam_groups", values.options.beams.num_beam_groups,
           "diverse beam search: number of groups that the beams are divided into")
      .at_least(1);
  flags
      .add("diversity_penalty", values.options.beams.diversity_penalty,
           "diverse beam search: subtracted from a token's score for each beam of an earlier group that "
           "chose it at the same step")
      .at_least(0);
}

void add_drafting(Flags& flags, GenerateFlags& values) {
  flags.group("Speculative decoding");
  flags
      .add("draft_model", values.draft_model,
           "smaller model with the same vocabulary: it drafts tokens that the model checks in one pass; "
           "faster, with the same distribution")
      .placeholder("DIR");
  flags.add("draft_tokens", values.options.draft_tokens, "number of tokens drafted at a time").at_least(1);
}

void add_output(Flags& flags, GenerateFlags& values) {
  flags.group("Output");
  flags.add("json", values.json, "print one JSON object with the new ids, their text and tokens per second");
  flags.add("logprobs", values.logprobs, "with --json: add the log-probability of each new id");
  flags.add("color", values.color, "colour each token by its probability: red is improbable, green probable");
  values.weights.add_to(flags);
  values.weights.add_cache_to(flags);
  flags.add_compute(values.compute);
}

void check(const GenerateFlags& values) {
  if (values.prompt && values.input_ids) throw UsageError("--prompt and --input_ids: give only one of them");
  if (values.interactive && (values.prompt || values.input_ids || values.json))
    throw UsageError(
        "--interactive: reads prompts line by line and prints text; give no --prompt, --input_ids or --json");
  if (values.interactive && (values.num_samples > 1 || values.options.beams.num_return_sequences > 1))
    throw UsageError(
        "--interactive: gives one reply per line; leave out --num_samples and --num_return_sequences");
}

// Checks flags of generate and chat.
void check_choice_of_tokens(const Flags& flags, const GenerateFlags& values) {
  if (values.logprobs && !values.json) throw UsageError("--logprobs: needs --json");
  if (values.color && values.json) throw UsageError("--color: cannot be combined with --json");
  if (values.regex && !values.json_schema.empty())
    throw UsageError("--regex and --json_schema: give only one of them");
  const bool beams = values.options.beams.num_beams > 1;
  if (beams && !values.draft_model.empty())
    throw UsageError("--draft_model: cannot be combined with --num_beams");
  if (beams && values.options.beams.num_beam_groups > 1 && values.temperature.value_or(0) != 0)
    throw UsageError("--temperature: diverse beam search does not sample; leave it out or give 0");
  if (beams && values.num_samples > 1)
    throw UsageError(
        "--num_samples: cannot be combined with --num_beams; --num_return_sequences gives several beams");
  for (const char* flag :
       {"length_penalty", "early_stopping", "num_return_sequences", "num_beam_groups", "diversity_penalty"}) {
    if (!beams && flags.given(flag)) throw UsageError("--", flag, ": needs --num_beams of 2 or more");
  }
}

void add_choice_of_tokens(Flags& flags, GenerateFlags& values) {
  add_sampling(flags, values);
  add_history(flags, values);
  add_beams(flags, values);
  add_drafting(flags, values);
  add_output(flags, values);
}

void check_chat(const GenerateFlags& values, const ChatFlags& chat) {
  if (values.num_samples > 1 || values.options.beams.num_return_sequences > 1)
    throw UsageError("--num_samples and --num_return_sequences: chat gives one answer");
  if (chat.messages) return;
  if (values.json || chat.print_prompt || !chat.add_generation_prompt)
    throw UsageError("--json, --print_prompt and --no_add_generation_prompt: need --messages");
}

}  // namespace

bool parse_generate_flags(const Arguments& arguments, GenerateFlags& values) {
  Flags flags(arguments.command,
              "Continues a text, or token ids, with a language model. An encoder-decoder generates its "
              "answer to the text.");
  add_model(flags, values);
  add_input(flags, values);
  add_choice_of_tokens(flags, values);
  flags.example("tzoo generate --model runs/kjv-char/final --prompt \"In the beginning\" --temperature 0.7");
  if (!flags.parse(arguments)) return false;
  check(values);
  check_choice_of_tokens(flags, values);
  apply_generation_config(values, [&](std::string_view name) { return flags.given(name); });
  return true;
}

bool parse_chat_flags(const Arguments& arguments, GenerateFlags& values, ChatFlags& chat) {
  Flags flags(
      arguments.command,
      "Talks with a model whose checkpoint has a chat template. Line by line: Ctrl-C stops an answer, "
      "Ctrl-D or /exit ends, /help lists the commands. With --messages one answer to a conversation "
      "from a file.");
  add_model(flags, values);
  flags.add("chat_template", chat.chat_template, "Jinja template to use instead of the checkpoint's")
      .placeholder("FILE");
  flags
      .add("messages", chat.messages,
           "answer this conversation and end: a JSON list of objects with role and content; - reads standard "
           "input")
      .placeholder("FILE|-");
  flags.add("tools", chat.tools, "functions that the model may call: a JSON list, as transformers takes it")
      .placeholder("FILE");
  flags.add("add_generation_prompt", chat.add_generation_prompt,
            "with --messages: end the prompt with the beginning of an answer");
  flags.add(
      "print_prompt", chat.print_prompt,
      "with --messages: print the prompt and generate nothing; needs no weights. With --json also its ids");
  add_choice_of_tokens(flags, values);
  flags.example("tzoo chat --model Qwen/Qwen2.5-0.5B-Instruct");
  if (!flags.parse(arguments)) return false;
  check_choice_of_tokens(flags, values);
  check_chat(values, chat);
  if (chat.print_prompt) return true;
  apply_generation_config(values, [&](std::string_view name) { return flags.given(name); });
  return true;
}

namespace {

// The ids of a JSON list; nullopt if it is none.
std::optional<TokenIds> ids_of(const json& list) {
  if (!list.is_array()) return std::nullopt;
  TokenIds ids;
  for (const json& id : list) {
    // The library compares numbers beyond 63 bits as negative ones.
    using Limits = std::numeric_limits<TokenId>;
    const bool is_small = !id.is_number_unsigned() || id.get<std::uint64_t>() <= std::uint64_t{Limits::max()};
    if (!id.is_number_integer() || !is_small || id < Limits::min()) return std::nullopt;
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

// An id, or a list of ids.
TokenIds parse_ids(const std::string& flag, const std::string& text) {
  const json parsed = parse_json(text);
  const std::optional<TokenIds> ids = ids_of(parsed.is_array() ? parsed : json::array({parsed}));
  if (!ids) throw Error("--", flag, ": expected ids, such as [1, 2], got '", text, "'");
  return *ids;
}

std::vector<std::pair<TokenId, double>> parse_logit_bias(const std::string& text) {
  std::vector<std::pair<TokenId, double>> biases;
  const json parsed = parse_json(text);
  bool good = parsed.is_object();
  const json pairs = good ? parsed : json::object();
  for (const auto& [key, value] : pairs.items()) {
    const bool is_id =
        !key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == std::string::npos;
    good = good && is_id && value.is_number();
    if (good) biases.emplace_back(static_cast<TokenId>(std::stol(key)), value.get<double>());
  }
  if (!good) throw Error("--logit_bias: expected ids and numbers, such as {\"7\": -100}, got '", text, "'");
  return biases;
}

}  // namespace

GenerationOptions generation_options(const GenerateFlags& flags) {
  GenerationOptions options = flags.options;
  const bool greedy = options.beams.num_beams > 1;
  options.sampling.temperature = flags.temperature.value_or(greedy ? 0 : 0.8);
  options.beams.sample = options.beams.num_beams > 1 && options.sampling.temperature > 0;
  options.sampling.seed = static_cast<std::uint64_t>(flags.compute.seed);
  HistoryOptions& history = options.history;
  if (flags.bad_words_ids) history.bad_words = parse_id_rows("bad_words_ids", *flags.bad_words_ids);
  if (flags.logit_bias) history.logit_bias = parse_logit_bias(*flags.logit_bias);
  if (flags.suppress_tokens) history.suppressed = parse_ids("suppress_tokens", *flags.suppress_tokens);
  if (flags.begin_suppress_tokens)
    history.suppressed_first = parse_ids("begin_suppress_tokens", *flags.begin_suppress_tokens);
  if (flags.forced_eos_token_ids)
    history.forced_eos_token_ids = parse_ids("forced_eos_token_id", *flags.forced_eos_token_ids);
  if (flags.early_stopping) options.beams.early_stopping = EarlyStopping::kFull;
  options.log_probabilities = flags.logprobs || flags.color;
  return options;
}

std::int64_t new_token_limit(const GenerateFlags& flags, std::int64_t longest_prompt) {
  if (!flags.max_length) return flags.options.max_new_tokens;
  if (*flags.max_length > longest_prompt) return *flags.max_length - longest_prompt;
  throw Error("--max_length ", *flags.max_length, " leaves no new token after ", longest_prompt,
              " tokens; --max_new_tokens counts new ones alone");
}

std::vector<TokenIds> parse_id_rows(const std::string& flag, const std::string& text) {
  const json parsed = parse_json(text);
  std::vector<TokenIds> rows;
  bool good = parsed.is_array() && !parsed.empty();
  for (const json& row : good ? parsed : json::array()) {
    const std::optional<TokenIds> ids = ids_of(row);
    good = good && ids;
    rows.push_back(ids.value_or(TokenIds()));
  }
  if (!good)
    throw Error("--", flag, ": expected a list of lists of ids, such as [[1, 2], [3]], got '", text, "'");
  return rows;
}

}  // namespace zoo
