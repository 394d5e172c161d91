#pragma once

#include <span>

#include "apps/training/batches/example_batches.h"
#include "data/base/error.h"
#include "data/examples/question_file.h"
#include "data/examples/record_file.h"
#include "data/examples/tagged_file.h"
#include "models/layers/transformer_config.h"
#include "tokenizer/tokenizer.h"

namespace zoo {

class ChatFormat;
struct ConversationRecord;
struct Languages;
struct Preference;

/// Limits for encoding texts as examples. Examples longer than max_length tokens are cut and counted.
struct EncodeLimits {
  std::size_t max_length = 0;         // including special tokens
  std::size_t max_target_length = 0;  // for the target of an encoder-decoder
  std::int64_t cut = 0;               // output: number of examples cut
  // Outputs, of conversations: without an answer within the limit; with tools or calls that the template does
  // not write; without a special token at the end of an answer; pairs of answers that are the same.
  std::int64_t left_out = 0, without_tools = 0, endless = 0, equal = 0;
  std::int64_t unusable = 0;  // that the template refuses, or whose answers cannot be told
  std::string fault;          // of the last of them, with its file and line
};

/// Runs `action`; prefixes the message of an Error with the file and line.
template <class Action> auto at_line(const std::string& name, std::int64_t line, Action action) {
  try {
    return action();
  } catch (const Error& error) {
    throw Error(name, ", line ", line, ": ", error.what());
  }
}

/// A text, or a pair of texts; of more than limits.max_length tokens the ones that are left.
Encoding encode_within(EncodeLimits& limits, const Tokenizer& tokenizer, const std::string& text,
                       const std::string& pair = "", EncodeOptions options = {});

// All throw Error naming `name` and the line if the tokenizer cannot encode a text.

/// Texts with the word index of each token, for masking. fields: text.
std::vector<Example> encode_texts(const std::vector<Record>& records, const Tokenizer& tokenizer,
                                  const std::string& name, EncodeLimits& limits);

/// Pairs: source as inputs, target as labels with eos_id at the end. fields: source, target. `prefix` goes
/// before each source; `languages` replace those that the tokenizer puts beside texts.
std::vector<Example> encode_pairs(const std::vector<Record>& records, const Tokenizer& tokenizer,
                                  TokenId eos_id, const std::string& prefix, const Languages& languages,
                                  const std::string& name, EncodeLimits& limits);

/// The token that the tokenizer puts before a text, as Llama's and Gemma's do.
std::optional<TokenId> begin_of_documents(const Tokenizer& tokenizer);

/// Texts as documents, one after another: begin_of_documents(), the ids of each, then eos_id. fields: text.
TokenIds encode_documents(std::span<const Record> records, const Tokenizer& tokenizer, TokenId eos_id,
                          const std::string& name);

/// Texts or text pairs with the labels of a sequence classifier. fields: text, label, text_pair. A label, or
/// each of Record::list (multi-label), becomes its index in `labels`; the label of a regression is a number,
/// Example::score. Throws Error naming the line of an unknown label, and of one that is there twice.
std::vector<Example> encode_classes(const std::vector<Record>& records, const Tokenizer& tokenizer,
                                    ProblemType problem, const std::vector<std::string>& labels,
                                    const std::string& name, EncodeLimits& limits);

/// Sorted labels: of records of encode_classes(), with `lists` each of theirs.
std::vector<std::string> labels_of(const std::vector<Record>& records, bool lists);
std::vector<std::string> labels_of(const std::vector<TaggedSentence>& sentences);

/// The labels of a classification: `given` by the user; else the head's `own`; else those `found` in the
/// data, which a head with plain names ("LABEL_0") learns too, if they are no numbers of its classes and it
/// is not only measured. Throws UnfitField for another number of labels than a measured head has, Error
/// naming the data for less than two.
std::vector<std::string> choose_labels(const std::vector<std::string>& found,
                                       const std::vector<std::string>& given,
                                       const std::vector<std::string>& own, bool measures,
                                       const std::string& name);

/// Throws Error naming the first label that no example has.
void require_all_labels(const std::vector<Example>& examples, const std::vector<std::string>& labels,
                        const std::string& name);

/// Class weights that balance rare and frequent classes: examples / (classes * examples of the class), as
/// scikit-learn's "balanced".
std::vector<double> balanced_weights(const std::vector<Example>& examples, std::size_t classes);

/// Words and their labels. The first token of each word gets its label, the other tokens -100.
std::vector<Example> encode_tagged(const std::vector<TaggedSentence>& sentences, const Tokenizer& tokenizer,
                                   const std::vector<std::string>& labels, const std::string& name,
                                   EncodeLimits& limits);

/// Question and context, labelled with the first and last token of the answer; 0 and 0 (the first token) if
/// there is no answer or it was cut off.
std::vector<Example> encode_questions(const std::vector<Question>& questions, const Tokenizer& tokenizer,
                                      const std::string& name, EncodeLimits& limits);

/// Conversations: the tokens that the assistant writes are their own labels, the others -100. An example of
/// which the limit leaves no such token is left out, and so is a conversation that encode_chat() refuses.
std::vector<Example> encode_conversations(const std::vector<ConversationRecord>& conversations,
                                          const ChatFormat& format, const Tokenizer& tokenizer,
                                          const std::string& name, EncodeLimits& limits);

/// The same of answers to a prompt: of a pair the chosen one, then the rejected one. Pairs are left out where
/// the limit leaves an answer no token, or both the same.
std::vector<Example> encode_preferences(const std::vector<Preference>& preferences, const ChatFormat& format,
                                        const Tokenizer& tokenizer, const std::string& name,
                                        EncodeLimits& limits);

}  // namespace zoo
