#pragma once

#include <string>
#include <vector>

#include "apps/training/batches/example_batches.h"
#include "data/examples/record_file.h"
#include "data/examples/tagged_file.h"

namespace zoo {

/// Sorted labels: the records' field, or their lists if `lists`.
std::vector<std::string> labels_of(const std::vector<Record>& records, std::size_t field, bool lists = false);
std::vector<std::string> labels_of(const std::vector<TaggedSentence>& sentences);

/// The labels of a classification: `given` by the user; else the head's `own`; else those `found` in the
/// data, which a head with plain names ("LABEL_0") learns too, if they are no numbers of its classes and it
/// is not only measured. Throws UnfitField for another number of labels than a measured head has, Error
/// naming the data for less than two.
std::vector<std::string> choose_labels(const std::vector<std::string>& found,
                                       const std::vector<std::string>& given,
                                       const std::vector<std::string>& own, bool measures,
                                       const std::string& name);

/// Throws Error naming the first label that no example has.
void require_all_labels(const std::vector<Example>& examples, const std::vector<std::string>& labels,
                        const std::string& name);

/// Class weights that balance rare and frequent classes: examples / (classes * examples of the class), as
/// scikit-learn's "balanced".
std::vector<double> balanced_weights(const std::vector<Example>& examples, std::size_t classes);

/// Index of a label, which may be the number of a class without a name: "3" is LABEL_3. Throws Error naming
/// the nearest label.
std::int64_t label_number(const std::string& label, const std::vector<std::string>& labels);

}  // namespace zoo
