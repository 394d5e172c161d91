#include "apps/verbs/checkpoint_files.h"

#include <algorithm>
#include <array>
#include <set>

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "models/checkpoint/peft_adapter.h"
#include "tokenizer/chat/chat_format.h"
#include "tokenizer/tokenizer.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr const char *kConfigFile = "config.json", *kGenerationFile = "generation_config.json",
                     *kModules = "modules.json", *kTokenizerSettings = "tokenizer_config.json",
                     *kMoreTemplates = "additional_chat_templates";

enum class FileKind { kGeneration, kTokenizer, kTemplate, kSentences, kDocument };

const std::map<FileKind, std::set<std::string>> kBesideWeights{
    {FileKind::kGeneration, {kGenerationFile}},
    {FileKind::kTokenizer,
     {"tokenizer.json", kTokenizerSettings, "special_tokens_map.json", "added_tokens.json", "vocab.json",
      "merges.txt", "vocab.txt", "spiece.model", "tokenizer.model", "sentencepiece.bpe.model", "spm.model",
      "source.spm", "target.spm"}},
    // The last one is a folder.
    {FileKind::kTemplate, {"chat_template.jinja", "chat_template.json", kMoreTemplates}},
    // The first one names folders.
    {FileKind::kSentences, {kModules, "config_sentence_transformers.json"}},
    // The first one is the model card.
    {FileKind::kDocument, {"README.md", "LICENSE", "LICENSE.txt", "NOTICE"}},
};

// Keys of generation_config.json that decide nothing about what is written, or that each format has.
const std::set<std::string> kOfFile{"_from_model_config",    "transformers_version", "use_cache",
                                    "bos_token_id",          "eos_token_id",         "pad_token_id",
                                    "decoder_start_token_id"};

// Of the model in any framework's form.
bool holds_weights(const std::string& name) {
  constexpr std::array kBegins{"pytorch_model", "tf_model", "flax_model", "rust_model"};
  return name.find(".safetensors") != name.npos ||
         std::ranges::any_of(kBegins, [&](const char* begin) { return name.starts_with(begin); });
}

// Of a file or a folder; folders of modules, whose names are free, are not in the list.
std::optional<FileKind> kind_of(const std::string& name) {
  if (name.starts_with("sentence_") && name.ends_with("_config.json"))
    return FileKind::kSentences;  // sentence_bert_config.json, by the model
  for (const auto& [kind, names] : kBesideWeights)
    if (names.contains(name)) return kind;
  return std::nullopt;
}

// Documents are not: an export must not replace what somebody has written.
bool is_part_of_checkpoint(const std::string& name) {
  const std::optional<FileKind> kind = kind_of(name);
  return name == kConfigFile || (kind && *kind != FileKind::kDocument) || name.ends_with(".safetensors") ||
         name.ends_with(".safetensors.index.json") || name.ends_with(".onnx") || name.ends_with(".onnx_data");
}

// Folders of further chat templates, and of Sentence-Transformers' modules except the transformer.
std::set<std::string> folders_of(const fs::path& directory) {
  std::set<std::string> folders;
  if (fs::is_directory(directory / kMoreTemplates)) folders.insert(kMoreTemplates);
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

// Adds a file, or all files of a folder, by their paths from `root`.
void add_files(const fs::path& root, const fs::path& path, std::map<std::string, std::string>& files) {
  const auto add = [&](const fs::path& file) {
    files[file.lexically_relative(root).string()] = read_model_file(file);
  };
  if (!fs::is_directory(path)) return add(path);
  for (const auto& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file()) add(entry.path());
}

// All keys of the source, since it has more than the zoo reads; of what the zoo writes, those that the source
// leaves to a default, and those in which the saved model is not the source's.
nlohmann::json merged_config(const CheckpointConfig& source, const nlohmann::json& saved) {
  nlohmann::json merged = *source.json;
  const nlohmann::json before = source.family->write_config(source.config);
  for (const auto& [key, value] : before.items())
    if (!saved.contains(key)) merged.erase(key);
  for (const auto& [key, value] : saved.items()) {
    // The plain labels are a default, which only the source's file may state.
    const bool is_label = key == "id2label" || key == "label2id";
    const bool changed = before.contains(key) ? before.at(key) != value : is_label;
    if (changed || (!merged.contains(key) && !value.is_null())) merged[key] = value;
  }
  if (merged.contains("id2label")) merged.erase("num_labels");
  merged["architectures"] = saved.at("architectures");
  merged["dtype"] = saved.at("dtype");
  // The key's name in transformers 4.
  if (merged.contains("torch_dtype")) merged["torch_dtype"] = saved.at("dtype");
  return merged;
}

}  // namespace

void check_export_target(const fs::path& source, const fs::path& target) {
  std::error_code none;
  if (fs::equivalent(source, target, none))
    throw Error("--output: ", target, " is the model's own directory");
  if (!fs::is_directory(target, none) || fs::is_empty(target, none)) return;
  if (!fs::exists(target / kConfigFile))
    throw Error("--output: ", target,
                " is not empty and holds no checkpoint; expected a new or empty directory");
  const std::set<std::string> folders = folders_of(target);
  for (const auto& entry : fs::directory_iterator(target)) {
    const std::string name = entry.path().filename().string();
    const bool known = entry.is_directory() ? folders.contains(name) : is_part_of_checkpoint(name);
    if (!known || entry.is_symlink() || entry.is_other())
      throw Error("--output: ", target, " holds ", name,
                  ", which would be lost; expected nothing but a checkpoint");
  }
}

void check_output_file(const fs::path& model, const fs::path& output) {
  std::error_code none;
  bool own = fs::equivalent(model, output, none);
  for (const auto& entry : fs::directory_iterator(model, none)) {
    const std::string name = entry.path().filename().string();
    // Other .safetensors files there may be earlier outputs.
    const bool weights = name.starts_with("model") || name == PackedParts::kFile;
    const bool part = name.ends_with(".safetensors") ? weights : is_part_of_checkpoint(name);
    own = own || (part && fs::equivalent(entry.path(), output, none));
  }
  if (own) throw Error("--output: ", output, " is a file of the model; expected another place");
}

std::vector<std::string> files_beside_adapter(const fs::path& adapter) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(adapter)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with('.') && name != kAdapterConfig && name != kAdapterWeights)
      names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

ModelFiles::ModelFiles(const CheckpointConfig& source) : source_(source) {
  const ModelPath& model = source.directory;
  if (fs::is_regular_file(model)) {  // a GGUF file
    const AtomicDirectory scratch(temporary_folder() / "tzoo-gguf-tokenizer");
    if (has_tokenizer(model)) load_tokenizer(model)->save(scratch.path());
    add_files(scratch.path(), scratch.path(), files_);
    files_.merge(ChatFormat::read(model).files());
  } else {
    const std::set<std::string> folders = folders_of(model);
    for (const auto& entry : fs::directory_iterator(model)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_directory() ? folders.contains(name) : kind_of(name).has_value())
        add_files(model, entry.path(), files_);
      else if (!name.starts_with('.') && name != "adapter" && name != kConfigFile && !holds_weights(name))
        unknown_.push_back(name);
    }
    std::ranges::sort(unknown_);
  }
  if (model.adapter.empty()) return;
  for (const std::string& name : files_beside_adapter(model.adapter)) {
    const std::optional<FileKind> kind = kind_of(name);
    if (kind != FileKind::kTokenizer && kind != FileKind::kTemplate) unknown_.push_back("adapter/" + name);
  }
  const auto replace = [&](FileKind kind, std::map<std::string, std::string> files) {
    if (files.empty()) return;
    std::erase_if(files_,
                  [&](const auto& file) { return kind_of(fs::path(file.first).begin()->string()) == kind; });
    files_.merge(files);
  };
  const bool has_own = has_tokenizer(model.adapter);
  // The model's tokenizer_config.json, which may hold its template, goes with its tokenizer.
  replace(FileKind::kTemplate,
          (has_own ? ChatFormat::read(model, model.adapter) : ChatFormat::read(model.adapter)).files());
  if (!has_own) return;
  std::map<std::string, std::string> own;
  for (const auto& entry : fs::directory_iterator(model.adapter))
    if (kind_of(entry.path().filename().string()) == FileKind::kTokenizer)
      add_files(model.adapter, entry.path(), own);
  replace(FileKind::kTokenizer, std::move(own));
}

std::vector<std::string> ModelFiles::left_out(SingleFile format) const {
  std::set<std::string> names(unknown_.begin(), unknown_.end());
  for (const auto& [path, bytes] : files_) {
    const std::string name = fs::path(path).begin()->string();
    const FileKind kind = kind_of(name).value_or(FileKind::kSentences);
    const bool has_it = (kind == FileKind::kTokenizer && format != SingleFile::kTorchScript) ||
                        (kind == FileKind::kTemplate && format == SingleFile::kGguf);
    if (kind != FileKind::kGeneration && !has_it) names.insert(name);
  }
  const auto add_keys = [&](const std::string& file, const std::vector<std::string>& keys) {
    if (!keys.empty()) names.insert(file + " (" + joined(keys) + ")");
  };
  if (format == SingleFile::kTorchScript && !source_.config.label_names.empty())
    add_keys(kConfigFile, {"id2label"});
  if (files_.contains(kGenerationFile)) {
    const nlohmann::json generation = parse_json(files_.at(kGenerationFile));
    std::vector<std::string> keys;
    for (const auto& [key, value] : generation.items())
      if (!kOfFile.contains(key) && !value.is_null() && value != false) keys.push_back(key);
    add_keys(kGenerationFile, keys);
  }
  if (format == SingleFile::kGguf && files_.contains(kTokenizerSettings)) {
    // A tokenizer's lengths and sides have no names there.
    const nlohmann::json settings = parse_json(files_.at(kTokenizerSettings));
    std::vector<std::string> keys;
    for (const char* key : {"padding_side", "truncation_side"})
      if (settings.value(key, nlohmann::json()) == "left") keys.emplace_back(key);
    const nlohmann::json most = settings.value("model_max_length", nlohmann::json());
    // Every reader of the file stops at the end of its table of positions.
    const double positions = source_.config.has_position_table() ? source_.config.max_length() : 1e9;
    if (most.is_number() && most.get<double>() < positions) keys.emplace_back("model_max_length");
    add_keys(kTokenizerSettings, keys);
  }
  return {names.begin(), names.end()};
}

void ModelFiles::write(const fs::path& directory) const {
  for (const auto& [path, bytes] : files_) {
    make_directories((directory / path).parent_path());
    write_file(directory / path, bytes);
  }
  // Without this file transformers reads the end token from config.json; an empty file would hide it.
  if (!files_.contains(kGenerationFile)) fs::remove(directory / kGenerationFile);
  if (fs::exists(directory / kConfigFile))
    write_json(directory / kConfigFile, merged_config(source_, read_json(directory / kConfigFile)));
}

}  // namespace zoo
