"""`tessera-view PROGRAM.mlir|MODULE.tsr`: how each value lies on the mesh, what moves and
why, what each rank holds, and the program after each phase, as one page.

    tessera-view mlp.mlir --mesh tp=4 -o mlp.html
    tessera-view mlp.mlir --show-sharding w0      one value, in the terminal
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import html
import itertools
import math
import os
import pathlib
import re
import sys
import tempfile

import numpy as np

import tessera
from . import _arrays
from ._native import Error

# -------------------------------------------------------------------------------------
# What a program says
# -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Lying:
    """How values lie: their global shape, and the view in text, without its order in
    memory. Dynamic extents are what `drawn_as` says."""
    mesh: str
    shape: tuple  #: None where dynamic
    view: str  #: "[did(tp) * 32, 16]"
    drawn_as: int  #: the extent that stands for dynamic ones

    @property
    def extents(self):
        return tuple(self.drawn_as if extent is None else extent for extent in self.shape)


@dataclasses.dataclass
class Value:
    name: str
    op: str
    line: str  #: of the source; empty: none
    type: str  #: "8x16xf32"
    view: str  #: in full
    lying: Lying
    is_port: bool


@dataclasses.dataclass(frozen=True)
class Move:
    place: str
    source: str
    target: str
    plan: str
    cost: str
    bound: str
    loser: str


MOVE = re.compile(r"(\S+): (\[.*\].*) to (\[.*\][^:]*): (.*?), "
                  r"((?:at most )?\d+ bytes, [\d.]+ us)"
                  r"(?:; lower bound (\d+ bytes))?(?:; instead of (.*))?$")
TYPE = re.compile(r"tensor<((?:[\d?]+x)*)(\w+), #tv\.view<(#[\w.]+(?:<[^>]*>)?), (\[.*)>>$")


def read_moves(remarks):
    """The moves of a report, and the other lines of it."""
    moves, others = [], []
    for line in remarks.splitlines():
        if match := MOVE.match(line):
            moves.append(Move(*(part or "" for part in match.groups())))
        elif line:
            others.append(line)
    return moves, others


def split(text):
    """The parts of a list, which commas outside of brackets separate."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "([{<") - (char in ")]}>")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def lying_of(mesh, shape, view, drawn_as):
    dims = re.match(r"\[.*?\](?=,|$)", view)[0]
    return Lying(mesh, shape, dims, drawn_as if None in shape else 0)


def read_values(text):
    """The values of a planned program, which was printed with its places, and its mesh."""
    text = re.sub(r"->", "→", text)  # no bracket
    names = dict(re.findall(r"^([#!][\w.]+) = (.*)$", text, re.M))
    mesh = next(value for value in names.values() if value.startswith("#tv.mesh"))
    sizes = re.search(r"tv\.sizes = \{(.*?)\}", text)
    drawn_as = max(map(int, re.findall(r"\d+", sizes[1]))) if sizes else 0

    def line(loc):
        while not (found := re.search(r":(\d+):\d+", loc)):
            inner = re.search(r"#loc\w*", loc)  # #loc7, or "tv.layer_norm"(#loc7)
            if not inner or inner[0] not in names:
                return ""
            loc = names[inner[0]]
        return found[1]

    def value(name, op, loc, type, is_port=False):
        found = TYPE.match(names.get(type, type))
        if not found:
            return []
        extents, element, _, view = found.groups()
        shape = tuple(None if extent == "?" else int(extent)
                      for extent in extents.split("x")[:-1])
        view = re.sub(r", alloc = \([^)]*\)", "", view)
        return [Value(name, op, line(loc), extents + element, view,
                      lying_of(mesh, shape, view, drawn_as), is_port)]

    body = text[text.index("func.func @main"):]
    head = body[:body.index("\n")]
    values = []
    for argument in split(re.match(r"func\.func @main\((.*)\) → ", head)[1]):
        name, type, rest = re.match(r"(%\w+): (\S+)(.*)", argument).groups()
        port = re.search(r'tv\.name = "([^"]*)"', rest)
        loc = re.search(r"loc\((.*)\)$", rest)
        values += value(port[1] if port else name, "argument", loc[1] if loc else "", type, True)
    # An op with a region ends in a line of its own.
    ops = re.findall(r"^    (%[^=\n]*) = ([\w.]+)([^\n]*)((?:\n     .*)*(?:\n    \}.*)?)$",
                     body, re.M)
    for results, op, head, rest in ops:
        last = (head + rest).splitlines()[-1]
        types = re.search(r" → (\(.*?\)|\S+)", head if " → " in head else last)[1]
        types = split(types[1:-1]) if types.startswith("(") else [types]
        loc = re.search(r" loc\((.*)\)$", last)
        names_ = [name for each in split(results) for name in
                  ([f"{each.split(':')[0]}#{i}" for i in range(int(each.split(":")[1]))]
                   if ":" in each else [each])]
        for name, type in zip(names_, types):
            values += value(name, op, loc[1] if loc else "", type)
    return values, mesh


# -------------------------------------------------------------------------------------
# Where its elements are
# -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Mesh:
    axes: tuple  #: (name, size)

    @staticmethod
    def parse(text):
        return Mesh(tuple((name, int(size)) for name, size in
                          re.findall(r"(\w+) = (\d+)", text.split("devices")[0])))

    @property
    def ranks(self):
        return math.prod(size for _, size in self.axes)

    def device(self, position):
        """The coordinates of a position, "dp=1 tp=0"."""
        digits = np.unravel_index(position, [size for _, size in self.axes])
        return " ".join(f"{name}={digit}" for (name, _), digit in zip(self.axes, digits))


def runs(indices):
    """Ascending indices as (first, last) of each contiguous part."""
    cuts = np.flatnonzero(np.diff(indices) != 1) + 1
    return tuple((int(part[0]), int(part[-1])) for part in np.split(indices, cuts) if len(part))


def ask(program, ranks, question):
    """The answer of each rank about its part of a program."""
    def rank(context):
        with context.load(program) as module:
            return question(module)
    return tessera.threads(ranks, rank)


def ask_memory(program, ranks):
    """What each rank needs at the largest sizes. As many threads as there are cores ask:
    one for each rank would wait for the system's pages, and have memory of its own."""
    def memory(module):
        sizes = {name: symbol.maximum for name, symbol in module.symbols.items()}
        return pool.submit(module.memory, sizes).result()

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return ask(program, ranks, memory)


def places(lyings, mesh):
    """By lying: each rank's runs in each dimension. A program that has one argument for
    each says it; what it cannot be given maps to the error."""
    lyings = list(lyings)
    arguments = ", ".join(
        f'%a{i}: tensor<{"".join(f"{extent}x" for extent in each.extents)}f32, '
        f'#tv.view<{each.mesh}, {each.view}>> {{tv.name = "{i}"}}'
        for i, each in enumerate(lyings))
    try:
        program = tessera.compile(f"func.func @main({arguments}) {{\n  return\n}}\n")
    except tessera.CompileError as error:
        if len(lyings) == 1:
            return {lyings[0]: str(error).splitlines()[0]}
        half = len(lyings) // 2
        return places(lyings[:half], mesh) | places(lyings[half:], mesh)
    answers = ask(program, mesh.ranks, lambda module: [
        tuple(runs(indices) for indices in module.layout(str(i)).indices)
        for i in range(len(lyings))])
    return {each: [answer[i] for answer in answers] for i, each in enumerate(lyings)}


def spanned(lying):
    """The extents of local dimensions: those of a flat(k) are one."""
    extents, left = [], list(lying.extents)
    for dim in split(lying.view[1:-1]):
        flat = re.match(r"flat\((\d+)\)", dim)
        count = int(flat[1]) if flat else 1
        extents.append(math.prod(left[:count]))
        left = left[count:]
    return extents


def picture(lying, parts):
    """The two dimensions to draw, and what ranks have each rectangle of them:
    ((rows, columns), {(rows' run, columns' run): [rank, ...]})."""
    extents = spanned(lying)
    differing = [d for d in range(len(extents)) if len({part[d] for part in parts}) > 1]
    shown = (differing + [d for d in range(len(extents)) if d not in differing][::-1])[:2]
    shown = sorted(shown)
    shown = [None] * (2 - len(shown)) + shown
    cells = collections.defaultdict(list)
    for rank, part in enumerate(parts):
        sides = [((0, 0),) if d is None else part[d] for d in shown]
        for cell in itertools.product(*sides):
            cells[cell].append(rank)
    return shown, dict(cells)


def span_text(run):
    return str(run[0]) if run[0] == run[1] else f"{run[0]}..{run[1]}"


def ranks_text(ranks):
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(
        span_text(run) for run in runs(np.array(ranks)))


def show(value, parts):
    """One value's blocks on the devices, as text."""
    (rows, columns), cells = picture(value.lying, parts)
    across = sorted({cell[1] for cell in cells})
    table = [[""] + [span_text(run) if columns is not None else "" for run in across]]
    for down in sorted({cell[0] for cell in cells}):
        table.append([span_text(down) if rows is not None else ""] +
                     [ranks_text(cells[down, run]) if (down, run) in cells else ""
                      for run in across])
    widths = [max(map(len, column)) for column in zip(*table)]
    head = f"{value.name}: {value.type} as {value.view}"
    axes = [f"dimension {d} {way}" for d, way in ((rows, "down"), (columns, "across"))
            if d is not None]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
             for row in table]
    if columns is None:
        lines = [lines[-1].strip()]  # a scalar
    return "\n".join(line for line in (head, ", ".join(axes), *lines) if line)


# -------------------------------------------------------------------------------------
# The page
# -------------------------------------------------------------------------------------

STYLE = """body{font:14px sans-serif;margin:1.5em;color:#222}
table{border-collapse:collapse}td,th{padding:2px 8px;text-align:left;vertical-align:top;
border-bottom:1px solid #ddd}code,pre{font:12px monospace}
.phases{display:flex;gap:1em}.phases>div{flex:1;min-width:0}
pre{overflow:auto;max-height:80vh;background:#f6f6f6;padding:6px}
.bar{display:inline-block;height:10px}text{font:10px sans-serif}"""


def tag(name, *content, **attributes):
    text = "".join(f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
                   for key, value in attributes.items())
    return f"<{name}{text}>{''.join(content)}</{name}>"


def table(head, rows, **attributes):
    return tag("table", tag("tr", *(tag("th", html.escape(each)) for each in head)),
               *(tag("tr", *(tag("td", each) for each in row)) for row in rows), **attributes)


def color(rank, ranks):
    return f"hsl({360 * rank // max(ranks, 1)},60%,72%)"


def drawing(lying, parts, mesh, name):
    """An SVG symbol: the value as a rectangle, each rank's blocks in its color, and what
    they are when the pointer is over them."""
    (rows, columns), cells = picture(lying, parts)
    extents = spanned(lying)
    size = [1 if d is None else max(extents[d], 1) for d in (rows, columns)]
    high = 24 if rows is None else 72
    shapes = []
    for (down, across), ranks in cells.items():
        x, y = 160 * across[0] / size[1], high * down[0] / size[0]
        width = 160 * (across[1] - across[0] + 1) / size[1]
        height = high * (down[1] - down[0] + 1) / size[0]
        who = ranks_text(ranks)
        what = "\n".join([who] + [
            f"{mesh.device(rank)}: " + ", ".join(
                f"dimension {d} " + ", ".join(map(span_text, part))
                for d, part in enumerate(parts[rank])) for rank in ranks])
        fill = "#ddd" if len(ranks) == mesh.ranks else color(ranks[0], mesh.ranks)
        shapes.append(tag("rect", tag("title", html.escape(what)), x=f"{x:g}", y=f"{y:g}",
                          width=f"{width:g}", height=f"{height:g}", fill=fill,
                          stroke="#555", stroke_width=.5))
        if width > 9 * len(who) ** .8 and height >= 12:
            shapes.append(tag("text", html.escape(who), x=f"{x + 4:g}", y=f"{y + 11:g}",
                              pointer_events="none"))
    return tag("symbol", *shapes, id=name, viewBox=f"-1 -1 162 {high + 2}"), high + 2


def mesh_drawing(mesh):
    last = mesh.axes[-1][1]
    shapes = []
    for rank in range(mesh.ranks):
        x, y = 96 * (rank % last), 40 * (rank // last)
        shapes += [tag("rect", x=x + 1, y=y + 1, width=90, height=34,
                       fill=color(rank, mesh.ranks), stroke="#555"),
                   tag("text", f"rank {rank}", x=x + 6, y=y + 14),
                   tag("text", html.escape(mesh.device(rank)), x=x + 6, y=y + 28)]
    return tag("svg", *shapes, width=96 * last, height=40 * (mesh.ranks // last), id="mesh")


def page(title, mesh, values, where, moves, reasons, memory, phases, source):
    lines = source.splitlines()

    def code(text):
        return tag("code", html.escape(text))

    def line(number):
        ok = number.isdigit() and 0 < int(number) <= len(lines)
        return code(f"{number}: {lines[int(number) - 1].strip()}"[:100]) if ok else ""

    symbols, drawn = [], {}
    for lying, parts in where.items():
        if isinstance(parts, str):
            drawn[lying] = tag("em", html.escape(parts))
            continue
        name = f"lying{len(symbols)}"
        symbol, high = drawing(lying, parts, mesh, name)
        symbols.append(symbol)
        drawn[lying] = tag("svg", tag("use", href=f"#{name}"), width=162, height=high)
        if lying.drawn_as:
            drawn[lying] += tag("div", f"with ? = {lying.drawn_as}")
    parts = [tag("h1", html.escape(title)), tag("svg", *symbols, style="display:none"),
             tag("h2", "Mesh"), mesh_drawing(mesh)]
    parts += [tag("h2", f"Moves: {len(moves)}"), table(
        ("cause", "from", "to", "plan", "cost", "lower bound", "instead of"),
        [(line(move.place.split(":")[-2]) or code(move.place), code(move.source),
          code(move.target), html.escape(move.plan), html.escape(move.cost),
          html.escape(move.bound), html.escape(move.loser)) for move in moves], id="moves")]
    parts += [tag("h2", "Values"), table(
        ("value", "op", "line", "type", "view", "on the mesh"),
        [(code(each.name), code(each.op), line(each.line), code(each.type), code(each.view),
          drawn[each.lying]) for each in values], id="values")]
    # What a rank computes: the elements of its parts of what ops give.
    load = np.zeros(mesh.ranks, np.int64)
    count = collections.Counter(each.lying for each in values if not each.is_port)
    for lying, times in count.items():
        if not isinstance(where[lying], str):
            load += times * np.array([
                math.prod(sum(last - first + 1 for first, last in dim) for dim in part)
                for part in where[lying]])
    fields = ("external", "local", "symmetric", "constants")
    most = max((sum(getattr(each, field) for field in fields) for each in memory), default=1)
    parts += [tag("h2", "Ranks"), table(
        ("rank", "device", "elements of ops", "bytes of ports", "temporaries",
         "that collectives read", "constants", "all bytes"),
        [(str(rank), mesh.device(rank), f"{load[rank]:,}", *(f"{getattr(each, field):,}" for field in fields),
          tag("span", class_="bar", style="background:%s;width:%dpx" % (
              color(rank, mesh.ranks),
              200 * sum(getattr(each, field) for field in fields) // max(most, 1))))
         for rank, each in enumerate(memory)], id="ranks")]
    if reasons:
        parts += [tag("h2", "Why values lie so"),
                  tag("pre", html.escape("\n".join(reasons)), id="reasons")]
    parts += [tag("h2", "Phases"), tag("div", *(
        tag("div", tag("h3", html.escape(name)), tag("pre", html.escape(text)))
        for name, text in phases.items()), class_="phases", id="phases")]
    return ("<!doctype html>\n" + tag("html", tag(
        "head", '<meta charset="utf-8">', tag("title", html.escape(title)),
        tag("style", STYLE)), tag("body", "\n".join(parts))) + "\n")


# -------------------------------------------------------------------------------------
# From files
# -------------------------------------------------------------------------------------


def without_places(text):
    text = re.sub(r"^#loc\w* = .*\n", "", text, flags=re.M)
    return re.sub(r" loc\((?:#loc\w*|\"[^\n]*?\":\d+:\d+)\)", "", text)


class Program:
    def __init__(self, path, mesh, target, shardings):
        self.source = path.read_text()
        sizes = dict(part.split("=") for part in mesh.split(",")) if mesh else {}
        with tempfile.TemporaryDirectory() as folder:
            module = tessera.compile(self.source, name=path.name, mesh=sizes, target=target,
                                     explain=True, shardings=shardings, locations=True,
                                     dump=folder)
            texts = {name: next(pathlib.Path(folder).glob(f"*-{name}.mlir")).read_text()
                     for name in ("propagated", "planned", "local")}
        self.compiled, self.report = module, module.remarks
        self.values, mesh_text = read_values(texts["planned"])
        self.mesh = Mesh.parse(mesh_text)
        self.phases = {"source": self.source, **{
            name: without_places(text) for name, text in texts.items()}}


class ModuleFile:
    """What a module knows of itself: ports, and its report if it was made with one."""
    source, phases = "", {}

    def __init__(self, path):
        self.compiled = path.read_bytes()
        # A module says its mesh only to as many ranks as it has.
        try:
            ask(self.compiled, 1, lambda module: None)
            ranks = 1
        except Error as error:
            if not (found := re.search(r"for a mesh of (\d+) devices", str(error))):
                raise
            ranks = int(found[1])
        (text, self.report, ports, symbols), *_ = ask(
            self.compiled, ranks,
            lambda module: (module.mesh, module.report, module.ports, module.symbols))
        drawn_as = max((symbol.maximum for symbol in symbols.values()), default=0)
        self.mesh = Mesh.parse(text)
        self.values = []
        for port in ports.values():
            shape = tuple(None if extent < 0 else extent for extent in port.shape)
            view = re.sub(r", alloc = \([^)]*\)", "", port.view)
            self.values.append(Value(
                port.name, port.kind.name.lower(), "", f"{port.shape_text} {_arrays.NAMES[port.dtype]}", view,
                lying_of(f"#tv.mesh{port.mesh}", shape, view, drawn_as), True))
        if not self.report:
            self.phases = {"": "The module was compiled without --remarks: it does not say "
                               "what moves, or why."}


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="tessera-view", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path, metavar="PROGRAM.mlir|MODULE.tsr")
    parser.add_argument("--version", action="version",
                        version=f"Tessera {tessera.__version__}")
    parser.add_argument("--mesh", default="", help="sizes of mesh axes, as tp=4,dp=2")
    parser.add_argument("--shardings", metavar="FILE", help="views by name")
    parser.add_argument("--target", default="cpu", help="what to compile for")
    parser.add_argument("-o", dest="page", type=pathlib.Path, help="the page to write")
    parser.add_argument("--show-sharding", metavar="VALUE", action="append", default=[],
                        help="a value to draw in the terminal: x, or %%3")
    args = parser.parse_args(arguments)
    if not args.page and not args.show_sharding:
        parser.error("what to show? -o PAGE.html, or --show-sharding VALUE")
    try:
        is_module = args.file.suffix == ".tsr"
        if is_module and (args.mesh or args.shardings):
            parser.error("--mesh and --shardings are for a program; a module has its own")
        read = ModuleFile(args.file) if is_module else Program(
            args.file, args.mesh, args.target, args.shardings)
        names = {value.name: value for value in read.values}
        for name in args.show_sharding:
            if name not in names:
                raise Error(f"there is no value '{name}'; there are {', '.join(names)}")
            parts = places([names[name].lying], read.mesh)[names[name].lying]
            if isinstance(parts, str):
                raise Error(parts)
            print(show(names[name], parts))
        if args.page:
            where = places(dict.fromkeys(each.lying for each in read.values), read.mesh)
            moves, reasons = read_moves(read.report)
            memory = ask_memory(read.compiled, read.mesh.ranks)
            args.page.write_text(page(
                f"{args.file.name} on {' x '.join(f'{n} = {s}' for n, s in read.mesh.axes)}",
                read.mesh, read.values, where, moves, reasons, memory, read.phases, read.source))
    except UnicodeDecodeError:
        parser.error(f"{args.file} is no text; a program is (tessera-opt prints bytecode as "
                     "text), and the name of a module ends with .tsr")
    except (Error, OSError) as error:
        sys.exit(f"tessera-view: error: {error}")
