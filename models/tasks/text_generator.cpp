#include "models/tasks/text_generator.h"

#include <algorithm>

#include "data/base/error.h"
#include "models/generation/generate.h"
#include "models/tasks/inference_loading.h"

namespace zoo {

namespace {

GenerationSettings settings_of(const GenerationConfig& config) {
  GenerationSettings settings;
  apply_generation_config(settings, config, [](std::string_view) { return false; });
  if (settings.max_length) settings.options.max_new_tokens = 0;  // until the caller sets it
  return settings;
}

}  // namespace

TextGenerator::TextGenerator(const std::filesystem::path& model, const ComputeOptions& compute)
    : TextGenerator(read_writing_checkpoint(model), compute) {}

TextGenerator::TextGenerator(const CheckpointConfig& checkpoint, const ComputeOptions& compute)
    : config_(read_generation_config(checkpoint.directory, checkpoint.json)),
      settings_(settings_of(config_)),
      session_(open_generate_session(checkpoint, config_, settings_.stop, TokenizerUse::kNeeded)) {
  if (!session_.tokenizer) throw Error(checkpoint.directory, " holds no tokenizer, which texts need");
  settings_.options.sampling.seed = static_cast<std::uint64_t>(compute.seed);
  model_ = load_decoding_model(checkpoint, compute);
}

std::vector<std::string> TextGenerator::generate(const std::vector<std::string>& prompts,
                                                 const GenerationSettings& settings) {
  GenerateSession session = session_;
  session.stop = StopStrings(settings.stop);
  if (!settings.options.eos_token_ids.empty())
    session.defaults.eos_token_ids = settings.options.eos_token_ids;  // which texts leave out
  std::vector<TokenIds> ids;
  std::size_t longest = session.has_encoder() ? 1 : 0;
  for (const std::string& prompt : prompts) {
    ids.push_back(session.tokenizer->encode(prompt, EncodeOptions{.with_offsets = false}).ids);
    if (!session.has_encoder()) longest = std::max(longest, ids.back().size());
  }
  GenerationOptions options = settings.generation_options();
  // As in transformers, a caller's max_new_tokens overrides the file's max_length.
  const bool overrides = options.max_new_tokens > 0 && settings.max_length == settings_.max_length;
  if (!overrides) options.max_new_tokens = settings.new_token_limit(static_cast<std::int64_t>(longest));
  complete(options, session);
  std::vector<std::string> texts;
  for (const TokenIds& row : zoo::generate(*model_, ids, options).ids)
    texts.push_back(text_of_row(row, session));
  return texts;
}

}  // namespace zoo
