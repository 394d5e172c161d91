// A filter for other programs: labels each line of standard input at once, "label TAB probability TAB line".
//
//     classify MODEL < LINES
#include <iostream>

#include <zoo/models/tasks/classify.h>

int main(int, char** argv) {
  const zoo::TextModel model = zoo::load_text_model(zoo::read_checkpoint_config(argv[1]), {});
  for (std::string line; std::getline(std::cin, line);) {
    try {
      const zoo::ScoredLabel best = *zoo::classify(model, {.texts = {line}}).front().best;
      std::cout << best.label << "\t" << best.score << "\t" << line << std::endl;
    } catch (const std::exception& error) {  // a line without tokens is no reason to stop
      std::cout << "error\t0\t" << zoo::plain_message(error) << std::endl;
    }
  }
}
