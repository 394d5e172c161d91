#include "apps/training/lora.h"

#include <set>

#include <ATen/ATen.h>

#include "apps/training/metrics/task_metrics.h"
#include "data/base/error.h"
#include "models/checkpoint/peft_adapter.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/own_module.h"

using zoo::LoraAdapters;
using zoo::SafetensorsFile;
using zoo::test::Curve;
using zoo::test::relative_error;
using zoo::test::TemporaryDirectory;
namespace fs = std::filesystem;

TEST_CASE("Adapters begin as nothing, are all that is trained, and merged weights compute the same") {
  Curve curve;
  const at::Tensor x = at::arange(5, at::kFloat).view({-1, 1}), before = curve.forward(x);
  const auto adapters =
      LoraAdapters::add_to(curve, {.rank = 2, .alpha = 6, .targets = {"fir*"}, .trains = {"second.bias"}});
  CHECK(curve.forward(x).equal(before));
  for (const auto& entry : curve.named_parameters()) {
    const bool trained = entry.key() == "second.bias" || entry.key().starts_with("lora.");
    CHECK(entry.value().requires_grad() == trained);
  }

  const at::Tensor a = adapters->named_parameters()["first_a"], b = adapters->named_parameters()["first_b"];
  CHECK(a.sizes() == at::IntArrayRef({2, 1}));
  CHECK(b.sizes() == at::IntArrayRef({8, 2}));
  const at::Tensor base = curve.first->weight.detach().clone();
  {
    const at::NoGradGuard no_grad;
    b.copy_(at::arange(16, at::kFloat).view({8, 2}) / 10);
  }
  const at::Tensor adapted = curve.forward(x);
  CHECK_FALSE(adapted.equal(before));
  adapted.sum().backward();
  CHECK(a.grad().defined());
  CHECK(b.grad().defined());
  CHECK(curve.first->weight.equal(base));
  const auto merged = adapters->merged_weights();  // W + alpha / rank B A
  REQUIRE(merged.size() == 1);
  CHECK(at::allclose(merged.at("first.weight"), base + b.mm(a) * 3));
  CHECK(curve.named_parameters()["first.weight"].equal(base));
  CHECK(curve.forward(x).equal(adapted));
}

TEST_CASE("rsLoRA divides alpha by the root of the rank, DoRA keeps W at first") {
  Curve curve;
  const at::Tensor x = at::arange(5, at::kFloat).view({-1, 1}), before = curve.forward(x);
  const auto adapters = LoraAdapters::add_to(
      curve, {.rank = 4, .alpha = 6, .rslora = true, .dora = true, .targets = {"first"}});
  CHECK(at::allclose(curve.forward(x), before));
  const auto parameters = adapters->named_parameters();
  const at::Tensor base = curve.first->weight.detach(), b = parameters["first_b"];
  CHECK(parameters["first_magnitude"].equal(base.norm(2, 1)));
  const at::NoGradGuard no_grad;
  b.copy_(at::arange(32, at::kFloat).view({8, 4}) / 10);
  const at::Tensor sum = base + b.mm(parameters["first_a"]) * 3;  // 6 / sqrt(4)
  const at::Tensor rows = base.norm(2, 1, true) * sum / sum.norm(2, 1, true);
  CHECK(at::allclose(adapters->merged_weights().at("first.weight"), rows));
}

// make_peft.py. Keys, values and queries are one weight of ours, of which llama-dora-some adapts a part.
TEST_CASE("An adapter that is trained on has PEFT's outputs and gradients") {
  const std::string name = GENERATE("gpt2-lora", "gpt2-dora", "llama-dora", "llama-dora-some");
  CAPTURE(name);
  const fs::path peft(ZOO_SOURCE_DIR "/tests/golden/peft");
  const SafetensorsFile expected(peft / name / "expected.safetensors"),
      gradients(peft / name / "gradients.safetensors");
  const zoo::CheckpointConfig checkpoint =
      zoo::read_checkpoint_config({peft / "bases" / expected.metadata().at("base"), peft / name},
                                  std::nullopt, /*applies_adapters=*/true);
  const zoo::LoadedModel loaded = zoo::load_model(checkpoint, {.trainable = true});
  const zoo::WeightTable table = weight_table_of(*loaded.family, checkpoint.config, loaded.head);
  const auto adapters = LoraAdapters::add_to(
      *loaded.model,
      {.dora = name.find("dora") != name.npos,
       .terms =
           zoo::PeftAdapter(peft / name).terms(checkpoint.files(), table, checkpoint.config.num_layers)});
  const at::Tensor ids = expected.tensor("input_ids");
  const at::Tensor logits = loaded.model->forward({.input_ids = ids}).logits;
  CHECK(relative_error(logits, expected.tensor("logits")) <= 1e-6);
  at::cross_entropy_loss(logits.slice(1, 0, -1).flatten(0, 1), ids.slice(1, 1).flatten()).backward();

  // Written as an adapter, gradients have PEFT's names.
  std::map<std::string, zoo::LowRankTerm> terms = adapters->terms();
  for (auto& [weight, term] : terms)
    for (at::Tensor* part : {&term.a, &term.b, &term.magnitude})
      if (part->defined()) *part = part->grad();
  const TemporaryDirectory folder;
  save_adapter(loaded, {.terms = terms}, folder.path());
  const SafetensorsFile ours(folder / "adapter_model.safetensors");
  CHECK(std::set(ours.names().begin(), ours.names().end()) ==
        std::set(gradients.names().begin(), gradients.names().end()));
  for (const std::string& tensor : gradients.names()) {
    CAPTURE(tensor);
    CHECK(relative_error(ours.tensor(tensor), gradients.tensor(tensor)) <= 1e-5);
  }
}

TEST_CASE("Patterns that fit nothing are refused") {
  Curve curve;
  CHECK_THROWS_WITH(LoraAdapters::add_to(curve, {.targets = {"*.query"}}), Catch::Contains("*.query"));
  CHECK_THROWS_WITH(
      LoraAdapters::add_to(curve, {.targets = {"first", "third.*"}}),
      Catch::Contains("no projection of the model fits 'third.*'; their names are first, second"));
  CHECK_THROWS_WITH(zoo::freeze(curve, {"first.*", "third.*"}), Catch::Contains("third.*"));
  Curve other;
  CHECK(zoo::freeze(other, {"second.*"}) == 9);
  CHECK_FALSE(other.second->bias.requires_grad());
  CHECK(other.first->bias.requires_grad());
}

TEST_CASE("Adapters need a rank and are added once") {
  Curve curve;
  CHECK_THROWS_WITH(LoraAdapters::add_to(curve, {.rank = 0, .targets = {"first"}}),
                    Catch::Contains("'lora_rank'") && Catch::Contains("at least 1"));
  LoraAdapters::add_to(curve, {.targets = {"first"}});
  CHECK_THROWS_WITH(LoraAdapters::add_to(curve, {.targets = {"first"}}),
                    Catch::Contains("has adapters already"));
}

TEST_CASE("BLEU is the geometric mean of the precisions, with a penalty for brevity") {
  CHECK(zoo::bleu({"a b c d e"}, {"a b c d e"}) == Approx(1.0));
  CHECK(zoo::bleu({"a b c"}, {"a b c"}) == 0.0);  // no four words
  // "a b c d e f" shares with "a b c d x f" 5/6 words, 3/5 pairs, 2/4 triples, 1/3 fours.
  CHECK(zoo::bleu({"a b c d e f"}, {"a b c d x f"}) ==
        Approx(std::pow(5.0 / 6 * 3 / 5 * 2 / 4 * 1 / 3, 0.25)));
  // All there is is right, but four of five words.
  CHECK(zoo::bleu({"a b c d"}, {"a b c d e"}) == Approx(std::exp(1 - 5.0 / 4)));
  // A word counts only as often as the reference has it: 4 of 7 words, 3 of 6, 2 of 5, 1 of 4.
  CHECK(zoo::bleu({"a b c d d d d"}, {"a b c d"}) == Approx(std::pow(4.0 / 7 * 3 / 6 * 2 / 5 * 1 / 4, 0.25)));
}
