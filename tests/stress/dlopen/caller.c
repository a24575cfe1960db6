// A library that opens another by name, which only its own run path leads to.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

void* open_by_own_run_path(void) {
  void* const volatile found = dlopen("libstress-found.so", RTLD_NOW);  // volatile: a call, not a jump of its own
  return found;
}
void* open_in_base_by_own_run_path(void) {
  void* const volatile found = dlmopen(LM_ID_BASE, "libstress-found.so", RTLD_NOW);
  return found;
}
