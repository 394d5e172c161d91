#include "models/tasks/answer.h"
#include "models/tasks/classify.h"
#include "models/tasks/fill_mask.h"
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

}  // namespace

TEST_CASE("Tasks name the heads that they need") {
  const TextModel bare = text_model(Head::kBase);
  CHECK(error_of([&] { classify(bare, {.texts = {"a"}}); }) ==
        "'dir' has a base head; expected sequence-classification or token-classification");
  CHECK(error_of([&] { answer_question(bare, {.question = "a", .context = "b"}); }) ==
        "'dir' has a base head; expected question-answering");
  CHECK(error_of([&] { fill_mask(bare, {.text = "a"}); }) == "'dir' has a base head; expected masked-lm");
}
