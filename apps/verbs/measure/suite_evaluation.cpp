#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "apps/verbs/measure/evaluations.h"
#ifdef ZOO_YAML
#include <yaml-cpp/yaml.h>
#endif

#include "apps/answers/answers.h"
#include "apps/command/output.h"
#include "apps/command/progress.h"
#include "apps/hub/hub_cache.h"
#include "data/base/atomic_file.h"
#include "data/base/environment.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "data/corpora/corpora.h"
#include "data/corpora/dataset_folder.h"
#include "models/tasks/inference_loading.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

#ifdef ZOO_YAML
Json plain_value(const std::string& text, const std::string& place) {
  std::string word = text;
  if (std::ranges::any_of(text, [](char c) { return c >= 'a' && c <= 'z'; }))
    word[0] = static_cast<char>(std::tolower(text[0]));
  else
    std::ranges::transform(word, word.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  static const std::map<std::string, Json> kWords{{"", {}},         {"~", {}},     {"null", {}},
                                                  {"true", true},   {"yes", true}, {"on", true},
                                                  {"false", false}, {"no", false}, {"off", false}};
  if (const auto known = kWords.find(word); known != kWords.end()) return known->second;
  const Json number = parse_ordered_json(text);
  if (number.is_number() && text.find_first_of("eE") == std::string::npos) return number;
  if (text.find_first_of("0123456789") < 2 &&
      text.find_first_not_of("0123456789+-.:_xobeEabcdefABCDEFTZ ") == std::string::npos)
    throw Error(place, "'", text, "' may be a text or a number; write texts in quotes");
  return text;
}

Json value_of(const YAML::Node& node, const std::string& file) {
  const std::string place = file + ", line " + std::to_string(node.Mark().line + 1) + ": ";
  if (node.Tag().size() > 1) throw Error(place, "the tag ", node.Tag(), " is not supported");
  Json value;
  if (node.IsSequence()) {
    value = Json::array();
    for (const YAML::Node& item : node) value.push_back(value_of(item, file));
  } else if (node.IsMap()) {
    value = Json::object();
    for (const auto& entry : node) value[entry.first.as<std::string>()] = value_of(entry.second, file);
  } else if (node.IsScalar()) {
    value = node.Tag() == "!" ? Json(node.Scalar()) : plain_value(node.Scalar(), place);
  }
  return value;
}
#endif

// The content of a JSON or YAML file, with the values that PyYAML gives. Throws Error naming file and line
// for a tag such as !function and for what PyYAML might take for a number, time or mapping of others, and
// naming the package if this tzoo was built without yaml-cpp.
Json read_yaml(const fs::path& path) {
  const std::string text = read_file(path);
  Json json = parse_ordered_json(text);
  if (!json.is_discarded()) return json;
#ifdef ZOO_YAML
  try {
    return value_of(YAML::Load(text), path.string());
  } catch (const YAML::Exception& error) {
    throw Error(path, ", line ", error.mark.line + 1, ": ", error.msg);
  }
#else
  throw Error(
      path,
      " is not JSON, and this tzoo cannot read YAML: build it with yaml-cpp (Debian's libyaml-cpp-dev)");
#endif
}

// The keys of a task's file; those that it includes are overridden by its own.
Json task_keys(const fs::path& file, Json own, int depth = 0) {
  Json keys = Json::object();
  if (!own.is_object() || depth > 8)
    throw Error(file, ": expected the keys of a task, or a list of files with such");
  Json included = own.value("include", Json::array());
  own.erase("include");
  for (const Json& other : included.is_string() ? Json::array({included}) : included) {
    const fs::path path = file.parent_path() / other.get<std::string>();
    keys.update(task_keys(path, read_yaml(path), depth + 1));
  }
  keys.update(own);
  return keys;
}

constexpr const char* kTasksVariable = "TZOO_SUITES";

// The file of a task that is given by its name: of that name, or with it as its task.
fs::path file_of_task(const std::string& given) {
  const fs::path path = given;
  if (fs::exists(path) || path.has_parent_path() || path.has_extension()) return path;
  const std::string folder = environment(kTasksVariable);
  if (folder.empty())
    throw UsageError("--suite ", given, ": no such file; for a task by its name, ", kTasksVariable,
                     " is the folder of the harness' tasks (lm_eval/tasks)");
  std::vector<fs::path> others;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().filename() == given + ".yaml") return entry.path();
    if (entry.path().extension() == ".yaml") others.push_back(entry.path());
  }
  for (const fs::path& other : others)
    for (const std::string text = read_file(other); const Line& line : every_line(text))
      if (line.text == "task: " + given) return other;
  throw UsageError("--suite ", given, ": neither a file nor a task in ", folder);
}

DatasetSplit split_named(const std::string& name, const fs::path& file) {
  static const std::map<std::string, DatasetSplit> kSplits{{"train", DatasetSplit::kTrain},
                                                           {"validation", DatasetSplit::kValidation},
                                                           {"test", DatasetSplit::kTest}};
  const auto found = kSplits.find(name);
  if (found == kSplits.end()) throw Error(file, ": the split '", name, "' is not supported");
  return found->second;
}

// The keys with the files of a dataset of the hub that tzoo pull has downloaded, of the splits that are read.
Json with_files(Json keys, const fs::path& file, const SuiteOptions& options) {
  const auto text = [&](const char* key) {
    return keys.value(key, Json()).is_string() ? keys[key].get<std::string>() : "";
  };
  const std::string path = text("dataset_path");
  if (path.empty() || path == "json" || keys.contains("data")) return keys;
  const auto snapshot = HubCache(HubName::parse("datasets/" + path)).find();
  if (!snapshot)
    throw Error(file, ": the dataset ", path, " is not here; download it: tzoo pull datasets/", path);
  const std::string part = text("dataset_name").empty() ? "default" : text("dataset_name");
  const fs::path folder = fs::is_directory(*snapshot / part) ? *snapshot / part : *snapshot;
  std::string asked = text("test_split").empty() ? text("validation_split") : text("test_split"), shown;
  for (const char* key : {"validation_split", "training_split", "fewshot_split"})
    if (!text(key).empty()) shown = text(key);
  const Json own = keys.value("num_fewshot", Json());
  if (options.num_fewshot.value_or(own.is_number_integer() ? own.get<std::int64_t>() : 0) == 0) shown = asked;
  Json files;
  for (const std::string& split : {asked, shown}) {
    const auto found = files_of_split(folder, split_named(split, file));
    if (!found) throw Error(file, ": ", folder, " has no files of the split '", split, "'");
    files[split] = resolve_dataset(*found).string();
  }
  keys.update({{"dataset_path", "json"}, {"dataset_kwargs", {{"data_files", files}}}});
  return keys;
}

std::vector<SuiteTask> read_tasks(const SuiteFlags& flags) {
  std::vector<SuiteTask> tasks;
  const auto add = [&](const fs::path& path, const Json& content) {
    const Json keys = with_files(task_keys(path, content), path, flags.options);
    tasks.push_back(read_suite_task(path, keys, flags.options));
  };
  for (const std::string& given : flags.files) {
    const fs::path file = file_of_task(given);
    const Json content = read_yaml(file);
    if (!content.is_array()) add(file, content);
    for (const Json& each : content.is_array() ? content : Json::array()) {
      const fs::path path = file.parent_path() / (each.is_string() ? each.get<std::string>() : each.dump());
      add(path, read_yaml(path));
    }
  }
  return tasks;
}

Json answer_json(const SuiteTask& task, std::size_t number, const SuiteAnswer& answer) {
  const SuiteQuestion& question = task.questions[number];
  Json json{{"task", task.name}, {"question", number}};
  if (task.output_type == "generate_until")
    json.update({{"text", answer.text}, {"targets", question.targets}});
  else json.update({{"log_probabilities", answer.log_probabilities}, {"greedy", answer.greedy}});
  if (task.output_type == "multiple_choice")
    json.update({{"chosen", answer.chosen}, {"right", question.right}});
  for (std::size_t i = 0; i < task.metrics.size(); ++i) json[task.metrics[i]] = answer.values[i].first;
  return json;
}

}  // namespace

void declare_suite(Flags& flags, SuiteFlags& values) {
  flags.group("Tasks of lm-evaluation-harness");
  flags.add(
      "suite", values.files,
      "a task's file in YAML or JSON, or a list of such files, or the name of one in the folder TZOO_SUITES; "
      "the answers are those of the harness' hf backend",
      {.placeholder = "FILE|NAME"});
  flags.add("num_fewshot", values.options.num_fewshot,
            "examples before each question; default: as the task says; not for one that says 0", at_least(0));
  flags.add("limit", values.options.limit, "number of questions of each task; default: all", at_least(1));
  flags.add("output", values.output,
            "write a JSON line for each question: log-probabilities, the choice, the metrics",
            {.placeholder = "FILE"});
}

void check_suite(const Flags& flags, const SuiteFlags& values) {
  static const std::set<std::string> kOwn{"suite", "num_fewshot", "limit", "output"},
      kShared{"model", "adapter", "json", "weights", "cache", "device", "dtype", "threads", "seed"};
  const nlohmann::json given = flags.given_values();
  for (const auto& [name, value] : given.items()) {
    if (values.files.empty() && kOwn.contains(name)) throw UsageError("--", name, ": needs --suite");
    if (!values.files.empty() && !kOwn.contains(name) && !kShared.contains(name))
      throw UsageError("--", name, ": has no meaning with --suite, whose tasks name their data");
  }
}

void evaluate_suite(const SuiteFlags& flags, const ModelPath& model, const ComputeOptions& compute,
                    bool as_json) {
  const std::vector<SuiteTask> tasks = read_tasks(flags);
  const CheckpointConfig checkpoint = read_writing_checkpoint(model);
  const GenerationConfig config = read_generation_config(model, checkpoint.json);
  GenerationSettings settings{.temperature = 0};
  apply_generation_config(settings, config, [](std::string_view name) { return name == "temperature"; });
  const GenerateSession session = open_generate_session(checkpoint, config, {}, TokenizerUse::kNeeded);
  if (!session.tokenizer) throw Error(model, " holds no tokenizer, which texts need");
  const auto decoder = load_decoding_model(checkpoint, compute);
  std::optional<AtomicFile> output;
  if (!flags.output.empty()) output.emplace(flags.output);
  Json json = Json::array();
  Table table({{"task"}, {"metric"}, number("value"), number("stderr"), number("n")});
  for (const SuiteTask& task : tasks) {
    Progress progress(std::ssize(task.questions), "questions of " + task.name);
    const SuiteResult result =
        evaluate_task(task, *decoder, session, settings, [&](std::int64_t done) { progress.update(done); });
    for (std::size_t i = 0; output && i < result.answers.size(); ++i)
      output->write(json_text(answer_json(task, i, result.answers[i])) + "\n");
    for (const SuiteScore& score : result.scores) {
      json.push_back({{"task", task.name},
                      {"metric", score.metric},
                      {"value", score.value},
                      {"stderr", score.error ? Json(*score.error) : Json()},
                      {"n", task.questions.size()}});
      table.row({task.name, score.metric, decimal(score.value, 4),
                 score.error ? decimal(*score.error, 4) : "", std::to_string(task.questions.size())});
    }
  }
  if (output) output->commit();
  if (as_json) std::cout << json_text(json) << "\n";
  else table.print(std::cout);
}

}  // namespace zoo
