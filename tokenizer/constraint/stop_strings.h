#pragma once

/// @file
/// Use:
///
///     const zoo::StopStrings stops({"\n\n", "END"});
///     if (const auto at = stops.find(text)) std::cout << text.substr(0, *at) << "\n";

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// Texts at which generation ends. Compares bytes, so tokens may divide a character.
class StopStrings {
 public:
  /// Throws Error for an empty text.
  explicit StopStrings(std::vector<std::string> texts);

  bool empty() const { return texts_.empty(); }

  /// Bytes of the longest text.
  std::size_t longest() const;

  /// The position of the first stop string in `text`.
  std::optional<std::size_t> find(std::string_view text) const;

  /// The number of bytes at the end of `text` that may begin a stop string and must not be shown yet.
  std::size_t undecided(std::string_view text) const;

 private:
  std::vector<std::string> texts_;
};

}  // namespace zoo
