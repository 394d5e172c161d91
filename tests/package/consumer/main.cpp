// A program of another project, which has only the installed package. With a GPT's directory it continues a
// text from packed weights, turns texts into vectors, and trains a module of its own on them.
#include <iostream>

#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/tensor.h>
#include <zoo/models/layers/linear.h>
#include <zoo/models/tasks/generate_session.h>
#include <zoo/models/tasks/inference_loading.h>
#include <zoo/models/tasks/text_embedder.h>
#include <zoo/training/optimizers/adamw.h>

struct AboutQuestions : torch::nn::Module {
  explicit AboutQuestions(std::int64_t width) : linear(register_module("linear", zoo::Linear(width, 1))) {}
  at::Tensor forward(const at::Tensor& vectors) { return linear(vectors).squeeze(1); }
  zoo::Linear linear;
};

int main(int, char** argv) {
  const std::string directory = argv[1], prompt = "to be, o";
  const zoo::CheckpointConfig checkpoint = zoo::read_writing_checkpoint(directory);
  const auto session =
      zoo::open_generate_session(checkpoint, zoo::read_generation_config(directory, checkpoint.json),
                                 /*stop=*/{"\n"}, zoo::TokenizerUse::kNeeded);
  const auto model = zoo::load_decoding_model(checkpoint, {});
  const auto result = zoo::generate(*model, {session.tokenizer->encode(prompt)},
                                    {.max_new_tokens = 8, .sampling = {.temperature = 0}});
  std::cout << prompt << zoo::text_of_row(result.ids[0], session) << "\n";

  const zoo::TextEmbedder embedder(directory);
  const at::Tensor vectors = embedder.embed({"to be", "not to be", "question", "that is the question"});
  const at::Tensor labels = at::tensor({0.0F, 0.0F, 1.0F, 1.0F});
  AboutQuestions classifier(vectors.size(1));
  zoo::AdamW optimizer(classifier, {});
  for (int step = 0; step < 100; ++step) {
    at::binary_cross_entropy_with_logits(classifier.forward(vectors), labels).backward();
    optimizer.step(/*learning_rate=*/0.1);
    optimizer.zero_grad();
  }
  std::cout << "right: " << classifier.forward(vectors).gt(0).eq(labels).sum().item<int>() << " of 4\n";
}
