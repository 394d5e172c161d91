#include <set>

#include "apps/verbs/checkpoint_files.h"
#include "apps/verbs/export_formats.h"
#include "data/base/atomic_file.h"
#include "data/base/error.h"
#include "models/checkpoint/checkpoint.h"
#include "models/model.h"

namespace zoo {
namespace {

// Compares bits, not values: -0 equals 0, and NaN does not equal itself.
bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         a.contiguous().view(at::kByte).equal(b.contiguous().view(at::kByte));
}

// Name of a type of weights as --dtype has it.
const char* dtype_word(at::ScalarType dtype) {
  return dtype == at::kFloat ? "float32" : dtype == at::kHalf ? "float16" : "bfloat16";
}

}  // namespace

Exported export_huggingface(const ModelPath& source, const std::filesystem::path& target,
                            std::optional<at::ScalarType> dtype) {
  const CheckpointConfig checkpoint = read_checkpoint_config(source);
  check_export_target(source, target);
  const at::ScalarType type = dtype ? *dtype : checkpoint.files().common_type();
  const LoadedModel loaded = load_model(checkpoint, {.dtype = type});

  AtomicDirectory directory(target);
  save_model(*loaded.model, *checkpoint.family, loaded.head, directory.path(), {.dtype = type});
  const ModelFiles files(checkpoint);
  files.write(directory.path());
  const WeightFiles written(directory.path());
  Exported made{.bytes = written.bytes(),
                .tensors = static_cast<std::int64_t>(written.names().size()),
                .type = dtype_word(type),
                .left_out = inspect_weights(checkpoint).unused,
                .not_carried = files.unknown()};
  directory.commit();
  return made;
}

std::int64_t verify_huggingface(const ModelPath& source, const std::filesystem::path& target) {
  const CheckpointConfig checkpoint = read_checkpoint_config(source);
  const WeightFiles& theirs = checkpoint.files();
  const WeightFiles written(target);
  const WeightTable table = checkpoint.family->weight_table(checkpoint.config);
  const WeightTable as_written = weight_table_of(*checkpoint.family, checkpoint.config, checkpoint.head);
  const StoredNames source_names(table, theirs);
  const auto names = inspect_weights(checkpoint).loaded;
  const std::set<std::string> loaded(names.begin(), names.end());
  std::set<std::string> compared;
  for (const WeightName& name : expand_layers(table.names, checkpoint.config.num_layers)) {
    for (const std::string& part : name.theirs) {
      const std::string source_name = source_names.stored(part), target_name = with_prefix(as_written, part);
      if (name.optional) compared.insert(target_name);
      if (loaded.count(source_name) == 0) continue;
      if (!written.contains(target_name)) throw Error(target, ": the tensor ", target_name, " is missing");
      const at::Tensor found = written.tensor(target_name);
      if (!same_bits(found, theirs.tensor(source_name).to(found.scalar_type())))
        throw Error(target, ": the tensor ", target_name, " differs from the source's");
      compared.insert(target_name);
    }
  }
  // Loading also checks that the configuration matches the weights.
  const LoadOptions options{.dtype = written.common_type()};
  const auto found = load_model(target, options).model->named_parameters();
  for (const std::string& name : written.names()) {
    // A bias that the model lacks is written as zeros, for Hugging Face classes that expect one.
    const bool zero = written.tensor(name).count_nonzero().item<std::int64_t>() == 0;
    if (compared.count(name) > 0 || zero) continue;
    // The source has it under another name, joined, or tied: the models are compared.
    for (const auto& parameter : load_model(checkpoint, options).model->named_parameters()) {
      if (!same_bits(found[parameter.key()], parameter.value()))
        throw Error(target, ": the tensor ", name, " is not in the source");
    }
    break;
  }
  return static_cast<std::int64_t>(written.names().size());
}

}  // namespace zoo
