#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/command/flags.h"
#include "models/checkpoint/checkpoint.h"
#include "models/tasks/generate_session.h"
#include "models/tasks/generation_settings.h"
#include "models/tasks/inference_loading.h"

namespace zoo {

struct GenerateFlags : GenerationSettings {
  ModelPath model;
  std::optional<CheckpointConfig>
      checkpoint;  // of the model, with its defaults: set by apply_generation_config()
  std::optional<GenerationConfig> generation_config;
  std::optional<std::string> prompt, input_ids;
  std::string generation_defaults = "file";
  bool interactive = false;

  // options_of() adds what these say to the settings.
  std::int64_t num_samples = 1;
  std::vector<std::string> bad_words;
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
  bool add_generation_prompt = true, print_prompt = false, assistant_mask = false;
};

/// Fills `values`. False if nothing is left to do, as after --help. Throws UsageError.
bool parse_generate_flags(const Arguments& arguments, GenerateFlags& values);

/// The same for `tzoo chat`. With --print_prompt no checkpoint is read.
bool parse_chat_flags(const Arguments& arguments, GenerateFlags& values, ChatFlags& chat);

/// Reads the model's config.json and generation_config.json, and, unless generation_defaults is "ours", sets
/// the flags that are not given to what the latter says.
void apply_generation_config(GenerateFlags& values, const Flags& flags);

/// Reads all but the weights. Throws Error naming the directory, or the flag that needs a missing tokenizer.
GenerateSession open_session(const GenerateFlags& flags);

/// The flags' prompts, each repeated for the number of samples. Throws Error or UsageError naming the flag.
std::vector<TokenIds> prompts_of(const GenerateFlags& flags, const GenerateSession& session);

/// Options from the flags, completed by the checkpoint and its tokenizer.
GenerationOptions options_of(const GenerateFlags& flags, const GenerateSession& session,
                             const std::vector<TokenIds>& prompts);

/// The model of --draft_model, or null.
std::unique_ptr<DecodingModel> load_draft(const GenerateFlags& flags);

}  // namespace zoo
