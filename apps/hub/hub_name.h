#pragma once

#include <string>

namespace zoo {

/// A model on the hub: "gpt2" or "google/flan-t5-small", and a branch, a tag or a commit.
struct HubName {
  std::string name;
  std::string revision = "main";

  /// Parses "NAME" or "NAME@REVISION". Throws Error if the text cannot be a name on the hub.
  static HubName parse(const std::string& text);

  /// True if parse() accepts the text.
  static bool fits(const std::string& text);
};

}  // namespace zoo
