#pragma once

/// @file
/// GPTQ (Frantar et al., 2023): inputs are rounded one by one, and the inputs that follow are corrected for
/// the error, by the second moments of the activations that each weight sees on a calibration text.
///
///     const auto int4 = zoo::inference::WeightType::kInt4;
///     zoo::inference::Calibration calibration(loaded, int4, samples, [](std::int64_t, std::int64_t) {});
///     const auto feedback = [&](const at::Tensor& parameter) { return calibration.feedback_of(parameter); };
///     const auto decoder = zoo::pack(*loaded.model, {.weights = int4, .feedback = feedback});

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/checkpoint/checkpoint.h"
#include "models/generation/decoding_session.h"
#include "models/inference/packed_linear.h"

namespace zoo::inference {

/// Feedback for a product whose inputs x have the second moments [I, I] sum x x^T. As in GPTQ, a hundredth of
/// the mean square is added to the diagonal.
ErrorFeedback error_feedback(const at::Tensor& moments);

/// The inputs that each weight multiplies on some texts. A layer's experts share those of all its tokens.
class Calibration {
 public:
  using Progress = std::function<void(std::int64_t done, std::int64_t total)>;

  /// Runs the model on the samples (an encoder-decoder takes each as source and target), with `weights` as
  /// exact as the stored ones. Throws c10::Error unless packed kernels run the model.
  Calibration(const LoadedModel& loaded, WeightType weights, std::vector<TokenIds> samples,
              Progress progress);

  /// Feedback for a parameter that is packed. Runs the samples again for every kMomentsBytes of moments, so
  /// ask for weights in the order in which a model is packed.
  ErrorFeedback feedback_of(const at::Tensor& parameter);

 private:
  using Parameter = const c10::TensorImpl*;

  static constexpr std::int64_t kMomentsBytes = 1LL << 30;

  std::size_t end_of_window(std::size_t first) const;
  void measure(std::size_t first);
  void read(const TokenIds& sample);

  std::vector<TokenIds> samples_;
  Progress progress_;
  std::int64_t done_ = 0, total_ = 0;                 // samples
  std::vector<at::Tensor> order_;                     // parameters [out, in], as they are packed
  std::map<const std::byte*, Parameter> parameters_;  // by panels of the reference
  std::map<Parameter, at::Tensor> moments_;           // of the weights now measured
  std::map<Parameter, std::vector<at::Tensor>> rows_;
  Parameter last_ = nullptr;  // the last one asked for: experts share a parameter
  ErrorFeedback last_feedback_;
  std::unique_ptr<DecodingModel> decoder_;
  std::shared_ptr<Model> model_;  // without a decoder_, on packed stacks
};

}  // namespace zoo::inference
