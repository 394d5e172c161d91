#include "models/tasks/text_model.h"

#include <algorithm>

#include "data/base/field_error.h"
#include "models/tasks/inference_loading.h"

namespace zoo {

std::size_t TextModel::max_length() const {
  const auto limit = static_cast<std::size_t>(model->config().max_length());
  return std::min(limit, tokenizer->limits().max_length.value_or(limit));
}

TextModel load_text_model(const CheckpointConfig& checkpoint, const ComputeOptions& compute,
                          std::optional<Head> head) {
  const ModelPath& directory = checkpoint.directory;
  if (!has_tokenizer(directory))
    throw FieldError(Field{"model"}, ": ", directory, " holds no tokenizer, which texts need");
  TextModel text_model{.checkpoint = checkpoint,
                       .tokenizer = load_tokenizer(directory, checkpoint.json.get()),
                       .device = device_of(compute, checkpoint)};
  const bool packed = packs(checkpoint, compute);
  // As in load_decoding_model(): packing starts from float32.
  const bool decodes = packed && head == Head::kSeq2SeqLm;
  const LoadedModel loaded = load_model(checkpoint, {.dtype = decodes ? at::kFloat : dtype_of(compute),
                                                     .device = text_model.device,
                                                     .head = head,
                                                     .stored = packed});
  require_fit(*text_model.tokenizer, loaded.model->config(), directory);
  text_model.model = loaded.model;
  if (loaded.head == Head::kSeq2SeqLm) text_model.stored = loaded.stored;
  else make_ready(loaded, compute);
  text_model.head = loaded.head;
  return text_model;
}

ModelInputs batch_of(const TextModel& model, std::span<const Encoding* const> encodings) {
  return batch_of(*model.model, *model.tokenizer, model.device, encodings);
}

void require_offsets(const Encoding& encoding) {
  if (encoding.offsets.size() == encoding.size()) return;
  throw FieldError(
      Field{"model"},
      ": its tokenizer does not tell where its tokens lie in a text, so that no words can be named");
}

}  // namespace zoo
