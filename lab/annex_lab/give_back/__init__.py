"""What allocators give back to the system, and when: annex-lab give-back, and the page docs/give-back.md.

table.py has the rows (a program that has freed most of what it had), day.py a server's day, bursts.py a server with
bursts; runs.py runs the programs, tools/give_back.c, tools/server_day.c and tools/bursts.c; results.py is the document
of a run; page.py makes the page of such documents.
"""
