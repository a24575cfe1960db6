// For a debugger, which calls what the library has in here.
#include <stdlib.h>
#include <string.h>

volatile int stop;

int main(void) {
  void* block = malloc(100);
  stop = block != NULL && strlen("x") == 1;
  free(block);
  return stop - 1;
}
