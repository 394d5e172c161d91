#include "models/tasks/look_texts.h"

#include <ATen/ops/tensor.h>

#include "data/base/lines.h"
#include "models/encoder_decoder/encoder_decoder.h"
#include "models/generation/generate.h"
#include "models/model.h"
#include "models/tasks/classify.h"
#include "models/tasks/translate.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

Encoding encode(const TextModel& model, const ModelTexts& texts) {
  // Offsets name the parts of a text that a question answering head chooses.
  const EncodeOptions options{.with_offsets = texts.text_pair.has_value()};
  if (!texts.text_pair) return model.tokenizer->encode(texts.text, options);
  return model.tokenizer->encode_pair(texts.text, *texts.text_pair, options);
}

// Ids after the last token, as part of its text.
void append(Encoding& encoding, const TokenIds& ids) {
  for (const TokenId id : ids) {
    encoding.ids.push_back(id);
    if (!encoding.type_ids.empty()) encoding.type_ids.push_back(encoding.type_ids.back());
    if (!encoding.texts.empty()) encoding.texts.push_back(0);
    if (!encoding.words.empty()) encoding.words.push_back(-1);
    if (!encoding.offsets.empty()) encoding.offsets.emplace_back();
  }
}

void check_length(const std::string& field, std::size_t tokens, const TransformerConfig& config) {
  if (config.has_position_table() && static_cast<std::int64_t>(tokens) > config.max_length())
    throw TokenCountError(field, tokens, config.max_length());
}

std::vector<std::string> tokens_of(const TextModel& model, const TokenIds& ids) {
  std::vector<std::string> tokens;
  for (const TokenId id : ids) tokens.push_back(token_name(model, id));
  return tokens;
}

// Greedy, by the other rules of generation_config.json, as `translate` writes.
GenerationOptions writing_options(const TextModel& model, std::int64_t max_new_tokens,
                                  const GenerationConfig& defaults) {
  GenerationSettings settings = translation_settings();
  settings.options.max_new_tokens = max_new_tokens;
  try {
    apply_generation_config(settings, defaults, [](std::string_view field) {
      return field == "temperature" || field == "num_beams" || field == "max_new_tokens";
    });
    return translation_options(settings, model.checkpoint, defaults);
  } catch (const FieldError& error) {
    const std::string why = error.what();  // and then how translate leaves the file out
    throw FieldError(Field{"target"},
                     " is missing, and it cannot be generated: ", why.substr(0, why.find(';')));
  }
}

// Decoder inputs: the start token, then the target or the generated tokens; or the source, shifted right.
TokenIds decoder_ids(const TextModel& model, const TokenIds& source, const ModelTexts& texts,
                     const GenerationConfig& defaults) {
  const TransformerConfig& config = model.model->config();
  if (!reads_target(model)) {
    const at::Tensor row = at::tensor(source, at::kInt).unsqueeze(0);
    const at::Tensor shifted = shifted_right(config, row);
    return {shifted.const_data_ptr<TokenId>(), shifted.const_data_ptr<TokenId>() + shifted.numel()};
  }
  const std::int64_t start = decoder_start(defaults_of(defaults), config);
  if (start < 0 || start >= config.vocab_size)
    throw FieldError(Field{"model"}, ": its files have no decoder_start_token_id");
  TokenIds ids{static_cast<TokenId>(start)};
  if (texts.target) {
    const auto target = model.tokenizer->encode(*texts.target);
    ids.insert(ids.end(), target.begin(), target.end());
    ids.insert(ids.end(), texts.appended.begin(), texts.appended.end());
    return ids;
  }
  if (model.head != Head::kSeq2SeqLm)
    throw UnfitField(Field{"target"},
                     " is missing: without a language model head the decoder cannot generate it");
  const GenerationOptions options = writing_options(model, texts.max_new_tokens, defaults);
  const GenerationResult written = generate(*model.model, {source}, options);
  ids.insert(ids.end(), written.ids[0].begin(), written.ids[0].end());
  if (ids.size() > 1) ids.pop_back();  // the last generated token is never an input
  return ids;
}

void check_texts(const TextModel& model, const ModelTexts& texts) {
  const TransformerConfig& config = model.model->config();
  if (texts.text_pair && config.shape != Shape::kEncoder) {
    constexpr const char* kOnly = ": only an encoder reads two texts, and this model is not one";
    if (config.shape != Shape::kEncoderDecoder) throw UnfitField(Field{"text_pair"}, kOnly);
    throw UnfitField(Field{"text_pair"}, kOnly, "; the decoder's text is ", Field{"target"});
  }
  if (!texts.target || reads_target(model)) return;
  if (config.shape != Shape::kEncoderDecoder)
    throw UnfitField(Field{"target"}, ": only an encoder-decoder has a target, and this model is not one");
  throw UnfitField(Field{"target"}, ": the decoder of this model reads the text itself, shifted right");
}

NamedLogit label_named(const TextModel& model, const std::string& field, const std::string& word,
                       std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t label = 0; label < count; ++label) {
    names.push_back(label_name(model.model->config(), label));
    if (names.back() == word) return {label, word};
  }
  throw UnfitField(Field{field}, " ", word, ": the model's labels are ", joined(names));
}

TokenIds encode(const TextModel& model, const std::string& field, const std::string& word) {
  try {
    return model.tokenizer->encode(word);
  } catch (const Error& error) {
    throw UnfitField(Field{field}, " '", word, "': ", error.what());
  }
}

// The id of a word that is one token. The token of all unknown words is none of them.
std::optional<std::int64_t> single(const TextModel& model, const std::string& word, const TokenIds& ids,
                                   const at::Tensor& logits) {
  if (ids.size() != 1 || static_cast<std::int64_t>(ids[0]) >= logits.size(0)) return std::nullopt;
  if (model.tokenizer->special_id(SpecialToken::unk) == ids[0] && model.tokenizer->token_text(ids[0]) != word)
    return std::nullopt;
  return ids[0];
}

std::optional<std::int64_t> single_after_space(const TextModel& model, const std::string& word,
                                               const at::Tensor& logits) {
  try {
    return single(model, word, model.tokenizer->encode(" " + word), logits);
  } catch (const Error&) {
    return std::nullopt;  // the vocabulary has no space
  }
}

}  // namespace

TokenCountError::TokenCountError(const std::string& field, std::size_t count, std::int64_t most)
    : FieldError(Field{field}, count == 0 ? std::string(": the text is empty")
                                          : ": " + std::to_string(count) + " tokens, but at most " +
                                                std::to_string(most) + " are read"),
      tokens(count),
      limit(most) {}

std::string token_name(const TextModel& model, std::int64_t id) {
  const bool known = id < model.tokenizer->vocab_size();
  return known ? replace_invalid_utf8(model.tokenizer->token_text(static_cast<TokenId>(id)))
               : "#" + std::to_string(id);
}

TextInputs read_texts(const TextModel& model, const ModelTexts& texts, const GenerationConfig& defaults,
                      const std::string& field) {
  const TransformerConfig& config = model.model->config();
  check_texts(model, texts);
  Encoding encoding = encode(model, texts);
  if (config.shape != Shape::kEncoderDecoder) append(encoding, texts.appended);
  if (encoding.ids.empty()) throw TokenCountError(field, 0, config.max_length());
  check_length(field, encoding.size(), config);
  const Encoding* const batch[] = {&encoding};
  TextInputs read{
      .inputs = batch_of(model, batch), .source = tokens_of(model, encoding.ids), .encoding = encoding};
  if (config.shape != Shape::kEncoderDecoder) return read;
  const TokenIds target = decoder_ids(model, encoding.ids, texts, defaults);
  check_length("target", target.size(), config);
  read.inputs.decoder_input_ids = at::tensor(target, at::kLong).unsqueeze(0).to(model.device);
  read.written = tokens_of(model, target);
  return read;
}

LookedModel load_looked_model(const ModelPath& directory, ComputeOptions compute) {
  compute.weights = "modules";
  LookedModel loaded{.model = load_text_model(read_checkpoint_config(directory), compute)};
  loaded.defaults = read_generation_config(directory, loaded.model.checkpoint.json);
  return loaded;
}

bool reads_target(const TextModel& model) {
  return model.model->config().shape == Shape::kEncoderDecoder &&
         (model.head == Head::kBase || model.head == Head::kSeq2SeqLm);
}

bool gives_labels(const TextModel& model) {
  switch (model.head) {
    case Head::kSequenceClassification:
    case Head::kTokenClassification:
    case Head::kNextSentence: return true;
    default: return false;
  }
}

std::int64_t answer_position(const TextModel& model, const TextInputs& read,
                             std::optional<std::int64_t> chosen, bool needs_mask) {
  const auto& tokens = read.written.empty() ? read.source : read.written;
  const auto length = static_cast<std::int64_t>(tokens.size());
  if (chosen && model.head != Head::kTokenClassification && gives_labels(model))
    throw UnfitField(Field{"position"}, ": the model gives one answer for the whole text");
  if (chosen && *chosen >= length)
    throw UnfitField(Field{"position"}, " ", *chosen, ": there are ", length, " tokens, numbered from 0 to ",
                     length - 1);
  if (chosen) return *chosen;
  if (model.model->parts().head.tokens == HeadParts::Tokens::kFirst) return 0;
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

NamedLogit answer_named(const TextModel& model, const std::string& field,
                        const std::optional<std::string>& named, const at::Tensor& logits) {
  if (!named) return answer_numbered(model, logits.argmax().item<std::int64_t>());
  const std::string& word = *named;
  if (gives_labels(model)) return label_named(model, field, word, logits.size(0));
  const TokenIds ids = encode(model, field, word);
  std::optional<std::int64_t> best = single(model, word, ids, logits);
  const auto after_space = single_after_space(model, word, logits);
  if (after_space && (!best || logits[*after_space].item<float>() > logits[*best].item<float>()))
    best = after_space;
  if (best) return answer_numbered(model, *best);
  std::string tokens;
  for (const TokenId id : ids) tokens += (tokens.empty() ? "" : " ") + token_name(model, id);
  throw UnfitField(Field{field}, " '", word, "': one token is expected, and this is ",
                   tokens.empty() ? std::string("none") : tokens);
}

}  // namespace zoo
