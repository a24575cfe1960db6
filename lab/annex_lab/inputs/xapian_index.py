"""Builds a Xapian index of a text, a document of every few lines: xapian_index.py TEXT FOLDER LINES."""

import itertools
import sys

import xapian

text, folder, lines = sys.argv[1], sys.argv[2], int(sys.argv[3])
database = xapian.WritableDatabase(folder, xapian.DB_CREATE)
indexer = xapian.TermGenerator()
with open(text) as file:
    while part := "".join(itertools.islice(file, lines)):
        document = xapian.Document()
        indexer.set_document(document)
        indexer.index_text(part)
        document.set_data(part[:200])
        database.add_document(document)
database.commit()
database.close()
