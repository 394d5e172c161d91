#include "models/inference/packed_decoder.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "models/generation/module_decoder.h"
#include "models/tasks/inference_loading.h"
#include "tests/models/inference/packed_outputs.h"
#include "tests/models/kernels/unpacked.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using inference::PackOptions;
using kernels::WeightType;
using zoo::test::relative_error;

namespace {

TransformerConfig alibi_config() {
  TransformerConfig config = test::small_config();
  config.position = PositionKind::kAlibi;
  config.activation = Activation::kRelu;
  config.tie_word_embeddings = false;
  return config;
}

TransformerConfig llama_config() {
  TransformerConfig config = find_preset("llama-tiny").preset.config;
  config.vocab_size = 70;
  config.hidden_size = 24;
  config.num_layers = 2;
  config.num_heads = 6;
  config.num_kv_heads = 2;
  config.head_dim = 10;
  config.intermediate_size = 20;
  config.max_positions = 16;
  return config;
}

TokenIds ids_of(const at::Tensor& ids) {
  const auto* data = ids.const_data_ptr<std::int64_t>();
  return {data, data + ids.numel()};
}

// Logits of the modules after each token of a sequence: [T, V].
at::Tensor expected_logits(Model& model, const at::Tensor& ids) {
  const at::NoGradGuard no_grad;
  return model.forward({.input_ids = ids.unsqueeze(0)}).logits[0];
}

void check_decoder(const std::shared_ptr<Model>& model, const PackOptions& options, double limit) {
  const at::Tensor ids = test::random_ids(model->config(), 2, 14, 3);
  const auto packed = pack(*model, options);
  const auto session = packed->begin(2, 14);
  // Rows of unlike length: 5 and 2 tokens, then 1 and 4, then all that is left.
  const at::Tensor first =
      session->read({ids_of(ids[0].slice(0, 0, 5)), ids_of(ids[1].slice(0, 0, 2))}).clone();
  const at::Tensor second =
      session->read({ids_of(ids[0].slice(0, 5, 6)), ids_of(ids[1].slice(0, 2, 6))}).clone();
  const at::Tensor rest =
      session->read({ids_of(ids[0].slice(0, 6)), ids_of(ids[1].slice(0, 6))}, DecodingSession::Logits::kAll);
  CHECK(session->length(0) == 14);
  for (std::int64_t row = 0; row < 2; ++row) {
    CAPTURE(row);
    const at::Tensor expected = expected_logits(*model, ids[row]);
    CHECK(relative_error(first[row], expected[row == 0 ? 4 : 1]) <= limit);
    CHECK(relative_error(second[row], expected[5]) <= limit);
    CHECK(relative_error(rest[row], expected.slice(0, 6)) <= limit);
  }
}

// The weights of all projections as the packed type holds them, so that the activations' rounding alone is
// left. A router of experts stays as it is, and the output projection beside int4 is int8.
void round_weights(Model& model, WeightType type) {
  const at::NoGradGuard no_grad;
  for (const auto& entry : model.named_modules()) {
    auto* linear = dynamic_cast<LinearImpl*>(entry.value().get());
    if (linear == nullptr || entry.key().ends_with("router")) continue;
    const bool output = linear->weight.is_same(model.parts().head.weight);
    const WeightType own = output && type == WeightType::kInt4 ? WeightType::kInt8 : type;
    const inference::PackedLinear packed(*linear, {.weights = own});
    std::ranges::copy(test::unpacked(packed.weight()), linear->weight.data_ptr<float>());
  }
}

}  // namespace

TEST_CASE("A packed decoder gives the modules' logits") {
  const PackOptions exact;
  check_decoder(test::random_gpt(test::small_config(), 1), exact, 1e-5);
  check_decoder(test::random_gpt(alibi_config(), 2), exact, 1e-5);
  check_decoder(test::random_model("llama", llama_config(), Head::kCausalLm, 3), exact, 1e-5);
  TransformerConfig sinusoidal = test::small_config();
  sinusoidal.position = PositionKind::kSinusoidal;
  sinusoidal.norm_placement = NormPlacement::kPost;
  sinusoidal.norm_bias = sinusoidal.qkv_bias = sinusoidal.attention_output_bias = false;
  check_decoder(test::random_gpt(sinusoidal, 4), exact, 1e-5);
}

TEST_CASE("A row may have room for as many tokens as a flag can ask for") {
  TransformerConfig config = llama_config();
  config.num_heads = config.num_kv_heads = 2;
  config.num_layers = 1;
  const auto model = test::random_model("llama", config, Head::kCausalLm, 3);
  const at::Tensor ids = test::random_ids(config, 1, DecodingModel::kFirstCapacity + 10, 3)[0];
  const at::Tensor expected = expected_logits(*model, ids);
  ModuleDecoder modules(*model);
  const auto packed = pack(*model, {});
  for (DecodingModel* decoder :
       {static_cast<DecodingModel*>(&modules), static_cast<DecodingModel*>(packed.get())}) {
    const auto session = decoder->begin(2, 2147483647);
    session->read({list(ids.slice(0, 0, -10)), {1}});
    const at::Tensor logits = session->read({list(ids.slice(0, -10)), {2}});
    CHECK(relative_error(logits[0], expected[-1]) <= 1e-5);
    CHECK(relative_error(logits[1], expected_logits(*model, at::tensor({1, 2}, at::kLong))[1]) <= 1e-5);
  }
}

TEST_CASE("A packed decoder of a younger form gives the modules' logits") {
  std::uint64_t seed = 10;
  for (const TransformerConfig& config : test::younger_forms(test::small_config())) {
    CAPTURE(seed);
    check_decoder(test::random_gpt(config, seed++), {}, 1e-5);
  }
}

TEST_CASE("Packed weights of fewer bits are off by the rounding of activations alone") {
  TransformerConfig config = llama_config();
  config.tie_word_embeddings = false;
  const char* family = GENERATE("llama", "mixtral");
  if (std::string(family) == "mixtral")
    config.num_experts = config.experts_per_token = 3;  // none is a choice
  for (const auto type : {WeightType::kBfloat16, WeightType::kInt8, WeightType::kInt4}) {
    CAPTURE(family, static_cast<int>(type));
    const auto model = test::random_model(family, config, Head::kCausalLm, 5);
    {
      const at::NoGradGuard no_grad;
      for (at::Tensor& parameter : model->parameters())
        parameter.mul_(0.5);  // so that attention is not a choice
    }
    const auto original = pack(*model, {.weights = type, .cache = WeightType::kBfloat16});
    round_weights(*model, type);
    const at::Tensor ids = test::random_ids(config, 1, 12, 3);
    const auto session = original->begin(1, 12);
    const at::Tensor logits = session->read({ids_of(ids[0])}, DecodingSession::Logits::kAll);
    CHECK(relative_error(logits[0], expected_logits(*model, ids[0])) <= 0.03);
  }
}

TEST_CASE("A cache of bytes is off by its rounding alone") {
  TransformerConfig config = llama_config();
  config.max_positions = 200;
  const auto model = test::random_model("llama", config, Head::kCausalLm, 5);
  {
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : model->parameters())
      parameter.mul_(0.5);  // so that attention is not a choice
  }
  const auto packed = pack(*model, {.cache = WeightType::kInt8});
  // 2 layers of 2 heads of 10 dimensions: bytes of keys and, up to 16, of values, and their scales.
  CHECK(packed->cache_bytes_per_token() == 2 * 2 * (10 + 4 + 16 + 4));
  CHECK(pack(*model, {})->cache_bytes_per_token() == 2 * 2 * (10 + 16) * 4);
  const at::Tensor ids = test::random_ids(config, 1, 150, 3);
  const auto session = packed->begin(1, 150);
  const at::Tensor logits = session->read({ids_of(ids[0])}, DecodingSession::Logits::kAll).clone();
  const at::Tensor expected = expected_logits(*model, ids[0]);
  const double error = relative_error(logits[0], expected);
  // Half a step is the 254th part of the largest element; two layers add what they are off by.
  CHECK(error <= 4.0 / 254);
  CHECK(error > 1e-5);  // it is in use
  // Rows that were copied and went back are as they would be alone.
  session->rewind(0, 70);
  session->select({0, 0, 0});
  const at::Tensor again = session->read({ids_of(ids[0].slice(0, 70, 71)), {1}, ids_of(ids[0].slice(0, 70))});
  CHECK(relative_error(again[2], logits[0][-1]) <= 1e-5);
  CHECK(relative_error(again[0], logits[0][70]) <= 1e-5);
}

TEST_CASE("A packed encoder-decoder gives the modules' logits") {
  auto [family, config] = GENERATE(from_range(test::small_encoder_decoders()));
  CAPTURE(family);
  for (const auto activation : {Activation::kRelu, Activation::kGeGluTanh}) {
    config.activation = activation;
    const auto model = test::random_model(family, config, Head::kSeq2SeqLm, 7);
    const auto packed = pack(*model, {});
    const at::Tensor sources = test::random_ids(config, 2, 9, 1), targets = test::random_ids(config, 2, 6, 2);
    const auto session = packed->begin({ids_of(sources[0]), ids_of(sources[1].slice(0, 0, 4))}, 6);
    session->read({ids_of(targets[0].slice(0, 0, 2)), ids_of(targets[1].slice(0, 0, 2))});
    const at::Tensor logits = session->read({ids_of(targets[0].slice(0, 2)), ids_of(targets[1].slice(0, 2))},
                                            DecodingSession::Logits::kAll);
    const at::NoGradGuard no_grad;
    for (std::int64_t row = 0; row < 2; ++row) {
      const at::Tensor source = sources[row].slice(0, 0, row == 0 ? 9 : 4);
      const at::Tensor expected =
          model->forward({.input_ids = source.unsqueeze(0), .decoder_input_ids = targets[row].unsqueeze(0)})
              .logits[0];
      CHECK(relative_error(logits[row], expected.slice(0, 2)) <= 1e-5);
    }
  }
}

TEST_CASE("Rows of a packed session are chosen, repeated and rewound") {
  const auto model = test::random_gpt(test::small_config(), 1);
  const auto packed = pack(*model, {});
  const at::Tensor ids = test::random_ids(model->config(), 3, 10, 3);
  const auto session = packed->begin(2, 10);
  session->read({ids_of(ids[0].slice(0, 0, 4)), ids_of(ids[1].slice(0, 0, 4))});
  session->select({1, 0, 1, 1});  // more rows than there were
  CHECK(session->rows() == 4);
  const at::Tensor parted =
      session->read({{ids_of(ids[2])[0]}, {ids_of(ids[0])[4]}, {ids_of(ids[2])[1]}, {ids_of(ids[1])[4]}});
  const auto with_last = [&](std::int64_t row, std::int64_t last) {
    return at::cat({ids[row].slice(0, 0, 4), at::tensor({last}, at::kLong)});
  };
  CHECK(relative_error(parted[0], expected_logits(*model, with_last(1, ids_of(ids[2])[0]))[4]) <= 1e-5);
  CHECK(relative_error(parted[1], expected_logits(*model, ids[0].slice(0, 0, 5))[4]) <= 1e-5);
  CHECK(relative_error(parted[2], expected_logits(*model, with_last(1, ids_of(ids[2])[1]))[4]) <= 1e-5);
  CHECK(relative_error(parted[3], expected_logits(*model, ids[1].slice(0, 0, 5))[4]) <= 1e-5);
  session->select({3});
  session->rewind(0, 2);
  CHECK(session->length(0) == 2);
  const at::Tensor again = session->read({ids_of(ids[1].slice(0, 2, 10))});
  CHECK(relative_error(again[0], expected_logits(*model, ids[1])[9]) <= 1e-5);
}

TEST_CASE("Rows that part, meet and part again are as each would be alone") {
  TransformerConfig config = llama_config();
  config.max_positions = 200;
  const auto model = test::random_model("llama", config, Head::kCausalLm, 5);
  const auto packed = pack(*model, {});
  const auto session = packed->begin(2, 120);
  std::mt19937 chance(11);
  const auto below = [&](std::size_t end) { return static_cast<std::int64_t>(chance() % end); };
  std::vector<TokenIds> rows{ids_of(test::random_ids(config, 1, 60, 1)),
                             ids_of(test::random_ids(config, 1, 62, 2))};
  session->read(rows);
  for (int step = 0; step < 30; ++step) {
    // A few of them, as beams and candidates do; now and then some go back, over the border of a panel too.
    std::vector<std::int64_t> chosen;
    std::vector<TokenIds> kept, next;
    for (std::int64_t i = 0, count = 1 + below(5); i < count; ++i) {
      chosen.push_back(below(rows.size()));
      kept.push_back(rows[static_cast<std::size_t>(chosen.back())]);
    }
    session->select(chosen);
    rows = kept;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (below(5) == 0) {
        rows[row].resize(rows[row].size() - static_cast<std::size_t>(below(8)));
        session->rewind(static_cast<std::int64_t>(row), static_cast<std::int64_t>(rows[row].size()));
      }
      next.push_back(TokenIds(static_cast<std::size_t>(1 + below(2)), below(70)));
      rows[row].insert(rows[row].end(), next.back().begin(), next.back().end());
    }
    const at::Tensor logits = session->read(next);
    for (std::size_t row = 0; row < rows.size() && step % 5 == 4; ++row) {
      CAPTURE(step, row);
      CHECK(relative_error(logits[static_cast<std::int64_t>(row)],
                           expected_logits(*model, at::tensor(rows[row], at::kLong))[-1]) <= 1e-5);
    }
  }
}

TEST_CASE("However many threads divide the heads of a group, they compute the same bits") {
  const int before = at::get_num_threads();
  for (const bool rotary : {true, false}) {
    for (const std::int64_t kv_heads : {1, 2}) {
      TransformerConfig config = rotary ? llama_config() : alibi_config();
      config.num_heads = 6;
      config.num_kv_heads = kv_heads;
      config.head_dim = 10;
      const auto model =
          rotary ? test::random_model("llama", config, Head::kCausalLm, 3) : test::random_gpt(config, 3);
      const auto packed = pack(*model, {});
      const at::Tensor ids = test::random_ids(config, 2, 12, 3);
      std::vector<at::Tensor> alone;
      for (const int threads : {1, 2, 3, 4, 5, 12}) {
        CAPTURE(rotary, kv_heads, threads);
        at::set_num_threads(threads);
        const auto session = packed->begin(2, 12);
        std::vector<at::Tensor> found{
            session->read({ids_of(ids[0].slice(0, 0, 5)), ids_of(ids[1].slice(0, 0, 1))}).clone(),
            session->read({ids_of(ids[0].slice(0, 5, 6)), ids_of(ids[1].slice(0, 1, 2))}).clone()};
        if (threads == 1) alone = found;
        CHECK(at::equal(found[0], alone[0]));
        CHECK(at::equal(found[1], alone[1]));
      }
    }
  }
  at::set_num_threads(before);
}

TEST_CASE("Rows with different adapters share a session and keep their bits") {
  constexpr std::int64_t kRank = 3;
  for (const bool gated : {false, true}) {
    const auto fresh = [&] {
      return gated ? test::random_model("llama", llama_config(), Head::kCausalLm, 3)
                   : test::random_gpt(test::small_config(), 1);
    };
    // The second adapter has terms of some weights alone.
    std::vector<std::map<std::string, LowRankTerm>> adapters(2);
    std::vector<std::shared_ptr<Model>> merged{fresh(), fresh(), fresh()};
    at::manual_seed(5);
    for (std::size_t i = 0; i < 2; ++i) {
      for (const auto& entry : merged[i + 1]->named_modules()) {
        auto* linear = dynamic_cast<LinearImpl*>(entry.value().get());
        if (linear == nullptr || !entry.key().starts_with("stack.blocks")) continue;
        if (i == 1 && !entry.key().ends_with("qkv") && !entry.key().ends_with("up")) continue;
        const LowRankTerm term{at::randn({kRank, linear->weight.size(1)}) * 0.3,
                               at::randn({linear->weight.size(0), kRank}) * 0.3, 0.7};
        adapters[i][entry.key() + ".weight"] = term;
        const at::NoGradGuard no_grad;
        linear->weight.add_(at::matmul(term.b, term.a), term.scale);
      }
    }
    const TransformerConfig& config = merged[0]->config();
    const at::Tensor ids = test::random_ids(config, 4, 9, 3);
    const std::vector<std::size_t> chosen{1, 0, 2, 1};
    for (const auto weights :
         {WeightType::kFloat32, WeightType::kBfloat16, WeightType::kInt8, WeightType::kInt4}) {
      CAPTURE(gated, static_cast<int>(weights));
      const auto packed = pack(*merged[0], {.weights = weights});
      const auto plain = pack(*merged[0], {.weights = weights});
      for (const auto& terms : adapters) packed->add_adapter(terms);
      const auto session = packed->begin(4, 9);
      std::vector<TokenIds> prompts, last;
      for (std::int64_t row = 0; row < 4; ++row) {
        session->adapt(row, chosen[static_cast<std::size_t>(row)]);
        prompts.push_back(ids_of(ids[row].slice(0, 0, 8 - row)));
        last.push_back(ids_of(ids[row].slice(0, 8 - row, 9 - row)));
      }
      const at::Tensor first = session->read(prompts).clone(), second = session->read(last).clone();
      for (std::size_t row = 0; row < 4; ++row) {
        const auto alone = (chosen[row] == 0 ? plain : packed)->begin(1, 9);
        alone->adapt(0, chosen[row]);
        const auto place = static_cast<std::int64_t>(row);
        CHECK(at::equal(alone->read({prompts[row]})[0], first[place]));
        CHECK(at::equal(alone->read({last[row]})[0], second[place]));
        if (weights == WeightType::kFloat32)
          CHECK(relative_error(
                    second[place],
                    expected_logits(*merged[chosen[row]], ids[place].slice(0, 0, 9 - place))[-1]) <= 1e-5);
      }
      // What was read with an adapter serves that adapter alone.
      session->select({1, 2, 3});
      session->add_row();
      session->adapt(3, 2);
      const TokenIds all = ids_of(ids[0]);
      CHECK(session->reuse(3, all) == 0);
      session->adapt(3, 1);
      CHECK(session->reuse(3, all) == 8);
      session->select({3});
      CHECK(at::equal(session->read({last[0]})[0], second[0]));
    }
  }
  const auto packed = pack(*test::random_gpt(test::small_config(), 1), {});
  CHECK_THAT(test::error_of([&] { packed->begin(1, 4)->adapt(0, 1); }), Catch::Contains("no adapter 1"));
  CHECK_THAT(test::error_of([&] {
               packed->add_adapter({{"lm_head.weight", {}}});
             }),
             Catch::Contains("lm_head.weight"));
}

TEST_CASE("A packed session refuses what does not fit") {
  const auto model = test::random_gpt(test::small_config(), 1);
  const auto packed = pack(*model, {});
  const auto session = packed->begin(1, 4);
  CHECK_THAT(test::error_of([&] { session->read({{1, 2, 3, 4, 5}}); }), Catch::Contains("room for 4 tokens"));
  CHECK_THAT(test::c10_error_of([&] { session->read({{13}}); }), Catch::Contains("the id 13"));
  CHECK_THAT(test::c10_error_of([&] { session->read({{1}, {2}}); }), Catch::Contains("1 rows"));
  CHECK_THAT(test::c10_error_of([&] { packed->begin({{1, 2}}, 4); }), Catch::Contains("no encoder"));
  TransformerConfig shaw = test::small_config();
  shaw.position = PositionKind::kShaw;
  CHECK_FALSE(can_pack(*test::random_gpt(shaw, 1)));
}

TEST_CASE("Threads that share a packed decoder get the logits of lone sessions") {
  const auto decoder = pack(*test::random_gpt(test::small_config(), 1), {});
  const auto [family, config] = test::small_encoder_decoders().front();
  const auto translator = pack(*test::random_model(family, config, Head::kSeq2SeqLm, 7), {});
  const at::Tensor ids = test::random_ids(test::small_config(), 4, 16, 3);
  CHECK(test::same_in_threads([&](std::int64_t row) {
    const TokenIds read = ids_of(ids[row]);
    const auto session = decoder->begin(1, 16);
    session->keep();
    const auto first = read.begin() + session->reuse(0, read);
    return session->read({TokenIds(first, read.end())});
  }));
  CHECK(test::same_in_threads([&](std::int64_t row) {
    const TokenIds read = ids_of(ids[row].slice(0, 0, 16 - row));
    return translator->begin({read}, 16)->read({read});
  }));
}

TEST_CASE("Compute options that no model takes are refused by name") {
  const auto fault = [](const ComputeOptions& compute) {
    const std::filesystem::path model = std::filesystem::path(ZOO_SOURCE_DIR) / "tests/golden/llama/plain";
    return test::error_of([&] { load_decoding_model(read_checkpoint_config(model), compute); });
  };
  CHECK(fault({.device = "gpu"}) == "'device': expected one of auto, cpu, cuda, cuda:N, got 'gpu'");
  CHECK(fault({.dtype = "bf16"}) == "'dtype': expected one of float32, bfloat16, float16, got 'bf16'");
  CHECK(fault({.weights = "int3"}) ==
        "'weights': expected one of auto, gguf, float32, bfloat16, int8, int4, modules, got 'int3'");
  CHECK(fault({.cache = "int4"}) == "'cache': expected one of auto, float32, bfloat16, int8, got 'int4'");
  CHECK(fault({.threads = 0}) == "'threads': expected at least 1, got 0");
  CHECK(fault({.seed = -5}) == "'seed': expected at least 0, got -5");
}
