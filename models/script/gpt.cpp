#include "models/script/gpt.h"

#include "models/decoder/decoder.h"
#include "models/script/decoding.h"
#include "models/script/layers.h"
#include "models/script/stack.h"

namespace zoo::script {
namespace {

constexpr std::string_view kGpt = R"(
def embed(self, ids: Tensor, past: int) -> Tensor:
    x = self.token_embedding.forward(ids)
    $positions
    return x

def check_ids(self, ids: Tensor):
    shape = "input_ids must be [batch, length] with a length of at least 1, got {}".format(ids.size())
    assert ids.dim() == 2 and ids.size(1) > 0, shape

def to_logits(self, hidden: Tensor) -> Tensor:
    return torch.linear(hidden, self.$output.weight)

def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None) -> Tensor:
    self.check_ids(input_ids)
    no_caches: List[List[Tensor]] = []
    return self.to_logits(self.stack.forward(self.embed(input_ids, 0), attention_mask, no_caches, 0))

def new_caches(self, batch: int, capacity: int) -> List[List[Tensor]]:
    return self.stack.new_caches(batch, capacity, self.token_embedding.weight)

def next_logits(self, ids: Tensor, caches: List[List[Tensor]], past: int) -> Tensor:
    hidden = self.stack.forward(self.embed(ids, past), None, caches, past)
    return self.to_logits(torch.select(hidden, 1, -1))
)";

constexpr std::string_view kPositions =
    R"(end = past + ids.size(1)
    too_long = "a sequence of {} tokens is longer than the model's $limit positions".format(end)
    assert end <= $limit, too_long
    x = x + torch.slice($table, 0, past, end))";

}  // namespace

ScriptPart gpt_part(const Model& model) {
  const auto& gpt = dynamic_cast<const DecoderForCausalLm&>(model);
  const TransformerConfig& config = gpt.config();
  ScriptPart part;
  part.class_name = "GptForCausalLm";
  part.children.push_back({"token_embedding", embedding_part(*gpt.token_embedding)});
  std::string table;
  if (gpt.position_embedding) {
    part.children.push_back({"position_embedding", embedding_part(*gpt.position_embedding)});
    table = "self.position_embedding.weight";
  } else if (config.position == PositionKind::kSinusoidal) {
    part.buffers.emplace_back("sinusoids", gpt.named_buffers()["sinusoids"]);
    table = "self.sinusoids";
  }
  part.children.push_back({"stack", stack_part(*gpt.stack, config)});
  if (gpt.lm_head) part.children.push_back({"lm_head", linear_part(*gpt.lm_head)});

  std::string positions = "pass";
  if (!table.empty()) {
    positions = fill(kPositions, {{"table", table}, {"limit", std::to_string(config.max_positions)}});
  }
  part.source =
      fill(kGpt, {{"positions", positions}, {"output", gpt.lm_head ? "lm_head" : "token_embedding"}}) +
      generate_source(config);
  return part;
}

}  // namespace zoo::script
