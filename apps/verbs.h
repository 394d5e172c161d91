#pragma once

#include "apps/command/verbs.h"

namespace zoo {

// One file a verb: run_models is in models.cpp. Each returns the exit code and throws what main prints.
int run_models(const Arguments& arguments);
int run_demo(const Arguments& arguments);
int run_inspect(const Arguments& arguments);
int run_forward(const Arguments& arguments);
int run_data(const Arguments& arguments);
int run_tokenizer(const Arguments& arguments);
int run_train(const Arguments& arguments);
int run_generate(const Arguments& arguments);
int run_embed(const Arguments& arguments);
int run_classify(const Arguments& arguments);
int run_fill_mask(const Arguments& arguments);
int run_answer(const Arguments& arguments);
int run_translate(const Arguments& arguments);
int run_export(const Arguments& arguments);
int run_bench(const Arguments& arguments);

}  // namespace zoo
