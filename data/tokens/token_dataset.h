#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "data/tokens/token_file.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// The two splits of a text as ids. The optional parts are unknown of a directory that nanoGPT has written.
struct TokenDataset {
  TokenFile train, val;
  std::optional<std::int64_t> vocab_size = std::nullopt;
  std::string tokenizer = "";      // its kind, "char"
  std::string source_sha256 = "";  // of the text
};

/// Encodes a UTF-8 text. The last tenth of its characters (not bytes) is the validation split, cut exactly as
/// in nanoGPT's data/shakespeare_char/prepare.py: train = text[:int(n * 0.9)]. Throws Error where the
/// tokenizer does.
TokenDataset tokenize_dataset(std::string_view text, const Tokenizer& tokenizer);

/// Writes train.bin, val.bin and, last, meta.json into `directory`, which is made if need be; each file
/// atomically. Give it an AtomicDirectory's path() where the three must change in one step. Needs
/// dataset.vocab_size.
void write_token_dataset(const std::filesystem::path& directory, const TokenDataset& dataset);

/// True if `directory` holds a train.bin.
bool is_token_dataset(const std::filesystem::path& directory);

/// Maps what write_token_dataset has written, or a directory of nanoGPT's: train.bin and val.bin of uint16
/// without a meta.json. Sizes are checked against meta.json and all ids against vocab_size (call
/// require_ids_below where vocab_size is unknown). Throws Error naming the file and key.
TokenDataset load_token_dataset(const std::filesystem::path& directory);

}  // namespace zoo
