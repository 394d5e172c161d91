#include "models/script/export.h"

#include <algorithm>
#include <limits>
#include <string>

#include <nlohmann/json.hpp>
#include <torch/csrc/jit/serialization/export.h>

#include "data/base/error.h"
#include "data/base/lines.h"
#include "models/formats/torch_file.h"
#include "models/graph/passes.h"
#include "models/graph/verify.h"
#include "models/model.h"
#include "models/registry.h"
#include "models/script/program.h"

namespace zoo::embedded {
extern const std::string_view kScriptMethods;  // methods.py.in
}

namespace zoo {
namespace {

std::string section(const std::string& name) {
  return std::string(text_section(embedded::kScriptMethods, name));
}

// Replaces each "$name". All names are known.
std::string fill(std::string text, const std::vector<std::pair<std::string_view, std::string>>& values) {
  for (const auto& [name, value] : values) {
    for (std::size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), value);
  }
  return text;
}

constexpr const char* kTokenTypes = R"(, token_type_ids: Optional[Tensor] = None)";
constexpr const char* kGivenTokenTypes =
    R"(, torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids)";

constexpr const char* kStepPositions =
    R"(torch.arange(past, past + step.size(1), device=ids.device).unsqueeze(0).expand([batch, -1]), )";

std::string limit_of(const TransformerConfig& config) {
  return std::to_string(config.has_position_table() ? config.max_length() : 0);
}

// forward(), which calls traced_forward().
std::string forward_source(const Model& model) {
  const TransformerConfig& config = model.config();
  const bool typed = config.type_vocab_size > 0;
  const bool pair = config.shape == Shape::kEncoderDecoder;
  return fill(section("checks") + section(pair ? "forward of an encoder-decoder" : "forward"),
              {{"$limit", limit_of(config)},
               {"$rows", takes_one_row(model) ? "False" : "True"},
               {"$types", typed ? kTokenTypes : ""},
               {"$given", typed ? kGivenTokenTypes : ""}});
}

// generate(), which continues rows as that of models/generation does, sliding context included. Calls
// traced_step(), and traced_encode() and traced_start(); reads the attributes `eos_ids` and `pad_id`. Throws
// Error if an encoder-decoder has no decoder_start_token_id.
std::string generate_source(const Model& model) {
  const TransformerConfig& config = model.config();
  const bool from_source = config.shape == Shape::kEncoderDecoder;
  if (from_source && config.decoder_start_token_id < 0)
    throw Error("an encoder-decoder that generates needs a decoder_start_token_id in its configuration");
  const std::int64_t kept = std::max<std::int64_t>(config.max_positions / 2, 1);
  const auto dtype = static_cast<int>(model.parameters().front().scalar_type());
  const bool slides = !from_source && config.has_position_table();
  return fill(section("pick") + section(from_source ? "padding_mask" : "no_caches") + section("generate"),
              {{"$mask", from_source ? ", attention_mask: Optional[Tensor] = None" : ""},
               {"$begin", section(from_source ? "begin of an encoder-decoder" : "begin")},
               {"$step", section(from_source ? "step of an encoder-decoder" : "step")},
               {"$slide", slides ? section("slide") : ""},
               {"$positions", graph::step_takes_positions(config) ? kStepPositions : ""},
               {"$limit", limit_of(config)},
               {"$kept", std::to_string(kept)},
               {"$pad", std::to_string(config.pad_token_id)},
               {"$start", std::to_string(config.decoder_start_token_id)},
               {"$held", std::to_string(2 * config.decoder_layers())},
               {"$layers", std::to_string(config.num_layers)},
               {"$kv_heads", std::to_string(config.kv_heads())},
               {"$head_dim", std::to_string(config.head_size())},
               {"$dtype", std::to_string(dtype)}});
}

// Increased when the meaning of a method or attribute changes.
constexpr std::int64_t kFormatVersion = 1;

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
  module.define(forward_source(model));
  if (parts.generates()) {
    const graph::DecodingPasses passes = graph::decoding_passes(model);
    if (passes.encode) script::add_method(module, "traced_encode", *passes.encode, kAll, kAll);
    if (passes.start) script::add_method(module, "traced_start", *passes.start, kAll, 1);
    const bool positioned = !passes.encode && graph::step_takes_positions(model.config());
    script::add_method(module, "traced_step", passes.step, positioned ? 3 : 2, 1);
    module.define(generate_source(model));
  }
  write_torch_file(file, [&](const TorchFileWriter& writer) { torch::jit::ExportModule(module, writer); });
}

}  // namespace zoo
