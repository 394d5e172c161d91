#pragma once

#include <deque>
#include <ostream>
#include <utility>

#include "apps/command/flags.h"
#include "apps/command/verbs.h"

namespace zoo {

enum class FlagKind { text, path, integer, number, boolean, list };

/// One declared flag. The functions access the verb's own variable.
struct FlagData : FlagRules {
  std::string name = {}, group = {}, help = {};
  FlagKind kind = FlagKind::text;
  bool about_parsing = false;  // --config, --dump_config: not a value of the verb
  bool given = false;

  // Returns the expected form, or "" if the texts are accepted.
  std::function<std::string(const std::vector<std::string>&)> assign = {};
  std::function<void()> reset = {};            // restores the verb's default
  std::function<nlohmann::json()> value = {};  // null: unset

  /// True if --no_NAME is also accepted.
  bool negatable() const { return kind == FlagKind::boolean && !about_parsing && !name.starts_with("no_"); }
};

/// Describes accepted values: "an integer of at least 1".
std::string expected_words(const FlagData& flag);

/// Assigns command-line texts. `place` is the flag's name in the error.
void assign_texts(FlagData& flag, const std::vector<std::string>& texts, const std::string& place);

/// Assigns a value of a config file or recipe; null restores the default.
void assign_json(FlagData& flag, const nlohmann::json& value, const std::string& place);

/// All texts given per flag, in the order of first use.
using GivenTexts = std::vector<std::pair<FlagData*, std::vector<std::string>>>;

/// Splits words into flags and positional arguments; nothing if --help is among them. Throws UsageError for
/// an unknown flag (naming the nearest), a flag without its value, and an extra argument.
std::optional<GivenTexts> parse_words(std::deque<FlagData>& flags, const std::vector<std::string>& words,
                                      const std::string& command);

/// Group of the flags that every verb has, listed last.
inline constexpr const char* kGeneralGroup = "General";

/// Prints a verb's help, at most paragraph_width() wide: an outline without flags, and these in aligned
/// groups with their defaults.
void print_help(std::ostream& out, const CommandOutline& verb, const std::deque<FlagData>& flags);

/// Fills the outline with the same data, except name and summary, which come from the list of verbs.
void outline_help(const CommandOutline& verb, const std::deque<FlagData>& flags, CommandOutline& outline);

}  // namespace zoo
