#pragma once

#include "apps/training/batches/example_batches.h"
#include "data/examples/question_file.h"
#include "data/examples/record_file.h"
#include "data/examples/tagged_file.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

/// How texts become examples. What is longer than max_length tokens is cut, and counted.
struct EncodeLimits {
  std::size_t max_length = 0;         // special tokens included
  std::size_t max_target_length = 0;  // of what an encoder-decoder shall write
  std::int64_t cut = 0;               // out: how many examples were cut
};

// All of them throw Error naming `name` and the line for a text that the tokenizer cannot express.

/// Texts alone, with the word of each token, to hide tokens of. fields: text.
std::vector<Example> encode_texts(const std::vector<Record>& records, const Tokenizer& tokenizer,
                                  const std::string& name, EncodeLimits& limits);

/// Pairs: source as inputs, target as labels, which ends in eos_id. fields: source, target. `prefix` is put
/// before each source.
std::vector<Example> encode_pairs(const std::vector<Record>& records, const Tokenizer& tokenizer,
                                  TokenId eos_id, const std::string& prefix, const std::string& name,
                                  EncodeLimits& limits);

/// Classes of texts, or of pairs of texts. fields: text, label, text_pair. The label is its number in
/// `labels`; throws Error naming the line for one that is not there.
std::vector<Example> encode_classes(const std::vector<Record>& records, const Tokenizer& tokenizer,
                                    const std::vector<std::string>& labels, const std::string& name,
                                    EncodeLimits& limits);

/// Words and their labels. The first token of each word bears its label, the others -100.
std::vector<Example> encode_tagged(const std::vector<TaggedSentence>& sentences, const Tokenizer& tokenizer,
                                   const std::vector<std::string>& labels, const std::string& name,
                                   EncodeLimits& limits);

/// Question and context, labelled with the first and last token of the answer; with 0 and 0, the first token,
/// where there is none or it was cut off.
std::vector<Example> encode_questions(const std::vector<Question>& questions, const Tokenizer& tokenizer,
                                      const std::string& name, EncodeLimits& limits);

/// The labels of the records' field, sorted.
std::vector<std::string> labels_of(const std::vector<Record>& records, std::size_t field);
std::vector<std::string> labels_of(const std::vector<TaggedSentence>& sentences);

/// Throws Error naming the first label that none of the examples bears.
void require_all_labels(const std::vector<Example>& examples, const std::vector<std::string>& labels,
                        const std::string& name);

/// Weights by which rare classes count as much as frequent ones: examples / (classes * examples of the
/// class), as scikit-learn's "balanced".
std::vector<double> balanced_weights(const std::vector<Example>& examples, std::size_t classes);

}  // namespace zoo
