#pragma once

/// @file
/// Use:
///
///     const zoo::PeftAdapter adapter("adapter");  // what PEFT's save_pretrained() has written
///     const auto merged = adapter.merged_into(files, family.weight_table(config), config.num_layers);
///     zoo::save_adapter(loaded, {.terms = lora->terms(), .base = "gpt2"}, "runs/tuned/final/adapter");

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/checkpoint/checkpoint.h"
#include "models/layers/linear.h"

namespace zoo {

class ConfigReader;

/// The files of an adapter, and what begins the names of its tensors.
inline constexpr const char *kAdapterConfig = "adapter_config.json",
                            *kAdapterWeights = "adapter_model.safetensors",
                            *kAdapterPrefix = "base_model.model.",
                            *kAdapterLabels = "labels";  // metadata key of the weights: a JSON list

/// PEFT's task_type of each head.
inline constexpr std::pair<const char*, Head> kAdapterTasks[]{{"CAUSAL_LM", Head::kCausalLm},
                                                              {"SEQ_2_SEQ_LM", Head::kSeq2SeqLm},
                                                              {"SEQ_CLS", Head::kSequenceClassification},
                                                              {"TOKEN_CLS", Head::kTokenClassification},
                                                              {"QUESTION_ANS", Head::kQuestionAnswering},
                                                              {"FEATURE_EXTRACTION", Head::kBase}};

/// An adapter of PEFT (https://github.com/huggingface/peft), a directory with adapter_config.json and
/// adapter_model.safetensors: LoRA (Hu et al., 2022) W + s B A of linear layers, embeddings and Conv1D, with
/// s = alpha / r or, of rsLoRA (Kalajdzievski, 2023), alpha / sqrt(r); DoRA (Liu et al., 2024), whose
/// magnitudes replace the norms of W + s B A; and whole tensors (modules_to_save, bias, embeddings).
class PeftAdapter {
 public:
  /// Throws Error naming the file and the key or tensor for what changes the numbers and the zoo does not
  /// compute: another peft_type, an initialization that changes the base model, aLoRA, …
  explicit PeftAdapter(const std::filesystem::path& directory);

  /// The model that it was trained on: a directory, which has no revision, or a name on the hub, with
  /// "@REVISION" if the file names one; empty if the file does not say.
  static std::string base_of(const std::filesystem::path& directory);
  /// A base that is not here may be a path from the adapter's directory or from one around it, where the
  /// training ran; else the base as it is.
  static std::string find_base(const std::string& base, const std::filesystem::path& directory);

  /// Names of the labels of a head that save_adapter() has written; empty: not known.
  const std::vector<std::string>& label_names() const { return label_names_; }

  /// The head of its task_type; none: the model's own.
  std::optional<Head> head() const { return head_; }

  /// The tensors of a model with this adapter merged into them, in float32: computed when they are read, in
  /// the files' own names and layout. As in PEFT, a weight that is tied to an adapted one keeps its numbers,
  /// in a tensor of its own. Without terms only whole tensors are merged. Throws Error naming all tensors
  /// that do not fit the model.
  std::shared_ptr<const WeightFiles> merged_into(const std::shared_ptr<const WeightFiles>& files,
                                                 const WeightTable& table, std::int64_t num_layers,
                                                 bool with_terms = true) const;

  /// The same terms by our names of the weights, for a model that stays as it is: of a weight with several
  /// names (queries, keys and values) one term of all, with a mask. Throws Error for those of embeddings.
  std::map<std::string, LowRankTerm> terms(const WeightFiles& files, const WeightTable& table,
                                           std::int64_t num_layers) const;

  /// Our names, of any head, of the parameters that the adapter has whole (modules_to_save). Throws Error
  /// naming a tensor that PEFT does not train with it, and one of several that are one parameter here.
  std::vector<std::string> whole(const WeightTable& table, std::int64_t num_layers) const;

  struct Module {
    at::Tensor a, b, magnitude;  // [r, in], [out, r]; [out] of DoRA
    bool embedding = false;
    double scale = 1;
  };
  /// By Hugging Face's name of the module.
  const std::map<std::string, Module>& modules() const { return modules_; }

 private:
  void read_tensors();
  void scale(const std::string& name, Module& module, const ConfigReader& config,
             const nlohmann::ordered_json& file) const;

  std::filesystem::path weights_file_;
  std::shared_ptr<const WeightFiles> file_;
  std::optional<Head> head_;
  std::vector<std::string> label_names_;
  std::vector<std::string> saved_;  // ends of the modules that are copies: modules_to_save
  std::map<std::string, Module> modules_;
  std::map<std::string, std::string> whole_;  // names in the file, by its name of the parameter
};

/// What save_adapter() writes.
struct AdapterParts {
  std::map<std::string, LowRankTerm> terms;  // by our names of the weights, all of one rank and scale
  std::vector<std::string> whole;            // our names of the parameters that are saved whole
  std::string base;                          // path or name (@REVISION) of the model that the terms belong to
  double alpha = 8;                          // lora_alpha
  bool rslora = false;                       // the scale is alpha / sqrt(rank)
};

/// Writes an adapter that PEFT's PeftModel.from_pretrained() and PeftAdapter read. A weight that Hugging Face
/// has in several (queries, keys, values) gives each its rows of B, and all the same A. Throws Error for a
/// term of a weight that no checkpoint has.
void save_adapter(const LoadedModel& loaded, const AdapterParts& parts,
                  const std::filesystem::path& directory);

}  // namespace zoo
