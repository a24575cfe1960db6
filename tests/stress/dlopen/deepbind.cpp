// Plugins that are opened with RTLD_DEEPBIND, and libraries that open others by their own run path, under a preloaded
// Annex. Arguments: DROPPED-OR-KEPT PLUGIN CALLER. The program links no allocator.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/opaque.h"

// The plugin has one of this name too.
extern "C" int annex_test_whose() { return 1; }

namespace {

bool failed = false;

void check(bool holds, const char* what) {
  if (holds) return;
  const char* error = dlerror();
  fprintf(stderr, "%s: %s\n", what, error != nullptr ? error : "no");
  failed = true;
}

template <class Function>
Function* in(void* library, const char* name) {
  void* found = library != nullptr ? dlsym(library, name) : nullptr;
  check(found != nullptr, name);
  if (found == nullptr) exit(1);
  return reinterpret_cast<Function*>(found);
}

}  // namespace

int main(int, char** arguments) {
  const bool kept = strcmp(arguments[1], "kept") == 0;
  void* plugin = dlopen(arguments[2], RTLD_NOW | RTLD_DEEPBIND);
  check((in<int()>(plugin, "call_whose")() == 2) == kept, "whose name comes first");
  if (!kept) {
    in<void(void*)>(plugin, "give_back")(annex_test::opaque(malloc(100)));
    free(in<void*()>(plugin, "take")());
    in<void()>(plugin, "copy_and_give_back")();
  }
  void* base = dlmopen(LM_ID_BASE, arguments[2], RTLD_NOW | RTLD_DEEPBIND);
  check(base == plugin, "the same plugin by dlmopen");
  void* caller = dlopen(arguments[3], RTLD_NOW | RTLD_LOCAL);
  check(in<void*()>(caller, "open_by_own_run_path")() != nullptr, "a library in its caller's run path");
  check(in<void*()>(caller, "open_in_base_by_own_run_path")() != nullptr, "the same by dlmopen");
  return failed ? 1 : 0;
}
