#include "data/base/atomic_file.h"
#include "data/base/json.h"
#include "models/checkpoint/checkpoint.h"
#include "models/tasks/answer.h"
#include "models/tasks/classify.h"
#include "models/tasks/fill_mask.h"
#include "models/tasks/search/rank.h"
#include "models/tasks/text_generator.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tokenizer/pipeline/char_and_byte_tokenizers.h"

using namespace zoo;
using test::error_of;

namespace {

// As many as small_config() has ids.
CharTokenizer letters() { return CharTokenizer::train("abcdefghijklm"); }

TextModel text_model(Head head) {
  TextModel model{.head = head, .tokenizer = std::make_unique<CharTokenizer>(letters())};
  model.checkpoint.directory = "dir";
  TransformerConfig config = test::small_encoder_config();
  config.num_labels = head == Head::kQuestionAnswering ? 2 : 1;
  model.model = test::random_model("bert", config, head, 3);
  model.checkpoint.config = config;
  model.checkpoint.head = head;
  return model;
}

TextEmbedder embedder() {
  return {text_model(Head::kBase).model, std::make_shared<CharTokenizer>(letters()), SentenceConfig{}, {}};
}

// A saved decoder of letters, with a generation_config.json of one number.
struct Writer {
  Writer(const char* key, std::int64_t value) {
    const auto model = test::random_gpt(test::small_config(), 5);
    save_model(*model, find_family("gpt2"), Head::kCausalLm, directory.path());
    letters().save(directory.path());
    write_json(directory / "generation_config.json", {{key, value}});
  }

  test::TemporaryDirectory directory;
};

}  // namespace

TEST_CASE("max_new_tokens of a caller overrides max_length of generation_config.json") {
  const Writer saved("max_length", 3);
  TextGenerator model(saved.directory.path());
  const auto length = [&model](const GenerationSettings& settings) {
    return model.generate({"ab"}, settings)[0].size();
  };
  GenerationSettings settings = model.settings();
  CHECK(length(settings) == 1);
  settings.max_length = 6;
  CHECK(length(settings) == 4);
  for (const std::int64_t count : {5, 200}) {  // 200: also without any file
    settings = model.settings();
    settings.options.max_new_tokens = count;
    CHECK(length(settings) == static_cast<std::size_t>(count));
  }
}

TEST_CASE("A caller's ends and first token are kept, beside stop strings") {
  GenerateSession session{
      .checkpoint = {}, .defaults = {}, .tokenizer = nullptr, .stop = StopStrings({"c"}), .pieces = nullptr};
  session.tokenizer = std::make_shared<CharTokenizer>(letters());
  session.defaults.eos_token_ids = {0};
  GenerationOptions options{.eos_token_ids = {5},
                            .decoder_start_token_id = 7,
                            .row_ends = [](const TokenIds& ids) { return ids.size() > 1; }};
  complete(options, session);
  CHECK(options.eos_token_ids == TokenIds{5});
  CHECK(options.decoder_start_token_id == 7);
  CHECK(options.row_ends({1, 1}));
  CHECK(options.row_ends({2}));
  CHECK_FALSE(options.row_ends({1}));

  const Writer saved("max_new_tokens", 4);
  TextGenerator model(saved.directory.path());
  GenerationSettings settings = model.settings();
  CHECK(model.generate({"ab"}, settings)[0].size() == 4);
  settings.options.eos_token_ids = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  CHECK(model.generate({"ab"}, settings)[0].empty());
}

TEST_CASE("Tasks name the heads that they need") {
  const TextModel bare = text_model(Head::kBase);
  CHECK(error_of([&] { classify(bare, {.texts = {"a"}}); }) ==
        "'dir' has a base head; expected sequence-classification or token-classification");
  CHECK(error_of([&] { answer_question(bare, {.question = "a", .context = "b"}); }) ==
        "'dir' has a base head; expected question-answering");
  CHECK(error_of([&] { fill_mask(bare, {.text = "a"}); }) == "'dir' has a base head; expected masked-lm");
}

TEST_CASE("Tasks name a number that is out of range") {
  const TextModel ranker = text_model(Head::kSequenceClassification), masked = text_model(Head::kMaskedLm),
                  answerer = text_model(Head::kQuestionAnswering);
  const auto answer = [&](std::optional<std::int64_t> length, std::optional<std::int64_t> stride,
                          const AnswerRules& rules) {
    return error_of([&] {
      answer_question(answerer, {.question = "a",
                                 .context = "bcdefghijklm",
                                 .max_length = length,
                                 .stride = stride,
                                 .rules = rules});
    });
  };
  CHECK(answer({}, {}, {.top_k = 0}) == "'top_k': expected at least 1, got 0");
  CHECK(answer({}, {}, {.max_answer_length = 0}) == "'max_answer_length': expected at least 1, got 0");
  CHECK(answer(-1, {}, {}) == "'max_length': expected at least 1, got -1");
  CHECK(answer({}, -1, {}) == "'stride': expected at least 0, got -1");
  const std::string negative = "'top_k': expected at least 0, got -1";
  CHECK(error_of([&] { fill_mask(masked, {.text = "a", .top_k = -1}); }) == negative);
  CHECK(error_of([&] { rank(ranker, {.query = "a", .documents = {"b"}, .top_k = -1}); }) == negative);
  const SearchEmbedders search = search_embedders(embedder(), {});
  CHECK(error_of([&] { rank(search, {.query = "a", .documents = {"b"}, .top_k = -1}); }) == negative);
  CHECK(error_of([&] { rank(search, {.query = "a", .documents = {"b"}, .batch_size = -1}); }) ==
        "'batch_size': expected at least 1, got -1");
  const std::string no_batch = "'batch_size': expected at least 1, got 0";
  CHECK(error_of([] { embedder().pass(0); }) == no_batch);
  CHECK(error_of([&] { classify(ranker, {.texts = {"a"}, .batch_size = 0}); }) == no_batch);
}

TEST_CASE("Pairs are as many as the texts") {
  const TextModel model = text_model(Head::kSequenceClassification);
  CHECK(error_of([&] {
          classify(model, {.texts = {"a"}, .pairs = {"b", "c"}});
        }) == "'pairs': 2 for 1 texts");
  CHECK(error_of([&] {
          classify(model, {.texts = {"a", "b", "c"}, .pairs = {"d"}});
        }) == "'pairs': 1 for 3 texts");
}

TEST_CASE("A missing directory gives no embedder, and no texts no vectors") {
  CHECK(error_of([] { TextEmbedder("/missing"); }) == error_of([] { TextGenerator("/missing"); }));
  CHECK(embedder().embed({}).sizes() == at::IntArrayRef{0, 12});
}
