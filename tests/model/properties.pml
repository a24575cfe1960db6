// What must hold when no thread has anything left to do. What must hold at a step is asserted there: heap.pml.
//
// A child may have lost what threads that are no more had in their hands, and nothing else.

hidden byte nothing_is_lost
hidden byte nothing_is_left_to_nobody
hidden byte empty_slabs_are_let_go_of
hidden byte each_block_is_in_the_inbox_once
hidden byte found

// Within a step. The blocks of a chain are in the inbox.
inline find_chain(slab, its_chain) {
  block = FIRST(its_chain);
  to_go = COUNT(its_chain);
  do
  :: to_go == 0 -> break
  :: else ->
    each_block_is_in_the_inbox_once = (found & BIT(block)) == 0 && SLAB_OF(block) == slab;
    assert(each_block_is_in_the_inbox_once);
    found = found | BIT(block);
    to_go--;
    block = NEXT(link[block])
  od
}

// Within a step. The batches of a list's slabs are in the inbox.
inline find_list(first) {
  chosen = first;
  do
  :: chosen == 0 -> break
  :: else ->
    REACH(chosen);
    find_chain(chosen, remote[chosen]);
    chosen = inbox_next[chosen]
  od
}

// Within a step. Sets found to the blocks that are in the inbox, for whoever takes in.
inline find_all() {
  found = 0;
  carrier = FIRST(messages);
  do
  :: carrier == 0 -> break
  :: else ->
    word = CHAIN_OF(carrier);
    find_chain(SLAB_OF(carrier), word);
    carrier = NEXT(link[carrier])
  od;
  find_list(slabs);
  find_list(left)
}

inline check() {
  d_step {
    find_all();
    nothing_is_lost = (under_way & ~found & ~lost) == 0;
    assert(nothing_is_lost);
    nothing_is_left_to_nobody = !pooled || (found & ~left_there) == 0;
    assert(nothing_is_left_to_nobody);
    find_slab(BACK_OF(chosen) == BLOCKS_OF(chosen) && state[chosen] != Gone && chosen != current);
    empty_slabs_are_let_go_of = chosen > SLABS;
    assert(empty_slabs_are_let_go_of)
  }
}
