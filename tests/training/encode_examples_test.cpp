#include "apps/training/batches/encode_examples.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/write_bytes.h"
#include "tokenizer/tokenizer.h"

using namespace zoo;

TEST_CASE("An answer's tokens are those that share a character with it") {
  const test::TemporaryDirectory directory;
  test::write_bytes(directory / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n##c\n");
  test::write_bytes(directory / "tokenizer_config.json", "{}");
  const auto tokenizer = load_tokenizer(directory.path());
  const auto answer = [&](ByteRange range, std::size_t longest) {
    EncodeLimits limits{.max_length = longest};
    const Question question{.line = 1, .question = "a", .context = "abc", .answer = range};
    return encode_questions({question}, *tokenizer, "q.jsonl", limits)[0].labels;
  };
  using Tokens = std::vector<std::int64_t>;
  // [CLS] a [SEP] a ##b ##c [SEP]
  CHECK(answer({0, 1}, 7) == Tokens{3, 3});
  CHECK(answer({1, 2}, 7) == Tokens{4, 4});
  CHECK(answer({1, 3}, 7) == Tokens{4, 5});
  CHECK(answer({1, 3}, 6) == Tokens{0, 0});  // cut off in part
  CHECK(answer({}, 7) == Tokens{0, 0});
}
