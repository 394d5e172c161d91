#include "models/script/methods.h"

#include <algorithm>

#include "data/base/error.h"
#include "models/graph/passes.h"
#include "models/graph/verify.h"

namespace zoo::script {
namespace {

using Values = std::vector<std::pair<std::string_view, std::string>>;

// Replaces each "$name". All names are known.
std::string fill(std::string text, const Values& values) {
  for (const auto& [name, value] : values) {
    for (std::size_t at; (at = text.find(name)) != std::string::npos;) text.replace(at, name.size(), value);
  }
  return text;
}

constexpr const char* kChecks = R"(
def check(self, ids: Tensor, name: str):
    shape = "{} must be [batch, length] with a length of at least 1, got {}".format(name, ids.size())
    assert ids.dim() == 2 and ids.size(1) > 0, shape
    too_long = "a sequence of {} tokens is longer than the model's $limit positions".format(ids.size(1))
    assert $limit == 0 or ids.size(1) <= $limit, too_long
    assert $rows or ids.size(0) == 1, "to classify several sequences at once, the configuration must name a pad_token_id"

def mask_of(self, ids: Tensor, attention_mask: Optional[Tensor]) -> Tensor:
    if attention_mask is None:
        return torch.ones_like(ids)
    shape = "attention_mask must be [batch, {}], got {}".format(ids.size(1), attention_mask.size())
    assert attention_mask.dim() == 2 and attention_mask.size(1) == ids.size(1), shape
    return attention_mask
)";

constexpr const char* kForward = R"(
def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None$types):
    self.check(input_ids, "input_ids")
    return self.traced_forward(input_ids, self.mask_of(input_ids, attention_mask)$given)
)";

constexpr const char* kTypes = R"(, token_type_ids: Optional[Tensor] = None)";
constexpr const char* kGivenTypes =
    R"(, torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids)";

constexpr const char* kForwardOfPair = R"(
def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor], decoder_input_ids: Tensor):
    self.check(input_ids, "input_ids")
    self.check(decoder_input_ids, "decoder_input_ids")
    return self.traced_forward(input_ids, self.mask_of(input_ids, attention_mask), decoder_input_ids)
)";

constexpr const char* kPick = R"(
def pick(self, logits: Tensor, temperature: float, top_k: int) -> Tensor:
    if temperature == 0.0:
        return torch.argmax(logits, -1)
    scores = logits.to(6) / temperature
    if top_k > 0:
        best = torch.topk(scores, min(top_k, scores.size(-1)))[0]
        scores = torch.masked_fill(scores, scores < torch.slice(best, 1, -1), float("-inf"))
    return torch.multinomial(torch.softmax(scores, -1), 1).squeeze(1)
)";

constexpr const char* kGenerate = R"(
def generate(self, input_ids: Tensor, max_new_tokens: int, temperature: float = 1.0, top_k: int = 0$mask) -> Tensor:
    shape = "input_ids must be [batch, length] with a length of at least 1, got {}".format(input_ids.size())
    assert input_ids.dim() == 2 and input_ids.size(1) > 0, shape
    assert max_new_tokens >= 0, "max_new_tokens must be at least 0, got {}".format(max_new_tokens)
    assert temperature >= 0.0, "temperature must be at least 0, got {}".format(temperature)
    assert top_k >= 0, "top_k must be at least 0, got {}".format(top_k)
    batch = input_ids.size(0)
    $begin
    ids = torch.full([batch, prompt + max_new_tokens], self.pad_id, dtype=4, device=input_ids.device)
    torch.slice(ids, 1, 0, prompt).copy_(step)
    ended = torch.zeros([batch], dtype=11, device=input_ids.device)
    past = 0
    end = prompt
    going = batch > 0
    while going and end < prompt + max_new_tokens:
        $step
        next = self.pick(torch.select(logits, 1, -1), temperature, top_k)
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

// Of a decoder.
constexpr const char* kNoCaches = R"(
def no_caches(self, ids: Tensor) -> List[Tensor]:
    caches: List[Tensor] = []
    for i in range(2 * $layers):
        caches.append(torch.zeros([ids.size(0), $kv_heads, 0, $head_dim], dtype=$dtype, device=ids.device))
    return caches
)";

constexpr const char* kBegin = R"(prompt = input_ids.size(1)
    too_long = "a prompt of {} tokens is longer than the model's context of $limit tokens".format(prompt)
    assert $limit == 0 or prompt <= $limit, too_long
    step = input_ids
    caches = self.no_caches(input_ids))";

constexpr const char* kStep = R"(mask = torch.ones([batch, past + step.size(1)], dtype=4, device=ids.device)
        logits, caches = self.traced_step(step, mask, $positionscaches))";

constexpr const char* kPositions =
    R"(torch.arange(past, past + step.size(1), device=ids.device).unsqueeze(0).expand([batch, -1]), )";

// When the context is full, reads its last half again.
constexpr const char* kSlide = R"(if past == $limit:
            step = torch.slice(ids, 1, end - $kept, end)
            past = 0
            caches = self.no_caches(ids))";

// Of an encoder-decoder.
constexpr const char* kPadding = R"(
def padding_mask(self, input_ids: Tensor) -> Tensor:
    if $pad < 0 or $pad in self.eos_ids:
        return torch.ones_like(input_ids)
    return torch.ne(input_ids, $pad).to(4)
)";

constexpr const char* kBeginFromSource = R"(mask = self.padding_mask(input_ids)
    if attention_mask is not None:
        mask = attention_mask
    memory = self.traced_encode(input_ids, mask)
    prompt = 1
    step = torch.full([batch, 1], $start, dtype=4, device=input_ids.device)
    caches: List[Tensor] = []
    read: List[Tensor] = [])";

constexpr const char* kStepFromSource = R"(if past == 0:
            logits, caches = self.traced_start(step, memory, mask)
            read = caches[$held:]
            caches = caches[:$held]
        else:
            logits, caches = self.traced_step(step, mask, caches + read))";

std::string limit_of(const TransformerConfig& config) {
  return std::to_string(config.has_position_table() ? config.max_length() : 0);
}

}  // namespace

std::string forward_source(const Model& model) {
  const TransformerConfig& config = model.config();
  const bool typed = config.type_vocab_size > 0;
  const char* const forward = config.shape == Shape::kEncoderDecoder ? kForwardOfPair : kForward;
  return fill(std::string(kChecks) + forward, {{"$limit", limit_of(config)},
                                               {"$rows", takes_one_row(model) ? "False" : "True"},
                                               {"$types", typed ? kTypes : ""},
                                               {"$given", typed ? kGivenTypes : ""}});
}

std::string generate_source(const Model& model) {
  const TransformerConfig& config = model.config();
  const bool from_source = config.shape == Shape::kEncoderDecoder;
  if (from_source && config.decoder_start_token_id < 0)
    throw Error("an encoder-decoder that generates needs a decoder_start_token_id in its configuration");
  const std::int64_t kept = std::max<std::int64_t>(config.max_positions / 2, 1);
  const auto dtype = static_cast<int>(model.parameters().front().scalar_type());
  const bool slides = !from_source && config.has_position_table();
  return fill(std::string(kPick) + (from_source ? kPadding : kNoCaches) + kGenerate,
              {{"$mask", from_source ? ", attention_mask: Optional[Tensor] = None" : ""},
               {"$begin", from_source ? kBeginFromSource : kBegin},
               {"$step", from_source ? kStepFromSource : kStep},
               {"$slide", slides ? kSlide : "pass"},
               {"$positions", graph::step_takes_positions(config) ? kPositions : ""},
               {"$limit", limit_of(config)},
               {"$kept", std::to_string(kept)},
               {"$pad", std::to_string(config.pad_token_id)},
               {"$start", std::to_string(config.decoder_start_token_id)},
               {"$held", std::to_string(2 * config.decoder_layers())},
               {"$layers", std::to_string(config.num_layers)},
               {"$kv_heads", std::to_string(config.kv_heads())},
               {"$head_dim", std::to_string(config.head_size())},
               {"$dtype", std::to_string(dtype)}});
}

}  // namespace zoo::script
