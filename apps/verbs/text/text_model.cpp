#include "apps/verbs/text/text_model.h"

#include <algorithm>
#include <numeric>

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "apps/verbs/torch_options.h"
#include "data/base/error.h"

namespace zoo {

std::size_t TextModel::max_length() const {
  return static_cast<std::size_t>(model->config().max_length());
}

TextModel load_text_model(const std::filesystem::path& directory, const ComputeOptions& compute,
                          const PackedWeights& weights, std::optional<Head> head) {
  apply_threads(compute);
  static_cast<void>(read_checkpoint_config(directory));  // gives a clear error if this is not a checkpoint
  if (!has_tokenizer(directory)) throw Error("--model: ", directory, " holds no tokenizer, which texts need");
  TextModel text_model{.tokenizer = load_tokenizer(directory), .device = device_of(compute)};
  LoadedModel loaded = load_model(
      directory, {.dtype = dtype_of(compute), .device = text_model.device, .trainable = false, .head = head});
  const std::int64_t tokens = text_model.tokenizer->vocab_size(), known = loaded.model->config().vocab_size;
  if (tokens > known) {
    throw Error(directory, ": the tokenizer has ", tokens, " tokens, the model only ", known);
  }
  text_model.model = std::move(loaded.model);
  if (text_model.model->config().shape == Shape::kEncoder)
    text_model.model = with_packed_encoder(std::move(text_model.model), compute, weights);
  text_model.head = loaded.head;
  return text_model;
}

ModelInputs batch_of(const TextModel& model, std::span<const Encoding* const> encodings) {
  std::size_t longest = 0, shortest = SIZE_MAX;
  for (const Encoding* encoding : encodings) {
    longest = std::max(longest, encoding->size());
    shortest = std::min(shortest, encoding->size());
  }
  const auto rows = static_cast<std::int64_t>(encodings.size()), width = static_cast<std::int64_t>(longest);
  const auto pad = model.tokenizer->special_id(SpecialToken::pad);
  const at::Tensor ids = at::full({rows, width}, static_cast<std::int64_t>(pad.value_or(0)), at::kLong);
  const at::Tensor types = at::zeros({rows, width}, at::kLong), mask = at::zeros({rows, width}, at::kLong);
  for (std::int64_t row = 0; row < rows; ++row) {
    const Encoding& encoding = *encodings[static_cast<std::size_t>(row)];
    const std::int64_t begin = row * width;
    std::copy(encoding.ids.begin(), encoding.ids.end(), ids.mutable_data_ptr<std::int64_t>() + begin);
    std::copy(encoding.type_ids.begin(), encoding.type_ids.end(),
              types.mutable_data_ptr<std::int64_t>() + begin);
    std::fill_n(mask.mutable_data_ptr<std::int64_t>() + begin, encoding.size(), 1);
  }
  ModelInputs inputs{.input_ids = ids.to(model.device)};
  if (shortest < longest) inputs.attention_mask = mask.to(model.device);
  if (model.model->config().type_vocab_size > 0) inputs.token_type_ids = types.to(model.device);
  return inputs;
}

std::vector<std::size_t> by_length(std::span<const Encoding> encodings) {
  std::vector<std::size_t> order(encodings.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return encodings[a].size() > encodings[b].size(); });
  return order;
}

}  // namespace zoo
