#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "apps/command/arguments.h"
#include "data/base/field_error.h"
#include "models/tasks/compute_options.h"

namespace zoo {

struct FlagData;

/// The largest --batch_size and --num_samples.
inline constexpr double kMostBatchRows = 65536;

/// A flag's variable. An empty path or optional means "no value".
using FlagVariable =
    std::variant<std::string*, std::int64_t*, double*, bool*, std::filesystem::path*,
                 std::optional<std::string>*, std::optional<std::int64_t>*, std::optional<double>*,
                 std::optional<bool>*, std::optional<std::filesystem::path>*, std::vector<std::string>*>;

/// Binds a flag to its variable, whose current value is the default.
void bind_variable(FlagData& flag, FlagVariable variable);

/// Binds a flag to an enum: `get` and `set` use the enumerator's number, its index in the flag's choices.
void bind_choice(FlagData& flag, std::function<std::size_t()> get, std::function<void(std::size_t)> set);

/// A named JSON object of flag values.
struct Recipe {
  std::string name, json;
};

/// The files of apps/recipes, embedded in the program.
std::span<const Recipe> embedded_recipes();

/// What narrows the accepted values of a flag and how it is shown.
struct FlagRules {
  /// Name of the value in help. A shell completes directories for DIR, files for FILE or PATH in the name.
  std::string placeholder = {};
  std::vector<std::string> choices = {};      // for text: no other value
  std::vector<std::string> suggestions = {};  // for shell completion; other values are also accepted
  FieldRange range = {};                      // of integers and numbers
  bool any_size = false;  // for an integer that is no count; others are at most kLargestGivenCount
  /// For text: `expected` completes "expected …" in the error if `holds` returns false.
  std::function<bool(const std::string&)> holds = {};
  std::string expected = {};
  /// For text: the variable gets meaning(given text), which may throw Error.
  std::function<std::string(const std::string&)> meaning = {};
  bool leads = false;       // the value may also be given without its flag: `tzoo generate DIR`
  bool positional = false;  // the value is given without a flag, in the order of declaration
  bool required = false;
};

/// The flags of one verb, declared like a table: name, variable, description. A variable holds the default
/// when declared and the given value after parse(); it must outlive the Flags.
///
/// In names, `-` equals `_`. A value follows as `--flag value` or `--flag=value`, and may be a negative
/// number; a boolean is `--flag`, `--no_flag`, `--flag true|false`. The last value wins; a list keeps all.
/// Flags override `--config FILE.json`, which overrides `--recipe NAME`.
class Flags {
 public:
  Flags(std::string command, std::string summary);
  ~Flags();

  /// Sets the help heading of all following declarations.
  void group(std::string title);
  /// Adds a command to the examples at the end of help.
  void example(std::string line);

  template <class T> void add(std::string name, T& target, std::string help, FlagRules rules = {}) {
    bind_variable(declare(std::move(name), std::move(help), std::move(rules)), &target);
  }
  /// A number in a range: `add("port", port, "port to listen on", between(1, 65535))`.
  template <class T> void add(std::string name, T& target, std::string help, const FieldRange& range) {
    add(std::move(name), target, std::move(help), FlagRules{.range = range});
  }

  /// T: std::string or std::optional<std::string>.
  template <class T>
  void choice(std::string name, T& target, std::vector<std::string> values, std::string help) {
    add(std::move(name), target, std::move(help), {.choices = std::move(values)});
  }

  /// The same for an enum whose enumerators 0, 1, … have these names.
  template <class E>
  requires std::is_enum_v<E>
  void choice(std::string name, E& target, std::vector<std::string> names, std::string help) {
    bind_choice(
        declare(std::move(name), std::move(help), {.choices = std::move(names)}),
        [&target] { return static_cast<std::size_t>(target); },
        [&target](std::size_t number) { target = static_cast<E>(number); });
  }

  /// Declares a positional argument, in order; a list receives all remaining words.
  template <class T> void positional(std::string name, T& target, std::string help, FlagRules rules = {}) {
    rules.positional = true;
    add(std::move(name), target, std::move(help), std::move(rules));
  }

  /// Adds --device, --dtype, --threads, --seed.
  void add_compute(ComputeOptions& options);
  /// Adds --weights, and --cache of verbs that decode.
  void add_weights(ComputeOptions& options);
  void add_cache(ComputeOptions& options);
  /// Adds --recipe NAME. The recipes must outlive the Flags.
  void add_recipes(std::span<const Recipe> recipes = embedded_recipes());

  /// Fills the variables. Returns false if nothing is left to do: --help or --dump_config was printed on
  /// std::cout, or the arguments ask for an outline. Throws UsageError naming the flag (or file and key) and
  /// the expected value, Error for an unreadable config file.
  bool parse(const Arguments& arguments);

  /// True if the value comes from the command line, config file or recipe.
  bool given(std::string_view name) const;

  /// The part of resolved() for which given() is true.
  nlohmann::json given_values() const;

  /// All flags with their final values, null for no value: a JSON object for --config.
  nlohmann::json resolved() const;

 private:
  struct Impl;
  FlagData& declare(std::string name, std::string help, FlagRules rules);

  std::unique_ptr<Impl> impl_;
};

/// A value of Flags::resolved() for a message.
std::string flag_text(const nlohmann::json& value);

/// Flags that are read only with some values of another one.
struct ReadWith {
  std::vector<std::string> flags, values;
};

/// Throws UsageError for the first flag that `is_given` but that the `value` of the other one leaves unread.
void require_read(const std::function<bool(const std::string&)>& is_given, const std::string& other,
                  const std::string& value, const std::vector<ReadWith>& all);

}  // namespace zoo
