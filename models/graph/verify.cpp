#include "models/graph/verify.h"

#include <algorithm>
#include <span>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones_like.h>

namespace zoo {
namespace {

// The file may differ from float64 by this many times the model's own difference.
constexpr double kRoundings = 6;

double largest(const at::Tensor& x) { return x.to(at::kDouble).abs().max().item<double>(); }

double largest_error(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected) {
  if (found.size() != expected.size()) return 1e9;
  // One scale for a pair: a single start or end logit may be near zero.
  double scale = 0, error = 0;
  for (const at::Tensor& tensor : expected) scale = std::max(scale, largest(tensor));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = largest(found[i].to(at::kDouble) - expected[i].to(at::kDouble));
    if (difference == 0) continue;
    // A NaN difference must not count as small.
    error = std::max(error, scale > 0 && difference == difference ? difference / scale : 1e9);
  }
  return error;
}

std::vector<VerifyReport::Comparison> comparisons(const TransformerConfig& config, bool one_row) {
  const std::int64_t longest = std::min<std::int64_t>(config.max_length(), 24);
  return {{.batch = 1, .length = 1},
          {.batch = one_row ? 1 : 2, .length = std::max<std::int64_t>(longest / 2, 1)},
          {.batch = one_row ? 1 : 3, .length = longest, .padded = true}};
}

ModelInputs inputs_of(const VerifyReport::Comparison& entry, const TransformerConfig& config,
                      const at::Device& device) {
  const at::Tensor ids = ids_to_verify(entry.batch, entry.length, config.vocab_size).to(device);
  ModelInputs inputs{.input_ids = ids};
  if (entry.padded) {  // the first row begins with hidden positions, the last one ends with them
    inputs.attention_mask = at::ones_like(ids);
    inputs.attention_mask[0].slice(0, 0, entry.length / 3).zero_();
    inputs.attention_mask[-1].slice(0, entry.length - entry.length / 4).zero_();
  }
  if (config.shape == Shape::kEncoderDecoder)
    inputs.decoder_input_ids = ids.slice(1, ids.size(1) / 2);  // of another length than the encoder's
  return inputs;
}

// By comparison.
std::vector<std::vector<at::Tensor>> outputs_of(const Program& program, std::span<const ModelInputs> inputs) {
  std::vector<std::vector<at::Tensor>> outputs;
  for (const ModelInputs& entry : inputs) outputs.push_back(program(entry));
  return outputs;
}

}  // namespace

double VerifyReport::largest_error() const {
  double largest = 0;
  for (const Comparison& entry : logits) largest = std::max(largest, entry.error);
  return largest;
}

bool takes_one_row(const Model& model) {
  return model.parts().head.tokens == HeadParts::Tokens::kLast && model.config().pad_token_id < 0;
}

std::vector<at::Tensor> exported_outputs(const ModelOutput& output) {
  if (output.start_logits.defined()) return {output.start_logits, output.end_logits};
  if (output.sentence_logits.defined()) return {output.logits, output.sentence_logits};
  return {output.logits.defined() ? output.logits : output.last_hidden_state};
}

VerifyReport verify_outputs(const Program& run, Model& model) {
  const at::NoGradGuard no_grad;  // inference tensors could not replace the model's
  const at::Tensor weight = model.parameters().front();
  VerifyReport report;
  report.exact_tokens = weight.scalar_type() == at::kFloat;
  report.tolerance = report.exact_tokens ? 1e-5 : 2e-2;
  const EvaluationMode evaluation(model);
  const Program forward = [&](const ModelInputs& entry) { return exported_outputs(model.forward(entry)); };
  report.logits = comparisons(model.config(), takes_one_row(model));
  std::vector<ModelInputs> inputs;
  for (const auto& entry : report.logits) inputs.push_back(inputs_of(entry, model.config(), weight.device()));
  const auto found = outputs_of(run, inputs), expected = outputs_of(forward, inputs);
  for (std::size_t i = 0; i < found.size(); ++i)
    report.logits[i].error = largest_error(found[i], expected[i]);
  if (!report.exact_tokens || report.largest_error() <= report.tolerance) return report;
  // Some weights amplify rounding; the model's own difference between float32 and float64 measures how much.
  model.to(at::kDouble);
  const auto exact = outputs_of(forward, inputs);
  model.to(at::kFloat);
  for (std::size_t i = 0; i < found.size(); ++i) {
    report.logits[i].error = largest_error(found[i], exact[i]);
    report.tolerance = std::max(report.tolerance, kRoundings * largest_error(expected[i], exact[i]));
  }
  return report;
}

at::Tensor ids_to_verify(std::int64_t batch, std::int64_t length, std::int64_t vocab_size) {
  return (at::arange(batch * length).mul_(7919).add_(5)).remainder_(vocab_size).view({batch, length});
}

}  // namespace zoo
