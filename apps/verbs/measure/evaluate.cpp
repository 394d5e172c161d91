#include <algorithm>
#include <iostream>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/ones_like.h>
#include <nlohmann/json.hpp>

#include "apps/compute/compute.h"
#include "apps/hub/hub_cache.h"
#include "apps/training/metrics/task_metrics.h"
#include "apps/training/records/run_directory.h"
#include "apps/verbs/measure/evaluations.h"
#include "apps/verbs/train/text_objectives.h"
#include "apps/verbs/train/train_parts.h"
#include "apps/verbs/verbs.h"
#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/lines.h"
#include "models/generation/generate.h"
#include "models/tasks/inference_loading.h"
#include "models/tasks/translate.h"

namespace zoo {
namespace {

struct EvaluateFlags {
  ModelPath model;
  DataFlags data{.dataset = ""};
  EmbeddingFlags embedding;
  SuiteFlags suite;
  std::int64_t batch_size = 16, eval_iters = 200;
  bool json = false;
  bool of_run = false;   // the dataset is that of the model's run, of which a part is the validation set
  nlohmann::json given;  // flags, those of the run among them
  ComputeOptions compute{.weights = "modules"};
};

// run_config.json of the training run that the model belongs to: RUN/final, RUN/best or RUN/checkpoints/STEP.
std::optional<std::filesystem::path> run_config_of(const std::filesystem::path& model) {
  const std::filesystem::path whole = std::filesystem::weakly_canonical(model), folder = whole.parent_path();
  const bool step = folder.filename() == "checkpoints";
  if (!step && whole.filename() != "final" && whole.filename() != "best") return std::nullopt;
  const std::filesystem::path config = RunDirectory(step ? folder.parent_path() : folder, 0).config_path();
  return std::filesystem::exists(config) ? std::optional(config) : std::nullopt;
}

// The words, then the flags of the run that `flags` has too and that are not given: its data and how it was
// evaluated. The adapter that it began with is part of what it saved; its --weights were those below another.
std::vector<std::string> words_of_run(const std::filesystem::path& run_config, const Flags& flags,
                                      std::vector<std::string> words) {
  const nlohmann::json run = read_json(run_config), own = flags.resolved();
  for (const auto& [key, value] : run.items()) {
    const bool left_out =
        key == "device" || key == "dtype" || key == "threads" || key == "adapter" || key == "weights";
    if (left_out || !own.contains(key) || flags.given(key)) continue;
    for (const nlohmann::json& item : value.is_array() ? value : nlohmann::json::array({value})) {
      if (!item.is_null())
        words.push_back("--" + key + "=" + (item.is_string() ? item.get<std::string>() : item.dump()));
    }
  }
  return words;
}

// False if the flags only ask for help.
bool read_flags(const Arguments& arguments, EvaluateFlags& values) {
  Flags flags(arguments.command,
              "Measures a model on a dataset: the loss, except of embeddings and rankings, and the metrics "
              "of the task (perplexity, accuracy, F1, exact match, BLEU, MRR, nDCG, rank correlation), or on "
              "tasks of lm-evaluation-harness. Without --dataset it takes the validation set of the run that "
              "the model belongs to, and the flags that the run was evaluated with.");
  add_model_flag(flags, values.model);
  declare_data(flags, values.data);
  declare_prompt_names(flags, values.embedding);
  flags.group("Evaluation");
  flags.add("batch_size", values.batch_size, "examples per batch", between(1, kMostBatchRows));
  flags.add("eval_iters", values.eval_iters,
            "batches drawn where the data are one text, as for lm; tables of examples are read to their end",
            between(1, 100000));
  flags.add("json", values.json, "print one JSON object");
  declare_suite(flags, values.suite);
  flags.add_weights(values.compute);
  flags.add_cache(values.compute);
  flags.add_compute(values.compute);
  flags.example("tzoo evaluate --model runs/kjv/final --dataset kjv --weights int8");
  flags.example("tzoo evaluate --model runs/reverse/final --dataset reverse.tsv");
  flags.example("tzoo evaluate --model runs/groups/final --dataset kjv-groups-held-out");
  flags.example("tzoo evaluate --model runs/kjv/final --suite piqa.yaml --output answers.jsonl");
  if (!flags.parse(arguments)) return false;
  check_suite(flags, values.suite);
  if (!values.suite.files.empty()) {
    if (!flags.given("weights")) values.compute.weights = "auto";
    return true;
  }
  if (values.data.dataset.empty()) {
    const auto run = run_config_of(values.model);
    if (!run)
      throw UsageError("missing flag '--dataset': ", values.model, " belongs to no run of tzoo train, whose ",
                       "validation set would be taken");
    return read_flags({arguments.command, words_of_run(*run, flags, arguments.words)},
                      values = {.of_run = true});
  }
  if (!flags.given("weights") && PackedParts::exist_in(values.model)) values.compute.weights = "auto";
  if (values.compute.weights == "modules" && values.compute.cache != "auto")
    throw UsageError("--cache: needs --weights float32, bfloat16, int8 or int4");
  values.given = flags.given_values();
  return true;
}

// A flag without an effect would let the figures look like others.
void require_effect(const EvaluateFlags& flags, bool has_tokenizer) {
  const auto is_given = [&](const std::string& flag) { return !flags.of_run && flags.given.contains(flag); };
  require_data_flags(is_given, flags.data.task);
  for (const char* flag : {"label_smoothing", "class_weights"})
    if (is_given(flag)) throw UsageError("--", flag, ": is of training; an evaluation has the plain loss");
  for (const char* flag : {"tokenizer", "vocab_size"})
    if (has_tokenizer && is_given(flag))
      throw UsageError("--", flag, ": ", flags.model, " has a tokenizer of its own; leave it out");
}

// That of the model's run, else the first that trains its head.
Task task_of(const CheckpointConfig& checkpoint, const std::filesystem::path& model) {
  if (const auto run = run_config_of(model)) {
    const std::size_t number = number_of(read_json(*run).value("task", ""), kTaskNames);
    const auto task = static_cast<Task>(number);
    if (number < kTaskNames.size() && traits_of(task).head == checkpoint.head) return task;
  }
  for (const Task task : {Task::kLm, Task::kMlm, Task::kSeq2Seq, Task::kClassification,
                          Task::kTokenClassification, Task::kQuestionAnswering, Task::kEmbedding}) {
    if (traits_of(task).head == checkpoint.head) return task;
  }
  if (checkpoint.head == Head::kPretraining) return Task::kMlm;  // its data has no pairs of sentences
  throw Error(model, " has a ", name_of(checkpoint.head), " head; expected one that a task trains (",
              joined(kTaskNames), ")");
}

std::string text_of(const Tokenizer& tokenizer, TokenIds ids) {
  std::erase_if(ids, [&](TokenId id) { return id < 0 || id >= tokenizer.vocab_size(); });
  return tokenizer.decode(ids);
}

TokenIds kept_ids(const at::Tensor& ids, const at::Tensor& kept) {
  return rows_of(ids.masked_select(kept.to(at::kBool)).unsqueeze(0)).front();
}

// BLEU of greedy decoding; generation_config.json, or the language, only says which token it begins with.
double decode_and_compare(const EvaluateFlags& flags, const CheckpointConfig& checkpoint, Model& model,
                          Batches& batches, const Tokenizer& tokenizer) {
  const GenerationConfig config = read_generation_config(flags.model, checkpoint.json);
  GenerationSettings settings = translation_settings();
  apply_generation_config(settings, config,
                          [](std::string_view field) { return field != "forced_bos_token_id"; });
  settings.options.max_new_tokens = flags.data.target_length();
  GenerationOptions options = translation_options(settings, checkpoint, config);
  const Languages languages = languages_of(tokenizer, flags.data.source_lang, flags.data.target_lang);
  if (languages.target) options.history.forced_bos_token_id = *languages.target;
  std::vector<std::string> written, wanted;
  const std::int64_t count = batches.evaluation_batches(Split::kVal);
  Progress progress(count, "batches decoded");
  for (std::int64_t i = 0; i < count; ++i) {
    const ModelInputs inputs = batches.evaluation(Split::kVal, i).inputs;
    std::vector<TokenIds> prompts;
    for (std::int64_t row = 0; row < inputs.input_ids.size(0); ++row) {
      const at::Tensor ids = inputs.input_ids[row].cpu(), labels = inputs.labels[row].cpu();
      prompts.push_back(kept_ids(
          ids, inputs.attention_mask.defined() ? inputs.attention_mask[row].cpu() : at::ones_like(ids)));
      wanted.push_back(text_of(tokenizer, kept_ids(labels, labels.ne(-100))));
    }
    for (const auto& ids : generate(model, prompts, options).ids) written.push_back(text_of(tokenizer, ids));
    progress.update(i + 1);
  }
  return bleu(written, wanted);
}

at::Tensor first_logits(Model& model, Batches& batches) {
  const at::NoGradGuard no_grad;
  model.eval();
  return model.forward({.input_ids = batches.evaluation(Split::kVal, 0).inputs.input_ids}).logits;
}

// Targets stand at the position that predicts them, labels at their own.
at::Tensor loss_of(const at::Tensor& logits, const ModelInputs& inputs) {
  if (inputs.targets.defined()) return at::cross_entropy_loss(logits.flatten(0, 1), inputs.targets.flatten());
  return at::cross_entropy_loss(logits.slice(1, 0, -1).flatten(0, 1), inputs.labels.slice(1, 1).flatten());
}

// evaluate_split() for a packed decoder. Adds "largest_logit_error": the largest difference of the first
// batch's logits from `exact`, those of the modules, [B, T, V], if they are defined.
SplitEvaluation evaluate_packed(DecodingModel& model, Batches& batches, std::int64_t count, Metric& metric,
                                const at::Tensor& exact, const std::function<void(std::int64_t)>& on_step) {
  const at::NoGradGuard no_grad;
  double sum = 0, targets = 0, largest_error = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const ModelBatch batch = batches.evaluation(Split::kVal, i);
    const at::Tensor& ids = batch.inputs.input_ids;
    const auto session = model.begin(ids.size(0), ids.size(1));
    ModelOutput output;
    output.logits = session->read(rows_of(ids), DecodingSession::Logits::kAll);
    if (i == 0 && exact.defined()) largest_error = (output.logits - exact).abs().max().item<double>();
    on_step(i + 1);
    if (batch.targets == 0) continue;  // it has no loss
    output.loss = loss_of(output.logits, batch.inputs);
    metric.add(batch.inputs, output);
    sum += output.loss.item<double>() * batch.targets;
    targets += batch.targets;
  }
  SplitEvaluation evaluation{.loss = mean_loss(sum, targets)};
  evaluation.scores = metric.take(evaluation.loss);
  if (exact.defined()) evaluation.scores.push_back({"largest_logit_error", largest_error});
  return evaluation;
}

// Evaluates the model with weights packed as --weights says, or its modules. `exact`: first_logits() of the
// modules, with which a packed decoder is compared; undefined: with none.
SplitEvaluation evaluate(const EvaluateFlags& flags, const LoadedModel& loaded, const at::Tensor& exact,
                         Batches& batches, std::unique_ptr<Metric> metric, const c10::Device& device) {
  const bool drawn = batches.evaluation_batches(Split::kVal) == kUnlimitedBatches;
  const std::int64_t count = drawn ? flags.eval_iters : batches.evaluation_batches(Split::kVal);
  Progress progress(count, "batches");
  const auto on_step = [&](std::int64_t done) { progress.update(done); };
  const bool packed = flags.compute.weights != "modules";
  if (packed && loaded.head == Head::kCausalLm) {
    if (flags.data.documents == "pack")
      throw UsageError("--weights, --documents pack: modules alone read packed documents; leave one out");
    return evaluate_packed(*decoding_model(loaded, flags.compute), batches, count, *metric, exact, on_step);
  }
  if (packed && loaded.head == Head::kSeq2SeqLm)
    throw UsageError("--weights ", flags.compute.weights,
                     ": an encoder-decoder that writes text is evaluated by modules alone; leave it out");
  if (packed) make_ready(loaded, flags.compute);
  ModelObjective objective(loaded.model, batches, std::move(metric));
  return evaluate_split(objective, Split::kVal, count, {.dtype = dtype_of(flags.compute), .device = device},
                        on_step);
}

// Vectors and rankings have the figures of their training, whose loss is its own affair.
SplitEvaluation evaluate_texts(const EvaluateFlags& flags, const CheckpointConfig& checkpoint,
                               const LoadedModel& loaded, const TaskData& data, c10::Device device) {
  if (flags.compute.weights != "modules")
    throw UsageError("--weights ", flags.compute.weights, ": the task ", name_of(flags.data.task),
                     " is evaluated by modules alone; leave it out");
  TrainFlags training{.data = flags.data, .embedding = flags.embedding, .compute = flags.compute};
  const BatchPlan plan{.batch_size = flags.batch_size};
  std::optional<EmbeddingTask> embedding;
  if (flags.data.task == Task::kEmbedding) embedding.emplace(training, checkpoint, loaded, device);
  else training.embedding.loss = "mse";  // which takes any labels
  const auto objective =
      embedding ? embedding->objective(data, plan) : ranking_objective(training, loaded, data, plan);
  const std::int64_t count = objective->evaluation_batches(Split::kVal);
  Progress progress(count, "batches");
  return evaluate_split(*objective, Split::kVal, count, {.dtype = dtype_of(flags.compute), .device = device},
                        [&](std::int64_t done) { progress.update(done); });
}

void print(const EvaluateFlags& flags, const SplitEvaluation& evaluation) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!traits_of(flags.data.task).tunes) json["loss"] = evaluation.loss;
  for (const Score& score : evaluation.scores) json[score.name] = score.value;
  if (flags.json) {
    std::cout << json_text(json) << "\n";
    return;
  }
  for (const auto& [name, value] : json.items()) std::cout << name << " " << value.dump() << "\n";
}

}  // namespace

std::vector<TokenIds> rows_of(const at::Tensor& ids) {
  const at::Tensor rows = ids.contiguous();
  const auto* data = rows.const_data_ptr<std::int64_t>();
  std::vector<TokenIds> lists;
  for (std::int64_t row = 0; row < rows.size(0); ++row)
    lists.emplace_back(data + row * rows.size(1), data + (row + 1) * rows.size(1));
  return lists;
}

int run_evaluate(const Arguments& arguments) {
  EvaluateFlags flags;
  if (!read_flags(arguments, flags)) return 0;
  apply_threads(flags.compute);
  if (!flags.suite.files.empty()) {
    evaluate_suite(flags.suite, flags.model, flags.compute, flags.json);
    return 0;
  }
  CheckpointConfig checkpoint = read_checkpoint_config(flags.model);
  if (!flags.given.contains("task")) flags.data.task = task_of(checkpoint, flags.model);
  const Task task = flags.data.task;
  const c10::Device device = device_of(flags.compute, checkpoint);

  if (flags.of_run) flags.data.chat_template.clear();  // the checkpoint has the run's
  const KnownModel known = known_model(checkpoint, task);
  require_effect(flags, known.tokenizer != nullptr);
  if (!flags.given.contains("block_size")) {
    flags.data.block_size = std::min<std::int64_t>(checkpoint.config.max_length(), 512);
    // Of an embedding model max_seq_length takes the tokenizer's place.
    if (known.tokenizer && task != Task::kEmbedding)
      if (const auto limit = known.tokenizer->limits().max_length)
        flags.data.block_size = std::min(flags.data.block_size, static_cast<std::int64_t>(*limit));
  }
  TaskData data = read_task_data(flags.data, checkpoint.config.shape, known, /*evaluates=*/!flags.of_run);
  if (data.problem_type != ProblemType::kByLabels) checkpoint.config.problem_type = data.problem_type;
  const bool packed = packs(checkpoint, flags.compute);
  const auto load = [&](bool stored) {
    return load_model(checkpoint, {.device = device, .head = traits_of(task).head, .stored = stored});
  };
  const LoadedModel loaded = load(packed);
  require_ids_below(data, loaded.model->config().vocab_size);
  if (task == Task::kEmbedding || task == Task::kRanking) {
    print(flags, evaluate_texts(flags, checkpoint, loaded, data, device));
    return 0;
  }
  const auto batches =
      make_batches(flags.data, data, loaded.model->config(), {.batch_size = flags.batch_size},
                   static_cast<std::uint64_t>(flags.compute.seed), device);
  at::Tensor exact;
  if (packed && traits_of(task).head == Head::kCausalLm && !checkpoint.packed_parts())
    exact = first_logits(*load(/*stored=*/false).model, *batches);
  SplitEvaluation evaluation =
      evaluate(flags, loaded, exact, *batches,
               make_metric(task, data.label_names, data.bytes_per_token, data.problem_type), device);
  if (task == Task::kSeq2Seq)
    evaluation.scores.push_back(
        {"bleu", decode_and_compare(flags, checkpoint, *loaded.model, *batches, *data.tokenizer)});
  print(flags, evaluation);
  return 0;
}

}  // namespace zoo
