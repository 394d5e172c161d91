#include "models/script/decoder.h"

#include "models/decoder/decoder.h"
#include "models/script/decoding.h"
#include "models/script/layers.h"
#include "models/script/stack.h"

namespace zoo::script {
namespace {

constexpr std::string_view kDecoder = R"(
def embed(self, ids: Tensor, past: int) -> Tensor:
    x = self.token_embedding.forward(ids)
    $positions
    return x

def check_ids(self, ids: Tensor):
    shape = "input_ids must be [batch, length] with a length of at least 1, got {}".format(ids.size())
    assert ids.dim() == 2 and ids.size(1) > 0, shape

def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None) -> Tensor:
    self.check_ids(input_ids)
    no_caches: List[List[Tensor]] = []
    x = self.stack.forward(self.embed(input_ids, 0), attention_mask, no_caches, 0)
    $result
)";

// What generate_source() wants.
constexpr std::string_view kSteps = R"(
def new_caches(self, batch: int, capacity: int) -> List[List[Tensor]]:
    return self.stack.new_caches(batch, capacity, self.token_embedding.weight)

def next_logits(self, ids: Tensor, caches: List[List[Tensor]], past: int) -> Tensor:
    hidden = self.stack.forward(self.embed(ids, past), None, caches, past)
    return torch.linear(torch.select(hidden, 1, -1), self.$output.weight)
)";

// The hidden state of each row's last token that is not padding.
constexpr std::string_view kClassify = R"($last
    index = last.unsqueeze(1).unsqueeze(2).expand([-1, 1, x.size(2)])
    return self.score.forward(torch.gather(x, 1, index).squeeze(1)))";

constexpr std::string_view kLastToken =
    R"(places = torch.arange(input_ids.size(1), device=input_ids.device)
    last = torch.argmax(places * torch.ne(input_ids, $pad).to($long), -1))";

constexpr std::string_view kOnlyRow =
    R"(assert input_ids.size(0) == 1, "without a pad_token_id only one sequence can be classified at once"
    last = torch.full([1], input_ids.size(1) - 1, dtype=$long, device=input_ids.device))";

constexpr std::string_view kPositions =
    R"(end = past + ids.size(1)
    too_long = "a sequence of {} tokens is longer than the model's $limit positions".format(end)
    assert end <= $limit, too_long
    x = x + torch.slice($table, 0, past, end))";

std::string classify_source(const TransformerConfig& config) {
  const bool padded = config.pad_token_id >= 0;
  const std::string last = fill(padded ? kLastToken : kOnlyRow,
                                {{"pad", std::to_string(config.pad_token_id)}, {"long", kLongCode}});
  return fill(kClassify, {{"last", last}});
}

// Adds the head's children and text, and returns what forward() does with the hidden states x.
std::string add_head(ScriptPart& part, const DecoderModel& model) {
  if (const auto* head = dynamic_cast<const DecoderForSequenceClassification*>(&model)) {
    part.children.push_back({"score", linear_part(*head->score)});
    return classify_source(model.config());
  }
  const auto* head = dynamic_cast<const DecoderForCausalLm*>(&model);
  if (head == nullptr) return "return x";
  if (head->lm_head) part.children.push_back({"lm_head", linear_part(*head->lm_head)});
  const std::string output = head->lm_head ? "lm_head" : "token_embedding";
  part.source = fill(kSteps, {{"output", output}}) + generate_source(model.config());
  return "return torch.linear(x, self." + output + ".weight)";
}

}  // namespace

ScriptPart decoder_part(const Model& model) {
  const auto& decoder = dynamic_cast<const DecoderModel&>(model);
  const TransformerConfig& config = decoder.config();
  ScriptPart part;
  part.class_name = "Decoder";
  part.children.push_back({"token_embedding", embedding_part(*decoder.token_embedding)});
  std::string table;
  if (decoder.position_embedding) {
    part.children.push_back({"position_embedding", embedding_part(*decoder.position_embedding)});
    table = "self.position_embedding.weight";
  } else if (config.position == PositionKind::kSinusoidal) {
    part.buffers.emplace_back("sinusoids", decoder.named_buffers()["sinusoids"]);
    table = "self.sinusoids";
  }
  part.children.push_back({"stack", stack_part(*decoder.stack, config)});

  std::string positions = "pass";
  if (!table.empty()) {
    positions = fill(kPositions, {{"table", table}, {"limit", std::to_string(config.max_positions)}});
  }
  const std::string result = add_head(part, decoder);
  part.source = fill(kDecoder, {{"positions", positions}, {"result", result}}) + part.source;
  return part;
}

}  // namespace zoo::script
