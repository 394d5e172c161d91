#pragma once

#include <optional>

#include "models/family.h"
#include "models/layers/embeddings.h"
#include "models/layers/stack.h"
#include "models/model.h"

namespace zoo::encoder {

/// A layer of the head, activation(W x[0]), from which a sequence is classified.
struct SentenceLayer {
  Activation activation;
  bool drops = false;  // dropout before it too
};

/// Differences between families of encoders besides configuration and weight names.
struct Style {
  std::optional<SentenceLayer> sentence_layer;      // none: the encoder's own pooler (BERT)
  bool has_pooler = true;                           // of the bare model
  std::optional<Activation> prediction_activation;  // of the masked-lm head; none: as configured
  /// Hugging Face's classes have an unused bias beside an untied output projection, which has its own bias;
  /// it is still one of their weights.
  bool keeps_spare_bias = true;
  bool drops_sentence_order = false;  // dropout before the pretraining head's sentence logits (ALBERT)
  /// The layer before the masked-lm head's decoder stands before all classifiers too, whatever
  /// sentence_layer says (ModernBERT).
  bool transforms_all = false;
  bool transform_bias = true;  // of that layer's projection
};

/// tanh(W x[0] + b): one vector per sequence, from the encoder's output at its first token (Devlin et al.,
/// 2019, section 3.1). [B, T, C] to [B, C].
class PoolerImpl : public torch::nn::Module {
 public:
  explicit PoolerImpl(std::int64_t hidden_size);

  at::Tensor forward(const at::Tensor& hidden);

  Linear dense{nullptr};
};
TORCH_MODULE(Pooler);

/// Encoder with embeddings, as in BERT, RoBERTa, DistilBERT and ALBERT. Its heads:
///   base                     last_hidden_state and, with a pooler, pooler_output
///   masked-lm                logits [B, T, V] = W2 norm(f(W x)) + b (Devlin et al., 2019, section 3.1): W2
///                            is the word embedding, or `decoder` if !config.tie_word_embeddings
///   next-sentence            logits [B, 2] from the pooler; 0: the second segment follows the first
///   pretraining              both: sentence_logits [B, 2] are those of next sentences, or of their order
///                            (Lan et al., 2020, section 3.1; 1: swapped). The losses are summed
///   sequence-classification  logits [B, num_labels] from the vector that Style and config.sentence_pooling
///                            select; labels as in sequence_loss()
///   token-classification     logits [B, T, num_labels]
///   question-answering       start_logits and end_logits [B, T]; labels [B, 2], as in span_loss()
///   replaced-tokens          logits [B, T], above 0 for tokens that seem replaced (Clark et al., 2020);
///                            labels 1 for these; what the attention mask hides counts nothing
/// Labels of -100 are ignored.
class EncoderModel : public Model {
 public:
  /// Throws c10::Error if the configuration is invalid or not an encoder's, for a head that no encoder has,
  /// and for question answering unless config.num_labels is 2.
  EncoderModel(const TransformerConfig& config, Head head, const Style& style);

  ModelOutput forward(const ModelInputs& inputs) override;

  ModelParts parts() const override;

  void remove_pooler() override;

  Embeddings embeddings{nullptr};
  TransformerStack stack{nullptr};
  // Empty where the head has none.
  Pooler pooler{nullptr};
  Linear dense{nullptr};       // before the projection, where no pooler replaces it
  Norm norm{nullptr};          // after it, in the masked-lm head and with Style::transforms_all
  Linear projection{nullptr};  // to labels, or to an untied vocabulary
  /// [V], of the tied vocabulary, or of an untied one if config.tie_prediction_bias; beside another one
  /// Style::keeps_spare_bias, or undefined.
  at::Tensor prediction_bias;
  Linear next_sentence{nullptr};

 private:
  void add_head();
  void add_transform();
  void add_vocabulary();
  HeadParts head_parts() const;
  HeadParts sentence_parts() const;

  Head head_;
  Style style_;
};

/// Family::build of encoders in this style.
decltype(Family::build) builder(const Style& style);

/// The same of a family whose encoders are bare models without a pooler, beside models that `others` builds.
/// `name` is that of an encoder in messages.
decltype(Family::build) builder_beside(decltype(Family::build) others, const std::string& name);

}  // namespace zoo::encoder
