// A program of another project: it has only the installed package. It learns a sentence and says it.
#include <iostream>
#include <string>
#include <vector>

#include <ATen/ops/tensor.h>
#include <zoo/models/generation/generate.h>
#include <zoo/models/registry.h>
#include <zoo/tokenizer/pipeline/char_tokenizer.h>
#include <zoo/training/optimizers/adamw.h>

int main() {
  const std::string text = "to be, or not to be, that is the question";
  const zoo::CharTokenizer tokenizer = zoo::CharTokenizer::train(text);
  const std::vector<zoo::TokenId> encoded = tokenizer.encode(text);
  const std::vector<std::int64_t> ids(encoded.begin(), encoded.end());

  zoo::TransformerConfig config;
  config.vocab_size = tokenizer.vocab_size();
  config.hidden_size = 32;
  config.num_layers = config.num_heads = 2;
  config.max_positions = 64;
  const auto model = zoo::build_model(zoo::find_family("gpt2"), config, zoo::Head::kCausalLm, /*seed=*/1);

  zoo::AdamW optimizer(*model, {});
  zoo::ModelInputs batch;
  batch.input_ids = batch.labels = at::tensor(ids, at::kLong).unsqueeze(0);
  for (int step = 0; step < 150; ++step) {
    model->forward(batch).loss.backward();
    optimizer.step(1e-2);
    optimizer.zero_grad();
  }

  model->eval();
  const std::vector<std::int64_t> prompt(ids.begin(), ids.begin() + 8);
  const auto result = zoo::generate(*model, {prompt}, {.max_new_tokens = 8, .sampling = {.temperature = 0}});
  const std::vector<zoo::TokenId> answer(result.ids[0].begin(), result.ids[0].end());
  std::cout << text.substr(0, 8) << tokenizer.decode(answer) << "\n";
  return tokenizer.decode(answer) == text.substr(8, 8) ? 0 : 1;
}
