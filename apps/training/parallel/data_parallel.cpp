#include "apps/training/parallel/data_parallel.h"

#include <chrono>
#include <exception>
#include <future>
#include <thread>

#include <ATen/Version.h>
#include <c10/util/Exception.h>
#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#ifdef USE_C10D_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/version.h>

#include "data/base/environment.h"
#include "data/base/field_error.h"
#include "data/corpora/sha256.h"
#include "models/kernels/cpu.h"
#include "models/layers/linear.h"
#include "models/model.h"

C10_DECLARE_int(caffe2_log_level);

namespace zoo {
namespace {

using StorePointer = c10::intrusive_ptr<c10d::Store>;

// For operations between ranks, which may wait while rank 0 writes a checkpoint: the watch finds dead ranks.
constexpr std::chrono::hours kPatience(24 * 30);

std::string place_of(const Launch& launch) { return launch.address + ":" + std::to_string(launch.port); }

StorePointer serve(const Launch& launch, c10d::TCPStoreOptions options) {
  options.isServer = true;
  StorePointer store;
  try {
    store = c10::make_intrusive<c10d::TCPStore>("localhost", options);
  } catch (const c10::Error& error) {
    if (std::string_view(error.what()).find("EADDRINUSE") == std::string_view::npos) throw;
    throw FieldError(Field{"master_port"}, " ", launch.port, ": the port is in use on ", host_name(),
                     "; take another for all ranks");
  }
  constexpr std::chrono::seconds kOwn(5);
  if (!answers(launch.address, launch.port, kOwn))
    throw FieldError(Field{"master_addr"}, " ", launch.address, ": rank 0 is on ", host_name(),
                     ", which does not answer by this name at port ", launch.port);
  return store;
}

// A client's constructor waits for ever if something else answers there.
StorePointer connect(const Launch& launch, const c10d::TCPStoreOptions& options) {
  const std::int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(options.timeout).count();
  const char* const server = launch.serves_store ? "the launcher" : "rank 0";
  if (!answers(launch.address, launch.port, options.timeout))
    throw Error("rank ", launch.rank, ": no answer from ", server, " at ", place_of(launch), " within ",
                seconds, " s");
  auto task = std::make_shared<std::packaged_task<StorePointer()>>(
      [address = launch.address, options] { return c10::make_intrusive<c10d::TCPStore>(address, options); });
  std::future<StorePointer> store = task->get_future();
  std::thread([task] { (*task)(); }).detach();
  if (store.wait_for(options.timeout) != std::future_status::ready)
    throw Error("rank ", launch.rank, ": what answers at ", place_of(launch), " is not ", server);
  return store.get();
}

bool wait_for(c10d::Store& store, const std::string& key, std::chrono::steady_clock::time_point end) {
  using std::chrono::milliseconds;
  const auto left = std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
  try {
    store.wait({key}, std::max(left, milliseconds(1)));  // 0 would wait for ever
  } catch (const c10::Error&) {
    return false;
  }
  return true;
}

std::string key_of(const char* kind, std::int64_t rank) { return kind + ("/" + std::to_string(rank)); }

// What rank 0 tells all: the ranks' hosts and addresses, or who is missing.
nlohmann::json gather(c10d::Store& store, const Launch& launch, std::int64_t seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  nlohmann::json all{{"hosts", nlohmann::json::array()}, {"addresses", nlohmann::json::array()}};
  std::string missing;
  std::int64_t count = 0;
  for (std::int64_t rank = 0; rank < launch.size; ++rank) {
    if (wait_for(store, key_of("host", rank), end)) {
      all["hosts"].push_back(store.get_to_str(key_of("host", rank)));
      all["addresses"].push_back(store.get_to_str(key_of("address", rank)));
    } else {
      missing += (count++ > 0 ? ", " : "") + std::to_string(rank);
    }
  }
  if (count > 0)
    all["missing"] = (count == 1 ? "rank " : "ranks ") + missing + " of " + std::to_string(launch.size) +
                     " did not come to " + place_of(launch) + " within " + std::to_string(seconds) + " s";
  return all;
}

nlohmann::json meet(c10d::Store& store, const Launch& launch, std::int64_t seconds) {
  if (store.add(key_of("claimed", launch.rank), 1) > 1)
    throw FieldError("another process is rank ", launch.rank, " at ", place_of(launch),
                     ": another training there needs another ", Field{"master_port"});
  store.set(key_of("beat", launch.rank), std::string("0"));
  store.set(key_of("address", launch.rank), address_towards(launch.address));
  store.set(key_of("host", launch.rank), host_name());
  if (launch.rank == 0) {
    const nlohmann::json all = gather(store, launch, seconds);
    store.set("all", all.dump());
    if (all.contains("missing") && !launch.serves_store)
      std::this_thread::sleep_for(std::chrono::seconds(1));  // the others read it
  } else if (!wait_for(store, "all", std::chrono::steady_clock::now() + std::chrono::seconds(2 * seconds))) {
    throw Error("rank 0 did not come to ", place_of(launch), " within ", seconds, " s");
  }
  nlohmann::json all = nlohmann::json::parse(store.get_to_str("all"));
  if (all.contains("missing")) throw Error(all["missing"].get<std::string>());
  return all;
}

// The device by which other ranks reach this one. A name of rank 0's host may lead it to its loopback device.
std::shared_ptr<::gloo::transport::Device> device_of(const std::vector<std::string>& addresses,
                                                     std::size_t rank) {
  if (const std::string name = environment("GLOO_SOCKET_IFNAME"); !name.empty())
    return c10d::ProcessGroupGloo::createDeviceForInterface(name.substr(0, name.find(',')));
  const auto stays_in_host = [](const std::string& x) { return x.starts_with("127.") || x == "::1"; };
  std::string own = addresses[rank];
  for (const std::string& other : addresses)
    if (stays_in_host(own) && !stays_in_host(other)) own = address_towards(other);
  return c10d::ProcessGroupGloo::createDeviceForHostname(own);
}

std::string weights_of(const torch::nn::Module& module) {
  std::string all;
  const auto add = [&](const at::Tensor& weight) {
    const at::Tensor bytes = weight.detach().cpu().contiguous();
    all += sha256({static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()});
  };
  for (const at::Tensor& parameter : module.parameters())
    if (parameter.storage().nbytes() >= parameter.nbytes()) add(parameter);
  for (const auto& part : module.modules())
    if (const auto* linear = part->as<LinearImpl>(); linear != nullptr && linear->frozen)
      add(linear->frozen->floats());
  return sha256(all);
}

// The first difference from rank 0's facts.
std::string difference(const nlohmann::json& first, const nlohmann::json& other) {
  for (std::size_t i = 0; i < std::min(first.size(), other.size()); ++i)
    if (first[i] != other[i])
      return other[i][0].get<std::string>() + " is " + other[i][1].get<std::string>() + ", not " +
             first[i][1].get<std::string>();
  return "it is of another release";
}

}  // namespace

struct ParallelSession::Group {
  StorePointer store;
  std::vector<std::string> addresses;
  SessionOptions options;
  std::unique_ptr<RankWatch> watch;

  void compare(const Facts& facts, const Launch& launch) const {
    const nlohmann::json own = facts;
    const auto for_ever = std::chrono::steady_clock::now() + kPatience;
    store->set(key_of("facts", launch.rank), own.dump());
    for (std::int64_t rank = 1; rank < launch.size && launch.rank == 0; ++rank) {
      wait_for(*store, key_of("facts", rank), for_ever);
      const auto other = nlohmann::json::parse(store->get_to_str(key_of("facts", rank)));
      if (other != own)
        watch->end_all({watch->rank_and_host(rank) + " differs from rank 0: " + difference(own, other)});
    }
    if (launch.rank == 0) store->set("equal", std::string());
    wait_for(*store, "equal", for_ever);
  }

  // An error between ranks is the end of another rank, which the watch names; any other is of this rank.
  void fail(RankEnd end, std::int64_t rank) const {
    std::string& message = end.message;
    message.resize(std::min(message.find('\n'), message.size()));
    for (const char* engine : {"gloo", "NCCL"})
      if (message.find(engine) != std::string::npos) watch->find_lost();
    watch->end_others({watch->rank_and_host(rank) + ": " + message, end.status});
  }

  c10::intrusive_ptr<c10d::ProcessGroup> connect(const Launch& launch, c10::Device device) const {
    const int rank = static_cast<int>(launch.rank), size = static_cast<int>(launch.size);
    auto group = c10::make_intrusive<c10d::ProcessGroup>(rank, size);
    const auto own = c10d::ProcessGroupGloo::Options::create(std::chrono::seconds(options.rank_timeout));
    own->devices.push_back(device_of(addresses, static_cast<std::size_t>(rank)));
    auto gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, own);
    gloo->setTimeout(kPatience);
    group->setBackend(c10::kCPU, c10d::ProcessGroup::GLOO, gloo);
    group->setDefaultBackend(c10d::ProcessGroup::GLOO);
    if (device.is_cuda()) {
#ifdef USE_C10D_NCCL
      group->setBackend(c10::kCUDA, c10d::ProcessGroup::NCCL,
                        c10::make_intrusive<c10d::ProcessGroupNCCL>(
                            c10::make_intrusive<c10d::PrefixStore>("nccl", store), rank, size));
#else
      throw FieldError(
          Field{"device"}, " ", device.str(),
          ": several processes train on GPUs only if tzoo is built with a CUDA LibTorch and NCCL");
#endif
    }
    return group;
  }
};

ParallelSession::ParallelSession(const SessionOptions& options) : launch_(find_launch(options.place)) {
  if (launch_.size == 1) return;
  if (environment("TORCH_CPP_LOG_LEVEL").empty()) FLAGS_caffe2_log_level = 3;  // errors are thrown, too
  const std::chrono::seconds timeout(options.rank_timeout);
  const c10d::TCPStoreOptions tcp{.port = launch_.port, .waitWorkers = false, .timeout = timeout};
  const bool serves = launch_.rank == 0 && !launch_.serves_store;
  const StorePointer store = serves ? serve(launch_, tcp) : zoo::connect(launch_, tcp);
  group_ = std::make_unique<Group>();
  group_->store = c10::make_intrusive<c10d::PrefixStore>(store_prefix(launch_.attempt), store);
  group_->options = options;
  const nlohmann::json all = meet(*group_->store, launch_, options.rank_timeout);
  group_->addresses = all["addresses"].get<std::vector<std::string>>();
  group_->watch = std::make_unique<RankWatch>(
      group_->store->clone(), RankWatch::Options{.rank = launch_.rank,
                                                 .hosts = all["hosts"].get<std::vector<std::string>>(),
                                                 .timeout = options.rank_timeout,
                                                 .store_in_rank_0 = !launch_.serves_store});
}

ParallelSession::~ParallelSession() {
  if (group_ != nullptr && std::uncaught_exceptions() > 0)
    group_->watch->end_others({group_->watch->rank_and_host(rank()) + " has ended with an error"});
}

std::string ParallelSession::description() const {
  if (launch_.launcher.empty()) return "";
  return std::to_string(size()) + (size() == 1 ? " rank" : " ranks") + ", started by " + launch_.launcher;
}

int ParallelSession::run(const std::function<int()>& body,
                         const std::function<RankEnd(const std::exception&)>& end_of) const {
  if (group_ == nullptr) return body();
  try {
    return body();
  } catch (const std::exception& error) {
    group_->fail(end_of(error), rank());
    throw;
  }
}

std::unique_ptr<Ranks> ParallelSession::ranks_for(torch::nn::Module& module, const Facts& facts) const {
  if (group_ == nullptr) return nullptr;
  Facts all = facts;
  all.emplace_back("LibTorch", TORCH_VERSION);
  all.emplace_back("the kernels' instruction set", kernels::name_of(kernels::instruction_set()));
  all.emplace_back("LibTorch's instruction set", at::get_cpu_capability());
  all.emplace_back("the hash of the initial weights", weights_of(module));
  group_->compare(all, launch_);
  auto group = group_->connect(launch_, module.parameters().front().device());
  return make_group_ranks(module, std::move(group), *group_->watch, group_->options.gradient_wire);
}

}  // namespace zoo
