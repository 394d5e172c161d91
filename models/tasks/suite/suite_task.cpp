#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "data/base/near_match.h"
#include "models/tasks/suite/python_random.h"
#include "models/tasks/suite/suite.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Texts = std::vector<std::string>;

// The metrics of each output type with their aggregations.
const std::map<std::string, std::map<std::string, std::string>> kMetrics{
    {"multiple_choice",
     {{"acc", "mean"}, {"acc_norm", "mean"}, {"acc_bytes", "mean"}, {"exact_match", "mean"}}},
    {"loglikelihood", {{"acc", "mean"}, {"perplexity", "perplexity"}}},
    {"loglikelihood_rolling",
     {{"bits_per_byte", "bits_per_byte"},
      {"byte_perplexity", "weighted_perplexity"},
      {"word_perplexity", "weighted_perplexity"}}},
    {"generate_until", {{"exact_match", "mean"}}}};

class TaskReader {
 public:
  TaskReader(const fs::path& file, const Json& keys) : file_(file), keys_(keys) {}

  SuiteTask read(const SuiteOptions& options) {
    // Those of the last line change no answer.
    check(keys_,
          "task dataset_path dataset_name dataset_kwargs data output_type training_split test_split "
          "validation_split fewshot_split fewshot_config doc_to_text doc_to_target doc_to_choice description "
          "metric_list num_fewshot target_delimiter fewshot_delimiter filter_list repeats generation_kwargs "
          "tag task_alias metadata should_decontaminate doc_to_decontamination_query");
    task_.name = get<std::string>("task", "");
    task_.output_type = get<std::string>("output_type", "generate_until");
    chooses_ = task_.output_type == "multiple_choice";
    writes_ = task_.output_type == "generate_until";
    has_choices_ = given("doc_to_choice");
    for (const char* key : {"task", "doc_to_text", "doc_to_target", chooses_ ? "doc_to_choice" : "task"})
      if (!given(key)) refuse(key, "is missing");
    if (!get("dataset_name", Json("")).is_string()) refuse("dataset_name", "is no text");
    if (get("repeats", Json(1)) != 1) refuse("repeats", "is " + keys_["repeats"].dump() + "; expected 1");
    read_metrics();
    read_generation();
    const Json split = get("test_split", get("validation_split", Json()));
    const std::vector<Json> documents = read_documents(split);
    // As in the harness, a task that says 0 has no examples.
    const auto own = get<std::int64_t>("num_fewshot", 0);
    const bool none = given("num_fewshot") && own == 0;
    shots_ = static_cast<std::size_t>(none ? 0 : options.num_fewshot.value_or(own));
    if (shots_ > 0)
      examples_ = read_documents(get("fewshot_split", get("training_split", get("validation_split", split))));
    const auto limit = static_cast<std::size_t>(options.limit.value_or(std::ssize(documents)));
    for (std::size_t i = 0; i < std::min(documents.size(), limit); ++i) {
      place_ = ", question " + std::to_string(i + 1);
      task_.questions.push_back(question(documents[i]));
    }
    return std::move(task_);
  }

  const std::string& place() const { return place_; }

 private:
  [[noreturn]] void refuse(const std::string& key, const std::string& why) const {
    throw Error(file_, place_, ": ", key, " ", why);
  }

  void check(const Json& object, const std::string& names) const {
    std::istringstream words(names);
    const Texts known(std::istream_iterator<std::string>(words), {});
    for (const auto& [key, value] : object.items())
      if (std::ranges::find(known, key) == known.end())
        refuse("'" + key + "'", "is not supported" + did_you_mean(key, known));
  }

  bool given(const char* key) const { return !keys_.value(key, Json()).is_null(); }

  template <class T = Json> T get(const char* key, T absent) const {
    return given(key) ? keys_[key].template get<T>() : absent;
  }

  void read_metrics() {
    const auto known = kMetrics.find(task_.output_type);
    if (known == kMetrics.end())
      refuse("output_type", "is '" + task_.output_type + "', which is not supported");
    for (const Json& entry : get("metric_list", Json::array())) {
      const auto metric =
          known->second.find(task_.metrics.emplace_back(entry.at("metric").get<std::string>()));
      check(entry, writes_
                       ? "metric aggregation higher_is_better ignore_case ignore_punctuation ignore_numbers "
                         "regexes_to_ignore"
                       : "metric aggregation higher_is_better");
      if (metric == known->second.end() || entry.value("aggregation", metric->second) != metric->second)
        refuse("metric_list", "has " + entry.dump() + ", which is not supported for " + known->first);
      if (writes_) task_.rules.push_back(rules_of(entry));
    }
    for (const auto& [name, aggregation] : known->second)
      if (!given("metric_list") && (!chooses_ || name == "acc" || name == "acc_norm"))
        task_.metrics.push_back(name);
    task_.rules.resize(task_.metrics.size());
    read_filters();
  }

  MatchRules rules_of(const Json& metric) const {
    MatchRules rules{.ignore_case = metric.value("ignore_case", false),
                     .ignore_punctuation = metric.value("ignore_punctuation", false),
                     .ignore_numbers = metric.value("ignore_numbers", false)};
    const Json expressions = metric.value("regexes_to_ignore", Json());
    for (const Json& each : expressions.is_null() ? Json::array() : expressions)
      rules.regexes_to_ignore.push_back(pattern("metric_list", each.get<std::string>()));
    return rules;
  }

  TextPattern pattern(const char* key, const std::string& expression) const {
    try {
      return python_pattern(expression);
    } catch (const Error& error) {
      refuse(key, "'" + expression + "': " + error.what());
    }
  }

  // Of written texts, each entry makes a metric of its own.
  void read_filters() {
    const Texts metrics = std::exchange(task_.metrics, {});
    const std::vector<MatchRules> rules = std::exchange(task_.rules, {});
    const Json last{{"function", "take_first"}}, none{{"name", "none"}, {"filter", Json::array({last})}},
        entries = get("filter_list", Json::array({none}));
    if (entries.empty()) refuse("filter_list", "is empty");
    for (const Json& entry : entries) {
      Json functions = entry.at("filter");
      if (functions.empty() || functions.back() != last) refuse("filter_list", "does not end in take_first");
      functions.erase(functions.size() - 1);
      std::vector<MatchRules::Filter> filters;
      for (const Json& each : functions) {
        check(each, "function regex_pattern group_select fallback");
        if (each.at("function") != "regex" || !writes_)
          refuse("filter_list", "has " + each.dump() + "; expected regex, of written texts");
        const std::string expression = each.value("regex_pattern", R"(#### (\-?[0-9\.\,]+))");
        filters.push_back({.pattern = pattern("filter_list", expression),
                           .group_select = each.value("group_select", std::int64_t{0}),
                           .fallback = each.value("fallback", "[invalid]")});
      }
      if (!writes_ && !task_.metrics.empty()) continue;  // the same again
      for (std::size_t i = 0; i < metrics.size(); ++i) {
        const bool named = writes_ && (entries.size() > 1 || !filters.empty());
        task_.metrics.push_back(metrics[i] + (named ? "," + entry.at("name").get<std::string>() : ""));
        task_.rules.push_back(rules[i]);
        task_.rules.back().filters = filters;
      }
    }
  }

  void read_generation() {
    const Json options = get("generation_kwargs", Json::object());
    check(options, "until max_gen_toks do_sample temperature");
    if (options.value("do_sample", false) || options.value("temperature", 0.0) != 0)
      refuse("generation_kwargs", "asks for sampling; expected greedy decoding");
    const Json until = options.value("until", get<Json>("fewshot_delimiter", "\n\n"));
    for (const Json& text : until.is_array() ? until : Json::array({until}))
      task_.until.push_back(text.get<std::string>());
    task_.max_gen_toks = options.value("max_gen_toks", task_.max_gen_toks);
  }

  // The objects of a split's file; a column that some lack is null there.
  std::vector<Json> read_documents(const Json& split) {
    Json name = get("data", Json());
    if (name.is_null() && get<std::string>("dataset_path", "") == "json") {
      name = get("dataset_kwargs", Json::object()).value("data_files", Json());
      if (name.is_object() && split.is_string()) name = name.value(split.get<std::string>(), Json());
      if (name.is_string() && !split.is_string()) refuse("test_split", "is missing");
    }
    if (!name.is_string())
      refuse("dataset_kwargs", "names no file of JSON lines for the split " + split.dump());
    fs::path path = name.get<std::string>();
    if (!fs::exists(path)) path = file_.parent_path() / path;
    std::vector<Json> documents;
    const std::string text = read_file(path);
    Texts columns;
    for (const Line& line : lines_of(text)) {
      const Json& document = documents.emplace_back(parse_ordered_json(line.text));
      if (!document.is_object()) throw Error(path, ", line ", line.number, ": expected a JSON object");
      for (const auto& [column, value] : document.items())
        if (std::ranges::find(columns, column) == columns.end()) columns.push_back(column);
    }
    if (documents.empty()) throw Error(path, " holds no question");
    for (Json& document : documents)
      for (const std::string& column : columns) document.emplace(column, nullptr);
    if (columns_.empty()) columns_ = columns;
    return documents;
  }

  // The examples before a question, as the harness' samplers choose them. Where they are of the questions'
  // split, the question is left out, for which one more is drawn.
  std::vector<Json> examples_for(const Json& document) {
    const Json config = get("fewshot_config", Json::object());
    check(config, "sampler");
    const std::string sampler = config.value("sampler", "default");
    if (sampler != "default" && sampler != "first_n")
      refuse("fewshot_config", "has a sampler other than first_n");
    const bool draws = sampler == "default",
               leaves_out = get("fewshot_split", Json()) == get("test_split", Json());
    std::vector<Json> others, found;
    for (const Json& example : examples_)
      if (!leaves_out || example != document) others.push_back(example);
    const std::size_t drawn = shots_ + (leaves_out && draws ? 1 : 0);
    if (shots_ > others.size() || drawn > examples_.size())
      refuse("num_fewshot", "exceeds the number of examples");
    if (!draws) return {others.begin(), others.begin() + static_cast<std::ptrdiff_t>(shots_)};
    for (const std::size_t i : python_sample(random_, examples_.size(), drawn))
      if (found.size() < shots_ && !(leaves_out && examples_[i] == document)) found.push_back(examples_[i]);
    if (found.size() == shots_) return found;
    found.clear();
    for (const std::size_t i : python_sample(random_, others.size(), shots_)) found.push_back(others[i]);
    return found;
  }

  std::string rendered(const std::string& key, const std::string& source, const Json& document) {
    // The parser drops the last line end, which the harness keeps.
    const auto made =
        templates_.try_emplace(source, source + '\n', file_.string() + ": " + key, TemplateRules::kHarness);
    try {
      return made.first->second.render(document);
    } catch (const Error& error) {
      throw Error(error.what(), place_);
    }
  }

  // What a key gives for a document: a column, or a template's text. A template of one expression may give a
  // list; where there are choices, digits are a number.
  Json value_of(const std::string& key, const Json& document) {
    const Json spec = get<Json>(key.c_str(), "");
    if (spec.is_object()) return Json(std::vector<Json>(spec.begin(), spec.end()));
    if (!spec.is_string()) return spec;
    const auto source = spec.get<std::string>();
    if (std::ranges::find(columns_, source) != columns_.end()) return document.value(source, Json());
    if (source.find("tojson") != std::string::npos)
      refuse(key, "has the filter tojson, which is not supported");
    if (key == "doc_to_choice" || key == "doc_to_target") {
      // Of the only expression, at the end, the value itself.
      const std::size_t begin = source.find("{{"), end = source.rfind("}}");
      const bool is_last =
          begin == source.rfind("{{") && begin < end && source.find_last_not_of(" \n") == end + 1;
      const Json list =
          is_last ? parse_ordered_json(rendered(key,
                                                source.substr(0, begin) + "{{(" +
                                                    source.substr(begin + 2, end - begin - 2) + ")|tojson}}",
                                                document))
                  : Json();
      if (list.is_array()) return list;
    }
    const std::string text = rendered(key, source, document);
    if (key == "doc_to_choice" || (key == "doc_to_target" && text.starts_with('[') && text.ends_with(']')))
      refuse(key, "gives '" + text + "': expected a list as one expression in '{{' and '}}'");
    const bool is_number = has_choices_ && !text.empty() && text.size() < 10 &&
                           text.find_first_not_of("0123456789") == std::string::npos;
    return is_number ? Json(std::stoll(text)) : Json(text);
  }

  std::string written(const std::string& key, const Json& value) const {
    if (!value.is_string() && !value.is_number_integer())
      refuse(key, "gives " + value.dump() + ": expected a text");
    return value.is_string() ? value.get<std::string>() : value.dump();
  }

  std::size_t index_of(const std::string& key, const Json& value, const Texts& choices) const {
    std::int64_t index = -1;
    if (value.is_string()) index = std::ranges::find(choices, value.get<std::string>()) - choices.begin();
    if (is_index(value)) index = value.is_boolean() ? value.get<bool>() : value.get<std::int64_t>();
    if (index < 0 || index >= std::ssize(choices))
      refuse(key, "gives " + value.dump() + ", which is none of the " + std::to_string(choices.size()) +
                      " choices");
    return static_cast<std::size_t>(index);
  }

  static bool is_index(const Json& value) { return value.is_number_integer() || value.is_boolean(); }

  Texts choices_of(const Json& document) {
    Texts choices;
    for (const Json& choice : has_choices_ ? value_of("doc_to_choice", document) : Json::array())
      if (choices.emplace_back(written("doc_to_choice", choice)).empty())
        refuse("doc_to_choice", "gives an empty choice");
    return choices;
  }

  std::string example_text(const Json& document) {
    const Texts choices = choices_of(document);
    Json asked = value_of("doc_to_text", document), answer = value_of("doc_to_target", document);
    Json& number = chooses_ && is_index(asked) ? asked : answer;
    if (has_choices_ && is_index(number)) number = choices[index_of("doc_to_target", number, choices)];
    if (answer.is_array()) answer = answer.at(0);
    const std::string text = written("doc_to_text", asked);
    if (answer.is_null() || answer == "") return text;
    return text + get<std::string>("target_delimiter", " ") + written("doc_to_target", answer) +
           get<std::string>("fewshot_delimiter", "\n\n");
  }

  // A text that is a number has its choices in the context, before the target, as in WinoGrande.
  SuiteQuestion question(const Json& document) {
    SuiteQuestion question{.choices = choices_of(document)};
    std::string context = written("description", value_of("description", document));
    for (const Json& example : shots_ > 0 ? examples_for(document) : std::vector<Json>())
      context += example_text(example);
    const Json asked = value_of("doc_to_text", document), target = value_of("doc_to_target", document);
    const bool inside = chooses_ && is_index(asked);
    if (inside_.value_or(inside) != inside) refuse("doc_to_text", "gives numbers and texts");
    inside_ = inside;
    if (!inside) context += written("doc_to_text", asked);
    const auto delimiter = get<std::string>("target_delimiter", " ");
    if (has_choices_) question.right = index_of("doc_to_target", inside ? asked : target, question.choices);
    if (chooses_) {
      for (const std::string& choice : question.choices) {
        question.contexts.push_back(inside ? context + choice : context);
        question.continuations.push_back(delimiter + (inside ? written("doc_to_target", target) : choice));
      }
      return question;
    }
    if (has_choices_) question.targets = {question.choices[question.right]};
    else
      for (const Json& each : target.is_array() ? target : Json::array({target}))
        question.targets.push_back(written("doc_to_target", each));
    if (question.targets.empty()) refuse("doc_to_target", "gives no text");
    question.contexts = {task_.output_type == "loglikelihood_rolling" ? "" : context};
    question.continuations = {question.targets[0]};
    return question;
  }

  const fs::path& file_;
  const Json& keys_;
  SuiteTask task_;
  std::string place_;
  Texts columns_;
  std::vector<Json> examples_;
  std::map<std::string, ChatTemplate> templates_;
  std::size_t shots_ = 0;
  bool chooses_ = false, writes_ = false, has_choices_ = false;
  std::optional<bool> inside_;
  std::mt19937 random_ = python_random(1234);  // the harness' seed
};

}  // namespace

SuiteTask read_suite_task(const fs::path& file, const Json& keys, const SuiteOptions& options) {
  TaskReader reader(file, keys);
  try {
    return reader.read(options);
  } catch (const Json::exception& error) {
    throw Error(file, reader.place(), ": a key differs in kind from lm-evaluation-harness: ", error.what());
  }
}

}  // namespace zoo
