#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/verbs/generate/generate_flags.h"
#include "apps/verbs/text/text_input.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "data/corpora/text_file.h"
#include "models/tasks/text_constraint.h"
#include "tokenizer/constraint/json_schema.h"
#include "tokenizer/constraint/regular_expression.h"

namespace zoo {
namespace {

// The first given flag that needs text; empty if there is none.
std::string flag_of_text(const GenerateFlags& flags) {
  if (flags.prompt) return "prompt";
  if (flags.interactive) return "interactive";
  if (!flags.stop.empty()) return "stop";
  if (!flags.bad_words.empty()) return "bad_words";
  if (flags.regex) return "regex";
  if (!flags.json_schema.empty()) return "json_schema";
  if (flags.color) return "color";
  return {};
}

TokenIds encode(const GenerateSession& session, const std::string& prompt) {
  try {
    // With the special tokens of training: T5's </s>, Llama's <s>.
    return session.tokenizer->encode(prompt, EncodeOptions{.with_offsets = false}).ids;
  } catch (const Error& error) {
    throw Error("--prompt: ", error.what());
  }
}

// Prompt if none is given: the model's BOS token or, as in nanoGPT's samples, a newline.
TokenIds default_prompt(const GenerateSession& session) {
  const auto& bos = session.defaults.bos_token_id;
  if (bos && *bos < session.vocab_size()) return {*bos};
  if (session.tokenizer) {
    try {
      if (TokenIds ids = session.tokenizer->encode("\n"); !ids.empty()) return ids;
    } catch (const Error&) {  // the vocabulary has no newline
    }
    if (const auto id = session.tokenizer->eos_id()) return {*id};
  }
  throw UsageError("missing flag '--prompt' or '--input_ids': the model has no start token");
}

// Encodings of the text: as it is, and after a space.
std::vector<TokenIds> bad_word_ids(const std::string& text, const Tokenizer& tokenizer) {
  std::vector<TokenIds> found;
  for (const std::string& written : {text, " " + text}) {
    try {
      TokenIds ids = tokenizer.encode(written);
      if (!ids.empty()) found.push_back(std::move(ids));
    } catch (const Error& error) {
      if (written == text) throw Error("--bad_words: ", error.what());
    }
  }
  return found;
}

PatternPtr pattern_of(const GenerateFlags& flags) {
  if (flags.regex) return parse_regular_expression(*flags.regex, ExpressionDialect::kPython).pattern;
  // A schema in place of its file begins with a brace or is true or false.
  const std::string given = flags.json_schema.string();
  const bool in_place = given.starts_with('{') || given == "true" || given == "false";
  const auto schema = parse_ordered_json(in_place ? given : read_text(flags.json_schema));
  if (schema.is_discarded()) throw Error(flags.json_schema, " is not JSON");
  return json_schema_pattern(schema);
}

// The constraint of --regex or --json_schema; null without these flags.
std::shared_ptr<const TokenConstraint> text_constraint(const GenerateFlags& flags,
                                                       const GenerateSession& session) {
  if (!flags.regex && flags.json_schema.empty()) return nullptr;
  try {
    return make_text_constraint(
        make_token_automaton(pattern_of(flags), session, token_bytes(*session.tokenizer)), session);
  } catch (const Error& error) {
    throw Error(flags.regex ? "--regex: " : "--json_schema: ", flag_message(error));
  }
}

std::vector<std::pair<TokenId, double>> parse_logit_bias(const std::string& text) {
  std::vector<std::pair<TokenId, double>> biases;
  const nlohmann::json parsed = parse_json(text);
  bool good = parsed.is_object();
  const nlohmann::json pairs = good ? parsed : nlohmann::json::object();
  for (const auto& [key, value] : pairs.items()) {
    const auto id = number_in<TokenId>(key);
    good = good && id && *id >= 0 && std::to_string(*id) == key && value.is_number();
    if (good) biases.emplace_back(*id, value.get<double>());
  }
  if (!good)
    throw UsageError("--logit_bias: expected ids and numbers, such as {\"7\": -100}, got '", text, "'");
  return biases;
}

// Learned positions slide; rotary ones go on, to angles that training has never shown.
void note_length(const TransformerConfig& config, std::int64_t tokens, std::int64_t context) {
  if (config.position != PositionKind::kRotary || config.shape != Shape::kDecoder) return;
  const std::int64_t most = config.max_positions;
  if (std::min(tokens, context > 0 ? context : tokens) <= most) return;
  std::cerr << "note: the text may grow to " << tokens << " tokens, and the model knows the positions of "
            << most << ": what follows may decay. --context " << most << " lets it see the last ones only\n";
}

}  // namespace

GenerateSession open_session(const GenerateFlags& flags) {
  const std::string needs_text = flag_of_text(flags);
  GenerateSession session = open_generate_session(
      *flags.checkpoint, *flags.generation_config, flags.stop,
      !flags.input_ids || !needs_text.empty() ? TokenizerUse::kNeeded : TokenizerUse::kIfReadable);
  if (!session.tokenizer && !needs_text.empty())
    throw Error("--", needs_text, ": ", flags.model,
                " holds no tokenizer, which texts need; give --input_ids without it");
  return session;
}

std::vector<TokenIds> prompts_of(const GenerateFlags& flags, const GenerateSession& session) {
  std::vector<TokenIds> prompts;
  if (flags.input_ids) {
    prompts = parse_id_rows("input_ids", *flags.input_ids);
  } else if (flags.prompt) {
    prompts = {encode(session, given_text(*flags.prompt))};
  } else if (session.has_encoder()) {
    throw UsageError("missing flag '--prompt' or '--input_ids': the encoder needs a text");
  } else {
    prompts = {default_prompt(session)};
  }
  std::vector<TokenIds> repeated;
  for (const TokenIds& prompt : prompts)
    repeated.insert(repeated.end(), static_cast<std::size_t>(flags.num_samples), prompt);
  return repeated;
}

GenerationOptions options_of(const GenerateFlags& flags, const GenerateSession& session,
                             const std::vector<TokenIds>& prompts) {
  GenerationOptions options = flags.generation_options();
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
  std::size_t longest = session.has_encoder() ? 1 : 0;
  for (const TokenIds& prompt : prompts)
    if (!session.has_encoder()) longest = std::max(longest, prompt.size());
  options.max_new_tokens = flags.new_token_limit(static_cast<std::int64_t>(longest));
  complete(options, session);
  note_length(session.checkpoint.config, static_cast<std::int64_t>(longest) + options.max_new_tokens,
              options.context);
  for (const std::string& text : flags.bad_words) {
    for (TokenIds& ids : bad_word_ids(text, *session.tokenizer)) history.bad_words.push_back(std::move(ids));
  }
  options.constraint = text_constraint(flags, session);
  return options;
}

std::unique_ptr<DecodingModel> load_draft(const GenerateFlags& flags) {
  if (flags.draft_model.empty()) return nullptr;
  return load_decoding_model(read_writing_checkpoint(flags.draft_model), flags.compute);
}

}  // namespace zoo
