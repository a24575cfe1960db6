/* A library without debugging information: the one function has a symbol, the other has none. */
#include <stdio.h>

static __attribute__((noinline)) void without_symbol(void (*function)(void)) {
  function();
  puts("# back");
}

void call_from_library(void (*function)(void)) {
  without_symbol(function);
  puts("# called");
}
