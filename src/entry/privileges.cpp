// The calls by which a program gives up rights, or enters namespaces, where the kernel changes the calling thread alone
// and libc does nothing about the others: capabilities, no_new_privs, system call filters, namespaces.
//
// No helper thread may keep the old ones, and unshare and setns refuse user namespaces to a process with threads. So
// each of these calls first ends the helpers (os/helper_thread.h); later helpers inherit what the program has then.
// Once a filter has been installed no helper is made any more: it may forbid making a thread. setuid, setgid, setgroups
// and their like are not here, since libc makes them in every thread.
//
// Each does what it does in glibc: the system call, and errno. syscall is here because libseccomp installs filters by
// it.
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

#include "entry/visibility.h"
#include "os/helper_thread.h"
#include "os/standard_error.h"
#include "os/system_call.h"

using namespace annex;

namespace {

long with_errno(long result) {
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}

bool changes_privileges(long option) {
  return option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS || option == PR_CAPBSET_DROP ||
         option == PR_CAP_AMBIENT || option == PR_SET_SECUREBITS;
}

bool changes_privileges(long number, long first) {
  switch (number) {
    case SYS_unshare:
    case SYS_setns:
    case SYS_capset:
    case SYS_seccomp:
#ifdef SYS_landlock_restrict_self
    case SYS_landlock_restrict_self:
#endif
      return true;
    case SYS_prctl:
      return changes_privileges(first);
    default:
      return false;
  }
}

bool installs_filter(long number, long first) {
  return number == SYS_seccomp ? first == SECCOMP_SET_MODE_STRICT || first == SECCOMP_SET_MODE_FILTER
                               : number == SYS_prctl && first == PR_SET_SECCOMP;
}

long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  if (!changes_privileges(number, a)) return with_errno(os::system_call(number, a, b, c, d, e, f));
  os::NoHelpers no_helpers;
  if (installs_filter(number, a)) os::freeze_standard_error();
  const long result = os::system_call(number, a, b, c, d, e, f);
  if (result >= 0 && installs_filter(number, a)) no_helpers.for_good();
  return with_errno(result);
}

}  // namespace

extern "C" {

ANNEX_EXPORT int unshare(int flags) noexcept { return static_cast<int>(call(SYS_unshare, flags)); }
ANNEX_EXPORT int setns(int descriptor, int type) noexcept {
  return static_cast<int>(call(SYS_setns, descriptor, type));
}
ANNEX_EXPORT int capset(void* header, const void* data) noexcept {
  return static_cast<int>(call(SYS_capset, reinterpret_cast<long>(header), reinterpret_cast<long>(data)));
}

ANNEX_EXPORT int prctl(int option, ...) noexcept {
  va_list arguments;
  va_start(arguments, option);
  long a[4];
  for (long& argument : a) argument = va_arg(arguments, long);
  va_end(arguments);
  return static_cast<int>(call(SYS_prctl, option, a[0], a[1], a[2], a[3]));
}

ANNEX_EXPORT long syscall(long number, ...) noexcept {
  va_list arguments;
  va_start(arguments, number);
  long a[6];
  for (long& argument : a) argument = va_arg(arguments, long);
  va_end(arguments);
  return call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

}  // extern "C"
