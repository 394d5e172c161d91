#include "apps/demos/word_pairs.h"

#include <ATen/ops/tensor.h>

#include "models/registry.h"

namespace zoo {

WordPairs read_word_pairs(const std::string& text) {
  std::vector<std::string> words, shown = split_list("pairs", text);
  for (const std::string& pair : shown) {
    const auto two = split_words(pair);
    if (two.size() != 2) throw UsageError("--pairs: expected two words, got '", pair, "'");
    words.insert(words.end(), two.begin(), two.end());
  }
  const WordIds ids(words);
  std::vector<std::int64_t> from, to;
  for (std::size_t i = 0; i < words.size(); ++i) {
    from.push_back(ids.id(words[i]));
    to.push_back(ids.id(words[i ^ 1]));
  }
  return {ids, at::tensor(from).unsqueeze(1), at::tensor(to).unsqueeze(1)};
}

at::Tensor learn_word_vectors(const WordPairs& pairs, const WordTraining& how,
                              const std::function<void(std::int64_t, double)>& on_epoch) {
  auto [family, preset] = find_preset("tutorial-embeddings");
  TransformerConfig config = preset.config;
  config.vocab_size = pairs.ids.size();
  config.hidden_size = how.width;
  const auto model = build_model(family, config, Head::kCausalLm, how.seed);
  fit(*model, {how.epochs, how.learning_rate}, [&](std::int64_t epoch) {
    const at::Tensor loss = model->forward({.input_ids = pairs.inputs, .targets = pairs.targets}).loss;
    if (on_epoch) on_epoch(epoch, loss.item<double>());
    return loss;
  });
  return model->named_parameters()["embed.weight"].detach();
}

}  // namespace zoo
