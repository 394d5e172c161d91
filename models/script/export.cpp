#include "models/script/export.h"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>
#include <torch/csrc/jit/serialization/export.h>

#include "data/base/error.h"
#include "models/formats/torch_file.h"
#include "models/graph/passes.h"
#include "models/registry.h"
#include "models/script/methods.h"
#include "models/script/program.h"

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

void export_torchscript(Model& model, const Family& family, Head head, const std::filesystem::path& file,
                        const ScriptOptions& options) {
  check_head(family, head);
  const ModelParts parts = model.parts();
  if (!parts.embeddings) throw Error("a model of this family cannot be written as TorchScript");
  torch::jit::Module module = script::module_of(model);
  module.register_attribute("config", c10::StringType::get(), describe(model, family));
  module.register_attribute("format_version", c10::IntType::get(), kFormatVersion);
  module.register_attribute("eos_ids", c10::ListType::ofInts(),
                            std::vector<std::int64_t>(options.eos_ids.begin(), options.eos_ids.end()));
  module.register_attribute("pad_id", c10::IntType::get(), filling_id(options, model.config().vocab_size));
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  script::add_method(module, "traced_forward", graph::forward_pass(model, /*token_types=*/true), kAll, kAll);
  module.define(script::forward_source(model));
  if (parts.generates()) {
    const graph::DecodingPasses passes = graph::decoding_passes(model);
    if (passes.encode) script::add_method(module, "traced_encode", *passes.encode, kAll, kAll);
    if (passes.start) script::add_method(module, "traced_start", *passes.start, kAll, 1);
    const bool positioned = !passes.encode && graph::step_takes_positions(model.config());
    script::add_method(module, "traced_step", passes.step, positioned ? 3 : 2, 1);
    module.define(script::generate_source(model));
  }
  save(module, file);
}

}  // namespace zoo
