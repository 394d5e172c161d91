// A program of another project: it has only the installed package.
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "data/sampler.h"
#include "data/token_file.h"
#include "tokenizer/char_tokenizer.h"

int main() {
  const std::string text = "to be, or not to be, that is the question";
  const zoo::CharTokenizer tokenizer = zoo::CharTokenizer::train(text);
  if (tokenizer.decode(tokenizer.encode(text)) != text) return 1;

  constexpr std::int64_t kBlock = 8, kBatch = 2;
  const zoo::RandomBlockSampler sampler(zoo::TokenFile(tokenizer.encode(text), "the text"), kBlock, kBatch,
                                        {});
  std::vector<std::int64_t> inputs(kBlock * kBatch), targets(kBlock * kBatch);
  sampler.fill(0, inputs, targets);
  if (targets[0] != inputs[1]) return 1;

  std::cout << "the zoo works from outside\n";
}
