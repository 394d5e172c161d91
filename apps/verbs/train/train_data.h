#pragma once

#include <memory>
#include <optional>

#include "apps/training/batches/example_batches.h"
#include "apps/verbs/train/train_options.h"
#include "data/examples/sentence_file.h"
#include "data/tokens/token_dataset.h"
#include "tokenizer/chat/chat_format.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// A task's data as ids: a token sequence or examples.
struct TaskData {
  std::shared_ptr<const Tokenizer> tokenizer;  // null for token files without one
  std::optional<TokenDataset> tokens;
  Examples examples;                  // used if there are no tokens
  Splits<SentenceExample> sentences;  // of the tasks embedding and ranking, as texts
  bool has_pairs = false;             // of the task preference: `examples` are chosen, rejected, chosen, …
  std::vector<std::string> label_names;
  LossOptions loss;
  double bytes_per_token = 0;      // of the validation text of the task lm; 0: unknown
  std::optional<ChatFormat> chat;  // for the tasks chat and preference, with the template in use
  std::string source;              // for messages
  std::string sha256;  // fingerprint() of the dataset and its validation set; empty where all is evaluated
};

/// Properties of a checkpoint that the data needs: tokenizer and labels.
struct KnownModel {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<std::string> label_names;
  std::optional<ChatFormat> chat;  // of a model with a tokenizer
};

/// Reads, checks and encodes all data for a model of this shape. With `evaluates` all of it is the validation
/// split. Throws Error naming file and line of invalid data.
TaskData read_task_data(const DataFlags& flags, Shape shape, const KnownModel& known, bool evaluates = false);

/// Throws Error naming the dataset if an id is not in the vocabulary.
void require_ids_below(const TaskData& data, std::int64_t vocab_size);

}  // namespace zoo
