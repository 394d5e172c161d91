#include "models/gguf/save_gguf.h"

#include <algorithm>
#include <array>
#include <map>

#include <nlohmann/json.hpp>

#include "data/base/field_error.h"
#include "data/base/lines.h"
#include "models/checkpoint/checkpoint.h"
#include "models/gguf/gguf_architecture.h"
#include "models/gguf/gguf_blocks.h"
#include "models/model.h"

namespace zoo {
namespace {

using nlohmann::json;

// T5 1.1's gate: one family, two architectures.
const GgufArchitecture& architecture_of(const Family& family, const NamedTensors& tensors) {
  std::vector<std::string> known;
  for (const GgufArchitecture& architecture : gguf_architectures()) {
    const bool fits = std::all_of(tensors.begin(), tensors.end(), [&](const auto& entry) {
      return to_gguf_name(architecture, entry.first).has_value();
    });
    if (architecture.model_type == family.model_type && fits) return architecture;
    known.emplace_back(architecture.model_type);
  }
  known.erase(std::unique(known.begin(), known.end()), known.end());
  throw Error("the zoo writes no GGUF file of this ", family.model_type, "; it writes ", joined(known));
}

void add_sizes(const GgufArchitecture& architecture, const json& config, GgufMetadata& metadata) {
  const std::string prefix = std::string(architecture.name) + ".";
  metadata.emplace_back("general.architecture", architecture.name);
  metadata.emplace_back("general.type", "model");
  metadata.emplace_back("general.quantization_version", std::uint32_t{2});
  metadata.emplace_back(prefix + "vocab_size", config.at("vocab_size").get<std::uint32_t>());
  for (const GgufKey& key : architecture.keys) {
    const auto found = config.find(key.ours);
    if (found == config.end() || found->is_null()) continue;
    const std::string name = prefix + key.theirs;
    if (found->is_number_float()) {
      metadata.emplace_back(name, found->get<float>());
    } else {
      metadata.emplace_back(name, found->get<std::uint32_t>());
    }
  }
}

// Keys that follow from others, but that llama.cpp reads.
void add_heads(const GgufArchitecture& architecture, const TransformerConfig& config,
               GgufMetadata& metadata) {
  const std::string prefix = std::string(architecture.name) + ".";
  const auto add = [&](const char* key, std::int64_t value) {
    metadata.emplace_back(prefix + key, static_cast<std::uint32_t>(value));
  };
  if (config.shape == Shape::kEncoder) metadata.emplace_back(prefix + "attention.causal", false);
  if (config.type_vocab_size > 0)
    metadata.emplace_back("tokenizer.ggml.token_type_count",
                          static_cast<std::uint32_t>(config.type_vocab_size));
  if (config.position == PositionKind::kRotary) add("rope.dimension_count", config.rotary_size());
  if (config.position == PositionKind::kRotary || config.position == PositionKind::kT5Buckets)
    add("attention.value_length", config.head_size());
  if (config.rope_scaling.kind == RopeScalingKind::kLinear) {
    metadata.emplace_back(prefix + "rope.scaling.type", "linear");
    metadata.emplace_back(prefix + "rope.scaling.factor", static_cast<float>(config.rope_scaling.factor));
  }
  if (std::string_view(architecture.name) == "phi3") add("attention.sliding_window", config.sliding_window);
}

std::string bytes_of(const at::Tensor& tensor, const GgufType& type) {
  if (type.block > 1) return quantized(type, tensor);
  const std::string_view name = type.name;
  const at::Tensor numbers =
      tensor.to(name == "F16"    ? at::kHalf
                : name == "BF16" ? at::kBFloat16
                                 : at::kFloat)
          .contiguous();
  if (name == "F16" && !numbers.isfinite().equal(tensor.isfinite()))
    throw Error("has numbers beyond the range of f16; bf16 holds them");
  return {static_cast<const char*>(numbers.const_data_ptr()), numbers.nbytes()};
}

// Routers and tables that are added to float32 stay float32, as in llama.cpp's converter.
const GgufType& type_of(const std::string& name, const at::Tensor& tensor, const std::string& wanted) {
  const bool exact = name.starts_with("position_embd") || name.starts_with("token_types") ||
                     name.find("attn_rel_b") != name.npos || name.find("ffn_gate_inp") != name.npos;
  if (tensor.dim() < 2 || exact) return gguf_type("F32");
  const GgufType& type = gguf_type(wanted);
  return tensor.size(-1) % static_cast<std::int64_t>(type.block) == 0 ? type : gguf_type("F16");
}

// A tensor of the file, made from one of our matrices, or from those of all experts in order.
struct Parts {
  GgufName name;
  std::vector<std::pair<std::string, at::Tensor>> matrices;  // each with its name
};

std::vector<Parts> parts_of(const NamedTensors& tensors, const GgufArchitecture& architecture) {
  std::vector<Parts> all;
  std::map<std::string, std::size_t> places;
  for (const auto& [name, tensor] : tensors) {
    const GgufName theirs = *to_gguf_name(architecture, name);
    const auto [place, is_new] = places.emplace(theirs.theirs, all.size());
    if (is_new) all.push_back({theirs, {}});
    auto& matrices = all[place->second].matrices;
    const auto index = static_cast<std::size_t>(std::max<std::int64_t>(theirs.expert, 0));
    matrices.resize(std::max(matrices.size(), index + 1));
    matrices[index] = {name, tensor};
  }
  return all;
}

GgufOutput output_of(const Parts& parts, const TransformerConfig& config, const std::string& type) {
  const GgufLayout layout = parts.name.layout;
  const std::int64_t heads = layout == GgufLayout::kKeyHeads ? config.kv_heads() : config.num_heads;
  const auto changed = [layout, heads](const at::Tensor& tensor) {
    return to_gguf_layout(tensor, layout, heads);
  };
  const at::Tensor first = changed(parts.matrices.front().second);
  const GgufType& stored = type_of(parts.name.theirs, first, type);
  std::vector<std::int64_t> shape = first.sizes().vec();
  if (layout == GgufLayout::kExperts)
    shape.insert(shape.begin(), static_cast<std::int64_t>(parts.matrices.size()));
  return {parts.name.theirs, &stored, shape, [parts, changed, &stored] {
            std::string bytes;
            for (const auto& [name, matrix] : parts.matrices) {
              try {
                bytes += bytes_of(changed(matrix), stored);
              } catch (const Error& error) {
                throw Error("tensor '", name, "' ", error.what());
              }
            }
            return bytes;
          }};
}

GgufOutput rope_factors(const TransformerConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  if (scaling.original_max_positions != 8192 || scaling.low_frequency_factor != 1 ||
      scaling.high_frequency_factor != 4)
    throw Error("config.json: 'rope_scaling' has original_max_position_embeddings ",
                scaling.original_max_positions, ", low_freq_factor ", scaling.low_frequency_factor,
                " and high_freq_factor ", scaling.high_frequency_factor,
                "; the zoo writes GGUF files of 8192, 1 and 4 alone, Llama 3's own");
  const auto pairs = static_cast<std::size_t>(config.rotary_size() / 2);
  const auto divisors = llama3_divisors(config.rope_scaling, config.rope_theta, pairs);
  const std::vector<float> factors(divisors.begin(), divisors.end());
  const auto size = static_cast<std::int64_t>(factors.size());
  return {"rope_freqs.weight", &gguf_type("F32"), {size}, [factors] {
            return std::string(reinterpret_cast<const char*>(factors.data()), factors.size() * sizeof(float));
          }};
}

// Settings of training, which GGUF lacks and which do not change the model's output.
bool is_of_training(std::string_view field) {
  constexpr std::array kOthers{"initializer_range", "initial_weights",   "dropped_outputs", "trains_padding",
                               "num_labels",        "label_names",       "problem_type",    "pad_token_id",
                               "router_loss",       "router_loss_weight"};
  return field.ends_with("dropout") || std::find(kOthers.begin(), kOthers.end(), field) != kOthers.end();
}

void check_written(const std::filesystem::path& path, const Family& family, const TransformerConfig& config) {
  const auto asked = fields_of(config),
             said = fields_of(family.read_config(config_of(GgufFile(path)), path.string()));
  std::vector<std::string> lost;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (asked[i].second != said[i].second && !is_of_training(asked[i].first))
      lost.push_back(std::string(asked[i].first) + " = " + asked[i].second + " (only " + said[i].second +
                     ")");
  }
  if (!lost.empty()) throw Error("a GGUF file of ", family.model_type, " cannot say ", joined(lost));
}

}  // namespace

void save_gguf_adapter(const PeftAdapter& adapter, const CheckpointConfig& base,
                       const std::filesystem::path& path, const std::string& type) {
  const TransformerConfig& config = base.config;
  const WeightTable table = weight_table_of(*base.family, config, base.head);
  const auto refuse = [&](const std::string& name, const char* what) {
    throw Error(path, ": a GGUF adapter has no ", what, ", as the adapter has for ", name,
                "; export the merged model instead");
  };
  if (const auto whole = adapter.whole(table, config.num_layers); !whole.empty())
    refuse(whole.front(), "whole tensors");
  if (adapter.modules().empty()) throw Error(path, ": the adapter has no terms");
  adapter.terms(base.files(), table, config.num_layers);  // checks names and shapes
  NamedTensors names;
  for (const auto& entry : adapter.modules())
    names.emplace_back(with_prefix(table, in_table(table, entry.first) + ".weight"), entry.second.a);
  const GgufArchitecture& architecture = architecture_of(*base.family, names);

  const PeftAdapter::Module& first = adapter.modules().begin()->second;
  const double alpha = first.scale * static_cast<double>(first.a.size(0));
  std::vector<GgufOutput> outputs;
  for (const auto& [module, term] : adapter.modules()) {
    const std::string weight = with_prefix(table, in_table(table, module) + ".weight");
    const GgufName name = *to_gguf_name(architecture, weight);
    const bool by_head = is_by_head(name.layout);
    if (term.magnitude.defined()) refuse(module, "magnitudes of DoRA");
    if (!by_head && name.layout != GgufLayout::kSame && name.layout != GgufLayout::kTransposed)
      refuse(module, "terms of an expert");
    // llama.cpp divides alpha by each term's own rank; A and B lie as the file's weight, [out, in], does.
    at::Tensor b = term.b * (term.scale * static_cast<double>(term.a.size(0)) / alpha);
    if (by_head)
      b = to_gguf_layout(b, name.layout,
                         name.layout == GgufLayout::kKeyHeads ? config.kv_heads() : config.num_heads);
    for (const auto& [end, matrix] : {std::pair(".lora_a", term.a), std::pair(".lora_b", b)}) {
      const GgufType& stored = type_of(name.theirs, matrix, type);
      outputs.push_back({name.theirs + end, &stored, matrix.sizes().vec(),
                         [matrix = matrix, &stored] { return bytes_of(matrix, stored); }});
    }
  }
  write_gguf(path,
             {{"general.architecture", architecture.name},
              {"general.type", "adapter"},
              {"adapter.type", "lora"},
              {"adapter.lora.alpha", static_cast<float>(alpha)}},
             outputs);
}

void save_gguf(const Model& model, const Family& family, Head head, const std::filesystem::path& path,
               const std::string& type, const GgufMetadata& tokenizer) {
  static const std::vector<std::string> kTypes{"F32", "F16", "BF16", "Q8_0", "Q4_0"};
  if (std::ranges::find(kTypes, type) == kTypes.end())
    throw FieldError(Field{"type"}, ": expected one of ", joined(kTypes), ", got '", type, "'");
  const TransformerConfig config = model.config().resolved();
  const NamedTensors tensors = export_weights(model, weight_table_of(family, config, head));
  const GgufArchitecture& architecture = architecture_of(family, tensors);
  if (architecture.head_class != zoo::architecture_of(family, head))
    throw Error("a GGUF file of ", family.model_type, " has a ", architecture.head_class, "; the model is a ",
                zoo::architecture_of(family, head));
  GgufMetadata metadata;
  add_sizes(architecture, family.write_config(config), metadata);
  add_heads(architecture, config, metadata);
  metadata.insert(metadata.end(), tokenizer.begin(), tokenizer.end());
  std::vector<GgufOutput> outputs;
  for (const Parts& parts : parts_of(tensors, architecture))
    outputs.push_back(output_of(parts, config, type));
  if (config.rope_scaling.kind == RopeScalingKind::kLlama3) outputs.push_back(rope_factors(config));
  write_gguf(path, metadata, outputs,
             [&](const std::filesystem::path& written) { check_written(written, family, config); });
}

}  // namespace zoo
