#pragma once

/// @file
/// Use:
///
///     const zoo::SentenceConfig config = zoo::SentenceConfig::read("all-MiniLM-L6-v2");
///     for (const zoo::SentenceConfig::Module& module : config.modules) std::cout << module.type << "\n";

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/base/model_path.h"

namespace zoo {

/// Settings of a Sentence-Transformers directory (versions 2 to 6); without modules.json of a model alone.
struct SentenceConfig {
  /// A module that modules.json lists after the transformer.
  struct Module {
    std::string type;  // "Pooling"
    std::filesystem::path directory;
  };

  ModelPath transformer;                  // directory of the model and its tokenizer, or a GGUF file
  std::string pooling = "mean";           // of a model alone
  std::vector<Module> modules;            // in the order in which they run; empty without modules.json
  std::optional<std::size_t> max_length;  // "max_seq_length"
  bool lowercase = false;                 // "do_lower_case"
  std::map<std::string, std::string> prompts;
  std::string default_prompt;               // text before each text
  std::string similarity = "cosine";        // "similarity_fn_name": cosine, dot, euclidean, manhattan
  std::string activation;                   // "activation_fn" of a CrossEncoder
  std::optional<std::size_t> truncate_dim;  // leading numbers of a vector that are kept

  /// True if modules.json has a Pooling. A directory without may be a CrossEncoder, a classifier of pairs.
  static bool pools(const std::filesystem::path& directory);

  /// Throws Error naming the file and the key or type that the zoo does not know.
  static SentenceConfig read(const ModelPath& directory);

  /// Prompts and activation of a CrossEncoder's directory (version 6).
  static SentenceConfig read_pair_settings(const std::filesystem::path& directory);

  /// Throws Error listing the names if there is no such prompt.
  const std::string& prompt_named(const std::string& name) const;
};

}  // namespace zoo
