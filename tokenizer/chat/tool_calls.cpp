#include "tokenizer/chat/tool_calls.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "tokenizer/constraint/json_schema.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kIdLength = 9;  // as Mistral's templates demand
constexpr std::array kNames{"zoo_first", "zoo_second"}, kIds{"zooCall01", "zooCall02"};
constexpr const char *kKey = "zoo_key", *kText = "zoo text";

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// The answer to a question with calls of these names, as the template writes it; nothing if it refuses.
std::optional<std::string> rendered_calls(const ChatFormat& format, std::size_t count, bool as_text) {
  ordered_json calls = ordered_json::array();
  for (std::size_t i = 0; i < count; ++i) {
    const ordered_json arguments{{kKey, "zoo_value"}};
    calls.push_back(
        {{"id", kIds[i]},
         {"type", "function"},
         {"function",
          {{"name", kNames[i]}, {"arguments", as_text ? ordered_json(arguments.dump()) : arguments}}}});
  }
  const ordered_json parameters{{"type", "object"}, {"properties", ordered_json::object()}};
  ordered_json request{{"messages", {{{"role", "user"}, {"content", "zoo question"}}}},
                       {"add_generation_prompt", true}};
  request["tools"].push_back(
      {{"type", "function"},
       {"function", {{"name", "zoo_tool"}, {"description", "zoo"}, {"parameters", parameters}}}});
  try {
    const std::string prompt = format.prompt(request);
    request["messages"].push_back({{"role", "assistant"}, {"content", kText}, {"tool_calls", calls}});
    request["add_generation_prompt"] = false;
    const std::string chat = format.prompt(request);
    if (const std::size_t text = chat.rfind(kText); text != std::string::npos)
      return chat.substr(text + std::string_view(kText).size());
    if (chat.starts_with(prompt)) return chat.substr(prompt.size());
    // The prompt ends otherwise, such as in "<think>": back to where the two could part.
    const std::string_view same(prompt.begin(),
                                std::mismatch(prompt.begin(), prompt.end(), chat.begin(), chat.end()).first);
    return chat.substr(same.find_last_of("\n>]") + 1);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Where the JSON object ends that begins at the start of the text; 0 if none does.
std::size_t object_size(const std::string& text) {
  for (std::size_t end = text.find('}'); end != std::string::npos; end = text.find('}', end + 1))
    if (ordered_json::accept(text.substr(0, end + 1))) return end + 1;
  return 0;
}

// `text` with its call's id as the sign for one.
std::string with_id(std::string text, const char* id) {
  if (const std::size_t found = text.find(id); found != std::string::npos)
    text.replace(found, kIdLength, 1, ToolCallFormat::kId);
  return text;
}

PatternPtr pattern_of(const std::string& piece) {
  const std::size_t id = piece.find(ToolCallFormat::kId);
  if (id == std::string::npos) return literal(piece);
  const PatternPtr sign = one_of({{U'0', U'9'}, {U'A', U'Z'}, {U'a', U'z'}});
  return sequence(
      {literal(piece.substr(0, id)), repeat(sign, kIdLength, kIdLength), literal(piece.substr(id + 1))});
}

enum class Match { kNo, kPartly, kWhole };

// Whether `text` begins with the piece, or may once more of it is there; `size` of the part that matched.
Match match(const std::string& piece, const std::string& text, std::size_t& size) {
  size = 0;
  for (const char c : piece) {
    const std::size_t count = c == ToolCallFormat::kId ? kIdLength : 1;
    for (std::size_t i = 0; i < count; ++i, ++size) {
      if (size == text.size()) return Match::kPartly;
      const bool fits = c == ToolCallFormat::kId ? std::isalnum(static_cast<unsigned char>(text[size])) != 0
                                                 : text[size] == c;
      if (!fits) return Match::kNo;
    }
  }
  return Match::kWhole;
}

}  // namespace

ToolCallFormat ToolCallFormat::find(const ChatFormat& chat, const std::vector<std::string>& ends) {
  ToolCallFormat format;
  std::optional<std::string> one = rendered_calls(chat, 1, false);
  const auto has_object = [&] {
    return one && one->find("\"" + std::string(kKey) + "\"") != std::string::npos;
  };
  if (!has_object()) {
    one = rendered_calls(chat, 1, true);
    format.arguments_are_text = true;
  }
  const std::size_t name = one ? one->find(kNames[0]) : std::string::npos;
  if (!has_object() || name == std::string::npos)
    throw Error("the chat template writes no calls of tools with arguments in JSON");
  const std::size_t after_name = name + std::string_view(kNames[0]).size();
  const std::size_t object = one->find('{', after_name), key = one->find(kKey);
  const std::size_t size = object < key ? object_size(one->substr(object)) : 0;
  format.begin = one->substr(0, name);
  format.begin.erase(format.begin.begin(), std::ranges::find_if_not(format.begin, is_space));
  format.middle = one->substr(after_name, object - after_name);
  if (size == 0 || format.middle.empty() || format.begin.empty() ||
      (format.begin + format.middle).find(kIds[0]) != std::string::npos)
    throw Error("the chat template writes calls of tools in an order that is not known");
  format.end = one->substr(object + size);
  for (const std::string& end : ends) format.end.resize(std::min(format.end.size(), format.end.find(end)));
  while (!format.end.empty() && is_space(format.end.back())) format.end.pop_back();
  format.end = with_id(format.end, kIds[0]);
  const std::optional<std::string> two = rendered_calls(chat, 2, format.arguments_are_text);
  const std::string first = one->substr(0, object + size);
  if (two && two->starts_with(first)) {
    const std::size_t next = two->find(kNames[1], first.size());
    if (next != std::string::npos)
      format.between = with_id(two->substr(first.size(), next - first.size()), kIds[0]);
  }
  return format;
}

std::string ToolCallFormat::marker() const {
  std::string marker = begin.substr(0, begin.find('{'));
  while (!marker.empty() && (is_space(marker.back()) || marker.back() == '[')) marker.pop_back();
  return marker;
}

PatternPtr tool_call_pattern(const ToolCallFormat& format, const std::vector<Tool>& tools, bool many) {
  // Tools of the same parameters share their pattern, which may be large.
  std::map<std::string, std::vector<const Tool*>> groups;
  for (const Tool& tool : tools) groups[tool.parameters->dump()].push_back(&tool);
  std::vector<PatternPtr> calls;
  for (const auto& [parameters, group] : groups) {
    std::vector<PatternPtr> names;
    for (const Tool* tool : group) names.push_back(literal(tool->name + format.middle));
    try {
      calls.push_back(sequence({choice(std::move(names)), json_schema_pattern(*group[0]->parameters)}));
    } catch (const Error& error) {
      throw Error("the parameters of ", group[0]->name, ": ", error.what());
    }
  }
  const PatternPtr call = choice(calls);
  const PatternPtr more = sequence({pattern_of(format.between), call});
  return sequence({literal(format.begin), call,
                   many && !format.between.empty() ? repeat(more, 0) : sequence({}), pattern_of(format.end)});
}

std::vector<ToolCallPiece> ToolCallReader::push(std::string_view text) {
  held_ += text;
  std::vector<ToolCallPiece> pieces;
  while (step(pieces)) {
  }
  return pieces;
}

bool ToolCallReader::step(std::vector<ToolCallPiece>& pieces) {
  switch (place_) {
    case Place::kText: return read_text(pieces);
    case Place::kBegin:
    case Place::kName: return read_name(pieces);
    case Place::kArguments: return read_arguments(pieces);
    case Place::kAfter: return read_after();
    default: return false;
  }
}

bool ToolCallReader::read_text(std::vector<ToolCallPiece>& pieces) {
  std::optional<std::size_t> at = marker_.find(held_);
  std::size_t shown = at ? *at : held_.size() - marker_.undecided(held_);
  if (format_.only_first() && (has_text_ || shown > 0)) {
    at.reset();
    shown = held_.size();
  }
  if (shown > 0) pieces.push_back({.text = held_.substr(0, shown)});
  has_text_ = has_text_ || shown > 0;
  held_.erase(0, shown);
  if (at) place_ = Place::kBegin;
  return at.has_value();
}

bool ToolCallReader::read_name(std::vector<ToolCallPiece>& pieces) {
  std::size_t begin = 0;
  if (place_ == Place::kBegin && match(format_.begin, held_, begin) != Match::kWhole) return false;
  const std::size_t end = held_.find(format_.middle, begin);
  if (end == std::string::npos) return false;
  pieces.push_back({ToolCallPiece::Kind::kName, calls_++, held_.substr(begin, end - begin)});
  held_.erase(0, end + format_.middle.size());
  place_ = Place::kArguments;
  return true;
}

bool ToolCallReader::read_arguments(std::vector<ToolCallPiece>& pieces) {
  bool ended = false;
  std::size_t read = 0;
  for (; read < held_.size() && !ended; ++read) {
    const char c = held_[read];
    if (in_string_) {
      in_string_ = escaped_ || c != '"';
      escaped_ = !escaped_ && c == '\\';
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      ended = --depth_ == 0;
    }
  }
  if (read > 0) pieces.push_back({ToolCallPiece::Kind::kArguments, calls_ - 1, held_.substr(0, read)});
  held_.erase(0, read);
  if (ended) place_ = Place::kAfter;
  return ended;
}

bool ToolCallReader::read_after() {
  std::size_t size = 0;
  const Match found = format_.between.empty() ? Match::kNo : match(format_.between, held_, size);
  if (found == Match::kPartly) return false;
  place_ = found == Match::kWhole ? Place::kName : Place::kDone;
  held_.erase(0, size);
  return found == Match::kWhole;
}

std::vector<ToolCallPiece> ToolCallReader::finish() {
  std::vector<ToolCallPiece> pieces;
  if ((place_ == Place::kText || place_ == Place::kBegin) && !held_.empty())
    pieces.push_back({.text = std::exchange(held_, {})});
  return pieces;
}

}  // namespace zoo
