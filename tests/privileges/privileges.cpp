// A process gives something up that the kernel keeps for each thread: every thread has to have given it up, those that
// the library makes for itself too; and the calls that refuse a process with threads have to work as without the
// library.
//
// Each case is a scenario of its own: it allocates and frees until the library has what threads it wants, then makes
// the call. The same call in a process that has hardly allocated says what the system allows at all. Needs root: else
// skipped, or with ANNEX_REQUIRE_ALL=1 failed. In sanitizer builds libc's names are not the library's, and the
// sanitizer may have a thread of its own: there only what libc passes on and what helper threads find out for
// themselves is asked for.
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "common/flavour.h"
#include "common/scenario.h"
#include "stress/harness.h"

using namespace annex_test;

extern "C" int capset(void* header, const void* data) noexcept;

namespace {

#ifdef ANNEX_TEST_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// --- what the threads of this process may do
// --------------------------------------------------------------------------

std::string content_of(const std::string& path) {
  std::string all;
  FILE* file = fopen(path.c_str(), "re");
  if (file == nullptr) return all;
  char piece[512];
  while (const std::size_t length = fread(piece, 1, sizeof piece, file)) all.append(piece, length);
  fclose(file);
  return all;
}

std::string privileges_of(const std::string& task) {
  std::string found;
  const std::string status = content_of(task + "/status");
  if (status.empty()) return found;  // it has just ended
  for (const char* name : {"Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs",
                           "Seccomp", "Seccomp_filters"}) {
    const std::size_t at = status.find("\n" + std::string(name) + ":");
    if (at != std::string::npos) found += status.substr(at + 1, status.find('\n', at + 1) - at);
  }
  for (const char* name : {"cgroup", "ipc", "mnt", "net", "pid", "pid_for_children", "user", "uts"}) {
    char target[64] = {};
    const std::string link = task + "/ns/" + name;
    if (readlink(link.c_str(), target, sizeof target - 1) < 0) return {};
    found += std::string(target) + "\n";
  }
  return found;
}

template <class Visit>
void for_each_task(Visit visit) {
  DIR* tasks = opendir("/proc/self/task");
  DEMAND(tasks != nullptr);
  while (const dirent* task = readdir(tasks)) {
    if (task->d_name[0] == '.') continue;
    const std::string path = std::string("/proc/self/task/") + task->d_name;
    visit(path, content_of(path + "/comm"));
  }
  closedir(tasks);
}

bool has_task(const std::string& name) {
  bool found = false;
  for_each_task([&](const std::string&, const std::string& comm) { found = found || comm == name + "\n"; });
  return found;
}

// Whether every thread has what this one has. One that a sanitizer made is its own affair.
bool all_alike(bool complain) {
  const std::string mine = privileges_of("/proc/self/task/" + std::to_string(gettid()));
  DEMAND(!mine.empty());
  bool alike = true;
  for_each_task([&](const std::string& path, const std::string& comm) {
    if (kSanitized && comm.rfind("annex-", 0) != 0) return;
    const std::string its = privileges_of(path);
    if (its.empty() || its == mine) return;
    alike = false;
    if (complain) fprintf(stderr, "%s has\n%swhere the caller has\n%s", comm.c_str(), its.c_str(), mine.c_str());
  });
  return alike;
}

// --- what a process can give up
// ---------------------------------------------------------------------------------------

const sock_filter kAllow[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
// Making a thread or a process is death.
const sock_filter kNoClone[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0},
                                {BPF_JMP | BPF_JEQ | BPF_K, 2, 0, SYS_clone},
                                {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_clone3},
                                {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
                                {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS}};

template <std::size_t kCount>
sock_fprog program(const sock_filter (&filter)[kCount]) {
  return {kCount, const_cast<sock_filter*>(filter)};
}

bool drop_ids() {
  const gid_t group = 65534;
  return setgroups(1, &group) == 0 && setgid(65534) == 0 && setuid(65534) == 0;
}

bool drop_capabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  return capset(&header, none) == 0;
}

bool drop_from_bounding_set() { return prctl(PR_CAPBSET_DROP, CAP_SYS_TIME, 0, 0, 0) == 0; }
bool no_new_privileges() { return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0; }

bool filter_by_prctl() {
  const sock_fprog filter = program(kAllow);
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

bool filter_for_all_threads() {
  const sock_fprog filter = program(kNoClone);
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

bool filter_by_syscall() {
  const sock_fprog filter = program(kNoClone);
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

bool new_user_namespace() { return unshare(CLONE_NEWUSER) == 0; }
bool new_mount_namespace() { return unshare(CLONE_NEWNS) == 0; }

bool enter_own_namespace(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  return file >= 0 && setns(file, 0) == 0;
}
// A mount namespace can be entered only by a thread that shares its root directory with no other.
bool enter_mount_namespace() { return enter_own_namespace("/proc/self/ns/mnt"); }
bool enter_network_namespace() { return enter_own_namespace("/proc/self/ns/net"); }

// As a program does that calls the kernel without libc.
long kernel(long number, long a) {
  long result;
#if defined(__x86_64__)
  asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a) : "rcx", "r11", "memory");
#else
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8) : "memory");
  result = x0;
#endif
  return result;
}
bool set_user_behind_libc() { return kernel(SYS_setuid, 65534) == 0; }
bool unshare_behind_libc() { return kernel(SYS_unshare, CLONE_NEWUTS) == 0; }

enum class Reaches { kAtOnce, kSoon };

struct Case {
  const char* name;
  bool (*give_up)();
  Reaches reaches;
  bool in_sanitizers;  // where libc's names are libc's
};

constexpr Case kCases[] = {
    {"ids", drop_ids, Reaches::kAtOnce, true},
    {"capabilities", drop_capabilities, Reaches::kAtOnce, true},
    {"bounding set", drop_from_bounding_set, Reaches::kAtOnce, true},
    {"no_new_privs", no_new_privileges, Reaches::kAtOnce, true},
    {"filter by prctl", filter_by_prctl, Reaches::kAtOnce, true},
    {"filter by syscall", filter_by_syscall, Reaches::kAtOnce, false},
    {"filter for all threads", filter_for_all_threads, Reaches::kAtOnce, false},
    {"new user namespace", new_user_namespace, Reaches::kAtOnce, false},
    {"new mount namespace", new_mount_namespace, Reaches::kAtOnce, true},
    {"enter the mount namespace", enter_mount_namespace, Reaches::kAtOnce, false},
    {"enter the network namespace", enter_network_namespace, Reaches::kAtOnce, true},
    {"user behind libc's back", set_user_behind_libc, Reaches::kSoon, true},
    {"namespace behind libc's back", unshare_behind_libc, Reaches::kSoon, true},
};

// --- the scenario -------------------------------------------------------------------------------------------------

// The thread that the library should have by now; empty where none is to be expected.
std::string helper_name() {
  const char* background = getenv("ANNEX_BACKGROUND");
  if (background != nullptr && strcmp(background, "1") == 0) return "annex-purge";
  return flavour() == Flavour::kOffload && allowed_cpus() >= 2 ? "annex-support" : "";
}

// Until there is such a thread: a support thread may have no CPU for long where the machine is busy.
void work(Slots& slots) {
  const std::string helper = helper_name();
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    trade(slots, random, 2000);
    slots.clear();
    if (round >= 3 && (helper.empty() || has_task(helper))) return;
  }
  DEMAND(helper != "annex-purge");
}

bool become_alike() {
  for (int i = 0; i < 200; ++i) {
    if (all_alike(false)) return true;
    const timespec step{0, 50'000'000};
    nanosleep(&step, nullptr);
  }
  return all_alike(true);
}

const Case* case_named(const std::string& name) {
  for (const Case& one : kCases) {
    if (name == one.name) return &one;
  }
  return nullptr;
}

int give_up(const Case& one) {
  DEMAND(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0);  // no such thing
  if (one.give_up()) return 0;
  fprintf(stderr, "%s: %s\n", one.name, strerror(errno));
  return 1;
}

bool require_all() {
  const char* value = getenv("ANNEX_REQUIRE_ALL");
  return value != nullptr && strcmp(value, "1") == 0;
}

Outcome run(const char* scenario, const Case& one, const char* background) {
  Launch launch;
  launch.scenario = scenario;
  launch.argument = one.name;
  launch.environment = {{"ANNEX_BACKGROUND", background}};
  return run_scenario(launch);
}

class Privileges : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() == 0) return;
    if (require_all()) FAIL() << "needs root, and ANNEX_REQUIRE_ALL is set";
    GTEST_SKIP() << "needs root";
  }

  static void check(const char* background) {
    for (const Case& one : kCases) {
      if (kSanitized && !one.in_sanitizers) continue;
      const Outcome control = run("give_up_alone", one, background);
      if (control.exit_code != 0) {
        EXPECT_FALSE(require_all()) << "not possible here: " << describe(control);
        fprintf(stderr, "SKIPPED, not possible here: %s\n", describe(control).c_str());
        continue;
      }
      const Outcome outcome = run("give_up_with_helpers", one, background);
      EXPECT_EQ(outcome.exit_code, 0) << one.name << ", ANNEX_BACKGROUND=" << background << ": " << describe(outcome);
    }
  }
};

}  // namespace

ANNEX_SCENARIO(give_up_alone) { return give_up(*case_named(scenario_argument())); }

ANNEX_SCENARIO(give_up_with_helpers) {
  const Case& one = *case_named(scenario_argument());
  Slots slots;
  work(slots);
  if (give_up(one) != 0) return 1;
  const bool at_once = one.reaches == Reaches::kAtOnce && (!kSanitized || one.give_up == drop_ids);
  DEMAND(at_once ? all_alike(true) : become_alike());
  // What is made from now on has what this thread has; and is not made where that would be death.
  Random random(8);
  for (int round = 0; round < 100; ++round) {
    trade(slots, random, 2000 / kSlowdown);
    slots.clear();
    DEMAND(all_alike(true));
  }
  return 0;
}

TEST_F(Privileges, NoThreadKeepsWhatIsGivenUp) { check("auto"); }
TEST_F(Privileges, NorWithAPurger) { check("1"); }
