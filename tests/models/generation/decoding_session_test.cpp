#include <c10/core/InferenceMode.h>

#include "data/base/error.h"
#include "models/generation/decoding_batch.h"
#include "models/generation/module_decoder.h"
#include "models/inference/packed_decoder.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/message_of.h"

using namespace zoo;
using Catch::Contains;
using zoo::test::relative_error;
using Logits = DecodingSession::Logits;

namespace {

std::shared_ptr<Model> decoder_with(PositionKind position) {
  TransformerConfig config;
  config.vocab_size = 17;
  config.hidden_size = 16;
  config.num_layers = config.num_heads = 2;
  config.max_positions = 16;
  config.position = position;
  return test::random_model("gpt2", config, Head::kCausalLm, 3);
}

// A session, and beside it what each of its rows has read.
struct Watched {
  Model& model;
  std::unique_ptr<DecodingSession> session;
  std::vector<TokenIds> rows, sources;  // no sources for a decoder

  // Logits [T, V] of a pass over a row alone.
  at::Tensor alone(std::size_t row) const {
    const at::Tensor ids = at::tensor(rows[row], at::kLong).unsqueeze(0);
    if (sources.empty()) return model.forward({.input_ids = ids}).logits[0];
    const at::Tensor source = at::tensor(sources[row], at::kLong).unsqueeze(0);
    return model.forward({.input_ids = source, .decoder_input_ids = ids}).logits[0];
  }

  void read(const std::vector<TokenIds>& tokens, Logits wanted) {
    const at::Tensor found = session->read(tokens, wanted);
    REQUIRE(found.size(0) == session->rows());
    for (std::size_t row = 0; row < tokens.size(); ++row) {
      rows[row].insert(rows[row].end(), tokens[row].begin(), tokens[row].end());
      const auto number = static_cast<std::int64_t>(row),
                 count = static_cast<std::int64_t>(tokens[row].size());
      REQUIRE(session->length(number) == static_cast<std::int64_t>(rows[row].size()));
      const at::Tensor expected = alone(row);
      INFO("row " << row << " of " << rows[row].size() << " tokens");
      if (wanted == Logits::kLast) {
        CHECK(relative_error(found[number], expected[-1]) < 1e-5);
      } else {
        CHECK(relative_error(found[number].slice(0, 0, count), expected.slice(0, -count)) < 1e-5);
      }
    }
  }

  void select(const std::vector<std::int64_t>& chosen) {
    session->select(chosen);
    for (auto* all : {&rows, &sources}) {
      std::vector<TokenIds> some;
      if (!all->empty())
        for (const std::int64_t row : chosen) some.push_back((*all)[static_cast<std::size_t>(row)]);
      *all = some;
    }
  }

  void rewind(std::int64_t row, std::int64_t length) {
    session->rewind(row, length);
    rows[static_cast<std::size_t>(row)].resize(static_cast<std::size_t>(length));
  }
};

// Everything that decoding does with a session, after rows that have read their first tokens.
void check_steps(Watched& watched) {
  watched.read({{1}, {2, 3, 4}, {5, 6}}, Logits::kLast);  // of different lengths after a past
  watched.read({{7}, {8}, {9}}, Logits::kLast);
  watched.select({2, 0, 2, 1});  // one row twice
  watched.read({{1}, {2}, {3}, {4}}, Logits::kAll);
  watched.rewind(1, 2);
  watched.rewind(3, 0);
  watched.read({{11, 12}, {13}, {14, 15, 16}, {1, 2}}, Logits::kAll);
  watched.rewind(0, 3);
  watched.select({0, 2});
  watched.read({{3, 2, 1}, {6}}, Logits::kLast);
  watched.select({1});  // the shorter one has left
  watched.read({{4}}, Logits::kLast);
  watched.rewind(0, 0);
  watched.read({{9, 8, 7, 6}}, Logits::kAll);
}

}  // namespace

TEST_CASE("A session's rows read, repeat, leave and go back as each would alone") {
  const c10::InferenceMode inference;
  const auto position = GENERATE(PositionKind::kLearned, PositionKind::kSinusoidal, PositionKind::kRotary,
                                 PositionKind::kAlibi, PositionKind::kNone);
  const auto model = decoder_with(position);
  ModuleDecoder decoder(*model);
  Watched watched{*model, decoder.begin(3, 16), std::vector<TokenIds>(3), {}};
  SECTION("prompts of different lengths") {
    watched.read({{1, 2, 3, 4, 5}, {6}, {7, 8, 9}}, GENERATE(Logits::kLast, Logits::kAll));
  }
  SECTION("prompts of one length") { watched.read({{1, 2}, {6, 5}, {7, 8}}, Logits::kLast); }
  check_steps(watched);
}

TEST_CASE("The rows of an encoder-decoder's session keep their sources") {
  const c10::InferenceMode inference;
  const auto& [family, config] = GENERATE(from_range(test::small_encoder_decoders()));
  CAPTURE(family);
  const auto model = test::random_model(family, config, Head::kSeq2SeqLm, 3);
  ModuleDecoder decoder(*model);
  const std::vector<TokenIds> sources{{3, 1, 4, 1, 5}, {9, 2, 6, 5, 3, 5, 8}, {7}};
  Watched watched{*model, decoder.begin(sources, 16), std::vector<TokenIds>(3), sources};
  SECTION("all begin with one token") { watched.read({{0}, {0}, {0}}, Logits::kLast); }
  SECTION("a row begins with more") { watched.read({{0}, {0, 4, 5}, {0, 3}}, Logits::kAll); }
  SECTION("the rows change before anything is read") {
    watched.select({2, 2, 0});
    watched.read({{0}, {0}, {0}}, Logits::kLast);
  }
  check_steps(watched);
}

TEST_CASE("A row that is added reads as it would alone") {
  const c10::InferenceMode inference;
  const auto model =
      decoder_with(GENERATE(PositionKind::kLearned, PositionKind::kRotary, PositionKind::kAlibi));
  const bool packed = GENERATE(true, false);
  std::unique_ptr<DecodingModel> decoder = std::make_unique<ModuleDecoder>(*model);
  if (packed) decoder = pack(*model, {});
  // Packed weights have slots for three rows; the fourth needs another one.
  Watched watched{*model, decoder->begin(packed ? 3 : 1, 16), std::vector<TokenIds>(packed ? 3 : 1), {}};
  const auto add_row = [&] {
    watched.session->add_row();
    watched.rows.emplace_back();
  };
  if (packed) watched.select({0});
  watched.read({{1, 2, 3, 4}}, Logits::kLast);
  add_row();
  watched.read({{5}, {6, 7, 8}}, GENERATE(Logits::kLast, Logits::kAll));
  add_row();
  add_row();
  watched.read({{9}, {8}, {7, 6, 5, 4, 3}, {2}}, Logits::kLast);
  watched.select({2, 3});  // their slots are given on
  add_row();
  watched.read({{1}, {2}, {3, 4}}, Logits::kLast);
}

TEST_CASE("An encoder-decoder's session takes no row without a source") {
  const auto forms = test::small_encoder_decoders();
  const auto& [family, config] = forms.front();
  const auto model = test::random_model(family, config, Head::kSeq2SeqLm, 3);
  ModuleDecoder modules(*model);
  const auto packed = pack(*model, {});
  for (DecodingModel* decoder :
       {static_cast<DecodingModel*>(&modules), static_cast<DecodingModel*>(packed.get())}) {
    const auto session = decoder->begin({{1, 2}}, 4);
    CHECK_THAT(test::error_of([&] { session->add_row(); }), Contains("no further rows"));
  }
}

TEST_CASE("A session refuses what it cannot read, with the numbers") {
  const auto model = decoder_with(PositionKind::kLearned);
  ModuleDecoder decoder(*model);
  const auto session = decoder.begin(2, 4);
  session->read({{1, 2, 3}, {1}});
  CHECK_THAT(test::error_of([&] {
               session->read({{1, 2}, {3}});
             }),
             Contains("4 tokens") && Contains("row 0 would hold 5"));
  CHECK_THAT(test::error_of([&] { session->read({{1}}); }), Contains("2 rows") && Contains("of 1"));
  CHECK_THAT(test::error_of([&] { session->read({{1}, {}}); }), Contains("row 1"));
  CHECK_THAT(test::error_of([&] { session->rewind(1, 2); }), Contains("1 tokens") && Contains("to 2"));
  CHECK_THAT(test::error_of([&] { session->select({}); }), Contains("keep a row"));
  CHECK(session->length(0) == 3);
}

TEST_CASE("A source that an encoder would read for minutes is refused with the numbers") {
  TransformerConfig config = find_preset("t5-tiny").preset.config;
  config.vocab_size = 17;
  const std::vector<TokenIds> longest{TokenIds(8192, 1)}, longer{TokenIds(8193, 1)};
  CHECK(first_tokens(config, longest, 0) == std::vector<TokenIds>{{0}});
  CHECK_THAT(test::message_of([&] { first_tokens(config, longer, 0); }),
             Contains("8193 tokens") && Contains("8192"));
}

TEST_CASE("A decoder of modules leaves its model as it was") {
  const auto model = decoder_with(PositionKind::kLearned);
  model->train();
  {
    const ModuleDecoder decoder(*model);
    CHECK_FALSE(model->is_training());
  }
  CHECK(model->is_training());
}
