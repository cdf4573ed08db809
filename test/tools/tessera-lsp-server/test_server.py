"""tessera-lsp-server, spoken to as an editor does.

    test_server.py BIN_FOLDER"""

import itertools
import json
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(sys.argv[1]).resolve()
URI = "file:///tmp/program.mlir"
MLP = (ROOT / "examples/mlp.mlir").read_text()
# A function that is called twice, a dynamic size, and rows that do not divide.
CALLS = """#m = #tv.mesh<dp = 2, tp = 4>
!x = tensor<?x6xf32>
!w = tensor<10x6xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func private @twice(%e: !x) -> !x {
  %d = tv.add %e, %e : (!x, !x) -> !x
  return %d : !x
}
func.func @main(%x: !x {tv.name = "x", tv.dims = ["b"], tv.user_view = #tv.view<#m, [did(dp) * _, _]>}, %w: !w {tv.name = "w"}) -> (tensor<?x10xf32> {tv.name = "y"}) attributes {tv.sizes = {b = 8}} {
  %a = call @twice(%x) : (!x) -> !x
  %r = tv.linear %a, %w : (!x, !w) -> tensor<?x10xf32>
  return %r : tensor<?x10xf32>
}
"""
# The same, where the function is for any size.
ANY_SIZE = CALLS.replace("func.func private", "!any = tensor<?x?xf32>\nfunc.func private").replace(
    "(%e: !x) -> !x", "(%e: !any) -> !any").replace("(!x, !x) -> !x", "(!any, !any) -> !any").replace(
    "%d : !x", "%d : !any").replace("= call", "= tv.call")


class Server:
    """One process; messages in, answers out."""

    def __init__(self):
        self.process = subprocess.Popen([BIN / "tessera-lsp-server"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.id = 0
        self.call("initialize", capabilities={}, rootUri=None, processId=None)
        self.notify("initialized")

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.raw(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def raw(self, content):
        self.process.stdin.write(content)
        self.process.stdin.flush()

    def notify(self, method, **params):
        self.send({"method": method, "params": params})

    def receive(self):
        head = self.process.stdout.readline()
        length = int(re.fullmatch(rb"Content-Length: (\d+)\r\n", head)[1])
        assert self.process.stdout.readline() == b"\r\n"
        return json.loads(self.process.stdout.read(length))

    def call(self, method, **params):
        self.id += 1
        self.send({"id": self.id, "method": method, "params": params})
        answer = self.receive()
        assert answer["id"] == self.id, answer
        return answer["result"]

    def diagnostics(self):
        said = self.receive()
        assert said["method"] == "textDocument/publishDiagnostics", said
        assert said["params"]["uri"] == URI
        return said["params"]["diagnostics"]

    def open(self, text):
        self.text = text
        self.notify("textDocument/didOpen", textDocument={
            "uri": URI, "languageId": "mlir", "version": 1, "text": text})
        return self.diagnostics()

    def change(self, text):
        self.text = text
        self.notify("textDocument/didChange", textDocument={"uri": URI, "version": 2},
                    contentChanges=[{"text": text}])
        return self.diagnostics()

    def at(self, what, nth=0):
        """The position of the nth `what` in the text, in units of UTF-16."""
        offset = [match.start() for match in re.finditer(re.escape(what), self.text)][nth]
        lines = self.text[:offset].split("\n")
        return {"line": len(lines) - 1, "character": len(lines[-1].encode("utf-16-le")) // 2}

    def ask(self, question, what, nth=0):
        position = self.at(what, nth)
        position["character"] += 1
        return self.call(f"textDocument/{question}", textDocument={"uri": URI},
                         position=position)

    def hover(self, what, nth=0):
        return self.ask("hover", what, nth)["contents"]["value"]

    def end(self, *last):
        for content in last:
            self.raw(content)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors.decode()


class LanguageServer(unittest.TestCase):
    def setUp(self):
        self.server = Server()

    def tearDown(self):
        self.server.process.kill()
        self.server.process.communicate()

    def test_hover(self):
        self.assertEqual(self.server.open(MLP), [])
        said = self.server.hover("%h")
        self.assertIn("**`%h`** 8x64xf32, of `tv.linear`", said)
        self.assertIn("`[8, did(tp) * 32]` on `<tp = 2>`", said)
        self.assertIn("- dimension 1 is split over `tp`: 32 of 64 on a device\n", said)
        self.assertIn("- 1024 bytes on a device, 2048 in all\n", said)
        self.assertIn("| 1: tp=1 | 0..7 | 32..63 |\n", said)
        self.assertIn("dimension 1 becomes did(tp) * 32 from argument 'w0'", said)
        page = (ROOT / "docs/editors.md").read_text()
        self.assertIn(said.strip(), re.sub("^> ?", "", page, flags=re.M))
        # A use says the same. Of what moves, how.
        self.assertEqual(self.server.hover("%h", 1), said)
        said = self.server.hover("%y")
        self.assertIn("- devices along `tp` have the same\n", said)
        self.assertIn("to [8, 16]: all-reduce over [tp], 512 bytes", said)
        self.assertIn("an argument", self.server.hover("%w1"))
        self.assertIn("dimension 1 is split over `tp`", self.server.hover("%w1"))
        self.assertIn("tensor<8x16xf32>", self.server.hover("!x"))
        self.assertIn("#tv.mesh<tp = 2>", self.server.hover("#m"))
        self.assertIsNone(self.server.ask("hover", "// A two-layer"))

    def test_partial(self):
        partial = "#tv.view<#m, [_, _], partial = [tp : sum]>"
        text = MLP.replace("!w1) -> !x\n", f"!w1) -> !p\n").replace(
            "func.func", f"!p = tensor<8x16xf32, {partial}>\nfunc.func").replace(
            "return %y", "%r = tv.reshard %y : (!p) -> !x\n  return %r")
        self.assertEqual(self.server.open(text), [])
        self.assertIn("- devices along `tp` hold parts: the value is their sum\n",
                      self.server.hover("%y"))

    def test_calls(self):
        self.assertEqual(self.server.open(CALLS), [])
        for text, name in itertools.product((CALLS, ANY_SIZE), ("%a", "%d", "%e", "%x")):
            self.assertEqual(self.server.change(text), [])
            said = self.server.hover(name)
            # b is at most 8, so 4 rows of 6 numbers.
            own = "?x?xf32" if text is ANY_SIZE and name in ("%d", "%e") else "?x6xf32"
            self.assertIn(own, said, name)
            self.assertIn("- dimension 0 is split over `dp`: 4 of 8 on a device\n", said)
            self.assertIn("- devices along `tp` have the same\n", said)
            self.assertIn("- at most 96 bytes on a device, 192 in all\n", said)
        said = self.server.hover("%w")
        self.assertIn("split over `tp`: at most 3 of 10 on a device\n", said)
        self.assertIn("| 3: dp=0 tp=3 | 9 | 0..5 |", said)

    def test_circles(self):
        """While a function is being written it may call itself, and nobody it."""
        text = CALLS.replace("  return %d : !x", "  %f = call @twice(%d) : (!x) -> !x\n  return %f : !x")
        self.server.open(text.replace("%a = call @twice(%x) : (!x) -> !x", "%a = tv.neg %x : (!x) -> !x"))
        for name in ("%e", "%d", "%f", "%x"):
            self.assertIn("?x6xf32", self.server.hover(name), name)

    def test_definition(self):
        self.server.open(CALLS)

        def where(what, nth):
            return self.server.ask("definition", what, nth)["range"]

        for name, use in (("%a", 1), ("%r", 1), ("%w", 1), ("#m", 1), ("!x", 1)):
            found = where(name, use)
            self.assertEqual(found["start"], self.server.at(name), name)
            self.assertEqual(found["end"]["character"] - found["start"]["character"], 2)
        self.assertEqual(where("@twice", 1)["start"], self.server.at("func.func private"))
        self.assertIsNone(self.server.ask("definition", "attributes"))

    def test_units(self):
        """A character may be two units, or three bytes."""
        line = 'func.func @f(%x: tensor<4xf32> {tv.name = "é𝄞€"}, %y: tensor<4xf32>) {\n'
        self.assertEqual(self.server.open(line + "  return\n}\n"), [])
        found = self.server.ask("definition", "%y")["range"]
        self.assertEqual(found["start"], self.server.at("%y"))

    def test_diagnostics(self):
        def one(text):
            (said,) = self.server.change(text)
            self.assertEqual(said["severity"], 1)
            return said

        self.server.open("")
        # Of the parser, of a verifier, of tv-bind, of propagation.
        said = one(MLP.replace("%h = tv.linear %x", "%h = tv.linear %xx"))
        self.assertIn("use of undeclared SSA value name", said["message"])
        self.assertEqual(said["range"]["start"], self.server.at("%xx"))
        self.assertEqual(said["range"]["end"]["character"] -
                         said["range"]["start"]["character"], 3)
        said = one(MLP.replace("64x16xf32, #tv", "64x15xf32, #tv"))
        self.assertEqual(said["range"]["start"], self.server.at("tv.linear"))
        said = one(MLP.replace("!w1 = tensor<16x64xf32>", "!w1 = tensor<16x64xf32, "
                               "#tv.view<#tv.mesh<dp = 3>, [_, did(dp) * _]>>"))
        self.assertIn("meshes of one program name the same devices", said["message"])
        said = one(MLP.replace("// A two", "// RUN\n// A two").replace(
            '-> (!x {tv.name = "y"})', '-> (!x {tv.name = "y", tv.user_view = 3 : i64})'))
        self.assertIn("tv.user_view", said["message"])
        self.assertEqual(self.server.change(MLP), [])
        # What has been through the pipeline is not for it.
        local = subprocess.run([BIN / "tessera-opt", "--tessera=to=local",
                                ROOT / "examples/mlp.mlir"], capture_output=True, text=True)
        self.assertEqual(self.server.change(local.stdout), [])
        self.assertIn("No view is known", self.server.hover("%0"))

    def test_broken(self):
        """Each beginning of a program is answered, and then the whole."""
        self.server.open("")
        for end in range(0, len(MLP), 7):
            self.server.change(MLP[:end])
            self.server.ask("hover", "", end // 2)
            self.server.ask("definition", "", end // 3)
        for text in ("%", "!x = ", "#m = #tv.mesh<", "}" * 100, "é" * 1000):
            self.assertNotEqual(self.server.change(text), [], text)
        self.assertEqual(self.server.change(MLP), [])
        for line, character in ((0, 10 ** 6), (10 ** 6, 0), (10 ** 6, 10 ** 6)):
            self.assertIsNone(self.server.call(
                "textDocument/hover", textDocument={"uri": URI},
                position={"line": line, "character": character}))
        self.assertIn("1024 bytes", self.server.hover("%h"))

    def test_close(self):
        self.assertNotEqual(self.server.open("%"), [])
        self.server.notify("textDocument/didClose", textDocument={"uri": URI})
        self.assertEqual(self.server.diagnostics(), [])
        self.assertIsNone(self.server.ask("hover", "%"))

    def test_ends(self):
        self.server.open(MLP)
        self.assertIsNone(self.server.call("shutdown"))
        body = b'{"jsonrpc":"2.0","method":"exit"}'
        leave = b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        self.assertEqual(self.server.end(leave), (0, ""))
        # Without shutdown, at the input's end, and in the middle of a message.
        for last, code in ((leave, 1), (b"", 0), (b"Content-Length: 100\r\n\r\n{", 0)):
            self.assertEqual(Server().end(last), (code, ""))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
