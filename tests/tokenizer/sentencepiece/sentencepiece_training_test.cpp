#include <fcntl.h>
#include <unistd.h>

#include "tests/support/temporary_directory.h"
#include "tests/tokenizer/support.h"
#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"

using namespace zoo;
using test::Ids;
using test::message_of;

namespace {

const std::string kText =
    "the cat sat on the mat\nthe dog sat on the cat\nthe mat was on the dog\nwho let the dogs out of the "
    "house\n";

SentencePieceOptions small(std::int64_t vocab_size = 25) {
  SentencePieceOptions options;
  options.vocab_size = vocab_size;
  options.num_threads = 1;
  return options;
}

std::string fault_of(std::string_view text, const SentencePieceOptions& options) {
  return message_of([&] { SentencePieceTokenizer::train(text, options); });
}

/// Returns the text that the program and the library write to stderr during `action`.
template <class Action> std::string stderr_of(Action action) {
  const test::TemporaryDirectory directory;
  const int saved = ::dup(2);
  const int file = ::open((directory / "stderr").c_str(), O_WRONLY | O_CREAT, 0600);
  ::dup2(file, 2);
  ::close(file);
  action();
  ::dup2(saved, 2);
  ::close(saved);
  return test::read_bytes(directory / "stderr");
}

}  // namespace

TEST_CASE("A trained model has the size and special ids asked for, and is the same after saving") {
  const test::TemporaryDirectory directory;
  SentencePieceOptions options = small();
  options.model = GENERATE(SentencePieceOptions::Model::unigram, SentencePieceOptions::Model::bpe);
  const auto trained = SentencePieceTokenizer::train(kText, options);
  CHECK(trained.vocab_size() == 25);
  CHECK(trained.token_text(0) == "<pad>");
  CHECK(trained.token_text(1) == "</s>");
  CHECK(trained.token_text(2) == "<unk>");
  CHECK(trained.eos_id() == 1);
  const Ids ids = trained.encode("the dogs sat");
  CHECK(trained.decode(ids) == "the dogs sat");
  trained.save(directory.path());
  const auto loaded = load_tokenizer(directory.path());
  CHECK(loaded->encode("the dogs sat") == ids);
  // Training is deterministic.
  CHECK(SentencePieceTokenizer::train(kText, options).encode(kText) == trained.encode(kText));
}

TEST_CASE("The first merge of BPE is the most frequent pair") {
  SentencePieceOptions options = small(9);
  options.model = SentencePieceOptions::Model::bpe;
  // Characters: a b c and the space; pairs: ab 4 times, ca once. Three special tokens, two merges.
  const auto tokenizer = SentencePieceTokenizer::train("abab\nabab\ncab\nc", options);
  CHECK(tokenizer.token_text(3) == "ab");
}

TEST_CASE("A vocabulary too large or too small for the text is one clear error") {
  CHECK_THAT(fault_of(kText, small(5000)),
             Catch::StartsWith("cannot train a sentencepiece model: Vocabulary size too high (5000). "
                               "Please set it to a value <= "));
  CHECK_THAT(fault_of(kText, small(8)),
             Catch::StartsWith(
                 "cannot train a sentencepiece model: Vocabulary size is smaller than required_chars."));
}

TEST_CASE("A text without anything to learn is an error and does not end the process") {
  const auto text =
      GENERATE(as<std::string>{}, "", "\n\n", "   \n \t\n", "\u200B\n", "\u2585\u2585", "\u3000");
  SentencePieceOptions options = small();
  options.model = GENERATE(SentencePieceOptions::Model::unigram, SentencePieceOptions::Model::bpe);
  CHECK(fault_of(text, options) ==
        "cannot train a sentencepiece model: the training text has no characters to learn");
}

TEST_CASE("A text of user-defined symbols alone does not end the process") {
  SentencePieceOptions options = small();
  options.user_defined_symbols = {"abc"};
  CHECK_THAT(fault_of("abc\nabcabc", options), Catch::Contains("Vocabulary size too high (25)"));
}

TEST_CASE("A wrong option is named") {
  SentencePieceOptions options = small();
  options.vocab_size = 0;
  CHECK(fault_of(kText, options) == "sentencepiece vocab_size 0: expected 1 to 16777216");
  options = small();
  options.character_coverage = 0.5;
  CHECK(fault_of(kText, options) == "sentencepiece character_coverage 0.5: expected 0.98 to 1");
  options = small();
  options.num_threads = 0;
  CHECK(fault_of(kText, options) == "sentencepiece num_threads 0: expected 1 to 128");
  options = small();
  options.normalization = "none";
  CHECK_THAT(fault_of(kText, options), Catch::Contains("No precompiled charsmap is found: none"));
  options = small();
  options.user_defined_symbols = {"a", ""};
  CHECK_THAT(fault_of(kText, options), Catch::StartsWith("a user-defined symbol must not be empty"));
  CHECK(fault_of("a\n\xFF", small()) == "invalid UTF-8 in the training text at byte 2 (line 2)");
}

TEST_CASE("Line ends, quotes and commas can be symbols") {
  SentencePieceOptions options = small(30);
  options.normalization = "identity";
  options.remove_extra_whitespaces = false;
  options.user_defined_symbols = {"\n", ",", "\"", "a, \"b\""};
  const auto tokenizer = SentencePieceTokenizer::train(kText, options);
  CHECK(tokenizer.token_text(3) == "\n");
  CHECK(tokenizer.token_text(4) == ",");
  CHECK(tokenizer.token_text(5) == "\"");
  CHECK(tokenizer.decode(tokenizer.encode(kText)) == kText);
}

TEST_CASE("A text without line ends is learnt whole, whatever the library's longest line") {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "one two three four ";
  text += "zebra";
  SentencePieceOptions options = small(20);
  options.character_coverage = 1;
  const auto tokenizer = SentencePieceTokenizer::train(text, options);
  CHECK(tokenizer.decode(tokenizer.encode("one zebra")) == "one zebra");
  // Without a space to cut at: cuts between characters of three bytes.
  std::string signs;
  for (int i = 0; i < 5000; ++i) signs += i % 3 == 0 ? "\u4E16" : "\u754C";
  const auto learnt = SentencePieceTokenizer::train(signs, small(8));
  CHECK(learnt.decode(learnt.encode("\u4E16\u754C\u754C")) == "\u4E16\u754C\u754C");
}

TEST_CASE("A line that holds the library's reserved character is learnt without it") {
  const auto tokenizer =
      SentencePieceTokenizer::train("the cat \u2585 sat\n\u2585\u2585zebra\u2585", small(13));
  CHECK(tokenizer.decode(tokenizer.encode("zebra sat")) == "zebra sat");
}

TEST_CASE("The library is silent in training and in failing") {
  const std::string written = stderr_of([] {
    SentencePieceTokenizer::train(kText, small());
    try {
      SentencePieceTokenizer::train(kText, small(5000));
    } catch (const Error&) {
    }
    try {
      SentencePieceTokenizer::train(" ", small());
    } catch (const Error&) {
    }
  });
  CHECK(written.empty());
}
