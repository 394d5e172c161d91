#include <algorithm>
#include <cmath>

#include "models/generation/generate.h"
#include "tests/models/generation/chain.h"

using namespace zoo;
using namespace zoo::test;

namespace {

// A text of a search that samples, with its score.
struct Text {
  TokenIds ids;
  double score;
};

// Calls visit(texts, chance) for every way of drawing `count` of `texts` one after another, none twice, each
// in proportion to the exponential of its score.
template <class Visit>
void each_draw(const std::vector<Text>& texts, std::size_t count, const Visit& visit,
               std::vector<Text> taken = {}, double chance = 1) {
  if (taken.size() == count) return visit(taken, chance);
  double sum = 0;
  for (const Text& text : texts) sum += std::exp(text.score);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::vector<Text> rest = texts, with = taken;
    with.push_back(texts[i]);
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    each_draw(rest, count, visit, with, chance * std::exp(texts[i].score) / sum);
  }
}

// `text` with each token that may follow it.
std::vector<Text> continued(const Text& text, const std::vector<double>& chances, double temperature) {
  std::vector<Text> texts;
  for (std::size_t id = 0; id < chances.size(); ++id) {
    texts.push_back({text.ids, text.score + std::log(chances[id]) / temperature});
    texts.back().ids.push_back(static_cast<TokenId>(id));
  }
  return texts;
}

}  // namespace

TEST_CASE("Beams that are as many as the texts find the likeliest of all texts") {
  Chain model(kLanguage);
  std::map<double, TokenIds> texts;  // by their log-probability
  for (TokenId text = 0; text < 64; ++text) {
    const TokenIds ids{text / 16, text / 4 % 4, text % 4};
    double sum = 0;
    std::size_t last = 1;
    for (const std::int64_t id : ids) {
      sum += std::log(kLanguage[last][static_cast<std::size_t>(id)]);
      last = static_cast<std::size_t>(id);
    }
    texts[sum] = ids;
  }
  GenerationOptions options{.max_new_tokens = 3, .log_probabilities = true};
  options.beams = {.num_beams = 16, .length_penalty = 2.0, .num_return_sequences = 3};
  const GenerationResult result = generate(model, {{1}}, options);
  auto best = texts.rbegin();
  for (std::size_t row = 0; row < 3; ++row, ++best) {
    CHECK(result.ids[row] == best->second);
    CHECK(result.scores[row] == Approx(best->first / 9).epsilon(1e-5));
    double sum = 0;
    for (const double one : result.log_probabilities[row]) sum += one;
    CHECK(sum == Approx(best->first).epsilon(1e-5));
  }
}

TEST_CASE("Early stopping takes the first that end, and else a longer text can win") {
  // 3 ends. After 0 an end is likely enough for one of two beams; going on over 1 is better in the end.
  Chain model({{0.02, 0.5, 0.03, 0.45},
               {0.01, 0.97, 0.01, 0.01},
               {0.25, 0.25, 0.25, 0.25},
               {0.25, 0.25, 0.25, 0.25}});
  GenerationOptions options{.max_new_tokens = 6, .eos_token_ids = {3}};
  options.beams = {.num_beams = 2, .early_stopping = EarlyStopping::kNever};
  CHECK(generate(model, {{0}}, options).ids[0] == TokenIds(6, 1));
  options.beams.length_penalty = -1;  // the short one is preferred
  CHECK(generate(model, {{0}}, options).ids[0] == TokenIds{3});
}

TEST_CASE("Beams that sample draw their candidates and keep the best of them") {
  // No two texts are equally likely.
  const Chances language{{0.11, 0.19, 0.06, 0.31, 0.33},
                         {0.41, 0.13, 0.17, 0.08, 0.21},
                         {0.05, 0.42, 0.29, 0.15, 0.09},
                         {0.23, 0.04, 0.12, 0.51, 0.1},
                         {0.2, 0.28, 0.07, 0.14, 0.31}};
  Chain model(language);
  constexpr double kTemperature = 1.7;
  const auto better = [](const Text& a, const Text& b) { return a.score > b.score; };
  std::map<TokenIds, double> chances;
  // Four of five candidates are drawn after the start token 2. The best two of them go on; of their ten
  // continuations, the first two drawn end the text.
  each_draw(continued({{}, 0}, language[2], kTemperature), 4, [&](std::vector<Text> beams, double first) {
    std::sort(beams.begin(), beams.end(), better);
    std::vector<Text> texts =
        continued(beams[0], language[static_cast<std::size_t>(beams[0].ids[0])], kTemperature);
    for (const Text& text :
         continued(beams[1], language[static_cast<std::size_t>(beams[1].ids[0])], kTemperature))
      texts.push_back(text);
    each_draw(texts, 2, [&](const std::vector<Text>& ends, double second) {
      chances[std::min(ends[0], ends[1], better).ids] += first * second;
    });
  });
  constexpr int kDraws = 6000;
  GenerationOptions options{.max_new_tokens = 2, .sampling = {.temperature = kTemperature, .seed = 5}};
  options.beams = {.num_beams = 2, .sample = true};
  const auto rows = generate(model, std::vector<TokenIds>(kDraws, {2}), options).ids;
  CHECK(chi_square(drawn(rows), chances, kDraws) < 34.5);  // 13 degrees of freedom: one in a thousand
}
