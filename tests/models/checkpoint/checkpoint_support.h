#pragma once

#include <algorithm>

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/json.h"
#include "models/checkpoint/checkpoint.h"
#include "tests/models/support.h"
#include "tests/support/temporary_directory.h"

namespace zoo::test {

/// A saved model whose config.json and tensors a test spoils before it writes them again.
class Checkpoint {
 public:
  explicit Checkpoint(const TransformerConfig& shape = small_config()) {
    const auto model = random_gpt(shape, 99);
    save_model(*model, find_family("gpt2"), Head::kCausalLm, path());
    config = read_json(path() / "config.json");
    tensors = export_weights(*model, find_family("gpt2").weight_table(shape));
    for (auto& [name, tensor] : tensors) tensor = tensor.clone();
  }

  void write() const {
    write_json(path() / "config.json", config);
    write_safetensors(path() / "model.safetensors", tensors);
  }

  // In place of model.safetensors.
  void write_shards(std::size_t count) const {
    std::filesystem::remove(path() / "model.safetensors");
    std::vector<NamedTensors> shards(count);
    nlohmann::json map;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      shards[i % count].push_back(tensors[i]);
      map[tensors[i].first] = shard_name(i % count);
    }
    for (std::size_t i = 0; i < count; ++i) write_safetensors(path() / shard_name(i), shards[i]);
    write_json(path() / "model.safetensors.index.json", {{"weight_map", map}});
  }
  static std::string shard_name(std::size_t shard) {
    return "model-" + std::to_string(shard) + "-of-N.safetensors";
  }

  at::Tensor& find(const std::string& name) {
    const auto found =
        std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.first == name; });
    if (found == tensors.end()) throw std::out_of_range(name);
    return found->second;
  }

  template <class Predicate> void remove_if(const Predicate& predicate) {
    std::erase_if(tensors, [&](const auto& entry) { return predicate(entry.first); });
  }

  LoadReport report() const { return inspect_weights(read_checkpoint_config(path())); }

  /// The error of load_model, "" if it loads.
  std::string fault() const {
    return error_of([&] { load_model(path()); });
  }

  const std::filesystem::path& path() const { return directory_.path(); }

  nlohmann::json config;
  NamedTensors tensors;

 private:
  TemporaryDirectory directory_;
};

}  // namespace zoo::test
