#include <algorithm>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>

#include "apps/command/flags.h"
#include "apps/command/progress.h"
#include "apps/command/tokenizer_choice.h"
#include "apps/training/batches/document_encoder.h"
#include "apps/training/stop_signal.h"
#include "apps/verbs/verbs.h"
#include "data/base/atomic_file.h"
#include "data/base/ending.h"
#include "data/corpora/corpora.h"
#include "data/corpora/text_file.h"
#include "tokenizer/learning/subword_trainers.h"
#include "tokenizer/pipeline/char_and_byte_tokenizers.h"
#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

struct TrainOptions {
  std::string kind, input, model_type = "unigram", pattern = "gpt2";
  std::int64_t vocab_size = 8000, min_frequency = 2, limit_alphabet = 1000;
  std::vector<std::string> special_tokens;  // in addition to those of the tokenizer kind
  bool lowercase = true, overwrite = false;
  fs::path out_dir;
};

/// A trained vocabulary that is not yet saved.
struct Learnt {
  std::int64_t vocab_size;
  std::function<void(const fs::path& directory)> save;
};

// One progress bar per counted stage.
TrainingProgress progress_bar() {
  struct Bar {
    std::string unit;
    std::optional<Progress> progress;
  };
  return [bar = std::make_shared<Bar>()](std::string_view unit, std::int64_t done, std::int64_t total) {
    if (bar->unit != unit) {
      bar->progress.emplace(total, bar->unit = unit);
      bar->progress->update(0);
    }
    bar->progress->update(done);
  };
}

Learnt of(std::shared_ptr<const Tokenizer> tokenizer) {
  return {tokenizer->vocab_size(), [tokenizer](const fs::path& directory) { tokenizer->save(directory); }};
}

Learnt learn_byte_bpe(std::string_view text, const TrainOptions& options) {
  BpeTrainerOptions learning{.vocab_size = options.vocab_size,
                             .min_frequency = options.min_frequency,
                             .pattern = *split_pattern_named(options.pattern),
                             .on_progress = progress_bar()};
  std::ranges::copy(options.special_tokens, std::back_inserter(learning.special_tokens));
  const LearntMerges learnt = train_bpe(text, learning);
  learning.on_progress = nullptr;
  return {static_cast<std::int64_t>(learnt.tokens.size()),
          [=](const fs::path& directory) { save_bpe(learnt, learning, directory); }};
}

Learnt learn_wordpiece(std::string_view text, const TrainOptions& options) {
  WordPieceTrainerOptions learning{.vocab_size = options.vocab_size,
                                   .min_frequency = options.min_frequency,
                                   .limit_alphabet = options.limit_alphabet,
                                   .normalizer = {.lowercase = options.lowercase},
                                   .on_progress = progress_bar()};
  std::ranges::copy(options.special_tokens, std::back_inserter(learning.special_tokens));
  const std::vector<std::string> tokens = train_wordpiece(text, learning);
  learning.on_progress = nullptr;
  return {static_cast<std::int64_t>(tokens.size()),
          [=](const fs::path& directory) { save_wordpiece(tokens, learning, directory); }};
}

Learnt learn_sentencepiece(std::string_view text, const TrainOptions& options) {
  SentencePieceOptions learning;
  learning.vocab_size = options.vocab_size;
  learning.model =
      options.model_type == "bpe" ? SentencePieceOptions::Model::bpe : SentencePieceOptions::Model::unigram;
  return of(std::make_shared<SentencePieceTokenizer>(SentencePieceTokenizer::train(text, learning)));
}

Learnt learn(const TrainOptions& options) {
  if (options.kind == "byte") return of(std::make_shared<ByteTokenizer>());
  const fs::path path = resolve_dataset(options.input);
  const TextFile file(path);
  std::string documents;
  if (is_table(path))
    documents = DocumentEncoder::sample(file.text(), path.string(), {.renames = false}, file.text().size());
  const std::string_view text = documents.empty() ? file.text() : documents;
  if (options.kind == "char") return of(std::make_shared<CharTokenizer>(CharTokenizer::train(text)));
  if (options.kind == "byte_bpe") return learn_byte_bpe(text, options);
  if (options.kind == "wordpiece") return learn_wordpiece(text, options);
  return learn_sentencepiece(text, options);
}

}  // namespace

int train_tokenizer(const Arguments& arguments) {
  TrainOptions options;
  Flags flags(arguments.command,
              "Trains a tokenizer on a text and saves it in files that Hugging Face reads too.");
  flags.group("Text");
  flags.add("input", options.input,
            "text file, .jsonl or .parquet file with a 'text' in each line, or name of a corpus from 'tzoo "
            "data list'",
            {.placeholder = "FILE|CORPUS", .suggestions = corpus_names()});
  flags.add("out_dir", options.out_dir, "directory for the tokenizer's files",
            {.placeholder = "DIR", .required = true});
  flags.add("overwrite", options.overwrite, "replace a tokenizer that out_dir already holds");
  flags.group("Vocabulary");
  flags.add("kind", options.kind, "kind of tokenizer; byte needs no text",
            {.choices = kTokenizerKinds, .required = true});
  flags.add("vocab_size", options.vocab_size,
            "vocabulary size, special tokens included; not for char and byte", at_least(1));
  flags.choice("model_type", options.model_type, {"unigram", "bpe"}, "sentencepiece: training algorithm");
  flags.add("min_frequency", options.min_frequency,
            "byte_bpe and wordpiece: how often a pair must occur to become a token", at_least(0));
  flags.add("special_tokens", options.special_tokens,
            "byte_bpe and wordpiece: a further special token; byte_bpe always has <|endoftext|>, wordpiece "
            "[PAD] [UNK] [CLS] [SEP] [MASK]",
            {.placeholder = "TOKEN"});
  flags.choice("pattern", options.pattern, {"gpt2", "cl100k", "qwen2", "o200k"},
               "byte_bpe: rule that splits a text into words, named after the tokenizer that uses it; cl100k "
               "is also Llama 3's");
  flags.add("lowercase", options.lowercase, "wordpiece: convert to lower case and remove accents");
  flags.add("limit_alphabet", options.limit_alphabet,
            "wordpiece: keep at most this many different characters, the most frequent ones", at_least(1));
  flags.example("tzoo tokenizer train --kind byte_bpe --input kjv --vocab_size 4000 --out_dir kjv-4000");
  if (!flags.parse(arguments)) return 0;
  require_read([&](const std::string& flag) { return flags.given(flag); }, "kind", options.kind,
               {{{"vocab_size"}, {"byte_bpe", "wordpiece", "sentencepiece"}},
                {{"model_type"}, {"sentencepiece"}},
                {{"min_frequency", "special_tokens"}, {"byte_bpe", "wordpiece"}},
                {{"pattern"}, {"byte_bpe"}},
                {{"lowercase", "limit_alphabet"}, {"wordpiece"}}});
  if (options.input.empty() && options.kind != "byte")
    throw UsageError("missing flag '--input': the text to train on");
  if (std::ranges::count(options.special_tokens, "") > 0)
    throw UsageError("--special_tokens: expected a token, got an empty text");
  if (!options.overwrite && has_tokenizer(options.out_dir))
    throw Error("--out_dir: ", options.out_dir,
                " already holds a tokenizer; choose another directory, or replace it with ", "--overwrite");
  require_same_kind(options.out_dir, options.kind);

  const Learnt learnt = learn(options);
  make_directories(options.out_dir);
  {
    // Finishes writing: the files must not be of two vocabularies.
    const StopSignal signals("saving the tokenizer's files in " + options.out_dir.string() +
                             " before the end");
    learnt.save(options.out_dir);
  }
  std::cout << options.kind << " tokenizer of " << learnt.vocab_size << " tokens in "
            << options.out_dir.string() << "\n";
  std::cerr << smaller_vocabulary(options.kind, options.vocab_size, learnt.vocab_size);
  return StopSignal::received() == 0 ? 0 : 128 + StopSignal::received();
}

}  // namespace zoo
