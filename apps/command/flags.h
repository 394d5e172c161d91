#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "apps/command/arguments.h"
#include "apps/command/compute_options.h"
#include "apps/command/recipes.h"

namespace zoo {

struct FlagData;

/// The types that a flag's variable can have. An empty path and an empty optional are "no value".
template <class T>
concept FlagValue = std::same_as<T, std::string> || std::same_as<T, std::int64_t> ||
    std::same_as<T, double> || std::same_as<T, bool> || std::same_as<T, std::filesystem::path> ||
    std::same_as<T, std::optional<std::string>> || std::same_as<T, std::optional<std::int64_t>> ||
    std::same_as<T, std::optional<double>> || std::same_as<T, std::optional<bool>> ||
    std::same_as<T, std::optional<std::filesystem::path>> || std::same_as<T, std::vector<std::string>>;

/// Ties a flag to its variable, whose present value is the default.
template <FlagValue T>
void bind(FlagData& flag, T& target);

/// A flag just declared; what it accepts can be narrowed. Bounds apply to integers and numbers.
class Flag {
 public:
  explicit Flag(FlagData& data) : data_(data) {}
  Flag& required();
  Flag& at_least(double smallest);
  Flag& above(double bound);
  Flag& between(double smallest, double largest);
  /// For text: `expected` completes "expected …" in the error for a text that does not hold.
  Flag& must(std::function<bool(const std::string&)> holds, std::string expected);
  /// For text: nothing else is accepted.
  Flag& one_of(std::vector<std::string> values);
  /// Values that a shell completes beside others that are accepted.
  Flag& suggest(std::vector<std::string> values);
  /// What help writes for the value, for example "DIR". A shell completes directories where it holds DIR,
  /// files where it holds FILE or PATH.
  Flag& placeholder(std::string name);

 private:
  FlagData& data_;
};

/// The flags of one verb, declared like a table: name, variable, what it is. A variable holds the default
/// when it is declared and the given value after parse(); it must outlive the Flags.
///
/// `-` and `_` are the same in names. A value follows as `--flag value` or `--flag=value`, and may be a
/// negative number; a boolean is `--flag`, `--no_flag`, `--flag true|false`. Of several the last wins; a list
/// keeps them all. Values of `--recipe NAME` lie below those of `--config FILE.json`, and both below flags.
class Flags {
 public:
  Flags(std::string command, std::string summary);
  ~Flags();
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  /// The heading in help for what is declared from here on.
  void group(std::string title);
  /// A command shown at the end of help; there may be several.
  void example(std::string line);

  template <FlagValue T>
  Flag add(std::string name, T& target, std::string help) {
    FlagData& flag = declare(std::move(name), std::move(help));
    bind(flag, target);
    return Flag(flag);
  }

  /// T: std::string or std::optional<std::string>.
  template <FlagValue T>
  Flag choice(std::string name, T& target, std::vector<std::string> values, std::string help) {
    FlagData& flag = declare(std::move(name), std::move(help));
    bind(flag, target);
    return Flag(flag).one_of(std::move(values));
  }

  /// A word without a flag, in the order of declaration; a list takes all that are left.
  template <FlagValue T>
  Flag positional(std::string name, T& target, std::string help) {
    FlagData& flag = declare_positional(std::move(name), std::move(help));
    bind(flag, target);
    return Flag(flag);
  }

  /// --device, --dtype, --threads, --seed.
  void add_compute(ComputeOptions& options);
  /// --recipe NAME. The recipes must outlive the Flags.
  void add_recipes(std::span<const Recipe> recipes = embedded_recipes());

  /// Fills the variables. Returns false if the verb has nothing more to do: --help or --dump_config was
  /// printed on std::cout, or the arguments ask for an outline. Throws UsageError naming the flag (or file
  /// and key) and what was expected, Error for a config file that cannot be read.
  bool parse(const Arguments& arguments);

  /// True if the flag's value came from the command line, the config file or the recipe.
  bool given(std::string_view name) const;

  /// Every flag with its final value, null where it has none: an object that --config reads.
  nlohmann::json resolved() const;

 private:
  struct Impl;
  FlagData& declare(std::string name, std::string help);
  FlagData& declare_positional(std::string name, std::string help);

  std::unique_ptr<Impl> impl_;
};

}  // namespace zoo
