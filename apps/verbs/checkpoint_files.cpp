#include "apps/verbs/checkpoint_files.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/json_file.h"
#include "tokenizer/tokenizer.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr const char *kConfigFile = "config.json", *kGenerationFile = "generation_config.json",
                     *kModules = "modules.json";

// Files that are copied unchanged.
constexpr std::array<std::string_view, 15> kCopied{
    kGenerationFile,
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "spiece.model",
    "tokenizer.model",
    "chat_template.jinja",
    "chat_template.json",
    "sentencepiece.bpe.model",
    kModules,
    "config_sentence_transformers.json",
};

// "sentence_bert_config.json", by the model.
bool is_sentence_settings(const std::string& name) {
  return name.starts_with("sentence_") && name.ends_with("_config.json");
}

bool is_part_of_checkpoint(const std::string& name) {
  return name == kConfigFile || is_sentence_settings(name) ||
         std::find(kCopied.begin(), kCopied.end(), name) != kCopied.end() || name.ends_with(".safetensors") ||
         name.ends_with(".safetensors.index.json");
}

// Folders of the modules of Sentence-Transformers after the transformer, which lies in the directory itself.
std::set<std::string> module_folders(const fs::path& directory) {
  std::set<std::string> folders;
  const fs::path file = directory / kModules;
  if (!fs::exists(file)) return folders;
  for (const nlohmann::json& module : read_json_array(file)) {
    const std::string folder = module.is_object() ? module.value("path", "") : "";
    if (folder == ".." || fs::path(folder).filename() != folder)
      throw Error(file, ": the path '", folder, "' is not the name of a folder beside it");
    if (!folder.empty() && fs::is_directory(directory / folder)) folders.insert(folder);
  }
  return folders;
}

}  // namespace

void check_export_target(const fs::path& source, const fs::path& target) {
  std::error_code none;
  if (fs::equivalent(source, target, none))
    throw Error("--output: ", target, " is the model's own directory");
  if (!fs::is_directory(target, none) || fs::is_empty(target, none)) return;
  if (!fs::exists(target / kConfigFile)) {
    throw Error("--output: ", target,
                " is not empty and holds no checkpoint; expected a new or empty directory");
  }
  const std::set<std::string> modules = module_folders(target);
  for (const auto& entry : fs::directory_iterator(target)) {
    const std::string name = entry.path().filename().string();
    const bool known = entry.is_directory() ? modules.contains(name) : is_part_of_checkpoint(name);
    if (!known || entry.is_symlink() || entry.is_other()) {
      throw Error("--output: ", target, " holds ", name,
                  ", which would be lost; expected nothing but a checkpoint");
    }
  }
}

void copy_beside_weights(const fs::path& source, const fs::path& target) {
  if (fs::is_regular_file(source)) {  // a GGUF file
    if (has_tokenizer(source)) load_tokenizer(source)->save(target);
    fs::remove(target / kGenerationFile);
    return;
  }
  for (const std::string_view name : kCopied) {
    if (fs::exists(source / name)) write_file(target / name, read_model_file(source / name));
  }
  for (const auto& entry : fs::directory_iterator(source)) {
    const std::string name = entry.path().filename().string();
    if (is_sentence_settings(name)) write_file(target / name, read_model_file(entry.path()));
  }
  for (const std::string& name : module_folders(source))
    fs::copy(source / name, target / name, fs::copy_options::recursive);
  // Without this file transformers reads the end token from config.json; an empty file would hide it.
  if (!fs::exists(source / kGenerationFile)) fs::remove(target / kGenerationFile);
}

}  // namespace zoo
