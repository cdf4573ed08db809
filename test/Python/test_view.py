"""tessera-view: the page's structure, and its drawings against views that NumPy cuts.

    test_view.py BIN_FOLDER"""

import html.parser
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(sys.argv[1]).resolve()
os.environ["TESSERA_ROOT"] = str(BIN.parent)
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench")]
import compile_time
import tessera

HEADS = """#m = #tv.mesh<dp = 2, tp = 3>
!w = tensor<96x8xf32, #tv.view<#m, [(did(tp) * _ | 16) * 6, did(dp) * _]>>
!x = tensor<2x8x8xf32, #tv.view<#m, [_, _, did(dp) * _]>>
!y = tensor<2x8x96xf32>
func.func @main(%x: !x {tv.name = "x"}, %w: !w {tv.name = "w"}, %s: tensor<f32> {tv.name = "s"}) -> (!y {tv.name = "y"}) {
  %y = tv.linear %x, %w : (!x, !w) -> !y
  return %y : !y
}
"""
# 16 heads of 6 rows on 3 devices are 6, 6 and 4; columns are halves.
HEADS_SHOWN = """w: 96x8xf32 as [did(tp) * 36, did(dp) * 4]
dimension 0 down, dimension 1 across
        0..3    4..7
0..35   rank 0  rank 3
36..71  rank 1  rank 4
72..95  rank 2  rank 5
"""


class Page(html.parser.HTMLParser):
    """Elements with their texts; a tag that is not closed is an error."""

    def __init__(self, text):
        super().__init__()
        self.stack, self.elements = [], []
        self.feed(text)
        assert not self.stack, self.stack

    def handle_starttag(self, tag, attributes):
        if tag != "meta":
            element = {"tag": tag, "in": list(self.stack), "text": "", **dict(attributes)}
            self.stack.append(element)
            self.elements.append(element)

    def handle_endtag(self, tag):
        assert self.stack and self.stack.pop()["tag"] == tag, tag

    def handle_data(self, data):
        for element in self.stack:
            element["text"] += data

    def all(self, tag, within=None):
        return [each for each in self.elements if each["tag"] == tag and (
            within is None or any(above.get("id") == within for above in each["in"]))]


def view(*arguments):
    done = subprocess.run([sys.executable, BIN / "tessera-view", *map(str, arguments)],
                          capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


class View(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.top = pathlib.Path(cls.folder.name)
        (cls.top / "heads.mlir").write_text(HEADS)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def page(self, file, *flags):
        path = self.top / "page.html"
        code, _, errors = view(file, "-o", path, *flags)
        self.assertEqual((code, errors), (0, ""))
        text = path.read_text()
        for outside in ("http:", "https:", "<script", "src=", "@import"):
            self.assertNotIn(outside, text)
        return Page(text)

    def test_terminal(self):
        self.assertEqual(view(self.top / "heads.mlir", "--show-sharding", "w"),
                         (0, HEADS_SHOWN, ""))
        code, shown, _ = view(self.top / "heads.mlir", "--show-sharding", "s")
        self.assertEqual(shown, "s: f32 as []\nranks 0..5\n")

    def test_blocks(self):
        page = self.page(self.top / "heads.mlir")
        titles = [each["text"] for each in page.all("title") if any(
            above["tag"] == "symbol" for above in each["in"])]
        w = "rank 4\ndp=1 tp=1: dimension 0 36..71, dimension 1 4..7"
        self.assertEqual(titles.count(w), 1)
        self.assertEqual(len(page.all("rect", "mesh")), 6)
        uses = {each["href"][1:] for each in page.all("use")}
        self.assertEqual(uses, {each["id"] for each in page.all("symbol")})
        values = page.all("tr", "values")[1:]
        self.assertEqual([row["text"][:1] for row in values[:3]], ["x", "w", "s"])
        ranks = [[cell["text"] for cell in page.all("td") if row in cell["in"]]
                 for row in page.all("tr", "ranks")[1:]]
        self.assertEqual([row[1] for row in ranks], [f"dp={dp} tp={tp}" for dp in range(2)
                                                     for tp in range(3)])
        # The product and its sum, both 16 rows of 36, 36 and 24 columns.
        self.assertEqual([row[2] for row in ranks], ["1,152", "1,152", "768"] * 2)

    def test_moves(self):
        page = self.page(ROOT / "examples/mlp.mlir", "--mesh", "tp=4")
        (move,) = page.all("tr", "moves")[1:]
        for part in ("10: %y = tv.linear %g, %w1", "[8, 16], partial = [tp : sum]",
                     "all-reduce over [tp]", "768 bytes", "reduce-scatter over [tp], then"):
            self.assertIn(part, move["text"])
        cells = [cell["text"] for cell in page.all("td") if move in cell["in"]]
        self.assertEqual(cells[3:6], ["all-reduce over [tp]", "768 bytes, 5.0 us", "768 bytes"])
        self.assertEqual([each["text"] for each in page.all("h3", "phases")],
                         ["source", "propagated", "planned", "local"])
        local = page.all("pre", "phases")[3]["text"]
        self.assertIn("comm.all_reduce", local)
        self.assertNotIn("loc(", page.all("pre", "phases")[2]["text"])
        # Ports: 8 x 16 twice, and a quarter of 64 x 16 twice, of 4 bytes.
        self.assertIn("3,072", page.all("tr", "ranks")[1]["text"])

    def test_dynamic_and_module(self):
        page = self.page(ROOT / "examples/minilm/encoder.mlir")
        self.assertGreater(len(page.all("tr", "moves")), 10)
        self.assertIn("with ? = 256", page.all("tr", "values")[1]["text"])
        module = self.top / "mlp.tsr"
        subprocess.run([BIN / "tessera-compile", ROOT / "examples/mlp.mlir", "--remarks", "-o",
                        module], check=True, capture_output=True)
        page = self.page(module)
        self.assertEqual(len(page.all("tr", "moves")), 2)
        self.assertEqual(len(page.all("tr", "values")), 1 + 4)

    def test_fetches(self):
        """Rows that data name, in the place of what was planned; of a module, too."""
        program, module = ROOT / "test/Compiler/moves-fetched.mlir", self.top / "fetched.tsr"
        subprocess.run([BIN / "tessera-compile", program, "--remarks", "-o", module],
                       check=True, capture_output=True)
        for file in program, module:
            plans = [move["text"] for move in self.page(file).all("tr", "moves")[1:]]
            self.assertEqual([("fetch over [ep]" in plan, "at most 8388608 bytes" in plan)
                              for plan in plans], [(True, True), (False, False), (True, True)])

    def test_many_layers(self):
        """96 layers of GPT-3 on 64 devices: the page is small, and soon there. Time of the
        processor, about 3 s on idle ones: what others do matters less to it."""
        (self.top / "many.mlir").write_text(compile_time.program(96))
        start = os.times()
        code, _, errors = view(self.top / "many.mlir", "-o", self.top / "page.html")
        end = os.times()
        self.assertEqual((code, errors), (0, ""))
        self.assertLess((self.top / "page.html").stat().st_size, 5 << 20)
        self.assertLess(end.children_user - start.children_user, 7)
        page = Page((self.top / "page.html").read_text())
        # (Of the last sum each device keeps a part, and takes its part of the residual.)
        self.assertEqual(len(page.all("tr", "moves")), 1 + 4 * 96 + 1)
        self.assertEqual(len(page.all("tr", "ranks")), 1 + 64)

    def test_version(self):
        self.assertEqual(view("--version"), (0, f"Tessera {tessera.__version__}\n", ""))

    def test_errors(self):
        for arguments, message in (
                ((self.top / "heads.mlir",), "what to show"),
                ((self.top / "heads.mlir", "--show-sharding", "z"),
                 "there is no value 'z'; there are x, w, s, %0"),
                ((self.top / "none.mlir", "-o", "x.html"), "No such file"),
                ((self.top / "heads.mlir", "--mesh", "pp=2", "-o", "x.html"),
                 "--mesh pp=2: no view of the program has this axis; they have dp, tp")):
            code, _, errors = view(*arguments)
            self.assertNotEqual(code, 0)
            self.assertIn(message, errors)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
