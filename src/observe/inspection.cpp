// What other processes find: see inspection.h.
#include "observe/inspection.h"

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "annex/annex.h"
#include "front/front.h"
#include "front/thread_client.h"
#include "front/thread_heap.h"
#include "harden/live_blocks.h"
#include "pages/arena.h"
#include "pages/page_heap.h"
#include "support/side_tables.h"
#include "support/support_core.h"

#define ANNEX_STRING_(x) #x
#define ANNEX_STRING(x) ANNEX_STRING_(x)

namespace annex {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

// What is private where it is (each of these has it for a friend).
struct Layout {
  static constexpr observe::ArenasLayout arenas() {
    static_assert(kMaxArenas == observe::kMostArenas);
    return {annex::arenas,
            &arena_count,
            sizeof(Arena),
            offsetof(Arena, start_),
            offsetof(Arena, metadata_),
            offsetof(Arena, frontier_)};
  }

  template <class Heap>
  static constexpr uint32_t holder() {
    return offsetof(Heap, lease) + offsetof(decltype(Heap::lease), mine_);
  }
  template <class Heap>
  static constexpr uint32_t thread() {
    return offsetof(Heap, lease) + offsetof(decltype(Heap::lease), thread_);
  }

  static constexpr observe::ListLayout heaps() {
    using front::ThreadHeap;
    return {.first = &front::all_heaps,
            .next = offsetof(ThreadHeap, next_of_all),
            .owner = 0,
            .holder = holder<ThreadHeap>(),
            .thread = thread<ThreadHeap>(),
            .has_pooled = 1,
            .pooled = offsetof(ThreadHeap, inbox) + offsetof(remote::Inbox, pooled_),
            .refills = offsetof(ThreadHeap, refills),
            .batches = offsetof(ThreadHeap, batches)};
  }

  static constexpr observe::ListLayout clients() {
    using front::ThreadClient;
    return {.first = &support::support_core.all_,
            .next = offsetof(ThreadClient, next_of_all),
            .owner = offsetof(ThreadClient, heap),
            .holder = holder<ThreadClient>(),
            .thread = thread<ThreadClient>(),
            .has_pooled = 0,
            .pooled = 0,
            .refills = offsetof(ThreadClient, helped),
            .batches = 0};
  }

  static constexpr observe::ClassMapLayout class_map() {
    return {support::side_tables, sizeof(support::SideTables), offsetof(support::SideTables, map_), support::kHasHoles,
            16};
  }

  static constexpr observe::StatesLayout states() {
    return {harden::tiny_states.all, harden::larger_states.all, harden::kTinyShift, harden::kLargerShift,
            harden::kTinyBlock};
  }
};

#pragma GCC diagnostic pop

namespace {

constexpr char kNumber[] =
    ANNEX_STRING(ANNEX_VERSION_MAJOR) "." ANNEX_STRING(ANNEX_VERSION_MINOR) "." ANNEX_STRING(ANNEX_VERSION_PATCH) " ";

template <class... Fronts>
constexpr bool is_front_one_of = (std::is_same_v<Policy::Front, Fronts> || ...);
// An experiment's may have none.
constexpr bool kHasThreadHeaps = is_front_one_of<front::Shared, front::Solo, front::Offload, front::Hardened>;

constexpr observe::Inspection inspection() {
  observe::Inspection all = {};
  std::copy_n(observe::kMagic, sizeof all.magic, all.magic);
  all.layout = observe::layout_number();
  all.self = &annex_inspection;
  static_assert(sizeof kNumber + sizeof Front::kName <= sizeof all.version);
  std::copy(std::begin(Front::kName), std::end(Front::kName), std::copy_n(kNumber, sizeof kNumber - 1, all.version));
  all.arenas = Layout::arenas();
  if constexpr (kHasThreadHeaps) all.heaps = Layout::heaps();
  if constexpr (is_front_one_of<front::Offload>) {
    all.clients = Layout::clients();
    all.marks = observe::Marks::kMapKey;
    all.class_map = Layout::class_map();
  } else if constexpr (is_front_one_of<front::Hardened>) {
    all.marks = observe::Marks::kState;
    all.states = Layout::states();
  }
  all.books = &page_heap.books;
  all.profile = &profile::tables;
  all.control = &os::control;
  all.slow_path_called = &page_heap.books.slow_path_called;
  return all;
}

}  // namespace

}  // namespace annex

extern "C" constinit const annex::observe::Inspection annex_inspection = annex::inspection();
