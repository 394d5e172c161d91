#include "apps/verbs/train/train_data.h"

#include <algorithm>
#include <iostream>
#include <span>

#include "apps/command/tokenizer_choice.h"
#include "apps/training/batches/document_encoder.h"
#include "apps/training/batches/encode_examples.h"
#include "data/base/lines.h"
#include "data/examples/conversation_file.h"
#include "models/tasks/translate.h"

namespace zoo {
namespace {

constexpr std::int64_t kSentinels = 100;  // as in T5

Columns columns_of(Task task, ProblemType problem) {
  if (task == Task::kSeq2Seq) return {{"source", "target"}};
  if (task == Task::kClassification)
    return {.required = {"text", "label"},
            .optional = {"text_pair"},
            .list = problem == ProblemType::kMultiLabel ? "label" : ""};
  return kDocuments;
}

TaskTextStyle style_of(Task task, Shape shape) {
  if (traits_of(task).head == Head::kCausalLm) return TaskTextStyle::kPlain;
  if (shape == Shape::kEncoderDecoder) return TaskTextStyle::kEncoderDecoder;
  return shape == Shape::kDecoder ? TaskTextStyle::kPadded : TaskTextStyle::kEncoder;
}

class DatasetReader {
 public:
  DatasetReader(const DataFlags& flags, Shape shape, const KnownModel& known, bool evaluates)
      : flags_(flags),
        task_(flags.task),
        known_(known),
        style_(style_of(task_, shape)),
        evaluates_(evaluates),
        names_(FileColumns::read(flags.columns)),
        limits_{.max_length = static_cast<std::size_t>(flags.block_size),
                .max_target_length = static_cast<std::size_t>(flags.target_length())} {}

  TaskData read() {
    if (evaluates_ && flags_.val_dataset)
      throw UsageError("--val_dataset: what is measured is --dataset; leave it out");
    if (is_token_dataset(flags_.dataset)) return read_token_folder(flags_, known_, style_, evaluates_);
    source_ = read_source(evaluates_ ? evaluated_part(flags_.dataset) : flags_.dataset, task_);
    if (const auto held_out = validation_of(flags_); held_out && !evaluates_)
      validation_ = read_source(*held_out, task_);
    data_.source = source_.name;
    data_.val_source = val_name();
    if (!names_.own.empty() && !source_.is_table())
      throw Error("--columns: ", source_.name, " is no table; expected a .csv, .tsv or .jsonl file");
    if (!evaluates_)
      data_.sha256 = fingerprint(source_.text) + (validation_ ? fingerprint(validation_->text) : "");
    read_examples();
    if (!names_.ignored.empty()) {
      const std::vector<std::string> ignored(names_.ignored.begin(), names_.ignored.end());
      std::cerr << "note: " << source_.name << ": ignoring " << joined(ignored) << ", which the task "
                << name_of(task_) << " does not read\n";
    }
    note_limits();
    return std::move(data_);
  }

 private:
  void read_examples() {
    switch (task_) {
      case Task::kTokenClassification: return read_tagged();
      case Task::kQuestionAnswering: return read_questions();
      case Task::kChat: read_conversations(parse_conversations, encode_conversations); return;
      case Task::kPreference: return read_preferences();
      case Task::kEmbedding:
      case Task::kRanking: return read_sentences();
      case Task::kSeq2Seq:
      case Task::kClassification: return read_records();
      default: return source_.is_table() && task_ == Task::kMlm ? read_records() : read_tokens();
    }
  }

  void note_limits() const {
    const auto note = [](const char* before, std::int64_t count, const std::string& after) {
      if (count > 0) std::cerr << "note: " << before << count << after << "\n";
    };
    const std::string block = " --block_size " + std::to_string(flags_.block_size);
    const std::size_t all = (evaluates_ ? 0 : data_.examples.train.size()) + data_.examples.val.size();
    note("", limits_.without_tools,
         " conversations have tools or calls that the chat template does not write");
    note("the answers of ", limits_.endless,
         " conversations end in no token that ends an answer, so that the model does not learn to stop; the "
         "chat template should write one, such as eos_token, as the assistant's");
    note("", limits_.unusable, " conversations cannot be used and are left out, such as " + limits_.fault);
    note("", limits_.left_out, " conversations have no answer within" + block + " and are left out");
    note("", limits_.equal, " pairs have the same answers within" + block + " and are left out");
    note("", names_.empty_rows, " rows have an empty text and are left out");
    note("", limits_.cut, " of " + std::to_string(all) + " examples are cut to" + block);
  }

  // `text` returns the training text for a tokenizer.
  template <class Text> const Tokenizer& choose(Text text) {
    if (known_.tokenizer) {
      data_.tokenizer = known_.tokenizer;
      require_special_tokens(*data_.tokenizer, style_);
    } else {
      const bool encoder = style_ == TaskTextStyle::kEncoder;
      const std::string choice = flags_.tokenizer.value_or(encoder ? "wordpiece" : "char");
      const auto choose_by = [&](std::string_view learnt) {
        data_.tokenizer =
            choose_task_tokenizer({.choice = choice,
                                   .vocab_size = flags_.vocab_size,
                                   .style = style_,
                                   .sentinels = task_ == Task::kSpanCorruption ? kSentinels : 0},
                                  learnt);
      };
      known_.mixture_text.empty() ? choose_by(text()) : choose_by(known_.mixture_text);
      std::cerr << smaller_vocabulary(choice, flags_.vocab_size, data_.tokenizer->vocab_size());
    }
    return *data_.tokenizer;
  }

  std::vector<Record> records_of(const Source& source) {
    auto records = parse_records(source.text, source.name, columns_of(task_, data_.problem_type), names_);
    if (records.empty()) throw Error(source.name, ": all its texts are empty");
    return records;
  }

  template <class V, class Text> static std::string texts_of(const std::vector<V>& examples, Text text_of) {
    std::string all;
    for (const V& example : examples) all += text_of(example);
    return all;
  }

  static std::string lines_of_texts(const std::vector<Record>& records) {
    return texts_of(records, [](const Record& record) { return record.fields[0] + "\n"; });
  }

  void require_documents(const Source& source) const {
    if (flags_.documents == "pack")
      throw UsageError("--documents pack: ", source.name,
                       source.is_table()
                           ? ": the tokenizer has no token that ends a document"
                           : " is one text; documents are the texts of a table (.jsonl, .tsv, .csv), "
                             "or of token files with an end token after each");
  }

  // Each text of a table is a document: its ids, then the end token. The last tenth validates.
  void read_documents(std::span<const Record> records, const Tokenizer& tokenizer) {
    const auto file_of = [&](std::span<const Record> part, const std::string& name) {
      return TokenFile(encode_documents(part, tokenizer, *tokenizer.eos_id(), name), name);
    };
    if (validation_ && !validation_->is_table()) {
      require_documents(*validation_);
      data_.tokens = TokenDataset{file_of(records, source_.name),
                                  encode_file(tokenizer, validation_->text, validation_->name)};
      return set_bytes(validation_->text.size());
    }
    std::vector<Record> others;
    std::span<const Record> train = records, val = records;
    if (validation_) {
      others = records_of(*validation_);
      val = others;
    } else if (!evaluates_) {
      if (records.size() < 2) throw Error(source_.name, ": one text is too few to train and to validate on");
      const std::size_t held_out = std::max<std::size_t>(1, records.size() / 10);
      train = records.first(records.size() - held_out);
      val = records.last(held_out);
    }
    const TokenFile trained = file_of(train, source_.name);
    data_.tokens = TokenDataset{trained, evaluates_ ? trained : file_of(val, val_name())};
    std::size_t bytes = 0;
    for (const Record& record : val) bytes += record.fields[0].size();
    set_bytes(bytes);
  }

  // The same of files that memory should not hold. Rows of complete documents need the lengths of all.
  void read_large_documents(const Tokenizer& tokenizer) {
    std::size_t bytes = 0;  // of the texts encoded last
    const auto encoded = [&](const Source& source, std::string_view part) {
      DocumentEncoder documents(source.text, source.name, tokenizer, names_);
      const TokenFile tokens = encode_part(tokenizer, documents.encoder(), part, source.name);
      names_ = documents.names();
      bytes = documents.text_bytes();
      return tokens;
    };
    const auto blocks = [&](std::string_view part) {
      const auto documents = std::make_shared<DocumentEncoder>(source_.text, source_.name, tokenizer, names_);
      return text_blocks(source_, part, documents->encoder(), {documents, data_.tokenizer},
                         [&all = *documents](std::string_view text) { all.check(text); });
    };
    const bool divides = !validation_ && !evaluates_;
    const std::string_view text = source_.text;
    const std::size_t end = divides ? DocumentEncoder::validation_begin(text) : text.size();
    const bool packs = flags_.documents == "pack" || evaluates_ ||
                       !divides_often(text, DocumentEncoder(text, source_.name, tokenizer, names_).encoder());
    const TokenFile train = packs ? encoded(source_, text.substr(0, end)) : blocks(text.substr(0, end));
    const TokenFile val = evaluates_ ? train
                          : divides  ? encoded(source_, text.substr(end))
                                     : encoded(*validation_, validation_->text);
    data_.tokens = TokenDataset{train, val};
    set_bytes(bytes);
  }

  // `bytes` of the validation text.
  void set_bytes(std::size_t bytes) {
    if (task_ == Task::kLm)
      data_.bytes_per_token = static_cast<double>(bytes) / static_cast<double>(data_.tokens->val.size());
  }

  // A text whose parts have the ids that they have in the whole; false for another.
  bool read_large_text(const Tokenizer& tokenizer) {
    const std::string_view text = source_.text;
    const std::size_t held_out = validation_ ? 0 : std::min(text.size() / 10, kMostHeldOut);
    const std::size_t end = held_out == 0 ? text.size() : tokenizer.division(text, text.size() - held_out);
    if (!divides_often(text, TextEncoder::of(tokenizer)) || (held_out > 0 && end == text.size()))
      return false;
    std::string lines;
    std::string_view val = validation_ ? validation_->text : text.substr(end);
    if (validation_ && validation_->is_table()) val = lines = lines_of_texts(records_of(*validation_));
    data_.tokens = TokenDataset{text_blocks(source_, text.substr(0, end), data_.tokenizer),
                                encode_file(tokenizer, val, val_name())};
    set_bytes(val.size());
    return true;
  }

  void read_tokens() {
    std::vector<Record> records;
    std::string lines, other_lines;
    std::string_view text = source_.text;
    const auto read_all = [&] {
      records = records_of(source_);
      text = lines = lines_of_texts(records);
    };
    const auto has_lines = [](const Source& source) { return ending_of(source.name) == ".jsonl"; };
    const bool large = task_ == Task::kLm && text.size() > kLargeText && has_lines(source_) &&
                       (!validation_ || has_lines(*validation_));
    if (source_.is_table() && !large) read_all();
    const Tokenizer& tokenizer = choose([&] {
      return large ? text = lines = DocumentEncoder::sample(source_.text, source_.name, names_) : text;
    });
    if (large && tokenizer.eos_id()) return read_large_documents(tokenizer);
    if (large) read_all();
    if (source_.is_table() && task_ == Task::kLm && tokenizer.eos_id())
      return read_documents(records, tokenizer);
    require_documents(source_);
    if (!evaluates_ && !source_.is_table() && text.size() > kLargeText && read_large_text(tokenizer)) return;
    if (!evaluates_ && !validation_) {
      data_.tokens = tokenize_file(tokenizer, text, source_.name);
      set_bytes(text.size() - validation_begin(text));
      return;
    }
    const TokenFile train = encode_file(tokenizer, text, source_.name);
    std::string_view held_out = validation_ ? validation_->text : text;
    if (validation_ && validation_->is_table())
      held_out = other_lines = lines_of_texts(records_of(*validation_));
    data_.tokens =
        TokenDataset{train, validation_ ? encode_file(tokenizer, held_out, validation_->name) : train};
    set_bytes(held_out.size());
  }

  void choose_labels(const std::vector<std::string>& found) {
    data_.label_names =
        zoo::choose_labels(found, flags_.labels, known_.label_names, evaluates_, source_.name);
  }

  void check_labels() {
    if (evaluates_) return;
    require_all_labels(data_.examples.train, data_.label_names, source_.name);
    if (flags_.class_weights == "balanced") {
      const auto weights = balanced_weights(data_.examples.train, data_.label_names.size());
      data_.loss.class_weights = at::tensor(weights, at::kFloat);
    }
  }

  // A regression has one label without a name.
  void choose_class_labels(const std::vector<Record>& records) {
    if (data_.problem_type != ProblemType::kRegression)
      return choose_labels(labels_of(records, data_.problem_type == ProblemType::kMultiLabel));
    if (!flags_.labels.empty()) throw UsageError("--labels: a regression has none");
    data_.label_names =
        known_.label_names.size() == 1 ? known_.label_names : std::vector<std::string>{"LABEL_0"};
  }

  void choose_problem() {
    const bool own = flags_.problem_type == ProblemType::kByLabels;
    data_.problem_type = own ? known_.problem_type : flags_.problem_type;
    if (data_.problem_type == ProblemType::kByLabels && begins_with_list(source_, names_))
      data_.problem_type = ProblemType::kMultiLabel;
    const bool single =
        data_.problem_type == ProblemType::kByLabels || data_.problem_type == ProblemType::kSingleLabel;
    if (!single && (flags_.class_weights != "none" || flags_.label_smoothing > 0))
      throw UsageError("--class_weights, --label_smoothing: only of single_label_classification");
  }

  void read_records() {
    const bool labelled = task_ == Task::kClassification;
    if (labelled) choose_problem();
    const auto parts = divide<Record>(source_, validation_, evaluates_,
                                      [&](const Source& source) { return records_of(source); });
    const auto text_of = [&](const Record& record) {
      std::string text;
      for (std::size_t i = 0; i < record.fields.size(); ++i)
        if (!labelled || i != 1) text += record.fields[i] + "\n";
      return text;
    };
    const Tokenizer& tokenizer =
        choose([&] { return texts_of(parts.train, text_of) + flags_.source_prefix; });
    if (labelled) choose_class_labels(parts.train);
    const Languages languages = languages_of(tokenizer, flags_.source_lang, flags_.target_lang);
    if (languages.code)
      throw UsageError("--target_lang: this tokenizer reads it before a source: --source_prefix '>>",
                       flags_.target_lang, "<< '");
    encode(parts, [&](const std::vector<Record>& records, const std::string& name) {
      if (labelled)
        return encode_classes(records, tokenizer, data_.problem_type, data_.label_names, name, limits_);
      if (task_ == Task::kMlm) return encode_texts(records, tokenizer, name, limits_);
      return encode_pairs(records, tokenizer, *tokenizer.eos_id(), flags_.source_prefix, languages, name,
                          limits_);
    });
    if (labelled && data_.problem_type != ProblemType::kRegression) check_labels();
  }

  void read_tagged() {
    const auto parts = divided(parse_tagged);
    const auto text_of = [](const TaggedSentence& sentence) { return joined(sentence.words, " ") + " \n"; };
    const Tokenizer& tokenizer = choose([&] { return texts_of(parts.train, text_of); });
    choose_labels(labels_of(parts.train));
    encode(parts, [&](const std::vector<TaggedSentence>& sentences, const std::string& name) {
      return encode_tagged(sentences, tokenizer, data_.label_names, name, limits_);
    });
    check_labels();
  }

  void read_questions() {
    const auto parts = divided(parse_questions);
    const auto text_of = [](const Question& each) { return each.question + "\n" + each.context + "\n"; };
    const Tokenizer& tokenizer = choose([&] { return texts_of(parts.train, text_of); });
    encode(parts, [&](const std::vector<Question>& questions, const std::string& name) {
      return encode_questions(questions, tokenizer, name, limits_);
    });
  }

  template <class V, class Encode>
  Splits<V> read_conversations(std::vector<V> (*parse)(std::string_view, const std::string&, FileColumns&),
                               Encode encoded) {
    data_.chat = choose_chat_format(flags_, known_.chat);
    Splits<V> parts = divided(parse);
    const Tokenizer& tokenizer = choose([] { return std::string(); });
    encode(parts, [&](const std::vector<V>& conversations, const std::string& name) {
      return encoded(conversations, *data_.chat, tokenizer, name, limits_);
    });
    return parts;
  }

  void read_preferences() {
    const auto parts = read_conversations(parse_preferences, encode_preferences);
    const auto is_pair = [](const Preference& each) { return each.chosen && each.rejected; };
    data_.has_pairs = is_pair(parts.train.front());
    if (data_.has_pairs != is_pair(parts.val.front()))
      throw Error("--val_dataset: ", val_name(), " has no pairs of answers, or --dataset has none");
  }

  void read_sentences() {
    const bool ranks = task_ == Task::kRanking;
    data_.sentences = divided(ranks ? parse_rankings : parse_sentences);
    if (ranks)
      data_.label_names =
          known_.label_names.size() == 1 ? known_.label_names : std::vector<std::string>{"LABEL_0"};
    data_.tokenizer = known_.tokenizer;
    if (!data_.tokenizer)
      throw Error("--init_from: the model has no tokenizer, which the task ", name_of(task_), " needs");
  }

  template <class V>
  Splits<V> divided(std::vector<V> (*parse)(std::string_view, const std::string&, FileColumns&)) {
    return divide<V>(source_, validation_, evaluates_,
                     [&](const Source& source) { return parse(source.text, source.name, names_); });
  }

  const std::string& val_name() const { return validation_ ? validation_->name : source_.name; }

  template <class V, class Encode> void encode(const Splits<V>& parts, Encode encode) {
    data_.examples.train = encode(parts.train, source_.name);
    data_.examples.val = evaluates_ ? data_.examples.train : encode(parts.val, val_name());
  }

  const DataFlags& flags_;
  Task task_;
  const KnownModel& known_;
  TaskTextStyle style_;
  bool evaluates_;
  FileColumns names_;
  EncodeLimits limits_;
  Source source_;
  std::optional<Source> validation_;
  TaskData data_;
};

}  // namespace

TaskData read_task_data(const DataFlags& flags, Shape shape, const KnownModel& known, bool evaluates) {
  if (const std::vector<MixturePart> parts = mixture_of(flags.dataset); !parts.empty())
    return read_mixture(parts, flags, shape, known, evaluates);
  TaskData data = DatasetReader(flags, shape, known, evaluates).read();
  data.loss.label_smoothing = flags.label_smoothing;
  return data;
}

}  // namespace zoo
