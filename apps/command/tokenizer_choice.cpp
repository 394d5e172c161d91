#include "apps/command/tokenizer_choice.h"

#include <array>

#include "data/base/error.h"
#include "data/base/near_match.h"
#include "tokenizer/byte_tokenizer.h"
#include "tokenizer/char_tokenizer.h"
#include "tokenizer/sentencepiece_tokenizer.h"

namespace zoo {
namespace {

// A language model shall write what it has read: nothing is normalised away.
SentencePieceTokenizer learn_pieces(std::string_view text, std::int64_t vocab_size) {
  SentencePieceOptions options;
  options.vocab_size = vocab_size;
  options.normalization = "identity";
  options.remove_extra_whitespaces = false;
  options.user_defined_symbols = {"\n"};
  return SentencePieceTokenizer::train(text, options);
}

}  // namespace

std::unique_ptr<Tokenizer> choose_tokenizer(const std::string& choice, std::string_view text,
                                            std::int64_t vocab_size) {
  if (choice == "char") return std::make_unique<CharTokenizer>(CharTokenizer::train(text));
  if (choice == "byte") return std::make_unique<ByteTokenizer>();
  if (choice == "sentencepiece")
    return std::make_unique<SentencePieceTokenizer>(learn_pieces(text, vocab_size));
  std::error_code ignored;
  if (std::filesystem::is_directory(choice, ignored)) return load_tokenizer(choice);
  const std::array<std::string, 3> kinds{"char", "byte", "sentencepiece"};
  throw Error("--tokenizer: expected char, byte, sentencepiece or a directory with a tokenizer, got '",
              choice, "'", did_you_mean(choice, kinds));
}

}  // namespace zoo
