#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "data/base/field_error.h"
#include "tokenizer/token_id.h"

namespace zoo {

/// A text, or ids in its place.
using TextOrIds = std::variant<std::string, TokenIds>;

/// The fields of a request's JSON object. Each that a reader asks for is checked, and null is the same as
/// none; what is wrong is an ApiError that names the field.
class RequestFields {
 public:
  /// Throws ApiError 400 for what is no UTF-8 or no JSON object, with the place.
  explicit RequestFields(const std::string& body);
  explicit RequestFields(std::shared_ptr<const nlohmann::ordered_json> object) : values_(std::move(object)) {}

  /// Null if the field is missing.
  const nlohmann::ordered_json* get(const std::string& name);

  std::optional<std::string> text(const std::string& name);
  std::optional<bool> flag(const std::string& name);
  std::optional<std::int64_t> integer(const std::string& name, std::int64_t least, std::int64_t most);
  std::optional<double> number(const std::string& name, const FieldRange& range);
  /// The fields of an object; none if the field is missing.
  RequestFields object(const std::string& name);
  /// A text or a list of at most `most` texts; empty if the field is missing.
  std::vector<std::string> texts(const std::string& name, std::size_t most);
  /// A list of ids below `count`; nothing if the field is missing.
  std::optional<std::vector<std::int64_t>> ids(const std::string& name, std::int64_t count);
  /// A text, a list of ids, or a list of at most `most` of either. Throws ApiError if the field is missing.
  std::vector<TextOrIds> texts_or_ids(const std::string& name, std::size_t most);

  /// These fields do not change what is answered.
  void ignore(std::initializer_list<const char*> names);
  /// Throws ApiError naming a field that nobody has asked for, and the one that may be meant.
  void refuse_others() const;
  /// Throws ApiError for a field that is needed: `message`, or that an unknown one may be meant for it.
  [[noreturn]] void refuse_missing(const std::string& name, const std::string& message = "is missing") const;

  [[noreturn]] static void refuse(const std::string& name, const std::string& message,
                                  const std::string& code = "");

 private:
  std::shared_ptr<const nlohmann::ordered_json> values_;
  std::set<std::string> known_;
};

}  // namespace zoo
