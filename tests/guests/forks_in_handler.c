// A program of one thread whose handler of a signal forks, wherever the signal finds it: mostly inside malloc and free.
// Children that crash handlers and helpers start so go on to exit or to another program.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kForks = 300 };
static volatile int forks;

static void fork_once(int signal_number) {
  (void)signal_number;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) _exit(2);
  ++forks;
}

int main(void) {
  struct itimerval every = {{0, 300}, {0, 300}};
  signal(SIGALRM, fork_once);
  setitimer(ITIMER_REAL, &every, 0);
  void* blocks[64] = {0};
  unsigned random = 1;
  while (forks < kForks) {
    random = random * 1103515245 + 12345;
    const unsigned slot = random >> 26;
    free(blocks[slot]);
    // Runs are taken and given back most of the time.
    blocks[slot] = malloc((random >> 8) % 70000 + 1);
    if (blocks[slot] == 0) return 1;
  }
  return 0;
}
