#include "apps/serve/request_fields.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "apps/serve/api_error.h"
#include "data/base/json.h"
#include "data/base/near_match.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

using nlohmann::ordered_json;

std::string text_of(double value) { return ordered_json(value).dump(); }

std::string range_text(const FieldRange& range) {
  if (range.least && range.most) return " from " + text_of(*range.least) + " to " + text_of(*range.most);
  std::string words = range.above ? " above " + text_of(*range.above) : "";
  if (range.least) words += " of at least " + text_of(*range.least);
  if (range.most) words += (words.empty() ? " of at most " : " and at most ") + text_of(*range.most);
  return words;
}

// The integer that a value is, in the range. 2.0 is one, too (JSON Schema Validation, section 6.1.1).
std::optional<std::int64_t> integer_in(const ordered_json& value, std::int64_t least, std::int64_t most) {
  const auto is_whole = [](double real) { return real == std::trunc(real) && std::abs(real) <= 0x1p53; };
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= std::uint64_t{INT64_MAX}
                    : value.is_number_float()  ? is_whole(value.get<double>())
                                               : value.is_number_integer();
  if (!fits || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most) return std::nullopt;
  return value.get<std::int64_t>();
}

}  // namespace

void RequestFields::refuse(const std::string& name, const std::string& message, const std::string& code) {
  throw ApiError(400, "'" + name + "' " + message, name, code);
}

RequestFields::RequestFields(const std::string& body) {
  if (const auto place = invalid_utf8_at(body))
    throw ApiError(400, "the body is not UTF-8 at byte " + std::to_string(*place));
  JsonFault fault;
  ordered_json parsed = parse_ordered_json(body, &fault);
  if (parsed.is_discarded()) {
    const std::string place = "not JSON at byte " + std::to_string(fault.byte);
    if (fault.key.empty()) throw ApiError(400, "the body is " + place);
    refuse(fault.key, "or what follows it is " + place + ": numbers must be finite, texts whole characters");
  }
  if (!parsed.is_object()) throw ApiError(400, "the body must be a JSON object");
  values_ = std::make_shared<const ordered_json>(std::move(parsed));
}

const ordered_json* RequestFields::get(const std::string& name) {
  known_.insert(name);
  const auto place = values_->find(name);
  return place == values_->end() || place->is_null() ? nullptr : &*place;
}

std::optional<std::string> RequestFields::text(const std::string& name) {
  const ordered_json* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse(name, "must be a text");
  return value->get<std::string>();
}

std::optional<bool> RequestFields::flag(const std::string& name) {
  const ordered_json* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse(name, "must be true or false");
  return value->get<bool>();
}

std::optional<std::int64_t> RequestFields::integer(const std::string& name, std::int64_t least,
                                                   std::int64_t most) {
  const ordered_json* value = get(name);
  if (value == nullptr) return std::nullopt;
  const auto found = integer_in(*value, least, most);
  if (!found)
    refuse(name, "must be an integer from " + std::to_string(least) + " to " + std::to_string(most) +
                     ", got " + excerpt(value->dump(), 40));
  return found;
}

std::optional<double> RequestFields::number(const std::string& name, const FieldRange& range) {
  const ordered_json* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !range.holds(value->get<double>()))
    refuse(name, "must be a number" + range_text(range) + ", got " + excerpt(value->dump(), 40));
  return value->get<double>();
}

RequestFields RequestFields::object(const std::string& name) {
  const ordered_json* value = get(name);
  if (value != nullptr && !value->is_object()) refuse(name, "must be an object");
  return RequestFields(
      std::make_shared<const ordered_json>(value == nullptr ? ordered_json::object() : *value));
}

std::vector<std::string> RequestFields::texts(const std::string& name, std::size_t most) {
  const ordered_json* value = get(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {value->get<std::string>()};
  std::vector<std::string> found;
  for (const ordered_json& text : value->is_array() ? *value : ordered_json::array({nullptr})) {
    if (!text.is_string()) refuse(name, "must be a text or a list of texts");
    if (found.size() == most) refuse(name, "must have at most " + std::to_string(most) + " texts");
    found.push_back(text.get<std::string>());
  }
  return found;
}

std::optional<std::vector<std::int64_t>> RequestFields::ids(const std::string& name, std::int64_t count) {
  const ordered_json* list = get(name);
  if (list == nullptr) return std::nullopt;
  if (!list->is_array()) refuse(name, "must be a list of integers");
  std::vector<std::int64_t> found;
  for (const ordered_json& id : *list) {
    const auto number = integer_in(id, 0, count - 1);
    if (!number) refuse(name, "must be integers below " + std::to_string(count));
    found.push_back(*number);
  }
  return found;
}

std::vector<TextOrIds> RequestFields::texts_or_ids(const std::string& name, std::size_t most) {
  const ordered_json* given = get(name);
  if (given == nullptr) refuse_missing(name);
  const bool several = given->is_array() && !given->empty() && !given->front().is_number();
  if (several && given->size() > most) refuse(name, "must have at most " + std::to_string(most) + " texts");
  std::vector<TextOrIds> found;
  for (const ordered_json& one : several ? *given : ordered_json::array({*given})) {
    if (one.is_string()) {
      found.emplace_back(one.get<std::string>());
      continue;
    }
    TokenIds ids;
    for (const ordered_json& id : one.is_array() ? one : ordered_json::array({nullptr})) {
      const auto number = integer_in(id, 0, INT32_MAX);
      if (!number) refuse(name, "must be a text, a list of ids, or a list of either");
      ids.push_back(static_cast<TokenId>(*number));
    }
    found.emplace_back(std::move(ids));
  }
  return found;
}

void RequestFields::ignore(std::initializer_list<const char*> names) {
  known_.insert(names.begin(), names.end());
}

void RequestFields::refuse_others() const {
  for (const auto& [name, value] : values_->items()) {
    if (known_.count(name) > 0 || value.is_null()) continue;
    const std::vector<std::string> known(known_.begin(), known_.end());
    refuse(name, "is not supported here" + did_you_mean(name, known), "unsupported_parameter");
  }
}

void RequestFields::refuse_missing(const std::string& name, const std::string& message) const {
  const std::vector<std::string> meant{name};
  for (const auto& [given, value] : values_->items()) {
    if (known_.count(given) == 0 && nearest(given, meant) == name)
      refuse(given, "is not supported here" + did_you_mean(given, meant), "unsupported_parameter");
  }
  refuse(name, message);
}

}  // namespace zoo
