#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/training/batches/example_batches.h"
#include "apps/training/metrics/task_metrics.h"
#include "apps/verbs/train/train_options.h"
#include "data/base/ending.h"
#include "data/base/error.h"
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
  ProblemType problem_type = ProblemType::kByLabels;  // of the task classification
  LossOptions loss;
  double bytes_per_token = 0;      // of the validation text of the task lm; 0: unknown
  std::optional<ChatFormat> chat;  // for the tasks chat and preference, with the template in use
  std::string source, val_source;  // for messages
  std::string sha256;  // fingerprint() of the dataset and its validation set; empty where all is evaluated
};

/// Properties of a checkpoint that the data needs: tokenizer and labels.
struct KnownModel {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<std::string> label_names;  // as many as classes; LABEL_0, LABEL_1, … of a head without names
  ProblemType problem_type = ProblemType::kByLabels;
  std::optional<ChatFormat> chat;  // of a model with a tokenizer
  std::string mixture_text;        // a new tokenizer of a mixture of datasets learns from it
};

/// Reads, checks and encodes all data for a model of this shape. With `evaluates` all of it is the validation
/// split. Throws Error naming file and line of invalid data.
TaskData read_task_data(const DataFlags& flags, Shape shape, const KnownModel& known, bool evaluates = false);

/// A dataset of 'a.jsonl:0.7,b.txt:0.3' and the weight of its share.
struct MixturePart {
  std::string dataset;
  double weight = 1;
};

/// The parts of a mixture; none for one dataset. Throws UsageError for a weight missing or not above 0.
std::vector<MixturePart> mixture_of(const std::string& dataset);

/// The same as read_task_data() of the parts, for tasks that read token sequences: one tokenizer for all.
TaskData read_mixture(const std::vector<MixturePart>& parts, const DataFlags& flags, Shape shape,
                      const KnownModel& known, bool evaluates);

/// Throws Error naming the dataset if an id is not in the vocabulary.
void require_ids_below(const TaskData& data, std::int64_t vocab_size);

/// Special tokens that a model's texts need, and their positions.
enum class TaskTextStyle {
  kPlain,           ///< none: a language model
  kPadded,          ///< <pad>: a decoder for classification
  kEncoder,         ///< [CLS] … [SEP], and [MASK]
  kEncoderDecoder,  ///< … </s>, with <extra_id_0>, … for span corruption
};

struct TokenizerRequest {
  std::string choice;  // --tokenizer
  std::int64_t vocab_size = 2000;
  TaskTextStyle style = TaskTextStyle::kPlain;
  std::int64_t sentinels = 0;
};

/// The tokenizer of `choice` (see choose_tokenizer), with the style's special tokens: a tokenizer trained on
/// `text` gets them, a directory must have them. Throws Error naming a missing token.
std::unique_ptr<Tokenizer> choose_task_tokenizer(const TokenizerRequest& request, std::string_view text);

/// Throws Error naming --tokenizer and a special token of the style that the tokenizer lacks.
void require_special_tokens(const Tokenizer& tokenizer, TaskTextStyle style);

/// The ids of the tokenizer's <extra_id_0>, <extra_id_1>, …
TokenIds sentinels_of(const Tokenizer& tokenizer);

/// The chat format of the known model, else of --tokenizer, with the template of --chat_template, else its
/// own, else the plain one. Notes what replaces its templates; throws UsageError if there is none.
ChatFormat choose_chat_format(const DataFlags& flags, const std::optional<ChatFormat>& known);

/// By id, whether a token begins a word; empty if tokens do not show it, so that each is a word.
std::vector<bool> word_beginnings(const Tokenizer& tokenizer);

/// A text, mapped or generated, and a name, which decides how to parse the text.
struct Source {
  std::shared_ptr<const void> owner;
  std::string_view text;
  std::string name;
  bool is_table() const { return zoo::is_table(name); }
};

/// Built-in datasets for --dataset: corpora and toy sets.
std::vector<std::string> dataset_names();

/// Reads --dataset: a file, a corpus or a generated toy set. Throws Error naming it.
Source read_source(const std::string& dataset, Task task);

/// What validates a training on --dataset: --val_dataset, else the split of that name beside the directory's
/// others; none: a part of --dataset.
std::optional<std::string> validation_of(const DataFlags& flags);
/// What an evaluation of --dataset reads: of a directory with splits the validation set, else the test set.
std::string evaluated_part(const std::string& dataset);

/// True if the label of a .jsonl file's first object is a list.
bool begins_with_list(const Source& source, const FileColumns& names);

/// SHA-256 of up to 16 MiB; of more, of its size and 16 pieces of 1 MiB between its start and its end.
std::string fingerprint(std::string_view bytes);
std::string fingerprint_of_file(const std::filesystem::path& path);

/// The ids of a larger text would take four times its size in memory, or more.
inline constexpr std::size_t kLargeText = 64'000'000;

/// Ids of a text, of a larger one on disk while the program runs.
TokenFile encode_part(const Tokenizer& tokenizer, const TextEncoder& encoder, std::string_view text,
                      const std::string& name);

/// A part of a source that is encoded where blocks of it are drawn (TextBlocks), which keep the owners of
/// what `encoder` and `check` refer to.
TokenFile text_blocks(const Source& source, std::string_view part, TextEncoder encoder,
                      std::vector<std::shared_ptr<const void>> owners,
                      std::function<void(std::string_view)> check = nullptr);

/// The same of a plain text. Errors name the file and where the part begins.
TokenFile text_blocks(const Source& source, std::string_view part,
                      const std::shared_ptr<const Tokenizer>& tokenizer);

/// Whether the parts of a text are so short that one costs little beside a row.
bool divides_often(std::string_view text, const TextEncoder& encoder);

/// Encodes a file's text; an error names the file.
TokenFile encode_file(const Tokenizer& tokenizer, std::string_view text, const std::string& name);

/// The same of both splits.
TokenDataset tokenize_file(const Tokenizer& tokenizer, std::string_view text, const std::string& name);

/// A directory of token files as data. Throws Error naming what the task or the known tokenizer does not fit.
TaskData read_token_folder(const DataFlags& flags, const KnownModel& known, TaskTextStyle style,
                           bool evaluates);

/// Parses the source and its validation file; without one, some of the source's examples are held out. With
/// `evaluates` all examples are validation.
template <class V, class Parse>
Splits<V> divide(const Source& source, const std::optional<Source>& validation, bool evaluates, Parse parse) {
  Splits<V> parts{parse(source), {}};
  if (evaluates) {
    parts.val = parts.train;
  } else if (validation) {
    parts.val = parse(*validation);
  } else {
    if (parts.train.size() < 2)
      throw Error(source.name, ": one example is too few to train and to validate on");
    // Every tenth example, or the last of fewer than ten: a file may be sorted by label.
    std::vector<V> kept;
    for (std::size_t i = 0; i < parts.train.size(); ++i) {
      const bool last_of_few = parts.train.size() < 10 && i + 1 == parts.train.size();
      (i % 10 == 9 || last_of_few ? parts.val : kept).push_back(std::move(parts.train[i]));
    }
    parts.train = std::move(kept);
  }
  return parts;
}

}  // namespace zoo
