#include "models/inference/calibration.h"

#include <cmath>

#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_inv.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "models/checkpoint/packed_parts.h"
#include "models/formats/safetensors.h"
#include "models/inference/packed_decoder.h"
#include "models/inference/packed_engine.h"
#include "models/inference/save_packed.h"
#include "models/kernels/packed/packed_weight.h"
#include "models/layers/stack.h"
#include "tests/models/inference/packed_outputs.h"
#include "tests/models/kernels/unpacked.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

using namespace zoo;
using namespace zoo::inference;
using kernels::kGroup, kernels::kPanelOutputs, kernels::PackedWeight;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kInputs = 70, kOutputs = 5, kPanel = 64;

// Second moments of inputs that move together.
at::Tensor correlated_moments() {
  const at::Tensor x = at::randn({400, 8}, at::kDouble).mm(at::randn({8, kInputs}, at::kDouble)) +
                       0.3 * at::randn({400, kInputs}, at::kDouble);
  return x.t().mm(x);
}

at::Tensor damped(const at::Tensor& moments) {
  return moments + 0.01 * moments.diagonal().mean() * at::eye(kInputs, at::kDouble);
}

// The weights [kOutputs, kInputs] of an int4 panel.
at::Tensor weights_of(const std::vector<std::byte>& panel) {
  const PackedWeight packed{WeightType::kInt4, kOutputs, kInputs, panel.data(), nullptr};
  return at::tensor(test::unpacked(packed), at::kDouble).view({kOutputs, kInputs});
}

std::vector<std::byte> empty_panel() {
  return std::vector<std::byte>(kernels::panel_bytes(WeightType::kInt4, kInputs));
}

std::vector<std::byte> pack_with(const at::Tensor& weights, const ErrorFeedback& errors) {
  std::vector<std::byte> panel = empty_panel();
  const at::Tensor columns = at::zeros({kInputs, kPanel}, at::kFloat);
  columns.narrow(1, 0, kOutputs).copy_(weights.t());
  kernels::pack_int4_panel(
      {columns.mutable_data_ptr<float>(), kInputs, errors.feedback.const_data_ptr<float>(),
       errors.importance.const_data_ptr<float>()},
      panel.data());
  return panel;
}

std::vector<std::byte> pack_nearest(const at::Tensor& weights) {
  std::vector<std::byte> panel = empty_panel();
  const at::Tensor rows = weights.to(at::kFloat).contiguous();
  kernels::pack_panel(WeightType::kInt4, {rows.const_data_ptr<float>(), kInputs, 1, kOutputs, kInputs},
                      panel.data(), nullptr);
  return panel;
}

// Mean square of what rounding changes in the outputs.
double output_error(const at::Tensor& weights, const at::Tensor& rounded, const at::Tensor& moments) {
  const at::Tensor change = rounded - weights;
  return (change.mm(moments) * change).sum().item<double>();
}

}  // namespace

TEST_CASE("Feedback of rounding errors is what optimal brain surgery eliminates input by input") {
  at::manual_seed(3);
  const at::Tensor moments = correlated_moments();
  const ErrorFeedback found = error_feedback(moments);
  // Hassibi and Stork, 1993: the inverse without input i is H^-1 - h_i h_i^T / h_ii.
  at::Tensor inverse = at::linalg_inv(damped(moments));
  for (std::int64_t i = 0; i < kInputs; ++i) {
    const at::Tensor column = inverse.select(1, i).clone();
    const double own = column[i].item<double>();
    CHECK(found.importance[i].item<double>() == Approx(1 / own).epsilon(1e-4));
    const at::Tensor expected = column / own, shares = found.feedback.select(1, i).to(at::kDouble);
    for (std::int64_t k = i + 1; k < kInputs; ++k)
      CHECK(shares[k].item<double>() == Approx(expected[k].item<double>()).margin(1e-5));
    inverse = inverse - at::outer(column, column) / own;
  }
}

TEST_CASE("Inputs are rounded in order, and those after them take over their errors") {
  at::manual_seed(4);
  const at::Tensor weights = at::randn({kOutputs, kInputs}).to(at::kDouble);
  const ErrorFeedback errors = error_feedback(correlated_moments());
  const at::Tensor rounded = weights_of(pack_with(weights, errors));
  // Each is the nearest of its group's steps to the weight with all errors so far: no neighbouring step of
  // the group is nearer.
  at::Tensor carried = weights.clone();
  for (std::int64_t k = 0; k < kInputs; ++k) {
    const std::int64_t first = k / static_cast<std::int64_t>(kGroup) * static_cast<std::int64_t>(kGroup),
                       last = std::min<std::int64_t>(first + static_cast<std::int64_t>(kGroup), kInputs);
    for (std::int64_t j = 0; j < kOutputs; ++j) {
      const double w = carried[j][k].item<double>(), distance = std::fabs(rounded[j][k].item<double>() - w);
      for (std::int64_t i = first; i < last; ++i)
        CHECK(distance <= std::fabs(rounded[j][i].item<double>() - w) + 1e-5);
    }
    const at::Tensor error = carried.select(1, k) - rounded.select(1, k);
    carried -= at::outer(error, errors.feedback.select(1, k).to(at::kDouble));
  }
}

TEST_CASE("Weights that are rounded with their inputs in mind change the outputs least") {
  at::manual_seed(5);
  const at::Tensor moments = correlated_moments();
  const at::Tensor weights = at::randn({kOutputs, kInputs}).to(at::kDouble);
  const double nearest = output_error(weights, weights_of(pack_nearest(weights)), moments),
               calibrated =
                   output_error(weights, weights_of(pack_with(weights, error_feedback(moments))), moments);
  CHECK(calibrated < nearest / 4);
}

TEST_CASE("Every kind of model that packs is rounded by what it reads") {
  int calibrated = 0;
  for (const fs::path& source : test::golden_checkpoints()) {
    const CheckpointConfig checkpoint = read_checkpoint_config(source);
    const LoadedModel loaded = load_model(checkpoint);
    CAPTURE(source);
    const at::Tensor ids = test::random_ids(checkpoint.config, 1, 6, 5).clamp_min(4);
    TokenIds sample(ids.const_data_ptr<std::int64_t>(), ids.const_data_ptr<std::int64_t>() + ids.numel());
    if (checkpoint.config.eos_token_id >= 0) sample.back() = checkpoint.config.eos_token_id;
    const test::TemporaryDirectory plain, rounded;
    save_packed(checkpoint, WeightType::kInt4, "", plain.path());
    save_packed(checkpoint, WeightType::kInt4, "", rounded.path(), {.samples = {sample}});
    const SafetensorsFile before(plain / PackedParts::kFile), after(rounded / PackedParts::kFile);
    REQUIRE(before.names() == after.names());
    for (const std::string& name : before.names()) {
      const bool int4 = name.find(".packed") != std::string::npos && before.tensor(name).dim() == 3;
      CAPTURE(name);
      CHECK(before.tensor(name).equal(after.tensor(name)) != int4);
    }
    ++calibrated;
  }
  CHECK(calibrated > 60);
}

TEST_CASE("Calibration measures what each weight of a model multiplies") {
  const fs::path source = fs::path(ZOO_SOURCE_DIR) / "tests/golden/llama/plain";
  const at::NoGradGuard no_grad;
  const LoadedModel whole = load_model(source), stored = load_model(source, {.stored = true});
  const std::vector<TokenIds> samples{{5, 9, 2, 7, 7, 3}, {8, 1, 4}};
  std::int64_t reports = 0, last_total = 0;
  Calibration calibration(stored, WeightType::kFloat32, samples, [&](std::int64_t done, std::int64_t total) {
    CHECK(done == ++reports);
    last_total = total;
  });
  for (const std::size_t layer : {0, 1}) {
    const BlockImpl& block = whole.model->parts().decoder->block(layer);
    std::vector<at::Tensor> inputs;
    for (const TokenIds& sample : samples) {
      const ModelOutput output = whole.model->forward(
          {.input_ids = at::tensor(sample, at::kLong).unsqueeze(0), .output_hidden_states = true});
      inputs.push_back(block.attention_norm->forward(output.hidden_states.at(layer)).squeeze(0));
    }
    const at::Tensor x = at::cat(inputs);
    const ErrorFeedback expected = error_feedback(x.t().mm(x)),
                        found = calibration.feedback_of(
                            stored.model->parts().decoder->block(layer).attention->qkv->weight);
    CHECK(at::allclose(found.importance, expected.importance, 1e-3));
    CHECK(at::allclose(found.feedback, expected.feedback, 1e-3, 1e-3));
  }
  CHECK(reports == 2);  // all moments fit into memory at once
  CHECK(last_total == 2);
}
