#include "apps/verbs/look/attention_weights.h"

#include <ATen/ops/tensor.h>

#include "apps/command/arguments.h"
#include "data/base/error.h"
#include "models/generation/generate.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

// One GB at four bytes each: fits a laptop's memory beside the model.
constexpr std::int64_t kMostWeights = 256'000'000;

Encoding encode(const TextModel& model, const AttentionTexts& texts) {
  require_utf8(texts.text, "--text");
  const EncodeOptions options{.with_offsets = false};
  Encoding encoding;
  if (texts.text_pair) {
    require_utf8(*texts.text_pair, "--text_pair");
    encoding = model.tokenizer->encode_pair(texts.text, *texts.text_pair, options);
  } else {
    encoding = model.tokenizer->encode(texts.text, options);
  }
  if (encoding.ids.empty()) throw Error("--text: the text is empty");
  return encoding;
}

void check_length(const char* flag, std::size_t tokens, const TransformerConfig& config) {
  const auto length = static_cast<std::int64_t>(tokens);
  if (config.has_position_table() && length > config.max_length()) {
    throw Error(flag, ": ", length, " tokens, but the model reads at most ", config.max_length());
  }
  const std::int64_t weights = config.num_layers * config.num_heads * length * length;
  if (weights > kMostWeights) {
    throw Error(flag, ": ", length, " tokens have ", weights, " attention weights; at most ", kMostWeights,
                " are kept, so give a shorter text");
  }
}

std::vector<std::string> tokens_of(const TextModel& model, const TokenIds& ids) {
  std::vector<std::string> tokens;
  for (const TokenId id : ids) {
    // A model may have more rows of embeddings than its tokenizer has tokens.
    const bool known = id < model.tokenizer->vocab_size();
    tokens.push_back(known ? model.tokenizer->token_text(id) : "#" + std::to_string(id));
    tokens.back() = replace_invalid_utf8(tokens.back());
  }
  return tokens;
}

AttentionMaps maps_of(const std::string& name, const std::vector<at::Tensor>& layers,
                      const std::vector<std::string>& queries, const std::vector<std::string>& keys) {
  AttentionMaps maps{.name = name, .queries = queries, .keys = keys, .layers = layers.size()};
  for (const at::Tensor& layer : layers) {
    const at::Tensor weights = layer[0].to(at::kFloat).cpu().contiguous();  // [H, T, S]
    maps.heads = static_cast<std::size_t>(weights.size(0));
    const float* data = weights.const_data_ptr<float>();
    maps.weights.insert(maps.weights.end(), data, data + weights.numel());
  }
  return maps;
}

TokenId start_token(const TextModel& model, const GenerationDefaults& defaults) {
  if (defaults.decoder_start_token_id) return *defaults.decoder_start_token_id;
  const TransformerConfig& config = model.model->config();
  if (config.decoder_start_token_id >= 0 && config.decoder_start_token_id < config.vocab_size)
    return static_cast<TokenId>(config.decoder_start_token_id);
  throw Error("--model: its config.json has no decoder_start_token_id");
}

// Decoder inputs: the start token, then the target or the generated tokens.
TokenIds decoder_ids(const TextModel& model, const TokenIds& source, const AttentionTexts& texts,
                     const GenerationDefaults& defaults) {
  TokenIds ids{start_token(model, defaults)};
  if (texts.target) {
    require_utf8(*texts.target, "--target");
    const auto target = model.tokenizer->encode(*texts.target);
    ids.insert(ids.end(), target.begin(), target.end());
    return ids;
  }
  if (model.head != Head::kSeq2SeqLm) {
    throw UsageError("missing flag '--target': without a language model head the decoder cannot generate it");
  }
  const GenerationOptions options{.max_new_tokens = texts.max_new_tokens,
                                  .sampling = {.temperature = 0},
                                  .eos_token_ids = defaults.eos_token_ids,
                                  .decoder_start_token_id = ids.front()};
  const GenerationResult written = generate(*model.model, {source}, options);
  ids.insert(ids.end(), written.ids[0].begin(), written.ids[0].end());
  if (ids.size() > 1) ids.pop_back();  // the last generated token is never an input
  return ids;
}

void check_texts(const TransformerConfig& config, const AttentionTexts& texts) {
  if (texts.text_pair && config.shape != Shape::kEncoder) {
    throw UsageError("--text_pair: only an encoder reads two texts, and this model is not one",
                     config.shape == Shape::kEncoderDecoder ? "; the decoder's text is --target" : "");
  }
  if (texts.target && config.shape != Shape::kEncoderDecoder) {
    throw UsageError("--target: only an encoder-decoder has a target, and this model is not one");
  }
}

}  // namespace

std::vector<AttentionMaps> attention_of(const TextModel& model, const AttentionTexts& texts,
                                        const GenerationDefaults& defaults) {
  const TransformerConfig& config = model.model->config();
  check_texts(config, texts);
  const Encoding encoding = encode(model, texts);
  check_length("--text", encoding.size(), config);
  const Encoding* const batch[] = {&encoding};
  ModelInputs inputs = batch_of(model, batch);
  inputs.output_attentions = true;
  const TokenIds& source = encoding.ids;
  const auto tokens = tokens_of(model, source);
  if (config.shape != Shape::kEncoderDecoder) {
    const ModelOutput output = model.model->forward(inputs);
    if (output.attentions.empty()) throw Error("--model: this model has no attention");
    return {
        maps_of(config.shape == Shape::kEncoder ? "encoder" : "decoder", output.attentions, tokens, tokens)};
  }
  const TokenIds target = decoder_ids(model, source, texts, defaults);
  check_length("--target", target.size(), config);
  inputs.decoder_input_ids = at::tensor(target, at::kLong).unsqueeze(0).to(model.device);
  const ModelOutput output = model.model->forward(inputs);
  const auto written = tokens_of(model, target);
  return {maps_of("encoder", output.encoder_attentions, tokens, tokens),
          maps_of("decoder", output.attentions, written, written),
          maps_of("cross", output.cross_attentions, written, tokens)};
}

}  // namespace zoo
