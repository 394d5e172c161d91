#include <algorithm>
#include <cmath>
#include <iostream>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/answers/answers.h"
#include "apps/command/output.h"
#include "apps/hub/hub_cache.h"
#include "apps/plots/attention_maps.h"
#include "apps/verbs/look/look_flags.h"
#include "apps/verbs/verbs.h"
#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/sizes.h"
#include "models/analysis/rollout.h"
#include "models/model.h"
#include "models/tasks/look_texts.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

// One GB at four bytes each: fits a laptop's memory beside the model.
constexpr std::int64_t kMostWeights = 256'000'000;

void check_size(const char* flag, std::size_t tokens, const TransformerConfig& config) {
  const auto length = static_cast<std::int64_t>(tokens);
  const std::int64_t weights = config.num_layers * config.num_heads * length * length;
  if (weights > kMostWeights)
    throw Error(flag, ": ", length, " tokens have ", weights, " attention weights; at most ", kMostWeights,
                " are kept, so give a shorter text");
}

AttentionMaps maps_of(const std::string& name, const std::vector<at::Tensor>& layers,
                      const std::vector<std::string>& queries, const std::vector<std::string>& keys) {
  AttentionMaps maps{.name = name, .queries = queries, .keys = keys, .layers = layers.size()};
  for (const at::Tensor& layer : layers) {
    const at::Tensor weights = layer[0].to(at::kFloat).cpu().contiguous();  // [H, T, S]
    maps.heads = static_cast<std::size_t>(weights.size(0));
    const float* data = weights.const_data_ptr<float>();
    maps.weights.insert(maps.weights.end(), data, data + weights.numel());
  }
  return maps;
}

// Tokens that the tokenizer adds around a text; in an encoder-decoder's decoder, its start token.
std::vector<std::size_t> special_positions(const Encoding& encoding) {
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < encoding.texts.size(); ++i)
    if (encoding.texts[i] < 0) positions.push_back(i);
  return positions;
}

// The rollout of a self-attention, as maps of one head.
AttentionMaps rollout_of(const std::string& name, const std::vector<at::Tensor>& layers,
                         const std::vector<std::string>& tokens) {
  const at::Tensor maps = analysis::attention_rollout(layers).unsqueeze(2);  // [L, B, 1, T, T]
  return maps_of(name + "-rollout", maps.unbind(0), tokens, tokens);
}

// Self-attention of an encoder or decoder; for an encoder-decoder that of both, and the decoder's attention
// to the encoder ("cross"). With `rollout` each self-attention's rollout up to each layer instead.
std::vector<AttentionMaps> attention_of(const TextModel& model, TextInputs read, bool rollout) {
  const TransformerConfig& config = model.model->config();
  check_size("--text", read.source.size(), config);
  check_size("--target", read.written.size(), config);
  read.inputs.output_attentions = true;
  const ModelOutput output = model.model->forward(read.inputs);
  const auto self = [&](const std::string& name, const std::vector<at::Tensor>& layers,
                        const std::vector<std::string>& tokens) {
    AttentionMaps maps = rollout ? rollout_of(name, layers, tokens) : maps_of(name, layers, tokens, tokens);
    maps.causal = name == "decoder";
    return maps;
  };
  const std::vector<std::size_t> added = special_positions(read.encoding), start{0};
  std::vector<AttentionMaps> all;
  const auto add = [&](AttentionMaps maps, const auto& queries, const auto& keys) {
    maps.special_queries = queries;
    maps.special_keys = keys;
    all.push_back(std::move(maps));
  };
  if (config.shape != Shape::kEncoderDecoder) {
    if (output.attentions.empty()) throw Error("--model: this model has no attention");
    add(self(config.shape == Shape::kEncoder ? "encoder" : "decoder", output.attentions, read.source), added,
        added);
    return all;
  }
  add(self("encoder", output.encoder_attentions, read.source), added, added);
  add(self("decoder", output.attentions, read.written), start, start);
  if (!rollout) add(maps_of("cross", output.cross_attentions, read.written, read.source), start, added);
  return all;
}

using Json = nlohmann::ordered_json;

struct AttentionFlags : LookFlags {
  std::optional<std::int64_t> layer, head;
  bool rollout = false;
};

bool has(std::optional<std::int64_t> choice, std::size_t count) {
  return !choice || *choice < static_cast<std::int64_t>(count);
}

void check_choice(const char* flag, std::optional<std::int64_t> choice, std::size_t count) {
  if (has(choice, count)) return;
  throw UsageError(flag, " ", *choice, ": the model has ", count, ", numbered from 0 to ", count - 1);
}

// The stacks of an encoder-decoder may differ in size: only those that have the layer and head are shown.
bool shows(const AttentionFlags& flags, const AttentionMaps& maps) {
  return has(flags.layer, maps.layers) && has(flags.head, maps.heads);
}

struct HeadNumber {
  std::size_t layer, head;
};

// The number of the flag, or all below `count`.
std::vector<std::size_t> numbers_of(std::optional<std::int64_t> choice, std::size_t count) {
  if (choice) return {static_cast<std::size_t>(*choice)};
  return indices_below(count);
}

std::vector<HeadNumber> chosen(const AttentionFlags& flags, const AttentionMaps& maps) {
  std::vector<HeadNumber> numbers;
  for (const std::size_t layer : numbers_of(flags.layer, maps.layers))
    for (const std::size_t head : numbers_of(flags.head, maps.heads)) numbers.push_back({layer, head});
  return numbers;
}

void print_patterns(const AttentionFlags& flags, const AttentionMaps& maps) {
  std::cout << maps.name << " attention: " << maps.layers << " layers of " << maps.heads << " heads, "
            << maps.queries.size() << " tokens";
  if (maps.name == "cross") std::cout << " to " << maps.keys.size();
  std::cout << "\n";
  Table table({number("layer"), number("head"), number("entropy, bits"), number("itself"), number("previous"),
               number("next"), number("first token"), number("duplicate"), number("induction")});
  for (const auto [layer, head] : chosen(flags, maps)) {
    std::vector<std::string> cells{std::to_string(layer), std::to_string(head)};
    for (const auto& [name, value] : pattern_of(maps, layer, head).numbers())
      cells.push_back(decimal(value, 3));
    table.row(cells);
  }
  table.print(std::cout);
}

void print_strongest(const AttentionMaps& maps, HeadNumber at) {
  std::cout << "layer " << at.layer << ", head " << at.head << ": where each token looks most\n";
  Table table({number("position"), {"token"}, number("position"), {"token"}, number("weight")});
  for (std::size_t query = 0; query < maps.queries.size(); ++query) {
    const std::size_t key = maps.strongest_key(at.layer, at.head, query);
    table.row({std::to_string(query), token_label(maps.queries[query]), std::to_string(key),
               token_label(maps.keys[key]),
               decimal(static_cast<double>(maps.weight(at.layer, at.head, query, key)), 3)});
  }
  table.print(std::cout);
}

Json rounded(double value) { return std::isnan(value) ? Json() : Json(std::round(value * 1e6) / 1e6); }

Json summary_of(const AttentionFlags& flags, const AttentionMaps& maps) {
  Json json{{"name", maps.name},     {"queries", maps.queries}, {"keys", maps.keys},
            {"layers", maps.layers}, {"heads", maps.heads},     {"patterns", Json::array()}};
  for (const auto [layer, head] : chosen(flags, maps)) {
    Json pattern{{"layer", layer}, {"head", head}};
    for (const auto& [name, value] : pattern_of(maps, layer, head).numbers()) pattern[name] = rounded(value);
    for (std::size_t query = 0; query < maps.queries.size(); ++query)
      pattern["strongest_key"].push_back(maps.strongest_key(layer, head, query));
    json["patterns"].push_back(std::move(pattern));
  }
  return json;
}

// Weights [sizes[0]][sizes[1]]… as lists of lists.
Json nested(std::span<const float> weights, std::span<const std::size_t> sizes) {
  if (sizes.empty()) return rounded(static_cast<double>(weights.front()));
  Json list = Json::array();
  const std::size_t part = weights.size() / sizes.front();
  for (std::size_t i = 0; i < sizes.front(); ++i)
    list.push_back(nested(weights.subspan(i * part, part), sizes.subspan(1)));
  return list;
}

void write_json(const fs::path& path, const AttentionFlags& flags, const std::vector<AttentionMaps>& all) {
  Json json{{"model", flags.model.string()}, {"text", flags.texts.text}};
  if (flags.texts.text_pair) json["text_pair"] = *flags.texts.text_pair;
  if (flags.texts.target) json["target"] = *flags.texts.target;
  json["maps"] = Json::array();
  for (const AttentionMaps& maps : all) {
    Json entry = summary_of({}, maps);
    const std::size_t sizes[]{maps.layers, maps.heads, maps.queries.size(), maps.keys.size()};
    entry["weights"] = nested(maps.weights, sizes);
    json["maps"].push_back(std::move(entry));
  }
  write_file(path, json_text(json) + "\n");
  std::cerr << "weights: " << path.string() << "\n";
}

// With the run, where the folder's name is that of many, and the family.
std::string title_of(const fs::path& model, const std::string& family) {
  const std::string name = model_name(model);
  const bool of_run = name == "final" || name == "best";
  return (of_run ? model_name(model / "..") + "/" : "") + name + " (" + family + ")";
}

void write_page(const fs::path& path, const AttentionFlags& flags, const std::string& family,
                const std::vector<AttentionMaps>& all) {
  std::size_t weights = 0;
  for (const AttentionMaps& maps : all) weights += maps.weights.size();
  if (weights > kMostPageWeights) {
    std::cerr << "warning: no page is written: " << weights << " weights are too many for a browser (at most "
              << kMostPageWeights << "); give a shorter text\n";
    return;
  }
  AttentionPage page{.model = title_of(flags.model, family), .text = flags.texts.text};
  for (const auto& more : {flags.texts.text_pair, flags.texts.target})
    if (more) page.text += " → " + *more;
  page.layer = flags.layer;
  page.head = flags.head;
  write_file(path, attention_page(page, all));
  std::cerr << "page: " << path.string() << "\n";
}

void draw_pictures(const AttentionFlags& flags, const std::vector<AttentionMaps>& all) {
  for (const AttentionMaps& maps : all) {
    if (!shows(flags, maps)) continue;
    const auto [layer, head] = chosen(flags, maps).front();
    show_figure(head_figure(maps, layer, head), flags.out_dir / maps.name, flags.format);
    if (flags.layer && flags.head) continue;
    const auto layers = numbers_of(flags.layer, maps.layers), heads = numbers_of(flags.head, maps.heads);
    show_figure(heads_figure(maps, layers, heads), flags.out_dir / (maps.name + "-heads"), flags.format);
  }
}

void print(const AttentionFlags& flags, const std::vector<AttentionMaps>& all) {
  if (flags.json) {
    Json maps = Json::array();
    for (const AttentionMaps& each : all)
      if (shows(flags, each)) maps.push_back(summary_of(flags, each));
    std::cout << json_text(Json{{"maps", maps}}) << "\n";
    return;
  }
  const char* between = "";
  for (const AttentionMaps& maps : all) {
    if (!shows(flags, maps)) continue;
    std::cout << std::exchange(between, "\n");
    print_patterns(flags, maps);
    std::cout << "\n";
    print_strongest(maps, chosen(flags, maps).front());
  }
}

}  // namespace

int run_attention(const Arguments& arguments) {
  AttentionFlags values;
  Flags flags(arguments.command,
              "Shows what the attention heads of a model look at: numbers for each head, pictures, a web "
              "page and all weights as JSON. Layers and heads count from 0.");
  values.add_input(flags);
  flags.group("What is shown");
  flags.add("layer", values.layer,
            "show only this layer's heads; without it all, and the picture shows layer 0", at_least(0));
  flags.add("head", values.head, "show only this head; without it all, and the picture shows head 0",
            at_least(0));
  flags.add("rollout", values.rollout,
            "show attention rollout in place of the heads: how much of each token reaches a position through "
            "layers 0 to N, if each is half the mean of its heads and half the residual connection");
  values.add_output(flags, "runs/attention", "attention.html, attention.json and the pictures");
  flags.example("tzoo attention --model bert-base-uncased --text \"The cat sat on the mat\" --layer 2");
  if (!values.parse(flags, arguments)) return 0;
  const at::NoGradGuard no_grad;
  const LookedModel loaded = load_looked_model(values);
  const auto all =
      attention_of(loaded.model, read_texts(loaded.model, values.texts, loaded.defaults), values.rollout);
  std::size_t layers = 0, heads = 0;
  for (const AttentionMaps& maps : all) {
    layers = std::max(layers, maps.layers);
    if (has(values.layer, maps.layers)) heads = std::max(heads, maps.heads);
  }
  check_choice("--layer", values.layer, layers);
  check_choice("--head", values.head, heads);
  print(values, all);
  std::cout.flush();
  make_directories(values.out_dir);
  write_json(values.out_dir / "attention.json", values, all);
  write_page(values.out_dir / "attention.html", values, loaded.model.checkpoint.family->model_type, all);
  draw_pictures(values, all);
  return 0;
}

}  // namespace zoo
