#include "models/script/t5.h"

#include "models/script/decoding.h"
#include "models/script/layers.h"
#include "models/script/stack.h"
#include "models/t5/t5.h"

namespace zoo::script {
namespace {

constexpr std::string_view kCheckIds = R"(
def check_ids(self, ids: Tensor, name: str):
    shape = "{} must be [batch, length] with a length of at least 1, got {}".format(name, ids.size())
    assert ids.dim() == 2 and ids.size(1) > 0, shape
)";

constexpr std::string_view kEncoder = R"(
def encode(self, input_ids: Tensor, attention_mask: Optional[Tensor]) -> Tensor:
    self.check_ids(input_ids, "input_ids")
    no_caches: List[List[Tensor]] = []
    return self.encoder.forward(self.token_embedding.forward(input_ids), attention_mask, no_caches, 0)
)";

constexpr std::string_view kEncoderForward = R"(
def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None) -> Tensor:
    return self.encode(input_ids, attention_mask)
)";

constexpr std::string_view kForward = R"(
def decode(self, ids: Tensor, caches: List[List[Tensor]], past: int, read: List[List[Tensor]],
           memory_mask: Optional[Tensor]) -> Tensor:
    return self.decoder.forward(self.token_embedding.forward(ids), None, caches, past, read, memory_mask)

def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor], decoder_input_ids: Tensor) -> Tensor:
    memory = self.encode(input_ids, attention_mask)
    self.check_ids(decoder_input_ids, "decoder_input_ids")
    no_caches: List[List[Tensor]] = []
    x = self.decode(decoder_input_ids, no_caches, 0, self.decoder.read_memory(memory), attention_mask)
    return $result
)";

// What generate_source() wants.
constexpr std::string_view kSteps = R"(
def new_caches(self, batch: int, capacity: int) -> List[List[Tensor]]:
    return self.decoder.new_caches(batch, capacity, self.token_embedding.weight)

def read_source(self, input_ids: Tensor, attention_mask: Optional[Tensor]) -> List[List[Tensor]]:
    return self.decoder.read_memory(self.encode(input_ids, attention_mask))

def next_logits(self, ids: Tensor, caches: List[List[Tensor]], past: int, read: List[List[Tensor]],
                memory_mask: Optional[Tensor]) -> Tensor:
    x = torch.select(self.decode(ids, caches, past, read, memory_mask), 1, -1)
    return $result
)";

ScriptPart encoder_alone(const t5::T5Encoder& model) {
  ScriptPart part;
  part.class_name = "T5Encoder";
  part.children = {{"token_embedding", embedding_part(*model.token_embedding)},
                   {"encoder", stack_part(*model.encoder, model.config())}};
  part.source = std::string(kCheckIds) + std::string(kEncoder) + std::string(kEncoderForward);
  return part;
}

// The text that makes logits of the hidden state x.
std::string logits_of(const t5::T5& model) {
  const double scale = model.config().logits_scale;
  const std::string hidden = scale == 1.0 ? "x" : "x * " + literal(scale);
  return "torch.linear(" + hidden + ", self." + (model.lm_head ? "lm_head" : "token_embedding") + ".weight)";
}

}  // namespace

ScriptPart t5_part(const Model& model) {
  if (const auto* encoder = dynamic_cast<const t5::T5Encoder*>(&model)) return encoder_alone(*encoder);
  const auto& t5 = dynamic_cast<const t5::T5&>(model);
  const TransformerConfig& config = t5.config();
  const bool bare = t5.head() == Head::kBase;
  ScriptPart part;
  part.class_name = "T5";
  part.children = {{"token_embedding", embedding_part(*t5.token_embedding)},
                   {"encoder", stack_part(*t5.stack->encoder, config.encoder_part())},
                   {"decoder", stack_part(*t5.stack->decoder, config.decoder_part())}};
  if (t5.lm_head) part.children.push_back({"lm_head", linear_part(*t5.lm_head)});
  const std::string result = bare ? "x" : logits_of(t5);
  part.source = std::string(kCheckIds) + std::string(kEncoder) + fill(kForward, {{"result", result}});
  if (!bare) part.source += fill(kSteps, {{"result", result}}) + encoder_decoder_generate_source(config);
  return part;
}

}  // namespace zoo::script
