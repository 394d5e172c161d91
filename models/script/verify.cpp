#include "models/script/verify.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/serialization/import.h>

#include "data/base/error.h"
#include "models/generation/generate.h"

namespace zoo {
namespace {

constexpr std::int64_t kGreedyTokens = 16;

torch::jit::Module load(const std::filesystem::path& file, const at::Device& device) {
  try {
    return torch::jit::load(file.string(), device);
  } catch (const c10::Error& error) {
    throw Error("cannot load ", file, " as TorchScript: ", error.what_without_backtrace());
  }
}

// Outputs of the file's forward: one tensor, or a pair.
std::vector<at::Tensor> outputs_of(torch::jit::Module& script, const ModelInputs& inputs) {
  std::vector<c10::IValue> arguments{
      inputs.input_ids, inputs.attention_mask.defined() ? c10::IValue(inputs.attention_mask) : c10::IValue()};
  if (inputs.decoder_input_ids.defined()) arguments.emplace_back(inputs.decoder_input_ids);
  const c10::IValue result = script.forward(arguments);
  if (result.isTensor()) return {result.toTensor()};
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& element : result.toTupleRef().elements()) tensors.push_back(element.toTensor());
  return tensors;
}

void compare_greedy(torch::jit::Module& script, Model& model, const at::Device& device,
                    VerifyReport& report) {
  const auto& config = model.config();
  at::Tensor prompt =
      ids_to_verify(2, std::clamp<std::int64_t>(config.max_positions / 2, 1, 8), config.vocab_size);
  // Avoids pad_token_id, which the file would treat as padding, but generate() as a token.
  if (config.shape == Shape::kEncoderDecoder && config.vocab_size > 1)
    prompt =
        prompt.masked_fill(prompt.eq(config.pad_token_id), (config.pad_token_id + 1) % config.vocab_size);
  std::vector<TokenIds> prompts;
  for (std::int64_t row = 0; row < prompt.size(0); ++row) {
    const auto* first = prompt[row].const_data_ptr<std::int64_t>();
    prompts.emplace_back(first, first + prompt.size(1));
  }
  const bool ends = config.shape == Shape::kEncoderDecoder && config.has_position_table();
  const std::int64_t count = ends ? std::min(kGreedyTokens, config.max_length()) : kGreedyTokens;
  GenerationOptions options{.max_new_tokens = count, .sampling = {.temperature = 0}};
  const auto end_ids = script.attr("eos_ids").toIntVector();
  options.eos_token_ids.assign(end_ids.begin(), end_ids.end());
  const auto expected = generate(model, prompts, options).ids;
  const at::Tensor found =
      script.get_method("generate")({prompt.to(device), count, 0.0, std::int64_t{0}}).toTensor().cpu();
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

VerifyReport verify_torchscript(const std::filesystem::path& file, Model& model) {
  const at::Device device = model.parameters().front().device();
  const at::NoGradGuard no_grad;
  torch::jit::Module script = load(file, device);
  VerifyReport report =
      verify_outputs([&](const ModelInputs& inputs) { return outputs_of(script, inputs); }, model);
  if (!script.find_method("generate")) return report;
  const EvaluationMode evaluation(model);
  compare_greedy(script, model, device, report);
  return report;
}

}  // namespace zoo
