# Classes, syntax trees and JSON: made-up source text is parsed, its tree walked and printed, and objects are encoded.
import ast
import json
import sys


class Shape:
    def __init__(self, name, points):
        self.name = name
        self.points = points
        self.parts = []

    def area(self):
        twice = 0
        for (x1, y1), (x2, y2) in zip(self.points, self.points[1:] + self.points[:1]):
            twice += x1 * y2 - x2 * y1
        return twice + sum(part.area() for part in self.parts)

    def encoded(self):
        return {"name": self.name, "points": self.points, "parts": [part.encoded() for part in self.parts]}


def source(number):
    lines = ["def f%d(a, b=%d):" % (number, number)]
    for i in range(12):
        lines.append("    x%d = [a * %d + v for v in range(b) if v %% %d] + [b, {'k': a, %d: (b, a)}]" % (i, i, i + 2, i))
    lines.append("    return " + " + ".join("len(x%d)" % i for i in range(12)))
    return "\n".join(lines)


def shape(number, depth):
    made = Shape("shape %d" % number, [(number * i % 17, number + i) for i in range(5)])
    if depth:
        made.parts = [shape(number * 3 + i, depth - 1) for i in range(3)]
    return made


total = 0
for number in range(int(sys.argv[1])):
    tree = ast.parse(source(number))
    total += sum(1 for _node in ast.walk(tree)) + len(ast.dump(tree))
    made = shape(number, 4)
    text = json.dumps(made.encoded())
    total += made.area() + len(text) + len(json.loads(text)["parts"])
print(total)
