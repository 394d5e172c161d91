#include "models/tasks/answer.h"
#include "models/tasks/classify.h"
#include "models/tasks/fill_mask.h"
#include "models/tasks/rank.h"
#include "tests/models/support.h"
#include "tests/support/catch.h"
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

}  // namespace

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
