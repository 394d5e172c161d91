#pragma once

/// @file
/// Use:
///
///     zoo::TextGenerator model("gpt2");  // a directory or a GGUF file
///     zoo::GenerationSettings settings = model.settings();
///     std::cout << model.generate({"Once upon a time"}, settings)[0] << "\n";
///     zoo::Conversation conversation = model.conversation();  // of a model with a chat template
///     std::cout << model.reply(conversation, "Who was Moses?", settings) << "\n";

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/generation/decoding_session.h"
#include "models/tasks/compute_options.h"
#include "models/tasks/conversation.h"
#include "models/tasks/generate_session.h"
#include "models/tasks/generation_settings.h"

namespace zoo {

/// A language model that continues texts (decoder) or answers them (encoder-decoder). It computes as
/// `tzoo generate` does: with packed weights, and with our kernels where they support the model. Threads may
/// share it, each with its own constraint; passes over packed weights take turns.
class TextGenerator {
 public:
  /// Throws Error naming a file that is missing or wrong, FieldError for options that do not fit the model.
  explicit TextGenerator(const std::filesystem::path& model, const ComputeOptions& compute = {});

  /// The defaults of the model's generation_config.json; where it has none, those of `tzoo generate`. If the
  /// file says max_length, options.max_new_tokens is 0; a caller who sets it overrides max_length.
  const GenerationSettings& settings() const { return settings_; }

  /// New texts without the prompt, in the order of the prompts: one each, or num_return_sequences, best
  /// first. Throws as zoo::generate() does.
  std::vector<std::string> generate(const std::vector<std::string>& prompts,
                                    const GenerationSettings& settings);
  std::vector<std::string> generate(const std::vector<std::string>& prompts) {
    return generate(prompts, settings_);
  }

  /// An empty conversation, in the form of the model's chat template. Throws Error if it has none.
  Conversation conversation() const;

  /// The answer (of beams the best) to a message, which joins the conversation with it; `on_text` gets its
  /// parts as they are written, and ends it by returning false. The seed changes with each message, so that a
  /// message sent twice gets two answers. Throws as generate() and Conversation::ask().
  std::string reply(Conversation& conversation, const std::string& message,
                    const GenerationSettings& settings,
                    const std::function<bool(std::string_view)>& on_text = {});

 private:
  TextGenerator(const CheckpointConfig& checkpoint, const ComputeOptions& compute);
  GenerateSession session_for(const GenerationSettings& settings) const;
  std::optional<std::int64_t> max_length_of(const GenerationSettings& settings) const;
  GenerationOptions options_for(const GenerationSettings& settings, std::size_t longest_prompt) const;

  GenerationConfig config_;
  GenerationSettings settings_;
  GenerateSession session_;
  std::unique_ptr<DecodingModel> model_;
};

}  // namespace zoo
