#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/command/arguments.h"
#include "models/tasks/compute_options.h"
#include "models/tasks/inference_loading.h"
#include "models/checkpoint/checkpoint.h"
#include "models/generation/generate.h"
#include "models/generation/generation_config.h"

namespace zoo {

/// The flags of `tzoo generate`.
struct GenerateFlags {
  std::filesystem::path model;
  std::optional<CheckpointConfig>
      checkpoint;  // of the model, with its defaults: set by apply_generation_config()
  std::optional<GenerationConfig> generation_config;
  std::optional<std::string> prompt, input_ids;
  std::string generation_defaults = "file";
  bool interactive = false;

  /// Bound to the flags; generation_options() adds what the fields below say.
  GenerationOptions options{.sampling = {.top_k = 200}};
  std::int64_t num_samples = 1;
  std::optional<double> temperature;
  std::optional<std::int64_t> max_length;
  std::vector<std::string> bad_words, stop;
  std::optional<std::string> bad_words_ids, suppress_tokens, begin_suppress_tokens, forced_eos_token_ids,
      regex, logit_bias;
  std::filesystem::path json_schema, draft_model;
  bool early_stopping = false;

  bool json = false, logprobs = false, color = false;
  ComputeOptions compute;
};

/// The flags that only `tzoo chat` has.
struct ChatFlags {
  std::filesystem::path chat_template, tools;
  std::optional<std::string> messages;
  bool add_generation_prompt = true, print_prompt = false;
};

/// Fills `values`. False if nothing is left to do, as after --help. Throws UsageError.
bool parse_generate_flags(const Arguments& arguments, GenerateFlags& values);

/// The same for `tzoo chat`. With --print_prompt no checkpoint is read.
bool parse_chat_flags(const Arguments& arguments, GenerateFlags& values, ChatFlags& chat);

/// Options for choosing tokens; the caller adds bad words given as text, which need a tokenizer.
GenerationOptions generation_options(const GenerateFlags& flags);

/// New tokens that --max_length leaves after `longest_prompt` tokens (an encoder-decoder's start token is
/// one), or
/// --max_new_tokens. Throws Error if none are left.
std::int64_t new_token_limit(const GenerateFlags& flags, std::int64_t longest_prompt);

/// Parses ids such as '[[1, 2], [3]]'. Throws Error naming the flag.
std::vector<TokenIds> parse_id_rows(const std::string& flag, const std::string& text);

}  // namespace zoo
