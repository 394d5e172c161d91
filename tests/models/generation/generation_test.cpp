#include <array>
#include <cmath>
#include <fstream>
#include <limits>

#include <ATen/Context.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "models/generation/generate.h"
#include "models/generation/generation_config.h"
#include "models/generation/module_decoder.h"
#include "models/registry.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace zoo {
namespace {

using Catch::Contains;
using Ids = TokenIds;
using Rows = std::vector<std::vector<float>>;

constexpr float kGone = -std::numeric_limits<float>::infinity();

at::Tensor matrix(const Rows& rows) {
  std::vector<at::Tensor> tensors;
  for (const auto& row : rows) tensors.push_back(at::tensor(row));
  return at::stack(tensors);
}

// The logits of tests/golden/make_generation.py, whose output is what the tests of filters expect.
at::Tensor logits() {
  return matrix({{1.5F, -0.25F, 3.0F, 1.5F, 0.5F, 1.5F, -2.0F, 2.25F},
                 {0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F}});
}

void check_filter(const SamplingOptions& options, const Rows& expected) {
  const at::Tensor filtered = apply_filters(make_filters(options), logits());
  INFO(filtered);
  CHECK(at::allclose(filtered, matrix(expected), 1e-6, 1e-6));
}

TransformerConfig tiny_config() {
  TransformerConfig config;
  config.vocab_size = 13;
  config.hidden_size = 16;
  config.num_layers = config.num_heads = 2;
  config.max_positions = 16;
  config.initializer_range = 0.5;  // so that every token counts
  return config;
}

std::shared_ptr<Model> tiny_model(const TransformerConfig& config = tiny_config()) {
  auto model = build_model(find_family("gpt2"), config, Head::kCausalLm, 5);
  model->eval();
  return model;
}

GenerationOptions greedy(std::int64_t max_new_tokens) {
  return {.max_new_tokens = max_new_tokens, .sampling = {.temperature = 0}};
}

GenerationOptions sampled(std::int64_t max_new_tokens, std::uint64_t seed) {
  return {.max_new_tokens = max_new_tokens, .sampling = {.temperature = 1.0, .seed = seed}};
}

// Without a cache: every token from the whole context, which slides as generate() says.
Ids uncached(Model& model, Ids context, std::int64_t new_tokens, std::int64_t limit = 16) {
  Ids ids;
  for (std::int64_t i = 0; i < new_tokens; ++i) {
    if (static_cast<std::int64_t>(context.size()) > limit)
      context.erase(context.begin(), context.end() - limit / 2);
    const at::Tensor output =
        model.forward({.input_ids = at::tensor(context, at::kLong).unsqueeze(0)}).logits;
    ids.push_back(output[0][-1].argmax().item<std::int64_t>());
    context.push_back(ids.back());
  }
  return ids;
}

std::string thrown(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST_CASE("The temperature divides the logits") {
  check_filter({.temperature = 0.7},
               {{2.142857F, -0.357143F, 4.285714F, 2.142857F, 0.714286F, 2.142857F, -2.857143F, 3.214286F},
                {0.142857F, 0.285714F, 0.428571F, 0.571429F, 0.714286F, 0.857143F, 1.0F, 1.142857F}});
}

TEST_CASE("Top-k keeps tokens that tie with the k-th") {
  check_filter({.top_k = 3}, {{1.5F, kGone, 3.0F, 1.5F, kGone, 1.5F, kGone, 2.25F},
                              {kGone, kGone, kGone, kGone, kGone, 0.6F, 0.7F, 0.8F}});
}

TEST_CASE("A top-k beyond the vocabulary keeps everything") {
  CHECK(apply_filters(make_filters({.top_k = 100}), logits()).equal(logits()));
}

TEST_CASE("Top-p removes the tail whose probability is at most 1 - p") {
  check_filter({.top_p = 0.6}, {{kGone, kGone, 3.0F, kGone, kGone, kGone, kGone, 2.25F},
                                {kGone, kGone, kGone, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F}});
}

TEST_CASE("Top-p of zero keeps the likeliest token") {
  check_filter({.top_p = 0.0}, {{kGone, kGone, 3.0F, kGone, kGone, kGone, kGone, kGone},
                                {kGone, kGone, kGone, kGone, kGone, kGone, kGone, 0.8F}});
}

TEST_CASE("Temperature, top-k and top-p follow one another") {
  check_filter({.temperature = 0.7, .top_k = 3, .top_p = 0.7},
               {{kGone, kGone, 4.285714F, kGone, kGone, kGone, kGone, 3.214286F},
                {kGone, kGone, kGone, kGone, kGone, kGone, 1.0F, 1.142857F}});
}

TEST_CASE("Filters that change nothing are left out") {
  CHECK(make_filters({}).empty());
  CHECK(make_filters({.temperature = 0.5, .top_k = 1, .top_p = 0.5}).size() == 3);
}

TEST_CASE("Filter options out of range are named") {
  CHECK_THAT(thrown([] { make_filters({.temperature = -1}); }), Contains("temperature") && Contains("-1"));
  CHECK_THAT(thrown([] { make_filters({.top_k = -2}); }), Contains("top_k") && Contains("-2"));
  CHECK_THAT(thrown([] { make_filters({.top_p = 1.5}); }), Contains("top_p") && Contains("1.5"));
  CHECK_THAT(thrown([] { make_filters({.top_p = std::nan("")}); }), Contains("top_p"));
}

TEST_CASE("Greedy sampling takes the lowest of equally large logits") {
  at::Tensor wide = at::zeros({2, 5000});
  for (const std::int64_t id : {4321, 77, 2500}) wide[0][id] = 3.0;
  TokenSampler sampler({.temperature = 0}, 2);
  CHECK(sampler.sample(wide, {0, 1}) == Ids{77, 0});
}

TEST_CASE("Logits that are no numbers are refused") {
  const at::Tensor nan = at::full({1, 4}, std::nan(""));
  TokenSampler greedy_sampler({.temperature = 0}, 1), sampler({.temperature = 1}, 1);
  CHECK_THAT(thrown([&] { greedy_sampler.sample(nan, {0}); }), Contains("not finite"));
  CHECK_THAT(thrown([&] { sampler.sample(nan, {0}); }), Contains("not finite"));
}

TEST_CASE("Sampling draws each token as often as its probability says") {
  // exp: 1, 2, 3, 4 of 10; the fifth is never drawn.
  const at::Tensor row =
      at::tensor({0.0F, std::log(2.0F), std::log(3.0F), std::log(4.0F), kGone}).unsqueeze(0);
  TokenSampler sampler({.temperature = 1.0, .seed = 7}, 1);
  std::array<int, 5> counts{};
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) ++counts.at(static_cast<std::size_t>(sampler.sample(row, {0})[0]));
  double chi_square = 0;
  for (std::size_t id = 0; id < 4; ++id) {
    const double expected = kDraws * (static_cast<double>(id) + 1) / 10;
    chi_square += (counts[id] - expected) * (counts[id] - expected) / expected;
  }
  CHECK(counts[4] == 0);
  CHECK(chi_square < 16.27);  // 3 degrees of freedom: one in a thousand lies above
}

TEST_CASE("The sampler depends on its seed and on nothing else") {
  const at::Tensor flat = at::zeros({2, 1000});
  const auto draw = [&](std::uint64_t seed, std::uint64_t global_seed) {
    at::manual_seed(global_seed);
    TokenSampler sampler({.temperature = 1.0, .seed = seed}, 2);
    Ids ids;
    for (int i = 0; i < 5; ++i) {
      for (const std::int64_t id : sampler.sample(flat, {0, 1})) ids.push_back(id);
    }
    return ids;
  };
  CHECK(draw(3, 1) == draw(3, 2));
  CHECK(draw(3, 1) != draw(4, 1));
  CHECK(draw(3, 1) != draw(3 + (1ULL << 40), 1));
  const Ids ids = draw(3, 1);
  CHECK(ids[0] != ids[1]);  // rows draw for themselves
}

TEST_CASE("Decoding with the cache gives the ids of decoding without") {
  const auto model = tiny_model();
  const Ids prompt{1, 2, 3};
  CHECK(generate(*model, {prompt}, greedy(13)).ids[0] == uncached(*model, prompt, 13));
}

TEST_CASE("A context that is full slides to its last half") {
  const auto model = tiny_model();
  const Ids prompt{1, 2, 3};
  CHECK(generate(*model, {prompt}, greedy(50)).ids[0] == uncached(*model, prompt, 50));
}

TEST_CASE("A context that the options limit slides to half of it") {
  TransformerConfig config = tiny_config();
  config.position = GENERATE(PositionKind::kLearned, PositionKind::kRotary);
  config.initializer_range = 1;  // so that what is seen decides
  const auto model = config.position == PositionKind::kRotary
                         ? build_model(find_family("gptj"), config, Head::kCausalLm, 5)
                         : tiny_model(config);
  model->eval();
  const Ids prompt{1, 2, 3};
  GenerationOptions options = greedy(30);
  options.context = 7;
  const Ids expected = uncached(*model, prompt, 30, 7);
  CHECK(generate(*model, {prompt}, options).ids[0] == expected);
  CHECK(generate(*model, {prompt}, greedy(30)).ids[0] != expected);
  ModuleDecoder draft(*model);
  options.draft = &draft;
  CHECK(generate(*model, {prompt}, options).ids[0] == expected);
  CHECK_THAT(thrown([&] { generate(*model, {Ids(8, 1)}, options); }),
             Contains("8 tokens") && Contains("7 tokens"));
}

namespace {

// Four tokens, each the one after the last.
class Counting : public TokenConstraint {
 public:
  std::int64_t begin(std::int64_t) const override { return 0; }
  at::Tensor mask(std::int64_t state, std::int64_t) const override {
    at::Tensor mask = at::full({13}, -std::numeric_limits<float>::infinity(), at::kFloat);
    if (state < 4) mask[state + 3].zero_();
    return mask;
  }
  std::int64_t next(std::int64_t state, TokenId) const override { return state + 1; }
  bool complete(std::int64_t state) const override { return state == 4; }
};

}  // namespace

TEST_CASE("Drafts end where a constraint is complete") {
  const auto model = tiny_model();
  ModuleDecoder draft(*model);
  GenerationOptions options = greedy(9);
  options.constraint = std::make_shared<Counting>();
  const bool looks_up = GENERATE(false, true);
  if (looks_up) options.prompt_lookup_num_tokens = 4;
  else options.draft = &draft;
  options.draft_tokens = 4;
  CHECK(generate(*model, {{3, 4, 5, 6, 7, 3}}, options).ids[0] == Ids{3, 4, 5, 6});
}

TEST_CASE("A constraint leaves forced tokens out of the text") {
  const auto model = tiny_model();
  ModuleDecoder draft(*model);
  GenerationOptions options = greedy(6);
  options.constraint = std::make_shared<Counting>();
  options.history.forced_bos_token_id = 9;
  options.history.forced_eos_token_ids = {1};
  const int way = GENERATE(0, 1, 2);
  if (way == 1) options.beams.num_beams = 2;
  if (way == 2) options.draft = &draft;
  CHECK(generate(*model, {{3}}, options).ids[0] == Ids{9, 3, 4, 5, 6});
}

TEST_CASE("A prompt as long as the context is continued") {
  const auto model = tiny_model();
  const Ids prompt{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 1, 2, 3};
  CHECK(generate(*model, {prompt}, greedy(20)).ids[0] == uncached(*model, prompt, 20));
}

TEST_CASE("A context of one token can slide") {
  TransformerConfig config = tiny_config();
  config.max_positions = 1;
  const auto model = tiny_model(config);
  const Ids ids = generate(*model, {{1}}, greedy(3)).ids[0];
  const at::Tensor again =
      model->forward({.input_ids = at::tensor(Ids{ids[1]}, at::kLong).unsqueeze(0)}).logits;
  CHECK(ids[2] == again[0][-1].argmax().item<std::int64_t>());
}

TEST_CASE("A row in a padded batch is continued as it is alone") {
  const auto position = GENERATE(PositionKind::kLearned, PositionKind::kSinusoidal, PositionKind::kRotary);
  TransformerConfig config = tiny_config();
  config.position = position;
  const auto model = tiny_model(config);
  const std::vector<Ids> prompts{{1}, {2, 3, 4, 5, 6, 7, 8, 9}, {10, 11, 12}};
  const auto together = generate(*model, prompts, greedy(40)).ids;
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    INFO("row " << row);
    CHECK(together[row] == generate(*model, {prompts[row]}, greedy(40)).ids[0]);
  }
}

TEST_CASE("A row that samples is the same beside others") {
  const auto model = tiny_model();
  CHECK(generate(*model, {{1, 2}, {3}}, sampled(10, 9)).ids[0] ==
        generate(*model, {{1, 2}}, sampled(10, 9)).ids[0]);
}

TEST_CASE("The same seed gives the same text, another seed another") {
  const auto model = tiny_model();
  at::manual_seed(1);
  const auto first = generate(*model, {{1, 2}}, sampled(12, 9)).ids;
  at::manual_seed(2);
  CHECK(generate(*model, {{1, 2}}, sampled(12, 9)).ids == first);
  CHECK(generate(*model, {{1, 2}}, sampled(12, 10)).ids != first);
}

TEST_CASE("A row ends with the first end token, the others go on") {
  const auto model = tiny_model();
  const std::vector<Ids> prompts{{1}, {2, 3, 4}};
  const auto whole = generate(*model, prompts, greedy(30)).ids;
  // An id that the first row gives early and the second not before: it ends the first alone.
  GenerationOptions options = greedy(30);
  options.eos_token_ids = {12, whole[0][3]};
  const auto ended = generate(*model, prompts, options).ids;
  for (std::size_t row = 0; row < 2; ++row) {
    const auto is_end = [&](std::int64_t id) { return id == 12 || id == whole[0][3]; };
    const auto first_end = std::find_if(whole[row].begin(), whole[row].end(), is_end);
    const auto stop = first_end == whole[row].end() ? first_end : first_end + 1;
    CHECK(ended[row] == Ids(whole[row].begin(), stop));
  }
  CHECK(ended[0].size() != ended[1].size());
  CHECK(ended[0].back() == whole[0][3]);
}

TEST_CASE("A generation stops when all rows have ended") {
  const auto model = tiny_model();
  GenerationOptions options = greedy(1000000);
  for (std::int64_t id = 0; id < 13; ++id) options.eos_token_ids.push_back(id);
  for (const Ids& row : generate(*model, {{1}, {2}}, options).ids) CHECK(row.size() == 1);
}

TEST_CASE("The callback sees every token at once and can stop the generation") {
  const auto model = tiny_model();
  std::vector<Ids> seen(2);
  const auto result = generate(*model, {{1}, {2, 3}}, greedy(9), [&](const NewToken& token) {
    seen.at(token.row).push_back(token.id);
    return seen[1].size() < 4;
  });
  CHECK(seen == result.ids);
  CHECK(result.ids[0].size() == 4);
  CHECK(result.ids[1].size() == 4);
  CHECK(result.token_count() == 8);
}

TEST_CASE("Generating leaves a model in training as it was, and draws without dropout") {
  TransformerConfig config = tiny_config();
  config.dropout = config.embedding_dropout = 0.5;
  const auto model = tiny_model(config);
  const auto calm = generate(*model, {{1, 2}}, greedy(10)).ids;
  model->train();
  CHECK(generate(*model, {{1, 2}}, greedy(10)).ids == calm);
  CHECK(model->is_training());
}

TEST_CASE("Prompts that cannot be continued are refused with the numbers") {
  const auto model = tiny_model();
  const auto refusal = [&](const Ids& prompt) {
    return thrown([&] { generate(*model, {{1}, prompt}, greedy(1)); });
  };
  CHECK_THAT(refusal({}), Contains("empty"));
  CHECK_THAT(refusal({3, 13}), Contains("13 is outside") && Contains("vocabulary of 13"));
  CHECK_THAT(refusal({-1}), Contains("-1"));
  CHECK_THAT(refusal(Ids(17, 1)), Contains("17 tokens") && Contains("16 tokens"));
  CHECK_THAT(thrown([&] { generate(*model, {{1}}, greedy(0)); }), Contains("max_new_tokens"));
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  CHECK_THAT(thrown([&] { generate(*model, {{1}}, greedy(kHuge)); }),
             Contains("max_new_tokens must be from 1 to 2147483647, got 9223372036854775807"));
  GenerationOptions options = greedy(1);
  options.beams.num_beams = 999999999;
  CHECK_THAT(thrown([&] { generate(*model, {{1}}, options); }),
             Contains("num_beams must be from 1 to 1024, got 999999999"));
}

void write_text(const std::filesystem::path& path, const char* text) { std::ofstream(path) << text; }

// With a config.json that has the end token 7 and the start token 1.
GenerationDefaults read_defaults(const std::filesystem::path& folder) {
  const nlohmann::json config{{"eos_token_id", 7}, {"bos_token_id", 1}};
  return defaults_of(read_generation_config(folder, std::make_shared<nlohmann::json>(config)));
}

TEST_CASE("End tokens come from generation_config.json, else from config.json") {
  const test::TemporaryDirectory folder;
  CHECK(read_defaults(folder.path()).eos_token_ids == Ids{7});
  CHECK(read_defaults(folder.path()).bos_token_id == 1);
  write_text(folder / "generation_config.json", R"({"eos_token_id": [3, 4], "pad_token_id": 0})");
  const GenerationDefaults defaults = read_defaults(folder.path());
  CHECK(defaults.eos_token_ids == Ids{3, 4});
  CHECK(defaults.pad_token_id == 0);
  CHECK_FALSE(defaults.bos_token_id);
  for (const char* none : {R"({"eos_token_id": null})", R"({"eos_token_id": -1, "pad_token_id": -1})"}) {
    write_text(folder / "generation_config.json", none);
    CHECK(read_defaults(folder.path()).eos_token_ids.empty());
    CHECK_FALSE(read_defaults(folder.path()).pad_token_id);
  }
}

TEST_CASE("An end token that is no id is refused with file and key") {
  const char* text =
      GENERATE(R"({"eos_token_id": "x"})", R"({"eos_token_id": [1, 2.5]})", R"({"eos_token_id": -2})",
               R"({"eos_token_id": 18446744073709551615})", R"({"eos_token_id": true})");
  const test::TemporaryDirectory folder;
  write_text(folder / "generation_config.json", text);
  CHECK_THAT(thrown([&] { read_defaults(folder.path()); }),
             Contains("generation_config.json") && Contains("eos_token_id"));
}

}  // namespace
}  // namespace zoo
