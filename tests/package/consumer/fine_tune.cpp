// Fine-tunes a text classifier on four reviews and saves it as Hugging Face and tzoo read it.
//
//     fine_tune MODEL OUT
#include <iostream>

#include <zoo/models/checkpoint/checkpoint.h>
#include <zoo/models/tasks/text_model.h>
#include <zoo/training/batches/example_batches.h>
#include <zoo/training/model_objective.h>
#include <zoo/training/trainer.h>

int main(int, char** argv) {
  const zoo::LoadedModel loaded = zoo::load_model(argv[1], {.trainable = true});
  const auto tokenizer = zoo::load_tokenizer(argv[1]);
  std::vector<zoo::Example> examples;
  for (const auto& [text, label] : {std::pair("the film was fine", 1),
                                    {"the book was great", 1},
                                    {"the film was dull", 0},
                                    {"the book was bad", 0}})
    examples.push_back({.input_ids = tokenizer->encode(text, zoo::EncodeOptions{}).ids, .labels = {label}});

  zoo::ExampleBatches batches({examples, examples}, {.pad_id = loaded.model->config().pad_token_id},
                              {.batch_size = 4}, /*seed=*/1337, c10::kCPU);
  zoo::ModelObjective objective(loaded.model, batches);
  const auto save = [&](const std::filesystem::path& to) {
    zoo::save_model(*loaded.model, *loaded.family, loaded.head, to);
    tokenizer->save(to);
  };
  zoo::Trainer trainer(objective, zoo::RunDirectory(argv[2], /*keep=*/1), save,
                       {.max_iters = 60, .eval_interval = 30, .schedule = {.peak = 3e-3}});
  zoo::TrainingObserver quiet;
  std::cout << "loss " << trainer.train(quiet).final_val_loss << "\n";
}
