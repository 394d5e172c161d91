#include <algorithm>
#include <iostream>

#include <nlohmann/json.hpp>

#include "apps/command/flags.h"
#include "apps/command/output.h"
#include "apps/command/terminal.h"
#include "apps/verbs/verbs.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "models/checkpoint/checkpoint.h"
#include "models/inference/packed_stack.h"
#include "models/model.h"
#include "models/registry.h"

namespace zoo {
namespace {

// A preset, or the model of a directory's config.json.
struct Entry {
  std::string name, description;
  const Family& family;
  const TransformerConfig& config;
  Head head;
};

// Bytes of memory per parameter.
constexpr std::pair<std::string_view, std::int64_t> kMemory[]{
    {"float32", 4},
    {"bfloat16", 2},
    {"int8", 1},
    {"training", 16}};  // weights, gradients and Adam's two moments

nlohmann::json describe(const Entry& entry, const Model& model) {
  const TransformerConfig& config = entry.config;
  return {{"name", entry.name},
          {"family", entry.family.model_type},
          {"head", name_of(entry.head)},
          {"layers", config.num_layers},
          {"heads", config.num_heads},
          {"kv_heads", config.kv_heads()},
          {"width", config.hidden_size},
          {"feed_forward", config.feed_forward_size()},
          {"context", config.max_positions},
          {"vocabulary", config.vocab_size},
          {"parameters", model.parameter_count()}};
}

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

std::string percent(double share) { return format_text("%.1f%%", 100 * share); }

enum class Kind { kDecoder, kEncoder, kEncoderDecoder, kTutorial };
constexpr std::pair<Kind, const char*> kKinds[]{{Kind::kDecoder, "Decoders"},
                                                {Kind::kEncoder, "Encoders"},
                                                {Kind::kEncoderDecoder, "Encoder-decoders"},
                                                {Kind::kTutorial, "The tutorials' models"}};

Kind kind_of(const Model& model) {
  const ModelParts parts = model.parts();
  if (!parts.embeddings) return Kind::kTutorial;
  if (!parts.encoder) return Kind::kDecoder;
  return parts.decoder ? Kind::kEncoderDecoder : Kind::kEncoder;
}

bool packs_stack(const TransformerStackImpl* stack) {
  return stack == nullptr || inference::PackedStack::missing(stack->config()).empty();
}

// Names of what lacks something, for "all but t5, mt5"; "all" if nothing does.
std::string all_but(const std::vector<std::string>& names) {
  return names.empty() ? "all" : "all but " + joined(names);
}

void print_families() {
  std::vector<std::string> unpacked, unscripted;
  std::size_t models = 0;
  for (const auto& [kind, title] : kKinds) {
    Table table({{title}, {""}});
    for (const Family& family : families()) {
      const auto model = build_meta_model(family, family.presets.front().config, family.heads.front().head);
      if (kind_of(*model) != kind) continue;
      const ModelParts parts = model->parts();
      const std::string name = family.model_type;
      if (kind == Kind::kTutorial || !packs_stack(parts.encoder.get()) || !packs_stack(parts.decoder.get()))
        unpacked.push_back(name);
      if (kind == Kind::kTutorial) unscripted.push_back(name);
      models += family.presets.size();
      table.row({name, family.description});
    }
    table.print(std::cout);
    std::cout << "\n";
  }
  std::cout << paragraph("Training: all. Packed weights: " + all_but(unpacked) +
                         ". TorchScript: " + all_but(unscripted) + ".")
            << "\n"
            << paragraph("'tzoo models --all' lists " + std::to_string(models) +
                         " models of known sizes, 'tzoo models NAME' shows one.");
}

void print_all() {
  for (const auto& [kind, title] : kKinds) {
    Table table({{title}, number("parameters"), number("layers"), number("context"), {""}});
    for (const Family& family : families()) {
      for (const Preset& preset : family.presets) {
        const auto model = build_meta_model(family, preset.config, family.heads.front().head);
        if (kind_of(*model) != kind) continue;
        table.row({preset.name, human_count(model->parameter_count()),
                   std::to_string(preset.config.num_layers), std::to_string(preset.config.max_positions),
                   preset.description});
      }
    }
    table.print(std::cout);
    if (kind != Kind::kTutorial) std::cout << "\n";
  }
}

void print_all_json() {
  nlohmann::json list = nlohmann::json::array();
  for (const Family& family : families()) {
    for (const Preset& preset : family.presets) {
      const Head head = family.heads.front().head;
      const auto model = build_meta_model(family, preset.config, head);
      list.push_back(describe({preset.name, preset.description, family, preset.config, head}, *model));
    }
  }
  std::cout << json_text(list) << "\n";
}

void print_json(const Entry& entry, const Model& model) {
  nlohmann::json json = describe(entry, model);
  const std::int64_t total = model.parameter_count();
  json["components"] = nlohmann::json::array();
  for (const auto& [name, count] : model.components())
    json["components"].push_back({{"name", name}, {"parameters", count}, {"share", share(count, total)}});
  for (const auto& [name, bytes] : kMemory) json["memory"][name] = total * bytes;
  std::cout << json_text(json) << "\n";
}

void print_text(const Entry& entry, const Model& model) {
  std::cout << entry.name << ": " << entry.description << "\n\n";
  const TransformerConfig& config = entry.config;
  Table shape({{""}, number("")});
  shape.row({"family", entry.family.model_type});
  shape.row({"layers", std::to_string(config.num_layers)});
  shape.row({"heads", std::to_string(config.num_heads)});
  if (config.kv_heads() != config.num_heads)
    shape.row({"key/value heads", std::to_string(config.kv_heads())});
  shape.row({"width", std::to_string(config.hidden_size)});
  shape.row({"feed-forward", std::to_string(config.feed_forward_size())});
  if (config.num_experts > 0) {
    shape.row({"experts", std::to_string(config.num_experts)});
    shape.row({"experts of a token", std::to_string(config.experts_per_token)});
    shape.row({"width of an expert", std::to_string(config.expert_width())});
  }
  shape.row({"context", std::to_string(config.max_positions)});
  shape.row({"vocabulary", with_separators(config.vocab_size)});
  shape.print(std::cout);

  const std::int64_t total = model.parameter_count();
  Table parts({{"component"}, number("parameters"), number("share")});
  for (const auto& [name, count] : model.components())
    parts.row({name, with_separators(count), percent(share(count, total))});
  parts.row({"all", with_separators(total), percent(1)});
  std::cout << "\n";
  parts.print(std::cout);

  Table memory({{"memory"}, number("bytes"), {""}});
  for (const auto& [name, bytes] : kMemory)
    memory.row({std::string(name), human_bytes(total * bytes),
                name == "training" ? "float32 weights, gradients and Adam's two moments" : "weights"});
  std::cout << "\n";
  memory.print(std::cout);
}

void print_one(const Entry& entry, bool as_json) {
  const auto model = build_meta_model(entry.family, entry.config, entry.head);
  as_json ? print_json(entry, *model) : print_text(entry, *model);
}

}  // namespace

int run_models(const Arguments& arguments) {
  std::optional<std::string> name;
  bool all = false, as_json = false;
  Flags flags(arguments.command,
              "Lists the families of models that the zoo knows, or shows one model: its size, the parameters "
              "of each component and the memory it takes.");
  flags.positional("name", name, "name from the list, or a checkpoint directory",
                   {.placeholder = "NAME|DIR", .suggestions = preset_names()});
  flags.add("all", all, "list every model of known sizes, not the families");
  flags.group("Output");
  flags.add("json", as_json, "print JSON, of the list with every model");
  flags.example("tzoo models gpt2");
  if (!flags.parse(arguments)) return 0;
  if (name && all) throw UsageError("--all lists models and has no NAME, got '", *name, "'");
  if (!name) {
    as_json ? print_all_json() : all ? print_all() : print_families();
  } else if (std::ranges::count(preset_names(), *name) == 0 && std::filesystem::is_directory(*name)) {
    const CheckpointConfig checkpoint = read_checkpoint_config(*name);
    print_one({*name, checkpoint.family->description, *checkpoint.family, checkpoint.config, checkpoint.head},
              as_json);
  } else {
    const PresetEntry preset = find_preset(*name);
    print_one({preset.preset.name, preset.preset.description, preset.family, preset.preset.config,
               preset.family.heads.front().head},
              as_json);
  }
  return 0;
}

}  // namespace zoo
