// Continues a text.
//
//     generate MODEL PROMPT
#include <iostream>

#include <zoo/models/tasks/text_generator.h>

int main(int, char** argv) {
  zoo::TextGenerator model(argv[1]);
  zoo::GenerationSettings settings = model.settings();
  settings.temperature = 0;
  settings.options.max_new_tokens = 8;
  std::cout << argv[2] << model.generate({argv[2]}, settings)[0] << "\n";
}
