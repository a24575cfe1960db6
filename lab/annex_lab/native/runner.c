// Runs one program and reports what it used, the program alone: wall time, CPU time, peak and mean resident set, page
// faults.
//
//   runner REPORT PRELOAD TIMES STDIN STDOUT STDERR PROGRAM [ARGUMENT ...]
//
// Why this is a program of its own, small and linked statically: Linux carries the peak resident set of the process
// that calls exec over to the program, so a child of a Python process starts with a peak of Python's 13 MiB. vfork
// shares this process's memory instead, which is a few hundred KiB. LD_PRELOAD is set for the program only, never for
// this process.
//
// REPORT gets "pid N" when the program runs (a client may then talk to it), and at the end, for each of TIMES runs:
//   run WALL_NS USER_US SYS_US PEAK_KIB MINOR_FAULTS MAJOR_FAULTS STATUS VOLUNTARY INVOLUNTARY MEAN_KIB
// where STATUS is the exit status, or 1000 plus the signal that ended it, and VOLUNTARY and INVOLUNTARY are context
// switches. MEAN_KIB is the mean of the resident set as it was every two milliseconds; 0 where the program was over
// sooner. A look takes some microseconds of whichever CPU is idle.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

static void fail(const char* what) {
  dprintf(2, "runner: %s: %s\n", what, strerror(errno));
  exit(120);
}

static int open_or_fail(const char* path, int flags) {
  const int fd = open(path, flags, 0644);
  if (fd < 0) fail(path);
  return fd;
}

static char** environment_with(const char* preload) {
  size_t count = 0;
  while (environ[count] != NULL) ++count;
  char** env = calloc(count + 2, sizeof(char*));
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0) env[kept++] = environ[i];
  }
  if (preload[0] != '\0') {
    char* setting = malloc(strlen(preload) + 12);
    sprintf(setting, "LD_PRELOAD=%s", preload);
    env[kept++] = setting;
  }
  return env;
}

static long long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static long long in_us(struct timeval t) { return t.tv_sec * 1000000LL + t.tv_usec; }

// Until the process has ended: the mean of its resident set, in KiB. It is not waited for.
static long mean_kib(pid_t pid) {
  const int handle = (int)syscall(SYS_pidfd_open, pid, 0);
  if (handle < 0) fail("pidfd_open");
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
  const int statm = open(path, O_RDONLY | O_CLOEXEC);
  if (statm < 0) fail(path);
  const long page_kib = sysconf(_SC_PAGESIZE) / 1024;
  long sum = 0, count = 0;
  struct pollfd end = {.fd = handle, .events = POLLIN};
  for (;;) {
    const int ready = poll(&end, 1, 2);
    if (ready < 0 && errno != EINTR) fail("poll");
    if (ready > 0) break;
    char text[128] = "";
    long resident = 0;
    if (pread(statm, text, sizeof text - 1, 0) <= 0 || sscanf(text, "%*d %ld", &resident) != 1 || resident == 0)
      continue;
    sum += resident * page_kib;
    ++count;
  }
  close(statm);
  close(handle);
  return count == 0 ? 0 : sum / count;
}

int main(int argc, char** argv) {
  if (argc < 8) {
    dprintf(2, "usage: runner REPORT PRELOAD TIMES STDIN STDOUT STDERR PROGRAM [ARGUMENT ...]\n");
    return 120;
  }
  const int report = open_or_fail(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
  char** env = environment_with(argv[2]);
  const int times = atoi(argv[3]);
  const int out = open_or_fail(argv[5], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
  const int err = open_or_fail(argv[6], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);

  for (int i = 0; i < times; ++i) {
    const int in = open_or_fail(argv[4], O_RDONLY | O_CLOEXEC);
    const long long start = now_ns();
    const pid_t pid = vfork();
    if (pid < 0) fail("vfork");
    if (pid == 0) {
      dup2(in, 0);
      dup2(out, 1);
      dup2(err, 2);
      execve(argv[6 + 1], argv + 7, env);
      _exit(121);
    }
    if (i == 0) dprintf(report, "pid %d\n", (int)pid);
    const long mean = mean_kib(pid);
    int status = 0;
    struct rusage used;
    while (wait4(pid, &status, 0, &used) < 0) {
      if (errno != EINTR) fail("wait4");
    }
    const long long wall = now_ns() - start;
    close(in);
    const int result = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    dprintf(report, "run %lld %lld %lld %ld %ld %ld %d %ld %ld %ld\n", wall, in_us(used.ru_utime), in_us(used.ru_stime),
            used.ru_maxrss, used.ru_minflt, used.ru_majflt, result, used.ru_nvcsw, used.ru_nivcsw, mean);
    if (result != 0 && times > 1) break;
  }
  return 0;
}
