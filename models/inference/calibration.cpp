#include "models/inference/calibration.h"

#include <algorithm>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linalg_cholesky.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "models/inference/packed_decoder.h"
#include "models/inference/packed_engine.h"

namespace zoo::inference {

ErrorFeedback error_feedback(const at::Tensor& moments) {
  constexpr double kDamping = 0.01;
  const std::int64_t width = moments.size(0);
  const at::Tensor identity = at::eye(width, at::kDouble);
  const at::Tensor exact = moments.to(at::kDouble),
                   damped = exact + identity * (exact.diagonal().mean() * kDamping);
  // damped = R R^T with R upper triangular, so that the inverse is U^T U with U = R^-1.
  const at::Tensor root = at::linalg_cholesky(damped.flip({0, 1})).flip({0, 1});
  const at::Tensor upper = at::linalg_solve_triangular(root, identity, /*upper=*/true);
  const at::Tensor diagonal = upper.diagonal();
  return {.feedback = (upper / diagonal.unsqueeze(1)).t().to(at::kFloat).contiguous(),
          .importance = diagonal.pow(-2).to(at::kFloat)};
}

namespace {

// Rows of the prepared type as float32 [count, width].
at::Tensor copy_of(const kernels::PreparedRows& rows, std::size_t count, std::size_t width) {
  const bool floats =
      rows.type == WeightType::kFloat32 || kernels::inference_kernels().bfloat16_bytes == sizeof(float);
  const auto bytes = static_cast<std::int64_t>(floats ? sizeof(float) : sizeof(std::uint16_t));
  const at::Tensor view =
      at::from_blob(rows.data, {static_cast<std::int64_t>(count), static_cast<std::int64_t>(width)},
                    {static_cast<std::int64_t>(rows.row_bytes) / bytes, 1},
                    at::TensorOptions(floats ? at::kFloat : at::kBFloat16));
  return view.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
}

}  // namespace

Calibration::Calibration(const LoadedModel& loaded, WeightType weights, std::vector<TokenIds> samples,
                         Progress progress)
    : samples_(std::move(samples)), progress_(std::move(progress)) {
  TORCH_CHECK(!samples_.empty(), "calibration needs a sample");
  std::vector<PackedPart> made;
  PackOptions options{.weights = weights, .stored = loaded.stored, .made = &made};
  options.observe = [this](const kernels::PackedWeight& weight, const kernels::PreparedRows& rows,
                           std::size_t count) {
    const auto found = parameters_.find(weight.panels);
    if (found != parameters_.end() && moments_.contains(found->second))
      rows_[found->second].push_back(copy_of(rows, count, weight.inputs));
  };
  if (can_pack(*loaded.model)) {
    decoder_ = pack(*loaded.model, options);
  } else {
    model_ = loaded.model;
    pack_stacks(*model_, options);
  }
  for (const PackedPart& part : made) {
    parameters_[part.weight.panels] = part.parameter.unsafeGetTensorImpl();
    if (order_.empty() || !order_.back().is_same(part.parameter)) order_.push_back(part.parameter);
  }
  for (std::size_t first = 0; first < order_.size(); first = end_of_window(first)) total_ += samples_.size();
}

ErrorFeedback Calibration::feedback_of(const at::Tensor& parameter) {
  const Parameter wanted = parameter.unsafeGetTensorImpl();
  if (last_ == wanted) return last_feedback_;
  if (!moments_.contains(wanted)) {
    const auto found =
        std::ranges::find_if(order_, [&](const at::Tensor& x) { return x.is_same(parameter); });
    TORCH_CHECK(found != order_.end(), "calibration knows no such weight");
    measure(static_cast<std::size_t>(found - order_.begin()));
  }
  const at::Tensor& moments = moments_.at(wanted);
  TORCH_CHECK(moments.diagonal().any().item<bool>(), "no product with a weight was observed");
  last_feedback_ = error_feedback(moments);
  last_ = wanted;
  return last_feedback_;
}

std::size_t Calibration::end_of_window(std::size_t first) const {
  std::int64_t bytes = 0;
  std::size_t end = first;
  do {
    bytes += order_[end].size(1) * order_[end].size(1) * static_cast<std::int64_t>(sizeof(float));
  } while (++end < order_.size() && bytes < kMomentsBytes);
  return end;
}

void Calibration::measure(std::size_t first) {
  moments_.clear();
  for (std::size_t i = first; i < end_of_window(first); ++i)
    moments_[order_[i].unsafeGetTensorImpl()] = at::zeros({order_[i].size(1), order_[i].size(1)});
  for (const TokenIds& sample : samples_) {
    rows_.clear();
    read(sample);
    for (const auto& [parameter, rows] : rows_)
      for (const at::Tensor& x : rows) moments_.at(parameter).addmm_(x.t(), x);
    if (progress_) progress_(++done_, total_);
  }
  rows_.clear();
}

void Calibration::read(const TokenIds& sample) {
  const at::NoGradGuard no_grad;
  const auto length = static_cast<std::int64_t>(sample.size());
  if (model_) {
    ModelInputs inputs{.input_ids = at::tensor(sample, at::kLong).unsqueeze(0)};
    if (model_->config().shape == Shape::kEncoderDecoder) {
      inputs.decoder_input_ids = inputs.input_ids;
      // Heads for sequences use the position of the last EOS.
      if (model_->config().eos_token_id >= 0) inputs.input_ids[0][-1] = model_->config().eos_token_id;
    }
    model_->forward(inputs);
  } else if (decoder_->config().shape == Shape::kEncoderDecoder) {
    decoder_->begin({sample}, length)->read({sample});
  } else {
    decoder_->begin(1, length)->read({sample});
  }
}

}  // namespace zoo::inference
