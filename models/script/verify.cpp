#include "models/script/verify.h"

#include <algorithm>
#include <span>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <torch/csrc/jit/serialization/import.h>

#include "data/base/error.h"
#include "models/generation/generate.h"

namespace zoo {
namespace {

constexpr std::int64_t kGreedyTokens = 16;

// The file may differ from float64 by this many times the model's own difference.
constexpr double kRoundings = 6;

torch::jit::Module load(const std::filesystem::path& file, const at::Device& device) {
  try {
    return torch::jit::load(file.string(), device);
  } catch (const c10::Error& error) {
    throw Error("cannot load ", file, " as TorchScript: ", error.what_without_backtrace());
  }
}

// Ids that differ between positions and rows; their values do not matter.
at::Tensor make_ids(std::int64_t batch, std::int64_t length, std::int64_t vocab_size) {
  return (at::arange(batch * length).mul_(7919).add_(5)).remainder_(vocab_size).view({batch, length});
}

// The first row begins with hidden positions, the last one ends with them.
at::Tensor padding_mask(std::int64_t batch, std::int64_t length) {
  at::Tensor mask = at::ones({batch, length}, at::kLong);
  mask[0].slice(0, 0, length / 3).zero_();
  mask[-1].slice(0, length - length / 4).zero_();
  return mask;
}

double largest(const at::Tensor& x) {
  return x.to(at::kDouble).abs().max().item<double>();
}

double relative_error(const at::Tensor& found, const at::Tensor& expected, double scale) {
  const double difference = largest(found.to(at::kDouble) - expected.to(at::kDouble));
  // A NaN difference must not count as small.
  return difference == 0 ? 0 : scale > 0 && difference == difference ? difference / scale : 1e9;
}

// Outputs of the file's forward: one tensor, or a pair.
std::vector<at::Tensor> tensors_of(const c10::IValue& result) {
  if (result.isTensor()) return {result.toTensor()};
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& element : result.toTupleRef().elements()) tensors.push_back(element.toTensor());
  return tensors;
}

using Outputs = std::vector<std::vector<at::Tensor>>;  // by comparison

double largest_error(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected) {
  if (found.size() != expected.size()) return 1e9;
  // One scale for a pair: a single start or end logit may be near zero.
  double scale = 0, error = 0;
  for (const at::Tensor& tensor : expected) scale = std::max(scale, largest(tensor));
  for (std::size_t i = 0; i < expected.size(); ++i)
    error = std::max(error, relative_error(found[i], expected[i], scale));
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
  const at::Tensor ids = make_ids(entry.batch, entry.length, config.vocab_size).to(device);
  ModelInputs inputs{.input_ids = ids};
  if (entry.padded) inputs.attention_mask = padding_mask(entry.batch, entry.length).to(device);
  if (config.shape == Shape::kEncoderDecoder)
    inputs.decoder_input_ids = ids.slice(1, ids.size(1) / 2);  // of another length than the encoder's
  return inputs;
}

std::vector<at::Tensor> outputs_of(torch::jit::Module& script, const ModelInputs& inputs) {
  std::vector<c10::IValue> arguments{
      inputs.input_ids, inputs.attention_mask.defined() ? c10::IValue(inputs.attention_mask) : c10::IValue()};
  if (inputs.decoder_input_ids.defined()) arguments.emplace_back(inputs.decoder_input_ids);
  return tensors_of(script.forward(arguments));
}

Outputs outputs_of(const Program& program, std::span<const ModelInputs> inputs) {
  Outputs outputs;
  for (const ModelInputs& entry : inputs) outputs.push_back(program(entry));
  return outputs;
}

void compare_outputs(const Program& run, Model& model, const at::Device& device, VerifyReport& report) {
  const TransformerConfig& config = model.config();
  // A decoder with a classification head needs pad_token_id to find the ends of several rows.
  const bool one_row =
      config.shape == Shape::kDecoder && config.pad_token_id < 0 && !model.parts().generates();
  const Program forward = [&](const ModelInputs& entry) { return exported_outputs(model.forward(entry)); };
  report.logits = comparisons(config, one_row);
  std::vector<ModelInputs> inputs;
  for (const auto& entry : report.logits) inputs.push_back(inputs_of(entry, config, device));
  const Outputs found = outputs_of(run, inputs), expected = outputs_of(forward, inputs);
  for (std::size_t i = 0; i < found.size(); ++i)
    report.logits[i].error = largest_error(found[i], expected[i]);
  if (!report.exact_tokens || report.largest_error() <= report.tolerance) return;
  // Some weights amplify rounding; the model's own difference between float32 and float64 measures how much.
  model.to(at::kDouble);
  const Outputs exact = outputs_of(forward, inputs);
  model.to(at::kFloat);
  for (std::size_t i = 0; i < found.size(); ++i) {
    report.logits[i].error = largest_error(found[i], exact[i]);
    report.tolerance = std::max(report.tolerance, kRoundings * largest_error(expected[i], exact[i]));
  }
}

void compare_greedy(torch::jit::Module& script, Model& model, const at::Device& device,
                    VerifyReport& report) {
  const auto& config = model.config();
  at::Tensor prompt =
      make_ids(2, std::clamp<std::int64_t>(config.max_positions / 2, 1, 8), config.vocab_size);
  // Avoids pad_token_id, which the file would treat as padding, but generate() as a token.
  if (config.shape == Shape::kEncoderDecoder && config.vocab_size > 1)
    prompt =
        prompt.masked_fill(prompt.eq(config.pad_token_id), (config.pad_token_id + 1) % config.vocab_size);
  std::vector<TokenIds> prompts;
  for (std::int64_t row = 0; row < prompt.size(0); ++row) {
    const auto* first = prompt[row].const_data_ptr<std::int64_t>();
    prompts.emplace_back(first, first + prompt.size(1));
  }
  GenerationOptions options{.max_new_tokens = kGreedyTokens, .sampling = {.temperature = 0}};
  const auto ends = script.attr("eos_ids").toIntVector();
  options.eos_token_ids.assign(ends.begin(), ends.end());
  const auto expected = generate(model, prompts, options).ids;
  const at::Tensor found =
      script.get_method("generate")({prompt.to(device), kGreedyTokens, 0.0, std::int64_t{0}})
          .toTensor()
          .cpu();
  for (std::size_t row = 0; row < expected.size(); ++row) {
    for (std::size_t i = 0; i < expected[row].size(); ++i) {
      const auto column = static_cast<std::int64_t>(i);
      ++report.greedy_tokens;
      const bool same =
          column < found.size(1) &&
          found[static_cast<std::int64_t>(row)][column].item<std::int64_t>() == expected[row][i];
      report.greedy_different += same ? 0 : 1;
    }
  }
}

}  // namespace

double VerifyReport::largest_error() const {
  double largest = 0;
  for (const Comparison& entry : logits) largest = std::max(largest, entry.error);
  return largest;
}

bool VerifyReport::good() const {
  return largest_error() <= tolerance && (!exact_tokens || greedy_different == 0);
}

VerifyReport verify_torchscript(const std::filesystem::path& file, Model& model) {
  const at::Device device = model.parameters().front().device();
  const at::NoGradGuard no_grad;
  torch::jit::Module script = load(file, device);
  VerifyReport report =
      verify_outputs([&](const ModelInputs& inputs) { return outputs_of(script, inputs); }, model);
  if (!script.find_method("generate")) return report;
  const bool was_training = model.is_training();
  model.eval();
  compare_greedy(script, model, device, report);
  model.train(was_training);
  return report;
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
  const bool was_training = model.is_training();
  model.eval();
  compare_outputs(run, model, weight.device(), report);
  model.train(was_training);
  return report;
}

}  // namespace zoo
