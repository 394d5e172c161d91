#pragma once

#include <string>
#include <vector>

#include "data/base/field_error.h"

namespace zoo {

struct CommandOutline;

/// Arguments of a verb: the words after its name, and its full name for help and errors ("tzoo train").
struct Arguments {
  std::string command;
  std::vector<std::string> words;
  /// If not null, the verb fills in its outline and does nothing else: Flags::parse and dispatch do this.
  CommandOutline* outline = nullptr;
  std::string defaults = {};  // a file as of --config, which that flag and all others override
};

/// An error in the use of the command: main exits with code 2 instead of 1.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// The message of an error as the command line prints it: the fields of a FieldError are flags.
inline std::string flag_message(const Error& error) {
  const auto* about_field = dynamic_cast<const FieldError*>(&error);
  if (about_field == nullptr) return error.what();
  return about_field->message([](const std::string& field) { return "--" + field; });
}

}  // namespace zoo
