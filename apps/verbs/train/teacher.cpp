#include <algorithm>
#include <sstream>

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "apps/training/teacher_file.h"
#include "apps/verbs/measure/evaluations.h"
#include "apps/verbs/train/train_parts.h"
#include "models/tasks/classify.h"
#include "models/tasks/inference_loading.h"
#include "models/tasks/search/rank.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

// As inference runs packed weights: of rows without padding, which at their end changes nothing before it.
Teacher packed_teacher(const CheckpointConfig& checkpoint, const TrainFlags& flags) {
  if (flags.data.documents == "pack")
    throw Error("--teacher: ", checkpoint.directory,
                " is packed or a GGUF file, which reads no rows of --documents pack");
  const ComputeOptions compute{.device = "cpu", .dtype = flags.compute.dtype, .cache = "float32"};
  const std::shared_ptr<DecodingModel> model = load_decoding_model(checkpoint, compute);
  return [model](const ModelInputs& inputs) {
    const at::NoGradGuard no_grad;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    const at::Tensor ids = inputs.input_ids.cpu();
    const auto session = model->begin(ids.size(0), ids.size(1));
    const at::Tensor logits = session->read(rows_of(ids), DecodingSession::Logits::kAll);  // [B, T, V]
    return logits.flatten(0, 1).index_select(0, inputs.label_positions.cpu());
  };
}

}  // namespace

Teacher load_teacher(const TrainFlags& flags, const LoadedModel& student, const TaskData& data) {
  const CheckpointConfig checkpoint = read_checkpoint_config(flags.teacher);
  const fs::path& directory = checkpoint.directory;
  const TransformerConfig &own = checkpoint.config, &config = student.model->config();
  if (checkpoint.head != student.head)
    throw Error("--teacher: ", directory, " has a ", name_of(checkpoint.head), " head; expected ",
                name_of(student.head));
  // How a text becomes ids may differ: the teacher reads the student's.
  const auto tokenizer = load_tokenizer(directory, checkpoint.json.get());
  if (!data.tokenizer)
    throw Error("--teacher: ", data.source, " has no tokenizer to compare with the teacher's");
  if (const auto id = first_other_token(*tokenizer, *data.tokenizer))
    throw Error("--teacher: ", directory, " has another tokenizer than the student, whose id ", *id,
                " is another token; a student from scratch takes --tokenizer ", directory);
  if (own.vocab_size != config.vocab_size)
    throw Error("--teacher: ", directory, " has a vocabulary of ", own.vocab_size, " tokens, the student of ",
                config.vocab_size, "; both need the same");
  if (flags.distillation.top_k >= own.vocab_size)
    throw Error("--teacher_top_k ", flags.distillation.top_k, ": the vocabulary has ", own.vocab_size,
                " tokens; 0 compares all");
  if (own.has_position_table() && flags.data.block_size > own.max_length())
    throw Error("--teacher: ", directory, " has ", own.max_length(), " positions, fewer than --block_size ",
                flags.data.block_size);
  if (checkpoint.packed_parts() || !fs::is_directory(directory)) return packed_teacher(checkpoint, flags);
  const c10::Device device = student.model->parameters().front().device();
  const std::shared_ptr<Model> model = load_model(checkpoint, {.device = device}).model;
  return [model](const ModelInputs& inputs) {
    const at::NoGradGuard no_grad;
    return model->forward(inputs).logits;
  };
}

std::shared_ptr<TeacherFile> open_teacher_file(const TrainFlags& flags, std::int64_t rank) {
  if (flags.teacher_file.empty()) return nullptr;
  fs::path path = flags.teacher_file;
  if (rank > 0) path += ".rank" + std::to_string(rank);
  std::ostringstream made_by;
  const fs::path config = flags.teacher / "config.json";
  made_by << fingerprint_of_weights(flags.teacher) << (fs::exists(config) ? fingerprint_of_file(config) : "")
          << " in " << flags.compute.dtype << " at temperature " << flags.distillation.temperature;
  return std::make_shared<TeacherFile>(path, made_by.str(), flags.distillation.top_k);
}

TextTeacher load_text_teacher(const TrainFlags& flags) {
  const SentenceConfig config = SentenceConfig::read(flags.teacher);
  const CheckpointConfig checkpoint = read_checkpoint_config(config.transformer);
  const bool pairs = scores_pairs(checkpoint);
  const ProblemType problem = checkpoint.config.problem_type;
  if (pairs && problem != ProblemType::kRegression && problem != ProblemType::kByLabels)
    throw Error("--teacher: ", flags.teacher, " is no regression, as the logits of a cross-encoder are");
  ComputeOptions compute = flags.compute;
  compute.weights = checkpoint.packed_parts() ? "auto" : "modules";
  auto model = std::make_shared<TextModel>(
      load_text_model(checkpoint, compute, pairs ? checkpoint.head : Head::kBase));
  using Texts = TextTeacher::Texts;
  if (pairs)
    return {true, [model, prompt = SentenceConfig::read_pair_settings(flags.teacher).default_prompt](
                      const Texts& queries, const Texts& documents) {
              Texts prompted;
              for (const std::string& query : queries) prompted.push_back(prompt + query);
              std::vector<float> logits;
              for (const TextLabels& each : classify(*model, {.texts = prompted, .pairs = documents}))
                logits.push_back(each.values.front());
              return at::tensor(logits);
            }};
  EmbedOptions options{.modules = {.device = model->device}};
  if (config.modules.empty()) options.modules.normalize = false;  // as of the student
  const TextEmbedder embedder(model->model, std::move(model->tokenizer), config, options);
  return {false, [embedder](const Texts& queries, const Texts& documents) {
            return at::cat({embedder.embed(queries), embedder.embed(documents)});
          }};
}

}  // namespace zoo
