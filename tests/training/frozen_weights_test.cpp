#include "models/inference/frozen_weights.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>

#include "apps/training/lora.h"
#include "models/checkpoint/checkpoint.h"
#include "models/layers/recompute.h"
#include "models/model.h"
#include "models/registry.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

using namespace zoo;
using kernels::WeightType;

namespace {

std::shared_ptr<Model> model_of(const std::string& name) {
  TransformerConfig config = find_family(name).base;
  config.vocab_size = 90;
  config.hidden_size = 48;
  config.num_layers = 2;
  config.num_heads = 4;
  if (name == "llama") config.num_kv_heads = 2;
  if (name == "t5") config.decoder_start_token_id = config.pad_token_id = 0;
  config.intermediate_size = 100;
  config.max_positions = 32;
  for (const auto rate : {&TransformerConfig::embedding_dropout, &TransformerConfig::attention_dropout,
                          &TransformerConfig::activation_dropout, &TransformerConfig::dropout,
                          &TransformerConfig::final_dropout})
    config.*rate = 0;
  auto model = test::random_model(name, config, name == "t5" ? Head::kSeq2SeqLm : Head::kCausalLm, 3);
  const at::NoGradGuard no_grad;
  // T5 does not scale its scores: with large weights, rounding would decide which key a query sees.
  if (name == "t5")
    for (const auto& parameter : model->parameters()) parameter.mul_(0.3);
  return model;
}

at::Tensor loss_of(Model& model) {
  const at::Tensor ids = (at::arange(40) * 7 % 89).view({2, 20});
  ModelInputs inputs{.input_ids = ids, .labels = ids};
  return model.forward(inputs).loss;
}

std::map<std::string, at::Tensor> gradients_of(torch::nn::Module& module) {
  std::map<std::string, at::Tensor> gradients;
  for (const auto& entry : module.named_parameters())
    if (entry.value().grad().defined()) gradients.emplace(entry.key(), entry.value().grad().clone());
  return gradients;
}

void check_close(const at::Tensor& found, const at::Tensor& expected) {
  const double size = expected.abs().max().item<double>();
  CHECK(size > 0);
  CHECK((found - expected).abs().max().item<double>() <= 1e-5 * size);
}

}  // namespace

TEST_CASE("Adapters above packed projections learn as above the same numbers in float32") {
  const std::string name = GENERATE("gpt2", "llama", "t5");
  const WeightType type = GENERATE(WeightType::kBfloat16, WeightType::kInt8, WeightType::kInt4);
  const bool recomputes = GENERATE(false, true);
  CAPTURE(name, static_cast<int>(type), recomputes);
  const test::TemporaryDirectory directory;
  const auto original = model_of(name);
  const Family& family = find_family(name);
  save_model(*original, family, name == "t5" ? Head::kSeq2SeqLm : Head::kCausalLm, directory.path());

  const LoadedModel loaded = load_model(directory.path(), {.trainable = true, .stored = true});
  inference::freeze_projections(*loaded.model, *loaded.stored, type);
  const LoadedModel exact = load_model(directory.path(), {.trainable = true});
  const LoraAdapters::Options options{
      .rank = 3, .alpha = 6, .targets = {"*attention*", "*feed_forward*"}, .seed = 4};
  const auto adapters = LoraAdapters::add_to(*loaded.model, options);
  {
    const at::NoGradGuard no_grad;
    std::uint64_t seed = 1;
    for (const auto& entry : adapters->named_parameters())
      entry.value().uniform_(-0.1, 0.1, at::detail::createCPUGenerator(seed++));
  }

  // The same numbers in float32, with the adapters added to them.
  std::size_t frozen = 0, bytes = 0, numbers = 0;
  std::map<std::string, at::Tensor> weights;
  for (const auto& entry : loaded.model->named_modules())
    if (const auto* linear = entry.value()->as<LinearImpl>(); linear != nullptr && linear->frozen) {
      ++frozen;
      bytes += linear->frozen->bytes();
      numbers += static_cast<std::size_t>(linear->weight.numel());
      CHECK(linear->weight.storage().nbytes() == sizeof(float));
      weights.emplace(entry.key() + ".weight", linear->frozen->floats());
    }
  CHECK(frozen == (name == "t5" ? 22U : 8U));
  CHECK(inference::frozen_bytes(*loaded.model) == static_cast<std::int64_t>(bytes));
  CHECK(bytes < numbers * (type == WeightType::kBfloat16 ? 3 : 2));
  const auto terms = adapters->terms();
  const auto parameters = exact.model->named_parameters();
  for (const auto& [key, floats] : weights) {
    const at::Tensor rounded = floats - parameters[key];
    CHECK(rounded.abs().max().item<double>() > 0);
    CHECK(rounded.norm().item<double>() < 0.1 * floats.norm().item<double>());
    const at::NoGradGuard no_grad;
    parameters[key].copy_(floats);
    if (const auto term = terms.find(key); term != terms.end())
      parameters[key].add_(term->second.b.mm(term->second.a), term->second.scale);
  }
  const at::Tensor expected = loss_of(*exact.model);
  expected.backward();

  recompute_blocks(*loaded.model, recomputes);
  loaded.model->train();
  const at::Tensor found = loss_of(*loaded.model);
  CHECK(found.item<double>() == Approx(expected.item<double>()).epsilon(1e-6));
  found.backward();
  const auto gradients = gradients_of(*loaded.model);
  CHECK(gradients.size() == 2 * terms.size());
  for (const auto& [key, term] : terms) {
    CAPTURE(key);
    const at::Tensor whole = parameters[key].grad();
    check_close(term.a.grad(), term.scale * term.b.t().mm(whole));
    check_close(term.b.grad(), term.scale * whole.mm(term.a.t()));
  }
}

TEST_CASE("Other weights of a model with packed projections are loaded, and it cannot be written") {
  const test::TemporaryDirectory directory;
  const auto original = model_of("llama");
  save_model(*original, find_family("llama"), Head::kCausalLm, directory.path());
  const LoadedModel loaded = load_model(directory.path(), {.trainable = true, .stored = true});
  inference::freeze_projections(*loaded.model, *loaded.stored, WeightType::kInt8);
  CHECK(loaded.model->named_parameters()["embeddings.token.weight"].equal(
      original->named_parameters()["embeddings.token.weight"]));
  CHECK_THROWS_WITH(save_model(*loaded.model, *loaded.family, loaded.head, directory.path()),
                    Catch::Contains("is packed or in a file"));
}
