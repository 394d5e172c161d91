// Trains a module of your own with the zoo's trainer: a classifier on the vectors of texts.
//
//     own_module MODEL OUT
#include <iostream>

#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/tensor.h>
#include <zoo/models/formats/safetensors.h>
#include <zoo/models/layers/linear.h>
#include <zoo/models/tasks/text_embedder.h>
#include <zoo/training/objective.h>
#include <zoo/training/trainer.h>

struct AboutQuestions : torch::nn::Module {
  explicit AboutQuestions(std::int64_t width) : linear(register_module("linear", zoo::Linear(width, 1))) {}
  at::Tensor forward(const at::Tensor& vectors) { return linear(vectors).squeeze(1); }
  zoo::Linear linear;
};

// Batches and their losses. A batch is a function of its number; here, all are the same.
struct Learning : zoo::Objective {
  Learning(at::Tensor vectors, at::Tensor labels)
      : net(vectors.size(1)), vectors(std::move(vectors)), labels(std::move(labels)) {}

  torch::nn::Module& module() override { return net; }
  zoo::Batch training(std::int64_t) override {
    return {.loss = [this] { return at::binary_cross_entropy_with_logits(net.forward(vectors), labels); }};
  }
  zoo::Batch evaluation(zoo::Split, std::int64_t) override { return training(0); }
  std::int64_t evaluation_batches(zoo::Split) const override { return 1; }

  AboutQuestions net;
  at::Tensor vectors, labels;
};

int main(int, char** argv) {
  const zoo::TextEmbedder embedder(argv[1]);
  Learning learning(embedder.embed({"to be", "not to be", "question", "that is the question"}),
                    at::tensor({0.0F, 0.0F, 1.0F, 1.0F}));
  const auto save = [&](const std::filesystem::path& to) {
    zoo::write_safetensors(to / "model.safetensors", {{"weight", learning.net.linear->weight.detach()}});
  };
  zoo::Trainer trainer(learning, zoo::RunDirectory(argv[2], /*keep=*/1), save,
                       {.max_iters = 100, .eval_interval = 50, .schedule = {.peak = 0.1}});
  zoo::TrainingObserver quiet;
  trainer.train(quiet);
  const at::Tensor right = learning.net.forward(learning.vectors).gt(0).eq(learning.labels);
  std::cout << "right: " << right.sum().item<int>() << " of 4\n";
}
