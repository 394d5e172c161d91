#include <array>
#include <random>

#include "tests/models/generation/batch_client.h"

using namespace zoo;
using inference::WeightType;
using test::alone;
using test::Client;
using test::prompt_of;
using test::run;

namespace {

std::shared_ptr<Model> random_model(std::int64_t window) {
  TransformerConfig config = test::small_config();
  config.max_positions = 2000;
  config.hidden_size = 64;
  config.intermediate_size = 128;
  config.sliding_window = window;
  if (window > 0) config.window_layers = {true, false, true};
  return test::random_gpt(config, 7);
}

TokenIds drawn(std::mt19937& chance, std::size_t count) {
  TokenIds ids;
  for (std::size_t i = 0; i < count; ++i) ids.push_back(static_cast<TokenId>(chance() % 13));
  return ids;
}

// Reads `prompt` in a new row, and a token in each other one; true if the row's logits are those of a session
// that reads all of it, to the bit.
bool same_bits(DecodingModel& model, DecodingSession& session, const TokenIds& prompt, std::size_t& held) {
  std::vector<TokenIds> next(static_cast<std::size_t>(session.rows()) - 1, TokenIds{5});
  const std::int64_t reused = session.reuse(session.rows() - 1, prompt);
  REQUIRE(reused < static_cast<std::int64_t>(prompt.size()));
  REQUIRE(session.length(session.rows() - 1) == reused);
  held += static_cast<std::size_t>(reused);
  next.emplace_back(prompt.begin() + reused, prompt.end());
  const at::Tensor found = session.read(next)[-1];
  const auto cold = model.begin(1, 2000);
  return found.equal(cold->read({prompt})[0]);
}

}  // namespace

TEST_CASE("A row that takes over what others have read has the bits of one that reads all") {
  const WeightType weights =
      GENERATE(WeightType::kFloat32, WeightType::kBfloat16, WeightType::kInt8, WeightType::kInt4);
  const auto model = random_model(GENERATE(0, 24));
  const auto packed = pack(*model, {.weights = weights});
  std::mt19937 chance(3);
  const auto session = packed->begin(2, 2000);
  std::vector<TokenIds> texts{drawn(chance, 700)};
  std::size_t held = 0, asked = 0;
  session->select({0});
  for (int turn = 0; turn < 24; ++turn) {
    CAPTURE(turn);
    TokenIds prompt = texts[chance() % texts.size()];
    if (turn % 3 == 0) prompt.resize(1 + chance() % prompt.size());
    if (turn % 4 == 1) prompt[prompt.size() / 2] = (prompt[prompt.size() / 2] + 1) % 13;
    const TokenIds more = drawn(chance, 1 + chance() % 40);
    prompt.insert(prompt.end(), more.begin(), more.end());
    if (turn > 0) session->add_row();
    CHECK(same_bits(*packed, *session, prompt, held));
    asked += prompt.size();
    texts.push_back(prompt);
    // Of three rows one leaves; what it has read may be taken over.
    if (session->rows() == 3)
      session->select(turn % 2 == 0 ? std::vector<std::int64_t>{0, 2} : std::vector<std::int64_t>{1, 2});
  }
  CHECK(3 * held > asked);
}

TEST_CASE("A conversation reads each of its turns once") {
  const auto model = random_model(0);
  const auto packed = pack(*model, {});
  GenerationOptions options{.max_new_tokens = 12, .sampling = {.temperature = 0}};
  ContinuousBatch batch(*packed, {.slots = 3, .context = 1000, .piece = 16});
  TokenIds said = prompt_of(60, 4);
  for (int turn = 0; turn < 6; ++turn) {
    CAPTURE(turn);
    const std::int64_t before = batch.prompt_tokens();
    Client client({said}, options), other({prompt_of(8, static_cast<std::uint64_t>(turn) + 5)}, options);
    client.request->likeliest = 0;
    std::int64_t reused = -1;
    client.request->on_reuse = [&](std::size_t, std::int64_t tokens) { reused = tokens; };
    REQUIRE(batch.submit(client.request));
    REQUIRE(batch.submit(other.request));
    run(batch);
    const std::vector<TokenIds> expected = alone(*packed, client);
    CHECK(client.ids == expected);
    CHECK(other.ids == alone(*packed, other));
    // All but the last answer's last token, which nobody has read, and the new words.
    if (turn > 0) CHECK(reused == static_cast<std::int64_t>(said.size()) - 6);
    CHECK(batch.prompt_tokens() - before <= static_cast<std::int64_t>(said.size()) - reused + 8);
    options.keep_cache = true;  // generate() itself, on the same model
    CHECK(generate(*packed, {said}, options).ids == expected);
    options.keep_cache = false;
    said.insert(said.end(), client.ids[0].begin(), client.ids[0].end());
    for (const TokenId id : {3, 1, 4, 1, static_cast<int>(turn)}) said.push_back(id);
  }
}

TEST_CASE("Conversations that take turns are held while there is memory for them") {
  const auto model = random_model(0);
  const auto packed = pack(*model, {});
  // A token has keys and values of 3 layers in float32.
  const std::size_t token = 2 * 3 * 64 * sizeof(float);
  const std::int64_t slots = GENERATE(1, 3);
  const bool scarce = slots == 1 && GENERATE(false, true);
  CAPTURE(scarce, slots);
  const GenerationOptions options{.max_new_tokens = 5, .sampling = {.temperature = 0}};
  ContinuousBatch batch(
      *packed, {.slots = slots, .context = 400, .held_bytes = scarce ? 150 * token : std::size_t{16} << 20});
  std::vector<TokenIds> said;
  for (std::uint64_t i = 0; i < 7; ++i) said.push_back(prompt_of(60, i));
  for (int turn = 0; turn < 3; ++turn) {
    for (TokenIds& text : said) {
      Client client({text}, options);
      std::int64_t reused = -1;
      client.request->on_reuse = [&](std::size_t, std::int64_t tokens) { reused = tokens; };
      REQUIRE(batch.submit(client.request));
      run(batch);
      CHECK(client.ids == alone(*packed, client));
      // All but the answer's last token and the new word; of seven conversations, memory for two is too
      // little.
      if (turn > 0) CHECK((reused == static_cast<std::int64_t>(text.size()) - 2) == !scarce);
      text.insert(text.end(), client.ids[0].begin(), client.ids[0].end());
      text.push_back(turn);
    }
  }
  // The last conversations are the ones that are held.
  Client client({said.back()}, options);
  const std::int64_t before = batch.prompt_tokens();
  REQUIRE(batch.submit(client.request));
  run(batch);
  CHECK(batch.prompt_tokens() - before == 2);
}

TEST_CASE("A prompt that is scored, or was just read, is read where its results are needed") {
  const auto model = random_model(0);
  const auto packed = pack(*model, {});
  ContinuousBatch batch(*packed, {.slots = 2, .context = 200});
  const GenerationOptions options{.max_new_tokens = 3, .sampling = {.temperature = 0}};
  Client first({prompt_of(20, 1)}, options), again({prompt_of(20, 1)}, options),
      scored({prompt_of(20, 1)}, options);
  scored.request->scores_prompt = true;
  std::size_t scores = 0;
  scored.request->on_prompt = [&](std::size_t, const std::vector<ScoredToken>& known) {
    scores = known.size();
  };
  for (Client* client : {&first, &again, &scored}) {
    const std::int64_t before = batch.prompt_tokens();
    REQUIRE(batch.submit(client->request));
    run(batch);
    CHECK(batch.prompt_tokens() - before == (client == &again ? 1 : 20));
    CHECK(client->ids == alone(*packed, *client));
  }
  CHECK(scores == 19);
}

TEST_CASE("A scored prompt takes over the beginning whose scores are kept, with the same bits") {
  const WeightType weights = GENERATE(WeightType::kFloat32, WeightType::kInt8);
  const auto model = random_model(GENERATE(0, 24));
  const auto packed = pack(*model, {.weights = weights});
  const ContinuousBatch::Options sizes{.slots = 2, .context = 400, .piece = 16};
  using Scores = std::vector<std::vector<ScoredToken>>;
  const auto scores = [](ContinuousBatch& batch, const std::vector<TokenIds>& prompts,
                         std::int64_t likeliest) {
    Client client(prompts, {.max_new_tokens = 1, .sampling = {.temperature = 0}});
    client.request->likeliest = likeliest;
    client.request->scores_prompt = true;
    Scores found(prompts.size());
    client.request->on_prompt = [&](std::size_t i, const std::vector<ScoredToken>& known) {
      found[i] = known;
    };
    REQUIRE(batch.submit(client.request));
    run(batch);
    for (std::size_t i = 0; i < prompts.size(); ++i) found[i].push_back(client.tokens[i][0]);
    return found;
  };
  const auto check_equal = [](const Scores& found, const Scores& expected) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      REQUIRE(found[i].size() == expected[i].size());
      for (std::size_t t = 0; t < found[i].size(); ++t) {
        REQUIRE(found[i][t].id == expected[i][t].id);
        REQUIRE(found[i][t].log_probability == expected[i][t].log_probability);
        REQUIRE(found[i][t].likeliest == expected[i][t].likeliest);
      }
    }
  };
  const auto answered = [](std::uint64_t question, int answer) {
    TokenIds prompt = prompt_of(300, question);
    for (const TokenId id : prompt_of(8, 1)) prompt.push_back((id + answer) % 13);
    return prompt;
  };
  ContinuousBatch batch(*packed, sizes), together(*packed, sizes);
  Scores all;
  for (const auto& [question, answer, likeliest, reused] : std::vector<std::array<int, 4>>{{1, 2, 2, 0},
                                                                                           {2, 0, 2, 0},
                                                                                           {1, 3, 2, 299},
                                                                                           {1, 4, 2, 299},
                                                                                           {1, 4, 2, 307},
                                                                                           {1, 4, 3, 0},
                                                                                           {1, 5, 3, 299}}) {
    CAPTURE(question, answer, likeliest);
    const TokenIds prompt = answered(static_cast<std::uint64_t>(question), answer);
    const std::int64_t before = batch.reused_tokens();
    ContinuousBatch cold(*packed, sizes);
    all.push_back(scores(cold, {prompt}, likeliest)[0]);
    check_equal(scores(batch, {prompt}, likeliest), {all.back()});
    CHECK(batch.reused_tokens() - before == reused);
  }
  // Prompts that arrive at once read what they share once, too.
  check_equal(scores(together, {answered(1, 2), answered(1, 3), answered(1, 4)}, 2),
              {all[0], all[2], all[3]});
  CHECK(together.reused_tokens() == 2 * 299);
}
