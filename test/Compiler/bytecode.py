"""Mutants of MLIR bytecode.

Most change what reaches our dialects: the text of their attributes and types, their
ops' properties, names and strings. Others cut the file off, or change bytes anywhere:
MLIR's reader trusts a file's numbers, so that these make it ask for terabytes or read
past its tables (one in 100 such mutants). The tools find that out in a child process.
"""
import re

STRINGS, ATTRIBUTES, PROPERTIES = 0, 2, 8
OWN = re.compile(rb"[#!](?:tv|comm|plan)\.[^\0]*")
CHARACTERS = b"0123456789_?*()[]<>{},|:=+-.# dtpxsumi\x80\xff"


def number(data, at):
    """The variable-width number at a place, and where it ends."""
    first = data[at]
    if first == 0:
        return int.from_bytes(data[at + 1:at + 9], "little"), at + 9
    width = (first & -first).bit_length()
    return int.from_bytes(data[at:at + width], "little") >> width, at + width


def sections(data):
    """(id, begin, end) of each section's contents."""
    _, at = number(data, 4)  # after the magic, the version
    at = data.index(0, at) + 1  # and the producer
    while at < len(data):
        kind = data[at]
        size, at = number(data, at + 1)
        if kind & 0x80:
            _, at = number(data, at)
            while data[at] == 0xCB:
                at += 1
        yield kind & 0x7F, at, at + size
        at += size


def spans(data):
    """What a mutant may change: text of ours, other strings, properties."""
    own, strings, properties = [], [], []
    for kind, begin, end in sections(data):
        if kind == ATTRIBUTES:
            own += [found.span() for found in OWN.finditer(data, begin, end)]
        elif kind == STRINGS:
            count, at = number(data, begin)
            for _ in range(count):
                _, at = number(data, at)
            strings.append((at, end))
        elif kind == PROPERTIES:
            count, at = number(data, begin)
            for _ in range(count):
                size, at = number(data, at)
                if size:
                    properties.append((at, at + size))
                at += size
    return own, strings, properties


def mutant(rng, data, others):
    """`data` changed in a few places; `others`: bytecode of other programs."""
    own, strings, properties = spans(data)
    data = bytearray(data)
    if rng.random() < 0.05:
        return bytes(data[:rng.randrange(len(data))])
    if rng.random() < 0.3:
        for _ in range(rng.choice((1, 1, 2, 4, 16))):
            data[rng.randrange(4, len(data))] = rng.choice((0, 1, 255, rng.randrange(256)))
        return bytes(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        kind = rng.random()
        if own and kind < 0.4:  # another attribute, as long with spaces
            begin, end = rng.choice(own)
            texts = [text for text in OWN.findall(bytes(rng.choice(others)))
                     if len(text) <= end - begin]
            if texts:
                data[begin:end] = rng.choice(texts).ljust(end - begin)
        elif own and kind < 0.6:
            begin, end = rng.choice(own)
            data[rng.randrange(begin + 1, end)] = rng.choice(CHARACTERS)
        elif properties and kind < 0.9:
            # Odd bytes are numbers of one byte, and stay that.
            begin, end = rng.choice(properties)
            at = rng.randrange(begin, end)
            if data[at] & 1:
                data[at] = rng.choice((data[at] ^ 2, data[at] ^ 4,
                                       rng.randrange(1, 256, 2)))
        else:
            begin, end = rng.choice(strings)
            at = rng.randrange(begin, end)
            if data[at]:  # the end of a string stays
                data[at] = rng.choice(CHARACTERS)
    return bytes(data)
