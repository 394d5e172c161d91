#include <algorithm>
#include <array>

#include <fnmatch.h>
#include <nlohmann/json.hpp>

#include "apps/hub/hub_repository.h"
#include "data/base/error.h"
#include "data/base/json.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

bool is_hash(const std::string& text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// The server's name decides where a file is written.
bool is_safe(const fs::path& name) {
  return name.is_relative() && name.has_filename() && name == name.lexically_normal() &&
         name.begin()->native() != ".." &&
         name.native().find_first_of(std::string("\\\0", 2)) == std::string::npos;
}

bool is_weights(const fs::path& name) { return name.extension() == ".safetensors"; }

// The files of a model or a PEFT adapter, additional chat templates and Sentence-Transformers' modules
// ("1_Pooling/config.json"). Other folders have other programs' formats, and "model.fp16.safetensors" is a
// copy of the weights.
bool is_wanted(const fs::path& name) {
  const fs::path folder = name.parent_path();
  const bool is_module = !folder.has_parent_path() && !folder.empty() && folder.native()[0] >= '0' &&
                         folder.native()[0] <= '9' && folder.native().find('_') == 1;
  if (!folder.empty() && !is_module && folder != "additional_chat_templates") return false;
  if (is_weights(name)) {
    const std::string stem = name.stem().string();
    return stem == "model" || stem == "adapter_model" ||
           (stem.starts_with("model-") && stem.find('.') == std::string::npos);
  }
  const std::string extension = name.extension().string(), file = name.filename().string();
  return extension == ".json" || extension == ".model" || extension == ".spm" || extension == ".jinja" ||
         file == "merges.txt" || file == "vocab.txt";
}

bool is_wanted_data(const std::string& name, const std::vector<std::string>& patterns) {
  fs::path file = name;
  if (file.extension() == ".gz" || file.extension() == ".zst") file = file.stem();
  constexpr std::array kKinds{".parquet", ".jsonl", ".tsv", ".csv", ".txt"};
  if (std::ranges::find(kKinds, file.extension()) == kKinds.end()) return false;
  const auto fits = [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  };
  return patterns.empty() || std::ranges::any_of(patterns, fits);
}

std::string text_at(const nlohmann::json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_string()
             ? object[key].get<std::string>()
             : "";
}

HubFile read_file_entry(const nlohmann::json& entry, const std::string& name, const std::string& source) {
  HubFile file{.name = name};
  const bool is_large = entry.contains("lfs") && entry["lfs"].is_object();
  file.hash = is_large ? text_at(entry["lfs"], "sha256") : text_at(entry, "blobId");
  const nlohmann::json size = entry.value("size", nlohmann::json());
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
  if (!is_hash(file.hash, is_large ? 64 : 40) || !size.is_number_integer() || size < 0 || size > kMostBytes)
    throw Error(source, ": '", name, "' has no size and hash");
  file.size = size.get<std::int64_t>();
  return file;
}

}  // namespace

HubListing read_listing(std::string_view json, const std::string& source, const HubName& name,
                        const std::vector<std::string>& include) {
  const nlohmann::json root = parse_json(json);
  HubListing listing{.commit = text_at(root, "sha")};
  if (!is_hash(listing.commit, 40) || !root.contains("siblings") || !root["siblings"].is_array())
    throw Error(source, ": expected the hub's description of a repository, with 'sha' and 'siblings'");
  for (const nlohmann::json& entry : root["siblings"]) {
    const std::string file = text_at(entry, "rfilename");
    if (!is_safe(file)) throw Error(source, ": '", file, "' is no name for a file in the cache");
    if (name.is_dataset ? is_wanted_data(file, include) : is_wanted(file))
      listing.files.push_back(read_file_entry(entry, file, source));
  }
  if (name.is_dataset && listing.files.empty())
    throw Error(source, ": the repository has no .parquet, .jsonl, .tsv, .csv or .txt file",
                include.empty() ? "" : " that --include names",
                "; the hub keeps most datasets as Parquet, too: datasets/", name.name,
                "@refs/convert/parquet");
  const auto weights = std::stable_partition(listing.files.begin(), listing.files.end(),
                                             [](const HubFile& file) { return !is_weights(file.name); });
  if (!name.is_dataset && weights == listing.files.end())
    throw Error(source,
                ": the repository has no model.safetensors; the zoo reads no other weights. In Python, ",
                "save_pretrained() of transformers writes them");
  return listing;
}

}  // namespace zoo
