// Profiles of running processes: see attach.h.
#include "process/attach.h"

#include <thread>

#include "message.h"
#include "process/ask.h"
#include "process/profile_copy.h"
#include "process/raw_text.h"

namespace annex::inspect {

namespace {

constexpr uint64_t kDefaultRate = uint64_t{512} << 10;

// Ends the profile, unless that has been done: whatever happens in between, the process doesn't go on for nobody.
class Begun {
 public:
  explicit Begun(const Target& target) : target_(target) {
    const Answer answer = ask(target, os::Control::kStartProfile, kDefaultRate, kTimeout);
    if (answer.how != Answer::How::kDone || profile_rate(target) == 0) {
      throw Failure(
          kFailed,
          fmt::format("process {} ({}) has begun no profile: {}", target.memory.process(), target.name,
                      answer.how == Answer::How::kNotTakenUp ? "none of its threads has asked for memory within 5 s"
                                                             : "it has no unwinder, or no memory for one"));
    }
  }
  ~Begun() {
    try {
      ask(target_, os::Control::kStopProfile, 0, kTimeout);
    } catch (const Failure&) {
      // It has ended.
    }
  }
  Begun(const Begun&) = delete;
  Begun& operator=(const Begun&) = delete;

 private:
  static constexpr std::chrono::milliseconds kTimeout{5000};
  const Target& target_;
};

}  // namespace

std::string raw_profile_of(pid_t process, double seconds) {
  const Target target = open_target(process);
  if (profile_rate(target) != 0) return raw_text(target);
  const Begun begun(target);
  say("process {} ({}): a profile is on for {} s", target.memory.process(), target.name, seconds);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  return raw_text(target);
}

}  // namespace annex::inspect
