#include "apps/verbs/measure/yaml_file.h"

#include <algorithm>
#include <cctype>
#include <map>

#include <nlohmann/json.hpp>
#ifdef ZOO_YAML
#include <yaml-cpp/yaml.h>
#endif

#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "data/base/json_text.h"

namespace zoo {
namespace {

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

}  // namespace

Json read_yaml(const std::filesystem::path& path) {
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

}  // namespace zoo
