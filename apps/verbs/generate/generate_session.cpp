#include "apps/verbs/generate/generate_session.h"

#include <algorithm>
#include <iostream>
#include <iterator>

#include "apps/command/lines.h"
#include "apps/verbs/generate/text_constraint.h"
#include "data/base/error.h"
#include "data/corpora/text_file.h"
#include "models/tasks/encoding_batch.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

// Generation from ids works even if the zoo cannot read the model's tokenizer; it then prints no text.
std::unique_ptr<Tokenizer> open_tokenizer(const CheckpointConfig& checkpoint, bool needed) {
  if (!has_tokenizer(checkpoint.directory)) return nullptr;
  try {
    return load_tokenizer(checkpoint.directory, checkpoint.json.get());
  } catch (const Error& error) {
    if (needed) throw;
    std::cerr << "note: no text, only ids: " << error.what() << "\n";
    return nullptr;
  }
}

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

TokenIds encode(const GenerateSession& session, const std::string& flag, const std::string& text) {
  try {
    // With the special tokens of training: T5's </s>, Llama's <s>.
    return session.tokenizer->encode(text, EncodeOptions{.with_offsets = false}).ids;
  } catch (const Error& error) {
    throw Error("--", flag, ": ", error.what());
  }
}

std::string read_prompt(const std::string& prompt) {
  constexpr std::string_view kFile = "FILE:";
  if (prompt == "-") return read_standard_input();
  if (prompt.compare(0, kFile.size(), kFile) == 0) return read_text(prompt.substr(kFile.size()));
  return prompt;
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

}  // namespace

GenerateSession open_generate_session(const GenerateFlags& flags) {
  const fs::path& directory = flags.model;
  for (const std::string& text : flags.stop) require_utf8(text, "--stop");
  GenerateSession session{*flags.checkpoint, defaults_of(*flags.generation_config), nullptr,
                          StopStrings(flags.stop)};
  require_writes(session.checkpoint);
  const std::string needs_text = flag_of_text(flags);
  auto tokenizer = open_tokenizer(session.checkpoint, !flags.input_ids || !needs_text.empty());
  if (tokenizer) require_fit(*tokenizer, session.checkpoint.config, directory);
  session.tokenizer = std::move(tokenizer);
  if (!session.tokenizer && !needs_text.empty()) {
    throw Error("--", needs_text, ": ", directory,
                " holds no tokenizer, which texts need; give --input_ids without it");
  }
  return session;
}

std::vector<TokenIds> prompts_of(const GenerateFlags& flags, const GenerateSession& session) {
  std::vector<TokenIds> prompts;
  if (flags.input_ids) {
    prompts = parse_id_rows("input_ids", *flags.input_ids);
  } else if (flags.prompt) {
    prompts = {encode(session, "prompt", read_prompt(*flags.prompt))};
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
  GenerationOptions options = generation_options(flags);
  std::size_t longest = session.has_encoder() ? 1 : 0;
  for (const TokenIds& prompt : prompts) {
    if (!session.has_encoder()) longest = std::max(longest, prompt.size());
  }
  options.max_new_tokens = new_token_limit(flags, static_cast<std::int64_t>(longest));
  options.eos_token_ids = session.defaults.eos_token_ids;
  options.beams.filler_id = session.defaults.pad_token_id.value_or(-1);
  options.decoder_start_token_id = decoder_start(session.defaults, session.checkpoint.config);
  for (const std::string& text : flags.bad_words) {
    for (TokenIds& ids : bad_word_ids(text, *session.tokenizer))
      options.history.bad_words.push_back(std::move(ids));
  }
  options.constraint = make_text_constraint(flags, session);
  set_stop_strings(options, session);
  return options;
}

void set_stop_strings(GenerationOptions& options, const GenerateSession& session) {
  if (session.stop.empty()) return;
  options.row_ends = [text_ids = TextIds(session), &stop = session.stop](const TokenIds& ids) {
    // Each token has at least one byte, except special tokens.
    const std::size_t enough = 2 * stop.longest() + 8;
    const std::size_t first = ids.size() > enough ? ids.size() - enough : 0;
    return stop.find(text_ids.text_of(ids, first)).has_value();
  };
}

std::unique_ptr<DecodingModel> load_draft(const GenerateFlags& flags) {
  if (flags.draft_model.empty()) return nullptr;
  return load_decoding_model(read_writing_checkpoint(flags.draft_model), flags.compute);
}

bool TextIds::contains(TokenId id) const {
  return id >= 0 && id < tokenizer_.id_count() && std::find(ends_.begin(), ends_.end(), id) == ends_.end();
}

std::string TextIds::text_of(const TokenIds& ids, std::size_t first) const {
  TokenIds kept;
  for (std::size_t i = first; i < ids.size(); ++i) {
    if (contains(ids[i])) kept.push_back(ids[i]);
  }
  return tokenizer_.decode(kept);
}

}  // namespace zoo
