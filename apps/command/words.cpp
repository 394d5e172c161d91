#include <algorithm>
#include <string_view>

#include "apps/command/arguments.h"
#include "apps/command/flag_data.h"
#include "data/base/near_match.h"

namespace zoo {
namespace {

bool looks_like_flag(std::string_view word) {
  const bool negative_number = word.size() > 1 && (word[1] == '.' || (word[1] >= '0' && word[1] <= '9'));
  return word.size() > 1 && word[0] == '-' && word != "--" && !negative_number;
}

// Converts "--max-iters=3" to "max_iters".
std::string name_in(std::string_view word) {
  std::string name(word.substr(0, word.find('=')));
  name.erase(0, std::min<std::size_t>(2, name.find_first_not_of('-')));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Our names of flags, each with short forms and other tools' names for it, between spaces.
constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"model", " m "},
    {"prompt", " p "},
    {"max_new_tokens", " n max_tokens n_predict "},
    {"output", " o out_dir output_dir outfile "},
    {"out_dir", " o output_dir output "},
    {"learning_rate", " lr "},
    {"batch_size", " bs "},
    {"max_iters", " max_steps steps epochs num_train_epochs "},
    {"count", " n "},
    {"threads", " t "},
    {"temperature", " temp "},
    {"warmup_iters", " warmup_steps "},
    {"block_size", " context_length "},
    {"context", " ctx_size c "},
    {"seed", " s "},
    {"file", " f "},
    {"dataset", " data "},
    {"dtype", " precision "},
    {"weights", " quantize "},
    {"repetition_penalty", " repeat_penalty "},
    {"text", " input "},
};

// The flag that was probably meant: by alias, prefix or spelling; "" if none.
std::string suggestion(const std::string& name, const std::vector<std::string>& names) {
  for (const auto& [meant, aliases] : kAliases) {
    const bool is_alias = aliases.find(" " + name + " ") != std::string_view::npos;
    if (is_alias && std::ranges::find(names, meant) != names.end()) return std::string(meant);
  }
  const auto begins = [&](const std::string& candidate) {
    return name.size() > 1 && candidate.starts_with(name);
  };
  if (const auto found = std::ranges::find_if(names, begins); found != names.end()) return *found;
  return nearest(name, names);
}

class WordParser {
 public:
  WordParser(std::deque<FlagData>& flags, const std::vector<std::string>& words, const std::string& command)
      : flags_(flags), words_(words), command_(command) {}

  std::optional<GivenTexts> parse() {
    while (next_ < words_.size()) {
      const std::string& word = words_[next_++];
      if (word == "--" && !only_positionals_) {
        only_positionals_ = true;
      } else if (only_positionals_ || !looks_like_flag(word)) {
        take_positional(word);
      } else if (word == "-h" || word == "--help") {
        wants_help_ = true;
      } else {
        take_flag(word);
      }
    }
    if (wants_help_) return std::nullopt;
    if (!fault_.empty()) throw UsageError(fault_);
    return std::move(given_);
  }

 private:
  FlagData* find(std::string_view name) {
    for (FlagData& flag : flags_)
      if (flag.name == name && !flag.positional) return &flag;
    return nullptr;
  }

  void add(FlagData& flag, std::string text) {
    for (auto& [known, texts] : given_)
      if (known == &flag) return texts.push_back(std::move(text));
    given_.push_back({&flag, {std::move(text)}});
  }

  // Keeps the first error and reports it, unless --help follows.
  void fault(std::string message) {
    if (fault_.empty()) fault_ = std::move(message);
  }

  void take_flag(const std::string& word) {
    const std::string shown = word.substr(0, word.find('='));
    const std::string name = name_in(word);
    FlagData* flag = word.starts_with("--") ? find(name) : nullptr;
    const bool negative = flag == nullptr && word.starts_with("--") && name.starts_with("no_");
    FlagData* negated = negative ? find(name.substr(3)) : nullptr;
    const bool has_value = shown.size() < word.size();
    if (negated != nullptr && negated->negatable()) {
      if (has_value) return fault(shown + " takes no value");
      return add(*negated, "false");
    }
    if (flag == nullptr) return unknown(shown, name);
    if (flag->leads && flag->kind != FlagKind::list && std::exchange(leader_taken_, true))
      return fault(shown + ": given twice; expected one " + flag->placeholder);
    if (has_value) return add(*flag, word.substr(shown.size() + 1));
    if (flag->kind == FlagKind::boolean) return add(*flag, boolean_follows() ? words_[next_++] : "true");
    if (!value_follows()) return fault(shown + ": expected " + expected_words(*flag) + ", got nothing");
    add(*flag, words_[next_++]);
  }

  bool boolean_follows() const {
    static constexpr std::string_view kValues[] = {"true", "false", "True", "False"};
    return next_ < words_.size() && std::ranges::count(kValues, words_[next_]) > 0;
  }

  // In "--input --output x" the next flag is not a value.
  bool value_follows() {
    if (next_ == words_.size()) return false;
    const std::string& word = words_[next_];
    return !word.starts_with("--") || find(name_in(word)) == nullptr;
  }

  void unknown(const std::string& shown, const std::string& name) {
    std::vector<std::string> names;
    for (const FlagData& flag : flags_) {
      if (flag.positional) continue;
      names.push_back(flag.name);
      if (flag.negatable()) names.push_back("no_" + flag.name);
    }
    const std::string near = suggestion(name, names);
    fault("unknown flag '" + shown + "'" +
          (near.empty() ? "; '" + command_ + " --help' lists them" : "; did you mean '--" + near + "'?"));
  }

  void take_positional(const std::string& word) {
    int at = 0;
    for (FlagData& flag : flags_) {
      if (!flag.positional || at++ < positionals_taken_) continue;
      if (flag.kind != FlagKind::list) ++positionals_taken_;
      return add(flag, word);
    }
    for (FlagData& flag : flags_) {
      if (!flag.leads) continue;
      if (flag.kind != FlagKind::list && std::exchange(leader_taken_, true)) continue;
      return add(flag, word);
    }
    fault("unexpected argument '" + word + "'; '" + command_ + " --help' shows what is expected");
  }

  std::deque<FlagData>& flags_;
  const std::vector<std::string>& words_;
  const std::string& command_;
  std::size_t next_ = 0;
  int positionals_taken_ = 0;
  bool only_positionals_ = false, leader_taken_ = false, wants_help_ = false;
  std::string fault_;
  GivenTexts given_;
};

}  // namespace

std::optional<GivenTexts> parse_words(std::deque<FlagData>& flags, const std::vector<std::string>& words,
                                      const std::string& command) {
  return WordParser(flags, words, command).parse();
}

}  // namespace zoo
