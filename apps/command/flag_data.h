#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

enum class FlagKind { text, path, integer, number, boolean, list };

/// One declared flag. The functions reach the verb's own variable.
struct FlagData {
  std::string name, group, help, placeholder;
  FlagKind kind = FlagKind::text;
  bool positional = false;
  bool required = false;
  bool about_parsing = false;  // --config, --dump_config: no value of the verb
  bool given = false;

  // What is accepted, narrower than the kind.
  std::vector<std::string> choices;
  std::optional<double> smallest, largest, above;
  std::function<bool(const std::string&)> holds;
  std::string expected;

  std::vector<std::string> suggestions;  // for completion only: other values are accepted too

  // What was expected instead, or "" if the texts are accepted.
  std::function<std::string(const std::vector<std::string>&)> assign;
  std::function<void()> reset;            // back to the verb's default
  std::function<nlohmann::json()> value;  // null: unset
};

/// "an integer of at least 1": what the flag accepts, in words.
std::string expected_words(const FlagData& flag);

/// Assigns texts of the command line. `place` names the flag in the error.
void assign_texts(FlagData& flag, const std::vector<std::string>& texts, const std::string& place);

/// Assigns a value of a config file or recipe; null puts the default back.
void assign_json(FlagData& flag, const nlohmann::json& value, const std::string& place);

}  // namespace zoo
