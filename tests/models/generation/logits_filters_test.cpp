#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <ATen/ops/allclose.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include "data/base/error.h"
#include "models/generation/generate.h"
#include "tests/models/generation/chain.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using namespace zoo::test;
using Catch::Contains;
using Rows = std::vector<std::vector<float>>;

namespace {

constexpr float kGone = -std::numeric_limits<float>::infinity();

at::Tensor matrix(const Rows& rows) {
  std::vector<at::Tensor> tensors;
  for (const auto& row : rows) tensors.push_back(at::tensor(row));
  return at::stack(tensors);
}

// The logits and rows of tests/golden/make_generation.py, whose output is what the tests of filters expect.
at::Tensor logits() {
  return matrix({{1.5F, -0.25F, 3.0F, 1.5F, 0.5F, 1.5F, -2.0F, 2.25F},
                 {0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F}});
}
const TokenIds kFirst{2, 5, 1, 5, 1}, kSecond{3, 3, 0, 3, 3};
const RowHistories kRows{{&kFirst, 3}, {&kSecond, 3}};

void check(const LogitsFilters& filters, const Rows& expected) {
  const at::Tensor before = logits(), filtered = apply_filters(filters, before, kRows);
  INFO(filtered);
  CHECK(at::allclose(filtered, matrix(expected), 1e-6, 1e-6));
  CHECK(before.equal(logits()));  // which others may read still
}

void check_history(const HistoryOptions& options, const Rows& expected) {
  check(make_history_filters(options, {.eos_token_ids = {2, 7}, .max_new_tokens = 3, .vocab_size = 8}),
        expected);
}

}  // namespace

TEST_CASE("Min-p keeps what is likely beside the likeliest") {
  check(make_filters({.min_p = 0.3}), {{kGone, kGone, 3.0F, kGone, kGone, kGone, kGone, 2.25F},
                                       {0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F}});
  check(make_filters({.min_p = 1.0}), {{kGone, kGone, 3.0F, kGone, kGone, kGone, kGone, kGone},
                                       {kGone, kGone, kGone, kGone, kGone, kGone, kGone, 0.8F}});
}

TEST_CASE("Typical sampling keeps what is as surprising as is to be expected") {
  check(make_filters({.typical_p = 0.5}), {{1.5F, kGone, kGone, 1.5F, kGone, 1.5F, kGone, 2.25F},
                                           {kGone, kGone, kGone, 0.4F, 0.5F, 0.6F, 0.7F, kGone}});
  check(make_filters({.typical_p = 0.95}), {{1.5F, kGone, 3.0F, 1.5F, 0.5F, 1.5F, kGone, 2.25F},
                                            {0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F}});
}

TEST_CASE("Filters keep as many tokens as they are told to") {
  const Rows two{{kGone, kGone, 3.0F, kGone, kGone, kGone, kGone, 2.25F},
                 {kGone, kGone, kGone, kGone, kGone, kGone, 0.7F, 0.8F}};
  check(make_filters({.top_k = 1}, 2), two);
  check(make_filters({.top_p = 0.01}, 2), two);
  check(make_filters({.min_p = 1.0}, 2), two);
  check(make_filters({.typical_p = 0.01}, 4), {{1.5F, kGone, kGone, 1.5F, kGone, 1.5F, kGone, 2.25F},
                                               {kGone, kGone, kGone, 0.4F, 0.5F, 0.6F, 0.7F, kGone}});
}

TEST_CASE("A repetition penalty weakens what a row holds, given tokens included") {
  check_history({.repetition_penalty = 1.5}, {{1.5F, -0.375F, 2.0F, 1.5F, 0.5F, 1.0F, -2.0F, 2.25F},
                                              {0.066667F, 0.2F, 0.3F, 0.266667F, 0.5F, 0.6F, 0.7F, 0.8F}});
}

TEST_CASE("Presence and frequency penalties count new tokens alone") {
  // New are 5 and 1; and 3, twice. By hand.
  check_history({.presence_penalty = 0.5, .frequency_penalty = 0.25},
                {{1.5F, -1.0F, 3.0F, 1.5F, 0.5F, 0.75F, -2.0F, 2.25F},
                 {0.1F, 0.2F, 0.3F, -0.6F, 0.5F, 0.6F, 0.7F, 0.8F}});
}

TEST_CASE("An n-gram that was there is not completed again") {
  check_history({.no_repeat_ngram_size = 2}, {{1.5F, -0.25F, 3.0F, 1.5F, 0.5F, kGone, -2.0F, 2.25F},
                                              {kGone, 0.2F, 0.3F, kGone, 0.5F, 0.6F, 0.7F, 0.8F}});
  check_history({.no_repeat_ngram_size = 1}, {{1.5F, kGone, kGone, 1.5F, 0.5F, kGone, -2.0F, 2.25F},
                                              {kGone, 0.2F, 0.3F, kGone, 0.5F, 0.6F, 0.7F, 0.8F}});
}

TEST_CASE("Bad words are not completed, and an end token is none") {
  check_history({.bad_words = {{4}, {5, 1, 6}, {3, 3, 3, 0}, {7}, {1, 2}}},
                {{1.5F, -0.25F, kGone, 1.5F, kGone, 1.5F, kGone, 2.25F},
                 {0.1F, 0.2F, 0.3F, 0.4F, kGone, 0.6F, 0.7F, 0.8F}});
}

TEST_CASE("No end token comes before the smallest length") {
  const Rows ended{{1.5F, -0.25F, kGone, 1.5F, 0.5F, 1.5F, -2.0F, kGone},
                   {0.1F, 0.2F, kGone, 0.4F, 0.5F, 0.6F, 0.7F, kGone}};
  check_history({.min_length = 6}, ended);
  check_history({.min_new_tokens = 3}, ended);
  const at::Tensor same = logits();
  CHECK(apply_filters(make_history_filters({.min_length = 5, .min_new_tokens = 2}, {.eos_token_ids = {2, 7}}),
                      same, kRows)
            .equal(same));
}

TEST_CASE("The last token can be forced") {
  const std::vector<float> forced{kGone, kGone, 0.0F, kGone, kGone, kGone, kGone, 0.0F};
  check_history({.forced_eos_token_ids = {2, 7}}, {forced, forced});
}

TEST_CASE("What may not begin an answer may not follow a forced first token either") {
  // generate() of transformers counts from after the token that it forces: after a single given one alone.
  const TokenIds tokens{0, 4};
  const LogitsFilters filters = make_history_filters({.forced_bos_token_id = 4, .suppressed_first = {6}},
                                                     {.max_new_tokens = 3, .vocab_size = 8});
  const at::Tensor filtered = apply_filters(filters, logits(), {{&tokens, 1}, {&tokens, 2}});
  CHECK(filtered.select(1, 6).isneginf().all().item<bool>());
  CHECK(filtered.isneginf().sum().item<int>() == 2);
}

TEST_CASE("Filters follow one another as Hugging Face's do") {
  check(make_history_filters({.repetition_penalty = 0.5, .no_repeat_ngram_size = 3, .min_length = 9},
                             {.eos_token_ids = {2}, .max_new_tokens = 9, .vocab_size = 8}),
        {{1.5F, -0.125F, kGone, 1.5F, 0.5F, kGone, -2.0F, 2.25F},
         {kGone, 0.2F, kGone, 0.8F, 0.5F, 0.6F, 0.7F, 0.8F}});
}

TEST_CASE("Each way of drawing has the distribution that its filter says") {
  Chain model(kLanguage);
  // After token 2, by hand from 0.05, 0.55, 0.3, 0.1.
  const auto [sampling, chances] = GENERATE(table<SamplingOptions, std::map<TokenIds, double>>(
      {{{.temperature = 1.0}, {{{0}, 0.05}, {{1}, 0.55}, {{2}, 0.3}, {{3}, 0.1}}},
       {{.temperature = 0.5},  // squares
        {{{0}, 0.0025 / 0.405}, {{1}, 0.3025 / 0.405}, {{2}, 0.09 / 0.405}, {{3}, 0.01 / 0.405}}},
       {{.temperature = 1.0, .top_k = 2}, {{{1}, 0.55 / 0.85}, {{2}, 0.3 / 0.85}}},
       {{.temperature = 1.0, .top_p = 0.9}, {{{1}, 0.55 / 0.95}, {{2}, 0.3 / 0.95}, {{3}, 0.1 / 0.95}}},
       {{.temperature = 1.0, .min_p = 0.5}, {{{1}, 0.55 / 0.85}, {{2}, 0.3 / 0.85}}},
       // The entropy is 1.07 nats: 2 is 0.13 from it, 1 0.47, 3 1.24.
       {{.temperature = 1.0, .typical_p = 0.5}, {{{1}, 0.55 / 0.85}, {{2}, 0.3 / 0.85}}}}));
  constexpr int kDraws = 4000;
  const auto rows =
      generate(model, std::vector<TokenIds>(kDraws, {2}), {.max_new_tokens = 1, .sampling = sampling}).ids;
  CHECK(chi_square(drawn(rows), chances, kDraws) < 16.27);  // at most 3 degrees of freedom: one in a thousand
}

TEST_CASE("With drafts the distribution is that without") {
  Chain model(kLanguage), draft(kDraft);
  std::map<TokenIds, double> chances;
  for (TokenId a = 0; a < 4; ++a) {
    for (TokenId b = 0; b < 4; ++b) {
      for (TokenId c = 0; c < 4; ++c) {
        const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b),
                   k = static_cast<std::size_t>(c);
        chances[{a, b, c}] = kLanguage[2][i] * kLanguage[i][j] * kLanguage[j][k];
      }
    }
  }
  constexpr int kDraws = 6000;
  GenerationOptions options{.max_new_tokens = 3, .sampling = {.temperature = 1.0, .seed = 11}};
  const bool looks_up = GENERATE(true, false);
  options.draft = looks_up ? nullptr : &draft;
  options.draft_tokens = 2;
  options.prompt_lookup_num_tokens = looks_up ? 2 : 0;
  // The text drafts 1 after 2, and then 3.
  const GenerationResult result = generate(model, std::vector<TokenIds>(kDraws, {2, 1, 3, 2}), options);
  CHECK(chi_square(drawn(result.ids), chances, kDraws) < 103.4);  // 63 degrees of freedom: one in a thousand
  if (looks_up) {
    // Each is kept as often as the model chooses it: 1 after 2 in 0.55 of all rows.
    CHECK(result.accepted > 0);
    return;
  }
  // The first draft is kept with the probability that is the sum of min(p, q): 0.05 + 0.2 + 0.1 + 0.1.
  CHECK(result.accepted > 0.3 * static_cast<double>(result.drafted));
  CHECK(result.accepted < 0.7 * static_cast<double>(result.drafted));
}

TEST_CASE("What leaves no token is said") {
  Chain model(kLanguage);
  GenerationOptions options{.max_new_tokens = 3, .history = {.bad_words = {{0}, {1}, {2}, {3}}}};
  CHECK_THAT(test::error_of([&] { generate(model, {{1}}, options); }), Contains("the filters"));
  options.sampling.temperature = 0;
  CHECK_THAT(test::error_of([&] { generate(model, {{1}}, options); }), Contains("the filters"));
  options.beams.num_beams = 2;
  CHECK_THAT(test::error_of([&] { generate(model, {{1}}, options); }), Contains("the filters"));
}

TEST_CASE("A batch of sixty-four rows of many lengths is continued as each row alone") {
  const auto model = test::random_gpt(test::small_config(), 7);
  std::vector<TokenIds> prompts;
  for (std::int64_t row = 0; row < 64; ++row) {
    prompts.emplace_back();
    for (std::int64_t i = 0; i <= row % 13; ++i) prompts.back().push_back((row * 7 + i * 5) % 13);
  }
  GenerationOptions options{.max_new_tokens = 10, .sampling = {.temperature = 0}, .eos_token_ids = {3, 8}};
  const auto together = generate(*model, prompts, options).ids;
  std::set<std::size_t> lengths;
  for (std::size_t row = 0; row < 64; ++row) {
    INFO("row " << row);
    CHECK(together[row] == generate(*model, {prompts[row]}, options).ids[0]);
    lengths.insert(together[row].size());
  }
  CHECK(lengths.size() > 2);  // rows ended at different steps
}
