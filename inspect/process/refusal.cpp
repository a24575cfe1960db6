// Why not: see refusal.h.
#include "process/refusal.h"

#include <unistd.h>

#include <fstream>

#include "message.h"
#include "process/proc.h"

namespace annex::inspect {

namespace {

constexpr char kYama[] = "/proc/sys/kernel/yama/ptrace_scope";

// 0 where there is no Yama.
int yama_scope() {
  int scope = 0;
  std::ifstream(kYama) >> scope;
  return scope;
}

std::string why(pid_t process) {
  const ProcStatus status = read_status(process);
  if (status.user != geteuid()) {
    return fmt::format(
        "it belongs to another user ({}), and only the same user or root may look into it (and {} may forbid it)",
        status.user, kYama);
  }
  if (const int scope = yama_scope(); scope > 0) {
    return fmt::format("{} is {}: only root or, where that is 1, an ancestor of it may look into it", kYama, scope);
  }
  return "it has more rights than you, or has forbidden it (PR_SET_DUMPABLE): only root may look into it";
}

}  // namespace

void refuse(pid_t process) {
  throw Failure(kNotAllowed, fmt::format("process {} can't be looked into: {}", process, why(process)));
}

}  // namespace annex::inspect
