// Frees of what malloc never returned: foreign memory, the inside of blocks; and the simplest double frees. The others
// are in double_free.cpp and unmade_block.cpp.
#include "invalid_free.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

using namespace annex_test;

namespace {

char in_static_storage[4096];

// A block with live neighbours on both sides.
char* small_block() {
  static void* neighbours[20];
  for (void*& neighbour : neighbours) neighbour = opaque(malloc(200));
  char* block = static_cast<char*>(opaque(malloc(200)));
  for (void*& neighbour : neighbours) neighbour = opaque(malloc(200));
  return block;
}

}  // namespace

#define INVALID_FREE(name, prepare, call) \
  INVALID_SCENARIO(name, prepare, call)   \
  TEST(InvalidFree, name) { expect_abort(#name); }

INVALID_FREE(free_of_a_stack_pointer, char local[64]; opaque(local), free(opaque(local + 16)))
INVALID_FREE(free_of_static_storage, , free(opaque(in_static_storage + 64)))
INVALID_FREE(free_of_a_small_integer, , free(opaque(reinterpret_cast<void*>(std::uintptr_t{64}))))
INVALID_FREE(free_of_a_non_canonical_pointer, ,
             free(opaque(reinterpret_cast<void*>(std::uintptr_t{0xdead'beef'dead'bee0}))))
INVALID_FREE(free_of_the_last_address, , free(opaque(reinterpret_cast<void*>(~std::uintptr_t{15}))))
INVALID_FREE(free_of_foreign_memory,
             void* foreign = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
             free(opaque(static_cast<char*>(foreign) + 4096)))

INVALID_FREE(free_of_an_interior_pointer_of_a_small_block, char* block = small_block(), free(opaque(block + 16)))
INVALID_FREE(free_of_a_misaligned_pointer, char* block = small_block(), free(opaque(block + 1)))
INVALID_FREE(free_of_a_pointer_off_by_eight, char* block = small_block(), free(opaque(block + 8)))
INVALID_FREE(free_of_an_interior_pointer_of_a_medium_block, char* block = static_cast<char*>(opaque(malloc(20000))),
             free(opaque(block + 4096)))
INVALID_FREE(free_of_an_interior_pointer_of_a_large_block, char* block = static_cast<char*>(opaque(malloc(8 << 20))),
             free(opaque(block + 16)))
INVALID_FREE(free_of_a_page_inside_a_large_block, char* block = static_cast<char*>(opaque(malloc(8 << 20))),
             free(opaque(block + (4 << 20))))

INVALID_FREE(double_free_of_a_small_block_in_a_row, char* block = small_block(); free(block), free(opaque(block)))
INVALID_FREE(double_free_of_a_medium_block_in_a_row, void* block = opaque(malloc(20000));
             free(block), free(opaque(block)))
// Never the same one twice in a row, but soon more of them than there are.
INVALID_FREE(double_frees_of_two_small_blocks_in_turn, char* block = small_block(); char* other = small_block();
             , for (int i = 0; i < 200; ++i) free(opaque(i % 2 == 0 ? block : other)))
INVALID_FREE(double_free_of_a_large_block, void* block = opaque(malloc(8 << 20)); free(block), free(opaque(block)))
INVALID_FREE(double_free_of_a_huge_block, void* block = opaque(malloc(300 << 20)); free(block), free(opaque(block)))

// Far behind everything that was handed out: inside the reserved arena where there is one, else
// nobody's memory.
INVALID_FREE(free_in_a_never_used_part_of_the_arena, char* block = static_cast<char*>(opaque(malloc(8 << 20))),
             free(opaque(block + (std::size_t{256} << 20))))

INVALID_FREE(realloc_of_a_stack_pointer, char local[64]; opaque(local), opaque(realloc(opaque(local + 16), 100)))
INVALID_FREE(realloc_of_an_interior_pointer, char* block = small_block(), opaque(realloc(opaque(block + 16), 1000)))
INVALID_FREE(realloc_of_a_misaligned_pointer, char* block = small_block(), opaque(realloc(opaque(block + 4), 1000)))
INVALID_FREE(realloc_of_a_freed_large_block, void* block = opaque(malloc(8 << 20));
             free(block), opaque(realloc(opaque(block), 100)))
INVALID_FREE(delete_of_a_stack_pointer, char local[64]; opaque(local), ::operator delete(opaque(local + 16)))
INVALID_FREE(cfree_of_a_stack_pointer, char local[64]; opaque(local), cfree(opaque(local + 16)))
INVALID_FREE(free_sized_of_a_stack_pointer, char local[64]; opaque(local), free_sized(opaque(local + 16), 32))

INVALID_FREE(usable_size_of_a_stack_pointer, char local[64];
             opaque(local), opaque(malloc_usable_size(opaque(local + 16))))
INVALID_FREE(usable_size_of_foreign_memory,
             void* foreign = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
             opaque(malloc_usable_size(opaque(static_cast<char*>(foreign) + 4096))))
INVALID_FREE(usable_size_of_an_interior_pointer, char* block = small_block(),
             opaque(malloc_usable_size(opaque(block + 16))))
INVALID_FREE(usable_size_of_a_misaligned_pointer, char* block = small_block(),
             opaque(malloc_usable_size(opaque(block + 3))))
INVALID_FREE(usable_size_of_a_page_inside_a_large_block, char* block = static_cast<char*>(opaque(malloc(8 << 20))),
             opaque(malloc_usable_size(opaque(block + (4 << 20)))))
INVALID_FREE(usable_size_in_a_never_used_part_of_the_arena, char* block = static_cast<char*>(opaque(malloc(8 << 20))),
             opaque(malloc_usable_size(opaque(block + (std::size_t{256} << 20)))))
