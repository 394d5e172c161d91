#include "models/tasks/encoding_batch.h"

#include <algorithm>
#include <functional>

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "data/base/error.h"
#include "data/base/sizes.h"
#include "models/model.h"

namespace zoo {
namespace {

std::int64_t pad_id(const TransformerConfig& config, const Tokenizer& tokenizer) {
  const auto is_known = [&](std::int64_t id) { return id >= 0 && id < config.vocab_size; };
  if (is_known(config.pad_token_id)) return config.pad_token_id;
  const std::int64_t own = tokenizer.special_id(SpecialToken::pad).value_or(0);
  return is_known(own) ? own : 0;  // hidden by the mask, whatever it is
}

}  // namespace

ModelInputs batch_of(const Model& model, const Tokenizer& tokenizer, c10::Device device,
                     std::span<const Encoding* const> encodings) {
  std::size_t longest = 0, shortest = SIZE_MAX;
  for (const Encoding* encoding : encodings) {
    longest = std::max(longest, encoding->size());
    shortest = std::min(shortest, encoding->size());
  }
  const auto rows = static_cast<std::int64_t>(encodings.size()), width = static_cast<std::int64_t>(longest);
  const at::Tensor ids = at::full({rows, width}, pad_id(model.config(), tokenizer), at::kLong);
  const at::Tensor types = at::zeros({rows, width}, at::kLong), mask = at::zeros({rows, width}, at::kLong);
  for (std::int64_t row = 0; row < rows; ++row) {
    const Encoding& encoding = *encodings[static_cast<std::size_t>(row)];
    const std::int64_t begin = row * width;
    std::copy(encoding.ids.begin(), encoding.ids.end(), ids.mutable_data_ptr<std::int64_t>() + begin);
    std::copy(encoding.type_ids.begin(), encoding.type_ids.end(),
              types.mutable_data_ptr<std::int64_t>() + begin);
    std::fill_n(mask.mutable_data_ptr<std::int64_t>() + begin, encoding.size(), 1);
  }
  ModelInputs inputs{.input_ids = ids.to(device)};
  if (shortest < longest) inputs.attention_mask = mask.to(device);
  if (model.config().type_vocab_size > 0 && tokenizer.limits().gives_segments)
    inputs.token_type_ids = types.to(device);
  return inputs;
}

void require_fit(Tokenizer& tokenizer, const TransformerConfig& config,
                 const std::filesystem::path& directory) {
  const std::int64_t tokens = tokenizer.vocab_size(), known = config.vocab_size;
  if (2 * tokens < known)
    throw Error(directory, ": the tokenizer has only ", tokens, " tokens, the model ", known,
                ": it is the tokenizer of another model");
  tokenizer.set_id_count(known);
}

std::vector<std::size_t> by_length(std::span<const Encoding> encodings) {
  std::vector<std::size_t> order = indices_below(encodings.size());
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return encodings[i].size(); });
  return order;
}

}  // namespace zoo
