#include "data/base/error.h"
#include "models/checkpoint/checkpoint.h"
#include "models/inference/packed_decoder.h"
#include "tests/fuzz/file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/use_tokenizer.h"

void zoo::fuzz::read(std::string_view input) {
  const auto path = write("model.gguf", input);
  const LoadedModel loaded = load_model(path);
  const at::NoGradGuard no_grad;
  loaded.model->forward({.input_ids = at::tensor({1, 3, 5}, at::kLong).view({1, 3})});
  use(*load_tokenizer(path));
  const LoadedModel stored = load_model(path, {.stored = true});
  if (can_pack(*stored.model))
    pack(*stored.model, {.weights = kernels::WeightType::kBlocks, .stored = stored.stored});
}
