#include "models/formats/weight_files.h"

#include <algorithm>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json.h"
#include "models/formats/safetensors.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

// File names of the shards. They must have no path: an index must not lead out of its directory.
std::set<std::string> shards_of(const fs::path& index_path, std::map<std::string, std::string>& weight_map) {
  const nlohmann::json index = read_json(index_path);
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object()) throw Error(index_path, ": expected an object 'weight_map'");
  std::set<std::string> shards;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) throw Error(index_path, ": the file of '", tensor, "' must be a string");
    const auto& name = file.get_ref<const std::string&>();
    if (fs::path(name).filename() != name)
      throw Error(index_path, ": '", name, "' is not the name of a file beside it");
    shards.insert(name);
    weight_map[tensor] = name;
  }
  return shards;
}

}  // namespace

bool WeightFiles::exist_in(const fs::path& directory) {
  return fs::is_regular_file(directory) || fs::exists(directory / kSingle) || fs::exists(directory / kIndex);
}

WeightFiles::WeightFiles(const fs::path& directory) {
  if (!fs::is_directory(directory)) throw Error(directory, " is not a directory");
  if (fs::exists(directory / kSingle)) {
    add(std::make_unique<SafetensorsFile>(directory / kSingle));
    return;
  }
  if (fs::exists(directory / kIndex)) {
    std::map<std::string, std::string> weight_map;
    for (const std::string& shard : shards_of(directory / kIndex, weight_map))
      add(std::make_unique<SafetensorsFile>(directory / shard));
    for (const auto& [tensor, file] : weight_map) {
      const bool there = contains(tensor) && where_.at(tensor)->path().filename() == file;
      if (!there) throw Error(directory / kIndex, ": '", tensor, "' is not in ", file);
    }
    return;
  }
  std::string others;
  for (const fs::directory_entry& file : fs::directory_iterator(directory)) {
    const fs::path ending = file.path().extension();
    if (ending == ".bin" || ending == ".pt" || ending == ".pth")
      throw Error(file.path(),
                  " is a pickle, which the zoo does not read; with transformers, "
                  "AutoModel.from_pretrained(DIR).save_pretrained(DIR) writes ",
                  kSingle, " beside it");
    if (ending == ".safetensors")
      throw Error(directory, " has no ", kSingle, " but ", file.path().filename(), ": give it that name");
    if (ending == ".gguf")
      throw Error(directory, " has no ", kSingle, "; give the GGUF file itself, ", file.path());
    for (const auto& [other, name] :
         {std::pair(".h5", "TensorFlow"), {".msgpack", "Flax"}, {".onnx", "ONNX"}})
      if (ending == other) others = ": " + file.path().filename().string() + " is of " + name;
  }
  throw Error(directory, " has no ", kSingle, others);
}

WeightFiles::WeightFiles(std::unique_ptr<const TensorFile> file) { add(std::move(file)); }

WeightFiles::WeightFiles(std::shared_ptr<const WeightFiles> base, std::unique_ptr<const TensorFile> changed)
    : base_(std::move(base)), names_(base_->names_), where_(base_->where_), bytes_(base_->bytes_) {
  for (const std::string& name : changed->names())
    if (where_.insert_or_assign(name, changed.get()).second) names_.push_back(name);
  files_.push_back(std::move(changed));
}

at::ScalarType WeightFiles::common_type() const {
  if (base_) return base_->common_type();
  std::optional<at::ScalarType> common;
  for (const std::string& name : names_) {
    const at::ScalarType dtype = entry(name).dtype;
    if (!at::isFloatingType(dtype)) continue;  // an unused buffer
    if (dtype == at::kDouble)
      throw Error(where_.at(name)->path(), ": ", name,
                  " is float64; expected float32, bfloat16 or float16, to which 'tzoo export --format ",
                  "huggingface --dtype float32' converts it");
    if (common && *common != dtype) return at::kFloat;
    common = dtype;
  }
  return common.value_or(at::kFloat);
}

bool WeightFiles::equal(const std::string& a, const std::string& b) const {
  const auto [answer, is_new] = equal_.try_emplace({a, b}, false);
  if (!is_new) return answer->second;
  constexpr std::int64_t kRowsAtOnce = 1024;
  const TensorEntry &first = entry(a), &second = entry(b);
  if (first.dtype != second.dtype || first.shape != second.shape) return false;
  // Without columns, a header may claim any number of rows, too many for the loop.
  if (std::ranges::find(first.shape, 0) != first.shape.end()) return answer->second = true;
  if (first.shape.size() < 2) return answer->second = tensor(a).equal(tensor(b));
  const std::int64_t count = first.shape.front();
  for (std::int64_t begin = 0; begin < count; begin += kRowsAtOnce) {
    const std::int64_t end = std::min(begin + kRowsAtOnce, count);
    const bool same = rows(a, begin, end).equal(rows(b, begin, end));
    give_back(a, begin, end);
    give_back(b, begin, end);
    if (!same) return false;
  }
  return answer->second = true;
}

void WeightFiles::add(std::unique_ptr<const TensorFile> file) {
  bytes_ += static_cast<std::int64_t>(fs::file_size(file->path()));
  for (const std::string& name : file->names()) {
    if (!where_.emplace(name, file.get()).second)
      throw Error(file->path(), ": tensor '", name, "' is in another shard too");
    names_.push_back(name);
  }
  files_.push_back(std::move(file));
}

}  // namespace zoo
