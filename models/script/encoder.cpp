#include "models/script/encoder.h"

#include "models/encoder/heads.h"
#include "models/script/layers.h"
#include "models/script/stack.h"

namespace zoo::script {
namespace {

constexpr std::string_view kEmbeddings = R"(
def forward(self, ids: Tensor, token_type_ids: Optional[Tensor]) -> Tensor:
    shape = "input_ids must be [batch, length] with a length of at least 1, got {}".format(ids.size())
    assert ids.dim() == 2 and ids.size(1) > 0, shape
    too_long = "a sequence of {} tokens is longer than the model's $limit positions".format(ids.size(1))
    assert ids.size(1) <= $limit, too_long
    x = self.word.forward(ids)
    $token_types
    $positions
    x = self.norm.forward(x)
    $projection
    return x
)";

constexpr std::string_view kTokenTypes =
    R"(if token_type_ids is not None:
        x = x + self.token_type.forward(token_type_ids)
    else:
        x = x + torch.select(self.token_type.weight, 0, 0))";

constexpr std::string_view kAllPositions = "x = x + torch.slice(self.position.weight, 0, 0, ids.size(1))";

constexpr std::string_view kPositionsBehindPadding =
    R"(kept = torch.ne(ids, $pad).to($long)
    x = x + self.position.forward(torch.cumsum(kept, 1) * kept + $pad))";

constexpr std::string_view kPooler = R"(
def forward(self, x: Tensor) -> Tensor:
    return torch.tanh(self.dense.forward(torch.select(x, 1, 0)))
)";

constexpr std::string_view kForward = R"(
def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None$segments) -> $result:
    no_caches: List[List[Tensor]] = []
    embedded = self.embeddings.forward(input_ids, $token_type_ids)
    x = self.stack.forward(embedded, attention_mask, no_caches, 0)
    $head
)";

ScriptPart embeddings_part(const encoder::EmbeddingsImpl& embeddings, const TransformerConfig& config) {
  ScriptPart part;
  part.class_name = "Embeddings";
  part.children = {{"word", embedding_part(*embeddings.word)},
                   {"position", embedding_part(*embeddings.position)},
                   {"norm", norm_part(*embeddings.norm, config)}};
  if (embeddings.token_type) part.children.push_back({"token_type", embedding_part(*embeddings.token_type)});
  if (embeddings.projection) part.children.push_back({"projection", linear_part(*embeddings.projection)});
  const bool all = config.position_count == PositionCount::kAll;
  const std::string positions = fill(all ? kAllPositions : kPositionsBehindPadding,
                                     {{"pad", std::to_string(config.pad_token_id)}, {"long", kLongCode}});
  part.source =
      fill(kEmbeddings, {{"limit", std::to_string(config.max_length())},
                         {"token_types", std::string(embeddings.token_type ? kTokenTypes : "pass")},
                         {"positions", positions},
                         {"projection", embeddings.projection ? "x = self.projection.forward(x)" : "pass"}});
  return part;
}

ScriptPart pooler_part(const encoder::PoolerImpl& pooler) {
  ScriptPart part;
  part.class_name = "Pooler";
  part.children = {{"dense", linear_part(*pooler.dense)}};
  part.source = kPooler;
  return part;
}

// What a head adds to the encoder: its own children, and the text that makes the result of `x`.
struct HeadText {
  std::string result = "Tensor";
  std::string text = "return x";
};

HeadText add_masked_lm(ScriptPart& part, const encoder::MaskedLm& head) {
  part.children.push_back({"prediction_dense", linear_part(*head.prediction_dense)});
  part.children.push_back({"prediction_norm", norm_part(*head.prediction_norm, head.config())});
  std::string text = "h = self.prediction_dense.forward(x)\n    h = self.prediction_norm.forward(" +
                     activation_source(head.activation(), "h") + ")\n    return ";
  if (head.decoder) {
    part.children.push_back({"decoder", linear_part(*head.decoder)});
    return {.text = text + "self.decoder.forward(h)"};
  }
  part.parameters.emplace_back("prediction_bias", head.prediction_bias);
  return {.text = text + "torch.linear(h, self.embeddings.word.weight, self.prediction_bias)"};
}

HeadText add_sequence_classifier(ScriptPart& part, const encoder::SequenceClassifier& head) {
  part.children.push_back({"sentence_classifier", linear_part(*head.sentence_classifier)});
  std::string vector = "self.pooler.forward(x)";
  if (head.sentence_dense) {
    part.children.push_back({"sentence_dense", linear_part(*head.sentence_dense)});
    const bool tanh = head.sentence_vector() == encoder::SentenceVector::kTanh;
    vector = std::string(tanh ? "torch.tanh" : "torch.relu") +
             "(self.sentence_dense.forward(torch.select(x, 1, 0)))";
  }
  return {.text = "return self.sentence_classifier.forward(" + vector + ")"};
}

HeadText add_head(ScriptPart& part, const encoder::EncoderModel& model) {
  if (const auto* head = dynamic_cast<const encoder::MaskedLm*>(&model)) return add_masked_lm(part, *head);
  if (const auto* head = dynamic_cast<const encoder::SequenceClassifier*>(&model)) {
    return add_sequence_classifier(part, *head);
  }
  if (const auto* head = dynamic_cast<const encoder::NextSentence*>(&model)) {
    part.children.push_back({"next_sentence", linear_part(*head->next_sentence)});
    return {.text = "return self.next_sentence.forward(self.pooler.forward(x))"};
  }
  if (const auto* head = dynamic_cast<const encoder::TokenClassifier*>(&model)) {
    part.children.push_back({"token_classifier", linear_part(*head->token_classifier)});
    return {.text = "return self.token_classifier.forward(x)"};
  }
  if (const auto* head = dynamic_cast<const encoder::QuestionAnswering*>(&model)) {
    part.children.push_back({"span", linear_part(*head->span)});
    return {.result = "Tuple[Tensor, Tensor]",
            .text =
                "logits = self.span.forward(x)\n"
                "    return torch.select(logits, -1, 0), torch.select(logits, -1, 1)"};
  }
  return {};
}

}  // namespace

ScriptPart encoder_part(const Model& model) {
  const auto& encoder = dynamic_cast<const encoder::EncoderModel&>(model);
  const TransformerConfig& config = encoder.config();
  ScriptPart part;
  part.class_name = "Encoder";
  part.children = {{"embeddings", embeddings_part(*encoder.embeddings, config)},
                   {"stack", stack_part(*encoder.stack, config)}};
  const HeadText head = add_head(part, encoder);
  // A bare model's file gives no pooled vector, so nothing would read its pooler.
  if (head.text.find("self.pooler") != std::string::npos) {
    part.children.push_back({"pooler", pooler_part(*encoder.pooler)});
  }
  const bool segments = static_cast<bool>(encoder.embeddings->token_type);
  part.source = fill(kForward, {{"segments", segments ? ", token_type_ids: Optional[Tensor] = None" : ""},
                                {"token_type_ids", segments ? "token_type_ids" : "None"},
                                {"result", head.result},
                                {"head", head.text}});
  return part;
}

}  // namespace zoo::script
