#include "models/tasks/fill_mask.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/softmax.h>

#include "data/base/field_error.h"
#include "models/model.h"
#include "models/tasks/inference_loading.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

// The text of the ids with the mask at `position` replaced by `guess`.
std::string filled(const Tokenizer& tokenizer, TokenIds ids, std::size_t position, TokenId guess,
                   TokenId mask) {
  const bool several = std::ranges::count(ids, mask) > 1;
  ids[position] = guess;
  if (const auto pad = tokenizer.special_id(SpecialToken::pad)) std::erase(ids, *pad);  // as a guess
  // A byte-level token may be half a character.
  return replace_invalid_utf8(several ? tokenizer.decode_with_special_tokens(ids) : tokenizer.decode(ids));
}

}  // namespace

std::vector<std::vector<MaskGuess>> fill_mask(const TextModel& model, const FillMaskRequest& request) {
  require_head(model.checkpoint.directory, model.head, {Head::kMaskedLm});
  require_in(at_least(0), "top_k", request.top_k);
  const Tokenizer& tokenizer = *model.tokenizer;
  const auto mask = tokenizer.special_id(SpecialToken::mask);
  if (!mask)
    throw FieldError(Field{"model"}, ": the tokenizer in ", model.checkpoint.directory, " has no mask token");
  const Encoding encoding =
      tokenizer.encode(request.text, {.max_length = model.max_length(), .with_offsets = false});
  if (std::ranges::count(encoding.ids, *mask) == 0)
    throw Error("no ", tokenizer.token_text(*mask), " in the first ", model.max_length(), " tokens of '",
                request.text, "'");
  const Encoding* const batch[] = {&encoding};
  const at::NoGradGuard no_grad;
  const at::Tensor logits =
      model.model->forward(batch_of(model, batch)).logits[0].to(at::kFloat).cpu();  // [T, V]
  const std::int64_t known = tokenizer.id_count();
  std::vector<std::vector<MaskGuess>> masks;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    if (encoding.ids[i] != *mask) continue;
    const at::Tensor probabilities = at::softmax(logits[static_cast<std::int64_t>(i)], 0).slice(0, 0, known);
    const auto [values, ids] = probabilities.topk(std::min(request.top_k, known));
    std::vector<MaskGuess>& guesses = masks.emplace_back();
    for (std::int64_t k = 0; k < values.numel(); ++k) {
      const auto id = static_cast<TokenId>(ids[k].item<std::int64_t>());
      guesses.push_back({id, values[k].item<float>(), tokenizer.token_text(id),
                         filled(tokenizer, encoding.ids, i, id, *mask)});
    }
  }
  return masks;
}

}  // namespace zoo
