// The lease of a heap as a model for Spin, which tries every order of the steps of a thread that has the heap and of
// others that take it while that thread is on no slow path (front/lease.h).
//
// The model is of the protocol: front/lease.h, the heap's owner and whoever takes it (front/thread_heap.cpp), and holes that
// are made while the owner sleeps (core/heap.cpp, core/holes.cpp), under their names. The owner's stores wait in a
// buffer, as a processor's do, until they drain: at any time later; where the owner takes a lock; and in a barrier that
// another thread has all threads pass. Simpler than the library:
//
//   memory orders   Stores drain in the order in which they were done, as on x86-64; but see WEAK. Those of the other
//                   threads, and of the owner on slow paths and with the lock, are done at once.
//   the heap        One class, a slab of four blocks, and two pages: of the blocks 1 and 2, and of 3 and 4. Nothing is
//                   counted, nothing comes from other threads, and the slab is not let go of.
//   slow paths      What they do to the heap is one step.
//   the pool        The same heap goes to the next thread, which gets the blocks in use as well.
//   steps           Only whether their number is odd.
//
// check.py runs it, for CTest. The parameters:
#ifndef TAKERS
#define TAKERS 1   // threads that may take the heap, any number of times
#endif
#ifndef WEAK
#define WEAK 0     // 1: stores to different places drain in any order
#endif

// Faults to put in by name (-DBUG_...), each of which Spin must find: see CMakeLists.txt. The #else is what is right.

// There is no barrier, neither before the taker looks at the steps nor before it looks at the list again.
#ifdef BUG_NO_BARRIER
#define BARRIER() skip
#else
#define BARRIER() drain_all()
#endif

// The same of the second alone. Where stores drain in order none is needed there.
#ifdef BUG_NO_SECOND_BARRIER
#define SECOND_BARRIER() skip
#else
#define SECOND_BARRIER() BARRIER()
#endif

#ifdef BUG_TAKER_DOES_NOT_LOOK
#define IS_SLOW false
#else
#define IS_SLOW (memory[STEPS] != 0)
#endif

// The owner does not look again whether it has the heap, after it has said that it is on a slow path.
#ifdef BUG_OWNER_DOES_NOT_LOOK_AGAIN
#define STILL_MINE true
#else
#define STILL_MINE mine
#endif

// What was freed is read after the barrier alone. Where stores drain in any order, a block may be seen there before it
// leads to the next one.
#ifdef BUG_READS_THE_LIST_TOO_LATE
#define READ_FREED() skip
#define READ_FREED_LATE() freed = memory[FREED]
#else
#define READ_FREED() freed = memory[FREED]
#define READ_FREED_LATE() skip
#endif

// Of the list that is ready, the first block is taken too.
#ifdef BUG_TAKES_THE_FIRST_TOO
#define FIRST_TOO (second != 0 -> BIT(first) : 0)
#else
#define FIRST_TOO 0
#endif

// Whether the first block is still the first after the barrier.
#ifdef BUG_DOES_NOT_LOOK_AGAIN
#define STILL_FIRST true
#else
#define STILL_FIRST (memory[LIST] == first)
#endif

// The owner that comes back does not see that it has freed a block meanwhile.
#ifdef BUG_FORGETS_THE_LATE_FREE
#define LATE_FREE 0
#else
#define LATE_FREE memory[FREED]
#endif

// Nor that it has allocated one.
#ifdef BUG_FORGETS_THE_LATE_MALLOC
#define REST_OF_THE_LIST memory[LIST]
#else
#define REST_OF_THE_LIST 0
#endif

// The thread that ends gives its heap up without the lock.
#ifdef BUG_LEAVES_WITHOUT_THE_LOCK
#define LOCK_TO_LEAVE() skip
#define UNLOCK_TO_LEAVE() skip
#else
#define LOCK_TO_LEAVE() lock_as_owner()
#define UNLOCK_TO_LEAVE() lock = false
#endif

#define BLOCKS 4
#define ALL 30          // the set of all blocks
#define BIT(block) (1 << (block))
#define PAGE_1 6
#define PAGE_2 24
#define OF_PROGRAM 7    // what the program writes to its blocks
#define DEPTH 3         // stores that the buffer has room for

// Memory that the owner's fast paths write to: each block's first word, and
#define LIST 5          // the list that malloc pops from
#define FREED 6         // what was freed of the slab
#define STEPS 0         // 1 while the owner is on a slow path
byte memory[7]

// The owner's stores that have not drained, the oldest first.
byte stores
byte place[DEPTH]
byte value[DEPTH]

bool lock        // the inbox's
bool mine        // the owner's fast paths find the heap
bool number      // and know it by its number
bool has_thread  // Lease::mine_
bool taken

bool aside
byte kept
byte ready
byte in_hole

// What no thread reads but for the properties.
byte in_use      // blocks
bool slow        // the owner is on a slow path
bool taking      // another thread is at work on the heap
bool reachable   // the owner's variables may be written to by others
byte running

// Scratch space within one step.
hidden byte block, found, chosen, slot, loose, holes

// Properties, by the names that a failure shows.
hidden byte one_thread_changes_the_heap
hidden byte each_block_is_handed_out_once
hidden byte what_is_in_use_is_left_alone
hidden byte no_block_in_use_lies_in_a_hole
hidden byte lists_lead_to_blocks
hidden byte nothing_is_lost
hidden byte a_thread_that_has_left_is_left_alone

// --- the store buffer -----------------------------------------------------------------------------------------------

// What the owner reads: the newest of its own stores there, or memory.
#define BUFFERED(i, from) (stores > (i) && place[i] == (from))
#define LOAD(from)                         \
  (BUFFERED(2, from) -> value[2] : (BUFFERED(1, from) -> value[1] : (BUFFERED(0, from) -> value[0] : memory[from])))

// Part of an atomic step.
inline store(to, what) {
  stores < DEPTH -> place[stores] = to; value[stores] = what; stores++
}

// Within a step. What was stored there drains.
inline drain(from) {
  memory[place[from]] = value[from];
  slot = from;
  do
  :: slot + 1 < stores -> place[slot] = place[slot + 1]; value[slot] = value[slot + 1]; slot++
  :: else -> break
  od;
  stores--;
  place[stores] = 0;
  value[stores] = 0
}

inline drain_all() {
  d_step {
    do
    :: stores > 0 -> drain(0)
    :: else -> break
    od
  }
}

// The oldest store, or, on a weak machine, the oldest to its place.
proctype Buffer() {
  do
  :: d_step { stores > 0 -> drain(0) }
#if WEAK
  :: d_step { stores > 1 && place[1] != place[0] -> drain(1) }
  :: d_step { stores > 2 && place[2] != place[1] && place[2] != place[0] -> drain(2) }
#endif
  :: atomic { running == 0 && stores == 0 -> break }
  od
}

// --- the heap -------------------------------------------------------------------------------------------------------

// Within a step. Adds the blocks of a list to those found; none may be among them, nor in use, nor in a hole.
inline add_list(first_of_it) {
  chosen = first_of_it;
  do
  :: chosen == 0 -> break
  :: else ->
    lists_lead_to_blocks = chosen <= BLOCKS && (found & BIT(chosen)) == 0;
    assert(lists_lead_to_blocks);
    found = found | BIT(chosen);
    chosen = memory[chosen]
  od
}

// Within a step, by the owner, of whose stores none to its lists waits.
inline check() {
  found = 0;
  add_list(memory[LIST]);
  add_list(memory[FREED]);
  nothing_is_lost = !aside && (found | in_use | in_hole) == ALL;
  assert(nothing_is_lost);
  each_block_is_handed_out_once = (found & in_use) == 0;
  assert(each_block_is_handed_out_once);
  no_block_in_use_lies_in_a_hole = (in_hole & (in_use | found)) == 0;
  assert(no_block_in_use_lies_in_a_hole);
  found = 0
}

// Within a step. The program gets a block.
inline hand_out(which) {
  each_block_is_handed_out_once = which <= BLOCKS && (in_use & BIT(which)) == 0;
  assert(each_block_is_handed_out_once);
  no_block_in_use_lies_in_a_hole = (in_hole & BIT(which)) == 0;
  assert(no_block_in_use_lies_in_a_hole);
  in_use = in_use | BIT(which)
}

// Within a step. Sets block to the first of a set that is not empty.
inline find_block(those) {
  block = 1;
  do
  :: ((those) & BIT(block)) != 0 -> break
  :: else -> block++
  od
}

// Within a step.
inline check_block(which) {
  what_is_in_use_is_left_alone = LOAD(which) == OF_PROGRAM;
  assert(what_is_in_use_is_left_alone)
}

// --- the owner ------------------------------------------------------------------------------------------------------

// An atomic instruction, before which all stores drain.
inline lock_as_owner() {
  atomic {
    stores == 0 && !lock -> lock = true
  }
}

inline come_back() {
  lock_as_owner();
  mine = true;
  number = true;
  d_step {
    if
    :: taken ->
      one_thread_changes_the_heap = !taking;
      assert(one_thread_changes_the_heap);
      taken = false;
      end_aside();
      check()
    :: else -> skip
    fi
  }
  lock = false
}

// Within a step.
inline end_aside() {
  if
  :: aside ->
    aside = false;
    block = LATE_FREE;
    if
    :: block != 0 -> memory[block] = kept
    :: else -> memory[FREED] = kept
    fi;
    block = 0;
    if
    :: ready != 0 && memory[LIST] == ready -> memory[ready] = 0
    :: ready != 0 && memory[LIST] != ready -> memory[LIST] = REST_OF_THE_LIST
    :: else -> skip
    fi;
    kept = 0;
    ready = 0
  :: else -> skip
  fi
}

// OwnHeap. Of the owner's stores none but that of the steps waits, so that what follows may look at memory: on a slow
// path, the owner's own would be found in the buffer.
inline enter() {
  do
  :: !mine -> come_back()
  :: mine ->
    atomic { store(STEPS, 1) }
    if
    :: d_step {
        STILL_MINE ->
        one_thread_changes_the_heap = !taking;
        assert(one_thread_changes_the_heap);
        slow = true
      }
      break
    :: !STILL_MINE ->
      atomic { store(STEPS, 0) }
      come_back()
    fi
  od;
  (stores == 0 || stores == 1 && place[0] == STEPS)
}

inline leave() {
  atomic {
    store(STEPS, 0);
    slow = false
  }
}

// Within a step. A block of what was freed, or of a hole.
inline refill() {
  if
  :: memory[LIST] == 0 && memory[FREED] != 0 ->
    memory[LIST] = memory[FREED];
    memory[FREED] = 0
  :: memory[LIST] == 0 && memory[FREED] == 0 && (in_hole & PAGE_1) != 0 ->
    in_hole = in_hole & ~PAGE_1;
    memory[1] = 2;
    memory[2] = 0;
    memory[LIST] = 1
  :: memory[LIST] == 0 && memory[FREED] == 0 && (in_hole & PAGE_1) == 0 && (in_hole & PAGE_2) != 0 ->
    in_hole = in_hole & ~PAGE_2;
    memory[3] = 4;
    memory[4] = 0;
    memory[LIST] = 3
  :: else -> skip
  fi
}

inline allocate_slow() {
  enter();
  d_step {
    check();
    refill();
    block = memory[LIST];
    if
    :: block != 0 ->
      memory[LIST] = memory[block];
      hand_out(block);
      memory[block] = OF_PROGRAM
    :: else -> skip
    fi;
    block = 0
  }
  leave()
}

inline allocate() {
  if
  :: !mine -> allocate_slow()
  :: mine ->
    at = LOAD(LIST);
    if
    :: at == 0 -> allocate_slow()
    :: else ->
      word = LOAD(at);
      atomic {
        store(LIST, word);
        hand_out(at);
        word = 0
      }
      atomic {
        store(at, OF_PROGRAM);  // which may be the program's first to the block
        at = 0
      }
    fi
  fi
}

inline release() {
  d_step {
    find_block(in_use);
    at = block;
    block = 0;
    check_block(at)
  }
  if
  :: number ->
    word = LOAD(FREED);
    atomic { store(at, word); word = 0 }
    atomic {
      store(FREED, at);
      in_use = in_use & ~BIT(at);
      at = 0
    }
  :: !number ->
    enter();
    d_step {
      memory[at] = memory[FREED];
      memory[FREED] = at;
      in_use = in_use & ~BIT(at);
      at = 0
    }
    leave()
  fi
}

inline leave_heap() {
  enter();
  LOCK_TO_LEAVE();
  has_thread = false;
  UNLOCK_TO_LEAVE();
  leave();
  d_step {
    mine = false;
    number = false;
    reachable = false
  }
}

// The next thread, which has taken the pool's lock.
inline enter_heap() {
  d_step {
    stores == 0 ->
    mine = true;
    number = true;
    reachable = true
  }
  lock_as_owner();
  has_thread = true;
  lock = false
}

proctype Owner() {
  byte at, word;
  do
  :: allocate()
  :: in_use != 0 -> release()
  :: leave_heap(); enter_heap()
  :: break
  od;
  running--
}

// --- whoever takes the heap -----------------------------------------------------------------------------------------

// Lease::point_at.
inline point_at(heap) {
  d_step {
    a_thread_that_has_left_is_left_alone = reachable;
    assert(a_thread_that_has_left_is_left_alone);
    mine = heap
  }
  d_step {
    a_thread_that_has_left_is_left_alone = reachable;
    assert(a_thread_that_has_left_is_left_alone);
    number = heap
  }
}

// Within a step. Links those blocks.
inline link(those) {
  kept = 0;
  block = BLOCKS;
  do
  :: block == 0 -> break
  :: else ->
    if
    :: ((those) & BIT(block)) != 0 -> memory[block] = kept; kept = block
    :: else -> skip
    fi;
    block--
  od
}

inline make_holes_aside() {
  READ_FREED();
  first = memory[LIST];
  if
  :: first != 0 -> second = memory[first]
  :: else -> skip
  fi;
  SECOND_BARRIER();
  if
  :: first != 0 && STILL_FIRST -> skip
  :: else -> second = 0
  fi;
  // Nobody else reads or writes what this follows: that is one step with the look at the first block.
  d_step {
    READ_FREED_LATE();
    found = 0;
    add_list(freed);
    add_list(second);
    loose = found | FIRST_TOO;
    holes = 0;
    if
    :: (loose & PAGE_1) == PAGE_1 -> holes = holes | PAGE_1
    :: else -> skip
    fi;
    if
    :: (loose & PAGE_2) == PAGE_2 -> holes = holes | PAGE_2
    :: else -> skip
    fi;
    fresh = holes;
    if
    :: fresh != 0 ->
      link(loose & ~holes);
      ready = (second != 0 -> first : 0);
      in_hole = in_hole | fresh;
      aside = true
    :: else -> skip
    fi;
    found = 0;
    loose = 0;
    holes = 0;
    first = 0;
    second = 0
  }
  if
  :: fresh != 0 ->
    d_step {
      if
      :: memory[FREED] == freed -> memory[FREED] = 0
      :: else -> skip
      fi;
      freed = 0
    }
    d_step {
      no_block_in_use_lies_in_a_hole = (fresh & in_use) == 0;
      assert(no_block_in_use_lies_in_a_hole);
      block = 1;
      do
      :: block > BLOCKS -> break
      :: else ->
        if
        :: (fresh & BIT(block)) != 0 -> memory[block] = 0
        :: else -> skip
        fi;
        block++
      od;
      block = 0;
      fresh = 0
    }
  :: else -> freed = 0
  fi
}

// give_back_of.
proctype Taker() {
  byte first, second, freed, fresh;
  do
  :: atomic {
      !lock -> lock = true
    }
    if
    :: !has_thread || taken -> skip
    :: else ->
      point_at(false);
      BARRIER();
      if
      :: IS_SLOW -> point_at(true)
      :: else ->
        d_step {
          one_thread_changes_the_heap = !slow && !taking;
          assert(one_thread_changes_the_heap);
          taken = true;
          taking = true
        }
        if
        :: make_holes_aside()
        :: skip  // its slabs are as they were when they were last looked at
        fi;
        taking = false
      fi
    fi;
    lock = false
  :: break
  od;
  running--
}

init {
  byte takers;
  d_step {
    // 1, 3 and 4 are ready, and 2 was freed: one hole can be made.
    memory[LIST] = 1;
    memory[1] = 3;
    memory[3] = 4;
    memory[FREED] = 2;
    mine = true;
    number = true;
    has_thread = true;
    reachable = true;
    running = 1 + TAKERS
  }
  atomic {
    run Owner();
    run Buffer();
    do
    :: takers < TAKERS -> run Taker(); takers++
    :: else -> break
    od
  }
}
