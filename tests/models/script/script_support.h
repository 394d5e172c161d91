#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/serialization/import.h>

#include "models/registry.h"
#include "models/script/export.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace zoo::test {

/// A GPT-2 of two narrow layers, 29 words and 12 positions.
inline TransformerConfig tiny() {
  TransformerConfig config;
  config.vocab_size = 29;
  config.hidden_size = 24;
  config.num_layers = 2;
  config.num_heads = 4;
  config.max_positions = 12;
  // Large weights: logits that differ plainly, and norms and biases that would be missed.
  config.initializer_range = 0.7;
  return config;
}

/// The model in evaluation, with weights from a fixed seed.
inline std::shared_ptr<Model> make(const TransformerConfig& config, const std::string& family = "gpt2",
                                   Head head = Head::kCausalLm) {
  auto model = build_model(find_family(family), config, head, /*seed=*/5);
  const at::NoGradGuard no_grad;
  std::uint64_t seed = 1;
  for (auto& parameter : model->named_parameters()) {
    // Zero biases and unit norms would hide a place where they are forgotten.
    if (parameter.value().dim() == 1) {
      at::manual_seed(seed++);
      parameter.value().add_(at::randn_like(parameter.value()), 0.2);
    }
  }
  model->eval();
  return model;
}

/// The file of a model, loaded again.
class Exported {
 public:
  explicit Exported(Model& model, const ScriptOptions& options = {}, const std::string& family = "gpt2",
                    Head head = Head::kCausalLm) {
    export_torchscript(model, find_family(family), head, path(), options);
    module = torch::jit::load(path().string());
  }
  std::filesystem::path path() const { return directory_ / "model.pt"; }

  at::Tensor logits(const at::Tensor& ids, const c10::IValue& mask = {}) {
    return module.forward({ids, mask}).toTensor();
  }

  at::Tensor generate(const at::Tensor& ids, std::int64_t count, double temperature = 0,
                      std::int64_t top_k = 0) {
    return module.get_method("generate")({ids, count, temperature, top_k}).toTensor();
  }

  torch::jit::Module module;

 private:
  TemporaryDirectory directory_;
};

inline at::Tensor some_ids(std::int64_t batch, std::int64_t length) {
  return at::arange(batch * length).mul(11).add(3).remainder(29).view({batch, length});
}

/// Row 0 begins with hidden positions, row 1 ends with them, row 2 hides everything.
inline at::Tensor ragged_mask(std::int64_t length) {
  at::Tensor mask = at::ones({3, length}, at::kLong);
  mask[0].slice(0, 0, 2).zero_();
  mask[1].slice(0, length - 3).zero_();
  mask[2].zero_();
  return mask;
}

/// The likeliest next tokens, each from a pass over everything before: no cache.
inline at::Tensor slow_greedy(Model& model, at::Tensor ids, std::int64_t count) {
  const c10::InferenceMode inference;
  const std::int64_t prompt = ids.size(1);
  for (std::int64_t i = 0; i < count; ++i) {
    const at::Tensor next = model.forward({.input_ids = ids}).logits.select(1, -1).argmax(-1);
    ids = at::cat({ids, next.unsqueeze(1)}, 1);
  }
  return ids.slice(1, prompt);
}

}  // namespace zoo::test
