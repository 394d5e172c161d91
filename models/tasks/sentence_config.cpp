#include "models/tasks/sentence_config.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "data/base/gguf_file.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "tokenizer/files/json_section.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kSettings = "config_sentence_transformers.json";

// "sentence_transformers.models.Pooling", or with version 6
// "sentence_transformers.….modules.pooling.Pooling".
std::string type_of(const JsonSection& entry) {
  constexpr std::string_view kPackage = "sentence_transformers.";
  constexpr std::array kKnown{"Transformer", "Pooling", "Dense", "Normalize", "LayerNorm", "Dropout"};
  const std::string path = entry.text("type"), name = path.substr(path.rfind('.') + 1);
  if (!path.starts_with(kPackage) || std::ranges::find(kKnown, name) == kKnown.end())
    entry.fail("type", "is '", path,
               "', which tzoo cannot run; it runs Transformer, Pooling, Dense, Normalize, ",
               "LayerNorm and Dropout of sentence_transformers");
  return name;
}

void read_modules(const ModelPath& directory, SentenceConfig& config) {
  const fs::path file = directory / "modules.json";
  if (!fs::exists(file)) return;
  const json root{{"modules", read_json_array(file)}};
  for (const JsonSection& entry : JsonSection(file, "", root).sections("modules")) {
    const std::string type = type_of(entry);
    const fs::path folder = directory / entry.text("path", "");
    if (config.modules.empty() && type == "Transformer" && config.transformer.empty()) {
      config.transformer = {folder, directory.adapter};
    } else if (type == "Transformer" || config.transformer.empty()) {
      throw Error(file, ": expected one Transformer, as the first module");
    } else {
      config.modules.push_back({type, folder});
    }
  }
  if (std::ranges::find(config.modules, "Pooling", &SentenceConfig::Module::type) == config.modules.end())
    throw Error(file, ": has no Pooling, so that a text has no vector");
}

// Throws for a text other than the only one that has a meaning here.
void expect(const JsonSection& section, const char* key, const std::string& only) {
  if (const std::string text = section.text(key, only); text != only)
    section.fail(key, "is '", text, "': expected ", only);
}

// Throws for a value that changes what the transformer does.
void refuse_other_uses(const JsonSection& section) {
  // The last four have no effect here: memory layout, and lengths of queries that only a task selects.
  constexpr std::array kKnown{"max_seq_length",  "do_lower_case",      "transformer_task",
                              "modality_config", "module_output_name", "unpad_inputs",
                              "query_length",    "document_length",    "query_expansion"};
  for (const auto& [key, value] : section.object().items()) {
    const bool empty = value.is_null() || (value.is_structured() && value.empty());
    if (!empty && std::ranges::find(kKnown, key) == kKnown.end())
      section.fail(key, "is ", value.dump(), ": tzoo does not know this setting");
  }
  expect(section, "transformer_task", "feature-extraction");
  expect(section, "module_output_name", "token_embeddings");
  if (section.find("modality_config") == nullptr) return;
  const JsonSection text = section.section("modality_config").section("text");
  const json expected{{"method", "forward"}, {"method_output_name", "last_hidden_state"}};
  if (section.find("modality_config")->size() > 1 || text.object() != expected)
    section.fail("modality_config", "is ", section.find("modality_config")->dump(), ": expected ",
                 json{{"text", expected}}.dump());
}

// The name depends on the version and on the model.
fs::path transformer_file(const fs::path& directory) {
  for (const char* model : {"bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"}) {
    fs::path file = directory / (std::string("sentence_") + model + "_config.json");
    if (fs::exists(file) && !read_json(file).empty()) return file;
  }
  return {};
}

void read_transformer(SentenceConfig& config) {
  const fs::path file = transformer_file(config.transformer);
  if (file.empty()) return;
  const json root = read_json(file);
  const JsonSection section(file, "", root);
  refuse_other_uses(section);
  if (section.find("max_seq_length") != nullptr)
    config.max_length = static_cast<std::size_t>(section.count("max_seq_length", 0));
  config.lowercase = section.flag("do_lower_case", false);
}

void read_prompts(const JsonSection& section, SentenceConfig& config) {
  if (section.find("prompts") != nullptr) {
    const JsonSection prompts = section.section("prompts");
    for (const auto& [name, text] : prompts.object().items())
      config.prompts[name] = prompts.text(name.c_str(), "");
  }
  if (section.find("default_prompt_name") == nullptr) return;
  const std::string name = section.text("default_prompt_name");
  if (!config.prompts.contains(name))
    section.fail("default_prompt_name", "is '", name, "', which is no prompt");
  config.default_prompt = config.prompts.at(name);
}

void read_settings(const fs::path& directory, SentenceConfig& config) {
  const fs::path file = directory / kSettings;
  config.prompts = {{"query", ""}, {"document", ""}};
  if (!fs::exists(file)) return;
  const json root = read_json(file);
  const JsonSection section(file, "", root);
  expect(section, "model_type", "SentenceTransformer");
  if (section.find("truncate_dim") != nullptr)
    config.truncate_dim = static_cast<std::size_t>(section.count("truncate_dim", 0));
  config.similarity = section.text("similarity_fn_name", "cosine");
  constexpr std::array kSimilarities{"cosine", "dot", "euclidean", "manhattan"};
  if (std::ranges::find(kSimilarities, config.similarity) == kSimilarities.end())
    section.fail("similarity_fn_name",
                 "is '" + config.similarity + "': expected cosine, dot, euclidean or manhattan");
  read_prompts(section, config);
}

// A GGUF file says how its model pools.
std::string pooling_of(const GgufFile& file) {
  const std::string key = file.text("general.architecture") + ".pooling_type";
  const json type = file.metadata().value(key, json(1));
  if (type == 0 || type == 1) return "mean";
  if (type == 2) return "cls";
  if (type == 3) return "lasttoken";
  throw Error(file.path(), ": '", key, "' is ", type.dump(), "; expected 0 to 3: none, mean, cls or last");
}

}  // namespace

bool SentenceConfig::pools(const fs::path& directory) {
  const fs::path file = directory / "modules.json";
  if (!fs::exists(file)) return false;
  const json root{{"modules", read_json_array(file)}};
  const std::vector<JsonSection> entries = JsonSection(file, "", root).sections("modules");
  return std::ranges::any_of(
      entries, [](const JsonSection& entry) { return entry.text("type").ends_with(".Pooling"); });
}

SentenceConfig SentenceConfig::read(const ModelPath& directory) {
  SentenceConfig config;
  read_modules(directory, config);
  if (config.modules.empty()) {
    config.transformer = directory;
    if (GgufFile::is_one(directory)) config.pooling = pooling_of(GgufFile(directory));
    return config;
  }
  read_transformer(config);
  read_settings(directory, config);
  return config;
}

SentenceConfig SentenceConfig::read_pair_settings(const fs::path& directory) {
  SentenceConfig config;
  const fs::path file = directory / kSettings;
  if (!fs::exists(file)) return config;
  const json root = read_json(file);
  const JsonSection section(file, "", root);
  read_prompts(section, config);
  config.activation = section.text("activation_fn", "");
  return config;
}

const std::string& SentenceConfig::prompt_named(const std::string& name) const {
  const auto found = prompts.find(name);
  if (found != prompts.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, text] : prompts) names.push_back(known);
  throw Error("there is no prompt '", name, "'; the model has ", names.empty() ? "none" : joined(names));
}

}  // namespace zoo
