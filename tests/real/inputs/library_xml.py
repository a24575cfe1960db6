"""Prints a document of so many books, which catalogue.xsl turns into a catalogue: library_xml.py BOOKS."""

import sys


def document(books):
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<library>\n'
    for n in range(books):
        notes = "".join(f"<note>word{n * i % 77} {'text ' * (n * i % 13)}</note>" for i in range(n % 5))
        yield (
            f'<book pages="{n * 7919 % 1009}"><title>The  title of   book {n * 31 % 997} — {n}</title>'
            f"<author>Author {n * 104729 % 173}</author>{notes}</book>\n"
        )
    yield "</library>\n"


sys.stdout.reconfigure(encoding="utf-8")
sys.stdout.writelines(document(int(sys.argv[1])))
