#include "apps/verbs/text/mask_guesses.h"

#include <ATen/ops/softmax.h>
#include <nlohmann/json.hpp>

#include "data/base/error.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

std::vector<std::vector<MaskGuess>> guesses_of(const TextModel& model, const Encoding& encoding, TokenId mask,
                                               std::int64_t top_k) {
  const Encoding* const batch[] = {&encoding};
  const at::Tensor logits =
      model.model->forward(batch_of(model, batch)).logits[0].to(at::kFloat).cpu();  // [T, V]
  const std::int64_t known = model.tokenizer->id_count();
  std::vector<std::vector<MaskGuess>> all;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    if (encoding.ids[i] != mask) continue;
    const at::Tensor probabilities = at::softmax(logits[static_cast<std::int64_t>(i)], 0).slice(0, 0, known);
    const auto [values, ids] = probabilities.topk(std::min(top_k, known));
    std::vector<MaskGuess>& guesses = all.emplace_back();
    for (std::int64_t k = 0; k < values.numel(); ++k) {
      guesses.push_back({static_cast<TokenId>(ids[k].item<std::int64_t>()), values[k].item<float>()});
    }
  }
  return all;
}

}  // namespace

MaskedText guess_masks(const TextModel& model, const std::string& text, std::int64_t top_k) {
  const auto mask = model.tokenizer->special_id(SpecialToken::mask);
  if (!mask) throw Error("--model: the tokenizer in ", model.checkpoint.directory, " has no mask token");
  MaskedText masked{
      .encoding = model.tokenizer->encode(text, {.max_length = model.max_length(), .with_offsets = false}),
      .mask = *mask};
  masked.guesses = guesses_of(model, masked.encoding, *mask, top_k);
  if (masked.guesses.empty()) {
    throw Error("no ", model.tokenizer->token_text(*mask), " in the first ", model.max_length(),
                " tokens of '", text, "'");
  }
  return masked;
}

std::string filled(const TextModel& model, const MaskedText& text, std::size_t which, TokenId guess) {
  TokenIds ids = text.encoding.ids;
  std::size_t seen = 0;
  for (TokenId& id : ids) {
    if (id == text.mask && seen++ == which) id = guess;
  }
  if (const auto pad = model.tokenizer->special_id(SpecialToken::pad)) std::erase(ids, *pad);  // as a guess
  // A byte-level token may be half a character.
  return replace_invalid_utf8(seen > 1 ? model.tokenizer->decode_with_special_tokens(ids)
                                       : model.tokenizer->decode(ids));
}

nlohmann::ordered_json describe_masks(const TextModel& model, const std::string& text,
                                      const MaskedText& masked) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["text"] = text;
  json["masks"] = Json::array();
  for (std::size_t i = 0; i < masked.guesses.size(); ++i) {
    Json guesses = Json::array();
    for (const MaskGuess& guess : masked.guesses[i]) {
      Json entry;
      entry["token"] = model.tokenizer->token_text(guess.id);
      entry["id"] = guess.id;
      entry["score"] = guess.probability;
      entry["text"] = filled(model, masked, i, guess.id);
      guesses.push_back(entry);
    }
    json["masks"].push_back(guesses);
  }
  return json;
}

}  // namespace zoo
