#include <algorithm>
#include <set>

#include "apps/training/batches/encode_examples.h"
#include "data/base/field_error.h"
#include "data/base/lines.h"
#include "data/base/near_match.h"

namespace zoo {
namespace {

// Whole numbers by value, so that class 2 is not "10".
std::vector<std::string> in_order(const std::set<std::string>& labels) {
  std::vector<std::string> sorted(labels.begin(), labels.end());
  const auto is_number = [](const std::string& label) {
    return label.find_first_not_of("0123456789") == std::string::npos && (label[0] != '0' || label == "0");
  };
  if (std::ranges::all_of(sorted, is_number)) std::ranges::stable_sort(sorted, {}, &std::string::size);
  return sorted;
}

}  // namespace

std::vector<std::string> labels_of(const std::vector<Record>& records, std::size_t field, bool lists) {
  std::set<std::string> labels;
  for (const Record& record : records) {
    if (lists) labels.insert(record.list.begin(), record.list.end());
    else labels.insert(record.fields[field]);
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
  std::vector<bool> found(labels.size());
  for (const Example& example : examples) {
    for (const std::int64_t label : example.labels)
      if (label >= 0) found[static_cast<std::size_t>(label)] = true;
  }
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (!found[i]) throw Error(name, ": the label '", labels[i], "' has no example to train on");
}

std::vector<double> balanced_weights(const std::vector<Example>& examples, std::size_t classes) {
  std::vector<double> counts(classes);
  double all = 0;
  for (const Example& example : examples) {
    for (const std::int64_t label : example.labels) {
      if (label < 0) continue;
      ++counts[static_cast<std::size_t>(label)];
      ++all;
    }
  }
  for (double& count : counts) count = all / (static_cast<double>(classes) * count);
  return counts;
}

std::int64_t label_number(const std::string& label, const std::vector<std::string>& labels) {
  for (const std::string& name : {label, "LABEL_" + label})
    if (const auto found = std::ranges::find(labels, name); found != labels.end())
      return found - labels.begin();
  throw Error("unknown label '", label, "'", did_you_mean(label, labels), " (there are: ", joined(labels),
              ")");
}

}  // namespace zoo
