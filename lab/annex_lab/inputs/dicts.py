# Dicts, lists, tuples and strings: an index of made-up records, built, queried, changed and torn down.
import sys


def records(count):
    state = 12345
    for i in range(count):
        state = (state * 1103515245 + 12345) % 2147483648
        yield i, "name %d" % (state % (count // 2 + 1)), "group %d" % (state % 611), [state % 7, state % 11, i]


count = int(sys.argv[1])
total = 0
for _round in range(2):
    by_name, by_group, rows = {}, {}, []
    for number, name, group, values in records(count):
        row = {"id": number, "name": name, "group": group, "values": values, "key": (name, number % 13)}
        rows.append(row)
        by_name.setdefault(name, []).append(row)
        by_group.setdefault(group, {})[number] = row
    for name, found in by_name.items():
        total += len(found) * len(name)
    for group, members in sorted(by_group.items()):
        total += sum(row["values"][0] for row in members.values())
    text = " ".join(row["name"].upper() + ":" + row["group"] for row in rows)
    counted = {}
    for word in text.split(" "):
        counted[word] = counted.get(word, 0) + 1
    total += len(counted)
    keys = {row["key"]: str(row["values"]) for row in rows}
    total += sum(len(value) for value in keys.values())
    for number in range(0, count, 3):
        del by_group[rows[number]["group"]][number]
    total += sum(len(members) for members in by_group.values())
print(total)
