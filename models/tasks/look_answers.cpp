#include "models/tasks/look_answers.h"

#include "data/base/field_error.h"
#include "models/tasks/classify.h"

namespace zoo {
namespace {

NamedLogit label_named(const TextModel& model, const std::string& field, const std::string& word,
                       std::int64_t count) {
  std::string names;
  for (std::int64_t label = 0; label < count; ++label) {
    const std::string name = label_name(model.model->config(), label);
    if (name == word) return {label, name};
    names += (label > 0 ? ", " : "") + name;
  }
  throw FieldError(Field{field}, " ", word, ": the model's labels are ", names);
}

TokenIds encode(const TextModel& model, const std::string& field, const std::string& word) {
  try {
    return model.tokenizer->encode(word);
  } catch (const Error& error) {
    throw FieldError(Field{field}, " '", word, "': ", error.what());
  }
}

// The id of a word that is one token.
std::optional<std::int64_t> single(const TokenIds& ids, const at::Tensor& logits) {
  const bool one = ids.size() == 1 && static_cast<std::int64_t>(ids[0]) < logits.size(0);
  return one ? std::optional<std::int64_t>(ids[0]) : std::nullopt;
}

std::optional<std::int64_t> single_after_space(const TextModel& model, const std::string& word,
                                               const at::Tensor& logits) {
  try {
    return single(model.tokenizer->encode(" " + word), logits);
  } catch (const Error&) {
    return std::nullopt;  // the vocabulary has no space
  }
}

}  // namespace

bool gives_labels(const TextModel& model) {
  switch (model.head) {
    case Head::kSequenceClassification:
    case Head::kTokenClassification:
    case Head::kNextSentence:
      return true;
    default:
      return false;
  }
}

std::int64_t answer_position(const TextModel& model, const TextInputs& read,
                             std::optional<std::int64_t> chosen, bool needs_mask) {
  const auto& tokens = read.written.empty() ? read.source : read.written;
  const auto length = static_cast<std::int64_t>(tokens.size());
  if (chosen && model.head != Head::kTokenClassification && gives_labels(model))
    throw UnfitField(Field{"position"}, ": the model gives one answer for the whole text");
  if (chosen && *chosen >= length)
    throw FieldError(Field{"position"}, " ", *chosen, ": there are ", length, " tokens, numbered from 0 to ",
                     length - 1);
  if (chosen) return *chosen;
  if (model.head != Head::kMaskedLm && model.head != Head::kPretraining) return length - 1;
  const auto mask = model.tokenizer->special_id(SpecialToken::mask);
  for (std::int64_t i = 0; mask && i < length; ++i)
    if (read.inputs.input_ids[0][i].item<std::int64_t>() == *mask) return i;
  if (!needs_mask) return length - 1;
  throw FieldError(Field{"text"}, ": it has no ", mask ? model.tokenizer->token_text(*mask) : "mask",
                   " token, at which a masked language model answers; give one, or ", Field{"position"});
}

NamedLogit answer_numbered(const TextModel& model, std::int64_t id) {
  return {id, gives_labels(model) ? label_name(model.model->config(), id) : token_name(model, id)};
}

NamedLogit answer_named(const TextModel& model, const std::string& field, const std::string& word,
                        const at::Tensor& logits) {
  if (gives_labels(model)) return label_named(model, field, word, logits.size(0));
  const TokenIds ids = encode(model, field, word);
  std::optional<std::int64_t> best = single(ids, logits);
  const auto after_space = single_after_space(model, word, logits);
  if (after_space && (!best || logits[*after_space].item<float>() > logits[*best].item<float>()))
    best = after_space;
  if (best) return answer_numbered(model, *best);
  std::string tokens;
  for (const TokenId id : ids) tokens += (tokens.empty() ? "" : " ") + token_name(model, id);
  throw FieldError(Field{field}, " '", word, "': one token is expected, and this is ",
                   tokens.empty() ? std::string("none") : tokens);
}

}  // namespace zoo
