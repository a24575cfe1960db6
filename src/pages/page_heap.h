// The page heap: the one door to addresses and memory. It takes runs from the arenas for slabs and spans, and takes
// them back; and it alone knows whether it is addresses or memory that is short.
//
//   take, give   runs, between heaps and the page heap
//   purge        a run's memory goes back to the system
//   unmap        its addresses as well
//   trim         all of that, of whatever is free
//
// Pages of slabs in use go back by themselves: core/holes.h.
//
// A run is taken from, in this order: dirty runs (no page fault, no growth), for a span dirty runs put together
// (gather.cpp, or with the clean ones beside them), clean runs, an arena's frontier, another arena. What goes back to
// the system, and when, is in commitment.h.
//
//   page_heap.cpp    the door itself, and the accounts
//   find_run.cpp     of which pages a run is made
//   gather.cpp       a large span made of pages that lie elsewhere
//   purge.cpp        what is dirty goes back, and by whom; memory made resident beforehand; around a fork
//   addresses.cpp    addresses go back, and are mapped again
//   span_guards.cpp  what lies around slabs and spans in the hardened build
//
// Synchronization: whatever is public takes the lock itself, unless its signature says that the caller holds it
// (locked.h). Dirty memory is purged, moved and populated without the lock, and meanwhile nobody's; what is clean, and
// records, are unmapped with it.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

#include "pages/books.h"
#include "pages/chance.h"
#include "pages/free_runs.h"
#include "pages/granule.h"
#include "pages/locked.h"
#include "pages/transfer_cache.h"

namespace annex {

// What a run is taken for.
enum class Use : uint8_t {
  kSlab,
  // A slab that is the first of its class in its heap. It may stay the only one, with a few blocks: of clean memory it
  // takes a page or two, and a dirty run is left to who fills it (commitment.h).
  kFirstSlab,
  kSpan,
};

struct Want {
  uint32_t granules;
  Use use;
  uint8_t size_class = 0;  // of a slab
  size_t bytes = 0;        // of a span: its usable size
  uint32_t alignment = 1;  // granules, a power of two
};

// A run that has been taken. None: head is nullptr.
struct Run {
  Granule* head = nullptr;
  bool clean = false;  // it reads as zero
};

// Clean runs of one granule that a heap takes beforehand; they cost no memory before they are touched.
struct Spares {
  static constexpr uint32_t kMost = 8;
  Granule* runs[kMost] = {};
  uint32_t count = 0;
};

class PageHeap {
 public:
  Books books;

  // --- runs
  // -----------------------------------------------------------------------------------------------------------

  // Sets the library up (reads the environment, reserves the first arena) if that has not been done. False where not
  // even a small arena could be reserved.
  bool set_up();

  // No run where memory or address space is exhausted or ANNEX_MAX_HEAP is reached. Whatever a walk reads of the run
  // (its kind and length; a slab's class, and that it has no blocks; a span's usable size) is true when this returns;
  // the rest of the record is the caller's to write. Where the run is a clean one of one granule, up to
  // `more` others are taken with it: slabs of the same class.
  //
  // Whoever wants one granule for a slab, and finds the lock held, uses the transfer cache instead.
  Run take(const Want& want, uint32_t more = 0, Spares* spares = nullptr);
  // A run for a span that takes the place of one of `kept` granules, whose pages are to be moved to its start. nullptr
  // where that can't be done, too.
  Span* take_to_move_into(uint32_t kept, uint32_t granules, size_t bytes);

  // The caller gives a run, of which nothing is in use any more. It becomes dirty.
  void give_slab(Granule* slab);
  void give_span(Span* span) { give(span, false, nullptr); }
  // The same of a span that reads as zero and holds no memory; its pages may have been moved, all of them, to another
  // span's start.
  void give_clean_span(Span* span, const Span* moved_to = nullptr) { give(span, true, moved_to); }
  void give(Spares* spares);

  // Makes a span's usable size `bytes`, in place: lengthens it where what follows is free, or shortens it. False where
  // that can't be done.
  bool resize(Span* span, size_t bytes);

  // Gives all that is free back to the system, and addresses that nobody uses; returns the bytes, with those that heaps
  // have just given back of their slabs (core/holes.h).
  size_t trim(size_t of_slabs = 0);

  // Memory for what else the library keeps in its books, wherever there is room: as os::map() has it, and counted.
  // Takes no lock.
  void* map_metadata(size_t bytes);

  // visit(head) for each run, free ones too, until it returns anything but 0; returns that.
  template <class Visit>
  static int walk(const Locked&, Visit visit) {
    for (uint32_t i = 0; i < arena_count; ++i) {
      uint32_t length = 0;
      for (Granule* head = arenas[i].first(); head < arenas[i].frontier(); head += length) {
        length = length_of(head);
        if (const int result = visit(head); result != 0) return result;
      }
    }
    return 0;
  }
  // How many free runs are dirty.
  size_t count_dirty_runs(const Locked&) const;

  // --- what goes back (purge.cpp)
  // ---------------------------------------------------------------------------------------

  // For who frees without giving a run: what is due goes back, as for a run of so many bytes, unless the lock is held.
  void purge_due_if_free(size_t bytes);
  // A thread becomes a keeper, and is one until it leaves. What is due goes back then.
  void keeper_comes();
  void keeper_leaves();
  // For a keeper, a step of 2 MiB at most: what is due, every few milliseconds; and what growth has left to it,
  // whenever it can. True where there may be more to do.
  void keeper_purges_due();
  bool keeper_purges_after_growth();
  // For the purger: gives back what is due, but for a keeper's, or at once all that is dirty; how long until there may
  // be more, in milliseconds; kNothing where nothing is dirty. *small: whether the heap is too small to need it.
  // Negative where it has been so twice in a row, and nobody counts on the purger any more: a program that grows again
  // at once still finds it, and need not wait until the old thread has gone.
  static constexpr long kNothing = LONG_MAX;
  long purger_purges(bool* small, bool at_once);
  // Nothing is due any more, for now: what is kept in the books for what has been given back goes, too.
  void purger_rests();
  // It has ended, or, where it could not be made, is not wanted for a second.
  void purger_ended(bool not_made = false);
  // Pages of a run in use are about to go back: no huge pages there any more. False where there are none anywhere.
  bool end_huge_pages(Granule* run, uint32_t granules);
  // So many bytes of slabs in use have gone back.
  void note_purged(size_t bytes);

  // Makes so many bytes of clean memory resident: a dirty run from then on. False where there is none.
  bool populate(Locked& lock, size_t bytes, bool huge_pages);

  // --- fork
  // -----------------------------------------------------------------------------------------------------------

  // Holds the lock from a moment on when nothing is half given back. In the child there is no keeper and no purger.
  void hold_lock_for_fork();
  void after_fork_in_child();

 private:
  // page_heap.cpp
  bool set_up(const Locked&);
  static size_t standard_arena();
  Run take(Locked& lock, const Want& want);
  void take_spares(const Locked&, const Want& want, uint32_t count, Spares* spares);
  static Granule* begin(Granule* run, const Want& want);
  void give(Span* span, bool clean, const Span* moved_to);
  static bool is_filled(const Span* span, bool is_written(const void* page));
  void look_at_watched(const Locked&);
  void watch(const Span* span);
  Granule* end_use(Granule* head, uint32_t granules);
  bool empty_transfer_cache(const Locked&);
  bool lengthen(Locked& lock, Span* span, uint32_t granules, size_t bytes);
  static void set_length(Span* span, uint32_t granules);
  void account_moved(size_t bytes, Use use);
  void account_taken(size_t bytes, Use use);
  void account_given(size_t bytes, Use use);
  static uint32_t length_of(const Granule* head);

  // find_run.cpp: what these return is nobody's yet
  Run find(Locked& lock, const Want& want, uint32_t granules);
  Run find_unaligned(Locked& lock, const Want& want, uint32_t granules);
  bool wants_huge_pages(const Want& want) const;
  Run find_untouched(uint32_t granules, const Want& want, bool may_be_huge);
  Run find_exhausted(Locked& lock, const Want& want, uint32_t granules);
  Run find_at(Granule* place, uint32_t granules, bool huge_pages, Arena& arena);
  Granule* find_dirty(uint32_t granules);
  Granule* find_clean(uint32_t granules);
  Granule* find_unmapped(uint32_t granules);
  Granule* find_joined(Locked& lock, uint32_t granules);
  Granule* extend(Arena& arena, uint32_t granules, bool huge_pages);
  Granule* extend_any(uint32_t granules, bool huge_pages);
  uint32_t offset_by_chance(uint32_t length, uint32_t granules);

  // gather.cpp
  Granule* gather(Locked& lock, uint32_t granules);
  Granule* gather_behind(Locked& lock, uint32_t kept, uint32_t granules);
  bool can_move_to(uint32_t granules) const;
  Granule* find_target(Arena& arena, uint32_t whole);
  uint32_t fill(Locked& lock, Arena& arena, Granule* part, uint32_t granules);
  Granule* keep_front(Granule* target, uint32_t whole, uint32_t granules, bool rest_is_dirty);

  // purge.cpp
  bool something_may_be_due(const Locked& lock) const;
  void end_huge_around(const Locked& lock, Granule* run, uint32_t granules);
  void end_huge(const Locked&, Arena& arena, Granule* run, const Granule* granule);
  void purge_due(Locked& lock, uint64_t now_ms, size_t bytes);
  void before_growth(Locked& lock, size_t bytes);
  size_t purge_all(Locked& lock);
  size_t purge_oldest(Locked& lock, size_t at_most, size_t* more);
  template <class Choose>
  size_t purge_while(Locked& lock, Choose choose, size_t budget = SIZE_MAX);
  void purge_expired(Locked& lock, uint64_t now_ms, size_t budget = SIZE_MAX);
  size_t apply_growth_rule(Locked& lock, size_t bytes, size_t budget = SIZE_MAX);

  // addresses.cpp
  bool make_room(const Locked&, size_t bytes);
  size_t unmap_clean(size_t bytes);
  FreeRun* unmap_clean(FreeRun* run);
  FreeRun* put_unmapped(Granule* run, uint32_t granules, size_t bytes);
  size_t unmap_tails(const Locked&, size_t bytes);
  bool unmap_tail(Span* span);
  bool map_tail(Span* span);
  void give_without_tail(Span* span);
  void trim(Arena& arena);
  static void purge_records(FreeRun* run);

  // span_guards.cpp
  bool addresses_abound() const { return kByChance && !books.addresses_are_scarce; }
  bool guards_wanted() const;
  uint32_t guarded_granules(const Want& want, uint32_t* before) const;
  static Granule* put_guards_around(Granule* run, uint32_t before, uint32_t granules);
  static Granule* without_guards(Span* span, uint32_t* granules);
  void leave_one_out(const Locked&);

  FreeRuns free_;
  uint64_t rested_with_ = 0;  // what had been purged when the purger last had nothing to do
  TransferCache transfer_cache_;
  static constexpr uint64_t kEmptyAfterMs = 100;  // for the transfer cache: so long may something lie there
  uint64_t emptied_ms_ = 0;                       // when it was last emptied
  Chance chance_;                                 // hardened build: places
  uint32_t tails_unmapped_ = 0;
  uint32_t pieces_moved_to_ = 0;  // of 2 MiB (gather.cpp)
  bool moving_refused_ = false;   // by the system: it is not asked again

  friend struct PageHeapTest;  // tests/unit
};

extern constinit PageHeap page_heap [[gnu::visibility("hidden")]];

}  // namespace annex
