#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "tokenizer/tokenizer.h"

namespace zoo {

/// Reads a tokenizer.json of Hugging Face's `tokenizers`, of the kinds char and byte. Throws Error naming the
/// file and the key that is missing, has the wrong type, or asks for something that is not supported.
std::unique_ptr<Tokenizer> read_tokenizer_json(const std::filesystem::path& path);

/// Write tokenizer.json and tokenizer_config.json into an existing directory; pieces[id] is the vocabulary's
/// text of id.
void write_char_tokenizer_json(const std::filesystem::path& directory, std::span<const std::string> pieces);
void write_byte_tokenizer_json(const std::filesystem::path& directory, std::span<const std::string> pieces);

}  // namespace zoo
