#include "models/generation/contrastive_search.h"

#include "data/base/json_file.h"
#include "models/checkpoint/checkpoint.h"
#include "models/generation/module_decoder.h"
#include "models/inference/packed_decoder.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

using namespace zoo;
using Catch::Contains;

namespace {

// Tokens whose chances depend on the last one alone, and whose hidden states on themselves.
struct Language {
  std::vector<std::vector<float>> chances, states;
};

class LanguageSession : public DecodingSession {
 public:
  LanguageSession(const Language& language, std::int64_t rows)
      : language_(language), lengths_(static_cast<std::size_t>(rows), 0) {}

  at::Tensor read(const std::vector<TokenIds>& tokens, Logits) override {
    std::vector<at::Tensor> logits, states;
    for (std::size_t row = 0; row < tokens.size(); ++row) {
      lengths_.at(row) += static_cast<std::int64_t>(tokens[row].size());
      std::vector<at::Tensor> own;
      for (const std::int64_t id : tokens[row])
        own.push_back(at::tensor(language_.states[static_cast<std::size_t>(id)]));
      states.push_back(at::stack(own));
      logits.push_back(at::tensor(language_.chances[static_cast<std::size_t>(tokens[row].back())]).log());
    }
    states_ = at::stack(states);
    return at::stack(logits);
  }
  void keep_hidden() override {}
  at::Tensor hidden() const override { return states_; }
  void select(const std::vector<std::int64_t>& rows) override {
    std::vector<std::int64_t> chosen;
    for (const std::int64_t row : rows) chosen.push_back(length(row));
    lengths_ = chosen;
  }
  void rewind(std::int64_t row, std::int64_t length) override {
    lengths_.at(static_cast<std::size_t>(row)) = length;
  }
  std::int64_t rows() const override { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t length(std::int64_t row) const override { return lengths_.at(static_cast<std::size_t>(row)); }

 private:
  const Language& language_;
  std::vector<std::int64_t> lengths_;
  at::Tensor states_;
};

class LanguageModel : public DecodingModel {
 public:
  explicit LanguageModel(Language language) : language_(std::move(language)) {
    config_.vocab_size = static_cast<std::int64_t>(language_.chances.size());
    config_.position = PositionKind::kRotary;
  }
  const TransformerConfig& config() const override { return config_; }
  std::unique_ptr<DecodingSession> begin(std::int64_t rows, std::int64_t) override {
    return std::make_unique<LanguageSession>(language_, rows);
  }
  std::unique_ptr<DecodingSession> begin(const std::vector<TokenIds>&, std::int64_t) override {
    throw Error("a language has no encoder");
  }

 private:
  Language language_;
  TransformerConfig config_;
};

const Language kTwoWords{.chances = {{0.1F, 0.2F, 0.3F, 0.4F},
                                     {0.4F, 0.3F, 0.2F, 0.1F},
                                     {0.05F, 0.55F, 0.3F, 0.1F},
                                     {0.25F, 0.05F, 0.6F, 0.1F}},
                         .states = {{1, 0}, {0, 2}, {0, 1}, {3, 0}}};

GenerationOptions contrastive(double alpha, std::int64_t top_k, std::int64_t max_new_tokens) {
  GenerationOptions options{.max_new_tokens = max_new_tokens};
  options.contrastive = {.penalty_alpha = alpha, .top_k = top_k};
  return options;
}

// The method word for word: whole passes over the context, which slides as generate() says.
TokenIds whole_passes(Model& model, TokenIds context, const GenerationOptions& options) {
  const auto& [alpha, top_k] = options.contrastive;
  const std::int64_t limit = model.config().max_positions;
  const auto pass = [&](const TokenIds& ids) {
    const at::NoGradGuard no_grad;
    return model.forward({.input_ids = at::tensor(ids, at::kLong).unsqueeze(0)});
  };
  const auto with = [&](std::int64_t id) {
    TokenIds ids = context;
    ids.push_back(id);
    if (static_cast<std::int64_t>(ids.size()) > limit) ids.erase(ids.begin(), ids.end() - limit / 2);
    return ids;
  };
  TokenIds written;
  for (std::int64_t i = 0; i < options.max_new_tokens; ++i) {
    const at::Tensor chances = at::softmax(pass(context).logits[0][-1].to(at::kDouble), -1);
    const at::Tensor ids = std::get<1>(at::topk(chances, top_k));
    double best = -1e9;
    std::int64_t chosen = -1;
    for (std::int64_t c = 0; c < top_k; ++c) {
      const auto id = ids[c].item<std::int64_t>();
      const at::Tensor states = pass(with(id)).last_hidden_state[0].to(at::kDouble);
      double likeness = -1;
      for (std::int64_t j = 0; j + 1 < states.size(0); ++j)
        likeness = std::max(likeness, at::cosine_similarity(states[-1], states[j], 0).item<double>());
      const double score = (1 - alpha) * chances[id].item<double>() - alpha * likeness;
      if (score > best) {
        best = score;
        chosen = id;
      }
    }
    context = with(chosen);
    written.push_back(chosen);
  }
  return written;
}

}  // namespace

TEST_CASE("A candidate's score is what it is likely less what it is like") {
  const at::Tensor chances = at::tensor({0.5F, 0.4F, 0.1F});
  const at::Tensor candidates = at::tensor({2.0F, 0.0F, 0.0F, 3.0F, -1.0F, 0.0F}).reshape({3, 2});
  // The cosines with them are 1 and 0.6, 0 and 0.8, -1 and -0.6.
  const at::Tensor before = at::tensor({1.0F, 0.0F, 0.6F, 0.8F}).reshape({2, 2});
  const at::Tensor scores = contrastive_scores(chances, candidates, before, 0.25);
  CHECK(scores[0].item<float>() == Approx(0.75 * 0.5 - 0.25 * 1));
  CHECK(scores[1].item<float>() == Approx(0.75 * 0.4 - 0.25 * 0.8));
  CHECK(scores[2].item<float>() == Approx(0.75 * 0.1 + 0.25 * 0.6));
  CHECK(contrastive_scores(chances, candidates, before.slice(0, 0, 0), 0.25)[1].item<float>() ==
        Approx(0.75 * 0.4));
}

TEST_CASE("Contrastive search leaves what is likely for what is new") {
  LanguageModel model(kTwoWords);
  // After 2: 1 has 0.4 * 0.55 - 0.6, 2 0.4 * 0.3 - 0.6, and 3, which is like nothing, 0.4 * 0.1. After 3: 2
  // has 0.4 * 0.6 - 0.6, 0 0.4 * 0.25 - 0.6, 3 0.4 * 0.1 - 0.6.
  GenerationOptions options = contrastive(0.6, 3, 2);
  options.log_probabilities = true;
  const GenerationResult result = generate(model, {{2}}, options);
  CHECK(result.ids[0] == TokenIds{3, 2});
  CHECK(result.log_probabilities[0][0] == Approx(std::log(0.1)).epsilon(1e-5));
  CHECK(result.log_probabilities[0][1] == Approx(std::log(0.6)).epsilon(1e-5));
  CHECK(generate(model, {{2}}, contrastive(0.6, 2, 1)).ids[0] == TokenIds{1});  // 3 is no candidate
  options.history.bad_words = {{3}};
  CHECK(generate(model, {{2}}, options).ids[0][0] == 0);  // a candidate now, and new
  options.history.bad_words = {{0}, {1}, {2}};            // fewer than there should be candidates
  CHECK(generate(model, {{2}}, options).ids[0] == TokenIds{3, 3});
}

TEST_CASE("Contrastive search gives the ids of its formula on Hugging Face's models") {
  const std::filesystem::path golden = std::filesystem::path(ZOO_SOURCE_DIR) / "tests/golden";
  const nlohmann::json cases = read_json(golden / "contrastive.json")["cases"];
  CHECK(cases.size() == 8);
  for (const nlohmann::json& one : cases) {
    CAPTURE(one.dump());
    const LoadedModel loaded = load_model(golden / one["checkpoint"].get<std::string>());
    const auto expected = one["ids"].get<TokenIds>();
    const GenerationOptions options =
        contrastive(one["penalty_alpha"], one["top_k"], static_cast<std::int64_t>(expected.size()));
    const auto prompt = one["prompt"].get<TokenIds>();
    CHECK(generate(*loaded.model, {prompt}, options).ids[0] == expected);
    const auto packed = pack(*loaded.model, {});
    CHECK(generate(*packed, {prompt}, options).ids[0] == expected);
    // Beside another row that is longer and ends after its first token.
    GenerationOptions ending = options;
    ending.row_ends = [&](const TokenIds& ids) { return ids[0] != expected[0]; };
    TokenIds other = prompt;
    do {
      other.insert(other.begin(), other.front() % 8 + 1);
    } while (generate(*packed, {other}, contrastive(0.6, 4, 1)).ids[0][0] == expected[0] && other.size() < 9);
    CHECK(generate(*packed, {other, prompt}, ending).ids[1] == expected);
    CHECK(generate(*loaded.model, {other, prompt, prompt}, ending).ids[2] == expected);
  }
}

TEST_CASE("The context of a contrastive search slides") {
  const auto model = test::random_gpt(test::small_config(), 4);
  const GenerationOptions options = contrastive(0.6, 4, 40);
  const TokenIds expected = whole_passes(*model, {1, 2, 3}, options);
  CHECK(generate(*model, {{1, 2, 3}}, options).ids[0] == expected);
  CHECK(generate(*pack(*model, {}), {{1, 2, 3}}, options).ids[0] == expected);
  TransformerConfig config = test::small_config();
  config.max_positions = 1;
  CHECK(generate(*test::random_gpt(config, 4), {{1}}, contrastive(0.6, 3, 5)).ids[0].size() == 5);
}

TEST_CASE("A contrastive search with hardly a penalty is greedy") {
  const auto model = test::random_gpt(test::small_config(), 7);
  const std::vector<TokenIds> prompts{{1, 2}, {3, 4, 5, 6}, {1, 2}, {7}};
  GenerationOptions options{.max_new_tokens = 30, .sampling = {.temperature = 0}, .eos_token_ids = {3, 8}};
  options.history.repetition_penalty = 1.3;
  const auto greedy = generate(*model, prompts, options).ids;
  options.contrastive = {.penalty_alpha = 1e-7, .top_k = 5};
  std::vector<TokenIds> seen(prompts.size());
  const auto result = generate(*pack(*model, {}), prompts, options, [&](const NewToken& token) {
    seen.at(token.row).push_back(token.id);
    return true;
  });
  CHECK(result.ids == greedy);
  CHECK(seen == greedy);
  options.contrastive.penalty_alpha = 0.6;
  CHECK(generate(*model, prompts, options).ids != greedy);
}

TEST_CASE("What a contrastive search cannot do is said") {
  const auto model = test::random_gpt(test::small_config(), 1);
  ModuleDecoder draft(*model);
  const auto refusal = [&](GenerationOptions options) {
    return test::error_of([&] { generate(*model, {{1}}, options); });
  };
  CHECK_THAT(refusal(contrastive(1.5, 4, 1)), Contains("penalty_alpha") && Contains("1.5"));
  CHECK_THAT(refusal(contrastive(-0.5, 4, 1)), Contains("penalty_alpha") && Contains("-0.5"));
  CHECK_THAT(refusal(contrastive(0.5, 1, 1)), Contains("top_k") && Contains("got 1"));
  GenerationOptions options = contrastive(0.5, 4, 1);
  options.draft = &draft;
  CHECK_THAT(refusal(options), Contains("draft"));
  options.draft = nullptr;
  options.beams.num_beams = 2;
  CHECK_THAT(refusal(options), Contains("num_beams"));
  options = contrastive(0.5, 4, 1);
  options.history.bad_words = {{0}, {1}, {2}, {3}};
  LanguageModel language(kTwoWords);
  CHECK_THAT(test::error_of([&] { generate(language, {{1}}, options); }), Contains("the filters"));
}
