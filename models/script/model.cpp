#include "models/script/model.h"

#include "data/base/error.h"
#include "data/base/lines.h"
#include "models/layers/config_fields.h"
#include "models/layers/embeddings.h"
#include "models/script/parts.h"

namespace zoo::script {
namespace {

constexpr std::string_view kEmbeddings = R"(
def check(self, ids: Tensor, name: str):
    shape = "{} must be [batch, length] with a length of at least 1, got {}".format(name, ids.size())
    assert ids.dim() == 2 and ids.size(1) > 0, shape

def forward(self, $table ids: Tensor, name: str, past: int, token_type_ids: Optional[Tensor] = None,
            position_ids: Optional[Tensor] = None) -> Tensor:
    self.check(ids, name)
    $limit
    x = $token$scale
    $token_types
    $positions
    $norm
    $projection
    return x
)";

constexpr std::string_view kLimit =
    R"(end = past + ids.size(1)
    too_long = "a sequence of {} tokens is longer than the model's $limit positions".format(end)
    assert end <= $limit, too_long)";

constexpr std::string_view kTokenTypes =
    R"(if token_type_ids is not None:
        x = x + self.token_type.forward(token_type_ids)
    else:
        x = x + torch.select(self.token_type.weight, 0, 0))";

constexpr std::string_view kAllPositions = "x = x + torch.slice($table, 0, past + $offset, end + $offset)";

constexpr std::string_view kGivenPositions =
    R"(if position_ids is not None:
        x = x + torch.embedding($table, position_ids + $offset)
    else:
        $all)";

constexpr std::string_view kPositionsAfterPadding =
    R"(kept = torch.ne(ids, $pad).to($long)
    x = x + torch.embedding($table, (torch.cumsum(kept, 1) + past) * kept + $pad))";

// kGiven: the token table is an argument of forward().
enum class TokenTable { kOwn, kGiven };

ScriptPart embeddings_part(const EmbeddingsImpl& embeddings, const TransformerConfig& config,
                           TokenTable table = TokenTable::kOwn) {
  const bool own = table == TokenTable::kOwn;
  ScriptPart part;
  part.class_name = own ? "Embeddings" : "DecoderEmbeddings";
  if (own) part.children.push_back({"token", embedding_part(*embeddings.token)});
  std::string limit = "pass", positions = "pass";
  if (config.has_position_table()) {
    limit = fill(kLimit, {{"limit", std::to_string(config.max_length())}});
    const bool learned = static_cast<bool>(embeddings.position);
    if (learned) {
      part.children.push_back({"position", embedding_part(*embeddings.position)});
    } else {
      part.buffers.emplace_back("sinusoids", embeddings.position_table());
    }
    const std::string offset = std::to_string(config.first_position());
    const std::string table_of_positions = learned ? "self.position.weight" : "self.sinusoids";
    const std::string all = fill(kAllPositions, {{"table", table_of_positions}, {"offset", offset}});
    switch (config.position_count) {
      case PositionCount::kAll:
        positions = all;
        break;
      case PositionCount::kNotPadding:
        positions = fill(kPositionsAfterPadding, {{"table", table_of_positions},
                                                  {"pad", std::to_string(config.pad_token_id)},
                                                  {"long", kLongCode}});
        break;
      case PositionCount::kNotMasked:
        positions = fill(kGivenPositions, {{"table", table_of_positions}, {"offset", offset}, {"all", all}});
        break;
    }
  }
  if (embeddings.token_type) part.children.push_back({"token_type", embedding_part(*embeddings.token_type)});
  if (embeddings.norm) part.children.push_back({"norm", norm_part(*embeddings.norm, config)});
  if (embeddings.projection) part.children.push_back({"projection", linear_part(*embeddings.projection)});
  part.source =
      fill(kEmbeddings, {{"limit", limit},
                         {"table", own ? "" : "table: Tensor,"},
                         {"token", own ? "self.token.forward(ids)" : "torch.embedding(table, ids)"},
                         {"scale", config.token_scale() == 1.0 ? "" : " * " + literal(config.token_scale())},
                         {"token_types", std::string(embeddings.token_type ? kTokenTypes : "pass")},
                         {"positions", positions},
                         {"norm", embeddings.norm ? "x = self.norm.forward(x)" : "pass"},
                         {"projection", embeddings.projection ? "x = self.projection.forward(x)" : "pass"}});
  return part;
}

constexpr std::string_view kLastToken =
    R"(places = torch.arange(input_ids.size(1), device=input_ids.device)
    last = torch.argmax(places * torch.ne(input_ids, $pad).to($long), -1))";

constexpr std::string_view kOnlyRow =
    R"(assert input_ids.size(0) == 1, "without a pad_token_id only one sequence can be classified at once"
    last = torch.full([1], input_ids.size(1) - 1, dtype=$long, device=input_ids.device))";

constexpr std::string_view kSelectLast = R"($last
    index = last.unsqueeze(1).unsqueeze(2).expand([-1, 1, x.size(2)])
    x = torch.gather(x, 1, index).squeeze(1))";

constexpr std::string_view kMeanOfKept =
    R"(if attention_mask is not None:
        kept = torch.ne(attention_mask.to(x.device), 0).unsqueeze(-1)
        x = torch.masked_fill(x, torch.logical_not(kept), 0.0)
        x = torch.sum(x, 1) / torch.clamp(torch.sum(kept, 1), 1)
    else:
        x = torch.mean(x, [1]))";

std::string select_source(HeadParts::Tokens tokens, const TransformerConfig& config) {
  if (tokens == HeadParts::Tokens::kAll) return "pass";
  if (tokens == HeadParts::Tokens::kMean) return std::string(kMeanOfKept);
  if (tokens == HeadParts::Tokens::kFirst) return "x = torch.select(x, 1, 0)";
  const std::string last = fill(config.pad_token_id >= 0 ? kLastToken : kOnlyRow,
                                {{"pad", std::to_string(config.pad_token_id)}, {"long", kLongCode}});
  return fill(kSelectLast, {{"last", last}});
}

// Adds a head's children to `part`, under names that begin with `name`. The text turns x into the logits.
std::string add_steps(ScriptPart& part, const HeadParts& head, const std::string& name,
                      const ModelParts& parts, const TransformerConfig& config) {
  std::string text = select_source(head.tokens, config);
  const auto step = [&](const std::string& line) { text += "\n    " + line; };
  if (head.dense) {
    part.children.push_back({name + "dense", linear_part(*head.dense)});
    step("x = self." + name + "dense.forward(x)");
    step("x = " + activation_source(head.activation, "x"));
  }
  if (head.norm) {
    part.children.push_back({name + "head_norm", norm_part(*head.norm, config)});
    step("x = self." + name + "head_norm.forward(x)");
  }
  if (head.scale != 1.0) step("x = x * " + literal(head.scale));
  if (head.weight.defined() && head.weight.is_same(parts.embeddings->token->weight)) {
    if (head.bias.defined()) part.parameters.emplace_back("output_bias", head.bias);
    step(std::string("x = torch.linear(x, self.embeddings.token.weight, ") +
         (head.bias.defined() ? "self.output_bias)" : "None)"));
  } else if (head.weight.defined()) {
    part.children.push_back({name + "output", linear_part(head.weight, head.bias)});
    step("x = self." + name + "output.forward(x)");
  }
  if (head.is_flag) step("x = torch.squeeze(x, -1)");
  if (head.softcap > 0) step("x = torch.tanh(x / " + literal(head.softcap) + ") * " + literal(head.softcap));
  return text;
}

// Adds the children of the model's head to `part`. The text turns x into the result and returns it.
std::string add_head(ScriptPart& part, const ModelParts& parts, const TransformerConfig& config) {
  const std::string steps = add_steps(part, parts.head, "", parts, config);
  if (parts.sentence_head.weight.defined()) {
    return "hidden = x\n    " + steps + "\n    logits = x\n    x = hidden\n    " +
           add_steps(part, parts.sentence_head, "sentence_", parts, config) + "\n    return logits, x";
  }
  return steps + (parts.head.is_span ? "\n    return torch.select(x, -1, 0), torch.select(x, -1, 1)"
                                     : "\n    return x");
}

constexpr std::string_view kForward = R"(
def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None$segments) -> $result:
    no_caches: List[List[Tensor]] = []
    $positions
    embedded = self.embeddings.forward(input_ids, "input_ids", 0$token_type_ids)
    x = self.stack.forward(embedded, attention_mask, no_caches, 0)
    $head
)";

// Mirrors DecoderModel::forward.
constexpr std::string_view kCountedPositions =
    R"(positions: Optional[Tensor] = None
    if attention_mask is not None:
        kept = attention_mask.to($long)
        positions = torch.cumsum(kept, 1) * kept - 1)";

// Called by generate_source().
constexpr std::string_view kSteps = R"(
def new_caches(self, batch: int, capacity: int) -> List[List[Tensor]]:
    return self.stack.new_caches(batch, capacity, self.embeddings.token.weight)

def next_logits(self, ids: Tensor, caches: List[List[Tensor]], past: int) -> Tensor:
    hidden = self.stack.forward(self.embeddings.forward(ids, "input_ids", past), None, caches, past)
    x = torch.select(hidden, 1, -1)
    $head
)";

ScriptPart one_stack(const ModelParts& parts, const TransformerConfig& config) {
  ScriptPart part;
  part.class_name = parts.decoder ? "Decoder" : "Encoder";
  part.children = {{"embeddings", embeddings_part(*parts.embeddings, config)},
                   {"stack", stack_part(parts.decoder ? *parts.decoder : *parts.encoder, config)}};
  const std::string head = add_head(part, parts, config);
  const bool segments = static_cast<bool>(parts.embeddings->token_type);
  const bool counts = config.position_count == PositionCount::kNotMasked;
  part.source =
      fill(kForward,
           {{"segments", segments ? ", token_type_ids: Optional[Tensor] = None" : ""},
            {"positions", counts ? fill(kCountedPositions, {{"long", kLongCode}}) : "pass"},
            {"token_type_ids", segments ? ", token_type_ids"
                               : counts ? ", None, positions"
                                        : ""},
            {"result",
             parts.head.is_span || parts.sentence_head.weight.defined() ? "Tuple[Tensor, Tensor]" : "Tensor"},
            {"head", head}});
  if (parts.generates()) part.source += fill(kSteps, {{"head", head}}) + generate_source(config);
  return part;
}

constexpr std::string_view kEncoderDecoder = R"(
def encode(self, input_ids: Tensor, attention_mask: Optional[Tensor]) -> Tensor:
    no_caches: List[List[Tensor]] = []
    embedded = self.embeddings.forward(input_ids, "input_ids", 0)
    return self.encoder.forward(embedded, attention_mask, no_caches, 0)

def decode(self, ids: Tensor, caches: List[List[Tensor]], past: int, read: List[List[Tensor]],
           memory_mask: Optional[Tensor]) -> Tensor:
    embedded = $embedded
    return self.decoder.forward(embedded, None, caches, past, read, memory_mask)

def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor], decoder_input_ids: Tensor) -> Tensor:
    memory = self.encode(input_ids, attention_mask)
    no_caches: List[List[Tensor]] = []
    x = self.decode(decoder_input_ids, no_caches, 0, self.decoder.read_memory(memory), attention_mask)
    $head
)";

// Called by encoder_decoder_generate_source().
constexpr std::string_view kEncoderDecoderSteps = R"(
def new_caches(self, batch: int, capacity: int) -> List[List[Tensor]]:
    return self.decoder.new_caches(batch, capacity, self.embeddings.token.weight)

def read_source(self, input_ids: Tensor, attention_mask: Optional[Tensor]) -> List[List[Tensor]]:
    return self.decoder.read_memory(self.encode(input_ids, attention_mask))

def next_logits(self, ids: Tensor, caches: List[List[Tensor]], past: int, read: List[List[Tensor]],
                memory_mask: Optional[Tensor]) -> Tensor:
    x = torch.select(self.decode(ids, caches, past, read, memory_mask), 1, -1)
    $head
)";

ScriptPart two_stacks(const ModelParts& parts, const TransformerConfig& config) {
  ScriptPart part;
  part.class_name = "EncoderDecoder";
  part.children = {{"embeddings", embeddings_part(*parts.embeddings, config)},
                   {"encoder", stack_part(*parts.encoder, parts.encoder->config())},
                   {"decoder", stack_part(*parts.decoder, parts.decoder->config())}};
  std::string embedded = R"(self.embeddings.forward(ids, "decoder_input_ids", past))";
  if (parts.decoder_embeddings != parts.embeddings) {
    part.children.push_back(
        {"decoder_embeddings", embeddings_part(*parts.decoder_embeddings, config, TokenTable::kGiven)});
    embedded =
        R"(self.decoder_embeddings.forward(self.embeddings.token.weight, ids, "decoder_input_ids", past))";
  }
  const std::string head = add_head(part, parts, config);
  part.source = fill(kEncoderDecoder, {{"head", head}, {"embedded", embedded}});
  if (parts.generates())
    part.source += fill(kEncoderDecoderSteps, {{"head", head}}) + encoder_decoder_generate_source(config);
  return part;
}

}  // namespace

std::vector<std::string> missing(const Model& model) {
  if (!model.parts().embeddings) return {"parts"};
  std::vector<std::string> features = missing_features(model.config(), Engine::kTorchScript);
  if (model.parts().head.tokens == HeadParts::Tokens::kLastEnd)
    features.emplace_back("the classifier of an encoder-decoder");
  if (model.parts().encoder && model.parts().decoder && model.parts().head.is_span)
    features.emplace_back("the answer's span of an encoder-decoder");
  return features;
}

ScriptPart model_part(const Model& model) {
  const ModelParts parts = model.parts();
  if (!parts.embeddings) throw Error("a model of this family cannot be written as TorchScript");
  if (!missing(model).empty()) throw Error("TorchScript has no text for ", joined(missing(model)));
  return parts.encoder && parts.decoder ? two_stacks(parts, model.config())
                                        : one_stack(parts, model.config());
}

}  // namespace zoo::script
