#pragma once

/// @file
/// Use:
///
///     const zoo::GenerationField field = zoo::field_of(settings, "top_p");
///     std::cout << field.name << ": " << field.help << "\n";
///     *std::get<double*>(field.member) = 0.9;

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "data/base/field_range.h"
#include "models/tasks/generation_settings.h"

namespace zoo {

/// A number of GenerationSettings, stated once: the flags of the command line, the fields of HTTP and the
/// keys of generation_config.json are read by it.
struct GenerationField {
  std::string_view name;
  std::variant<double*, std::int64_t*, std::optional<double>*, std::optional<std::int64_t>*> member;
  FieldRange range;
  std::string_view help;  // names other fields in quotes
};

/// The field of this name in these settings. Throws Error if there is none.
GenerationField field_of(GenerationSettings& settings, std::string_view name);

}  // namespace zoo
