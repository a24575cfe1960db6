// The threads, and the pool in which the heap lies while none of them has it (front/thread_heap.cpp).

#define OWNER_FORKS (FORKER < OWNERS)
#define SENDER_FORKS (FORKER >= OWNERS && FORKER < THREADS)

bool in_pool
byte running
byte allocations

#if ALLOCATIONS == ANY
#define ALLOCATION_LEFT true
#define COUNT_ALLOCATION skip
#else
#define ALLOCATION_LEFT allocations < ALLOCATIONS
#define COUNT_ALLOCATION allocations++
#endif

inline take_heap(wanted) {
  atomic {
    (wanted) && in_pool && FREE(pool_lock) -> in_pool = false
  }
  leave_pool()
}

inline put_heap() {
  if
  :: flush()
#if WARM
  :: skip
#endif
  fi;
  enter_pool();
  atomic {
    FREE(pool_lock) -> in_pool = true
  }
}

// A thread that purges, with both locks held.
inline flush_pool() {
  atomic {
    in_pool && current != 0 && FREE(pool_lock) && MAY_FLUSH -> flush()
  }
}

// A thread that has the heap: takes in, allocates, ends. Then it is the next thread, which takes a heap from the pool.
proctype Owner(byte me) {
  VARIABLES;
  bool owns = (me == 0);
  {
    do
    :: owns && (messages != 0 || slabs != 0 || left != 0) -> visit()
    :: owns && forking != me -> put_heap(); owns = false
    :: take_heap(!owns); owns = true
#if WARM
    :: flush_pool()
#endif
#if ALLOCATIONS
    :: atomic {
        owns && ALLOCATION_LEFT -> COUNT_ALLOCATION
      }
      if
      :: allocate(OWNERS)
      :: allocate(THREADS - 1)
      fi
#endif
#if OWNER_FORKS
    MAY_FORK
#endif
    :: forking != me -> break
    od
  }
#if SENDER_FORKS
  UNLESS_NO_MORE
#endif
  ;
  running--
}

// The program frees one of these blocks: it goes into the chain, the open batch of its slab.
inline free_one(those) {
  d_step {
    find_block(those);
    in_use[me] = in_use[me] & ~BIT(block);
    under_way = under_way | BIT(block);
    slab = SLAB_OF(block);
    if
    :: chain == 0 -> chain = WORD(1, block, block)
    :: else ->
      link[block] = FIRST(chain);
      chain = WORD(COUNT(chain) + 1, LAST(chain), block)
    fi
  }
}

// It frees a block, and perhaps more of the same slab.
inline free_batch() {
  free_one(in_use[me]);
  do
  :: (in_use[me] & BLOCKS_OF(slab)) != 0 -> free_one(in_use[me] & BLOCKS_OF(slab))
  :: slab = 0; break
  od
}

// The chain becomes a message, in front of those in the outbox.
inline make_message() {
  d_step {
    carrier = LAST(chain);
    link[carrier] = WORD(COUNT(chain), FIRST(chain), FIRST(outbox));
    if
    :: outbox == 0 -> outbox = WORD(1, carrier, carrier)
    :: else -> outbox = WORD(COUNT(outbox) + 1, LAST(outbox), carrier)
    fi;
    chain = 0
  }
}

// A thread that frees blocks of the heap, in whatever batches and messages. What it does by itself is one step.
proctype Sender(byte me) {
  VARIABLES;
  {
    do
    :: atomic {
        in_use[me] != 0 ->
        do
        :: in_use[me] != 0 -> free_batch(); make_message()
        :: outbox != 0 -> break
        od
      }
      post()
    :: atomic {
        in_use[me] != 0 && (SENDS & BIT(me)) != 0 -> free_batch()
      }
      send()
#if SENDER_FORKS
    MAY_FORK
    :: take_heap(survivor == me && forking == NOBODY);  // as a thread that the child has made
      put_heap()
#endif
    :: in_use[me] == 0 && forking != me -> break
    od
  }
#if OWNER_FORKS || SENDER_FORKS
  UNLESS_NO_MORE
#endif
  ;
  running--
}

init {
  byte thread;
  d_step {
    state[1] = Full;
    state[2] = Current;
    current = 2;
    block = 1;
    do
    :: block > BLOCKS -> break
    :: else ->
      thread = OWNERS + block % SENDERS;
      in_use[thread] = in_use[thread] | BIT(block);
      block++
    od;
    thread = 0;
    running = THREADS
  }
  atomic {
    do
    :: thread < OWNERS -> run Owner(thread); thread++
    :: thread >= OWNERS && thread < THREADS -> run Sender(thread); thread++
    :: thread == THREADS -> break
    od
  }
  running == 0;
  check()
}
