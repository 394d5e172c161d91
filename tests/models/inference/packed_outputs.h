#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/named_tensors.h"
#include "models/inference/packed_decoder.h"
#include "models/inference/packed_engine.h"
#include "tests/models/support.h"

namespace zoo::test {

inline constexpr kernels::WeightType kWeightTypes[] = {
    kernels::WeightType::kFloat32, kernels::WeightType::kBfloat16, kernels::WeightType::kInt8,
    kernels::WeightType::kInt4};

/// Checkpoints that transformers wrote, of every family and head.
inline std::vector<std::filesystem::path> golden_checkpoints() {
  std::vector<std::filesystem::path> found;
  for (const Family& family : families()) {
    const std::filesystem::path folder =
        std::filesystem::path(ZOO_SOURCE_DIR) / "tests/golden" / family.model_type;
    if (!std::filesystem::is_directory(folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (std::filesystem::exists(entry.path() / "model.safetensors")) found.push_back(entry.path());
  }
  return found;
}

/// All outputs of the model packed as `type`, or of its modules if it cannot be packed.
inline NamedTensors packed_outputs(const std::filesystem::path& path, kernels::WeightType type,
                                   at::ScalarType dtype, bool stored) {
  const at::NoGradGuard no_grad;
  const LoadedModel loaded = load_model(path, {.dtype = dtype, .stored = stored});
  const inference::PackOptions options{.weights = type, .release = true, .stored = loaded.stored};
  const at::Tensor ids = random_ids(loaded.model->config(), 1, 6, 5).clamp_min(4);
  const std::int64_t end = loaded.model->config().eos_token_id;
  if (end >= 0) ids[0][5] = end;  // BART classifies it
  const auto* data = ids.const_data_ptr<std::int64_t>();
  const TokenIds list(data, data + ids.numel());
  if (can_pack(*loaded.model)) {
    const auto packed = pack(*loaded.model, options);
    const bool reads_source = loaded.model->config().shape == Shape::kEncoderDecoder;
    const auto session = reads_source ? packed->begin({list}, 8) : packed->begin(1, 8);
    return {{"logits", session->read({list}, DecodingSession::Logits::kAll).clone()}};
  }
  const std::shared_ptr<Model> model = loaded.model;
  if (lacking_kernels(*model).empty()) {
    pack_stacks(*model, options);
    // The last bit of LibTorch's products depends on where their operands begin: not in the middle of a line.
    for (at::Tensor& parameter : model->parameters()) parameter.set_data(parameter.clone());
  } else if (loaded.stored) {
    loaded.stored->load_all();
  }
  ModelInputs inputs{.input_ids = ids};
  if (model->config().shape == Shape::kEncoderDecoder) inputs.decoder_input_ids = ids;
  return tensors_of(model->forward(inputs), loaded.head);
}

/// True if compute(i) on thread i of four, at once and many times, is to the bit what it is before them.
inline bool same_in_threads(const std::function<at::Tensor(std::int64_t)>& compute) {
  std::atomic<bool> same = true;
  {
    std::vector<std::jthread> threads;
    std::vector<at::Tensor> alone;
    for (std::int64_t i = 0; i < 4; ++i) alone.push_back(compute(i).clone());
    for (std::int64_t i = 0; i < 4; ++i)
      threads.emplace_back([&compute, &same, i, expected = alone[static_cast<std::size_t>(i)]] {
        for (int turn = 0; turn < 100; ++turn)
          if (!compute(i).equal(expected)) same = false;
      });
  }
  return same;
}

}  // namespace zoo::test
