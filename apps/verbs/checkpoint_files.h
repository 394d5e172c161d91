#pragma once

#include <filesystem>

namespace zoo {

/// Throws Error unless `target` is new, empty, or a checkpoint and nothing else: export replaces it.
void check_export_target(const std::filesystem::path& source, const std::filesystem::path& target);

/// Copies what lies beside the weights and config.json: generation_config.json, the tokenizer's files, and
/// the files and folders of Sentence-Transformers. Of a GGUF file, writes its tokenizer.
void copy_beside_weights(const std::filesystem::path& source, const std::filesystem::path& target);

}  // namespace zoo
