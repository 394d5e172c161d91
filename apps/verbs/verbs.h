#pragma once

#include <string>
#include <vector>

#include "apps/command/verbs.h"

namespace zoo {

// One source file per verb: run_models is in models.cpp. Each returns the exit code; main prints exceptions.
int run_models(const Arguments& arguments);
int run_pull(const Arguments& arguments);
int run_inspect(const Arguments& arguments);
int run_forward(const Arguments& arguments);
int run_attention(const Arguments& arguments);
int run_lens(const Arguments& arguments);
int run_patch(const Arguments& arguments);
int run_steer(const Arguments& arguments);
int run_ablate(const Arguments& arguments);
int run_data(const Arguments& arguments);
int run_tokenizer(const Arguments& arguments);
int run_train(const Arguments& arguments);
int run_evaluate(const Arguments& arguments);
int run_generate(const Arguments& arguments);
int run_chat(const Arguments& arguments);
int run_embed(const Arguments& arguments);
int run_rank(const Arguments& arguments);
int run_search(const Arguments& arguments);
int run_classify(const Arguments& arguments);
int run_fill_mask(const Arguments& arguments);
int run_answer(const Arguments& arguments);
int run_translate(const Arguments& arguments);
int run_export(const Arguments& arguments);
int run_bench(const Arguments& arguments);
int run_completion(const Arguments& arguments);
int run_man(const Arguments& arguments);

// `tzoo data negatives` and `tzoo tokenizer train`.
int mine_negatives(const Arguments& arguments);
int train_tokenizer(const Arguments& arguments);

/// Runs `tzoo` with these words; the first one names the verb. Returns the exit code.
int run_command(const std::vector<std::string>& words);

/// All verbs with their flags; runs no verb.
CommandOutline outline_of_command();

}  // namespace zoo
