#include <set>

#include <nlohmann/json.hpp>

#include "data/base/atomic_file.h"
#include "data/base/crc32c.h"
#include "data/base/error.h"
#include "models/formats/safetensors.h"

namespace zoo {

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata) {
  // Ordered, so that the header lists the tensors in the order of their bytes.
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::map<std::string, std::string> with_checksums = metadata;
  with_checksums[kChecksums] = std::string(kChecksumDigits * (1 + tensors.size()), '0');
  header["__metadata__"] = with_checksums;
  // Its [] would look at all names before.
  nlohmann::ordered_json::object_t::Container& entries = header.get_ref<nlohmann::ordered_json::object_t&>();
  std::set<std::string> names;
  std::size_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const char* dtype = safetensors_name(tensor.scalar_type());
    if (dtype == nullptr)
      throw Error(path, ": tensor '", name, "' has a type that safetensors does not have");
    if (name == "__metadata__") throw Error(path, ": '__metadata__' cannot be the name of a tensor");
    if (!names.insert(name).second) throw Error(path, ": two tensors are named '", name, "'");
    nlohmann::ordered_json entry{{"dtype", dtype},
                                 {"shape", tensor.sizes().vec()},
                                 {"data_offsets", {offset, offset + tensor.nbytes()}}};
    entries.emplace_back(name, std::move(entry));
    offset += tensor.nbytes();
  }
  std::string text = header.dump();
  // The data starts at a multiple of 64 bytes, a cache line, as panels of packed weights need it.
  text.resize((8 + text.size() + 63) / 64 * 64 - 8, ' ');

  AtomicFile file(path);
  std::string length(8, '\0');
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  file.write(length);
  file.write(text);
  // The checksums are known when the tensors are written.
  const std::size_t place = place_of_checksums(text).value();
  std::size_t digits = place;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor contiguous = tensor.detach().cpu().contiguous();
    file.write(contiguous.const_data_ptr(), contiguous.nbytes());
    text.replace(digits += kChecksumDigits, kChecksumDigits,
                 checksum_text(crc32c(contiguous.const_data_ptr(), contiguous.nbytes())));
  }
  text.replace(place, kChecksumDigits, checksum_text(header_checksum(text, place)));
  file.rewrite(length.size(), text);
  file.commit();
}

}  // namespace zoo
