// A magazine that is taken from the thread that sleeps with it, as a model for Spin, which tries every order of the steps
// of the thread and of whoever takes it. The lease itself is lease.pml's; here it is what goes out of the magazine
// while one last step of malloc or free is still to come (support/magazine.h: take_asleep; support/support_core.cpp:
// empty_asleep, end_asleep; front/thread_client.h).
//
// The thread's stores wait in a buffer, as in lease.pml, with its parameters: TAKERS, and WEAK=1 where stores to
// different places drain in any order. Simpler than the library:
//
//   the magazine   three blocks, and two stacks that have room for two. The second's blocks move to the first, where
//                  the library exchanges the two. There is no floor.
//   slow paths     what they do to magazine and heap is one step
//   the heap       a set of blocks, which are the thread's alone
#ifndef TAKERS
#define TAKERS 1
#endif
#ifndef WEAK
#define WEAK 0
#endif

// Faults to put in by name (-DBUG_...), each of which Spin must find: see CMakeLists.txt. The #else is what is right.

// None between the look at what has been returned and the rest. Where stores drain in order none is needed.
#ifdef BUG_NO_BARRIER_AFTER_THE_LOOK
#define SECOND_BARRIER() skip
#else
#define SECOND_BARRIER() drain_all()
#endif

// What has been returned is looked at before the thread is known to be on a fast path.
#ifdef BUG_LOOKS_TOO_EARLY
#define LOOK_EARLY() look = memory[RETURNED]
#define LOOK() skip
#else
#define LOOK_EARLY() skip
#define LOOK() look = memory[RETURNED]
#endif

// The topmost block of the stack that is ready goes too.
#ifdef BUG_TAKES_THE_TOP_TOO
#define LEAVES_TOP false
#else
#define LEAVES_TOP (top > ready_base && memory[READY_SLOT(top)] != 0)
#endif

// Who takes it for the second time forgets that the topmost block may have been taken meanwhile.
#ifdef BUG_FORGETS_WHAT_MALLOC_TOOK
#undef LEAVES_TOP
#define LEAVES_TOP (memory[READY_SLOT(top)] != 0)
#endif

// free says that a block is there before it is.
#ifdef BUG_FREE_SAYS_SO_FIRST
#define FIRST_STORE() store(RETURNED, at + 1)
#define SECOND_STORE() store(RETURNED_SLOT(at), which)
#else
#define FIRST_STORE() store(RETURNED_SLOT(at), which)
#define SECOND_STORE() store(RETURNED, at + 1)
#endif

#define BLOCKS 3
#define ROOM 2
#define ALL 14  // the bits of blocks 1 to 3
#define BIT(block) (1 << (block))
#define DEPTH 3

// Places in memory. A stack's top is how many blocks are below it; the slot with no block is 0.
#define STEPS 1
#define READY 2
#define RETURNED 3
#define READY_SLOT(i) (4 + (i))     // 0 to ROOM
#define RETURNED_SLOT(i) (7 + (i))  // 0 to ROOM - 1
#define PLACES 10

byte memory[PLACES]
byte stores      // the thread's that have not drained, the oldest first
byte place[DEPTH]
byte value[DEPTH]

bool lock
bool mine        // the thread's fast paths find the magazine
bool taken
byte ready_base, returned_base

byte heap        // what is in it
byte in_use      // what no thread reads but for the properties
byte running
hidden byte i, found, block

// Properties, by the names that a failure shows.
hidden byte each_block_is_in_one_place
hidden byte nothing_is_lost

#define BUFFERED(i, from) (stores > (i) && place[i] == (from))
#define LOAD(from)                         \
  (BUFFERED(2, from) -> value[2] : (BUFFERED(1, from) -> value[1] : (BUFFERED(0, from) -> value[0] : memory[from])))

inline store(to, what) {
  stores < DEPTH -> place[stores] = to; value[stores] = what; stores++
}

inline drain(from) {
  memory[place[from]] = value[from];
  i = from;
  do
  :: i + 1 < stores -> place[i] = place[i + 1]; value[i] = value[i + 1]; i++
  :: else -> break
  od;
  stores--;
  place[stores] = 0;
  value[stores] = 0;
  i = 0
}

inline drain_all() {
  d_step {
    do
    :: stores > 0 -> drain(0)
    :: else -> break
    od
  }
}

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

// Within a step: a block goes into a set, in which it must not be.
inline add(set, which) {
  each_block_is_in_one_place = which >= 1 && which <= BLOCKS && (set & BIT(which)) == 0;
  assert(each_block_is_in_one_place);
  set = set | BIT(which)
}

// Within a step: blocks of a stack go into a set.
inline add_ready(set, to) {
  i = ready_base;
  do
  :: i < to -> i++; block = memory[READY_SLOT(i)]; add(set, block)
  :: else -> break
  od;
  i = 0;
  block = 0
}
inline add_returned(set, to) {
  i = returned_base;
  do
  :: i < to -> block = memory[RETURNED_SLOT(i)]; add(set, block); i++
  :: else -> break
  od;
  i = 0;
  block = 0
}

// Within a step, by the thread, whose stores have drained.
inline check() {
  found = heap;
  add_ready(found, memory[READY]);
  add_returned(found, memory[RETURNED]);
  each_block_is_in_one_place = (found & in_use) == 0;
  assert(each_block_is_in_one_place);
  nothing_is_lost = (found | in_use) == ALL;
  assert(nothing_is_lost);
  found = 0
}

// --- the thread -----------------------------------------------------------------------------------------------------

inline come_back() {
  atomic { stores == 0 && !lock -> lock = true }
  d_step {
    mine = true;
    check();
    if
    :: taken ->  // end_asleep
      taken = false;
      add_ready(heap, memory[READY]);
      add_returned(heap, memory[RETURNED]);
      memory[READY] = 0;
      memory[RETURNED] = 0;
      ready_base = 0;
      returned_base = 0
    :: else -> skip
    fi;
    lock = false
  }
}

inline enter() {
  do
  :: !mine -> come_back()
  :: mine ->
    atomic { store(STEPS, 1) }
    if
    :: mine -> break
    :: !mine ->
      atomic { store(STEPS, 0) }
      come_back()
    fi
  od;
  (stores == 0 || stores == 1 && place[0] == STEPS)
}

inline leave() { atomic { store(STEPS, 0) } }

// What has been returned becomes ready; or else two of the heap's do.
inline allocate_slow() {
  enter();
  d_step {
    check();
    if
    :: memory[READY] == 0 && memory[RETURNED] > 0 ->
      do
      :: memory[READY] < memory[RETURNED] ->
        memory[READY_SLOT(memory[READY] + 1)] = memory[RETURNED_SLOT(memory[READY])];
        memory[READY]++
      :: else -> break
      od;
      memory[RETURNED] = 0
    :: memory[READY] == 0 && memory[RETURNED] == 0 ->
      block = 1;
      do
      :: block > BLOCKS || memory[READY] == ROOM -> break
      :: else ->
        if
        :: (heap & BIT(block)) != 0 ->
          heap = heap & ~BIT(block);
          memory[READY]++;
          memory[READY_SLOT(memory[READY])] = block
        :: else -> skip
        fi;
        block++
      od
    :: else -> skip
    fi;
    if
    :: memory[READY] > 0 ->
      block = memory[READY_SLOT(memory[READY])];
      add(in_use, block);
      memory[READY]--
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
    at = LOAD(READY);
    which = LOAD(READY_SLOT(at));
    if
    :: at == 0 -> allocate_slow()
    :: else ->
      atomic {
        store(READY, at - 1);
        add(in_use, which)
      }
    fi;
    at = 0;
    which = 0
  fi
}

inline release() {
  d_step {
    which = 1;
    do
    :: (in_use & BIT(which)) != 0 -> break
    :: else -> which++
    od
  }
  if
  :: mine -> at = LOAD(RETURNED)
  :: !mine -> at = ROOM
  fi;
  if
  :: at < ROOM ->
    atomic { FIRST_STORE() }
    atomic {
      SECOND_STORE();
      in_use = in_use & ~BIT(which)
    }
  :: else ->
    enter();
    d_step {
      check();
      if
      :: memory[RETURNED] == ROOM ->
        add_returned(heap, ROOM);
        memory[RETURNED] = 0
      :: else -> skip
      fi;
      memory[RETURNED_SLOT(memory[RETURNED])] = which;
      memory[RETURNED]++;
      in_use = in_use & ~BIT(which)
    }
    leave()
  fi;
  at = 0;
  which = 0
}

proctype Owner() {
  byte at, which;
  do
  :: allocate()
  :: in_use != 0 -> release()
  :: break
  od;
  running--
}

// --- whoever takes it -----------------------------------------------------------------------------------------------

proctype Taker() {
  byte look, top;
  do
  :: atomic { !lock -> lock = true }
    LOOK_EARLY();
    if
    :: taken -> skip
    :: else ->
      mine = false;
      drain_all();
      if
      :: memory[STEPS] != 0 -> mine = true
      :: else -> taken = true
      fi
    fi;
    if
    :: taken ->
      LOOK();
      SECOND_BARRIER();
      top = memory[READY];
      d_step {
        if
        :: LEAVES_TOP -> top--
        :: else -> skip
        fi;
        add_ready(heap, top);
        ready_base = top;
        add_returned(heap, look);
        returned_base = look;
        each_block_is_in_one_place = (heap & in_use) == 0;
        assert(each_block_is_in_one_place);
        look = 0;
        top = 0
      }
    :: else -> look = 0
    fi;
    lock = false
  :: break
  od;
  running--
}

init {
  byte takers;
  d_step {
    memory[READY] = 2;
    memory[READY_SLOT(1)] = 1;
    memory[READY_SLOT(2)] = 2;
    heap = BIT(3);
    mine = true;
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
