#include "apps/serve/serve_verb.h"

#include <chrono>
#include <future>
#include <iostream>
#include <thread>

#include "apps/command/flags.h"
#include "apps/compute/threads.h"
#include "apps/serve/api_key.h"
#include "apps/serve/endpoints/watched_run.h"
#include "apps/serve/model_names.h"
#include "apps/serve/service.h"
#include "apps/training/stop_signal.h"
#include "data/base/error.h"

namespace zoo {
namespace {

struct ServeFlags {
  std::vector<std::string> models;
  std::string host = "127.0.0.1";
  std::int64_t port = 8080;
  std::string api_key, api_key_file;
  bool no_api_key = false;
  std::vector<std::string> allow_origin, allow_host;
  std::int64_t parallel = 8, context = 0, piece = 64, queue = 64, max_new_tokens = 0;
  std::int64_t connections = 128, max_body_kb = 4096;
  double request_seconds = 20, seconds = 600;
  ServeOptions options;
};

void add_access(Flags& flags, ServeFlags& values) {
  flags.group("Access");
  flags.add("host", values.host, "address to listen on; another than this machine's own needs --api_key")
      .placeholder("ADDRESS");
  flags.add("port", values.port, "port to listen on; 0: a free one, which is printed").between(0, 65535);
  flags
      .add("api_key", values.api_key,
           "requests need 'Authorization: Bearer KEY'; other users of this machine see it in the list of "
           "processes, unlike that of --api_key_file or the environment variable TZOO_API_KEY")
      .placeholder("KEY");
  flags.add("api_key_file", values.api_key_file, "file whose only line is the key").placeholder("FILE");
  flags.add("no_api_key", values.no_api_key,
            "listen on another address without a key: everybody who reaches it may ask");
  flags
      .add("allow_origin", values.allow_origin,
           "origin of a web page that may use the server, such as http://localhost:3000")
      .placeholder("URL");
  flags.add("allow_host", values.allow_host, "further name by which clients reach this server (Host header)")
      .placeholder("NAME");
}

void add_limits(Flags& flags, ServeFlags& values) {
  flags.group("Limits");
  flags.add("parallel", values.parallel, "texts that are written at once").between(1, 1024);
  flags
      .add("context", values.context,
           "tokens of a text, prompt included, or of one to translate; 0: what the model reads, at most "
           "4096. The KV cache has room for --parallel texts of it")
      .at_least(0);
  flags
      .add("piece", values.piece,
           "tokens of prompts that are read between two tokens of the texts in progress")
      .at_least(1);
  flags.add("queue", values.queue, "requests that may wait; further ones are answered 429").at_least(1);
  flags.add("max_new_tokens", values.max_new_tokens, "most new tokens of a text; 0: what the context leaves")
      .at_least(0);
  flags.add("seconds", values.seconds, "most seconds for an answer").above(0);
  flags
      .add("look_gb", values.options.look_gb,
           "most gigabytes of a model's float32 weights, which the page loads beside those that answer to "
           "look "
           "inside it; 0: it looks into none")
      .at_least(0);
  flags.add("connections", values.connections, "most connections at once").between(1, 512);
  flags.add("max_body_kb", values.max_body_kb, "most kilobytes of a request's body").between(1, 1048576);
  flags.add("request_seconds", values.request_seconds, "most seconds in which a request must have arrived")
      .above(0);
}

bool read_flags(const Arguments& arguments, ServeFlags& values) {
  Flags flags(
      arguments.command,
      "Answers requests over HTTP as OpenAI's API does, so that its clients work with local models. Requests "
      "share a batch: each gets the ids that it would get alone.");
  flags.group("Models");
  flags
      .add("model", values.models,
           "checkpoint directory, GGUF file, or name of a model that tzoo pull has downloaded; requests "
           "choose by the folder's name, or by NAME of NAME=DIR; the first one is the default")
      .leads()
      .placeholder("DIR")
      .required();
  flags
      .add("run", values.options.run,
           "directory of a training run, whose loss the page shows as it falls; its models are given with "
           "--model")
      .placeholder("DIR");
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
  values.options.draws_seeds = !flags.given("seed");
  return true;
}

// Reads the key.
void check_access(ServeFlags& flags) {
  if (flags.no_api_key && !flags.api_key.empty())
    throw UsageError("--no_api_key and --api_key: give only one of them");
  if (flags.no_api_key && !flags.api_key_file.empty())
    throw UsageError("--no_api_key and --api_key_file: give only one of them");
  if (!flags.no_api_key) flags.api_key = api_key_of(flags.api_key, flags.api_key_file);
  if (is_loopback(flags.host) || !flags.api_key.empty() || flags.no_api_key) return;
  throw UsageError("--host ", flags.host,
                   ": other machines would reach the server; give --api_key_file FILE or --api_key KEY, or "
                   "--no_api_key if that is meant");
}

void load_models(const ServeFlags& flags, ServerState& state) {
  state.options = flags.options;
  state.options.batch = {.slots = flags.parallel,
                         .context = flags.context,
                         .piece = flags.piece,
                         .queue = static_cast<std::size_t>(flags.queue)};
  state.options.most_new_tokens = flags.max_new_tokens;
  state.options.seconds = flags.seconds;
  for (const GivenModel& given : name_models(flags.models)) {
    state.models.push_back(load_served_model(given.path, state.options));
    ServedModel& model = *state.models.back();
    model.name = given.name;
    if (model.writing) state.thread.add(*model.writing->batch);
  }
}

void serve(const ServeFlags& flags, ServerState& state) {
  const AccessRules rules{.host = flags.host,
                          .api_key = flags.api_key,
                          .body_bytes = static_cast<std::size_t>(flags.max_body_kb) << 10,
                          .allowed_hosts = flags.allow_host,
                          .allowed_origins = flags.allow_origin};
  Service service(state, rules);
  WebServer server(
      {.body_bytes = rules.body_bytes,
       .connections = static_cast<std::size_t>(flags.connections),
       .request_seconds = flags.request_seconds},
      [&](const WebRequest& request) { return service.refuse(request); },
      [&](const WebRequest& request) { return service.answer(request); });
  if (!flags.options.run.empty()) watched_run(flags.options.run);  // a wrong directory is told at once
  // OpenMP counts the helpers of each thread that lives, and its threads sleep instead of spinning when they
  // are more than the processors: so the thread that loads ends before the one that answers begins.
  std::async(std::launch::async, [&] {
    apply_threads(flags.options.compute);
    load_models(flags, state);
  }).get();
  const int port = server.bind(flags.host, static_cast<int>(flags.port));
  // LibTorch's number of threads is each thread's own.
  state.thread.start([&] { apply_threads(flags.options.compute); });
  const StopSignal stop;
  std::thread answering([&] { server.run(); });
  const std::string host = flags.host.find(':') == std::string::npos ? flags.host : "[" + flags.host + "]";
  std::cerr << "listening on http://" << host << ":" << port << " (" << state.models.size()
            << (state.models.size() == 1 ? " model)" : " models)") << std::endl;
  while (StopSignal::received() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  state.stopping = true;
  server.stop();
  answering.join();
  state.thread.stop();
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
