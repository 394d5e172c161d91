#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/files/tokenizer_settings.h"

namespace zoo {

/// Reads the sentencepiece model of mBART, mBART-50 (sentencepiece.bpe.model), PEGASUS (spiece.model) or
/// DeBERTa (spm.model) as the class of transformers that settings.tokenizer_class names. The class puts
/// additional tokens before the pieces, which shifts their ids, or after them: mBART's languages, DeBERTa's
/// mask. Throws Error naming the file and what is wrong.
std::unique_ptr<Tokenizer> read_shifted_pieces(const std::filesystem::path& path, TokenizerSettings settings);

/// Languages of mBART or, if `has_50`, of mBART-50, in the order of their classes.
std::vector<std::string_view> mbart_languages(bool has_50);

}  // namespace zoo
