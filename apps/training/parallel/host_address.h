#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace zoo {

/// This host's own address on the way to another host, by which that one can answer; empty if there is no
/// way. Sends nothing.
std::string address_towards(const std::string& host);

/// Waits until something accepts connections at host:port; false after `timeout`.
bool answers(const std::string& host, std::uint16_t port, std::chrono::milliseconds timeout);

/// True for the addresses of a host in itself.
bool stays_in_host(const std::string& address);

std::string host_name();

}  // namespace zoo
