// What each task of tzoo train has of its own: traits, and which flags go with which (train_options.h).
#include <algorithm>

#include "apps/training/retrieval_losses.h"
#include "apps/verbs/train/train_options.h"
#include "data/base/lines.h"
#include "data/tokens/token_dataset.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

const TaskTraits& traits_of(Task task) {
  static const TaskTraits all[] = {
      {Head::kCausalLm, "generate", " --prompt TEXT", nullptr, 0, false},
      {Head::kMaskedLm, "fill-mask", " --text TEXT", nullptr, 0, false},
      {Head::kSeq2SeqLm, "translate", " --text TEXT", nullptr, 0, false},
      {Head::kSeq2SeqLm, "translate", " --text TEXT", nullptr, 0, false},
      {Head::kSequenceClassification, "classify", " --text TEXT", nullptr, 0, false},
      {Head::kTokenClassification, "classify", " --text TEXT", nullptr, 0, false},
      {Head::kQuestionAnswering, "answer", " --question TEXT --context TEXT", nullptr, 0, false},
      {Head::kCausalLm, "chat", "", "a .jsonl file of conversations", 1024, false},
      {Head::kBase, "embed", " --text TEXT --text TEXT --similarity",
       "a .jsonl or .tsv file of anchor and positive", 512, true},
      {Head::kSequenceClassification, "rank", " --query TEXT --documents FILE",
       "a .jsonl or .tsv file of query, document and label", 512, true},
      {Head::kCausalLm, "chat", "", "a .jsonl file of prompts with chosen and rejected answers", 1024, true},
  };
  return all[static_cast<std::size_t>(task)];
}

std::size_t number_of(const std::string& name, const std::vector<std::string>& names) {
  return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
}

void require_data_flags(const std::function<bool(const std::string&)>& is_given, Task task) {
  require_read(is_given, "task", name_of(task),
               {{{"target_size"}, {"seq2seq", "span_corruption"}},
                {{"source_prefix", "source_lang", "target_lang"}, {"seq2seq"}},
                {{"chat_template"}, {"chat", "preference"}},
                {{"documents"}, {"lm", "chat"}},
                {{"labels", "class_weights"}, {"classification", "token_classification"}},
                {{"problem_type"}, {"classification"}},
                {{"mlm_probability", "whole_word"}, {"mlm"}},
                {{"noise_density", "mean_noise_span_length"}, {"span_corruption"}},
                {{"query_prompt_name", "document_prompt_name"}, {"embedding"}}});
}

void require_task_flags(const TrainFlags& flags, const std::function<bool(const std::string&)>& is_chosen) {
  using enum Task;
  const DataFlags& data = flags.data;
  const EmbeddingFlags& embedding = flags.embedding;
  const bool taught = !flags.teacher.empty(), ranks = data.task == kEmbedding || data.task == kRanking;
  require_read(is_chosen, "task", name_of(data.task),
               {{{"depth"}, {"lm"}},
                {{"tokens_per_parameter"}, {"lm", "mlm", "span_corruption"}},
                {{"preference_loss", "beta"}, {"preference"}},
                {{"teacher"}, {"lm", "chat", "embedding"}},
                {{"loss"}, {"embedding", "ranking"}},
                {{"scale", "margin", "symmetric", "matryoshka_dims", "mini_batch_size"}, {"embedding"}}});
  require_data_flags(is_chosen, data.task);
  const auto optimizer = static_cast<std::size_t>(flags.trainer.updater.optimizer.kind);
  require_read(is_chosen, "optimizer", kOptimizerNames[optimizer],
               {{{"beta1", "beta2"}, {"adamw", "lion", "muon"}},
                {{"adam_eps"}, {"adamw", "muon"}},
                {{"momentum"}, {"sgd", "muon"}},
                {{"adjust_lr_fn"}, {"muon"}}});
  const Schedule& schedule = flags.trainer.schedule;
  std::vector<ReadWith> schedules{{{"min_lr"}, {"linear", "cosine", "inverse_sqrt", "wsd", "trapezoid"}},
                                  {{"lr_cycles"}, {"linear", "cosine"}},
                                  {{"cooldown_iters"}, {"wsd", "trapezoid"}}};
  if (schedule.weight_decay == ScheduleKind::kConstant)  // another one ends at lr_decay_iters, too
    schedules.push_back({{"lr_decay_iters"}, {"linear", "cosine", "wsd", "trapezoid"}});
  require_read(is_chosen, "lr_schedule", kScheduleNames[static_cast<std::size_t>(schedule.kind)], schedules);
  if (ranks && embedding.loss) {
    const bool ranking = data.task == kRanking;
    const std::vector<std::string>& names = ranking ? kRankingLossNames : kEmbeddingLossNames;
    if (number_of(*embedding.loss, names) == names.size())
      throw UsageError("--loss ", *embedding.loss, ": of the task ", ranking ? "embedding" : "ranking", "; ",
                       name_of(data.task), " has ", joined(names));
  }
  const bool teaches_tokens = taught && data.task != kEmbedding;
  if ((flags.distillation.top_k > 0 || !flags.teacher_file.empty()) && !teaches_tokens)
    throw UsageError("--teacher_top_k, --teacher_file: only with --teacher for lm and chat");
  if (!flags.teacher_file.empty() && flags.distillation.top_k == 0)
    throw UsageError("--teacher_file: needs --teacher_top_k; all tokens would fill the disk");
  if (!flags.teacher_file.empty() && data.task == kLm && data.documents != "pack")
    throw UsageError("--teacher_file: for --task lm only with --documents pack, whose texts come again");
  if (flags.distillation != DistillationOptions() && !teaches_tokens)
    throw UsageError("--distillation, its weight and temperature: only with --teacher for lm and chat");
  if (taught && (flags.disagreement != Disagreement::kNone || embedding.loss || embedding.scale ||
                 embedding.margin || embedding.symmetric || !embedding.matryoshka_dims.empty()))
    throw UsageError(
        "--teacher: not with --disagreement, --loss, --scale, --margin, --symmetric, --matryoshka_dims");
  if (is_token_dataset(data.dataset) &&
      ((data.val_dataset && *data.val_dataset != data.dataset) || !data.columns.empty() ||
       (data.tokenizer && flags.init_from == "scratch" &&  // a recipe's may be of the files' kind
        (!has_tokenizer(data.dataset) || load_tokenizer(data.dataset)->kind() != *data.tokenizer))))
    throw UsageError("--val_dataset, --columns, --tokenizer: not with token files, as in ", data.dataset);
  if (flags.tokens_per_parameter && is_chosen("max_iters"))
    throw UsageError("--tokens_per_parameter sets --max_iters; leave out one of them");
  for (const char* flag : {"lora_alpha", "lora_rslora", "lora_dora", "lora_targets"})
    if (flags.lora.rank == 0 && is_chosen(flag)) throw UsageError("--", flag, ": only with --lora_rank");
  if (flags.freezes_packed()) {
    const std::string given = "--weights " + flags.weights;
    if (flags.lora.rank == 0) throw UsageError(given, ": only with --lora_rank, which trains none of them");
    if (flags.init_from == "scratch")
      throw UsageError(given, ": needs a model that exists; name it with --init_from DIR");
    if (!flags.adapter.empty())
      throw UsageError(given, ": not with --adapter, since the new adapter would belong to neither model");
    if (!traits_of(data.task).writes())
      throw UsageError(given,
                       ": for models that write (lm, chat, preference, seq2seq, span_corruption), not "
                       "for the task ",
                       name_of(data.task));
  }
  if (!flags.adapter.empty() && flags.init_from == "scratch")
    throw UsageError("--adapter: needs the model that it adapts; name it with --init_from DIR");
  if (traits_of(data.task).tunes && flags.init_from == "scratch")
    throw UsageError("--task ", name_of(data.task),
                     " tunes a model that exists; name it with --init_from DIR");
  const bool prefers = data.task == kPreference;
  if (prefers && flags.preference.loss == PreferenceLoss::kDpo && data.label_smoothing >= 0.5)
    throw UsageError("--label_smoothing ", data.label_smoothing,
                     ": --preference_loss dpo takes less than 0.5");
  if (prefers && flags.preference.loss != PreferenceLoss::kDpo && data.label_smoothing > 0)
    throw UsageError("--label_smoothing: only for --preference_loss dpo");
  if (prefers && flags.preference.loss == PreferenceLoss::kKto && flags.batch_size == 1)
    throw UsageError("--batch_size 1: --preference_loss kto compares the answers of a batch of at least 2");
  if ((ranks || data.task == kQuestionAnswering) && data.label_smoothing > 0)
    throw UsageError("--label_smoothing: not for the task ", name_of(data.task));
  if (is_chosen("disagreement_weight") && flags.disagreement == Disagreement::kNone)
    throw UsageError("--disagreement_weight: only with --disagreement");
  if (flags.activation_checkpointing && flags.disagreement != Disagreement::kNone)
    throw UsageError("--activation_checkpointing: not with --disagreement, which keeps what heads compute");
  if (flags.shards() == Shard::kWeights) {
    const char* const unfit = flags.disagreement != Disagreement::kNone ? "disagreement"
                              : flags.lora.rank > 0                     ? "lora_rank"
                              : !flags.teacher.empty()                  ? "teacher"
                              : flags.sample_interval > 0               ? "sample_interval"
                              : traits_of(data.task).tunes              ? "task"
                                                                        : nullptr;
    if (unfit != nullptr)
      throw UsageError("--", unfit, ": not with --shard weights; --shard gradients goes with it");
  }
  if (is_chosen("loss_scale") && flags.compute.dtype != "float16")
    throw UsageError("--loss_scale: only with --dtype float16");
  if ((ranks || prefers) && flags.disagreement != Disagreement::kNone)
    throw UsageError("--disagreement: not for the task ", name_of(data.task));
}

}  // namespace zoo
