// Frees of blocks that are free already, however long ago, by whomever and in whatever way; and other uses of them that
// look at the heap.
#include <gtest/gtest.h>
#include <malloc.h>

#include <new>
#include <utility>

#include "invalid_free.h"

using namespace annex_test;

namespace {

// A block of the scenario's size, in between live ones, so that its slab stays.
char* block_among_others() {
  static void* neighbours[40];
  for (void*& neighbour : neighbours) neighbour = opaque(malloc(argument_bytes()));
  char* block = static_cast<char*>(opaque(malloc(argument_bytes())));
  for (void*& neighbour : neighbours) neighbour = opaque(malloc(argument_bytes()));
  return block;
}

// Frees the block, and then so many others of its size (or as many as make 8 MiB), every second of those that there
// are.
void free_before_others(void* block, std::size_t count) {
  static void* others[20000];
  count = std::min(count, (std::size_t{8} << 20) / argument_bytes());
  for (std::size_t i = 0; i < 2 * count; ++i) others[i] = opaque(malloc(argument_bytes()));
  free(block);
  for (std::size_t i = 0; i < 2 * count; i += 2) free(others[i]);
}

// A block that another thread has got; that thread has ended.
void* block_of_another_thread() {
  static void* block;
  in_a_thread(
      [](void*) -> void* {
        block = block_among_others();
        return nullptr;
      },
      nullptr);
  return opaque(block);
}

void free_twice_in_a_thread(void* block) {
  in_a_thread(
      [](void* argument) -> void* {
        free(argument);
        reached();
        free(argument);
        return nullptr;
      },
      opaque(block));
}

}  // namespace

// Classes of slabs of one granule and of several, of few blocks and of many.
#define FOR_SMALL_BLOCKS(name, prepare, call) \
  INVALID_SCENARIO(name, prepare, call)       \
  TEST(DoubleFree, name) { expect_abort_for({16, 100, 200, 1024, 3000, 9000, 18000, 20000, 24000, 32768}, #name); }

#define FOR_LARGE_BLOCKS(name, prepare, call) \
  INVALID_SCENARIO(name, prepare, call)       \
  TEST(DoubleFree, name) { expect_abort_for({32769, 65536, 300000, 3 << 20}, #name); }

#define BLOCK char* block = block_among_others()

FOR_SMALL_BLOCKS(at_once, BLOCK; free(block), free(opaque(block)))
FOR_SMALL_BLOCKS(after_five_others, BLOCK; free_before_others(block, 5), free(opaque(block)))
FOR_SMALL_BLOCKS(after_thousands_of_others, BLOCK; free_before_others(block, 10000), free(opaque(block)))
FOR_SMALL_BLOCKS(after_trim, BLOCK; free(block); malloc_trim(0), free(opaque(block)))
FOR_SMALL_BLOCKS(after_others_and_trim, BLOCK; free_before_others(block, 500); malloc_trim(0), free(opaque(block)))
FOR_SMALL_BLOCKS(without_live_neighbours, void* block = opaque(malloc(argument_bytes()));
                 void* other = opaque(malloc(argument_bytes())); free(block); free(other), free(opaque(block)))

FOR_SMALL_BLOCKS(by_delete, BLOCK; ::operator delete(block), ::operator delete(opaque(block)))
FOR_SMALL_BLOCKS(by_delete_after_free, BLOCK; free(block), ::operator delete[](opaque(block)))
FOR_SMALL_BLOCKS(by_sized_delete, BLOCK;
                 ::operator delete(block, argument_bytes()), ::operator delete(opaque(block), argument_bytes()))
FOR_SMALL_BLOCKS(by_aligned_delete, BLOCK; ::operator delete (block, std::align_val_t{16}),
                                           ::operator delete (opaque(block), argument_bytes(), std::align_val_t{16}))
FOR_SMALL_BLOCKS(by_free_sized, BLOCK; free_sized(block, argument_bytes()), free_sized(opaque(block), argument_bytes()))
FOR_SMALL_BLOCKS(by_free_aligned_sized, BLOCK; free(block), free_aligned_sized(opaque(block), 16, argument_bytes()))
FOR_SMALL_BLOCKS(by_cfree, BLOCK; cfree(block), cfree(opaque(block)))

FOR_SMALL_BLOCKS(from_calloc, BLOCK; void* zeros = opaque(calloc(1, argument_bytes())); free(zeros);
                 free(block), free(opaque(zeros)))
FOR_SMALL_BLOCKS(from_aligned_alloc, BLOCK; void* aligned = opaque(aligned_alloc(64, argument_bytes())); free(aligned);
                 free(block), free(opaque(aligned)))
FOR_SMALL_BLOCKS(from_realloc, BLOCK; void* moved = opaque(realloc(opaque(malloc(40000)), argument_bytes()));
                 free(moved); free(block), free(opaque(moved)))

FOR_SMALL_BLOCKS(of_what_realloc_moved, BLOCK; opaque(realloc(block, 4 * argument_bytes() + 16)), free(opaque(block)))
FOR_SMALL_BLOCKS(of_what_reallocarray_moved, BLOCK;
                 opaque(reallocarray(block, 4, argument_bytes() + 16)), free(opaque(block)))
FOR_SMALL_BLOCKS(of_what_realloc_freed, BLOCK; opaque(realloc(block, 0)), free(opaque(block)))
FOR_SMALL_BLOCKS(then_realloc_to_more, BLOCK; free(block), opaque(realloc(opaque(block), 4 * argument_bytes() + 16)))
FOR_SMALL_BLOCKS(then_realloc_in_place, BLOCK; free(block), opaque(realloc(opaque(block), argument_bytes())))
FOR_SMALL_BLOCKS(then_realloc_to_nothing, BLOCK; free(block), opaque(realloc(opaque(block), 0)))
FOR_SMALL_BLOCKS(then_usable_size, BLOCK; free(block), opaque(malloc_usable_size(opaque(block))))
FOR_SMALL_BLOCKS(then_usable_size_after_others, BLOCK;
                 free_before_others(block, 500), opaque(malloc_usable_size(opaque(block))))

// --- by several threads ---------------------------------------------------------------------------------------------

ANNEX_SCENARIO(both_by_another_thread) {
  free_twice_in_a_thread(block_among_others());
  return survived();
}
TEST(DoubleFree, both_by_another_thread) {
  expect_abort_for({16, 100, 200, 1024, 3000, 9000, 18000, 20000, 24000, 32768, 40000, 3 << 20},
                   "both_by_another_thread");
}
FOR_SMALL_BLOCKS(by_the_owner_after_another, BLOCK; free_in_a_thread(block), free(opaque(block)))
FOR_SMALL_BLOCKS(by_another_after_the_owner, BLOCK; free(block), free_in_a_thread(block))
FOR_SMALL_BLOCKS(by_two_others, BLOCK; free_in_a_thread(block), free_in_a_thread(block))
FOR_SMALL_BLOCKS(by_the_owner_who_has_taken_it_in, BLOCK; free_in_a_thread(block); malloc_trim(0), free(opaque(block)))
FOR_SMALL_BLOCKS(of_an_ended_threads_block, void* block = block_of_another_thread(); free(block), free(opaque(block)))
FOR_SMALL_BLOCKS(by_another_of_an_ended_threads_block, void* block = block_of_another_thread();
                 free(block), free_in_a_thread(block))
FOR_SMALL_BLOCKS(then_usable_size_in_another_thread, BLOCK; free(block), in_a_thread(
                                                                             [](void* argument) -> void* {
                                                                               opaque(malloc_usable_size(argument));
                                                                               return nullptr;
                                                                             },
                                                                             block))

// --- large blocks ---------------------------------------------------------------------------------------------------

FOR_LARGE_BLOCKS(large_after_others, BLOCK; free_before_others(block, 20), free(opaque(block)))
FOR_LARGE_BLOCKS(large_after_trim, BLOCK; free(block); malloc_trim(0), free(opaque(block)))
FOR_LARGE_BLOCKS(large_by_sized_delete, BLOCK;
                 ::operator delete(block, argument_bytes()), ::operator delete(opaque(block), argument_bytes()))
// The first thread leaves behind what libc takes for the second, which might else be at the freed block's address.
FOR_LARGE_BLOCKS(large_by_another_after_the_owner, BLOCK; free_in_a_thread(nullptr);
                 free(block), free_in_a_thread(block))
FOR_LARGE_BLOCKS(large_by_the_owner_after_another, BLOCK; free_in_a_thread(block), free(opaque(block)))
FOR_LARGE_BLOCKS(large_that_realloc_moved, BLOCK; opaque(realloc(block, 4 * argument_bytes())), free(opaque(block)))
FOR_LARGE_BLOCKS(large_that_realloc_made_small, BLOCK; opaque(realloc(block, 100)), free(opaque(block)))
FOR_LARGE_BLOCKS(large_then_realloc, BLOCK; free(block), opaque(realloc(opaque(block), 2 * argument_bytes())))
FOR_LARGE_BLOCKS(large_then_usable_size, BLOCK; free(block), opaque(malloc_usable_size(opaque(block))))
FOR_LARGE_BLOCKS(the_part_that_realloc_cut_off,
                 char* block = static_cast<char*>(opaque(malloc(2 * argument_bytes() + 131072)));
                 block = static_cast<char*>(opaque(realloc(block, argument_bytes()))),
                 free(opaque(block + ((argument_bytes() + 65535) & ~std::size_t{65535}))))
