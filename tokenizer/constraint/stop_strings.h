#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// Texts at which a generation ends. They are compared byte by byte, so that it does not matter where tokens
/// divide a character.
class StopStrings {
 public:
  /// Throws Error for an empty text.
  explicit StopStrings(std::vector<std::string> texts);

  bool empty() const { return texts_.empty(); }

  /// The size of the longest one in bytes.
  std::size_t longest() const;

  /// Where the first of them begins in `text`, if one is there.
  std::optional<std::size_t> find(std::string_view text) const;

  /// How many bytes at the end of `text` may be the beginning of one, so that they cannot be shown yet.
  std::size_t undecided(std::string_view text) const;

 private:
  std::vector<std::string> texts_;
};

}  // namespace zoo
