#include "apps/command/tokenizer_choice.h"

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/near_match.h"
#include "tokenizer/learning/subword_trainers.h"
#include "tokenizer/pipeline/char_and_byte_tokenizers.h"
#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"

namespace zoo {
namespace {

// Without normalization, because a language model must reproduce its training text exactly.
SentencePieceTokenizer learn_pieces(std::string_view text, std::int64_t vocab_size) {
  SentencePieceOptions options;
  options.vocab_size = vocab_size;
  options.normalization = "identity";
  options.remove_extra_whitespaces = false;
  options.user_defined_symbols = {"\n"};
  return SentencePieceTokenizer::train(text, options);
}

// Reads the trained tokenizer from its saved files, the same as in a checkpoint.
template <class Save> std::unique_ptr<Tokenizer> saved_and_read(Save save) {
  const AtomicDirectory scratch(temporary_folder() / "tzoo-tokenizer");
  save(scratch.path());
  return load_tokenizer(scratch.path());
}

std::unique_ptr<Tokenizer> learn_byte_bpe(std::string_view text, std::int64_t vocab_size) {
  const BpeTrainerOptions options{.vocab_size = vocab_size};
  const LearntMerges learnt = train_bpe(text, options);
  return saved_and_read([&](const auto& directory) { save_bpe(learnt, options, directory); });
}

std::unique_ptr<Tokenizer> learn_wordpiece(std::string_view text, std::int64_t vocab_size) {
  const WordPieceTrainerOptions options{.vocab_size = vocab_size};
  const std::vector<std::string> tokens = train_wordpiece(text, options);
  return saved_and_read([&](const auto& directory) { save_wordpiece(tokens, options, directory); });
}

}  // namespace

void require_same_kind(const std::filesystem::path& out_dir, std::string_view kind) {
  if (!has_tokenizer(out_dir)) return;
  if (const auto present = load_tokenizer(out_dir); present->kind() != kind)
    throw Error("--out_dir: ", out_dir, " already holds a tokenizer of kind ", present->kind(),
                "; choose another directory for ", kind);
}

std::string smaller_vocabulary(const std::string& choice, std::int64_t wanted, std::int64_t made) {
  const bool sized = choice == "byte_bpe" || choice == "wordpiece" || choice == "sentencepiece";
  if (!sized || made >= wanted) return "";
  return "note: --vocab_size " + std::to_string(wanted) + ": the text has enough for " +
         std::to_string(made) + " tokens only\n";
}

std::unique_ptr<Tokenizer> choose_tokenizer(const std::string& choice, std::string_view text,
                                            std::int64_t vocab_size) {
  if (choice == "char") return std::make_unique<CharTokenizer>(CharTokenizer::train(text));
  if (choice == "byte") return std::make_unique<ByteTokenizer>();
  if (choice == "byte_bpe") return learn_byte_bpe(text, vocab_size);
  if (choice == "wordpiece") return learn_wordpiece(text, vocab_size);
  if (choice == "sentencepiece")
    return std::make_unique<SentencePieceTokenizer>(learn_pieces(text, vocab_size));
  std::error_code ignored;
  if (std::filesystem::is_directory(choice, ignored)) return load_tokenizer(choice);
  throw Error(
      "--tokenizer: expected char, byte, byte_bpe, wordpiece, sentencepiece or a directory with a "
      "tokenizer, got '",
      choice, "'", did_you_mean(choice, kTokenizerKinds));
}

}  // namespace zoo
