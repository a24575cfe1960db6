// Words of three fields, as the library has them: one atomic instruction reads or changes all three.
//
//                  count      middle          low
//   messages       messages                   the first one's carrier    the inbox's (remote/inbox.h)
//   outbox         messages   the last one's  the first one's carrier    what a thread is about to post
//   remote[slab]   blocks     the last        the first                  the batch of a slab (remote/batch.h)
//   chain          blocks     the last        the first                  on its way into a batch, or back
//   link[block]                               the next block             a block's first word
//   link[carrier]  blocks     the first       the next carrier           a message's (remote/message.h)
//
// Blocks and slabs are numbered from 1; 0 is none.

#define WORD(count, middle, low) ((count) << 8 | (middle) << 4 | (low))
#define COUNT(word) ((word) >> 8)
#define MIDDLE(word) ((word) >> 4 & 15)
#define LOW(word) ((word) & 15)

#define LAST(word) MIDDLE(word)
#define FIRST(word) LOW(word)
#define FIRST_BLOCK(carrier_word) MIDDLE(carrier_word)
#define NEXT(word) LOW(word)

#define CHAIN_OF(carrier) WORD(COUNT(link[carrier]), carrier, FIRST_BLOCK(link[carrier]))
