#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <set>
#include <stdexcept>
#include <string>

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "apps/command/output.h"
#include "apps/command/standard_streams.h"
#include "apps/command/visible_text.h"
#include "apps/training/parallel/launchers.h"
#include "apps/verbs/verbs.h"
#include "data/base/field_error.h"
#include "data/base/mapped_file.h"
#include "models/kernels/cpu.h"
#include "models/kernels/spinning.h"
#include "tokenizer/text/utf8.h"

namespace zoo {
namespace {

// A file that is opened later could get the number of a closed stream, and receive the output.
void fill_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // Read only: a write to standard output still fails.
    if (::fcntl(descriptor, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDONLY));
  }
}

void print_safely(const char* text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

// Uses only async-signal-safe calls.
void end_with_a_line(int, siginfo_t* fault, void*) {
  const char* path = MappedFile::path_at(fault->si_addr);
  if (path == nullptr) {  // another cause: the retried access ends as usual
    std::signal(SIGBUS, SIG_DFL);
    return;
  }
  print_safely("error: ");
  print_safely(path);
  print_safely(
      " became shorter while it was in use, or its disk failed; replace a file by renaming a new one\n");
  ::_exit(1);
}

// After this, an access to a mapped file that was truncated, or whose disk fails, is no silent SIGBUS.
void report_mapping_faults() {
  struct sigaction action {};
  action.sa_sigaction = end_with_a_line;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

// Prints one line that starts with "error:", whatever the message contains; long lines are cut.
int fail(int code, std::string_view message) {
  constexpr std::size_t kLongest = 2000;
  message.remove_prefix(std::min(message.find_first_not_of('\n'), message.size()));
  std::string text;
  while (true) {
    const std::size_t end = message.find('\n');
    text += excerpt(message.substr(0, end), kLongest);
    if (end == message.npos) break;
    text += "\n  ";
    message.remove_prefix(end + 1);
  }
  std::cerr << "error: " << text << std::endl;
  return code;
}

std::string_view first_line(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
  return text.substr(0, text.find('\n'));
}

// LibTorch's warnings and the library's: a line each, once, by one of several ranks.
class Notes final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    const bool is_new = said_.insert(warning.msg()).second;
    if (is_new && is_first_rank()) std::cerr << "note: " << first_line(warning.msg()) << std::endl;
  }

 private:
  std::set<std::string> said_;
};

// The size in LibTorch's message of an allocation that failed, on the CPU or a GPU; "" for other messages.
std::string refused_allocation(std::string_view message) {
  constexpr std::string_view kCpu = "you tried to allocate ", kGpu = "Tried to allocate ";
  if (const std::size_t at = message.find(kCpu); at != message.npos)
    return human_bytes(std::atoll(std::string(message.substr(at + kCpu.size())).c_str()));
  const std::size_t at = message.find(kGpu);
  if (at == message.npos) return "";
  const std::string_view size = message.substr(at + kGpu.size());
  return std::string(size.substr(0, size.find('.', size.find('.') + 1)));  // "2.50 GiB. GPU 0 has …"
}

std::string out_of_memory(const std::string& size) {
  return "out of memory: " + size +
         " could not be allocated; take a smaller batch (--batch_size), shorter texts (--block_size, "
         "--max_new_tokens) or a smaller model";
}

int run(const std::vector<std::string>& words) {
  if (!words.empty() && (words[0] == "--version" || words[0] == "-V")) {
    std::cout << "tzoo " << version() << "\n";
    return 0;
  }
  kernels::instruction_set();  // reports a wrong ZOO_KERNELS before any work
  return run_command(words);
}

// The only place that handles exceptions: prints the message and returns the exit code.
int report(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const ReaderLeft&) {
    return 0;
  } catch (const UsageError& error) {
    return fail(2, error.what());
  } catch (const UnfitField& error) {
    return fail(2, flag_message(error));
  } catch (const Error& error) {
    return fail(1, flag_message(error));
  } catch (const c10::Error& error) {
    const std::string_view message = error.what_without_backtrace();
    const std::string size = refused_allocation(message);
    return fail(1, size.empty() ? first_line(message) : out_of_memory(size));
  } catch (const std::bad_alloc&) {
    return fail(1, out_of_memory("more"));
  } catch (const nlohmann::json::exception&) {
    return fail(1, "a JSON file has a value of an unexpected kind");
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(1, error.path1().string() + ": " + error.code().message());
  } catch (const std::logic_error&) {
    return fail(1, "a value in the input is out of range");
  } catch (const std::exception& error) {
    return fail(1, error.what());
  } catch (...) {
    return fail(1, "an exception of an unknown type");
  }
}

int run_and_report(const std::vector<std::string>& words) {
  StandardOutput output;
  const VisibleErrors errors;
  Notes notes;
  const c10::WarningUtils::WarningHandlerGuard guard(&notes);
  try {
    const int code = run(words);
    std::cout.flush();
    return code;
  } catch (...) {
    output.flush_what_is_left();
    return report(std::current_exception());
  }
}

}  // namespace
}  // namespace zoo

int main(int argc, char** argv) {
  zoo::fill_standard_streams();
  zoo::report_mapping_faults();
  std::ios::sync_with_stdio(false);
  zoo::keep_spin_watch();
  const int code = zoo::run_and_report({argv + (argc > 0 ? 1 : 0), argv + argc});
#ifndef ZOO_SANITIZED  // they report leaks when the program ends by itself
  // The destructors of LibTorch's global objects take a tenth of a second, longer than many commands.
  std::fflush(nullptr);
  std::quick_exit(code);
#endif
  return code;
}
