#include "apps/verbs/export_huggingface.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/json_file.h"
#include "models/checkpoint/checkpoint.h"
#include "tokenizer/tokenizer.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.json";
constexpr const char* kGenerationConfig = "generation_config.json";

// Files that are copied unchanged.
constexpr std::array<std::string_view, 13> kCopied{
    kGenerationConfig,
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
};

bool is_part_of_checkpoint(const std::string& name) {
  const auto ends_with = [&](std::string_view end) {
    return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
  };
  return name == kConfig || std::find(kCopied.begin(), kCopied.end(), name) != kCopied.end() ||
         ends_with(".safetensors") || ends_with(".safetensors.index.json");
}

// Export replaces an existing target, so the target must look like an earlier export.
void check_target(const fs::path& source, const fs::path& target) {
  std::error_code none;
  if (fs::equivalent(source, target, none))
    throw Error("--output: ", target, " is the model's own directory");
  if (!fs::is_directory(target, none) || fs::is_empty(target, none)) return;
  if (!fs::exists(target / kConfig)) {
    throw Error("--output: ", target,
                " is not empty and holds no checkpoint; expected a new or empty directory");
  }
  for (const auto& entry : fs::directory_iterator(target)) {
    const std::string name = entry.path().filename().string();
    if (!is_part_of_checkpoint(name) || !entry.is_regular_file()) {
      throw Error("--output: ", target, " holds ", name,
                  ", which would be lost; expected nothing but a checkpoint");
    }
  }
}

// The common type of all tensors, or float32 if they differ.
at::ScalarType dtype_of_files(const WeightFiles& files, const fs::path& directory) {
  std::optional<at::ScalarType> common;
  for (const std::string& name : files.names()) {
    const at::ScalarType dtype = files.entry(name).dtype;
    if (!at::isFloatingType(dtype)) continue;  // an unused buffer
    if (dtype == at::kDouble) {
      throw Error(directory, ": ", name,
                  " is float64; expected float32, bfloat16 or float16 (--dtype converts it)");
    }
    if (common && *common != dtype) return at::kFloat;
    common = dtype;
  }
  return common.value_or(at::kFloat);
}

// Keeps all keys of the source, since it has more than the zoo reads; `ours` has the written values and those
// that the source leaves to a default.
void merge_config(nlohmann::json merged, const fs::path& target) {
  const nlohmann::json ours = read_json(target);
  for (const auto& [key, value] : ours.items()) {
    if (!merged.contains(key) && !value.is_null()) merged[key] = value;
  }
  merged["architectures"] = ours.at("architectures");
  merged["dtype"] = ours.at("dtype");
  // The key's name in transformers 4.
  if (merged.contains("torch_dtype")) merged["torch_dtype"] = ours.at("dtype");
  write_json(target, merged);
}

void copy_files(const fs::path& source, const fs::path& target) {
  if (fs::is_regular_file(source)) {  // a GGUF file
    if (has_tokenizer(source)) load_tokenizer(source)->save(target);
    fs::remove(target / kGenerationConfig);
    return;
  }
  for (const std::string_view name : kCopied) {
    if (fs::exists(source / name)) write_file(target / name, read_file(source / name));
  }
  // Without this file transformers reads the end token from config.json; an empty file would hide it.
  if (!fs::exists(source / kGenerationConfig)) fs::remove(target / kGenerationConfig);
}

// Compares bits, not values: -0 equals 0, and NaN does not equal itself.
bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         a.contiguous().view(at::kByte).equal(b.contiguous().view(at::kByte));
}

}  // namespace

HuggingFaceExport export_huggingface(const fs::path& source, const fs::path& target,
                                     std::optional<at::ScalarType> dtype) {
  const CheckpointConfig checkpoint = read_checkpoint_config(source);
  check_target(source, target);
  HuggingFaceExport result;
  result.dtype = dtype ? *dtype : dtype_of_files(checkpoint.files(), source);
  const LoadedModel loaded = load_model(checkpoint, {.dtype = result.dtype});

  AtomicDirectory directory(target);
  save_model(*loaded.model, *checkpoint.family, loaded.head, directory.path(), {.dtype = result.dtype});
  merge_config(*checkpoint.json, directory.path() / kConfig);
  copy_files(source, directory.path());
  result.unused = inspect_weights(checkpoint).unused;
  const WeightFiles written(directory.path());
  result.tensors = static_cast<std::int64_t>(written.names().size());
  result.bytes = written.bytes();
  directory.commit();
  return result;
}

std::int64_t verify_huggingface(const fs::path& source, const fs::path& target) {
  const CheckpointConfig checkpoint = read_checkpoint_config(source);
  const WeightFiles& theirs = checkpoint.files();
  const WeightFiles written(target);
  const WeightTable table = checkpoint.family->weight_table(checkpoint.config);
  const WeightTable as_written = weight_table_of(*checkpoint.family, checkpoint.config, checkpoint.head);
  const StoredNames source_names(table, theirs);
  const auto names = inspect_weights(checkpoint).loaded;
  const std::set<std::string> loaded(names.begin(), names.end());
  std::set<std::string> compared;
  for (const WeightName& name : expand_layers(table.names, checkpoint.config.num_layers)) {
    for (const std::string& part : name.theirs) {
      const std::string source_name = source_names.stored(part), target_name = with_prefix(as_written, part);
      if (name.optional) compared.insert(target_name);
      if (loaded.count(source_name) == 0) continue;
      if (!written.contains(target_name)) throw Error(target, ": the tensor ", target_name, " is missing");
      const at::Tensor found = written.tensor(target_name);
      if (!same_bits(found, theirs.tensor(source_name).to(found.scalar_type()))) {
        throw Error(target, ": the tensor ", target_name, " differs from the source's");
      }
      compared.insert(target_name);
    }
  }
  for (const std::string& name : written.names()) {
    // A bias that the model lacks is written as zeros, for Hugging Face classes that expect one.
    const bool zero = written.tensor(name).count_nonzero().item<std::int64_t>() == 0;
    if (compared.count(name) == 0 && !zero)
      throw Error(target, ": the tensor ", name, " is not in the source");
  }
  // Loading also checks that the configuration matches the weights.
  load_model(target, {.dtype = dtype_of_files(written, target)});
  return static_cast<std::int64_t>(written.names().size());
}

}  // namespace zoo
