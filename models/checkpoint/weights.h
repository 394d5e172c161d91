#pragma once

#include "models/checkpoint/load_report.h"
#include "models/family.h"
#include "models/formats/weight_files.h"

namespace zoo {

struct WeightOptions {
  at::ScalarType dtype = at::kFloat;
  /// The model will be trained: each weight gets contiguous memory of its own. Otherwise a weight whose type
  /// fits stays in the mapped file and is read when it is first used.
  bool trainable = false;
  /// Weights of heads that the files lack stay as they are in the model, for training to find them.
  bool may_lack_head = false;
};

/// What files call the weights of a table: with its prefix, or without it as a bare model writes; by an older
/// name where the present one is missing. Both must outlive it.
class StoredNames {
 public:
  StoredNames(const WeightTable& table, const WeightFiles& files);

  /// The files' name for one of the table's, present or not.
  std::string stored(const std::string& name) const;

 private:
  const WeightTable& table_;
  const WeightFiles& files_;
  bool prefixed_;
};

/// Compares the names and shapes of the files with what the model needs; reads no weight but tied copies and
/// biases that must be zero.
LoadReport match_weights(const Model& model, const WeightTable& table, const WeightFiles& files,
                         const WeightOptions& options = {});

/// Gives the model the files' weights. Throws Error with all faults of the report unless it is good.
LoadReport load_weights(Model& model, const WeightTable& table, const WeightFiles& files,
                        const WeightOptions& options);

/// The model's weights under Hugging Face's names and in its layout, tied ones once.
NamedTensors export_weights(const Model& model, const WeightTable& table);

/// `tensor` of our parameter `ours`, its gradient for instance, as their names and layout.
NamedTensors export_tensor(const WeightName& name, const at::Tensor& tensor, const WeightTable& table);

}  // namespace zoo
