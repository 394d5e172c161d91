#include "apps/verbs/train/train_batches.h"

#include <algorithm>

#include "apps/training/batches/block_batches.h"
#include "apps/verbs/train/task_tokenizer.h"
#include "data/base/error.h"

namespace zoo {
namespace {

MaskingOptions masking_of(const DataFlags& flags, const Tokenizer& tokenizer) {
  MaskingOptions masking = flags.masking;
  masking.mask_id = *tokenizer.special_id(SpecialToken::mask);
  masking.vocab_size = tokenizer.vocab_size();
  return masking;
}

}  // namespace

std::unique_ptr<Batches> make_batches(const DataFlags& flags, TaskData& data, const TransformerConfig& config,
                                      const BatchPlan& plan, std::uint64_t seed, c10::Device device) {
  const Task task = flags.task;
  if (task == Task::kEmbedding || task == Task::kRanking)
    throw Error("the task ", name_of(task),
                " is measured while it is trained, by tzoo train alone; see metrics.jsonl");
  if (task == Task::kLm)
    return std::make_unique<LanguageModelBatches>(*data.tokens, flags.block_size, plan, seed, device);
  const Tokenizer& tokenizer = *data.tokenizer;
  if (task == Task::kSpanCorruption) {
    SpanCorruptionOptions spans = flags.spans;
    spans.sentinels = sentinels_of(tokenizer);
    spans.eos_id = *tokenizer.eos_id();
    return std::make_unique<SpanCorruptionBatches>(*data.tokens, flags.block_size, spans, plan, seed, device);
  }
  if (data.tokens) {
    return std::make_unique<MaskedBlockBatches>(
        *data.tokens,
        MaskedBlockBatches::Options{
            .block_size = flags.block_size,
            .ends = {tokenizer.special_id(SpecialToken::cls), tokenizer.special_id(SpecialToken::sep)},
            .masking = masking_of(flags, tokenizer),
            .begins_word = word_beginnings(tokenizer)},
        plan, seed, device);
  }
  CollateOptions options{.pad_id = std::max<std::int64_t>(0, config.pad_token_id),
                         .has_segments = config.type_vocab_size > 0};
  if (task == Task::kTokenClassification || task == Task::kChat) options.labels = LabelShape::kTokens;
  if (task == Task::kSeq2Seq) options.labels = LabelShape::kSequence;
  if (task == Task::kSeq2Seq && config.shifted_labels == ShiftedLabels::kLastLabel)
    throw Error("the labels of a model of the mbart family end in the id of a language, which the task ",
                name_of(task), " does not write");
  if (task == Task::kMlm) {
    options.labels = LabelShape::kMasked;
    options.masking = masking_of(flags, tokenizer);
  }
  return std::make_unique<ExampleBatches>(std::move(data.examples), options, plan, seed, device);
}

}  // namespace zoo
