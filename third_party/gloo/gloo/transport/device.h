#pragma once

namespace gloo::transport {

/// A network interface. ProcessGroupGloo::createDevice… make one.
class Device;

/// Memory of a message.
class UnboundBuffer;

}  // namespace gloo::transport
