#include "models/tasks/text_embedder.h"

#include <algorithm>

#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>

#include "data/base/field_error.h"
#include "models/checkpoint/checkpoint.h"
#include "models/model.h"
#include "models/tasks/encoding_batch.h"

namespace zoo {
namespace {

// max_seq_length replaces the tokenizer's model_max_length. A table of positions limits both.
std::optional<std::size_t> length_limit(const Model& model, const Tokenizer& tokenizer,
                                        const SentenceConfig& config) {
  const TransformerConfig& sizes = model.config();
  std::optional<std::size_t> limit = config.max_length ? config.max_length : tokenizer.limits().max_length;
  const bool bounded = sizes.has_position_table() || (sizes.shape == Shape::kDecoder && !config.max_length);
  const auto positions = static_cast<std::size_t>(sizes.max_length());
  return bounded ? std::min(limit.value_or(positions), positions) : limit;
}

// Tokens that the prompt puts before those of a text: without the special token at its end.
std::int64_t length_of_prompt(const Tokenizer& tokenizer, const std::string& prompt,
                              std::optional<std::size_t> max_length) {
  if (prompt.empty()) return 0;
  const Encoding encoding = tokenizer.encode(prompt, {.max_length = max_length, .with_offsets = false});
  if (encoding.ids.empty()) return 0;
  const bool ends = encoding.texts.back() < 0 || tokenizer.has_role(encoding.ids.back());
  return static_cast<std::int64_t>(encoding.size()) - (ends ? 1 : 0);
}

}  // namespace

TextEmbedder::TextEmbedder(const std::filesystem::path& directory, const EmbedOptions& options)
    : TextEmbedder(SentenceConfig::read(directory), options) {}

TextEmbedder::TextEmbedder(const SentenceConfig& config, const EmbedOptions& options)
    // In braces the model is loaded first: it tells best what a directory lacks.
    : TextEmbedder{
          load_model(config.transformer, {.device = options.modules.device, .head = Head::kBase}).model,
          load_tokenizer(config.transformer), config, options} {}

TextEmbedder::TextEmbedder(std::shared_ptr<Model> model, std::shared_ptr<Tokenizer> tokenizer,
                           const SentenceConfig& config, const EmbedOptions& options)
    : model_(std::move(model)),
      tokenizer_(std::move(tokenizer)),
      modules_(std::make_shared<const SentenceModules>(load_sentence_modules(config, options.modules))),
      device_(options.modules.device),
      max_length_(length_limit(*model_, *tokenizer_, config)) {
  require_fit(*tokenizer_, model_->config(), config.transformer);
  if (model_->config().shape == Shape::kEncoderDecoder)
    throw Error(config.transformer,
                ": an encoder-decoder gives no vector for a text; expected an encoder or a decoder");
  if (options.max_length)
    max_length_ = std::min(*options.max_length, max_length_.value_or(*options.max_length));
  if (config.lowercase) tokenizer_->lowercase_texts();
  *this = with_prompt(options.prompt.value_or(config.default_prompt));
}

TextEmbedder TextEmbedder::with_prompt(const std::string& prompt) const {
  TextEmbedder other = *this;
  other.prompt_ = prompt;
  other.prompt_length_ = length_of_prompt(*tokenizer_, prompt, max_length_);
  return other;
}

TextEmbedder TextEmbedder::unnormalized() const {
  TextEmbedder other = *this;
  other.normalizes_ = false;
  return other;
}

const TransformerConfig& TextEmbedder::config() const { return model_->config(); }

std::vector<Encoding> TextEmbedder::encode(const std::vector<std::string>& texts, bool truncates) const {
  const EncodeOptions options{.max_length = truncates ? max_length_ : std::nullopt, .with_offsets = false};
  std::vector<Encoding> encodings;
  for (const std::string& text : texts) {
    encodings.push_back(tokenizer_->encode(prompt_ + text, options));
    if (encodings.back().ids.empty()) throw Error("the text '", text, "' has no tokens, so it has no vector");
  }
  return encodings;
}

TextPass TextEmbedder::pass(std::size_t batch_size, bool prompted) const {
  require_in(at_least(1), "batch_size", static_cast<double>(batch_size));
  return {.compute =
              [embedder = *this, prompted](std::span<const Encoding* const> batch) {
                const at::NoGradGuard no_grad;
                return embedder.vectors_of(batch, prompted).cpu().contiguous().unbind();
              },
          .model = model_.get(),
          .kind = 2 * (prompted ? prompt_length_ : 0) + (normalizes_ ? 0 : 1),
          .most_texts = batch_size};
}

at::Tensor TextEmbedder::vectors_of(std::span<const Encoding* const> batch, bool prompted) const {
  const ModelInputs inputs = batch_of(*model_, *tokenizer_, device_, batch);
  SentenceFeatures features{.tokens = model_->forward(inputs).last_hidden_state.to(at::kFloat),
                            .mask = inputs.attention_mask,
                            .prompt_length = prompted ? prompt_length_ : 0,
                            .normalizes = normalizes_};
  if (!features.mask.defined())
    features.mask = at::ones(inputs.input_ids.sizes(), inputs.input_ids.options());
  for (const SentenceModule& module : *modules_) module.apply(features);
  return features.sentence;
}

at::Tensor TextEmbedder::embed(const std::vector<std::string>& texts, std::size_t batch_size,
                               const RunPass& run) const {
  if (texts.empty()) {  // D is the modules' choice, which any token shows
    const Encoding token{.ids = {0}, .type_ids = {0}};
    return at::stack(run(pass(batch_size), {token})).slice(0, 0, 0);
  }
  const std::vector<at::Tensor> vectors = run(pass(batch_size), encode(texts));
  for (std::size_t i = 0; i < vectors.size(); ++i)
    if (!vectors[i].isfinite().all().item<bool>())
      throw Error("the vector of the text '", texts[i], "' is not finite: its pooling leaves no token");
  return at::stack(vectors);
}

}  // namespace zoo
