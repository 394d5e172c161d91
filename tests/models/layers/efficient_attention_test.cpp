#include "models/layers/attention/efficient_attention.h"

#include "models/layers/stack.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using zoo::test::largest_difference;

namespace {

struct QueryKeyValue {
  at::Tensor q, k, v;
};

QueryKeyValue draw(std::int64_t length, std::int64_t size = 6) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(5);
  const auto one = [&] { return at::randn({2, 3, length, size}, generator); };
  return {one(), one(), one()};
}

at::Tensor full(const QueryKeyValue& h, bool causal) {
  return ops::scaled_dot_product_attention(h.q, h.k, h.v, {.causal = causal}, {}).output;
}

// The weights by the definition: softmax over the visible keys alone, in double precision.
at::Tensor by_definition(const QueryKeyValue& h, const at::Tensor& visible) {
  const at::Tensor scores =
      at::matmul(h.q.to(at::kDouble), h.k.to(at::kDouble).transpose(-2, -1)) / std::sqrt(6.0);
  const at::Tensor shown = scores.exp() * visible;
  return at::matmul(shown / shown.sum(-1, true).clamp_min(1e-300), h.v.to(at::kDouble));
}

TransformerConfig config_of(AttentionKind kind, Shape shape) {
  TransformerConfig config = test::small_config();
  config.shape = shape;
  config.attention = kind;
  config.sparse_window = 3;
  config.attention_projection = 5;
  return config;
}

TransformerStack stack_of(const TransformerConfig& config) {
  at::manual_seed(6);
  TransformerStack stack(config);
  const at::NoGradGuard no_grad;
  for (at::Tensor& parameter : stack->parameters()) parameter.normal_(0.0, 0.4);
  stack->eval();
  return stack;
}

}  // namespace

TEST_CASE("a sliding window sees the keys at most so far away, of a decoder those before") {
  EfficientAttentionOptions options{.kind = AttentionKind::kSlidingWindow, .window = 1};
  const auto expected =
      at::tensor({1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1}).view({4, 4}).to(at::kBool);
  CHECK(at::equal(visible_keys(options, 4, 4, at::kCPU), expected));
  options.causal = true;
  CHECK(at::equal(visible_keys(options, 4, 4, at::kCPU), expected.tril()));
  // One query, the last of four positions.
  CHECK(at::equal(visible_keys(options, 1, 4, at::kCPU), expected.tril().slice(0, 3)));
}

TEST_CASE("strided sparse attention sees less than a stride, and every stride-th key") {
  EfficientAttentionOptions options{.kind = AttentionKind::kStridedSparse, .window = 3, .causal = true};
  // Query 7 sees 7, 6 and 5, and 4 and 1, which are 3 and 6 away.
  const auto expected = at::tensor({0, 1, 0, 0, 1, 1, 1, 1, 0}).to(at::kBool);
  CHECK(at::equal(visible_keys(options, 9, 9, at::kCPU)[7], expected));
  options.causal = false;
  // Query 2 sees 0 to 4, 5 and 8.
  CHECK(at::equal(visible_keys(options, 9, 9, at::kCPU)[2],
                  at::tensor({1, 1, 1, 1, 1, 1, 0, 0, 1}).to(at::kBool)));
}

TEST_CASE("sparse attention in blocks is the softmax over the visible keys") {
  const auto kind = GENERATE(AttentionKind::kSlidingWindow, AttentionKind::kStridedSparse);
  const bool causal = GENERATE(false, true);
  const std::int64_t length = GENERATE(1, 2, 7, 12, 13), window = GENERATE(1, 3, 4, 20);
  const QueryKeyValue h = draw(length);
  EfficientAttentionOptions options{.kind = kind, .window = window, .causal = causal};
  const at::Tensor visible = visible_keys(options, length, length, at::kCPU);
  CAPTURE(length, window, causal);
  CHECK(largest_difference(sparse_attention(h.q, h.k, h.v, options).output, by_definition(h, visible)) <
        1e-5);
  options.need_weights = true;
  const AttentionOutput seen = sparse_attention(h.q, h.k, h.v, options);
  CHECK(largest_difference(seen.output, by_definition(h, visible)) < 1e-5);
  CHECK(seen.weights.masked_select(visible.logical_not()).abs().sum().item<double>() == 0);
}

TEST_CASE("hidden keys are seen by nobody, and a row that sees none gives zeros with a gradient") {
  const auto kind = GENERATE(AttentionKind::kSlidingWindow, AttentionKind::kStridedSparse);
  const bool need_weights = GENERATE(false, true);
  QueryKeyValue h = draw(8);
  h.q.requires_grad_();
  EfficientAttentionOptions options{.kind = kind, .window = 2, .causal = true, .need_weights = need_weights};
  options.key_mask = at::tensor({0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1}).view({2, 8}).to(at::kBool);
  const at::Tensor output = sparse_attention(h.q, h.k, h.v, options).output;
  const at::Tensor visible = visible_keys(options, 8, 8, at::kCPU).unsqueeze(0).unsqueeze(0) &
                             options.key_mask.unsqueeze(1).unsqueeze(1);
  CHECK(largest_difference(output, by_definition(h, visible)) < 1e-5);
  CHECK(output[0].slice(1, 0, 3).abs().max().item<double>() == 0);
  output.square().sum().backward();
  CHECK(h.q.grad().isfinite().all().item<bool>());
}

TEST_CASE("a window as wide as the sequence, or a stride of one, is full attention") {
  const bool causal = GENERATE(false, true);
  const QueryKeyValue h = draw(9);
  EfficientAttentionOptions options{.kind = AttentionKind::kSlidingWindow, .window = 9, .causal = causal};
  CHECK(largest_difference(sparse_attention(h.q, h.k, h.v, options).output, full(h, causal)) < 1e-5);
  options = {.kind = AttentionKind::kStridedSparse, .window = 1, .causal = causal};
  CHECK(largest_difference(sparse_attention(h.q, h.k, h.v, options).output, full(h, causal)) < 1e-5);
}

TEST_CASE("linear attention by hand: weights in proportion to phi(q) . phi(k), phi(x) = elu(x) + 1") {
  // phi(0) = 1, phi(1) = 2, phi(-1) = 1/e.
  const auto heads = [](std::vector<float> x) { return at::tensor(x).view({1, 1, 2, 1}); };
  const at::Tensor q = heads({0, 1}), k = heads({1, -1}), v = heads({3, 5});
  const double e = std::exp(-1.0), both = (2 * 3 + e * 5) / (2 + e);
  EfficientAttentionOptions options{.kind = AttentionKind::kLinear};
  options.need_weights = GENERATE(false, true);
  const auto at_query = [&](int query) {
    return linear_attention(q, k, v, options).output[0][0][query][0].item<double>();
  };
  // With one dimension phi(q) is a factor of all weights alike.
  CHECK(at_query(0) == Approx(both));
  CHECK(at_query(1) == Approx(both));
  options.causal = true;
  CHECK(at_query(0) == Approx(3));
  CHECK(at_query(1) == Approx(both));
}

TEST_CASE("linear attention by sums is that of all pairs, over many chunks, with hidden keys") {
  const bool causal = GENERATE(false, true);
  const std::int64_t length = GENERATE(1, 64, 150);
  const QueryKeyValue h = draw(length);
  EfficientAttentionOptions options{.kind = AttentionKind::kLinear, .causal = causal};
  options.key_mask = at::ones({2, length}, at::kBool);
  options.key_mask[1].slice(0, 0, length / 3).fill_(false);
  const at::Tensor sums = linear_attention(h.q, h.k, h.v, options).output;
  options.need_weights = true;
  const AttentionOutput pairs = linear_attention(h.q, h.k, h.v, options);
  CHECK(largest_difference(sums, pairs.output) < 1e-5);
  if (length / 3 > 0 && causal) CHECK(sums[1].slice(1, 0, length / 3).abs().max().item<double>() == 0);
  CHECK(largest_difference(pairs.weights[0].sum(-1), at::ones({3, length})) < 1e-5);
}

TEST_CASE("Linformer with a projection that changes nothing is full attention") {
  const QueryKeyValue h = draw(7);
  // Two positions more than there are: their columns are not used.
  const at::Tensor same = at::eye(9).slice(0, 0, 7);
  const EfficientAttentionOptions options{.kind = AttentionKind::kLinformer};
  CHECK(largest_difference(linformer_attention(h.q, h.k, h.v, same, same, options).output, full(h, false)) <
        1e-5);
}

TEST_CASE("Linformer by hand: one mixture of all keys has all the weight") {
  const QueryKeyValue h = draw(4);
  const at::Tensor mixture = at::tensor({0.5, 0.25, 0.0, 0.25}, at::kFloat).view({1, 4});
  EfficientAttentionOptions options{.kind = AttentionKind::kLinformer, .need_weights = true};
  const AttentionOutput result = linformer_attention(h.q, h.k, h.v, mixture, mixture, options);
  const at::Tensor expected = h.v.select(2, 0) * 0.5 + (h.v.select(2, 1) + h.v.select(2, 3)) * 0.25;
  CHECK(largest_difference(result.output, expected.unsqueeze(2).expand({2, 3, 4, 6})) < 1e-6);
  CHECK(at::equal(result.weights, at::ones({2, 3, 4, 1})));
  // A hidden key leaves its part empty.
  options.key_mask = at::tensor({0, 1, 1, 1}).view({1, 4}).to(at::kBool);
  const at::Tensor rest = linformer_attention(h.q, h.k, h.v, mixture, mixture, options).output;
  CHECK(largest_difference(rest, (expected - h.v.select(2, 0) * 0.5).unsqueeze(2).expand({2, 3, 4, 6})) <
        1e-6);
  CHECK_THROWS_AS(linformer_attention(h.q, h.k, h.v, mixture.slice(1, 0, 3), mixture, options), c10::Error);
}

TEST_CASE("a stack of a causal kind sees no future, and decodes with a cache as without") {
  const auto kind =
      GENERATE(AttentionKind::kSlidingWindow, AttentionKind::kStridedSparse, AttentionKind::kLinear);
  TransformerConfig config = config_of(kind, Shape::kDecoder);
  config.num_heads = 4;
  config.num_kv_heads = 2;
  TransformerStack stack = stack_of(config);
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({2, 11, 12});
  const at::Tensor whole = stack->forward({.embeddings = x}).hidden;
  at::Tensor changed = x.clone();
  changed.select(1, 8).normal_();
  const at::Tensor moved = (stack->forward({.embeddings = changed}).hidden - whole).abs().amax({0, 2});
  CHECK(moved.slice(0, 0, 8).max().item<double>() == 0);
  CHECK(moved[8].item<double>() > 0.01);
  KeyValueCache cache(config, 2, 11, at::TensorOptions());
  std::vector<at::Tensor> pieces;
  for (const std::int64_t length : {5, 1, 3, 2}) {
    const at::Tensor piece = x.slice(1, cache.length(), cache.length() + length);
    pieces.push_back(stack->forward({.embeddings = piece, .cache = &cache}).hidden);
  }
  CHECK(largest_difference(at::cat(pieces, 1), whole) < 1e-4);
}

TEST_CASE("padding changes nothing of the kept positions, and the weights are those that are used") {
  const auto kind = GENERATE(AttentionKind::kSlidingWindow, AttentionKind::kStridedSparse,
                             AttentionKind::kLinear, AttentionKind::kLinformer);
  TransformerStack stack = stack_of(config_of(kind, Shape::kEncoder));
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({1, 10, 12}),
                   mask = at::tensor({1, 1, 1, 1, 1, 1, 1, 0, 0, 0}).view({1, 10});
  const at::Tensor alone = stack->forward({.embeddings = x.slice(1, 0, 7)}).hidden;
  const at::Tensor padded = stack->forward({.embeddings = x, .attention_mask = mask}).hidden.slice(1, 0, 7);
  CHECK(largest_difference(padded, alone) < 1e-4);
  const StackOutput seen =
      stack->forward({.embeddings = x, .attention_mask = mask, .output_attentions = true});
  CHECK(largest_difference(seen.hidden.slice(1, 0, 7), alone) < 1e-4);
  REQUIRE(seen.attentions.size() == 3);
  CHECK(seen.attentions[0].size(-1) == (kind == AttentionKind::kLinformer ? 5 : 10));
}

TEST_CASE("a stack's window as wide as its sequence is the same stack with full attention") {
  const Shape shape = GENERATE(Shape::kEncoder, Shape::kDecoder);
  TransformerConfig config = config_of(AttentionKind::kSlidingWindow, shape);
  config.sparse_window = 16;
  TransformerStack windowed = stack_of(config);
  config.attention = AttentionKind::kFull;
  TransformerStack whole = stack_of(config);
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({2, 9, 12});
  CHECK(largest_difference(windowed->forward({.embeddings = x}).hidden,
                           whole->forward({.embeddings = x}).hidden) < 1e-4);
}

TEST_CASE("what an efficient attention cannot have is refused with its name") {
  const auto fault = [](AttentionKind kind, Shape shape, auto change) {
    TransformerConfig config = config_of(kind, shape);
    change(config);
    return test::c10_error_of([&] { TransformerStack stack(config); });
  };
  using Kind = AttentionKind;
  CHECK_THAT(fault(Kind::kSlidingWindow, Shape::kEncoder, [](auto& c) { c.sparse_window = 0; }),
             Catch::Contains("sparse_window must be positive, got 0"));
  CHECK_THAT(fault(Kind::kLinformer, Shape::kEncoder, [](auto& c) { c.attention_projection = 0; }),
             Catch::Contains("attention_projection must be positive, got 0"));
  CHECK_THAT(fault(Kind::kLinformer, Shape::kDecoder, [](auto&) {}), Catch::Contains("only an encoder"));
  CHECK_THAT(fault(Kind::kLinear, Shape::kDecoder, [](auto& c) { c.attention_dropout = 0.5; }),
             Catch::Contains("attention_dropout must be 0, got 0.5"));
  CHECK_THAT(fault(Kind::kStridedSparse, Shape::kDecoder, [](auto& c) { c.position = PositionKind::kAlibi; }),
             Catch::Contains("strided_sparse attention cannot have alibi positions"));
}
