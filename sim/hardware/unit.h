// A hardware unit that serves calls of the allocator in place of the cores that make them. Its example, with all that
// is needed for one more: fixed_time.h and docs/hardware-new-unit.md.
//
// Cores are simulated apart, a little ahead of each other: so a request is told of when its core asks, and what depends
// on others' requests is decided later, when all are told of that can matter.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "hardware/call.h"
#include "machine/core.h"
#include "machine/types.h"

namespace annex::sim {

enum class Service : uint8_t { kAllocate, kFree };  // with an answer, and without

inline constexpr Cycles kNoTime = ~Cycles{0};

// Where units have code and data of their own: beyond what a program can map, apart by who and what.
inline constexpr Address kUnitMemory = Address{1} << 47;

class Unit {
 public:
  virtual ~Unit() = default;

  // As the key of its statistics, and of its parameters in a machine's file.
  virtual const char* name() const = 0;

  // Whether it serves a call; if not, the call's own code is run at the core that made it.
  virtual bool serves(const Call::Facts& /*facts*/) const { return true; }
  // Such a call was run, or one that it would have served but that had to wait in the kernel.
  virtual void ran_at_its_core(const Core& /*core*/, const Call::Facts& /*facts*/) {}

  // From when on a core may ask for that; nothing: what is decided so far does not tell.
  virtual std::optional<Cycles> room(unsigned /*from*/, Service /*service*/) const { return 0; }
  // A core asks, by code of the unit's in place of the call's, which begins at `entry`. The number of the request.
  virtual uint64_t ask(Core& main, Service service, Address entry, Call call) = 0;
  // When the core can have its answer, once that is decided; then it is forgotten.
  virtual std::optional<Cycles> answer(uint64_t number) = 0;
  // The core waits until then, and has the answer in the register of results.
  virtual void have_answer(Core& main, Cycles when) = 0;

  // No request comes to the unit sooner after its core came to it.
  virtual Cycles least_delay() const { return 0; }
  // All requests are told of that come until then: what follows from them is decided.
  virtual void advance(Cycles to) = 0;
  // The time up to which all must be told of before anything more can be decided; kNoTime: nothing waits.
  virtual Cycles decides_next() const = 0;

  // Its statistics.
  virtual void describe(nlohmann::json& out) const = 0;
};

}  // namespace annex::sim
