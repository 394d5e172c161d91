#pragma once

#include <optional>

#include "models/layers/transformer_config.h"

namespace zoo::encoder {

/// Vector from which a sequence is classified.
enum class SentenceVector {
  kPooler,     ///< tanh(W x[0]) of the encoder's own pooler (BERT)
  kTanh,       ///< the same from a layer of the head, with dropout before it too (RoBERTa)
  kRelu,       ///< relu(W x[0]) from a layer of the head (DistilBERT)
  kGelu,       ///< gelu(W x[0]) from a layer of the head, with dropout before it too (ELECTRA)
  kPlainGelu,  ///< the same without that dropout (DeBERTa)
};

/// Differences between families of encoders besides configuration and weight names.
struct Style {
  SentenceVector sentence_vector = SentenceVector::kPooler;
  bool has_pooler = true;                           // of the bare model
  std::optional<Activation> prediction_activation;  // of the masked-lm head; none: as configured
  /// Hugging Face's classes have an unused bias beside an untied output projection, which has its own bias;
  /// it is still one of their weights.
  bool keeps_spare_bias = true;
  bool drops_sentence_order = false;  // dropout before the pretraining head's sentence logits (ALBERT)
  /// The layer before the masked-lm head's decoder stands before all classifiers too, whatever
  /// sentence_vector says (ModernBERT).
  bool transforms_all = false;
  bool transform_bias = true;  // of that layer's projection
};

}  // namespace zoo::encoder
