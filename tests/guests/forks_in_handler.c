// A program of one thread whose handler of a signal forks, wherever the signal finds it: mostly inside malloc and free.
// The child goes on with what the signal has interrupted.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kForks = 300 };
static volatile int forks, is_child;

// One after the other, however long a fork takes.
static void ask_for_signal(void) {
  const struct itimerval once = {{0, 0}, {0, 300}};
  setitimer(ITIMER_REAL, &once, 0);
}

static void fork_once(int signal_number) {
  (void)signal_number;
  const pid_t child = fork();
  if (child == 0) {
    is_child = 1;
    return;
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) _exit(2);
  ++forks;
  ask_for_signal();
}

int main(void) {
  signal(SIGALRM, fork_once);
  ask_for_signal();
  void* blocks[64] = {0};
  unsigned random = 1;
  int steps_in_child = 0;
  while (forks < kForks) {
    random = random * 1103515245 + 12345;
    const unsigned slot = random >> 26;
    free(blocks[slot]);
    // Runs are taken and given back most of the time.
    blocks[slot] = malloc((random >> 8) % 70000 + 1);
    if (blocks[slot] == 0) return 1;
    if (is_child && ++steps_in_child == 50) _exit(0);
  }
  return 0;
}
