#pragma once

#include "models/encoder/encoder.h"
#include "models/families/kinds/shared.h"

namespace zoo {

/// Choices of the BERT kind: a post-LN encoder with learned positions, segments and GELU.
TransformerConfig bert_base();

/// BertConfig without the dropout of its classifiers; of RoBERTa and ALBERT too.
std::vector<ConfigKey> bert_keys();

/// The dropout of heads that classify. An absent key, or null, says that of the hidden states.
ConfigKey classifier_dropout_key();

/// Names of what the attention of BertModel's layers has, which its relatives call otherwise.
struct BertAttention {
  std::vector<std::string> projections = {"self.query", "self.key", "self.value"};
  std::string out = "output.dense", norm = "output.LayerNorm";
};

/// Weights of BertModel: the embeddings and the layers.
std::vector<WeightName> bert_weights(const BertAttention& names = {});

/// Adds the heads of RoBERTa and MPNet, and sets what their names begin with.
void add_roberta_heads(WeightTable& table, const TransformerConfig& config);

/// The heads of RoBERTa.
inline constexpr encoder::Style kRobertaStyle{
    .sentence_layer = encoder::SentenceLayer{Activation::kTanh, /*drops=*/true},
    .prediction_activation = Activation::kGelu};

/// Adds the projection of a masked-lm head, `decoder` in Hugging Face's names, whose bias has two names.
void add_masked_lm_projection(WeightTable& table, const TransformerConfig& config, const std::string& decoder,
                              const std::string& bias);

}  // namespace zoo
