#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/command/arguments.h"
#include "apps/command/compute_options.h"
#include "apps/verbs/packed_weights.h"
#include "models/generation/generate.h"

namespace zoo {

/// The flags of `tzoo generate`.
struct GenerateFlags {
  std::filesystem::path model;
  std::optional<std::string> prompt, input_ids;
  std::string generation_defaults = "file";
  bool interactive = false;

  std::int64_t num_samples = 1, max_new_tokens = 200, top_k = 200;
  std::optional<double> temperature;
  double top_p = 1.0, min_p = 0.0, typical_p = 1.0, penalty_alpha = 0.0;

  double repetition_penalty = 1.0, presence_penalty = 0.0, frequency_penalty = 0.0;
  std::int64_t no_repeat_ngram_size = 0, min_length = 0, min_new_tokens = 0;
  std::vector<std::string> bad_words, stop;
  std::optional<std::string> bad_words_ids, regex;
  std::filesystem::path json_schema;
  std::optional<std::string> suppress_tokens, begin_suppress_tokens, forced_eos_token_ids;
  std::optional<std::int64_t> forced_bos_token_id, max_length;

  std::filesystem::path draft_model;
  std::int64_t draft_tokens = 4;

  BeamOptions beams;
  bool early_stopping = false;

  bool json = false, logprobs = false, color = false;
  PackedWeights weights;
  ComputeOptions compute;
};

/// Fills `values`. False if nothing is left to do, as after --help. Throws UsageError.
bool parse_generate_flags(const Arguments& arguments, GenerateFlags& values);

/// Options for choosing tokens; the caller adds bad words given as text, which need a tokenizer.
GenerationOptions generation_options(const GenerateFlags& flags);

/// New tokens that --max_length leaves after `longest_prompt` tokens (an encoder-decoder's start token is
/// one), or
/// --max_new_tokens. Throws Error if none are left.
std::int64_t new_token_limit(const GenerateFlags& flags, std::int64_t longest_prompt);

/// Parses ids such as '[[1, 2], [3]]'. Throws Error naming the flag.
std::vector<TokenIds> parse_id_rows(const std::string& flag, const std::string& text);

}  // namespace zoo
