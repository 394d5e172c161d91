#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

enum class FlagKind { text, path, integer, number, boolean, list };

/// One declared flag. The functions access the verb's own variable.
struct FlagData {
  std::string name, group, help, placeholder;
  FlagKind kind = FlagKind::text;
  bool positional = false;
  bool required = false;
  bool leads = false;          // a word without a flag may also give its value
  bool about_parsing = false;  // --config, --dump_config: not a value of the verb
  bool given = false;

  // Accepted values, narrower than the kind.
  std::vector<std::string> choices;
  std::optional<double> smallest, largest, above;
  bool any_size = false;  // an integer that is not a count, such as a seed
  std::function<bool(const std::string&)> holds;
  std::string expected;

  std::vector<std::string> suggestions;  // only for completion: other values are also accepted

  // Returns the expected form, or "" if the texts are accepted.
  std::function<std::string(const std::vector<std::string>&)> assign;
  std::function<void()> reset;            // restores the verb's default
  std::function<nlohmann::json()> value;  // null: unset

  /// True if --no_NAME is also accepted.
  bool negatable() const { return kind == FlagKind::boolean && !about_parsing && !name.starts_with("no_"); }
};

/// Describes accepted values: "an integer of at least 1".
std::string expected_words(const FlagData& flag);

/// Assigns command-line texts. `place` is the flag's name in the error.
void assign_texts(FlagData& flag, const std::vector<std::string>& texts, const std::string& place);

/// Assigns a value of a config file or recipe; null restores the default.
void assign_json(FlagData& flag, const nlohmann::json& value, const std::string& place);

}  // namespace zoo
