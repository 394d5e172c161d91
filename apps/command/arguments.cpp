#include "apps/command/arguments.h"

#include "data/base/field_error.h"

namespace zoo {

std::string flag_message(const Error& error) {
  const auto* about_field = dynamic_cast<const FieldError*>(&error);
  if (about_field == nullptr) return error.what();
  return about_field->message([](const std::string& field) { return "--" + field; });
}

}  // namespace zoo
