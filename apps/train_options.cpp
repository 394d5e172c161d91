#include "apps/train_options.h"

#include "apps/training/disagreement_loss.h"
#include "apps/training/schedule.h"

namespace zoo {
namespace {

void declare_run(Flags& flags, TrainFlags& v) {
  flags.group("Run");
  flags.add_recipes();
  flags.choice("task", v.task, {"lm"}, "what is learnt: lm predicts the next token");
  flags.add("dataset", v.dataset,
            "a corpus of 'tzoo data list', a UTF-8 text, or a folder with train.bin and val.bin");
  flags.add("tokenizer", v.tokenizer,
            "char, byte, byte_bpe, wordpiece, sentencepiece, or a folder that holds a tokenizer");
  flags.add("vocab_size", v.vocab_size, "size of a vocabulary learnt from the dataset; not for char and byte")
      .at_least(8);
  flags.add("out_dir", v.out_dir, "where the run keeps its checkpoints, metrics and plot")
      .required()
      .placeholder("DIR");
  flags.add("init_from", v.init_from,
            "scratch, resume (the run in out_dir), or a checkpoint folder to start from");
  flags.add("overwrite", v.overwrite, "let init_from scratch replace a run in out_dir");
}

void declare_model(Flags& flags, TrainFlags& v) {
  flags.group("Model (a checkpoint brings its own)");
  flags.add("model_type", v.model_type, "the family");
  flags.add("n_layer", v.n_layer, "blocks").at_least(1);
  flags.add("n_head", v.n_head, "attention heads; n_embd must be a multiple").at_least(1);
  flags.add("n_embd", v.n_embd, "width of the residual stream").at_least(1);
  flags.add("block_size", v.block_size, "tokens in a training example, and the longest context").at_least(1);
  flags.choice("activation", v.activation, {"gelu_new", "gelu", "relu", "silu"},
               "of the feed-forward layers");
  flags.add("dropout", v.dropout, "rate on embeddings, attention weights and sublayers").between(0, 0.99);
  flags.add("bias", v.bias, "biases in projections and norms");
}

void declare_optimisation(Flags& flags, TrainFlags& v) {
  flags.group("Optimisation");
  flags.add("batch_size", v.batch_size, "examples in a micro batch").at_least(1);
  flags.add("gradient_accumulation_steps", v.gradient_accumulation_steps, "micro batches in an update")
      .at_least(1);
  flags.add("max_iters", v.max_iters, "updates").at_least(0);
  flags.add("learning_rate", v.learning_rate, "the highest").above(0);
  flags.add("min_lr", v.min_lr, "the learning rate at the end of the decay").at_least(0);
  flags.add("warmup_iters", v.warmup_iters, "updates until the learning rate is at its highest").at_least(0);
  flags.add("lr_decay_iters", v.lr_decay_iters, "where the decay ends; max_iters unless given").at_least(0);
  flags.choice("lr_schedule", v.lr_schedule, schedule_names(), "how the learning rate falls");
  flags.add("decay_lr", v.decay_lr, "false: keep learning_rate throughout, without warm-up (nanoGPT's flag)");
  flags.add("beta1", v.beta1, "AdamW: decay of the first moment").between(0, 0.999999);
  flags.add("beta2", v.beta2, "AdamW: decay of the second moment").between(0, 0.999999);
  flags.add("weight_decay", v.weight_decay, "AdamW: of matrices and embeddings").at_least(0);
  flags.choice(
      "disagreement", v.disagreement, disagreement_names(),
      "a penalty on heads that are alike in what they attend to, in their values or in their outputs");
  flags.add("disagreement_weight", v.disagreement_weight, "of that penalty beside the loss").at_least(0);
  flags.add("grad_clip", v.grad_clip, "largest norm of the gradient; 0: not clipped").at_least(0);
}

void declare_record(Flags& flags, TrainFlags& v) {
  flags.group("Evaluation and checkpoints");
  flags.add("eval_interval", v.eval_interval, "updates between evaluations, and checkpoints").at_least(1);
  flags.add("eval_iters", v.eval_iters, "batches of each split in an evaluation").at_least(1);
  flags.add("log_interval", v.log_interval, "updates between lines of metrics.jsonl").at_least(1);
  flags.add("always_save_checkpoint", v.always_save_checkpoint,
            "a step checkpoint at every evaluation; false: only where the validation loss is the best yet");
  flags.add("keep_checkpoints", v.keep_checkpoints, "step checkpoints that stay; 0: all").at_least(0);
}

}  // namespace

void declare(Flags& flags, TrainFlags& values) {
  declare_run(flags, values);
  declare_model(flags, values);
  declare_optimisation(flags, values);
  declare_record(flags, values);
  flags.add_compute(values.compute);
  flags.example("tzoo train --recipe kjv-char --out_dir runs/kjv");
}

}  // namespace zoo
