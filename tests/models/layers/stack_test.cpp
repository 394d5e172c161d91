#include "models/layers/stack.h"

#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using zoo::test::largest_difference;

namespace {

// Every module's values spread wide, the norms' too.
void randomize(torch::nn::Module& module) {
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : module.parameters()) parameter.normal_(0.0, 0.4);
  module.eval();
}

at::Tensor decode(TransformerStack& stack, const TransformerConfig& config, const at::Tensor& embeddings,
                  const std::vector<std::int64_t>& pieces) {
  const at::NoGradGuard no_grad;
  KeyValueCache cache(config, embeddings.size(0), embeddings.size(1), at::TensorOptions());
  std::vector<at::Tensor> outputs;
  for (const std::int64_t length : pieces) {
    const at::Tensor piece = embeddings.slice(1, cache.length(), cache.length() + length);
    outputs.push_back(stack->forward({.embeddings = piece, .cache = &cache}).hidden);
  }
  REQUIRE(cache.length() == embeddings.size(1));
  return at::cat(outputs, 1);
}

}  // namespace

TEST_CASE(
    "a block adds its sublayers to the residual stream, with the norm where the configuration puts it") {
  TransformerConfig config = test::small_config();
  config.norm_placement = GENERATE(NormPlacement::kPre, NormPlacement::kPost);
  at::manual_seed(1);
  Block block(config);
  randomize(*block);
  const at::Tensor x = at::randn({2, 4, 12});
  const auto attend = [&](const at::Tensor& y) { return block->attention->forward(y, {}); };
  at::Tensor expected;
  if (config.norm_placement == NormPlacement::kPre) {
    const at::Tensor middle = x + attend(block->attention_norm->branch(x).normed);
    expected = middle + block->feed_forward(block->feed_forward_norm->branch(middle).normed);
  } else {
    const at::Tensor middle = block->attention_norm(x + attend(x));
    expected = block->feed_forward_norm(middle + block->feed_forward(middle));
  }
  CHECK(at::equal(block(x, SelfAttentionContext{}), expected));
}

TEST_CASE("training leaves layers out at their rate, and nothing else does") {
  TransformerConfig config = test::small_config();
  config.layer_dropout = 0.999999;
  at::manual_seed(1);
  TransformerStack stack(config);
  randomize(*stack);
  const at::Tensor x = at::randn({1, 4, 12});
  const at::Tensor whole = stack->forward({.embeddings = x}).hidden;
  CHECK(largest_difference(whole, stack->final_norm(x)) > 1e-3);
  stack->train();
  CHECK(largest_difference(stack->forward({.embeddings = x}).hidden, stack->final_norm(x)) == 0);
}

TEST_CASE("a stack ends in a norm only if its norms stand before the sublayers") {
  TransformerConfig config = test::small_config();
  CHECK(TransformerStack(config)->final_norm);
  config.norm_placement = NormPlacement::kPost;
  CHECK_FALSE(TransformerStack(config)->final_norm);
}

TEST_CASE("hidden states: the embeddings first, the last after the final norm, each the input of a block") {
  const TransformerConfig config = test::small_config();
  at::manual_seed(2);
  TransformerStack stack(config);
  randomize(*stack);
  const at::Tensor x = at::randn({2, 5, 12});
  const StackOutput output =
      stack->forward({.embeddings = x, .output_hidden_states = true, .output_attentions = true});
  REQUIRE(output.hidden_states.size() == 4);
  REQUIRE(output.attentions.size() == 3);
  CHECK(at::equal(output.hidden_states[0], x));
  CHECK(at::equal(output.hidden_states[3], output.hidden));
  SelfAttentionContext context;
  context.mask = make_attention_mask({}, {.queries = 5, .keys = 5, .causal = true}, at::kFloat, at::kCPU);
  const auto first = stack->blocks[0]->as<BlockImpl>()->forward(x, context);
  CHECK(largest_difference(output.hidden_states[1], first) < 1e-5);
  // Asking for more must not change the result.
  const StackOutput plain = stack->forward({.embeddings = x});
  CHECK(plain.hidden_states.empty());
  CHECK(plain.attentions.empty());
  CHECK(test::relative_error(plain.hidden, output.hidden) < 1e-5);
  for (const at::Tensor& weights : output.attentions) {
    CHECK(weights.sizes() == at::IntArrayRef({2, 2, 5, 5}));
    CHECK(largest_difference(weights.sum(-1), at::ones({2, 2, 5})) < 1e-5);
    CHECK(weights.triu(1).abs().max().item<double>() == 0);
  }
}

TEST_CASE("no position of a decoder sees the future, each of an encoder does") {
  TransformerConfig config = test::small_config();
  config.shape = GENERATE(Shape::kDecoder, Shape::kEncoder);
  config.position = GENERATE(PositionKind::kNone, PositionKind::kRotary, PositionKind::kT5Buckets,
                             PositionKind::kAlibi, PositionKind::kShaw);
  const bool need_weights = GENERATE(false, true);
  at::manual_seed(3);
  TransformerStack stack(config);
  randomize(*stack);
  const at::Tensor x = at::randn({1, 6, 12});
  at::Tensor changed = x.clone();
  changed[0][3].copy_(at::randn({12}));  // a constant would vanish in the norm
  const auto run = [&](const at::Tensor& y) {
    return stack->forward({.embeddings = y, .output_attentions = need_weights}).hidden;
  };
  const at::Tensor before = run(x).slice(1, 0, 3), after = run(changed).slice(1, 0, 3);
  if (config.shape == Shape::kDecoder) {
    CHECK(at::equal(before, after));
  } else {
    CHECK(largest_difference(before, after) > 1e-3);
  }
}

TEST_CASE("decoding with the cache equals the whole sequence at once, in pieces of any length") {
  TransformerConfig config = test::small_config();
  config.position = GENERATE(PositionKind::kNone, PositionKind::kRotary, PositionKind::kT5Buckets,
                             PositionKind::kAlibi, PositionKind::kShaw);
  config.relative_max_distance = 20;
  config.num_kv_heads = GENERATE(1, 2);
  at::manual_seed(4);
  TransformerStack stack(config);
  randomize(*stack);
  const at::Tensor x = at::randn({2, 7, 12});
  const at::Tensor whole = stack->forward({.embeddings = x}).hidden;
  CHECK(test::relative_error(decode(stack, config, x, {1, 1, 1, 1, 1, 1, 1}), whole) < 1e-5);
  CHECK(test::relative_error(decode(stack, config, x, {3, 1, 3}), whole) < 1e-5);
  CHECK(test::relative_error(decode(stack, config, x, {7}), whole) < 1e-5);
}

TEST_CASE("the cache gives back what was written, can be cut, and says when it is full") {
  TransformerConfig config = test::small_config();
  config.num_kv_heads = 1;
  KeyValueCache cache(config, /*batch=*/2, /*capacity=*/4, at::TensorOptions());
  CHECK(cache.bytes() == 3 * 2 * (2 * 1 * 4 * 6) * 4);  // layers, keys and values, B Hkv S D, float32
  const at::Tensor keys = at::randn({2, 1, 3, 6}), values = at::randn({2, 1, 3, 6});
  auto view = cache.append(1, keys, values);
  CHECK(at::equal(view.keys, keys));
  CHECK(at::equal(view.values, values));
  cache.advance(3);
  view = cache.append(1, keys.slice(2, 2), values.slice(2, 2));
  CHECK(at::equal(view.keys, at::cat({keys, keys.slice(2, 2)}, 2)));
  cache.advance(1);
  CHECK_THAT(test::c10_error_of([&] { cache.append(0, keys.slice(2, 2), keys.slice(2, 2)); }),
             Catch::Contains("holds 4 positions, 5 are needed"));
  cache.truncate(2);
  CHECK(cache.length() == 2);
  view = cache.append(1, values.slice(2, 0, 1), keys.slice(2, 0, 1));
  CHECK(at::equal(view.keys, at::cat({keys.slice(2, 0, 2), values.slice(2, 0, 1)}, 2)));
  CHECK_THAT(test::c10_error_of([&] { cache.truncate(3); }), Catch::Contains("2 positions to 3"));
}

TEST_CASE("padding changes nothing for the tokens that are kept, on either side") {
  TransformerConfig config = test::small_config();
  config.shape = GENERATE(Shape::kDecoder, Shape::kEncoder);
  // So that a shift changes nothing either.
  config.position = GENERATE(PositionKind::kNone, PositionKind::kRotary, PositionKind::kT5Buckets,
                             PositionKind::kAlibi, PositionKind::kShaw);
  at::manual_seed(5);
  TransformerStack stack(config);
  randomize(*stack);
  const at::Tensor x = at::randn({1, 4, 12});
  const at::Tensor alone = stack->forward({.embeddings = x}).hidden;
  const at::Tensor padding = at::randn({1, 3, 12}) * 10;
  const auto zeros = at::zeros({1, 3}, at::kLong), ones = at::ones({1, 4}, at::kLong);
  const at::Tensor left =
      stack->forward({.embeddings = at::cat({padding, x}, 1), .attention_mask = at::cat({zeros, ones}, 1)})
          .hidden.slice(1, 3);
  const at::Tensor right =
      stack->forward({.embeddings = at::cat({x, padding}, 1), .attention_mask = at::cat({ones, zeros}, 1)})
          .hidden.slice(1, 0, 4);
  CHECK(test::relative_error(left, alone) < 1e-5);
  CHECK(test::relative_error(right, alone) < 1e-5);
}

TEST_CASE(
    "shared layers are one block, applied as often as there are layers, and its gradient is their sum") {
  TransformerConfig config = test::small_config();
  at::manual_seed(6);
  TransformerStack own(config);
  config.sharing = Sharing::kAllLayers;
  TransformerStack shared(config);
  randomize(*shared);
  REQUIRE(shared->blocks->size() == 1);
  CHECK(&shared->block(0) == &shared->block(2));
  {
    const at::NoGradGuard no_grad;
    for (auto& parameter : own->named_parameters()) {
      std::string name = parameter.key();
      if (name.starts_with("blocks.")) name[7] = '0';
      parameter.value().copy_(shared->named_parameters()[name]);
    }
    own->eval();
  }
  const at::Tensor x = at::randn({2, 5, 12});
  const auto run = [&](TransformerStack& stack) {
    const StackOutput output = stack->forward({.embeddings = x, .output_hidden_states = true});
    REQUIRE(output.hidden_states.size() == 4);
    output.hidden.square().sum().backward();
    return output.hidden;
  };
  CHECK(at::equal(run(shared), run(own)));
  const auto gradients = own->named_parameters();
  for (const auto& parameter : shared->named_parameters()) {
    std::string name = parameter.key();
    if (!name.starts_with("blocks.")) continue;
    at::Tensor sum = at::zeros_like(parameter.value());
    for (const char layer : {'0', '1', '2'}) {
      name[7] = layer;
      sum += gradients[name].grad();
    }
    CAPTURE(name);
    CHECK(test::largest_difference(parameter.value().grad(), sum) <
          1e-4 * (1 + sum.abs().max().item<double>()));
  }
}

TEST_CASE("decoding with the cache works with shared layers") {
  TransformerConfig config = test::small_config();
  config.position = PositionKind::kNone;
  config.sharing = Sharing::kAllLayers;
  at::manual_seed(7);
  TransformerStack stack(config);
  randomize(*stack);
  const at::Tensor x = at::randn({2, 5, 12});
  const at::Tensor whole = stack->forward({.embeddings = x}).hidden;
  CHECK(test::relative_error(decode(stack, config, x, {2, 1, 2}), whole) < 1e-5);
}
