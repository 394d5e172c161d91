#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/generation/continuous_batch.h"
#include "models/generation/module_decoder.h"
#include "models/inference/packed_decoder.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"

// What the tests of ContinuousBatch share: models, prompts, and clients that record what they are told.
namespace zoo::test {

inline std::shared_ptr<Model> long_model() {
  TransformerConfig config = small_config();
  config.max_positions = 160;
  return random_gpt(config, 7);
}

inline TokenIds prompt_of(std::size_t length, std::uint64_t seed) {
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
    request->on_failure = [this](const std::string& message, bool) { failure = message; };
  }
  Client(const Client&) = delete;

  bool ended() const {
    return std::all_of(ends.begin(), ends.end(), [](const auto& end) { return end.has_value(); });
  }
};

// The answers of generate() to the same prompts, each repeated for its samples.
inline std::vector<TokenIds> alone(DecodingModel& model, const Client& client) {
  std::vector<TokenIds> prompts;
  for (const TokenIds& prompt : client.request->prompts)
    prompts.insert(prompts.end(), static_cast<std::size_t>(client.request->samples), prompt);
  return generate(model, prompts, client.request->options).ids;
}

inline void run(ContinuousBatch& batch) {
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

}  // namespace zoo::test
