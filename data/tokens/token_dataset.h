#pragma once

/// @file
/// Use:
///
///     const auto tokenizer = zoo::CharTokenizer::train(text);  // or any other
///     zoo::write_text_as_tokens("tokens", text, zoo::validation_begin(text), tokenizer,
///                               zoo::TextEncoder::of(tokenizer), /*threads=*/0, [](std::size_t) {});
///     const zoo::TokenDataset dataset = zoo::load_token_dataset("tokens");
///     std::cout << dataset.train.size() << " ids\n";

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokens/encode_parts.h"
#include "data/tokens/token_file.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// The two splits of a text as ids. vocab_size is unknown for a directory from nanoGPT.
struct TokenDataset {
  TokenFile train, val;
  std::optional<std::int64_t> vocab_size = std::nullopt;
  std::vector<TokenDataset> others = {};  // a mixture's other datasets
  double weight = 1;                      // in a mixture: what its share of the rows is in proportion to
};

/// Encodes a UTF-8 text. The last tenth of its characters (not bytes) is the validation split, exactly as in
/// nanoGPT's data/shakespeare_char/prepare.py: train = text[:int(n * 0.9)]. Throws as the tokenizer does.
TokenDataset tokenize_dataset(std::string_view text, const Tokenizer& tokenizer);

/// The byte of a UTF-8 text at which the validation split of tokenize_dataset() begins.
std::size_t validation_begin(std::string_view text);

/// The ids of a UTF-8 text in an unnamed file in `directory`, which is freed with the last copy; few are in
/// memory at a time. `encoder` makes ids of the tokenizer's vocabulary. progress(bytes) receives the amount
/// encoded so far. Throws Error as the encoder does, and if the disk is full.
TokenFile tokens_on_disk(std::string_view text, const Tokenizer& tokenizer, const TextEncoder& encoder,
                         const std::string& name, const std::filesystem::path& directory,
                         const std::function<void(std::size_t bytes)>& progress);

struct TokenCounts {
  std::size_t train = 0, val = 0;
};

/// The ids of both splits as meta.json, val.bin and finally train.bin in `directory`, each file written
/// atomically; creates the directory and first removes an older dataset. The validation split begins at the
/// byte `validation`. Encodes on this many threads (0: one per processor), with few ids in memory at a time.
/// progress(bytes) gets the amount encoded so far. Throws as tokenize_dataset(), leaving no dataset.
TokenCounts write_text_as_tokens(const std::filesystem::path& directory, std::string_view text,
                                 std::size_t validation, const Tokenizer& tokenizer,
                                 const TextEncoder& encoder, std::size_t threads,
                                 const std::function<void(std::size_t bytes)>& progress);

/// Removes train.bin, without which `directory` is no dataset.
void remove_token_dataset(const std::filesystem::path& directory);

/// True if `directory` holds a train.bin.
bool is_token_dataset(const std::filesystem::path& directory);

/// Maps a directory from write_text_as_tokens, or from nanoGPT: train.bin and val.bin of uint16 without
/// meta.json. Checks sizes against meta.json and all ids against vocab_size (if that is unknown, call
/// require_ids_below). Throws Error naming the file and key.
TokenDataset load_token_dataset(const std::filesystem::path& directory);

}  // namespace zoo
