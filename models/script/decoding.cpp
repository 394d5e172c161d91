#include <algorithm>

#include <c10/util/Exception.h>

#include "models/script/parts.h"

namespace zoo::script {
namespace {

constexpr std::string_view kPick = R"(
def pick(self, logits: Tensor, temperature: float, top_k: int) -> Tensor:
    if temperature == 0.0:
        return torch.argmax(logits, -1)
    scores = logits.to(6) / temperature
    if top_k > 0:
        best = torch.topk(scores, min(top_k, scores.size(-1)))[0]
        scores = torch.masked_fill(scores, scores < torch.slice(best, 1, -1), float("-inf"))
    return torch.multinomial(torch.softmax(scores, -1), 1).squeeze(1)
)";

constexpr std::string_view kGenerate = R"(
def generate(self, input_ids: Tensor, max_new_tokens: int, temperature: float = 1.0, top_k: int = 0) -> Tensor:
    self.embeddings.check(input_ids, "input_ids")
    assert max_new_tokens >= 0, "max_new_tokens must be at least 0, got {}".format(max_new_tokens)
    assert temperature >= 0.0, "temperature must be at least 0, got {}".format(temperature)
    assert top_k >= 0, "top_k must be at least 0, got {}".format(top_k)
    batch = input_ids.size(0)
    prompt = input_ids.size(1)
    capacity = prompt + max_new_tokens
    $limit_capacity
    ids = torch.full([batch, prompt + max_new_tokens], self.pad_id, dtype=4, device=input_ids.device)
    torch.slice(ids, 1, 0, prompt).copy_(input_ids)
    caches = self.new_caches(batch, capacity)
    ended = torch.zeros([batch], dtype=11, device=input_ids.device)
    step = input_ids
    past = 0
    end = prompt
    going = batch > 0
    while going and end < prompt + max_new_tokens:
        next = self.pick(self.next_logits(step, caches, past), temperature, top_k)
        next = torch.masked_fill(next, ended, self.pad_id)
        torch.select(ids, 1, end).copy_(next)
        past = past + step.size(1)
        end = end + 1
        step = next.unsqueeze(1)
        $slide
        if len(self.eos_ids) > 0:
            for eos in self.eos_ids:
                ended = torch.logical_or(ended, torch.eq(next, eos))
            going = not bool(torch.all(ended))
    return torch.slice(ids, 1, prompt, end)
)";

constexpr std::string_view kGenerateFromSource = R"(
def padding_mask(self, input_ids: Tensor) -> Optional[Tensor]:
    mask: Optional[Tensor] = None
    if $pad >= 0 and not $pad in self.eos_ids and bool(torch.any(torch.eq(input_ids, $pad))):
        mask = torch.ne(input_ids, $pad)
    return mask

def generate(self, input_ids: Tensor, max_new_tokens: int, temperature: float = 1.0, top_k: int = 0,
             attention_mask: Optional[Tensor] = None) -> Tensor:
    self.embeddings.check(input_ids, "input_ids")
    assert max_new_tokens >= 0, "max_new_tokens must be at least 0, got {}".format(max_new_tokens)
    assert temperature >= 0.0, "temperature must be at least 0, got {}".format(temperature)
    assert top_k >= 0, "top_k must be at least 0, got {}".format(top_k)
    mask = attention_mask
    if mask is None:
        mask = self.padding_mask(input_ids)
    batch = input_ids.size(0)
    read = self.read_source(input_ids, mask)
    ids = torch.full([batch, max_new_tokens], self.pad_id, dtype=4, device=input_ids.device)
    caches = self.new_caches(batch, max_new_tokens)
    ended = torch.zeros([batch], dtype=11, device=input_ids.device)
    step = torch.full([batch, 1], $start, dtype=4, device=input_ids.device)
    end = 0
    going = batch > 0
    while going and end < max_new_tokens:
        next = self.pick(self.next_logits(step, caches, end, read, mask), temperature, top_k)
        next = torch.masked_fill(next, ended, self.pad_id)
        torch.select(ids, 1, end).copy_(next)
        end = end + 1
        step = next.unsqueeze(1)
        if len(self.eos_ids) > 0:
            for eos in self.eos_ids:
                ended = torch.logical_or(ended, torch.eq(next, eos))
            going = not bool(torch.all(ended))
    return torch.slice(ids, 1, 0, end)
)";

constexpr std::string_view kLimitCapacity =
    R"(too_long = "a prompt of {} tokens is longer than the model's context of $limit tokens".format(prompt)
    assert prompt <= $limit, too_long
    capacity = min(capacity, $limit))";

// When the cache is full, reads the last half of the context again.
constexpr std::string_view kSlide = R"(if past == $limit:
            step = torch.slice(ids, 1, end - $kept, end)
            past = 0)";

std::string slide_source(const TransformerConfig& config) {
  if (!config.has_position_table()) return "pass";
  return fill(kSlide, {{"limit", std::to_string(config.max_positions)},
                       {"kept", std::to_string(std::max<std::int64_t>(config.max_positions / 2, 1))}});
}

}  // namespace

std::string generate_source(const TransformerConfig& config) {
  const bool bounded = config.has_position_table();
  const std::string limit = std::to_string(config.max_positions);
  return std::string(kPick) +
         fill(kGenerate, {{"limit_capacity", bounded ? fill(kLimitCapacity, {{"limit", limit}}) : "pass"},
                          {"slide", slide_source(config)}});
}

std::string encoder_decoder_generate_source(const TransformerConfig& config) {
  TORCH_CHECK(config.decoder_start_token_id >= 0,
              "an encoder-decoder that generates needs a decoder_start_token_id in its configuration");
  return std::string(kPick) +
         fill(kGenerateFromSource, {{"pad", std::to_string(config.pad_token_id)},
                                    {"start", std::to_string(config.decoder_start_token_id)}});
}

}  // namespace zoo::script
