// Asking: see ask.h.
#include "process/ask.h"

#include <cstddef>
#include <thread>

#include "message.h"

namespace annex::inspect {

namespace {

class Control {
 public:
  explicit Control(const Target& target) : target_(target), at_(number(target.annex.control)) {}

  uint32_t wanted() const { return target_.memory.get<uint32_t>(at_ + offsetof(os::Control, wanted)); }
  uint32_t done() const { return target_.memory.get<uint32_t>(at_ + offsetof(os::Control, done)); }
  uint64_t given_back() const { return target_.memory.get<uint64_t>(at_ + offsetof(os::Control, given_back)); }

  void set_wanted(uint32_t bits) const { put(at_ + offsetof(os::Control, wanted), bits); }
  void set_rate(uint64_t rate) const { put(at_ + offsetof(os::Control, rate), rate); }
  // The next slow path looks.
  void call() const { put(number(target_.annex.slow_path_called), true); }

 private:
  template <class T>
  void put(uint64_t address, T value) const {
    target_.memory.write(address, &value, sizeof value);
  }

  const Target& target_;
  const uint64_t at_;
};

}  // namespace

Answer ask(const Target& target, uint32_t bits, uint64_t rate, std::chrono::milliseconds timeout) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLook(5);
  const Control control(target);
  if (control.wanted() != 0) {
    throw Failure(kFailed, fmt::format("process {} is being asked for something already", target.memory.process()));
  }
  const uint32_t done = control.done();
  control.set_rate(rate);
  control.set_wanted(bits);
  control.call();
  for (const auto end = Clock::now() + timeout; control.done() == done;) {
    if (Clock::now() >= end) {
      if (control.wanted() == 0) return {Answer::How::kNotDone};
      control.set_wanted(0);
      return {Answer::How::kNotTakenUp};
    }
    std::this_thread::sleep_for(kLook);
  }
  return {Answer::How::kDone, control.given_back()};
}

}  // namespace annex::inspect
