#include "apps/verbs/train/teacher.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "apps/verbs/train/dataset_source.h"
#include "data/base/error.h"
#include "data/base/mapped_file.h"
#include "models/tasks/inference_loading.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

// The tokens of the ids, which are all that a language model is asked for, not how a text becomes ids.
void require_same_tokens(const fs::path& directory, const Tokenizer& own, const TaskData& data) {
  if (!data.tokenizer)
    throw Error("--teacher: ", data.source, " has no tokenizer to compare with that of ", directory);
  const std::int64_t count = std::min(own.vocab_size(), data.tokenizer->vocab_size());
  for (TokenId id = 0; id < count; ++id) {
    const std::string theirs = own.token_text(id), ours = data.tokenizer->token_text(id);
    if (theirs != ours)
      throw Error("--teacher: ", directory, " has another tokenizer than the student: the id ", id, " is '",
                  theirs, "', the student's '", ours, "'; start from scratch with --tokenizer ", directory,
                  " or from a model with its tokenizer");
  }
}

// As inference runs packed weights: rows without padding, whose end does not change what is before it.
Teacher packed_teacher(const CheckpointConfig& checkpoint, const TrainFlags& flags) {
  if (flags.data.documents == "pack")
    throw UsageError("--documents pack: packed weights and GGUF files read rows of one document; give the ",
                     "--teacher that they were made from");
  ComputeOptions compute = flags.compute;
  compute.device = "cpu";
  compute.cache = "float32";
  const std::shared_ptr<DecodingModel> model = load_decoding_model(checkpoint, compute);
  return [model](const ModelInputs& inputs) {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const at::Tensor ids = inputs.input_ids.cpu();
    std::vector<TokenIds> rows;
    for (const at::Tensor& row : ids.contiguous().unbind())
      rows.emplace_back(row.const_data_ptr<std::int64_t>(), row.const_data_ptr<std::int64_t>() + row.numel());
    const auto session = model->begin(ids.size(0), ids.size(1));
    const at::Tensor logits = session->read(rows, DecodingSession::Logits::kAll);  // [B, T, V]
    return logits.flatten(0, 1).index_select(0, inputs.label_positions.to(logits.device()));
  };
}

}  // namespace

void require_teacher_flags(const TrainFlags& flags) {
  const DistillationOptions none, &given = flags.distillation;
  if (flags.teacher.empty()) {
    for (const auto& [name, is_set] :
         {std::pair("distillation", given.divergence != none.divergence),
          std::pair("distillation_weight", given.weight != none.weight),
          std::pair("distillation_temperature", given.temperature != none.temperature)})
      if (is_set) throw UsageError("--", name, ": only with --teacher DIR");
    return;
  }
  const Task task = flags.data.task;
  if (task != Task::kLm && task != Task::kChat)
    throw UsageError("--teacher: only for the tasks lm and chat, not ", name_of(task));
  if (flags.disagreement != Disagreement::kNone) throw UsageError("--disagreement: not with --teacher");
}

TeacherFiles teacher_files(const fs::path& teacher) {
  std::vector<fs::path> paths;
  if (fs::is_directory(teacher)) {
    for (const auto& entry : fs::directory_iterator(teacher))
      if (entry.path().extension() == ".safetensors" || entry.path().filename() == "config.json")
        paths.push_back(entry.path());
    std::ranges::sort(paths);
  } else {
    paths = {teacher};
  }
  TeacherFiles files;
  for (const fs::path& path : paths) {
    const MappedFile file(path);
    files.sha256 += fingerprint({reinterpret_cast<const char*>(file.data()), file.bytes().size()});
    files.bytes += static_cast<std::int64_t>(file.bytes().size());
  }
  files.sha256 = fingerprint(files.sha256);
  return files;
}

Teacher load_teacher(const TrainFlags& flags, const LoadedModel& student, const TaskData& data) {
  const CheckpointConfig checkpoint = read_checkpoint_config(flags.teacher);
  const fs::path& directory = checkpoint.directory;
  const TransformerConfig &own = checkpoint.config, &config = student.model->config();
  if (checkpoint.head != student.head)
    throw Error("--teacher: ", directory, " has a ", name_of(checkpoint.head), " head; expected ",
                name_of(student.head), ", as the student's");
  if (own.vocab_size != config.vocab_size)
    throw Error("--teacher: ", directory, " has a vocabulary of ", own.vocab_size, " tokens, the student of ",
                config.vocab_size, "; both need the same");
  if (!has_tokenizer(directory)) throw Error("--teacher: ", directory, " holds no tokenizer");
  require_same_tokens(directory, *load_tokenizer(directory, checkpoint.json.get()), data);
  if (own.has_position_table() && flags.data.block_size > own.max_length())
    throw Error("--block_size ", flags.data.block_size, " is longer than the ", own.max_length(),
                " positions of --teacher ", directory);
  if (config.router_loss)
    throw Error("--teacher: the loss does not balance experts; take output_router_logits out of config.json");
  if (checkpoint.packed_parts() || !fs::is_directory(directory)) return packed_teacher(checkpoint, flags);
  const c10::Device device = student.model->parameters().front().device();
  const std::shared_ptr<Model> model = load_model(checkpoint, {.device = device}).model;
  return [model](const ModelInputs& inputs) { return model->forward(inputs).logits; };
}

}  // namespace zoo
