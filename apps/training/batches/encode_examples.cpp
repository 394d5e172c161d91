#include "apps/training/batches/encode_examples.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "data/base/field_error.h"
#include "data/base/lines.h"
#include "data/base/near_match.h"
#include "models/tasks/translate.h"
#include "tokenizer/files/file_readers.h"

namespace zoo {
namespace {

// The examples of the records; an error has their line.
template <class Record, class Encode>
std::vector<Example> encode_each(const std::vector<Record>& records, const std::string& name, Encode encode) {
  std::vector<Example> examples;
  for (const Record& record : records)
    examples.push_back(at_line(name, record.line, [&] { return encode(record); }));
  return examples;
}

Example example_of(Encoding encoding, std::vector<std::int64_t> labels = {}) {
  Example example{.input_ids = std::move(encoding.ids),
                  .type_ids = std::move(encoding.type_ids),
                  .words = std::move(encoding.words),
                  .labels = std::move(labels)};
  example.words.resize(example.input_ids.size());
  // Where words are not known, or the text is a single one, each token is a word.
  if (std::ranges::none_of(example.words, [](std::int32_t word) { return word > 0; }))
    std::iota(example.words.begin(), example.words.end(), 0);
  for (std::size_t i = 0; i < example.words.size(); ++i)
    if (encoding.texts[i] < 0) example.words[i] = -1;
  return example;
}

struct JoinedWords {
  std::string text;
  std::vector<ByteRange> ranges;
};

JoinedWords join(const TaggedSentence& sentence) {
  JoinedWords joined;
  for (const std::string& word : sentence.words) {
    if (!joined.text.empty()) joined.text += ' ';
    const auto begin = static_cast<std::uint32_t>(joined.text.size());
    joined.text += word;
    joined.ranges.push_back({begin, static_cast<std::uint32_t>(joined.text.size())});
  }
  return joined;
}

// A token belongs to the word of its last byte, because some tokens include the space before a word. One that
// is nothing but this space ("▁", or "Ġ" of trimmed offsets) is the word's first, as in transformers.
std::vector<std::int64_t> labels_of_tokens(const Encoding& encoding, const JoinedWords& joined,
                                           const std::vector<std::int64_t>& labels) {
  std::vector<std::int64_t> result(encoding.size(), -100);
  std::size_t word = 0;
  std::int64_t last = -1;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    if (encoding.texts[i] < 0) continue;
    const ByteRange& token = encoding.offsets[i];
    while (word + 1 < joined.ranges.size() && token.end > joined.ranges[word].end) ++word;
    const std::uint32_t begin = joined.ranges[word].begin;
    const bool belongs = token.end > begin || token.begin + 1 >= begin;
    if (!belongs || static_cast<std::int64_t>(word) == last) continue;
    last = static_cast<std::int64_t>(word);
    result[i] = labels[word];
  }
  return result;
}

std::vector<std::int64_t> answer_tokens(const Encoding& encoding, const ByteRange& answer) {
  std::int64_t first = -1, last = -1;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    const ByteRange& range = encoding.offsets[i];
    if (encoding.texts[i] != 1 || range.end <= answer.begin || range.begin >= answer.end) continue;
    if (first < 0) first = static_cast<std::int64_t>(i);
    last = static_cast<std::int64_t>(i);
  }
  const bool whole = last >= 0 && encoding.offsets[static_cast<std::size_t>(last)].end >= answer.end;
  return whole ? std::vector<std::int64_t>{first, last} : std::vector<std::int64_t>{0, 0};
}

// Whole numbers by value, so that class 2 is not "10".
std::vector<std::string> in_order(const std::set<std::string>& labels) {
  std::vector<std::string> sorted(labels.begin(), labels.end());
  const auto is_number = [](const std::string& label) {
    return label.find_first_not_of("0123456789") == std::string::npos && (label[0] != '0' || label == "0");
  };
  if (std::ranges::all_of(sorted, is_number)) std::ranges::stable_sort(sorted, {}, &std::string::size);
  return sorted;
}

// Index of a label, which may be the number of a class without a name: "3" is LABEL_3.
std::int64_t label_number(const std::string& label, const std::vector<std::string>& labels) {
  for (const std::string& name : {label, "LABEL_" + label})
    if (const auto found = std::ranges::find(labels, name); found != labels.end())
      return found - labels.begin();
  throw Error("unknown label '", label, "'", did_you_mean(label, labels), " (there are: ", joined(labels),
              ")");
}

// How many labels of the examples are of each class.
std::vector<double> label_counts(const std::vector<Example>& examples, std::size_t classes) {
  std::vector<double> counts(classes);
  for (const Example& example : examples)
    for (const std::int64_t label : example.labels)
      if (label >= 0) ++counts[static_cast<std::size_t>(label)];
  return counts;
}

}  // namespace

Encoding encode_within(EncodeLimits& limits, const Tokenizer& tokenizer, const std::string& text,
                       const std::string& pair, EncodeOptions options) {
  options.max_length = limits.max_length;
  Encoding encoding =
      pair.empty() ? tokenizer.encode(text, options) : tokenizer.encode_pair(text, pair, options);
  limits.cut += encoding.cut ? 1 : 0;
  return encoding;
}

std::vector<Example> encode_texts(const std::vector<Record>& records, const Tokenizer& tokenizer,
                                  const std::string& name, EncodeLimits& limits) {
  return encode_each(records, name, [&](const Record& record) {
    return example_of(encode_within(limits, tokenizer, record.fields[0]));
  });
}

std::vector<Example> encode_pairs(const std::vector<Record>& records, const Tokenizer& tokenizer,
                                  TokenId eos_id, const std::string& prefix, const Languages& languages,
                                  const std::string& name, EncodeLimits& limits) {
  return encode_each(records, name, [&](const Record& record) {
    Encoding source =
        encode_within(limits, tokenizer, prefix + record.fields[0], "", {.with_offsets = false});
    if (languages.source) set_language(source, tokenizer, *languages.source, "source_lang");
    Example example = example_of(std::move(source));
    TokenIds target;
    if (languages.target) {
      Encoding encoding = tokenizer.encode(record.fields[1], EncodeOptions{.with_offsets = false});
      set_language(encoding, tokenizer, *languages.target, "target_lang");
      target = std::move(encoding.ids);
    } else {
      target = encode_target(tokenizer, record.fields[1]);
    }
    if (target.empty() || target.back() != eos_id) target.push_back(eos_id);
    if (target.size() > limits.max_target_length) {
      target.resize(limits.max_target_length);
      target.back() = eos_id;
      ++limits.cut;
    }
    example.labels.assign(target.begin(), target.end());
    return example;
  });
}

std::optional<TokenId> begin_of_documents(const Tokenizer& tokenizer) {
  const std::optional<TokenId> bos = tokenizer.special_id(SpecialToken::bos);
  const TokenIds empty = tokenizer.encode("", EncodeOptions{.with_offsets = false}).ids;
  const bool begins = bos && bos != tokenizer.special_id(SpecialToken::cls) && !empty.empty();
  return begins && empty.front() == *bos ? bos : std::nullopt;
}

TokenIds encode_documents(std::span<const Record> records, const Tokenizer& tokenizer, TokenId eos_id,
                          const std::string& name) {
  TokenIds all;
  const std::optional<TokenId> begin = begin_of_documents(tokenizer);
  for (const Record& record : records) {
    const TokenIds ids = at_line(name, record.line, [&] { return tokenizer.encode(record.fields[0]); });
    if (begin) all.push_back(*begin);
    all.insert(all.end(), ids.begin(), ids.end());
    all.push_back(eos_id);
  }
  return all;
}

std::vector<std::string> labels_of(const std::vector<Record>& records, bool lists) {
  std::set<std::string> labels;
  for (const Record& record : records) {
    if (lists) labels.insert(record.list.begin(), record.list.end());
    else labels.insert(record.fields[1]);
  }
  return in_order(labels);
}

std::vector<std::string> labels_of(const std::vector<TaggedSentence>& sentences) {
  std::set<std::string> labels;
  for (const TaggedSentence& sentence : sentences) labels.insert(sentence.tags.begin(), sentence.tags.end());
  return in_order(labels);
}

std::vector<std::string> choose_labels(const std::vector<std::string>& found,
                                       const std::vector<std::string>& given,
                                       const std::vector<std::string>& own, bool measures,
                                       const std::string& name) {
  const auto odd = [&](const auto& label) {
    return std::ranges::count(own, label) + std::ranges::count(own, "LABEL_" + label) == 0;
  };
  for (const std::string& label : given)
    if (std::ranges::count(given, label) > 1)
      throw UnfitField(Field{"labels"}, ": '", label, "' is there twice");
  if (measures && !given.empty() && given.size() != own.size())
    throw UnfitField(Field{"labels"}, ": the model has ", own.size(), " classes, got ", given.size());
  const bool learns = own.empty() || (!measures && own[0] == "LABEL_0" && std::ranges::any_of(found, odd));
  const std::vector<std::string>& labels = !given.empty() ? given : learns ? found : own;
  if (labels.size() < 2)
    throw Error(name, ": a classification needs at least two labels, found ", labels.size());
  return labels;
}

void require_all_labels(const std::vector<Example>& examples, const std::vector<std::string>& labels,
                        const std::string& name) {
  const std::vector<double> counts = label_counts(examples, labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (counts[i] == 0) throw Error(name, ": the label '", labels[i], "' has no example to train on");
}

std::vector<double> balanced_weights(const std::vector<Example>& examples, std::size_t classes) {
  std::vector<double> counts = label_counts(examples, classes);
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  for (double& count : counts) count = all / (static_cast<double>(classes) * count);
  return counts;
}

std::vector<Example> encode_classes(const std::vector<Record>& records, const Tokenizer& tokenizer,
                                    ProblemType problem, const std::vector<std::string>& labels,
                                    const std::string& name, EncodeLimits& limits) {
  return encode_each(records, name, [&](const Record& record) {
    Example example = example_of(encode_within(limits, tokenizer, record.fields[0], record.fields[2]));
    const std::string& label = record.fields[1];
    if (problem == ProblemType::kRegression) {
      const auto number = number_in<double>(label);
      if (!number || !std::isfinite(*number))
        throw Error("the label of a regression must be a number, found '", label,
                    "'; the problem_type single_label_classification learns classes");
      example.score = *number;
    } else if (problem == ProblemType::kMultiLabel) {
      for (const std::string& each : record.list) example.labels.push_back(label_number(each, labels));
      std::ranges::sort(example.labels);
      const auto twice = std::ranges::adjacent_find(example.labels);
      if (twice != example.labels.end())
        throw Error("the label '", labels[static_cast<std::size_t>(*twice)],
                    "' is there twice; expected the labels of the text, not a 0 or 1 for each label");
    } else {
      example.labels = {label_number(label, labels)};
    }
    return example;
  });
}

std::vector<Example> encode_tagged(const std::vector<TaggedSentence>& sentences, const Tokenizer& tokenizer,
                                   const std::vector<std::string>& labels, const std::string& name,
                                   EncodeLimits& limits) {
  std::vector<Example> examples;
  for (const TaggedSentence& sentence : sentences) {
    std::vector<std::int64_t> numbers;
    for (std::size_t i = 0; i < sentence.tags.size(); ++i)
      numbers.push_back(
          at_line(name, sentence.lines[i], [&] { return label_number(sentence.tags[i], labels); }));
    examples.push_back(at_line(name, sentence.lines.front(), [&] {
      const JoinedWords joined = join(sentence);
      Encoding encoding = encode_within(limits, tokenizer, joined.text);
      if (encoding.offsets.size() != encoding.size())
        throw Error("this tokenizer does not say where its tokens stand, which labels of words need");
      std::vector<std::int64_t> of_tokens = labels_of_tokens(encoding, joined, numbers);
      return example_of(std::move(encoding), std::move(of_tokens));
    }));
  }
  return examples;
}

std::vector<Example> encode_questions(const std::vector<Question>& questions, const Tokenizer& tokenizer,
                                      const std::string& name, EncodeLimits& limits) {
  return encode_each(questions, name, [&](const Question& question) {
    Encoding encoding = encode_within(limits, tokenizer, question.question, question.context,
                                      {.truncation = Truncation::only_second});
    if (encoding.offsets.size() != encoding.size())
      throw Error("this tokenizer does not say where its tokens stand, which answers need");
    std::vector<std::int64_t> answer = answer_tokens(encoding, question.answer);
    return example_of(std::move(encoding), std::move(answer));
  });
}

}  // namespace zoo
