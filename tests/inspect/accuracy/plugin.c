/* A library of one function, PLUGIN: loaded while the program runs, and unloaded while its blocks are in use. */
#include <stdlib.h>

void* PLUGIN(size_t bytes) {
  void* volatile block = malloc(bytes); /* not a tail call, which would leave no frame */
  return block;
}
