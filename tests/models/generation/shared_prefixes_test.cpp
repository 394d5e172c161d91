#include <map>

#include "models/generation/decoding_batch.h"
#include "models/generation/generate.h"
#include "models/generation/module_decoder.h"
#include "models/inference/packed_decoder.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;

namespace {

// `count` tokens that begin alike for the same `seed`.
TokenIds tokens(std::int64_t seed, std::int64_t count) {
  TokenIds ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back((seed * 5 + i * i * 3 + i) % 13);
  return ids;
}

TokenIds joined(TokenIds beginning, const TokenIds& rest) {
  beginning.insert(beginning.end(), rest.begin(), rest.end());
  return beginning;
}

// The length of each group's beginning, by the rows that share it.
std::map<std::vector<std::size_t>, std::size_t> groups_of(const std::vector<TokenIds>& rows) {
  std::map<std::vector<std::size_t>, std::size_t> groups;
  for (auto [members, length] : shared_prefixes(rows)) {
    std::sort(members.begin(), members.end());
    groups[members] = length;
  }
  return groups;
}

using Groups = decltype(groups_of({}));

// Counts what the sessions of another model are given.
struct Counts {
  std::size_t tokens = 0, reads = 0;
};

class CountingSession : public DecodingSession {
 public:
  CountingSession(std::unique_ptr<DecodingSession> session, Counts& counts)
      : session_(std::move(session)), counts_(counts) {}
  at::Tensor read(const std::vector<TokenIds>& tokens, Logits wanted) override {
    ++counts_.reads;
    for (const TokenIds& row : tokens) counts_.tokens += row.size();
    return session_->read(tokens, wanted);
  }
  void select(const std::vector<std::int64_t>& rows) override { session_->select(rows); }
  void rewind(std::int64_t row, std::int64_t length) override { session_->rewind(row, length); }
  std::int64_t rows() const override { return session_->rows(); }
  std::int64_t length(std::int64_t row) const override { return session_->length(row); }

 private:
  std::unique_ptr<DecodingSession> session_;
  Counts& counts_;
};

class CountingModel : public DecodingModel {
 public:
  explicit CountingModel(DecodingModel& model) : model_(model) {}
  const TransformerConfig& config() const override { return model_.config(); }
  std::unique_ptr<DecodingSession> begin(std::int64_t rows, std::int64_t capacity) override {
    return std::make_unique<CountingSession>(model_.begin(rows, capacity), counts);
  }
  std::unique_ptr<DecodingSession> begin(const std::vector<TokenIds>& sources,
                                         std::int64_t capacity) override {
    return std::make_unique<CountingSession>(model_.begin(sources, capacity), counts);
  }

  Counts counts;

 private:
  DecodingModel& model_;
};

}  // namespace

TEST_CASE("Rows that begin alike are grouped where that saves most") {
  const TokenIds a = tokens(1, 20), b = tokens(2, 30);
  CHECK(groups_of({joined(a, {1, 2}), joined(a, {3}), {4}}) == Groups{{{0, 1}, 20}, {{2}, 0}});
  CHECK(groups_of({joined(a, {1}), joined(b, {2}), joined(a, {3}), joined(b, {4, 5}), joined(b, {6})}) ==
        Groups{{{0, 2}, 20}, {{1, 3, 4}, 30}});
  // A row that is the beginning of another keeps its last token.
  CHECK(groups_of({a, joined(a, {5})}) == Groups{{{0, 1}, 19}});
  // Together 3 times 20 are saved, in two pairs 29 and 29; with longer pairs these save more.
  const auto paired = [&](std::int64_t more) {
    const TokenIds left = joined(a, TokenIds(static_cast<std::size_t>(more), 1)),
                   right = joined(a, TokenIds(static_cast<std::size_t>(more), 2));
    return groups_of({joined(left, {3}), joined(right, {3}), joined(left, {4}), joined(right, {4})});
  };
  CHECK(paired(9) == Groups{{{0, 1, 2, 3}, 20}});
  CHECK(paired(11) == Groups{{{0, 2}, 31}, {{1, 3}, 31}});
}

TEST_CASE("A beginning that saves little is read with each row") {
  CHECK(groups_of({joined(tokens(1, 15), {1}), joined(tokens(1, 15), {2})}) == Groups{{{0}, 0}, {{1}, 0}});
  CHECK(groups_of({joined(tokens(1, 16), {1}), joined(tokens(1, 16), {2})}) == Groups{{{0, 1}, 16}});
  CHECK(groups_of({{1}}) == Groups{{{0}, 0}});
  CHECK(groups_of({}).empty());
}

TEST_CASE("What prompts have in common is read once, and they are continued as each alone") {
  const auto position = GENERATE(PositionKind::kLearned, PositionKind::kRotary);
  TransformerConfig config = test::small_config();
  config.position = position;
  config.max_positions = 64;
  config.head_dim = 6;
  const auto model = test::random_gpt(config, 5);
  ModuleDecoder modules(*model);
  const auto packed = pack(*model, {});
  const TokenIds a = tokens(1, 20), b = tokens(2, 30);
  const std::vector<TokenIds> prompts{joined(a, {1, 2, 3}), joined(b, {4}), {5},
                                      joined(a, {6}),       joined(b, {7}), joined(a, {1, 2, 3}),
                                      joined(a, {1, 2, 4}), {8, 9, 10}};
  GenerationOptions options{.max_new_tokens = 6, .sampling = {.temperature = 0}};
  for (DecodingModel* whole :
       {static_cast<DecodingModel*>(&modules), static_cast<DecodingModel*>(packed.get())}) {
    CountingModel counting(*whole);
    const auto together = generate(counting, prompts, options).ids;
    for (std::size_t row = 0; row < prompts.size(); ++row) {
      CAPTURE(row);
      CHECK(together[row] == generate(*whole, {prompts[row]}, options).ids[0]);
    }
    // 20 and 30, the pasts of the rows, 3 + 1 + 3 and 1 + 1, the two others, of which the one token
    // is read twice.
    counting.counts = {};
    options.max_new_tokens = 1;
    generate(counting, prompts, options);
    CHECK(counting.counts.tokens == 50 + 7 + 2 + 3 + 2);
    CHECK(counting.counts.reads == 2);
    options.max_new_tokens = 6;
  }
}

TEST_CASE("Prompts without a common beginning are read at once") {
  const auto model = test::random_gpt(test::small_config(), 5);
  ModuleDecoder modules(*model);
  CountingModel counting(modules);
  generate(counting, {{1, 2, 3}, {1, 2}, {1, 2, 3}}, {.max_new_tokens = 1, .sampling = {.temperature = 0}});
  CHECK(counting.counts.tokens == 5);
  CHECK(counting.counts.reads == 1);
}
