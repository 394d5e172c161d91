#include <nlohmann/json.hpp>

#include "tokenizer/files/tokenizer_json.h"

namespace zoo {
namespace {

SplitBehavior read_behavior(const JsonSection& section, const char* key, const char* if_absent) {
  const std::string name = section.text(key, if_absent);
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  section.fail(key, "is ", name,
               ": expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

MetaspaceOptions read_metaspace(const JsonSection& section) {
  using Prepend = MetaspaceOptions::Prepend;
  MetaspaceOptions options;
  options.replacement = section.character("replacement", options.replacement);
  options.split = section.flag("split", true);
  // Older files have add_prefix_space instead of prepend_scheme.
  const std::string scheme =
      section.text("prepend_scheme", section.flag("add_prefix_space", true) ? "always" : "never");
  if (scheme != "always" && scheme != "never" && scheme != "first")
    section.fail("prepend_scheme", "is ", scheme, ": expected always, never or first");
  options.prepend = scheme == "always"  ? Prepend::always
                    : scheme == "never" ? Prepend::never
                                        : Prepend::first;
  return options;
}

struct PreTokenizerReader {
  Pipeline& pipeline;
  bool only_splits = true;

  PreTokenizer read(const JsonSection& section, bool is_last) {
    const std::string type = section.text("type");
    if (type == "Split") return read_split(section);
    if (type == "ByteLevel") return read_byte_level(section, is_last);
    only_splits = false;
    if (type == "BertPreTokenizer") return bert_pre_tokenizer();
    if (type == "Whitespace") return whitespace_pre_tokenizer();
    if (type == "WhitespaceSplit") return split_at(is_white_space, SplitBehavior::removed);
    if (type == "Punctuation")
      return split_at(is_punctuation, read_behavior(section, "behavior", "Isolated"));
    if (type == "Digits")
      return split_at(is_numeric, section.flag("individual_digits", false) ? SplitBehavior::isolated
                                                                           : SplitBehavior::contiguous);
    if (type == "Metaspace") {
      const MetaspaceOptions options = read_metaspace(section);
      pipeline.needs_source = pipeline.needs_source || options.prepend == MetaspaceOptions::Prepend::first;
      return metaspace_pre_tokenizer(options);
    }
    if (type == "CharDelimiterSplit")
      return split_pre_tokenizer(TextPattern::literal(section.text("delimiter")), SplitBehavior::removed,
                                 /*invert=*/false);
    fail_unknown_type(
        section, "pre-tokenizer",
        "BertPreTokenizer, Whitespace, WhitespaceSplit, ByteLevel, Metaspace, Punctuation, Digits, Split, "
        "CharDelimiterSplit, Sequence");
  }

  void set_split(SplitPattern pattern) {
    only_splits = only_splits && !pipeline.only_splits;
    pipeline.only_splits = pattern;
  }

  PreTokenizer read_split(const JsonSection& section) {
    const SplitBehavior behavior = read_behavior(section, "behavior", "");
    const bool invert = section.flag("invert", false);
    const JsonSection pattern = section.section("pattern");
    const auto known = split_pattern_of(pattern.text("Regex", ""));
    // The known patterns match every part of a text: there is nothing between two matches.
    const bool keeps_matches =
        behavior == SplitBehavior::isolated || (invert && behavior == SplitBehavior::removed);
    if (known && keeps_matches) {
      set_split(*known);
      return split_pre_tokenizer(*known);
    }
    only_splits = false;
    return split_pre_tokenizer(read_pattern(section, "pattern"), behavior, invert);
  }

  PreTokenizer read_byte_level(const JsonSection& section, bool is_last) {
    ByteLevelOptions options;
    options.add_prefix_space = section.flag("add_prefix_space", true);
    options.use_regex = section.flag("use_regex", true);
    if (options.use_regex) set_split(SplitPattern::gpt2);
    if (options.add_prefix_space || !is_last) only_splits = false;
    pipeline.model_reads_bytes = is_last && pipeline.kind == "bpe";
    options.maps_bytes = !pipeline.model_reads_bytes;
    if (options.maps_bytes) only_splits = false;
    return byte_level_pre_tokenizer(options);
  }
};

}  // namespace

void read_pre_tokenizer(const JsonSection& root, Pipeline& pipeline) {
  if (root.find("pre_tokenizer") == nullptr) {
    pipeline.bert.reset();
  } else {
    const JsonSection section = root.section("pre_tokenizer");
    const std::vector<JsonSection> sections = all_parts(section, "pretokenizers");
    PreTokenizerReader reader{pipeline};
    std::vector<PreTokenizer> parts;
    for (std::size_t i = 0; i < sections.size(); ++i)
      parts.push_back(reader.read(sections[i], i + 1 == sections.size()));
    pipeline.pre_tokenizer = in_sequence(std::move(parts));
    if (section.text("type") != "BertPreTokenizer") pipeline.bert.reset();
    if (!reader.only_splits) pipeline.only_splits.reset();
  }
  if (pipeline.normalizer) pipeline.only_splits.reset();
}

}  // namespace zoo
