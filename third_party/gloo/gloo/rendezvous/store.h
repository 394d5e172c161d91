#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace gloo::rendezvous {

/// Base class of c10d's wrapper of its own stores, which LibTorch alone makes.
class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::vector<char>& value) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) = 0;
};

}  // namespace gloo::rendezvous
