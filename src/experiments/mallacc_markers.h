// Markers for the steps of an allocator that Mallacc speeds up, in C or C++, for our own sources (marked.h) and for
// peers' (peers/recipes.py): they tell the simulator's malloc accelerator which step begins or ends, and with which
// values (sim/decode/markers.h; what the unit makes of it: docs/hardware-mallacc.md). Each is, on a processor, a jump
// to the next instruction and a nop.
//
// A step begins with one marker and ends with another; what is left out of it ends with the one named _LEFT.
//
// The size class:
//  - MALLACC_SIZE_BEGIN(size): the class is about to be found.
//  - MALLACC_SIZE_END(class, bytes): it is, with the bytes of its blocks.
//  - MALLACC_SIZE_CLASS(class): the same where the bytes are not needed here.
//  - MALLACC_SIZE_ALONE(class): the same where no caller ever needs them.
//  - MALLACC_SIZE_LEFT(): the size has no class.
//
// Its list:
//  - MALLACC_POP_BEGIN(class): the list's first block is about to be read, and from that the one after it.
//  - MALLACC_POP_END(first, next), or MALLACC_POP_LEFT() where the list is empty.
//  - MALLACC_PREFETCH(class, head): after a pop, what the list now begins with.
//  - MALLACC_PUSH_BEGIN(class, block): the block is about to be put in front of the list.
//  - MALLACC_PUSH_END()
//  - MALLACC_DROP(class): the list is about to be changed otherwise.
//
// Sampling:
//  - MALLACC_SAMPLE_BEGIN(bytes): they are about to be counted, to see whether a sample is due.
//  - MALLACC_SAMPLE_END(), or MALLACC_SAMPLE_LEFT() where it is.
//
// MALLACC_BEFORE(value) is no marker: the value is computed here, not in a step that follows and needs it.
//
// Arguments are variables of 4 or 8 bytes. What lies between a begin and its end is not timed where the unit does it:
// so it must be that step and nothing else, which the clobbered memory helps with. A class is a number below 2^32 that
// means one list of the running thread's.
#ifndef ANNEX_EXPERIMENTS_MALLACC_MARKERS_H
#define ANNEX_EXPERIMENTS_MALLACC_MARKERS_H

#define MALLACC_MARK(kind, first, second)                              \
  __asm__ volatile(".byte 0xeb, 0x00\n\tnopl %c0(%q1,%q2,1)"           \
                   :                                                   \
                   : "i"(0x6d6c6300 + (kind)), "r"(first), "r"(second) \
                   : "memory")
#define MALLACC_MARK_ONE(kind, value) MALLACC_MARK(kind, value, value)
/* These count as changed: nothing that is computed from them comes before. */
#define MALLACC_MARK_CHANGED(kind, first, second)            \
  __asm__ volatile(".byte 0xeb, 0x00\n\tnopl %c2(%q0,%q1,1)" \
                   : "+r"(first), "+r"(second)               \
                   : "i"(0x6d6c6300 + (kind))                \
                   : "memory")
#define MALLACC_MARK_CHANGED_ONE(kind, value) \
  __asm__ volatile(".byte 0xeb, 0x00\n\tnopl %c1(%q0,%q0,1)" : "+r"(value) : "i"(0x6d6c6300 + (kind)) : "memory")
#define MALLACC_MARK_NONE(kind) \
  __asm__ volatile(".byte 0xeb, 0x00\n\tnopl %c0(%%rax,%%rax,1)" : : "i"(0x6d6c6300 + (kind)) : "memory")
#define MALLACC_BEFORE(value) __asm__ volatile("" : : "r"(value))

#define MALLACC_SIZE_BEGIN(size) MALLACC_MARK_CHANGED_ONE(1, size)
#define MALLACC_SIZE_END(size_class, bytes) MALLACC_MARK_CHANGED(2, size_class, bytes)
#define MALLACC_SIZE_CLASS(size_class) MALLACC_MARK_CHANGED_ONE(3, size_class)
#define MALLACC_SIZE_ALONE(size_class) MALLACC_MARK_CHANGED_ONE(15, size_class)
#define MALLACC_SIZE_LEFT() MALLACC_MARK_NONE(4)
#define MALLACC_POP_BEGIN(size_class) MALLACC_MARK_ONE(5, size_class)
#define MALLACC_POP_END(first, next) MALLACC_MARK_CHANGED(6, first, next)
#define MALLACC_POP_LEFT() MALLACC_MARK_NONE(7)
#define MALLACC_PREFETCH(size_class, head) MALLACC_MARK(8, size_class, head)
#define MALLACC_PUSH_BEGIN(size_class, block) MALLACC_MARK(9, size_class, block)
#define MALLACC_PUSH_END() MALLACC_MARK_NONE(10)
#define MALLACC_DROP(size_class) MALLACC_MARK_ONE(11, size_class)
#define MALLACC_SAMPLE_BEGIN(bytes) MALLACC_MARK_ONE(12, bytes)
#define MALLACC_SAMPLE_END() MALLACC_MARK_NONE(13)
#define MALLACC_SAMPLE_LEFT() MALLACC_MARK_NONE(14)

#endif
