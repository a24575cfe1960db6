// Prints which instructions one call of malloc, free, operator new and operator delete runs when
// all is warm: a symbol and its addresses in the library, one call a line. The calls happen in a
// child that is stepped through.
//
// Exit code 77 where the system does not allow tracing.
#include <dlfcn.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr std::size_t kBytes = 64;
constexpr int kRefused = 77;

using Allocate = void*(std::size_t);
using Release = void(void*);
using ReleaseSized = void(void*, std::size_t);

struct Call {
  const char* name;
  std::uintptr_t address;
};
Call calls[] = {{"malloc", 0}, {"free", 0}, {"_Znwm", 0}, {"_ZdlPvm", 0}};

// Through pointers, so that the first instruction of each call is the library's and not the
// linker's.
template <typename Function>
Function* at(int index) {
  return reinterpret_cast<Function*>(calls[index].address);
}

[[noreturn]] void child() {
  void* blocks[40];
  for (void*& block : blocks) block = at<Allocate>(0)(kBytes);
  for (int i = 0; i < 20; ++i) at<Release>(1)(blocks[i]);
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(kRefused);
  raise(SIGSTOP);
  void* block = at<Allocate>(0)(kBytes);
  at<Release>(1)(blocks[30]);
  void* object = at<Allocate>(2)(kBytes);
  at<ReleaseSized>(3)(blocks[31], kBytes);
  _exit(block != nullptr && object != nullptr ? 0 : 1);
}

bool stopped(pid_t traced, int* status) { return waitpid(traced, status, 0) == traced && WIFSTOPPED(*status); }

}  // namespace

int main() {
  std::uintptr_t base = 0;
  for (Call& call : calls) {
    void* address = dlsym(RTLD_DEFAULT, call.name);
    Dl_info info;
    if (address == nullptr || dladdr(address, &info) == 0) return 1;
    call.address = reinterpret_cast<std::uintptr_t>(address);
    base = reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  }
  fflush(stdout);
  const pid_t traced = fork();
  if (traced == 0) child();
  int status = 0;
  if (!stopped(traced, &status)) return WIFEXITED(status) && WEXITSTATUS(status) == kRefused ? kRefused : 1;
  const Call* inside = nullptr;
  std::uintptr_t back = 0;
  for (;;) {
    user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, traced, nullptr, &registers) != 0) return kRefused;
    if (inside != nullptr && registers.rip == back) {
      printf("\n");
      inside = nullptr;
    }
    for (const Call& call : calls) {
      if (inside == nullptr && registers.rip == call.address) {
        inside = &call;
        back = static_cast<std::uintptr_t>(ptrace(PTRACE_PEEKDATA, traced, registers.rsp, nullptr));
        printf("%s", call.name);
      }
    }
    if (inside != nullptr) printf(" %llx", registers.rip - base);
    if (ptrace(PTRACE_SINGLESTEP, traced, nullptr, nullptr) != 0) return kRefused;
    if (!stopped(traced, &status)) break;
    if (WSTOPSIG(status) != SIGTRAP) return 1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
