#pragma once

/// @file
/// Use:
///
///     const auto files = std::make_shared<const zoo::WeightFiles>("runs/kjv/final");
///     const zoo::WeightTable table = family.weight_table(model.config());
///     zoo::load_weights(model, table, files, {.trainable = true});
///     zoo::write_safetensors("copy.safetensors", zoo::export_weights(model, table));

#include <map>
#include <string>

#include "models/checkpoint/load_report.h"
#include "models/checkpoint/stored_weights.h"
#include "models/family.h"
#include "models/formats/safetensors.h"
#include "models/formats/weight_files.h"

namespace zoo {

struct WeightOptions {
  at::ScalarType dtype = at::kFloat;
  /// For training: each weight gets its own contiguous memory. Otherwise a weight of the right type stays in
  /// the mapped file and is read at its first use.
  bool trainable = false;
  /// Head weights that the files lack keep their values in the model, for fine-tuning.
  bool may_lack_head = false;
  /// If not null, matrices stay in the files, and this records where. Not for training.
  StoredWeights* stored = nullptr;
};

/// Names of a table's weights in the files: with the table's prefix, or without it (bare model); by an older
/// name if the present one is missing. Both must outlive it.
class StoredNames {
 public:
  StoredNames(const WeightTable& table, const WeightFiles& files);

  /// The files' name for a name of the table, present or not: of a tied weight that they lack, its copy's.
  std::string stored(const std::string& name) const;
  /// The same without its copies.
  std::string own(const std::string& name) const;

  /// The line with its other names, if the files have those instead.
  WeightName with_others(WeightName name) const;
  /// True if the files hold the line's weight as one tensor of all experts.
  bool joins(const WeightName& name) const;
  /// The line with the files' names.
  WeightName stored(WeightName name) const;

  /// {ending, older ending} of names, the table's own first.
  const std::vector<std::pair<std::string, std::string>>& older_endings() const { return older_endings_; }

 private:
  const WeightTable& table_;
  const WeightFiles& files_;
  std::vector<std::pair<std::string, std::string>> older_endings_;
  bool prefixed_;
};

/// Compares names and shapes in the files with what the model needs; reads only tied copies and biases that
/// must be zero.
LoadReport match_weights(const Model& model, const WeightTable& table, const WeightFiles& files,
                         const WeightOptions& options = {});

/// Loads the files' weights into the model. Throws Error with all faults unless the report is good.
LoadReport load_weights(Model& model, const WeightTable& table,
                        const std::shared_ptr<const WeightFiles>& files, const WeightOptions& options);

/// Returns the model's weights under Hugging Face's names and in its layout, tied ones once. Those in
/// `replaced`, by our names, replace the model's. Throws FieldError as require_weights() does.
NamedTensors export_weights(const Model& model, const WeightTable& table,
                            std::map<std::string, at::Tensor> replaced = {});

/// The tensors of a model that a family's table names, by our names.
std::map<std::string, at::Tensor> weights_in(const Model& model, const WeightTable& table);

/// Converts `tensor` of our parameter `ours`, e.g. its gradient, to Hugging Face's names and layout.
NamedTensors export_tensor(const WeightName& name, const at::Tensor& tensor, const WeightTable& table);

}  // namespace zoo
