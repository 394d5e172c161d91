#include "models/checkpoint/peft_adapter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <regex>
#include <set>
#include <utility>

#include <ATen/ops/addmm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <c10/util/StringUtil.h>
#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/json.h"
#include "models/formats/config_reader.h"
#include "models/model.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kWeight = ".weight";

// Keys that are read, that only training reads, or whose meaning the tensors have.
constexpr std::string_view kKnown =
    " alpha_pattern auto_mapping base_model_name_or_path bias corda_config ensure_weight_tying eva_config "
    "exclude_modules fan_in_fan_out inference_mode init_lora_weights layers_pattern layers_to_transform "
    "loftq_config lora_alpha lora_dropout lora_ga_config megatron_core modules_to_save peft_type "
    "peft_version qalora_group_size r rank_pattern revision runtime_config target_modules task_type use_dora "
    "use_rslora ";

// A name or a list of names; empty if the key is not given.
std::vector<std::string> names_under(const char* key, const ConfigReader& config) {
  std::vector<std::string> names;
  if (!config.has(key)) return names;
  for (const json& name : config.at(key))
    names.push_back(name.is_string() ? name.get<std::string>() : name.dump());
  return names;
}

// Each module asks for each pattern, of which there may be one for each module: compiled once.
bool fits_expression(const std::string& pattern, const std::string& name, const ConfigReader& config) {
  constexpr std::size_t kLongest = 4096, kMost = 10'000;  // the compiler recurses for each term
  thread_local std::map<std::string, std::regex> compiled;
  try {
    if (compiled.size() > kMost) compiled.clear();
    auto found = compiled.find(pattern);
    if (found == compiled.end()) {
      if (pattern.size() > kLongest) throw std::regex_error(std::regex_constants::error_complexity);
      found = compiled.emplace(pattern, std::regex(pattern)).first;
    }
    return std::regex_match(name, found->second);
  } catch (const std::regex_error&) {
    throw Error(config.source(), ": '", pattern.substr(0, 100),
                "' is not a regular expression that the zoo reads");
  }
}

// The value of the first pattern in the file that matches the end of a module's name, as PEFT's
// get_pattern_key() finds it.
double value_for(const std::string& name, const ConfigReader& config, const ordered_json& file,
                 const char* patterns, double otherwise) {
  if (!config.has(patterns)) return otherwise;
  if (!config.at(patterns).is_object()) config.refuse(patterns, "expected an object");
  for (const auto& [pattern, value] : file.at(patterns).items()) {
    if (!fits_expression("(.*\\.)?(" + pattern + ")", name, config)) continue;
    if (!value.is_number()) config.refuse(patterns, "expected a number for " + pattern);
    return value.get<double>();
  }
  return otherwise;
}

// What becomes of a tensor of a file, in its layout: (W + left right) factor.
struct Delta {
  at::Tensor left, right;  // [rows, r], [r, columns]; undefined: W stays
  at::Tensor factor;       // of DoRA: [rows, 1] or [1, columns]; undefined: 1

  at::Tensor added_to(const at::Tensor& weight) const {
    if (!left.defined()) return weight;
    const at::Tensor sum = at::addmm(weight.to(at::kFloat), left, right);
    return factor.defined() ? sum * factor : sum;
  }
  Delta rows(std::int64_t begin, std::int64_t end) const {
    if (!left.defined()) return {};
    const bool by_row = factor.defined() && factor.size(1) == 1;
    return {left.slice(0, begin, end), right, by_row ? factor.slice(0, begin, end) : factor};
  }
  Delta transposed() const {
    if (!left.defined()) return {};
    return {right.t(), left.t(), factor.defined() ? factor.t() : factor};
  }
};

// A tensor of the model's files, or of the adapter's, and what is added to it.
struct Change {
  std::shared_ptr<const WeightFiles> files;
  std::string source;
  Delta delta;

  at::Tensor tensor() const { return delta.added_to(files->tensor(source)); }
};

// The changed tensors of a model's files.
class MergedTensors : public TensorFile {
 public:
  explicit MergedTensors(fs::path path) : path_(std::move(path)) {}

  void add(const std::string& name, Change change) {
    const TensorEntry& entry = change.files->entry(change.source);
    TensorFile::add(name, {change.delta.left.defined() ? at::kFloat : entry.dtype, entry.shape});
    changes_.emplace(name, std::move(change));
  }

  at::Tensor tensor(const std::string& name) const override { return changes_.at(name).tensor(); }
  at::Tensor rows(const std::string& name, std::int64_t begin, std::int64_t end) const override {
    const auto& [files, source, delta] = changes_.at(name);
    return delta.rows(begin, end).added_to(files->rows(source, begin, end));
  }
  at::Tensor columns(const std::string& name, std::int64_t begin, std::int64_t end) const override {
    const auto& [files, source, delta] = changes_.at(name);
    return delta.transposed().rows(begin, end).added_to(files->file_of(source).columns(source, begin, end));
  }
  void give_back(const std::string& name, std::int64_t begin, std::int64_t end) const override {
    changes_.at(name).files->give_back(changes_.at(name).source, begin, end);
  }
  bool verify() const override { return SafetensorsFile(path_).verify(); }
  const fs::path& path() const override { return path_; }

 private:
  fs::path path_;
  std::map<std::string, Change> changes_;
};

}  // namespace

PeftAdapter::PeftAdapter(const fs::path& directory) : weights_file_(directory / kAdapterWeights) {
  if (!fs::exists(weights_file_) && fs::exists(directory / "adapter_model.bin"))
    throw Error(directory / "adapter_model.bin",
                " is a pickle, which the zoo does not read; PEFT's save_pretrained() writes ",
                kAdapterWeights);
  const fs::path file = directory / kAdapterConfig;
  const ordered_json ordered = parse_ordered_json(read_model_file(file, kMostSettings));
  const json content = ordered.is_object() ? json(ordered) : read_json(file);  // which names the fault
  const ConfigReader config(content, file.string());
  if (const std::string type = config.get_string("peft_type", ""); type != "LORA")
    config.refuse("peft_type", "the zoo reads LORA, not '" + type + "'");
  for (const auto& [key, value] : content.items()) {
    const bool nothing = value.is_null() || value == false || (value.is_structured() && value.empty());
    if (!nothing && kKnown.find(" " + key + " ") == kKnown.npos)
      config.refuse(key.c_str(), "the zoo does not compute it; PEFT's merge_and_unload() merges the adapter");
  }
  // Others change the base model when PEFT loads the adapter.
  const std::set<json> harmless{true, false, "gaussian", "eva", "orthogonal"};
  if (config.has("init_lora_weights") && !harmless.contains(config.at("init_lora_weights")))
    config.refuse("init_lora_weights",
                  "the adapter is of another model than its base; PEFT's save_pretrained() with "
                  "path_initial_model_for_weight_conversion writes one of the base");
  saved_ = names_under("modules_to_save", config);
  for (const auto& [name, head] : kAdapterTasks)
    if (config.get_string("task_type", "") == name) head_ = head;
  read_tensors();
  for (auto& [name, module] : modules_) scale(name, module, config, ordered);
  const auto ties = [](const auto& entry) {
    return entry.second.embedding || entry.first.ends_with("lm_head");
  };
  if (config.get_bool("ensure_weight_tying", false) &&
      (!saved_.empty() || std::ranges::any_of(modules_, ties)))
    config.refuse("ensure_weight_tying", "the zoo does not tie adapters of embeddings");
}

std::string PeftAdapter::base_of(const fs::path& directory) {
  const json content = read_json(directory / kAdapterConfig);
  const ConfigReader config(content, (directory / kAdapterConfig).string());
  const std::string base = find_base(config.get_string("base_model_name_or_path", ""), directory),
                    revision = config.get_string("revision", "");
  std::error_code ignored;
  return base.empty() || revision.empty() || fs::exists(base, ignored) ? base : base + "@" + revision;
}

std::string PeftAdapter::find_base(const std::string& base, const fs::path& directory) {
  std::error_code ignored;
  if (base.empty() || fs::exists(base, ignored)) return base;
  fs::path folder = fs::absolute(directory).lexically_normal();
  for (fs::path last; folder != last; last = std::exchange(folder, folder.parent_path())) {
    const fs::path found = folder / base;
    if (fs::exists(found / "config.json", ignored) || fs::is_regular_file(found, ignored))
      return found.lexically_normal().string();
  }
  return base;
}

void PeftAdapter::read_tensors() {
  using Part = std::tuple<std::string_view, at::Tensor Module::*, bool>;
  constexpr std::array<Part, 5> kParts{{{".lora_A.weight", &Module::a, false},
                                        {".lora_B.weight", &Module::b, false},
                                        {".lora_embedding_A", &Module::a, true},
                                        {".lora_embedding_B", &Module::b, true},
                                        {".lora_magnitude_vector", &Module::magnitude, false}}};
  auto file = std::make_unique<const SafetensorsFile>(weights_file_);
  if (const auto labels = file->metadata().find(kAdapterLabels); labels != file->metadata().end()) {
    const json names = json::parse(labels->second, nullptr, /*allow_exceptions=*/false);
    if (!names.is_array() || !std::ranges::all_of(names, &json::is_string))
      throw Error(weights_file_, ": '", kAdapterLabels, "' in the metadata: expected a list of texts");
    label_names_ = names.get<std::vector<std::string>>();
  }
  file_ = std::make_shared<const WeightFiles>(std::move(file));
  for (const std::string& full : file_->names()) {
    const at::Tensor tensor = file_->tensor(full);
    if (!full.starts_with(kAdapterPrefix) || !at::isFloatingType(tensor.scalar_type()))
      throw Error(weights_file_, ": tensor '", full, "': expected floating-point numbers under a name that ",
                  "begins with ", kAdapterPrefix);
    std::string name = full.substr(std::string_view(kAdapterPrefix).size());
    const auto part = std::ranges::find_if(
        kParts, [&](const auto& part) { return name.ends_with(std::get<std::string_view>(part)); });
    if (part != kParts.end()) {
      const auto& [ending, member, embedding] = *part;
      Module& module = modules_[name.substr(0, name.size() - ending.size())];
      module.*member = tensor.to(at::kFloat);
      module.embedding = module.embedding || embedding;
      continue;
    }
    // With bias "all", PEFT also writes the head's biases under the names of its wrapper.
    if (name.find(".original_module.") != name.npos) continue;
    for (const std::string_view wrapper :
         {std::string_view(".base_layer."), std::string_view(".modules_to_save.")})
      if (const auto at = name.find(wrapper); at != name.npos) name.replace(at, wrapper.size(), ".");
    whole_[name] = full;
  }
}

// Checks a module's tensors and sets its scale.
void PeftAdapter::scale(const std::string& name, Module& module, const ConfigReader& config,
                        const ordered_json& file) const {
  const auto& [a, b, magnitude, embedding, factor] = module;
  const auto fail = [&](const auto&... words) {
    throw Error(weights_file_, ": the module ", name, " ", words...);
  };
  if (!a.defined() || !b.defined() || a.dim() != 2 || b.dim() != 2) fail("lacks one of the matrices A and B");
  if (config.get_bool("use_dora", false) != magnitude.defined())
    fail(magnitude.defined() ? "has magnitudes of DoRA, without" : "lacks magnitudes of DoRA, with",
         " use_dora in ", kAdapterConfig);
  const std::vector<std::string> targets = names_under("target_modules", config);
  const bool listed = config.has("target_modules") && config.at("target_modules").is_array();
  const auto is_it = [&](const std::string& target) {
    return listed ? ("." + name).ends_with("." + target)
                  : target == "all-linear" || fits_expression(target, name, config);
  };
  if (config.has("target_modules") && std::ranges::none_of(targets, is_it))
    fail("is none of the target_modules in ", kAdapterConfig);
  const double rank = value_for(name, config, file, "rank_pattern", config.get_double("r", 8));
  const double alpha = value_for(name, config, file, "alpha_pattern", config.get_double("lora_alpha", 8));
  if (a.size(0) != rank || b.size(1) != rank)
    fail("has A ", a.sizes(), " and B ", b.sizes(), "; ", kAdapterConfig, " says that the rank is ", rank);
  module.scale = alpha / (config.get_bool("use_rslora", false) ? std::sqrt(rank) : rank);
}

std::shared_ptr<const WeightFiles> PeftAdapter::merged_into(const std::shared_ptr<const WeightFiles>& files,
                                                            const WeightTable& table, std::int64_t num_layers,
                                                            bool with_terms) const {
  const at::NoGradGuard no_grad;
  const StoredNames names(table, *files);
  std::map<std::string, WeightLayout> layouts;
  for (const WeightName& line : expand_layers(table.names, num_layers))
    for (const auto* all : {&line.theirs, &line.others})
      for (const std::string& name : *all) layouts.emplace(name, line.layout);
  for (const auto& [copy, original] : table.tied) layouts.emplace(copy, WeightLayout::kSame);

  LoadReport report;
  std::map<std::string, Change> changes;  // by names of the table
  std::map<std::string, const Module*> terms;
  for (const auto& [name, full] : whole_) changes[in_table(table, name)] = {file_, full, {}};
  for (const auto& [module, term] : modules_) {
    if (!with_terms) break;
    const std::string weight = in_table(table, module) + kWeight;
    changes[weight];
    terms[weight] = &term;
  }

  // Each of two tied weights gets a tensor of its own if the adapter changes one: the original, or what the
  // adapter puts in the place of both, unless that is a copy for one of them (modules_to_save).
  const std::map<std::string, Change> adapted = changes;
  for (const auto& [copy, original] : table.tied) {
    for (const auto& [name, other] : {std::pair(copy, original), std::pair(original, copy)}) {
      const auto changed = adapted.find(other);
      if (changed == adapted.end() && !adapted.contains(name)) continue;
      const std::string module = in_class(table, other.substr(0, other.rfind('.')));
      const auto is_it = [&](const std::string& end) { return module.ends_with(end); };
      if (!adapted.contains(name) && changed->second.files && std::ranges::none_of(saved_, is_it))
        changes[name] = changed->second;
      else if (!files->contains(names.own(name)) && !changes[name].files)
        changes[name] = {files, names.stored(original), {}};
    }
  }

  auto merged = std::make_unique<MergedTensors>(weights_file_);
  for (auto& [name, change] : changes) {
    const std::string own = names.own(name);
    if (!change.files) change = {files, own, {}};
    const auto layout = layouts.find(name);
    if (layout == layouts.end() || !change.files->contains(change.source)) {
      // PEFT adds the term to a head's random weights, which only a model that loads them would miss.
      if (layout == layouts.end() || !is_of_a_head(table, name)) report.unexpected.push_back(own);
      continue;
    }
    if (const auto term = terms.find(name); term != terms.end()) {
      const auto& [a, unscaled, magnitude, embedding, scale] = *term->second;
      const at::Tensor b = unscaled * scale;
      const bool across = embedding || layout->second == WeightLayout::kTransposed;
      change.delta = {across ? a.t() : b, across ? b.t() : a, {}};
      const std::vector<std::int64_t> wanted = change.files->entry(change.source).shape,
                                      found{change.delta.left.size(0), change.delta.right.size(1)};
      if (wanted != found || (magnitude.defined() && magnitude.numel() != b.size(0))) {
        report.mismatched.push_back(
            c10::str(own, ": expected ", at::IntArrayRef(wanted), ", found ", at::IntArrayRef(found)));
        continue;
      }
      if (magnitude.defined()) {
        const at::Tensor norms = at::linalg_vector_norm(change.tensor(), 2, across ? 0 : 1, true);
        change.delta.factor = magnitude.view_as(norms) / norms;
      }
    }
    merged->add(own, change);
  }
  if (!report.good()) throw Error(weights_file_, ": the adapter does not fit the model: ", report.faults());
  return std::make_shared<const WeightFiles>(files, std::move(merged));
}

}  // namespace zoo
