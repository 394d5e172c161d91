#pragma once

#include <set>

#include <catch2/catch.hpp>

#include "models/io/checkpoint.h"
#include "tests/models/support.h"

namespace zoo::test {

/// A case of tests/golden: a checkpoint of transformers, inputs, and what transformers computes from them.
class Golden {
 public:
  explicit Golden(const std::string& name)
      : directory_(std::filesystem::path(ZOO_SOURCE_DIR) / "tests/golden" / name),
        expected_(directory_ / "expected.safetensors") {}

  const std::filesystem::path& directory() const { return directory_; }

  ModelInputs inputs() const {
    return {.input_ids = find("input_ids"),
            .attention_mask = find("attention_mask"),
            .token_type_ids = find("token_type_ids"),
            .decoder_input_ids = find("decoder_input_ids"),
            .labels = find("labels"),
            .output_hidden_states = true,
            .output_attentions = true};
  }

  /// The tensor, or an undefined one.
  at::Tensor find(const std::string& name) const {
    const auto& names = expected_.names();
    return std::find(names.begin(), names.end(), name) == names.end() ? at::Tensor() : expected_.tensor(name);
  }

  /// Compares what is expected under `name` with `actual`. The shape of a decoder: a query that has no key to
  /// see (its left padding) has no defined values and is left out.
  void check(const std::string& name, const at::Tensor& actual, Shape shape) {
    CAPTURE(name);
    const at::Tensor expected = find(name);
    REQUIRE(expected.defined());
    REQUIRE(actual.defined());
    REQUIRE(actual.sizes() == expected.sizes());
    at::Tensor defined = at::ones({1});
    if (shape == Shape::kDecoder && actual.dim() >= 3) {
      defined = find("attention_mask").cumsum(-1).gt(0).unsqueeze(-1);  // [B, T, 1]
      if (actual.dim() == 4) defined = defined.unsqueeze(1);
    }
    CHECK(relative_error(actual * defined, expected * defined) <= 1e-5);
    compared_.insert(name);
  }

  void check(const std::string& name, const std::vector<at::Tensor>& actual, Shape shape) {
    for (std::size_t i = 0; i < actual.size(); ++i) check(name + "." + std::to_string(i), actual[i], shape);
  }

  void check_gradients(const LoadedModel& loaded) {
    const auto parameters = loaded.model->named_parameters();
    const WeightTable table = weight_table_of(*loaded.family, loaded.model->config(), loaded.head);
    for (const WeightName& weight : expand_layers(table.names, loaded.model->config().num_layers)) {
      const at::Tensor* parameter = parameters.find(weight.ours);
      if (parameter == nullptr) continue;
      for (const auto& [theirs, gradient] : export_tensor(weight, parameter->grad(), table)) {
        CAPTURE(theirs);
        const at::Tensor expected = find("grad." + theirs);
        REQUIRE(expected.defined());
        CHECK(relative_error(gradient, expected) <= 1e-4);
        compared_.insert("grad." + theirs);
      }
    }
  }

  /// Nothing that transformers computes may have been left out.
  void check_complete() const {
    const std::set<std::string> given{"input_ids", "attention_mask", "token_type_ids", "decoder_input_ids",
                                      "labels"};
    for (const std::string& name : expected_.names()) {
      CAPTURE(name);
      if (given.count(name) == 0) CHECK(compared_.count(name) == 1);
    }
  }

 private:
  std::filesystem::path directory_;
  SafetensorsFile expected_;
  std::set<std::string> compared_;
};

/// Runs the case's model and compares all: outputs, hidden states, attentions, loss, gradients.
inline void check_golden(const std::string& name, std::optional<Head> head = std::nullopt) {
  CAPTURE(name);
  Golden golden(name);
  const LoadedModel loaded = load_model(golden.directory(), {.trainable = true, .head = head});
  const ModelOutput output = loaded.model->forward(golden.inputs());
  const Shape shape = loaded.model->config().shape;
  const std::string decoder = shape == Shape::kEncoderDecoder ? "decoder_" : "";
  for (const auto& [key, tensor] :
       std::initializer_list<std::pair<const char*, at::Tensor>>{{"logits", output.logits},
                                                                 {"start_logits", output.start_logits},
                                                                 {"end_logits", output.end_logits},
                                                                 {"pooler_output", output.pooler_output},
                                                                 {"loss", output.loss}}) {
    if (tensor.defined()) golden.check(key, tensor, shape);
  }
  if (loaded.head == Head::kBase) golden.check("last_hidden_state", output.last_hidden_state, shape);
  golden.check(decoder + "hidden_states", output.hidden_states, shape);
  golden.check(decoder + "attentions", output.attentions, shape);
  golden.check("encoder_hidden_states", output.encoder_hidden_states, shape);
  golden.check("encoder_attentions", output.encoder_attentions, shape);
  golden.check("cross_attentions", output.cross_attentions, shape);
  if (output.loss.defined()) {
    output.loss.backward();
    golden.check_gradients(loaded);
  }
  golden.check_complete();
}

}  // namespace zoo::test
