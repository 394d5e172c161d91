// What each task of tzoo train has of its own: traits, and the flags that it reads (train_options.h).
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

void require_task_flags(const TrainFlags& flags) {
  struct TaskFlag {
    const char* name;
    bool is_set;
    std::vector<Task> tasks;
  };
  const auto contains = [](const std::vector<Task>& tasks, Task task) {
    return std::ranges::find(tasks, task) != tasks.end();
  };
  const DataFlags& data = flags.data;
  const EmbeddingFlags& embedding = flags.embedding;
  const bool taught = !flags.teacher.empty();
  const std::vector<Task> classifies{Task::kClassification, Task::kTokenClassification};
  const std::vector<Task> embeds{Task::kEmbedding}, ranks{Task::kEmbedding, Task::kRanking};
  const TaskFlag all[] = {
      {"target_size", data.target_size.has_value(), {Task::kSeq2Seq, Task::kSpanCorruption}},
      {"source_prefix", !data.source_prefix.empty(), {Task::kSeq2Seq}},
      {"source_lang", !data.source_lang.empty(), {Task::kSeq2Seq}},
      {"target_lang", !data.target_lang.empty(), {Task::kSeq2Seq}},
      {"chat_template", !data.chat_template.empty(), {Task::kChat, Task::kPreference}},
      {"documents", data.documents != "stream", {Task::kLm, Task::kChat}},
      {"preference_loss", flags.preference.loss != PreferenceLoss::kDpo, {Task::kPreference}},
      {"beta", flags.preference.beta != PreferenceLossOptions().beta, {Task::kPreference}},
      {"teacher", taught, {Task::kLm, Task::kChat, Task::kEmbedding}},
      {"labels", !data.labels.empty(), classifies},
      {"class_weights", data.class_weights != "none", classifies},
      {"mlm_probability", data.masking.probability != MaskingOptions().probability, {Task::kMlm}},
      {"whole_word", data.masking.whole_words, {Task::kMlm}},
      {"noise_density",
       data.spans.noise_density != SpanCorruptionOptions().noise_density,
       {Task::kSpanCorruption}},
      {"mean_noise_span_length",
       data.spans.mean_span_length != SpanCorruptionOptions().mean_span_length,
       {Task::kSpanCorruption}},
      {"loss", embedding.loss.has_value(), ranks},
      {"scale", embedding.scale.has_value(), embeds},
      {"symmetric", embedding.symmetric, embeds},
      {"matryoshka_dims", !embedding.matryoshka_dims.empty(), embeds},
      {"mini_batch_size", embedding.mini_batch_size.has_value(), embeds},
      {"query_prompt_name", embedding.query_prompt_name.has_value(), embeds},
      {"document_prompt_name", embedding.document_prompt_name.has_value(), embeds}};
  if (const bool ranking = data.task == Task::kRanking; embedding.loss) {
    const std::vector<std::string>& names = ranking ? kRankingLossNames : kEmbeddingLossNames;
    if (contains(ranks, data.task) && number_of(*embedding.loss, names) == names.size())
      throw UsageError("--loss ", *embedding.loss, ": of the task ", ranking ? "embedding" : "ranking", "; ",
                       name_of(data.task), " has ", joined(names));
  }
  for (const auto& [name, is_set, tasks] : all) {
    if (!is_set || contains(tasks, data.task)) continue;
    std::vector<std::string> names;
    for (const Task task : tasks) names.push_back(name_of(task));
    throw UsageError("--", name, ": only for the task ", joined(names, " or "), ", not ", name_of(data.task));
  }
  if (flags.distillation != DistillationOptions() && (!taught || data.task == Task::kEmbedding))
    throw UsageError("--distillation, its weight and temperature: only with --teacher for lm and chat");
  if (taught && (flags.disagreement != Disagreement::kNone || embedding.loss || embedding.scale ||
                 embedding.symmetric || !embedding.matryoshka_dims.empty()))
    throw UsageError("--teacher: not with --disagreement, --loss, --scale, --symmetric, --matryoshka_dims");
  if (is_token_dataset(data.dataset) &&
      ((data.val_dataset && *data.val_dataset != data.dataset) || !data.columns.empty() ||
       (data.tokenizer && flags.init_from == "scratch" &&  // a recipe's may be of the files' kind
        (!has_tokenizer(data.dataset) || load_tokenizer(data.dataset)->kind() != *data.tokenizer))))
    throw UsageError("--val_dataset, --columns, --tokenizer: not with token files, as in ", data.dataset);
  if (flags.lora.rank == 0 && (flags.lora.alpha != TrainFlags().lora.alpha || !flags.lora.targets.empty()))
    throw UsageError("--lora_alpha, --lora_targets: only with --lora_rank");
  if (!flags.adapter.empty() && flags.init_from == "scratch")
    throw UsageError("--adapter: needs the model that it adapts; name it with --init_from DIR");
  if (traits_of(data.task).tunes && flags.init_from == "scratch")
    throw UsageError("--task ", name_of(data.task),
                     " tunes a model that exists; name it with --init_from DIR");
  const bool prefers = data.task == Task::kPreference;
  if (prefers && flags.preference.loss == PreferenceLoss::kDpo && data.label_smoothing >= 0.5)
    throw UsageError("--label_smoothing ", data.label_smoothing,
                     ": --preference_loss dpo takes less than 0.5");
  if (prefers && flags.preference.loss != PreferenceLoss::kDpo && data.label_smoothing > 0)
    throw UsageError("--label_smoothing: only for --preference_loss dpo");
  if (prefers && flags.preference.loss == PreferenceLoss::kKto && flags.batch_size == 1)
    throw UsageError("--batch_size 1: --preference_loss kto compares the answers of a batch of at least 2");
  if (data.task == Task::kQuestionAnswering && data.label_smoothing > 0)
    throw UsageError("--label_smoothing: not for the task ", name_of(data.task));
  if (!contains(ranks, data.task) && !prefers) return;
  for (const auto& [name, is_set] : {std::pair("label_smoothing", data.label_smoothing > 0 && !prefers),
                                     std::pair("disagreement", flags.disagreement != Disagreement::kNone)})
    if (is_set) throw UsageError("--", name, ": not for the task ", name_of(data.task));
}

}  // namespace zoo
