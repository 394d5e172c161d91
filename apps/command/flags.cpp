#include "apps/command/flags.h"

#include <algorithm>
#include <deque>
#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/command/flag_data.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "data/base/near_match.h"

namespace zoo {

using nlohmann::json;

namespace {

// Matches "cuda:0" to "cuda:999"; the verb checks whether the device exists.
bool is_device(std::string_view text) {
  if (text == "auto" || text == "cpu" || text == "cuda") return true;
  if (!text.starts_with("cuda:") || text.size() < 6 || text.size() > 8) return false;
  return text.find_first_not_of("0123456789", 5) == std::string_view::npos;
}

}  // namespace

struct Flags::Impl {
  CommandOutline verb;
  std::string group = "Flags";
  std::deque<FlagData> flags;  // a deque: Flag and the parser hold references into it
  std::optional<std::filesystem::path> config;
  std::optional<std::string> recipe;
  bool dump_config = false;
  std::span<const Recipe> recipes;

  FlagData* find(std::string_view name) {
    const auto found = std::ranges::find(flags, name, &FlagData::name);
    return found == flags.end() ? nullptr : &*found;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const FlagData& flag : flags)
      if (!flag.about_parsing) names.push_back(flag.name);
    return names;
  }

  // Applies the values of a config file or recipe. `source` starts every error.
  void apply(const json& object, const std::string& source) {
    for (const auto& [key, value] : object.items()) {
      std::string name = key;
      std::replace(name.begin(), name.end(), '-', '_');
      FlagData* flag = find(name);
      if (flag == nullptr || flag->about_parsing)
        throw UsageError(source, ": unknown key '", key, "'", did_you_mean(name, names()));
      assign_json(*flag, value, source + ": " + key);
    }
  }

  void apply_recipe(const std::string& name) {
    for (const Recipe& candidate : recipes)
      if (candidate.name == name) apply(json::parse(candidate.json), "recipe '" + name + "'");
  }

  void apply_layers(const GivenTexts& given, const std::string& defaults) {
    const auto apply_words = [&given](auto&& wanted) {
      for (const auto& [flag, texts] : given)
        if (wanted(*flag)) assign_texts(*flag, texts, flag->positional ? flag->name : "--" + flag->name);
    };
    // Config file and recipe are found first, to be applied in their order.
    apply_words([](const FlagData& flag) { return flag.about_parsing || flag.name == "recipe"; });
    const json values = config ? read_json(*config, read_file(*config)) : json::object();
    if (!recipe && find("recipe") != nullptr && values.contains("recipe"))
      assign_json(*find("recipe"), values["recipe"], config->string() + ": recipe");
    const std::optional<std::string> chosen = recipe;  // the defaults may name another
    if (!defaults.empty()) apply(read_json(defaults), defaults);
    if (chosen) apply_recipe(*chosen);
    if (config) apply(values, config->string());
    apply_words([](const FlagData&) { return true; });
  }

  void check_required() const {
    for (const FlagData& flag : flags) {
      // Another flag may have set the path (--adapter that of --model).
      const bool is_set = flag.given || (flag.kind == FlagKind::path && !flag.value().is_null());
      if (!flag.required || is_set) continue;
      throw UsageError("missing ", flag.positional ? "argument '" : "flag '--", flag.name, "': ", flag.help);
    }
  }
};

Flags::Flags(std::string command, std::string summary) : impl_(std::make_unique<Impl>()) {
  impl_->verb.command = std::move(command);
  impl_->verb.description = std::move(summary);
  group(kGeneralGroup);
  add("config", impl_->config,
      "JSON file with an object of flag: value; flags on the command line override it",
      {.placeholder = "FILE"});
  add("dump_config", impl_->dump_config, "print every flag with its value as JSON and exit");
  for (FlagData& flag : impl_->flags) flag.about_parsing = true;
  group("Flags");
}

Flags::~Flags() = default;

void Flags::group(std::string title) { impl_->group = std::move(title); }
void Flags::example(std::string line) { impl_->verb.examples.push_back(std::move(line)); }

FlagData& Flags::declare(std::string name, std::string help, FlagRules rules) {
  FlagData& flag = impl_->flags.emplace_back(FlagData{std::move(rules)});
  flag.name = std::move(name);
  flag.group = flag.positional ? "Arguments" : impl_->group;
  flag.help = std::move(help);
  return flag;
}

void Flags::add_compute(ComputeOptions& options) {
  const std::string before = std::exchange(impl_->group, "Compute");
  add("device", options.device, "auto: cuda where there is a GPU, else cpu",
      {.placeholder = "auto|cpu|cuda[:N]",
       .suggestions = {"auto", "cpu", "cuda"},
       .holds = is_device,
       .expected = "auto, cpu, cuda or cuda:N"});
  choice("dtype", options.dtype, {"float32", "bfloat16", "float16"}, "number format that is computed in");
  add("threads", options.threads, "threads on the CPU; default: one per core, within a container's quota",
      between(1, 1024));
  add("seed", options.seed, "seed of the random generators", {.range = at_least(0), .any_size = true});
  group(before);
}

void Flags::add_weights(ComputeOptions& options) {
  choice("weights", options.weights, {"auto", "gguf", "float32", "bfloat16", "int8", "int4", "modules"},
         "number format of the weights; int8 and int4 are quantization: faster and less exact; gguf: as "
         "a quantized GGUF file has them; auto: gguf for such a file, else that of --dtype; modules: "
         "computed by LibTorch in --dtype");
}

void Flags::add_cache(ComputeOptions& options) {
  choice("cache", options.cache, {"auto", "float32", "bfloat16", "int8"},
         "number format of the KV cache; auto: float32 for float32 weights, else bfloat16");
}

void Flags::add_recipes(std::span<const Recipe> recipes) {
  impl_->recipes = recipes;
  std::vector<std::string> names;
  for (const Recipe& recipe : recipes) names.push_back(recipe.name);
  const std::string before = std::exchange(impl_->group, kGeneralGroup);
  add("recipe", impl_->recipe,
      "named set of flag values, which --config and other flags override; one of " + joined(names),
      {.placeholder = "NAME", .choices = names});
  group(before);
}

bool Flags::parse(const Arguments& arguments) {
  if (arguments.outline != nullptr) {
    outline_help(impl_->verb, impl_->flags, *arguments.outline);
    return false;
  }
  const auto given = parse_words(impl_->flags, arguments.words, impl_->verb.command);
  if (!given) {
    print_help(std::cout, impl_->verb, impl_->flags);
    return false;
  }
  impl_->apply_layers(*given, arguments.defaults);
  if (impl_->dump_config) {
    std::cout << json_text(resolved(), 2) << "\n";
    return false;
  }
  impl_->check_required();
  return true;
}

bool Flags::given(std::string_view name) const {
  const FlagData* flag = impl_->find(name);
  return flag != nullptr && flag->given;
}

json Flags::given_values() const {
  json values = json::object();
  for (const FlagData& flag : impl_->flags)
    if (flag.given && !flag.about_parsing) values[flag.name] = flag.value();
  return values;
}

json Flags::resolved() const {
  json values = json::object();
  for (const FlagData& flag : impl_->flags) {
    if (flag.about_parsing) continue;
    values[flag.name] = flag.required && !flag.given ? json(nullptr) : flag.value();
  }
  return values;
}

std::string flag_text(const json& value) {
  if (value.is_null()) return "unset";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void require_read(const std::function<bool(const std::string&)>& is_given, const std::string& other,
                  const std::string& value, const std::vector<ReadWith>& all) {
  for (const auto& [flags, values] : all) {
    if (std::ranges::find(values, value) != values.end()) continue;
    for (const std::string& flag : flags)
      if (is_given(flag))
        throw UsageError("--", flag, ": only for the ", other, " ", joined(values, " or "), ", not ", value);
  }
}

}  // namespace zoo
