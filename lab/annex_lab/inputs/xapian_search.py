"""Searches a Xapian index many times: xapian_search.py FOLDER QUERIES. Python's own objects stay in its own allocator;
what comes from malloc is the library's: queries, posting lists, match sets."""

import random
import sys
import zlib

import xapian

folder, queries = sys.argv[1], int(sys.argv[2])
database = xapian.Database(folder)
terms = [entry.term.decode() for entry in database.allterms() if entry.termfreq > 5]
stream = random.Random(3)
parser = xapian.QueryParser()
parser.set_database(database)
digest = found = 0
for number in range(queries):
    words = stream.choices(terms, k=stream.randint(2, 8))
    if number % 3 == 0:
        query = xapian.Query(xapian.Query.OP_OR, words)
    elif number % 3 == 1:
        query = parser.parse_query(f"{words[0]} AND ({' OR '.join(words[1:])})")
    else:
        phrase = xapian.Query(xapian.Query.OP_NEAR, words[:2], 20)
        query = xapian.Query(xapian.Query.OP_AND_MAYBE, phrase, xapian.Query(xapian.Query.OP_OR, words[2:]))
    enquire = xapian.Enquire(database)
    enquire.set_query(query)
    for match in enquire.get_mset(0, 10):
        found += 1
        digest = zlib.crc32(b"%d %d" % (match.docid, match.rank) + match.document.get_data()[:20], digest)
print(database.get_doccount(), len(terms), found, digest)
