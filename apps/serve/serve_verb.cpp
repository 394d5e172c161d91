#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <sys/stat.h>

#include "apps/command/flags.h"
#include "apps/command/verbs.h"
#include "apps/compute/compute.h"
#include "apps/hub/hub_cache.h"
#include "apps/serve/service.h"
#include "apps/training/stop_signal.h"
#include "data/base/environment.h"
#include "data/base/error.h"
#include "models/kernels/cpu.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

// A model as --model names it: DIR or NAME=DIR.
struct GivenModel {
  std::string name, path;  // the name by which requests choose it; as find_model() found it
};

// The path's last names, `count` of them.
std::string last_folders(const std::string& path, int count) {
  fs::path above = fs::weakly_canonical(path);
  std::string name = above.filename().string();
  while (--count > 0 && (above = above.parent_path()).has_filename())
    name = above.filename().string() + "/" + name;
  return name;
}

// Names folders of one name by as many folders above them as tell them apart.
void tell_apart(const std::vector<GivenModel*>& models) {
  constexpr int kMost = 64;
  std::set<std::string> names;
  for (int count = 2; count <= kMost && names.size() < models.size(); ++count) {
    names.clear();
    for (GivenModel* model : models) names.insert(model->name = last_folders(model->path, count));
  }
}

// Each has a name of its own: the given one, else the folder's, with the folders above it where two would be
// the same ("a/final", "b/final"). Throws UsageError for a model or a name that is given twice, and Error as
// find_model().
std::vector<GivenModel> name_models(const std::vector<std::string>& given) {
  std::vector<GivenModel> models;
  std::vector<std::size_t> unnamed;
  for (const std::string& each : given) {
    const std::size_t sign = fs::exists(each) ? each.npos : each.find('=');
    const std::string path = find_model(sign == each.npos ? each : each.substr(sign + 1));
    if (sign == each.npos) unnamed.push_back(models.size());
    models.push_back({sign == each.npos ? model_name(path) : each.substr(0, sign), path});
    if (models.back().name.empty()) throw UsageError("--model ", each, ": expected NAME=DIR");
  }
  for (std::size_t i : unnamed) {
    std::vector<GivenModel*> equal;
    for (std::size_t j : unnamed)
      if (models[j].name == models[i].name) equal.push_back(&models[j]);
    if (equal.size() > 1) tell_apart(equal);
  }
  std::set<std::string> names;
  for (const GivenModel& model : models)
    if (!names.insert(model.name).second)
      throw UsageError("--model: two models are called '", model.name,
                       "'; give one of them another name, NAME=DIR");
  return models;
}

constexpr std::size_t kLongestKey = 4096;

// The key without the end of its line.
std::string checked_key(std::string key, const std::string& source) {
  while (key.ends_with('\n') || key.ends_with('\r')) key.pop_back();
  const bool good = !key.empty() && key.size() <= kLongestKey &&
                    std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7F; });
  if (!good)
    throw UsageError(source, ": a key is one line of 1 to ", kLongestKey,
                     " letters, digits and signs of ASCII, without blanks");
  return key;
}

std::string read_key(const std::string& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
    throw Error("--api_key_file: ", file, " is not there or no regular file");
  std::ifstream in(file, std::ios::binary);
  std::string key(kLongestKey + 3, '\0');
  in.read(key.data(), static_cast<std::streamsize>(key.size()));
  if (!in.is_open() || in.bad()) throw Error("--api_key_file: cannot read ", file);
  key.resize(static_cast<std::size_t>(in.gcount()));
  if ((status.st_mode & (S_IRGRP | S_IROTH)) != 0)
    std::cerr << "note: others can read " << file << "; 'chmod 600 " << file << "' keeps the key\n";
  return key;
}

// The key that requests must show: `given` (--api_key), else the line in `file` (--api_key_file), else that
// of the environment variable TZOO_API_KEY; empty: none. Notes a file that others can read. Throws
// UsageError for two flags, and for a key that no header can hold; Error naming a file that cannot be read.
std::string api_key_of(const std::string& given, const std::string& file) {
  if (!given.empty() && !file.empty())
    throw UsageError("--api_key and --api_key_file: give only one of them");
  if (!given.empty()) return checked_key(given, "--api_key");
  if (!file.empty()) return checked_key(read_key(file), "--api_key_file " + file);
  const std::string key = environment("TZOO_API_KEY");
  return key.empty() ? "" : checked_key(key, "TZOO_API_KEY");
}

struct ServeFlags {
  std::vector<std::string> models, loras;
  fs::path adapter;
  AccessRules rules{.host = "127.0.0.1"};
  std::int64_t port = 8080;
  std::string api_key_file;
  bool no_api_key = false;
  std::int64_t queue = 64, cache_mb = 512, connections = 128, max_body_kb = 4096;
  double request_seconds = 20;
  ServeOptions options;
};

void add_access(Flags& flags, ServeFlags& values) {
  flags.group("Access");
  flags.add("host", values.rules.host,
            "address to listen on; another than this machine's own needs --api_key",
            {.placeholder = "ADDRESS"});
  flags.add("port", values.port, "port to listen on; 0: a free one, which is printed", between(0, 65535));
  flags.add("api_key", values.rules.api_key,
            "requests need 'Authorization: Bearer KEY'; other users of this machine see it in the list of "
            "processes, unlike that of --api_key_file or the environment variable TZOO_API_KEY",
            {.placeholder = "KEY"});
  flags.add("api_key_file", values.api_key_file, "file whose only line is the key", {.placeholder = "FILE"});
  flags.add("no_api_key", values.no_api_key,
            "listen on another address without a key: everybody who reaches it may ask");
  flags.add("allow_origin", values.rules.allowed_origins,
            "origin of a web page that may use the server, such as http://localhost:3000",
            {.placeholder = "URL"});
  flags.add("allow_host", values.rules.allowed_hosts,
            "further name by which clients reach this server (Host header)", {.placeholder = "NAME"});
}

void add_limits(Flags& flags, ServeFlags& values) {
  flags.group("Limits");
  flags.add("parallel", values.options.batch.slots, "texts that are written at once", between(1, 1024));
  flags.add("context", values.options.batch.context,
            "tokens of a text, prompt included, or of one to translate; 0: what the model reads, at most "
            "4096. The KV cache has room for --parallel texts of it",
            at_least(0));
  flags.add("cache_mb", values.cache_mb,
            "megabytes of KV cache, beyond that of --parallel texts, for texts that have ended, so that a "
            "conversation that goes on is not read again; the oldest go first",
            between(0, 1 << 20));
  flags.add("cache_file", values.options.cache_file,
            "file that keeps the KV cache of the one model from one start of the server to the next: written "
            "at its end, up to --cache_mb and the room of --parallel texts",
            {.placeholder = "FILE"});
  flags.add("piece", values.options.batch.piece,
            "tokens of prompts that are read between two tokens of the texts in progress", at_least(1));
  flags.add("queue", values.queue, "requests that may wait; further ones are answered 429", at_least(1));
  flags.add("max_new_tokens", values.options.most_new_tokens,
            "most new tokens of a text; 0: what the context leaves", at_least(0));
  flags.add("seconds", values.options.seconds, "most seconds for an answer", above(0));
  flags.add("look_gb", values.options.look_gb,
            "most gigabytes of a model's float32 weights, which the page loads beside those that answer to "
            "look inside it; 0: it looks into none",
            at_least(0));
  flags.add("connections", values.connections, "most connections at once", between(1, 512));
  flags.add("max_body_kb", values.max_body_kb, "most kilobytes of a request's body", between(1, 1048576));
  flags.add("request_seconds", values.request_seconds, "most seconds in which a request must have arrived",
            above(0));
}

bool read_flags(const Arguments& arguments, ServeFlags& values) {
  Flags flags(
      arguments.command,
      "Answers requests over HTTP as OpenAI's API does, so that its clients work with local models. Requests "
      "share a batch: each gets the ids that it would get alone.");
  flags.group("Models");
  flags.add("model", values.models,
            "checkpoint directory, GGUF file, or name of a model that tzoo pull has downloaded; requests "
            "choose by the folder's name, or by NAME of NAME=DIR; the first one is the default",
            {.placeholder = "DIR", .leads = true, .required = true});
  flags.add(
      "adapter", values.adapter,
      "directory of a PEFT adapter (LoRA, rsLoRA, DoRA) that is merged into the weights of the one model",
      {.placeholder = "DIR"});
  flags.add(
      "lora", values.loras,
      "PEFT adapter (LoRA, rsLoRA) that requests choose by NAME; all adapters and the model itself share its "
      "packed weights and a batch",
      {.placeholder = "NAME=DIR"});
  flags.add("run", values.options.run,
            "directory of a training run, whose loss the page shows as it falls; its models are given with "
            "--model",
            {.placeholder = "DIR"});
  flags.choice(
      "generation_defaults", values.options.generation_defaults, {"file", "ours"},
      "file: requests begin with what generation_config.json says; ours: with OpenAI's defaults alone");
  flags.add_weights(values.options.compute);
  flags.add_cache(values.options.compute);
  add_access(flags, values);
  add_limits(flags, values);
  flags.add_compute(values.options.compute);
  flags.example("tzoo serve runs/kjv/final");
  if (!flags.parse(arguments)) return false;
  if (!values.adapter.empty() && values.models.size() != 1)
    throw UsageError("--adapter: is of one model, and there are ", values.models.size());
  if (!values.loras.empty() && values.models.size() != 1)
    throw UsageError("--lora: is of one model, and there are ", values.models.size());
  if (!values.options.cache_file.empty() && values.models.size() != 1)
    throw UsageError("--cache_file: is of one model, and there are ", values.models.size());
  values.options.draws_seeds = !flags.given("seed");
  return true;
}

// As browsers write it: without a path, capital letters or the scheme's usual port.
bool is_origin(const std::string& text) {
  const std::size_t scheme = text.find("://");
  if (scheme == text.npos || scheme == 0) return text == "null";
  const std::string place = text.substr(scheme + 3);
  const auto is_odd = [](unsigned char c) { return c <= ' ' || std::isupper(c) != 0; };
  return host_name(place) && place.find('/') == place.npos && std::ranges::none_of(text, is_odd) &&
         !(text.starts_with("http:") && place.ends_with(":80")) &&
         !(text.starts_with("https:") && place.ends_with(":443"));
}

// Reads the key, and the hosts as those of a Host header are.
void check_access(ServeFlags& flags) {
  for (std::string& host : flags.rules.allowed_hosts) {
    const std::optional<std::string> name = host_name(host);
    if (!name) throw UsageError("--allow_host ", host, ": expected the name of a host, such as box.local");
    host = *name;
  }
  for (const std::string& origin : flags.rules.allowed_origins)
    if (!is_origin(origin))
      throw UsageError("--allow_origin ", origin,
                       ": expected an origin as browsers send it, such as http://localhost:3000");
  if (flags.no_api_key && !(flags.rules.api_key.empty() && flags.api_key_file.empty()))
    throw UsageError("--no_api_key and --api_key", flags.rules.api_key.empty() ? "_file" : "",
                     ": give only one of them");
  if (!flags.no_api_key) flags.rules.api_key = api_key_of(flags.rules.api_key, flags.api_key_file);
  if (is_loopback(flags.rules.host) || !flags.rules.api_key.empty() || flags.no_api_key) return;
  throw UsageError("--host ", flags.rules.host,
                   ": other machines would reach the server; give --api_key_file FILE or --api_key KEY, or "
                   "--no_api_key if that is meant");
}

std::string digest_of(const Tokenizer& tokenizer) {
  std::string tokens;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) tokens += tokenizer.token_text(id) + "\n";
  return std::to_string(std::hash<std::string>()(tokens));
}

void load_models(const ServeFlags& flags, ServerState& state) {
  state.options = flags.options;
  state.options.batch.queue = static_cast<std::size_t>(flags.queue);
  state.thread.set_most_jobs(static_cast<std::size_t>(flags.queue) + 1);  // one of them computes
  state.options.batch.held_bytes = static_cast<std::size_t>(flags.cache_mb) << 20;
  for (const GivenModel& given : name_models(flags.models)) {
    state.models.push_back(load_served_model({given.path, flags.adapter}, state.options));
    ServedModel& model = *state.models.back();
    model.name = given.name;
    model.vocabulary = digest_of(*model.tokenizer);
    if (model.writing) state.thread.add(*model.writing->batch);
  }
  for (const std::string& lora : flags.loras) {
    const std::size_t sign = lora.find('=');
    if (sign == lora.npos || sign == 0) throw UsageError("--lora ", lora, ": expected NAME=DIR");
    const std::string name = lora.substr(0, sign);
    if (std::ranges::count(state.models, name, &ServedModel::name) > 0)
      throw UsageError("--lora ", lora, ": another model is called '", name, "'");
    state.models.push_back(
        load_adapted_model(*state.models.front(), find_model(lora.substr(sign + 1)), state.options));
    state.models.back()->name = name;
  }
}

// What the bytes of a model's KV cache depend on.
std::string cache_mark(const ComputeOptions& compute, const ServedModel& model) {
  std::string mark = version();
  for (const std::string& each : {std::string(kernels::name_of(kernels::instruction_set())), compute.dtype,
                                  compute.weights, compute.cache, model.stamp})
    mark += " " + each;
  return mark;
}

ContinuousBatch& cached_batch(const ServerState& state) {
  if (!state.models.front()->writing)
    throw UsageError("--cache_file: ", state.models.front()->name, " writes no texts");
  return *state.models.front()->writing->batch;
}

void serve(const ServeFlags& flags, ServerState& state) {
  AccessRules rules = flags.rules;
  rules.body_bytes = static_cast<std::size_t>(flags.max_body_kb) << 10;
  WebServer server(
      {.body_bytes = rules.body_bytes,
       .connections = static_cast<std::size_t>(flags.connections),
       .request_seconds = flags.request_seconds},
      [&](const WebRequest& request) { return refuse_request(state, rules, request); },
      [&](const WebRequest& request) { return answer_request(state, rules, request); });
  if (!flags.options.run.empty()) watched_run(flags.options.run);  // a wrong directory is told at once
  // OpenMP counts the helpers of each thread that lives, and its threads sleep instead of spinning when they
  // are more than the processors: so the thread that loads ends before the one that answers begins.
  std::async(std::launch::async, [&] {
    apply_threads(flags.options.compute);
    load_models(flags, state);
  }).get();
  std::string mark;
  const auto in_cache_file = [&](const auto& work) {
    ContinuousBatch& batch = cached_batch(state);
    try {
      return work(batch, flags.options.cache_file);
    } catch (const Error& error) {
      throw Error("--cache_file: ", error.what());
    }
  };
  if (!flags.options.cache_file.empty()) {
    mark = cache_mark(flags.options.compute, *state.models.front());
    const bool is_read = in_cache_file([&](ContinuousBatch& batch, const fs::path& path) {
      if (!fs::exists(path)) batch.save(path, mark);  // what fails is told at once
      return batch.load(path, mark);
    });
    if (!is_read)
      std::cerr << "note: " << flags.options.cache_file.string()
                << " is of another model, version or setting; it is not read, and replaced at the end\n";
  }
  const int port = server.bind(flags.rules.host, static_cast<int>(flags.port));
  // LibTorch's number of threads is each thread's own.
  state.thread.start([&] { apply_threads(flags.options.compute); });
  const StopSignal stop;
  std::thread answering([&] { server.run(); });
  const std::string host = rules.host.find(':') == std::string::npos ? rules.host : "[" + rules.host + "]";
  std::cerr << "listening on http://" << host << ":" << port << " (" << state.models.size()
            << (state.models.size() == 1 ? " model)" : " models)") << std::endl;
  while (StopSignal::received() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  state.stopping = true;
  server.stop();
  answering.join();
  state.thread.stop();
  if (!mark.empty())
    in_cache_file([&](ContinuousBatch& batch, const fs::path& path) { batch.save(path, mark); });
}

}  // namespace

int run_serve(const Arguments& arguments) {
  ServeFlags flags;
  if (!read_flags(arguments, flags)) return 0;
  check_access(flags);
  ServerState state;
  serve(flags, state);
  return 0;
}

}  // namespace zoo
