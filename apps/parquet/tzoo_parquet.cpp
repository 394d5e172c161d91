// tzoo-parquet FILE: the rows of a file in Parquet, or in Arrow's streaming format if it ends in .arrow, as
// JSON, an object a line. tzoo runs it, a program of its own, so that Arrow is loaded only where such a file
// is read.

#include <algorithm>
#include <iostream>

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <nlohmann/json.hpp>
#include <parquet/arrow/reader.h>

namespace {

using arrow::Type;
using json = nlohmann::ordered_json;

template <class V> V value_of(arrow::Result<V> result) {
  if (!result.ok()) throw std::runtime_error(result.status().message());
  return std::move(result).ValueUnsafe();
}

bool is_list(const arrow::DataType& type) {
  return type.id() == Type::LIST || type.id() == Type::LARGE_LIST || type.id() == Type::FIXED_SIZE_LIST;
}

// False for types that JSON has not, such as the bytes of pictures.
bool has_json(const arrow::DataType& type) {
  if (is_list(type) || type.id() == Type::STRUCT)
    return std::ranges::all_of(type.fields(), [](const auto& field) { return has_json(*field->type()); });
  if (type.id() == Type::DICTIONARY)
    return has_json(*static_cast<const arrow::DictionaryType&>(type).value_type());
  return type.id() == Type::NA || type.id() == Type::BOOL || arrow::is_integer(type.id()) ||
         type.id() == Type::FLOAT || type.id() == Type::DOUBLE || arrow::is_string(type.id()) ||
         type.id() == Type::STRING_VIEW;
}

template <class Scalar> const Scalar& as(const arrow::Scalar& value) {
  return static_cast<const Scalar&>(value);
}

json json_of(const arrow::Scalar& value) {
  if (!value.is_valid) return nullptr;
  if (is_list(*value.type)) {
    const arrow::Array& elements = *as<arrow::BaseListScalar>(value).value;
    json list = json::array();
    for (std::int64_t i = 0; i < elements.length(); ++i)
      list.push_back(json_of(*value_of(elements.GetScalar(i))));
    return list;
  }
  switch (value.type->id()) {
    case Type::BOOL: return as<arrow::BooleanScalar>(value).value;
    case Type::INT8: return as<arrow::Int8Scalar>(value).value;
    case Type::INT16: return as<arrow::Int16Scalar>(value).value;
    case Type::INT32: return as<arrow::Int32Scalar>(value).value;
    case Type::INT64: return as<arrow::Int64Scalar>(value).value;
    case Type::UINT8: return as<arrow::UInt8Scalar>(value).value;
    case Type::UINT16: return as<arrow::UInt16Scalar>(value).value;
    case Type::UINT32: return as<arrow::UInt32Scalar>(value).value;
    case Type::UINT64: return as<arrow::UInt64Scalar>(value).value;
    case Type::FLOAT: return as<arrow::FloatScalar>(value).value;
    case Type::DOUBLE: return as<arrow::DoubleScalar>(value).value;
    case Type::DICTIONARY: return json_of(*value_of(as<arrow::DictionaryScalar>(value).GetEncodedValue()));
    case Type::STRUCT: break;
    default: return std::string(as<arrow::BaseBinaryScalar>(value).view());
  }
  json object = json::object();
  for (int i = 0; i < value.type->num_fields(); ++i)
    object[value.type->field(i)->name()] =
        json_of(*as<arrow::StructScalar>(value).value[static_cast<std::size_t>(i)]);
  return object;
}

// The names of the classes of a column, or of its lists' elements, which Hugging Face's datasets writes
// beside the numbers.
std::vector<std::string> class_names(const arrow::Schema& schema, const std::string& column) {
  const auto& metadata = schema.metadata();
  const int index = metadata ? metadata->FindKey("huggingface") : -1;
  if (index < 0) return {};
  const json known = json::parse(metadata->value(index), nullptr, /*allow_exceptions=*/false);
  const json::json_pointer path = json::json_pointer("/info/features") / column;
  if (!known.is_object() || !known.contains(path)) return {};
  json feature = known[path];
  while (feature.is_object() && feature.contains("feature")) feature = json(feature["feature"]);
  if (!feature.is_object() || feature.value("_type", "") != "ClassLabel") return {};
  return feature.value("names", std::vector<std::string>());
}

// Numbers become names, in lists, too; datasets writes -1 for what has no label.
void name_classes(json& value, const std::vector<std::string>& names) {
  if (value.is_array())
    for (json& element : value) name_classes(element, names);
  if (value.is_number_integer())
    value = value >= 0 && value < names.size() ? json(names[value.get<std::size_t>()]) : json();
}

void write_rows(const std::string& path) {
  const auto file = value_of(arrow::io::ReadableFile::Open(path));
  std::unique_ptr<parquet::arrow::FileReader> reader;
  std::shared_ptr<arrow::RecordBatchReader> batches;
  if (path.ends_with(".arrow")) {
    batches = value_of(arrow::ipc::RecordBatchStreamReader::Open(file));
  } else {
    reader = value_of(parquet::arrow::OpenFile(file, arrow::default_memory_pool()));
    reader->set_batch_size(4096);
    batches = value_of(reader->GetRecordBatchReader());
  }
  const auto schema = batches->schema();
  struct Column {
    int index;
    std::string name;
    std::vector<std::string> classes;
  };
  std::vector<Column> columns;
  for (int i = 0; i < schema->num_fields(); ++i) {
    const auto& field = schema->field(i);
    if (has_json(*field->type())) columns.push_back({i, field->name(), class_names(*schema, field->name())});
    else
      std::cerr << "note: " << path << ": leaving out the column " << field->name() << ", which is "
                << field->type()->ToString() << "\n";
  }
  std::int64_t number = 0;
  for (auto batch = value_of(batches->Next()); batch; batch = value_of(batches->Next())) {
    for (std::int64_t row = 0; row < batch->num_rows(); ++row) {
      json object = json::object();
      for (const auto& [index, name, names] : columns) {
        json value = json_of(*value_of(batch->column(index)->GetScalar(row)));
        if (!names.empty()) name_classes(value, names);
        object[name] = std::move(value);
      }
      ++number;
      try {
        std::cout << object.dump() << "\n";
      } catch (const json::exception&) {
        throw std::runtime_error("row " + std::to_string(number) + " holds text that is not UTF-8");
      }
    }
  }
  if (!std::cout.flush()) throw std::runtime_error("its rows cannot be written; the disk may be full");
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::cerr << "usage: tzoo-parquet FILE\nPrints the rows of a Parquet or .arrow file as JSON, an object a "
                 "line.\n";
    return 2;
  }
  std::ios::sync_with_stdio(false);
  try {
    write_rows(words[1]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << words[1] << ": " << error.what() << "\n";
    return 1;
  }
}
