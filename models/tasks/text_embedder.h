#pragma once

/// @file
/// Use:
///
///     const zoo::TextEmbedder embedder("all-MiniLM-L6-v2");                  // a directory
///     const at::Tensor vectors = embedder.embed({"to be", "or not to be"});  // [2, D]
///     std::cout << at::cosine_similarity(vectors[0], vectors[1], /*dim=*/0).item<double>() << "\n";

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/model_io.h"
#include "models/tasks/sentence_modules.h"
#include "models/tasks/text_model.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

struct EmbedOptions {
  SentenceModuleOptions modules;
  std::optional<std::string> prompt;  // before each text; none: the directory's default
  std::optional<std::size_t> max_length;
};

/// Texts to vectors with an encoder or a decoder, as Sentence-Transformers (Reimers and Gurevych, 2019):
/// prompt, tokenizer, transformer, pooling and the modules after it.
class TextEmbedder {
 public:
  /// Loads a Sentence-Transformers directory or a plain checkpoint, in float32. Throws Error as
  /// SentenceConfig::read, load_model and load_tokenizer do.
  explicit TextEmbedder(const std::filesystem::path& directory, const EmbedOptions& options = {});

  /// With a bare model that is loaded already, on options.modules.device.
  TextEmbedder(std::shared_ptr<Model> model, std::shared_ptr<Tokenizer> tokenizer,
               const SentenceConfig& config, const EmbedOptions& options);

  /// The same model with another text before each text.
  TextEmbedder with_prompt(const std::string& prompt) const;
  /// The same model without the scaling of vectors to length 1.
  TextEmbedder unnormalized() const;

  /// Vectors [N, D] of the texts in their order, float32 on the CPU. Throws Error naming a text without
  /// tokens, FieldError for a batch_size of 0.
  at::Tensor embed(const std::vector<std::string>& texts, std::size_t batch_size = 32,
                   const RunPass& run = run_at_once) const;

  /// embed() in parts: the tokens of the prompt and each text, all of them or max_length() at most.
  std::vector<Encoding> encode(const std::vector<std::string>& texts, bool truncates = true) const;
  /// The vectors [D] of texts. `prompted` is false for encodings without the prompt.
  TextPass pass(std::size_t batch_size = 32, bool prompted = true) const;
  /// Vectors [N, D] of one batch, with gradients where they are enabled, on the model's device.
  at::Tensor vectors_of(std::span<const Encoding* const> batch, bool prompted = true) const;

  /// Maximum number of tokens that are read of a text; none: no limit.
  const std::optional<std::size_t>& max_length() const { return max_length_; }
  const TransformerConfig& config() const;
  const SentenceModules& modules() const { return *modules_; }

 private:
  TextEmbedder(const SentenceConfig& config, const EmbedOptions& options);

  std::shared_ptr<Model> model_;
  std::shared_ptr<Tokenizer> tokenizer_;
  std::shared_ptr<const SentenceModules> modules_;
  c10::Device device_;
  std::string prompt_;
  std::optional<std::size_t> max_length_;
  std::int64_t prompt_length_ = 0;
  bool normalizes_ = true;
};

}  // namespace zoo
