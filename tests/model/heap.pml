// The heap of all these blocks, as whoever has it sees it: its slabs, and what is free of them (core/heap.h).
//
// What has become of a block is read by no thread but for the properties. It is in one of these sets:
//
//   in_use[t]   thread t's program uses it
//   under_way   freed, and not back yet
//   back        free in its slab, or gone with it

#define SLABS 2
#define EITHER(slab, one, two) (((slab) == 1) * (one) + ((slab) == 2) * (two))
#define CAPACITY(slab) EITHER(slab, SLAB_1, BLOCKS - SLAB_1)
#define SLAB_OF(block) (1 + ((block) > SLAB_1))

// Sets of blocks.
#define BIT(block) (1 << (block))
#define BLOCKS_OF(slab) EITHER(slab, BIT(SLAB_1 + 1) - BIT(1), BIT(BLOCKS + 1) - BIT(SLAB_1 + 1))
#define BACK_OF(slab) (back & BLOCKS_OF(slab))

mtype = { Full, Partial, Current, Gone }  // gone: given back to the arena, where any heap may take the memory
mtype state[SLABS + 1]
byte current  // the slab that is, or 0
short link[BLOCKS + 1]

byte in_use[THREADS]
byte under_way
byte back
bool changing  // a thread is in the middle of a change to the heap's lists

// What is hidden is no part of a state: scratch space within one step, and properties, by the names that a failure
// shows.
hidden byte block, to_go, chosen
hidden byte one_thread_changes_the_heap
hidden byte each_block_comes_back_once
hidden byte a_batch_ends_with_its_last_block
hidden byte the_slab_is_there
hidden byte a_slab_goes_with_all_its_blocks

// Part of each step that reads or writes the slab's metadata.
#define REACH(slab) the_slab_is_there = state[slab] != Gone; assert(the_slab_is_there)

// Within a step.
inline find_block(wanted) {
  block = 1;
  do
  :: ((wanted) & BIT(block)) != 0 -> break
  :: else -> block++
  od
}

// Within a step. Beyond the slabs where there is none.
inline find_slab(wanted) {
  chosen = 1;
  do
  :: chosen > SLABS -> break
  :: chosen <= SLABS && (wanted) -> break
  :: else -> chosen++
  od
}

// The heap's lists have neither a lock nor atomics: a change is two steps, between which no other may begin.
inline begin_change() {
  d_step {
    one_thread_changes_the_heap = !changing;
    assert(one_thread_changes_the_heap);
    changing = true
  }
}

// Within a step. The blocks of a chain come back.
inline come_back(slab, its_chain) {
  REACH(slab);
  block = FIRST(its_chain);
  to_go = COUNT(its_chain);
  do
  :: to_go == 0 -> break
  :: else ->
    each_block_comes_back_once = (under_way & BIT(block)) != 0 && SLAB_OF(block) == slab;
    assert(each_block_comes_back_once);
    under_way = under_way & ~BIT(block);
    back = back | BIT(block);
    to_go--;
    a_batch_ends_with_its_last_block = to_go > 0 || block == LAST(its_chain);
    assert(a_batch_ends_with_its_last_block);
    chosen = block;
    block = NEXT(link[chosen]);
    link[chosen] = 0
  od
}

// Within a step. A slab that is in none of the heap's lists goes where it belongs.
inline list_again(slab) {
  if
  :: BACK_OF(slab) == BLOCKS_OF(slab) -> state[slab] = Gone
  :: BACK_OF(slab) == 0 -> state[slab] = Full
  :: else -> state[slab] = Partial
  fi
}

// The second half of a change. Heap::put_back.
inline put_back(slab, its_chain) {
  come_back(slab, its_chain);
  if
  :: slab == current -> skip
  :: else -> list_again(slab)
  fi;
  changing = false
}

// By a thread that does not have the heap: the slab is complete, and in none of the heap's lists.
inline let_go(slab) {
  d_step {
    come_back(slab, remote[slab]);
    a_slab_goes_with_all_its_blocks = BACK_OF(slab) == BLOCKS_OF(slab);
    assert(a_slab_goes_with_all_its_blocks);
    remote[slab] = 0;
    state[slab] = Gone
  }
}

// Within a step.
inline put_down_current() {
  if
  :: current != 0 ->
    REACH(current);
    list_again(current);
    current = 0
  :: else -> skip
  fi
}

// Heap::flush.
inline flush() {
  begin_change();
  d_step {
    put_down_current();
    changing = false
  }
}

// The owner allocates a block, if one is free, and gives it to a thread that will free it. Where the current slab has
// none, a partial one becomes current, or a new one of memory that was given back.
inline allocate(to) {
  begin_change();
  d_step {
    if
    :: current != 0 && BACK_OF(current) != 0 -> skip
    :: else ->
      put_down_current();
      find_slab(state[chosen] == Partial);
      if
      :: chosen > SLABS -> find_slab(state[chosen] == Gone)
      :: else -> skip
      fi;
      if
      :: chosen <= SLABS -> current = chosen; state[chosen] = Current
      :: else -> skip
      fi
    fi;
    if
    :: current != 0 ->
      REACH(current);
      find_block(BACK_OF(current));
      back = back & ~BIT(block);
      in_use[to] = in_use[to] | BIT(block)
    :: else -> skip
    fi;
    changing = false
  }
}
