#pragma once

#include <string>
#include <vector>

#include "apps/command/outline.h"
#include "apps/command/verbs.h"

namespace zoo {

// One file a verb: run_models is in models.cpp. Each returns the exit code and throws what main prints.
int run_models(const Arguments& arguments);
int run_demo(const Arguments& arguments);
int run_inspect(const Arguments& arguments);
int run_forward(const Arguments& arguments);
int run_attention(const Arguments& arguments);
int run_data(const Arguments& arguments);
int run_tokenizer(const Arguments& arguments);
int run_train(const Arguments& arguments);
int run_evaluate(const Arguments& arguments);
int run_generate(const Arguments& arguments);
int run_embed(const Arguments& arguments);
int run_classify(const Arguments& arguments);
int run_fill_mask(const Arguments& arguments);
int run_answer(const Arguments& arguments);
int run_translate(const Arguments& arguments);
int run_export(const Arguments& arguments);
int run_bench(const Arguments& arguments);
int run_completion(const Arguments& arguments);
int run_man(const Arguments& arguments);

/// Runs `tzoo` with these words: the verb that the first one names. Returns the exit code.
int run_command(const std::vector<std::string>& words);

/// All verbs with their flags. No verb runs for it.
CommandOutline outline_of_command();

}  // namespace zoo
