// The door that this library is built with: one of the flavours below, chosen when the library is compiled, so that
// nothing is decided at run time. Each provides, in namespace annex::front:
//
//   void* allocate(size_t bytes)                   malloc; nullptr and errno ENOMEM where memory is exhausted. Its
//                                                  slow path, allocate_slow, may be replaced: allocate<slow>
//   void* allocate_zeroed(size_t bytes)            calloc
//   void* allocate_aligned(alignment, bytes)       alignment is a power of two
//   void  release(void* block)                     free
//   size_t give_back()                             everything free goes back to the system; bytes
//   void  for_each_heap(visit, context)            for statistics
//   start()                                        when the library has been loaded
//   before_fork(), after_fork_in_parent(), after_fork_in_child()
//   kName                                          "solo", "shared"
#pragma once

#if defined(ANNEX_SOLO)
#include "front/solo.h"
#else
#include "front/shared.h"
#endif
