#pragma once

#include "models/family.h"
#include "models/io/load_report.h"
#include "models/io/weight_files.h"

namespace zoo {

struct WeightOptions {
  at::ScalarType dtype = at::kFloat;
  /// The model will be trained: each weight gets contiguous memory of its own. Otherwise a weight whose type
  /// fits stays in the mapped file and is read when it is first used.
  bool trainable = false;
};

/// Compares the names and shapes of the files with what the model needs; reads no weight but tied copies and
/// biases that must be zero.
LoadReport match_weights(const Model& model, const WeightTable& table, const WeightFiles& files);

/// Gives the model the files' weights. Throws Error with all faults of the report unless it is good.
LoadReport load_weights(Model& model, const WeightTable& table, const WeightFiles& files,
                        const WeightOptions& options);

/// The model's weights under Hugging Face's names and in its layout, tied ones once.
NamedTensors export_weights(const Model& model, const WeightTable& table);

/// `tensor` of our parameter `ours`, its gradient for instance, as their names and layout.
NamedTensors export_tensor(const WeightName& name, const at::Tensor& tensor, const WeightTable& table);

}  // namespace zoo
