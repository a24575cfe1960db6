// dlopen without RTLD_DEEPBIND, in the shared libraries alone.
//
// A library that is opened with that flag (a plugin) looks for names among its own dependencies first. There it finds
// libc's malloc and free, while the rest of the process, and libc itself, uses Annex's: the first block that crosses
// over, such as one of strdup's, is given to the wrong free. So the flag is removed, and the rest is left to libc. The
// plugin loses that its own names come before others of the same name in the process; with ANNEX_DEEPBIND=keep the flag
// stays. Other namespaces (dlmopen) have a libc and a heap of their own, and exchange no blocks with this one.
//
// libc finds libraries by its caller's run path and namespace, and knows the caller by the return address. So these are
// jumps to libc's functions, not calls.
#include <dlfcn.h>

#include "entry/visibility.h"
#include "os/options.h"

#if defined(__clang__)
#define ANNEX_JUMPS
#define ANNEX_JUMP [[clang::musttail]] return
#else
#define ANNEX_JUMPS [[gnu::optimize("O2")]]
#define ANNEX_JUMP return
#endif

// In libc since glibc 2.34, in libdl before. Where libdl isn't loaded, nobody can call dlopen either.
#pragma weak dlsym

using namespace annex;

namespace {

int without_deepbind(int mode) { return os::options.deepbind == os::Deepbind::kKeep ? mode : mode & ~RTLD_DEEPBIND; }

template <class Function>
Function* next(const char* name, Function*& known) {
  Function* function = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (function == nullptr) {
    function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
    __atomic_store_n(&known, function, __ATOMIC_RELAXED);
  }
  return function;
}

using Open = void*(const char*, int);
using OpenIn = void*(Lmid_t, const char*, int);
constinit Open* open = nullptr;
constinit OpenIn* open_in = nullptr;

}  // namespace

extern "C" {

ANNEX_JUMPS ANNEX_EXPORT void* dlopen(const char* file, int mode) noexcept {
  ANNEX_JUMP next("dlopen", open)(file, without_deepbind(mode));
}

ANNEX_JUMPS ANNEX_EXPORT void* dlmopen(Lmid_t space, const char* file, int mode) noexcept {
  ANNEX_JUMP next("dlmopen", open_in)(space, file, space == LM_ID_BASE ? without_deepbind(mode) : mode);
}

}  // extern "C"
