#pragma once

#include <optional>

#include "models/layers/transformer_config.h"

namespace zoo::encoder {

/// From which vector a sequence is classified.
enum class SentenceVector {
  kPooler,  ///< tanh(W x[0]) of the encoder's own pooler (BERT)
  kTanh,    ///< the same of a layer that belongs to the head, with dropout before it too (RoBERTa)
  kRelu,    ///< relu(W x[0]) of a layer that belongs to the head (DistilBERT)
};

/// In what one family of encoders differs from another besides its configuration and its weights' names.
struct Style {
  SentenceVector sentence_vector = SentenceVector::kPooler;
  bool has_pooler = true;                           // of the bare model
  std::optional<Activation> prediction_activation;  // of the masked-lm head; none: the configuration's
  /// Hugging Face's classes keep a bias beside an untied output projection, which has its own: nothing reads
  /// it, but it is a weight of theirs.
  bool keeps_spare_bias = true;
};

}  // namespace zoo::encoder
