#include "models/families/kinds/bert_kind.h"
#include "models/families/kinds/rotary_keys.h"

namespace zoo::family::nomic_bert {

C base() {
  C config = bert_base();
  config.position = PositionKind::kRotary;
  config.rope_theta = 1000.0;
  config.activation = Activation::kSwiGlu;
  config.qkv_bias = config.attention_output_bias = config.feed_forward_bias = false;
  config.embedding_dropout = config.attention_dropout = config.dropout = 0.0;
  config.classifier_dropout = config.token_dropout = 0.0;
  config.max_positions = 2048;
  return config;
}

ConfigKeys keys() {
  return {"Nomic BERT",
          concatenated(
              {usual_size_keys(),
               {
                   optional_key("head_dim", &C::head_dim),
                   optional_key("max_position_embeddings", &C::max_positions),
                   optional_key("type_vocab_size", &C::type_vocab_size),
                   activation_key("hidden_act", ActivationUse::kGate),
                   optional_key("layer_norm_eps", &C::layer_norm_eps),
                   optional_key("hidden_dropout_prob", {&C::dropout, &C::embedding_dropout}),
                   optional_key("attention_probs_dropout_prob", &C::attention_dropout),
                   classifier_dropout_key(),
                   own_key("tie_prediction_bias", {&C::tie_prediction_bias}, false),
                   // Of the published file's GPT-2 kind: what would be another model, and what is not read.
                   expected_key("causal", false),
                   expected_key("mlp_fc1_bias", false),
                   expected_key("mlp_fc2_bias", false),
                   expected_key("parallel_block", false),
                   expected_key("prenorm", false),
                   expected_key("qkv_proj_bias", false),
                   expected_key("rotary_emb_fraction", 1.0),
                   expected_key("rotary_emb_interleaved", false),
                   expected_key("use_rms_norm", false),
                   ignored_keys({"activation_function", "attn_pdrop", "embd_pdrop", "layer_norm_epsilon",
                                 "n_embd", "n_head", "n_inner", "n_layer", "n_positions",
                                 "reorder_and_upcast_attn", "resid_pdrop", "scale_attn_by_inverse_layer_idx",
                                 "scale_attn_weights", "summary_activation", "summary_first_dropout",
                                 "summary_proj_to_labels", "summary_type", "summary_use_proj"}),
                   ignored_keys({"dense_seq_output", "fused_bias_fc", "fused_dropout_add_ln",
                                 "max_trained_positions", "pad_vocab_size_multiple",
                                 "parallel_block_tied_norm", "rotary_emb_base", "rotary_emb_scale_base",
                                 "rotary_scaling_factor", "use_flash_attn", "use_xentropy"}),
               },
               usual_end_keys(),
               rope_keys()})};
}

WeightTable weights(const C& config) {
  const std::string layer = "encoder.layers.{}.", module = "layers.{}.";
  // Names of the published files, and those of transformers' modules, which safetensors' save_model() writes.
  // clang-format off
  WeightTable table{.names = {
      {"embeddings.token.weight",                  {"embeddings.word_embeddings.weight"}},
      {"embeddings.token_type.weight",             {"embeddings.token_type_embeddings.weight"}},
      {.ours = "stack.blocks.{}.attention.qkv.weight",
       .theirs = {layer + "attn.Wqkv.weight"},
       .others = q_k_v(module + "self_attn.", "_proj.weight")},
      {.ours = "stack.blocks.{}.attention.out.weight",
       .theirs = {layer + "attn.out_proj.weight"}, .others = {module + "self_attn.o_proj.weight"}},
      {.ours = "stack.blocks.{}.feed_forward.up.weight",
       .theirs = {layer + "mlp.fc12.weight", layer + "mlp.fc11.weight"},
       .others = {module + "mlp.gate_proj.weight", module + "mlp.up_proj.weight"}},
      {.ours = "stack.blocks.{}.feed_forward.down.weight",
       .theirs = {layer + "mlp.fc2.weight"}, .others = {module + "mlp.down_proj.weight"}},
  }};
  add_weights_and_biases(table, {
      {.ours = "embeddings.norm", .theirs = {"emb_ln"}, .others = {"embeddings.LayerNorm"}},
      {.ours = "stack.blocks.{}.attention_norm",
       .theirs = {layer + "norm1"}, .others = {module + "post_attention_layernorm"}},
      {.ours = "stack.blocks.{}.feed_forward_norm",
       .theirs = {layer + "norm2"}, .others = {module + "post_mlp_layernorm"}},
      {"pooler.dense", {"pooler.dense"}},
      {"prediction_dense",                         {"cls.predictions.transform.dense"}},
      {"prediction_norm",                          {"cls.predictions.transform.layer_norm"}},
      {"sentence_classifier",                      {"classifier"}},
      {"token_classifier",                         {"classifier"}},
  });
  // clang-format on
  add_masked_lm_projection(table, config, "cls.predictions.decoder", "cls.predictions.bias");
  table.prefix = "nomic_bert.";
  table.unprefixed = {"cls.", "classifier."};
  table.of_heads = {"pooler."};
  return table;
}

Family family() {
  return {
      .model_type = "nomic_bert",
      .description = "Nomic BERT (Nussbaum et al., 2024): BERT with rotary positions and SwiGLU",
      .heads = {{Head::kBase, "NomicBertModel"},
                {Head::kMaskedLm, "NomicBertForMaskedLM"},
                {Head::kSequenceClassification, "NomicBertForSequenceClassification"},
                {Head::kTokenClassification, "NomicBertForTokenClassification"}},
      .base = base(),
      .keys = keys(),
      .presets = {{"nomic-embed-text-v1.5", "Nomic's embeddings of texts",
                   of_size(base(), {30528, 768, 12, 12, 3072})}},
      .build = encoder::builder({.has_pooler = false}),
      .weight_table = weights,
  };
}

}  // namespace zoo::family::nomic_bert
