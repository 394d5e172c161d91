#include "models/formats/safetensors.h"

#include "tests/fuzz/file.h"
#include "tests/fuzz/fuzz.h"

void zoo::fuzz::read(std::string_view input) {
  const SafetensorsFile file(write("model.safetensors", input));
  for (const std::string& name : file.names()) file.tensor(name).clone();
}
