#include "models/generation/continuous_batch.h"

#include <cmath>
#include <limits>

#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include "tests/models/generation/batch_client.h"

using namespace zoo;
using test::alone;
using test::Client;
using test::Models;
using test::prompt_of;
using test::run;

namespace {

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
  // A prompt is read once for all of its samples that have a slot: the third of the second has none.
  CHECK(batch.prompt_tokens() + batch.reused_tokens() - before == 30 + 3 + 3 + 30 + 9);
  CHECK(batch.written_tokens() == 10 * 15);
}

TEST_CASE("Samples enter as slots are free, and keep none from others") {
  const Models models(GENERATE(true, false));
  ContinuousBatch batch(*models.decoder, {.slots = 4, .context = 150, .piece = 16});
  const auto drawn = [](std::int64_t tokens) {
    return GenerationOptions{.max_new_tokens = tokens, .sampling = {.temperature = 1, .seed = 9}};
  };
  Client writes({prompt_of(5, 1)}, drawn(100)), many({prompt_of(7, 2)}, drawn(12), 7),
      waits({prompt_of(4, 3)}, drawn(5));
  std::size_t told = 0;
  many.request->scores_prompt = true;
  many.request->likeliest = 0;
  many.request->on_prompt = [&](std::size_t, const auto&) { ++told; };
  for (Client* client : {&writes, &many, &waits}) {
    REQUIRE(batch.submit(client->request));
    batch.step();
  }
  for (int i = 0; i < 60; ++i) batch.step();
  // Three samples beside the long text, then three, then the seventh, then the request behind them.
  CHECK(many.ended());
  CHECK(waits.ended());
  CHECK_FALSE(writes.ended());
  run(batch);
  for (const Client* client : {&writes, &many, &waits}) CHECK(client->ids == alone(*models.decoder, *client));
  CHECK(told == 1);
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

TEST_CASE("A request's number of likeliest ids is not negative") {
  const auto model = test::long_model();
  ModuleDecoder decoder(*model);
  ContinuousBatch batch(decoder, {.slots = 1});
  Client client({prompt_of(3, 1)}, {.max_new_tokens = 9});
  client.request->likeliest = -1;
  CHECK(test::error_of([&] { batch.submit(client.request); }) == "'likeliest': expected at least 0, got -1");
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
