#pragma once

/// @file
/// Use:
///
///     throw zoo::FieldError(zoo::Field{"layers"}, " 9: the model has 2");
///     // the command line prints --layers 9: …, HTTP and what() have 'layers' 9: …
///
///     constexpr zoo::FieldRange probability = zoo::between(0, 1);
///     if (!probability.holds(1.5)) …

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "data/base/error.h"

namespace zoo {

/// The name of a field in the message of a FieldError.
struct Field {
  std::string_view name;

  static constexpr char kBegin = '\x01', kEnd = '\x02';
  friend std::ostream& operator<<(std::ostream& out, Field field) {
    return out << kBegin << field.name << kEnd;
  }
};

/// An error about a field of a request or of options. Libraries name the member; who prints the message
/// writes the name as its reader knows it.
class FieldError : public Error {
 public:
  /// At least one part is a Field; the error is about the first one.
  template <class... Parts> explicit FieldError(const Parts&... parts) : FieldError(Marked{join(parts...)}) {}

  const std::string& field() const { return field_; }
  /// The message with each field written by `name`.
  std::string message(const std::function<std::string(const std::string&)>& name) const;

 private:
  struct Marked {
    std::string text;
  };
  explicit FieldError(const Marked& marked);

  std::string marked_, field_;
};

/// A field that this model does not take, or a value that no model takes: wrong usage on the command line.
class UnfitField : public FieldError {
 public:
  using FieldError::FieldError;
};

/// The numbers that a field may have.
struct FieldRange {
  std::optional<double> least, above, most;  // `above` is not among them

  constexpr bool holds(double value) const {
    return !(least && !(value >= *least)) && !(above && !(value > *above)) && !(most && !(value <= *most));
  }
};

constexpr FieldRange at_least(double least) { return {.least = least}; }
constexpr FieldRange above(double bound) { return {.above = bound}; }
constexpr FieldRange between(double least, double most) { return {.least = least, .most = most}; }

/// "at least 1 and at most 64".
std::string words_of(const FieldRange& range);

/// Throws FieldError for a value that is not in the range; none is.
void require_in(const FieldRange& range, std::string_view field, std::optional<double> value);

}  // namespace zoo
