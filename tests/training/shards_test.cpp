#include "apps/training/parallel/shards.h"

#include <ATen/ops/randint.h>

#include "apps/training/updater.h"
#include "models/registry.h"
#include "tests/support/catch.h"
#include "tests/support/message_of.h"
#include "tests/training/own_module.h"
#include "tests/training/thread_ranks.h"

using zoo::Shard;
using zoo::Shards;
using zoo::test::ThreadRanks;

namespace {

constexpr std::int64_t kRanks = 3, kSteps = 2;

struct Case {
  const char* family;
  zoo::Head head;
};

std::shared_ptr<zoo::Model> model_of(const Case& of) {
  const std::string family = of.family;
  zoo::TransformerConfig config = zoo::find_family(family).presets.front().config;
  config.vocab_size = 23;
  config.hidden_size = 16;
  config.num_layers = 3;
  config.num_decoder_layers = family == "t5" ? 2 : 0;
  config.num_heads = config.num_kv_heads = 2;
  config.head_dim = 8;
  config.embedding_size = family == "albert" ? 12 : 0;
  config.intermediate_size = 24;
  config.max_positions = 16;
  config.dropout = config.attention_dropout = config.embedding_dropout = 0;
  config.activation_dropout = config.final_dropout = 0;
  return build_model(zoo::find_family(family), config, of.head, 1);
}

// Micro step i of an update has the rows of batch i; `first` is this rank's.
class Rows final : public zoo::Objective {
 public:
  Rows(std::shared_ptr<zoo::Model> model, std::int64_t first, std::int64_t steps)
      : model_(std::move(model)), first_(first), steps_(steps) {}

  torch::nn::Module& module() override { return *model_; }
  zoo::Batch training(std::int64_t step) override {
    const std::int64_t row = step / steps_ * kRanks * kSteps + first_ + step % steps_;
    return {1, 1, [this, row] {
              zoo::ModelInputs inputs;
              const at::Tensor places = at::arange(10) + 10 * row;
              inputs.input_ids = (places * places * 7919 % 104729 % 20 + 3).view({1, 10});
              inputs.labels = inputs.input_ids;
              inputs.attention_mask = at::ones_like(inputs.input_ids);
              return model_->forward(inputs).loss;
            }};
  }
  zoo::Batch evaluation(zoo::Split, std::int64_t index) override { return training(index); }

 private:
  std::shared_ptr<zoo::Model> model_;
  std::int64_t first_, steps_;
};

zoo::UpdaterOptions options(zoo::OptimizerKind kind, std::int64_t steps) {
  zoo::UpdaterOptions options{.accumulation = steps};
  options.optimizer = {.kind = kind, .eps = 1e-3, .grad_clip = 0.5};
  return options;
}

std::size_t bytes_of(const zoo::Model& model) {
  std::size_t bytes = 0;
  for (const at::Tensor& weight : model.parameters()) bytes += weight.storage().nbytes();
  return bytes;
}

std::size_t gradients_of(const zoo::Model& model) {
  std::size_t bytes = 0;
  for (const at::Tensor& weight : model.parameters())
    if (weight.grad().defined()) bytes += weight.grad().nbytes();
  return bytes;
}

}  // namespace

TEST_CASE("Ranks that divide gradients and weights learn what one process does, and hold their parts alone") {
  const auto of = GENERATE(Case{"gpt2", zoo::Head::kCausalLm}, Case{"llama", zoo::Head::kCausalLm},
                           Case{"albert", zoo::Head::kMaskedLm}, Case{"mixtral", zoo::Head::kCausalLm},
                           Case{"t5", zoo::Head::kSeq2SeqLm});
  const auto kind = GENERATE(zoo::OptimizerKind::kAdamW, zoo::OptimizerKind::kMuon);
  const auto shard = GENERATE(Shard::kGradients, Shard::kWeights);
  INFO(of.family << ", optimizer " << static_cast<int>(kind) << ", shard " << static_cast<int>(shard));

  const auto alone = model_of(of);
  Rows all(alone, 0, kRanks * kSteps);
  zoo::Updater reference(all, options(kind, kRanks * kSteps), nullptr);
  std::vector<double> norms;
  for (std::int64_t i = 0; i < 3; ++i) {
    reference.run(i, 0.01, [] { return false; });
    norms.push_back(reference.optimizer().gradient_norm().item<double>());
  }
  CHECK(norms.front() > 0.5);  // clipped

  std::vector<std::shared_ptr<zoo::Model>> models;
  for (std::int64_t rank = 0; rank < kRanks; ++rank) models.push_back(model_of(of));
  const std::size_t whole = bytes_of(*alone);
  std::vector<std::size_t> held(kRanks), own(kRanks), gradients(kRanks), most(kRanks);
  std::size_t apart = 0;
  std::vector<double> difference(kRanks), found;
  zoo::test::run_ranks(kRanks, [&](ThreadRanks& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    zoo::UpdaterOptions given = options(kind, kSteps);
    given.optimizer_shares = kRanks;
    given.shard = shard;
    Rows objective(models[rank], ranks.rank() * kSteps, kSteps);
    zoo::Updater updater(objective, given, &ranks);
    for (std::int64_t i = 0; i < 3; ++i) {
      updater.run(i, 0.01, [] { return false; });
      if (rank == 0) found.push_back(updater.optimizer().gradient_norm().item<double>());
    }
    held[rank] = bytes_of(*models[rank]);
    for (std::size_t i = 0; i < updater.optimizer().parameters().size(); ++i) {
      const std::size_t bytes = updater.optimizer().parameters()[i].second.nbytes();
      if (rank == 0 && updater.shards()->apart()[i]) apart += bytes;
      if (updater.shards()->apart()[i] && updater.optimizer().owner(i) == ranks.rank()) own[rank] += bytes;
    }
    // One more backward pass, whose gradients stay.
    ranks.on_sum = [&] { most[rank] = std::max(most[rank], gradients_of(*models[rank])); };
    updater.shards()->begin();
    objective.training(0).loss().backward();
    updater.shards()->end(true);
    gradients[rank] = gradients_of(*models[rank]);
    for (std::size_t i = 0; i < updater.optimizer().parameters().size(); ++i)
      if (updater.optimizer().parameters()[i].second.grad().defined() &&
          updater.optimizer().owner(i) != ranks.rank())
        throw zoo::Error("a gradient on a rank that does not own it");
    const Shards::Whole scope(updater.shards());
    if (rank != 0) return;
    const auto expected = alone->parameters(), learnt = models[0]->parameters();
    for (std::size_t i = 0; i < expected.size(); ++i)
      difference[0] = std::max(difference[0], (expected[i] - learnt[i]).abs().max().item<double>());
  });
  for (std::size_t i = 0; i < norms.size(); ++i) CHECK(found[i] == Approx(norms[i]).epsilon(1e-5));
  CHECK(difference[0] < 1e-5);
  CHECK(gradients[0] + gradients[1] + gradients[2] == whole);
  for (std::size_t rank = 0; rank < kRanks; ++rank) CHECK(gradients[rank] < whole * 2 / 3);
  // Gradients are sent during the backward pass. ALBERT's layers share one block, which has its at the end.
  for (std::size_t rank = 0; rank < kRanks && of.family != std::string("albert"); ++rank)
    CHECK(most[rank] < whole / 4);
  for (std::size_t rank = 0; rank < kRanks; ++rank) CHECK(held[rank] == whole - apart + own[rank]);
  CHECK((apart > whole / 2) == (shard == Shard::kWeights));
}

TEST_CASE("A gradient that is not finite is named by all ranks, whoever owns it") {
  std::vector<std::string> messages(kRanks);
  zoo::test::run_ranks(kRanks, [&](ThreadRanks& ranks) {
    zoo::test::Curve curve;
    zoo::test::CurveObjective objective(curve, zoo::test::kTwelve);
    if (ranks.rank() == 1) objective.spoil(0, std::numeric_limits<double>::quiet_NaN());
    zoo::UpdaterOptions given;
    given.optimizer_shares = kRanks;
    given.shard = Shard::kGradients;
    zoo::Updater updater(objective, given, &ranks);
    messages[static_cast<std::size_t>(ranks.rank())] =
        zoo::test::message_of([&] { updater.run(0, 0.05, [] { return false; }); });
  });
  for (const std::string& message : messages)
    CHECK_THAT(message, Catch::Contains("update 0: the gradient of 'first.weight' is not finite"));
}

TEST_CASE("A module without blocks has no weights to divide") {
  zoo::test::run_ranks(2, [&](ThreadRanks& ranks) {
    zoo::test::Curve curve;
    zoo::test::CurveObjective objective(curve, zoo::test::kTwelve);
    zoo::UpdaterOptions given;
    given.optimizer_shares = 2;
    given.shard = Shard::kWeights;
    if (zoo::test::message_of([&] { zoo::Updater(objective, given, &ranks); }).find("'shard' weights: ") != 0)
      throw zoo::Error("it was not refused");
  });
}
