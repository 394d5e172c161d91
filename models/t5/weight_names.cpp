#include "models/t5/weight_names.h"

namespace zoo::t5 {
namespace {

// clang-format off
std::vector<WeightName> self_attention(const std::string& ours, const std::string& theirs) {
  return {
      {ours + "attention_norm.weight", {theirs + "layer.0.layer_norm.weight"}},
      {ours + "attention.qkv.weight",  {theirs + "layer.0.SelfAttention.q.weight",
                                        theirs + "layer.0.SelfAttention.k.weight",
                                        theirs + "layer.0.SelfAttention.v.weight"}},
      {ours + "attention.out.weight",  {theirs + "layer.0.SelfAttention.o.weight"}},
  };
}

std::vector<WeightName> cross_attention(const std::string& ours, const std::string& theirs) {
  return {
      {ours + "cross_attention_norm.weight", {theirs + "layer.1.layer_norm.weight"}},
      {ours + "cross_attention.q.weight",    {theirs + "layer.1.EncDecAttention.q.weight"}},
      {ours + "cross_attention.kv.weight",   {theirs + "layer.1.EncDecAttention.k.weight",
                                              theirs + "layer.1.EncDecAttention.v.weight"}},
      {ours + "cross_attention.out.weight",  {theirs + "layer.1.EncDecAttention.o.weight"}},
  };
}

// `theirs` ends in the number of the sublayer, which is 1 in an encoder and 2 in a decoder.
std::vector<WeightName> feed_forward(const std::string& ours, const std::string& theirs, bool gated) {
  const std::string dense = theirs + "DenseReluDense.";
  std::vector<std::string> up{dense + "wi.weight"};
  if (gated) up = {dense + "wi_0.weight", dense + "wi_1.weight"};
  return {
      {ours + "feed_forward_norm.weight", {theirs + "layer_norm.weight"}},
      {ours + "feed_forward.up.weight",   up},
      {ours + "feed_forward.down.weight", {dense + "wo.weight"}},
  };
}
// clang-format on

// The names of one stack. Their first block holds the positions of all.
void add_stack(const std::string& ours, const std::string& theirs, const TransformerConfig& config,
               std::vector<WeightName>& names) {
  const std::string block = ours + "blocks.{}.", their_block = theirs + "block.{}.";
  std::vector<WeightName> patterns = self_attention(block, their_block);
  const auto append = [&](const std::vector<WeightName>& more) {
    patterns.insert(patterns.end(), more.begin(), more.end());
  };
  if (config.cross_attention) append(cross_attention(block, their_block));
  append(feed_forward(block, their_block + (config.cross_attention ? "layer.2." : "layer.1."),
                      is_gated(config.activation)));
  names.push_back({ours + "position_bias.weight",
                   {theirs + "block.0.layer.0.SelfAttention.relative_attention_bias.weight"}});
  for (WeightName& name : expand_layers(patterns, config.num_layers)) names.push_back(std::move(name));
  names.push_back({ours + "final_norm.weight", {theirs + "final_layer_norm.weight"}});
}

}  // namespace

WeightTable weight_table(const TransformerConfig& config) {
  WeightTable table;
  table.names = {{"token_embedding.weight", {"shared.weight"}}};
  table.tied = {{"encoder.embed_tokens.weight", "shared.weight"}};
  if (config.shape == Shape::kEncoder) {
    add_stack("encoder.", "encoder.", config, table.names);
    return table;
  }
  add_stack("stack.encoder.", "encoder.", config.encoder_part(), table.names);
  add_stack("stack.decoder.", "decoder.", config.decoder_part(), table.names);
  table.tied.emplace_back("decoder.embed_tokens.weight", "shared.weight");
  if (config.tie_word_embeddings) {
    table.tied.emplace_back("lm_head.weight", "shared.weight");
  } else {
    table.names.push_back({"lm_head.weight", {"lm_head.weight"}});
  }
  table.of_heads = {"lm_head."};
  // Nobody has ever used it: only self-attention has positions.
  table.ignored = {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"};
  return table;
}

}  // namespace zoo::t5
