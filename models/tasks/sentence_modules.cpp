#include "models/tasks/sentence_modules.h"

#include <algorithm>
#include <limits>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "models/formats/weight_files.h"
#include "tokenizer/files/json_section.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// config.json of a module.
struct ModuleFile {
  explicit ModuleFile(const fs::path& directory) : path(directory / "config.json") {
    if (fs::exists(path)) root = read_json(path);
  }
  JsonSection section() const { return {path, "", root}; }
  void allow(const std::vector<std::string>& keys) const {
    for (const auto& [key, value] : root.items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        section().fail(key, "is not known; the module has ", joined(keys));
    }
  }

  fs::path path;
  json root = json::object();
};

// Tensors of a module. Throws for one that the module does not have.
class ModuleWeights {
 public:
  ModuleWeights(const fs::path& directory, const std::vector<std::string>& names, c10::Device device)
      : directory_(directory), files_(directory), device_(device) {
    for (const std::string& name : files_.names()) {
      if (std::find(names.begin(), names.end(), name) == names.end())
        throw Error(directory, ": the tensor ", name, " has no place; expected ", joined(names));
    }
  }

  at::Tensor tensor(const std::string& name, at::IntArrayRef shape) const {
    if (!files_.contains(name)) throw Error(directory_, ": the tensor ", name, " is missing");
    const at::Tensor tensor = files_.tensor(name);
    if (tensor.sizes() != shape)
      throw Error(directory_, ": the tensor ", name, " is ", tensor.sizes(), ", but config.json says ",
                  shape);
    return tensor.to(device_, at::kFloat);
  }

 private:
  fs::path directory_;
  WeightFiles files_;
  c10::Device device_;
};

at::Tensor SentenceFeatures::*feature_named(const JsonSection& section, const char* key,
                                            const std::string& name) {
  if (name == "sentence_embedding") return &SentenceFeatures::sentence;
  if (name == "token_embeddings") return &SentenceFeatures::tokens;
  section.fail(key, "is '", name, "': expected sentence_embedding or token_embeddings");
}

// Tensors that a module reads and writes: "module_input_name" and "module_output_name".
struct Features {
  explicit Features(const JsonSection& section) {
    const std::string from = section.text("module_input_name", "sentence_embedding");
    input = feature_named(section, "module_input_name", from);
    output = feature_named(section, "module_output_name", section.text("module_output_name", from));
  }
  Features() = default;

  at::Tensor SentenceFeatures::*input = &SentenceFeatures::sentence;
  at::Tensor SentenceFeatures::*output = &SentenceFeatures::sentence;
};

// x [B, T, C], mask [B, T]. Returns [B, C].
at::Tensor pooled(PoolingMode mode, const at::Tensor& x, const at::Tensor& mask) {
  const at::Tensor kept = mask.to(at::kFloat).unsqueeze(-1);  // [B, T, 1]
  const at::Tensor rows = at::arange(x.size(0), mask.options());
  const at::Tensor positions = at::arange(1, x.size(1) + 1, kept.options()).unsqueeze(-1);  // [T, 1]
  switch (mode) {
    case PoolingMode::kCls: return x.index({rows, mask.argmax(1)});
    case PoolingMode::kMax:
      return x.masked_fill(kept.eq(0), -std::numeric_limits<double>::infinity()).amax(1);
    case PoolingMode::kMean: return (x * kept).sum(1) / kept.sum(1).clamp_min(1e-9);
    case PoolingMode::kMeanSqrt: return (x * kept).sum(1) / kept.sum(1).clamp_min(1e-9).sqrt();
    case PoolingMode::kWeightedMean:
      return (x * kept * positions).sum(1) / (kept * positions).sum(1).clamp_min(1e-9);
    case PoolingMode::kLastToken: return (x * kept).index({rows, (kept * positions).squeeze(-1).argmax(1)});
  }
  return {};
}

SentenceModule make_pooling(const std::vector<PoolingMode>& modes, bool include_prompt) {
  return {[modes, include_prompt](SentenceFeatures& features) {
    at::Tensor mask = features.mask;
    if (!include_prompt && features.prompt_length > 0) {
      mask = mask.clone();
      mask.slice(1, 0, features.prompt_length).zero_();
    }
    std::vector<at::Tensor> vectors;
    for (const PoolingMode mode : modes) vectors.push_back(pooled(mode, features.tokens, mask));
    features.sentence = at::cat(vectors, -1);
  }};
}

SentenceModule make_normalize(const Features& own) {
  return {[own](SentenceFeatures& features) {
    const at::Tensor& x = features.*own.input;
    if (x.defined()) features.*own.output = features.normalizes ? unit_vectors(x) : x;
  }};
}

using Function = at::Tensor (*)(const at::Tensor&);

// By the name of torch.nn's class.
constexpr std::pair<const char*, Function> kFunctions[]{
    {"Identity", [](const at::Tensor& x) { return x; }},
    {"Tanh", [](const at::Tensor& x) { return x.tanh(); }},
    {"ReLU", [](const at::Tensor& x) { return x.relu(); }},
    {"GELU", [](const at::Tensor& x) { return at::gelu(x); }},
    {"SiLU", [](const at::Tensor& x) { return at::silu(x); }},
    {"Sigmoid", [](const at::Tensor& x) { return x.sigmoid(); }},
    {"LeakyReLU", [](const at::Tensor& x) { return at::leaky_relu(x); }},
    {"ELU", [](const at::Tensor& x) { return at::elu(x); }},
    {"Mish", [](const at::Tensor& x) { return at::mish(x); }},
    {"Softplus", [](const at::Tensor& x) { return at::softplus(x); }},
};

// "torch.nn.modules.activation.Tanh"
Function activation_of(const JsonSection& section) {
  const std::string path = section.text("activation_function", "torch.nn.Tanh");
  std::vector<std::string> known;
  for (const auto& [name, function] : kFunctions) {
    known.emplace_back(name);
    if (path.starts_with("torch.nn.") && path.ends_with("." + known.back())) return function;
  }
  section.fail("activation_function", "is '", path, "': expected a class of torch.nn: ", joined(known));
}

void require_size(const at::Tensor& x, std::int64_t size, const fs::path& directory) {
  if (x.size(-1) != size)
    throw Error(directory, ": config.json says vectors of ", size, " numbers, got ", x.size(-1),
                "; several poolings are joined to one vector");
}

// f(W x + b), to which x is added if "use_residual" says so.
SentenceModule load_dense(const fs::path& directory, c10::Device device) {
  const ModuleFile file(directory);
  const JsonSection section = file.section();
  file.allow({"in_features", "out_features", "bias", "activation_function", "module_input_name",
              "module_output_name", "use_residual"});
  const Features own(section);
  const Function function = activation_of(section);
  const bool residual = section.flag("use_residual", false);
  const std::int64_t in = section.count("in_features", 0), out = section.count("out_features", 0);
  const ModuleWeights files(directory, {"linear.weight", "linear.bias", "residual.weight"}, device);
  NamedTensors weights{{"linear.weight", files.tensor("linear.weight", {out, in})}};
  at::Tensor bias, projection;
  if (section.flag("bias", true))
    bias = weights.emplace_back("linear.bias", files.tensor("linear.bias", {out})).second;
  if (residual && in != out)
    projection = weights.emplace_back("residual.weight", files.tensor("residual.weight", {out, in})).second;
  const auto apply = [=, weight = weights[0].second](SentenceFeatures& features) {
    const at::Tensor x = features.*own.input;
    require_size(x, in, directory);
    at::Tensor y = function(at::linear(x, weight, bias));
    if (residual) y = y + (projection.defined() ? at::linear(x, projection) : x);
    features.*own.output = y;
  };
  return {apply, weights};
}

SentenceModule load_layer_norm(const fs::path& directory, c10::Device device) {
  const ModuleFile file(directory);
  file.allow({"dimension"});
  const std::int64_t size = file.section().count("dimension", 0);
  const ModuleWeights files(directory, {"norm.weight", "norm.bias"}, device);
  const at::Tensor weight = files.tensor("norm.weight", {size}), bias = files.tensor("norm.bias", {size});
  const auto apply = [=](SentenceFeatures& features) {
    require_size(features.sentence, size, directory);
    features.sentence = at::layer_norm(features.sentence, {size}, weight, bias);
  };
  return {apply, {{"norm.weight", weight}, {"norm.bias", bias}}};
}

// Versions 2 to 5, in the order in which the vectors are concatenated.
constexpr std::pair<const char*, PoolingMode> kLegacyKeys[]{
    {"pooling_mode_cls_token", PoolingMode::kCls},
    {"pooling_mode_max_tokens", PoolingMode::kMax},
    {"pooling_mode_mean_tokens", PoolingMode::kMean},
    {"pooling_mode_mean_sqrt_len_tokens", PoolingMode::kMeanSqrt},
    {"pooling_mode_weightedmean_tokens", PoolingMode::kWeightedMean},
    {"pooling_mode_lasttoken", PoolingMode::kLastToken}};

std::vector<PoolingMode> modes_of(const JsonSection& section) {
  std::vector<PoolingMode> modes;
  if (const json* names = section.find("pooling_mode")) {
    const json list = names->is_array() ? *names : json::array({*names});
    for (const json& name : list) {
      const auto mode = name.is_string() ? pooling_named(name.get<std::string>()) : std::nullopt;
      if (!mode) section.fail("pooling_mode", "is ", name.dump(), ": expected ", joined(pooling_names()));
      modes.push_back(*mode);
    }
  } else {
    for (const auto& [key, mode] : kLegacyKeys)
      if (section.flag(key, false)) modes.push_back(mode);
  }
  if (modes.empty()) modes.push_back(PoolingMode::kMean);
  return modes;
}

SentenceModule load_pooling(const fs::path& directory, const std::vector<PoolingMode>& instead) {
  const ModuleFile file(directory);
  std::vector<std::string> keys{"word_embedding_dimension", "embedding_dimension", "pooling_mode",
                                "include_prompt"};
  for (const auto& [key, mode] : kLegacyKeys) keys.emplace_back(key);
  if (file.root.empty()) throw Error(file.path, ": is missing or empty; expected a pooling_mode");
  file.allow(keys);
  const JsonSection section = file.section();
  return make_pooling(instead.empty() ? modes_of(section) : instead, section.flag("include_prompt", true));
}

SentenceModule load(const SentenceConfig::Module& module, const SentenceModuleOptions& options) {
  if (module.type == "Pooling") return load_pooling(module.directory, options.pooling);
  if (module.type == "Dense") return load_dense(module.directory, options.device);
  if (module.type == "LayerNorm") return load_layer_norm(module.directory, options.device);
  const ModuleFile file(module.directory);
  file.allow({"module_input_name", "module_output_name"});
  return make_normalize(Features(file.section()));
}

}  // namespace

at::Tensor unit_vectors(const at::Tensor& vectors) {
  return vectors / vectors.norm(2, -1, /*keepdim=*/true).clamp_min(1e-12);
}

const std::vector<std::string>& pooling_names() {
  static const std::vector<std::string> names{"cls",          "max",      "mean", "mean_sqrt_len_tokens",
                                              "weightedmean", "lasttoken"};
  return names;
}

std::optional<PoolingMode> pooling_named(const std::string& name) {
  const auto& names = pooling_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<PoolingMode>(found - names.begin());
}

SentenceModules load_sentence_modules(const SentenceConfig& config, const SentenceModuleOptions& options) {
  SentenceModules modules;
  for (const SentenceConfig::Module& module : config.modules) {
    const bool left_out = module.type == "Normalize" && options.normalize == false;
    if (left_out || module.type == "Dropout") continue;  // which does nothing in evaluation
    modules.push_back(load(module, options));
  }
  const bool alone = config.modules.empty();
  if (alone) {
    const std::vector<PoolingMode> own{*pooling_named(config.pooling)};
    modules.push_back(make_pooling(options.pooling.empty() ? own : options.pooling, true));
  }
  if (config.truncate_dim) {
    const auto size = static_cast<std::int64_t>(*config.truncate_dim);
    modules.push_back(
        {[size](SentenceFeatures& features) { features.sentence = features.sentence.slice(-1, 0, size); }});
  }
  if (options.normalize.value_or(alone)) modules.push_back(make_normalize(Features()));
  return modules;
}

}  // namespace zoo
