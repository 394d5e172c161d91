#include "data/base/json.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "data/base/error.h"

namespace zoo {
namespace {

nlohmann::json parse_file(const std::filesystem::path& path, const std::string& text) {
  if (is_nested_too_deeply(text)) throw Error(path, ": arrays and objects are nested too deeply");
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const std::size_t at = std::min(error.byte == 0 ? 0 : error.byte - 1, text.size());
    const std::string before = text.substr(0, at);
    const std::size_t column = at - before.rfind('\n');  // at + 1 without a line end
    throw Error(path, ": not valid JSON at line ", 1 + std::ranges::count(before, '\n'), ", column ", column);
  } catch (const nlohmann::json::exception& error) {
    // The library's message quotes the number.
    const std::string_view message = error.what();
    const std::string_view number = message.substr(std::min(message.find('\''), message.size()));
    throw Error(path, ": the number ", number, " is too large for a double");
  }
}

using nlohmann::ordered_json;

constexpr int kDeepest = 500;

template <class Json> std::string text_of(const Json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

// In linear time: the library's parser compares each key of an object with all earlier ones.
class OrderedReader : public nlohmann::json_sax<ordered_json> {
 public:
  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& value) override { return add(std::move(value)); }
  bool start_object(std::size_t) override { return open(/*is_object=*/true); }
  bool start_array(std::size_t) override { return open(/*is_object=*/false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  // For a repeated key, keeps the last value at the first position.
  bool key(string_t& name) override {
    if (open_.size() == 1) fault.key = name;
    Open& object = open_.back();
    const auto [place, is_new] = object.places.try_emplace(name, object.names.size());
    if (is_new) {
      object.names.push_back(std::move(name));
      object.values.emplace_back();
    }
    object.place = place->second;
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&, const nlohmann::json::exception&) override {
    fault.byte = byte;
    return false;
  }

  ordered_json result = ordered_json(ordered_json::value_t::discarded);
  JsonFault fault;

 private:
  // An object or array that is still open.
  struct Open {
    bool is_object;
    std::vector<std::string> names;
    std::vector<ordered_json> values;
    std::unordered_map<std::string, std::size_t> places;  // of the names
    std::size_t place = 0;                                // of the next value
  };

  bool add(ordered_json value) {
    if (open_.empty()) {
      result = std::move(value);
    } else if (open_.back().is_object) {
      open_.back().values[open_.back().place] = std::move(value);
    } else {
      open_.back().values.push_back(std::move(value));
    }
    return true;
  }

  bool open(bool is_object) {
    open_.push_back({.is_object = is_object, .names = {}, .values = {}, .places = {}});
    return std::ssize(open_) <= kDeepest;
  }

  bool close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    if (!closed.is_object) return add(ordered_json::array_t(std::move(closed.values)));
    ordered_json object = ordered_json::object();
    ordered_json::object_t::Container& entries = object.get_ref<ordered_json::object_t&>();
    entries.reserve(closed.names.size());
    for (std::size_t i = 0; i < closed.names.size(); ++i)
      entries.emplace_back(std::move(closed.names[i]), std::move(closed.values[i]));
    return add(std::move(object));
  }

  std::vector<Open> open_;
};

}  // namespace

nlohmann::json read_json(const std::filesystem::path& path, std::size_t most) {
  return read_json(path, read_model_file(path, most));
}

nlohmann::json read_json(const std::filesystem::path& path, const std::string& text) {
  nlohmann::json value = parse_file(path, text);
  if (!value.is_object()) throw Error(path, ": expected a JSON object, found ", value.type_name());
  return value;
}

nlohmann::json read_json_array(const std::filesystem::path& path) {
  nlohmann::json value = parse_file(path, read_model_file(path, kMostSettings));
  if (!value.is_array()) throw Error(path, ": expected a JSON array, found ", value.type_name());
  return value;
}

void write_json(const std::filesystem::path& path, const nlohmann::json& value) {
  write_file(path, json_text(value, 2) + "\n");
}

std::string json_text(const nlohmann::json& value, int indent) { return text_of(value, indent); }

std::string json_text(const nlohmann::ordered_json& value, int indent) { return text_of(value, indent); }

nlohmann::json parse_json(std::string_view text) {
  if (is_nested_too_deeply(text)) return nlohmann::json(nlohmann::json::value_t::discarded);
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

nlohmann::ordered_json parse_ordered_json(std::string_view text, JsonFault* fault) {
  OrderedReader reader;
  const bool good = ordered_json::sax_parse(text, &reader);
  if (fault != nullptr) *fault = std::move(reader.fault);
  return good ? std::move(reader.result) : ordered_json(ordered_json::value_t::discarded);
}

bool is_nested_too_deeply(std::string_view json) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') in_string = !in_string;
    if (in_string) {
      i += c == '\\' ? 1 : 0;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepest) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace zoo
