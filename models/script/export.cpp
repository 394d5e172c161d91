#include "models/script/export.h"

#include <algorithm>

#include <nlohmann/json.hpp>
#include <torch/csrc/jit/serialization/export.h>

#include "data/base/error.h"
#include "models/formats/torch_file.h"
#include "models/registry.h"
#include "models/script/compile.h"
#include "models/script/model.h"

namespace zoo {
namespace {

// Increased when the meaning of a method or attribute changes.
constexpr std::int64_t kFormatVersion = 1;

void save(const torch::jit::Module& module, const std::filesystem::path& path) {
  write_torch_file(path, [&](const TorchFileWriter& writer) { torch::jit::ExportModule(module, writer); });
}

// The model reads the id in the rows that it fills, so the vocabulary must contain it.
std::int64_t filling_id(const ScriptOptions& options, std::int64_t vocab_size) {
  TokenIds candidates = options.eos_ids;
  if (options.pad_id) candidates.insert(candidates.begin(), *options.pad_id);
  const auto known = [&](std::int64_t id) { return id >= 0 && id < vocab_size; };
  const auto found = std::find_if(candidates.begin(), candidates.end(), known);
  return found == candidates.end() ? 0 : *found;
}

// A model that its family's config.json cannot describe is exported without a description.
std::string describe(const Model& model, const Family& family) {
  try {
    nlohmann::json config = family.write_config(model.config());
    config["model_type"] = family.model_type;
    return config.dump();
  } catch (const Error&) {
    return "{}";
  }
}

}  // namespace

void export_torchscript(const Model& model, const Family& family, Head head,
                        const std::filesystem::path& file, const ScriptOptions& options) {
  check_head(family, head);
  script::ScriptPart part = script::model_part(model);
  part.attributes = {{"config", describe(model, family)},
                     {"format_version", kFormatVersion},
                     {"eos_ids", std::vector<std::int64_t>(options.eos_ids.begin(), options.eos_ids.end())},
                     {"pad_id", filling_id(options, model.config().vocab_size)}};
  save(script::compile(part, options.dtype), file);
}

}  // namespace zoo
