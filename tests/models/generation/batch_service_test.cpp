#include <algorithm>
#include <utility>

#include "models/generation/continuous_batch.h"
#include "tests/models/generation/batch_client.h"
#include "tests/models/generation/chain.h"
#include "tests/support/message_of.h"

using namespace zoo;
using Catch::Contains;
using test::alone;
using test::Client;
using test::Models;
using test::prompt_of;
using test::run;

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
  const Models models(false);  // of modules, which read again what others have read
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
  for (std::size_t i = 0; i < 6; ++i) {  // two have a slot
    clients.push_back(std::make_unique<Client>(std::vector<TokenIds>{prompt_of(4, i)}, options));
    CHECK(batch.submit(clients.back()->request) == (i < 5));
  }
  batch.step();
  CHECK_FALSE(batch.submit(clients.back()->request));
  while (batch.waiting() == 3) batch.step();
  CHECK(batch.submit(clients.back()->request));

  const auto error_of = [&](const std::vector<TokenIds>& prompts, GenerationOptions given,
                            std::int64_t samples) {
    Client client(prompts, given, samples);
    return test::error_of([&] { batch.submit(client.request); });
  };
  CHECK_THAT(error_of({prompt_of(21, 1)}, options, 1), Contains("21 tokens") && Contains("10 new"));
  CHECK_THAT(error_of({{}}, options, 1), Contains("empty"));
  CHECK_THAT(error_of({{99}}, options, 1), Contains("id 99"));
  CHECK_THAT(error_of({{1}}, options, 0), Contains("at least 1 sample") && Contains("got 0"));
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

namespace {

// Has no memory for its second mask.
class Greedy : public TokenConstraint {
 public:
  std::int64_t begin(std::int64_t) const override { return 0; }
  at::Tensor mask(std::int64_t state, std::int64_t) const override {
    if (state > 0) throw std::bad_alloc();
    return at::zeros({13});
  }
  std::int64_t next(std::int64_t state, TokenId) const override { return state + 1; }
  bool complete(std::int64_t) const override { return false; }
};

}  // namespace

TEST_CASE("A constraint without memory fails one request, not its neighbours") {
  const Models models(true);
  ContinuousBatch batch(*models.decoder, {.slots = 4, .context = 60, .piece = 8});
  GenerationOptions options{.max_new_tokens = 10, .sampling = {.temperature = 0}};
  Client good({prompt_of(4, 1)}, options);
  options.constraint = std::make_shared<Greedy>();
  Client bad({prompt_of(4, 2)}, options);
  REQUIRE(batch.submit(bad.request));
  REQUIRE(batch.submit(good.request));
  run(batch);
  CHECK_FALSE(bad.failure.empty());
  CHECK(good.failure.empty());
  CHECK(good.ids == alone(*models.decoder, good));
}

TEST_CASE("An adapter that the model lacks fails one request, not its neighbours") {
  const Models models(GENERATE(true, false));
  ContinuousBatch batch(*models.decoder, {.slots = 4, .context = 60, .piece = 8});
  const GenerationOptions options{.max_new_tokens = 10, .sampling = {.temperature = 0}};
  Client good({prompt_of(4, 1)}, options), later({prompt_of(5, 3)}, options);
  Client first({prompt_of(4, 2)}, options), bad({prompt_of(4, 2)}, options, 2);
  first.request->adapter = bad.request->adapter = 3;
  for (const Client* client : {&first, &good, &bad, &later}) REQUIRE(batch.submit(client->request));
  run(batch);
  for (const Client* client : {&first, &bad}) CHECK_THAT(client->failure, Contains("adapter"));
  for (const Client* client : {&good, &later}) {
    CHECK(client->failure.empty());
    CHECK(client->ids == alone(*models.decoder, *client));
  }
  Client alone_in_it({prompt_of(4, 2)}, options);
  alone_in_it.request->adapter = 1;
  REQUIRE(batch.submit(alone_in_it.request));
  run(batch);
  CHECK_THAT(alone_in_it.failure, Contains("adapter"));
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
