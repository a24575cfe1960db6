"""Reads profile.proto without anybody's library: a decoder of protocol buffers' wire format, and the field numbers of
github.com/google/pprof/proto/profile.proto."""

import gzip
from collections import defaultdict
from pathlib import Path


def varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        shift, place = shift + 7, place + 1
        if byte < 0x80:
            return value, place


def fields(data: bytes) -> dict[int, list]:
    """Each field's values, in order: numbers, or bytes."""
    found, place = defaultdict(list), 0
    while place < len(data):
        key, place = varint(data, place)
        if key & 7 == 0:
            value, place = varint(data, place)
        elif key & 7 == 2:
            length, place = varint(data, place)
            value, place = data[place : place + length], place + length
            assert len(value) == length, "a field goes beyond the end"
        else:
            raise AssertionError(f"wire type {key & 7}")
        found[key >> 3].append(value)
    return found


def packed(values: list[bytes]) -> list[int]:
    numbers = []
    for data in values:
        place = 0
        while place < len(data):
            value, place = varint(data, place)
            numbers.append(value)
    return numbers


def number(message: dict[int, list], field: int) -> int:
    return message[field][-1] if message[field] else 0


def read(path: Path) -> dict:
    profile = fields(gzip.decompress(path.read_bytes()))
    texts = [text.decode() for text in profile[6]]
    assert texts[0] == ""

    def text(message, field):
        return texts[number(message, field)]

    def kinds(messages):
        return [(text(one, 1), text(one, 2)) for one in map(fields, messages)]

    functions = {
        number(one, 1): {"name": text(one, 2), "system": text(one, 3), "file": text(one, 4), "line": number(one, 5)}
        for one in map(fields, profile[5])
    }
    mappings = {
        number(one, 1): {
            "start": number(one, 2),
            "limit": number(one, 3),
            "offset": number(one, 4),
            "file": text(one, 5),
            "build_id": text(one, 6),
            "has": [number(one, field) for field in (7, 8, 9, 10)],
        }
        for one in map(fields, profile[3])
    }
    locations = {}
    for one in map(fields, profile[4]):
        lines = [(functions[number(line, 1)], number(line, 2)) for line in map(fields, one[4])]
        mapping = mappings[number(one, 2)] if one[2] else None
        locations[number(one, 1)] = {"mapping": mapping, "address": number(one, 3), "lines": lines}
    samples = []
    for one in map(fields, profile[2]):
        labels = {text(label, 1): text(label, 2) for label in map(fields, one[3])}
        samples.append(
            {"locations": [locations[id] for id in packed(one[1])], "values": packed(one[2]), "labels": labels}
        )
    return {
        "types": kinds(profile[1]),
        "samples": samples,
        "mappings": list(mappings.values()),
        "functions": list(functions.values()),
        "time": number(profile, 9),
        "duration": number(profile, 10),
        "period_type": kinds(profile[11])[0],
        "period": number(profile, 12),
        "default": text(profile, 14),
    }
