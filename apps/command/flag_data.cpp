#include "apps/command/flag_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "data/base/lines.h"
#include "data/base/near_match.h"
#include "data/base/sizes.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The type of a variable's value.
template <class T> struct ValueOf { using Type = T; };
template <class T> struct ValueOf<std::optional<T>> { using Type = T; };

template <class T> constexpr FlagKind kind_of() {
  if constexpr (std::is_same_v<T, bool>) return FlagKind::boolean;
  if constexpr (std::is_integral_v<T>) return FlagKind::integer;
  if constexpr (std::is_floating_point_v<T>) return FlagKind::number;
  if constexpr (std::is_same_v<T, fs::path>) return FlagKind::path;
  if constexpr (std::is_same_v<T, std::vector<std::string>>) return FlagKind::list;
  return FlagKind::text;
}

bool accepted(const FlagData& flag, double value) { return flag.range.holds(value); }

bool accepted(const FlagData& flag, const std::string& value) {
  const bool known = flag.choices.empty() || std::ranges::find(flag.choices, value) != flag.choices.end();
  return known && (!flag.holds || flag.holds(value));
}

template <class T> bool accepted(const FlagData& flag, const T& value) {
  if constexpr (kind_of<T>() == FlagKind::list)
    return std::ranges::all_of(value, [&](const auto& item) { return accepted(flag, item); });
  if constexpr (std::is_same_v<T, std::int64_t>) return accepted(flag, static_cast<double>(value));
  return true;
}

// True for an integer above kLargestGivenCount, if the flag has no bound.
template <class T> bool is_too_large(const FlagData& flag, const T& value) {
  if constexpr (std::is_same_v<T, std::int64_t>)
    return !flag.range.most && !flag.any_size && (value > kLargestGivenCount || value < -kLargestGivenCount);
  return false;
}

template <class Number>
requires std::is_arithmetic_v<Number>
bool read(const std::string& text, Number& value) {
  const std::optional<Number> found = number_in<Number>(text);
  value = found.value_or(0);
  return found && std::isfinite(static_cast<double>(value));
}

bool read(const std::string& text, bool& value) {
  value = text == "true" || text == "True";
  return value || text == "false" || text == "False";
}

bool read(const std::string& text, std::string& value) {
  value = text;
  return !invalid_utf8_at(text);
}

bool read(const std::string& text, fs::path& value) {
  value = text;
  return !text.empty() && !invalid_utf8_at(text);
}

template <class T> bool read_all(const std::vector<std::string>& texts, T& value) {
  if constexpr (kind_of<T>() == FlagKind::list) {
    for (const std::string& text : texts)
      if (!read(text, value.emplace_back())) return false;
    return true;
  } else {
    return read(texts.back(), value);
  }
}

json to_json(const fs::path& value) { return value.empty() ? json(nullptr) : json(value.string()); }
template <class T> json to_json(const T& value) { return value; }
template <class T> json to_json(const std::optional<T>& value) {
  return value ? to_json(*value) : json(nullptr);
}

std::string number_text(double value) {
  return json(value == std::floor(value) ? json(std::int64_t(value)) : json(value)).dump();
}

// The value as command-line texts; empty if its JSON type does not match the flag.
std::optional<std::vector<std::string>> texts_of(const FlagData& flag, const json& value) {
  const bool as_list = flag.kind == FlagKind::list && value.is_array();
  const bool is_number = flag.kind == FlagKind::integer || flag.kind == FlagKind::number;
  std::vector<std::string> texts;
  for (const json& item : as_list ? value : json::array({value})) {
    const bool fits = is_number                        ? item.is_number()
                      : flag.kind == FlagKind::boolean ? item.is_boolean()
                                                       : item.is_string();
    if (!fits) return std::nullopt;
    texts.push_back(item.is_string() ? item.get<std::string>() : item.dump());
  }
  return texts;
}

std::string kind_words(const FlagData& flag) {
  if (!flag.expected.empty()) return flag.expected;
  switch (flag.kind) {
    case FlagKind::integer: return "an integer";
    case FlagKind::number: return "a number";
    case FlagKind::boolean: return "true or false";
    case FlagKind::path: return "a path";
    default: return "text in UTF-8";
  }
}

// Other names of formats, accepted wherever a flag has the format.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kFormatAliases{
    {{"fp32", "float32"},
     {"bf16", "bfloat16"},
     {"fp16", "float16"},
     {"half", "float16"},
     {"hf", "huggingface"}}};

std::string assign(FlagData& flag, std::vector<std::string> texts) {
  for (const auto& [alias, format] : kFormatAliases) {
    if (std::ranges::find(flag.choices, format) != flag.choices.end())
      std::ranges::replace(texts, std::string(alias), std::string(format));
  }
  if (flag.meaning) std::ranges::transform(texts, texts.begin(), flag.meaning);
  return flag.assign(texts);
}

template <class T> void bind_to(FlagData& flag, T& target) {
  using Value = typename ValueOf<T>::Type;
  flag.kind = kind_of<Value>();
  flag.assign = [&flag, &target](const std::vector<std::string>& texts) {
    Value value{};
    if (!read_all(texts, value)) return kind_words(flag);
    if (!accepted(flag, value)) return expected_words(flag);
    if (is_too_large(flag, value))
      return kind_words(flag) + " of at most " + std::to_string(kLargestGivenCount);
    target = std::move(value);
    return std::string();
  };
  flag.reset = [&target, initial = target] { target = initial; };
  flag.value = [&target] { return to_json(target); };
}

}  // namespace

void bind_variable(FlagData& flag, FlagVariable variable) {
  std::visit([&flag](auto* target) { bind_to(flag, *target); }, variable);
}

void bind_choice(FlagData& flag, std::function<std::size_t()> get, std::function<void(std::size_t)> set) {
  flag.kind = FlagKind::text;
  flag.assign = [&flag, set](const std::vector<std::string>& texts) {
    const auto found = std::ranges::find(flag.choices, texts.back());
    if (found == flag.choices.end()) return expected_words(flag);
    set(static_cast<std::size_t>(found - flag.choices.begin()));
    return std::string();
  };
  flag.reset = [set, initial = get()] { set(initial); };
  flag.value = [&flag, get] { return json(flag.choices[get()]); };
}

std::string expected_words(const FlagData& flag) {
  if (!flag.choices.empty()) {
    std::string words;
    for (const std::string& value : flag.choices)
      words += (words.empty() ? "" : &value == &flag.choices.back() ? " or " : ", ") + value;
    return words;
  }
  const auto& [least, above, most] = flag.range;
  std::string bounds;
  if (least && most) {
    bounds = " between " + number_text(*least) + " and " + number_text(*most);
  } else if (least) {
    bounds = " of at least " + number_text(*least);
  } else if (above) {
    bounds = " above " + number_text(*above) + (most ? " and at most " + number_text(*most) : "");
  }
  return kind_words(flag) + bounds;
}

void assign_texts(FlagData& flag, const std::vector<std::string>& texts, const std::string& place) {
  const std::string expected = assign(flag, texts);
  if (!expected.empty()) {
    const std::string& text = texts.back();
    throw UsageError(place, ": expected ", expected, ", got '", text, "'", did_you_mean(text, flag.choices));
  }
  flag.given = true;
}

void assign_json(FlagData& flag, const json& value, const std::string& place) {
  if (value.is_null()) {
    flag.reset();
    flag.given = false;
    return;
  }
  const auto texts = texts_of(flag, value);
  const std::string expected = texts ? assign(flag, *texts) : kind_words(flag);
  if (!expected.empty()) {
    const std::string near = texts && !texts->empty() ? did_you_mean(texts->back(), flag.choices) : "";
    throw UsageError(place, ": expected ", expected, ", got ", value.dump(), near);
  }
  flag.given = true;
}

}  // namespace zoo
