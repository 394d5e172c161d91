#include "models/generation/continuous_batch.h"

#include <cmath>
#include <limits>

#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include "models/generation/module_decoder.h"
#include "models/inference/packed_decoder.h"
#include "tests/models/generation/chain.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/message_of.h"

using namespace zoo;
using Catch::Contains;

namespace {

std::shared_ptr<Model> long_model() {
  TransformerConfig config = test::small_config();
  config.max_positions = 160;
  return test::random_gpt(config, 7);
}

// Even ids after odd ones and odd ones after even ones; complete after six.
class Alternating : public TokenConstraint {
 public:
  std::int64_t begin(std::int64_t) const override { return 0; }
  at::Tensor mask(std::int64_t state, std::int64_t) const override {
    at::Tensor mask = at::full({13}, -std::numeric_limits<float>::infinity(), at::kFloat);
    for (std::int64_t id = state % 2; id < 13; id += 2) mask.mutable_data_ptr<float>()[id] = 0;
    return mask;
  }
  std::int64_t next(std::int64_t state, TokenId) const override { return state + 1; }
  bool complete(std::int64_t state) const override { return state == 6; }
};

// Ways of choosing that depend on the row's own tokens, its constraint or its generator.
std::vector<GenerationOptions> ways() {
  GenerationOptions greedy{.max_new_tokens = 20, .sampling = {.temperature = 0}};
  std::vector<GenerationOptions> all{greedy};
  GenerationOptions drawn = greedy;
  drawn.sampling = {.temperature = 0.9, .top_k = 9, .top_p = 0.95, .min_p = 0.01, .seed = 3};
  all.push_back(drawn);
  drawn.sampling = {.temperature = 1.3, .typical_p = 0.9, .seed = 4};
  drawn.history.repetition_penalty = 1.3;
  drawn.history.presence_penalty = 0.4;
  drawn.history.frequency_penalty = 0.2;
  all.push_back(drawn);
  greedy.history.no_repeat_ngram_size = 2;
  greedy.history.bad_words = {{3}, {5, 1}};
  greedy.history.min_new_tokens = 3;
  greedy.history.suppressed_first = {2};
  greedy.history.logit_bias = {{4, 1.5}, {6, -100}};
  greedy.eos_token_ids = {1};
  all.push_back(greedy);
  drawn = {.max_new_tokens = 12, .sampling = {.temperature = 1.1, .seed = 5}};
  drawn.constraint = std::make_shared<Alternating>();
  all.push_back(drawn);
  drawn.constraint = nullptr;
  drawn.row_ends = [](const TokenIds& ids) { return ids.size() >= 2 && ids.back() == 7; };
  all.push_back(drawn);
  return all;
}

TokenIds prompt_of(std::size_t length, std::uint64_t seed) {
  TokenIds ids;
  for (std::size_t i = 0; i < length; ++i)
    ids.push_back(static_cast<TokenId>((seed * 7 + i * i * 3 + i) % 13));
  return ids;
}

// A request and all that its callbacks were told.
struct Client {
  std::shared_ptr<BatchRequest> request = std::make_shared<BatchRequest>();
  std::vector<TokenIds> ids;
  std::vector<std::vector<ScoredToken>> tokens;
  std::vector<std::optional<RowEnd>> ends;
  std::string failure;

  Client(const std::vector<TokenIds>& prompts, const GenerationOptions& options, std::int64_t samples = 1) {
    request->prompts = prompts;
    request->options = options;
    request->samples = samples;
    const std::size_t rows = prompts.size() * static_cast<std::size_t>(samples);
    ids.resize(rows);
    tokens.resize(rows);
    ends.resize(rows);
    request->on_token = [this](std::size_t row, const ScoredToken& token) {
      REQUIRE_FALSE(ends.at(row).has_value());
      ids.at(row).push_back(token.id);
      tokens.at(row).push_back(token);
    };
    request->on_end = [this](std::size_t row, RowEnd end) {
      REQUIRE_FALSE(ends.at(row).has_value());
      ends.at(row) = end;
    };
    request->on_failure = [this](const std::string& message) { failure = message; };
  }
  Client(const Client&) = delete;

  bool ended() const {
    return std::all_of(ends.begin(), ends.end(), [](const auto& end) { return end.has_value(); });
  }
};

// The answers of generate() to the same prompts, each repeated for its samples.
std::vector<TokenIds> alone(DecodingModel& model, const Client& client) {
  std::vector<TokenIds> prompts;
  for (const TokenIds& prompt : client.request->prompts)
    prompts.insert(prompts.end(), static_cast<std::size_t>(client.request->samples), prompt);
  return generate(model, prompts, client.request->options).ids;
}

void run(ContinuousBatch& batch) {
  for (int steps = 0; batch.step(); ++steps) REQUIRE(steps < 2000);
}

struct Models {
  std::shared_ptr<Model> model = long_model();
  std::unique_ptr<DecodingModel> decoder;

  explicit Models(bool packed) {
    if (packed) {
      decoder = pack(*model, {});
    } else {
      decoder = std::make_unique<ModuleDecoder>(*model);
    }
  }
};

}  // namespace

TEST_CASE("A request's ids do not depend on who shares its batch") {
  const Models models(GENERATE(true, false));
  const auto [slots, piece] = GENERATE(std::pair{4, 3}, std::pair{16, 64}, std::pair{3, 1});
  CAPTURE(slots, piece);
  ContinuousBatch batch(*models.decoder, {.slots = slots, .context = 150, .piece = piece});
  std::vector<std::unique_ptr<Client>> clients;
  std::uint64_t seed = 0;
  for (int round = 0; round < 2; ++round) {
    for (const GenerationOptions& options : ways()) {
      const std::vector<TokenIds> prompts{prompt_of(1 + (seed * 11) % 40, seed)};
      clients.push_back(std::make_unique<Client>(prompts, options));
      REQUIRE(batch.submit(clients.back()->request));
      for (std::uint64_t step = 0; step < seed % 4; ++step) batch.step();  // the next one enters in between
      ++seed;
    }
  }
  run(batch);
  for (const auto& client : clients) {
    INFO(client->failure);
    CHECK(client->ended());
    CHECK(client->ids == alone(*models.decoder, *client));
  }
  CHECK(batch.rows() == 0);
  CHECK(batch.waiting() == 0);
}

TEST_CASE("Samples and prompts of one request have the rows of generate()") {
  const Models models(GENERATE(true, false));
  ContinuousBatch batch(*models.decoder, {.slots = 5, .context = 150, .piece = 4});
  const GenerationOptions drawn{.max_new_tokens = 15, .sampling = {.temperature = 1, .seed = 9}};
  Client first({prompt_of(30, 1), prompt_of(3, 2), prompt_of(30, 1)}, drawn, 3),
      other({prompt_of(9, 5)}, drawn);
  const auto before = batch.prompt_tokens();
  REQUIRE(batch.submit(first.request));
  batch.step();
  REQUIRE(batch.submit(other.request));
  run(batch);
  CHECK(first.ids == alone(*models.decoder, first));
  CHECK(other.ids == alone(*models.decoder, other));
  CHECK(first.ids[0] != first.ids[1]);
  // A prompt is read once for all of its samples.
  CHECK(batch.prompt_tokens() - before == 30 + 3 + 30 + 9);
  CHECK(batch.written_tokens() == 10 * 15);
}

TEST_CASE("Log-probabilities are the model's, of prompts too") {
  const c10::InferenceMode inference;
  const Models models(GENERATE(true, false));
  ContinuousBatch batch(*models.decoder, {.slots = 4, .context = 150, .piece = 64});
  Client other({prompt_of(20, 8)}, {.max_new_tokens = 30, .sampling = {.temperature = 0}});
  REQUIRE(batch.submit(other.request));
  batch.step();
  Client client({prompt_of(40, 3)}, {.max_new_tokens = 4, .sampling = {.temperature = 2, .seed = 1}});
  std::vector<ScoredToken> prompt;
  client.request->likeliest = 3;
  client.request->scores_prompt = true;
  client.request->on_prompt = [&](std::size_t number, const std::vector<ScoredToken>& scores) {
    CHECK(number == 0);
    prompt = scores;
  };
  REQUIRE(batch.submit(client.request));
  run(batch);
  CHECK(other.ids == alone(*models.decoder, other));

  TokenIds all = client.request->prompts[0];
  all.insert(all.end(), client.ids[0].begin(), client.ids[0].end());
  const at::Tensor logits =
      models.model->forward({.input_ids = at::tensor(all, at::kLong).unsqueeze(0)}).logits[0];
  const at::Tensor expected = at::log_softmax(logits.to(at::kDouble), -1);
  std::vector<ScoredToken> found = prompt;
  found.insert(found.end(), client.tokens[0].begin(), client.tokens[0].end());
  REQUIRE(found.size() == all.size() - 1);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const at::Tensor row = expected[static_cast<std::int64_t>(i)];
    CHECK(found[i].id == all[i + 1]);
    CHECK(std::abs(found[i].log_probability - row[all[i + 1]].item<double>()) < 1e-4);
    REQUIRE(found[i].likeliest.size() == 3);
    CHECK(std::abs(found[i].likeliest[0].second - row.max().item<double>()) < 1e-4);
    CHECK(found[i].likeliest[1].second >= found[i].likeliest[2].second);
  }
}

TEST_CASE("A request that only reads its prompt writes nothing") {
  const Models models(true);
  ContinuousBatch batch(*models.decoder, {.slots = 2, .context = 20});
  Client client({prompt_of(20, 3)}, {});
  client.request->only_prompt = client.request->scores_prompt = true;
  std::size_t scores = 0;
  client.request->on_prompt = [&](std::size_t, const auto& found) { scores = found.size(); };
  REQUIRE(batch.submit(client.request));
  run(batch);
  CHECK(scores == 19);
  CHECK(client.ids[0].empty());
  CHECK(client.ends[0] == RowEnd::kLength);
}

TEST_CASE("Rows end by an end token, their length or the request") {
  const Models models(true);
  ContinuousBatch batch(*models.decoder, {.slots = 4, .context = 150, .piece = 8});
  GenerationOptions options{.max_new_tokens = 100, .sampling = {.temperature = 1, .seed = 2}};
  Client cancelled({prompt_of(5, 1)}, options), stays({prompt_of(6, 2)}, options);
  Client reading({prompt_of(140, 1)}, {.max_new_tokens = 5, .sampling = {.temperature = 0}});
  Client waiting({prompt_of(4, 1), prompt_of(5, 1)}, options, 4);
  for (Client* client : {&cancelled, &stays}) REQUIRE(batch.submit(client->request));
  for (int i = 0; i < 5; ++i) batch.step();
  for (Client* client : {&reading, &waiting}) REQUIRE(batch.submit(client->request));
  batch.step();
  CHECK(batch.rows() == 3);
  CHECK(batch.waiting() == 1);
  const std::size_t written = cancelled.ids[0].size();
  cancelled.request->cancelled = reading.request->cancelled = waiting.request->cancelled = true;
  batch.step();
  CHECK(batch.rows() == 1);  // they left before the step
  CHECK(batch.waiting() == 0);
  CHECK(cancelled.ids[0].size() == written);
  for (Client* client : {&cancelled, &reading, &waiting})
    for (const auto& end : client->ends) CHECK(end == RowEnd::kCancelled);
  run(batch);
  CHECK(stays.ids == alone(*models.decoder, stays));
  CHECK(stays.ends[0] == RowEnd::kLength);

  options.eos_token_ids = {stays.ids[0][10]};
  Client ends({prompt_of(6, 2)}, options);
  REQUIRE(batch.submit(ends.request));
  run(batch);
  CHECK(ends.ends[0] == RowEnd::kStop);
  CHECK(ends.ids[0].back() == options.eos_token_ids[0]);
}

TEST_CASE("First come, first served: a request that needs many slots is not overtaken") {
  const Models models(true);
  ContinuousBatch batch(*models.decoder, {.slots = 4, .context = 150, .piece = 8, .queue = 100});
  const GenerationOptions options{.max_new_tokens = 9, .sampling = {.temperature = 0}};
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::size_t> begun;
  for (std::size_t i = 0; i < 64; ++i) {
    clients.push_back(std::make_unique<Client>(std::vector<TokenIds>{prompt_of(1 + i % 9, i)}, options,
                                               i % 10 == 5 ? 4 : 1));
    clients.back()->request->on_token = [&begun, i](std::size_t row, const ScoredToken&) {
      if (row == 0 && std::find(begun.begin(), begun.end(), i) == begun.end()) begun.push_back(i);
    };
    REQUIRE(batch.submit(clients.back()->request));
  }
  run(batch);
  REQUIRE(begun.size() == 64);
  CHECK(std::is_sorted(begun.begin(), begun.end()));
}

TEST_CASE("Prompts are read in larger pieces while many wait") {
  const Models models(true);
  ContinuousBatch batch(*models.decoder, {.slots = 20, .context = 150, .piece = 10});
  const GenerationOptions options{.max_new_tokens = 60, .sampling = {.temperature = 0}};
  std::vector<std::unique_ptr<Client>> clients;
  const auto send = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      clients.push_back(std::make_unique<Client>(std::vector<TokenIds>{prompt_of(15, i)}, options));
      REQUIRE(batch.submit(clients.back()->request));
    }
  };
  const auto read_by_step = [&] {
    const std::int64_t before = batch.prompt_tokens();
    batch.step();
    return batch.prompt_tokens() - before;
  };
  send(1);
  CHECK(read_by_step() == 15);
  send(3);
  CHECK(read_by_step() == 10);
  send(6);
  CHECK(read_by_step() == 30);  // 8 prompts wait for 18 slots
  send(12);
  CHECK(read_by_step() == 50);  // 18 for 16
  CHECK(read_by_step() == 40);  // 15 for 13
  CHECK(read_by_step() == 30);  // 12 for 10
}

TEST_CASE("A long prompt does not stop the rows that write") {
  const Models models(true);
  ContinuousBatch batch(*models.decoder, {.slots = 4, .context = 150, .piece = 10});
  Client writing({prompt_of(3, 1)}, {.max_new_tokens = 40, .sampling = {.temperature = 0}});
  REQUIRE(batch.submit(writing.request));
  batch.step();
  Client reading({prompt_of(100, 1)}, {.max_new_tokens = 2, .sampling = {.temperature = 0}});
  REQUIRE(batch.submit(reading.request));
  for (std::size_t step = 1; step <= 10; ++step) {
    batch.step();
    CHECK(writing.ids[0].size() == step + 1);
    CHECK(reading.ids[0].size() == (step == 10 ? 1 : 0));
  }
}

TEST_CASE("A full queue takes no request, and one that does not fit is refused with the numbers") {
  const Models models(true);
  ContinuousBatch batch(*models.decoder, {.slots = 2, .context = 30, .piece = 8, .queue = 3});
  const GenerationOptions options{.max_new_tokens = 10, .sampling = {.temperature = 0}};
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<Client>(std::vector<TokenIds>{prompt_of(4, i)}, options));
    CHECK(batch.submit(clients.back()->request) == (i < 3));
  }
  batch.step();
  CHECK(batch.submit(clients.back()->request));

  const auto error_of = [&](const std::vector<TokenIds>& prompts, GenerationOptions given,
                            std::int64_t samples) {
    Client client(prompts, given, samples);
    return test::error_of([&] { batch.submit(client.request); });
  };
  CHECK_THAT(error_of({prompt_of(21, 1)}, options, 1), Contains("21 tokens") && Contains("10 new"));
  CHECK_THAT(error_of({{}}, options, 1), Contains("empty"));
  CHECK_THAT(error_of({{99}}, options, 1), Contains("id 99"));
  CHECK_THAT(error_of({{1}}, options, 3), Contains("1 to 2 samples") && Contains("got 3"));
  GenerationOptions wrong = options;
  wrong.sampling = {.temperature = -1};
  CHECK_THAT(error_of({{1}}, wrong, 1), Contains("temperature"));
  wrong = options;
  wrong.beams.num_beams = 2;
  CHECK_THAT(error_of({{1}}, wrong, 1), Contains("beam"));
  wrong = options;
  wrong.history.logit_bias = {{13, 1}};
  CHECK_THAT(error_of({{1}}, wrong, 1), Contains("logit_bias") && Contains("13"));
  wrong.max_new_tokens = 0;
  CHECK_THAT(error_of({{1}}, wrong, 1), Contains("max_new_tokens"));
}

namespace {

// A chain whose session fails at the third read, and which can begin no other until it is told to.
class Faulty : public test::Chain {
 public:
  Faulty() : Chain(test::kLanguage) {}
  std::unique_ptr<DecodingSession> begin(std::int64_t rows, std::int64_t capacity) override {
    if (failed && !mended) throw Error("no memory for a session");
    return std::make_unique<Session>(*this, Chain::begin(rows, capacity));
  }
  bool failed = false, mended = false;

 private:
  class Session : public DecodingSession {
   public:
    Session(Faulty& model, std::unique_ptr<DecodingSession> good) : model_(model), good_(std::move(good)) {}
    at::Tensor read(const std::vector<TokenIds>& tokens, Logits wanted) override {
      if (++reads_ == 3 && !std::exchange(model_.failed, true)) throw Error("no memory for a step");
      return good_->read(tokens, wanted);
    }
    void select(const std::vector<std::int64_t>& rows) override { good_->select(rows); }
    void rewind(std::int64_t row, std::int64_t length) override { good_->rewind(row, length); }
    std::int64_t rows() const override { return good_->rows(); }
    std::int64_t length(std::int64_t row) const override { return good_->length(row); }

   private:
    Faulty& model_;
    std::unique_ptr<DecodingSession> good_;
    int reads_ = 0;
  };
};

}  // namespace

TEST_CASE("A batch outlives errors of its model, also where no other session can begin") {
  Faulty model;
  ContinuousBatch batch(model, {.slots = 1, .context = 60, .piece = 8});
  const GenerationOptions options{.max_new_tokens = 5, .sampling = {.temperature = 0}};
  Client step({{1}}, options), session({{1}}, options), good({{1}}, options);
  REQUIRE(batch.submit(step.request));
  REQUIRE(batch.submit(session.request));
  run(batch);
  CHECK_THAT(step.failure, Contains("no memory for a step"));
  CHECK_THAT(session.failure, Contains("no memory for a session"));
  model.mended = true;
  REQUIRE(batch.submit(good.request));
  run(batch);
  CHECK(good.failure.empty());
  CHECK(good.ids == alone(model, good));
}

TEST_CASE("Rules that leave no token fail one request, not its neighbours") {
  const Models models(true);
  ContinuousBatch batch(*models.decoder, {.slots = 4, .context = 60, .piece = 8});
  GenerationOptions options{.max_new_tokens = 10, .sampling = {.temperature = 0}};
  Client good({prompt_of(4, 1)}, options);
  for (TokenId id = 0; id < 13; ++id) options.history.suppressed.push_back(id);
  Client bad({prompt_of(4, 2)}, options, 2);
  REQUIRE(batch.submit(bad.request));
  REQUIRE(batch.submit(good.request));
  run(batch);
  CHECK_THAT(bad.failure, Contains("no token can be chosen"));
  CHECK(good.failure.empty());
  CHECK(good.ids == alone(*models.decoder, good));
}
