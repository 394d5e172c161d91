#include <cmath>

#include <ATen/ops/full.h>
#include <c10/core/InferenceMode.h>

#include "models/generation/graphs/graphed_steps.h"
#include "models/generation/module_decoder.h"
#include "models/registry.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using zoo::test::relative_error;

namespace {

TransformerConfig small_config(const std::string& family) {
  TransformerConfig config;
  config.vocab_size = 17;
  config.hidden_size = 16;
  config.num_layers = 2;
  config.num_heads = 4;
  config.max_positions = 64;
  config.position = family == "gpt2" ? PositionKind::kLearned : PositionKind::kRotary;
  if (family == "llama") config.num_kv_heads = 2;
  return config;
}

// Keys and values that nobody has written may hold anything.
void spoil(KeyValueCache& cache, const TransformerConfig& config, std::int64_t rows) {
  const std::int64_t left = cache.capacity() - cache.length();
  const at::Tensor nan = at::full({rows, config.kv_heads(), left, config.head_size()}, std::nan(""));
  for (std::int64_t layer = 0; layer < config.num_layers; ++layer) cache.append(layer, nan, nan);
}

}  // namespace

TEST_CASE("A step of fixed size gives the logits of the usual pass", "[generation]") {
  const c10::InferenceMode inference;
  const std::string family = GENERATE("gpt2", "llama");
  const TransformerConfig config = small_config(family);
  const auto model = test::random_model(family, config, Head::kCausalLm, 3);
  model->eval();
  // Two rows of five and three tokens, which end together; the mask hides what lies before the second.
  const at::Tensor ids = at::tensor({3, 1, 4, 1, 5, 0, 0, 9, 2, 6}, at::kLong).view({2, 5});
  const at::Tensor kept = at::tensor({1, 1, 1, 1, 1, 0, 0, 1, 1, 1}, at::kLong).view({2, 5});
  KeyValueCache cache(config, /*batch=*/2, /*capacity=*/16, at::kFloat);
  model->forward({.input_ids = ids,
                  .attention_mask = kept,
                  .position_ids = (kept.cumsum(1) - 1).clamp_min(0),
                  .cache = &cache});
  spoil(cache, config, 2);
  FixedStep step(*model, cache, /*begins=*/{0, 2}, /*seen=*/8);
  std::vector<TokenIds> rows{{3, 1, 4, 1, 5}, {9, 2, 6}};
  for (const TokenIds& next : {TokenIds{7, 11}, TokenIds{13, 16}, TokenIds{2, 8}}) {
    step.set(next, cache.length());
    step.run();
    const at::Tensor first = step.logits().clone();
    step.run();  // as often as a graph is warmed up
    CHECK(at::equal(step.logits(), first));
    cache.advance(1);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      rows[row].push_back(next[row]);
      const at::Tensor alone = at::tensor(rows[row], at::kLong).unsqueeze(0);
      const at::Tensor expected = model->forward({.input_ids = alone}).logits[0][-1];
      INFO(family << " row " << row << " of " << rows[row].size());
      CHECK(relative_error(step.logits()[static_cast<std::int64_t>(row)], expected) < 1e-5);
    }
  }
  CHECK(cache.length() == 8);
}

TEST_CASE("A step that depends on the number of tokens has no fixed size", "[generation]") {
  TransformerConfig config = small_config("llama");
  CHECK(FixedStep::supports(config, 256));
  config.sliding_window = 100;
  CHECK(!FixedStep::supports(config, 256));
  CHECK(FixedStep::supports(config, 100));
  config = small_config("llama");
  config.rope_scaling.kind = RopeScalingKind::kDynamic;
  CHECK(!FixedStep::supports(config, 256));
  for (const PositionKind kind : {PositionKind::kAlibi, PositionKind::kT5Buckets, PositionKind::kShaw,
                                  PositionKind::kDisentangled, PositionKind::kLearnedAndT5Buckets}) {
    config = small_config("gpt2");
    config.position = kind;
    CHECK(!FixedStep::supports(config, 256));
  }
  config = small_config("llama");
  config.num_experts = 4;
  CHECK(!FixedStep::supports(config, 256));
}
