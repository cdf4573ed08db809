"""Runs the examples in the passes' descriptions: `descriptions.py tessera-opt passes...`.

In the description of each pass in */Passes.td of the folders, the ```mlir blocks are whole
programs. The pass runs on a block, with the options in a line "With `options`..."
just above it. What must come of it:

- a next block after a paragraph that starts with "becomes": that program, compared
  as tessera-opt prints it;
- lines "// rejected: TEXT" in the block: an error with that text;
- lines "// remark: TEXT": remarks with these texts, and no others.
"""

import pathlib
import re
import subprocess
import sys
import textwrap
import unittest

TOOL, FOLDERS = sys.argv[1], sys.argv[2:]


def descriptions():
    """The name and description of each pass."""
    paths = [path for folder in FOLDERS for path in pathlib.Path(folder).glob("*/Passes.td")]
    for path in sorted(paths):
        # A pass without a description does not take the next one's.
        for definition in re.split(r"^def ", path.read_text(), flags=re.M)[1:]:
            if name := re.match(r'\w+\s*:\s*(?:Contract)?Pass<\s*"([\w-]+)"', definition):
                text = re.search(r"let description = \[\{(.*?)\}\];", definition, re.S)
                yield name[1], textwrap.dedent(text[1]) if text else ""


def examples(description):
    """Each program with its options and what it becomes, or None."""
    found = []
    parts = re.split(r"^```mlir\n(.*?)^```$", description, flags=re.S | re.M)
    for prose, program in zip(parts[::2], parts[1::2]):
        paragraph = prose.strip().split("\n\n")[-1]
        if paragraph.startswith("becomes"):
            found[-1][2] = program
        else:
            options = re.match(r"With `([^`]*)`", paragraph)
            found.append([options[1] if options else "", program, None])
    return found


def run(program, *flags):
    command = [TOOL, "--mlir-print-op-on-diagnostic=false", *flags]
    result = subprocess.run(command, input=program, capture_output=True, text=True)
    return result.returncode, result.stdout, result.stderr


class Descriptions(unittest.TestCase):
    def check(self, name, options, program, becomes):
        code, out, err = run(program, f"--{name}={options}" if options else f"--{name}")
        rejected = re.findall(r"// rejected: (.*)", program)
        remarks = re.findall(r"// (?:remark|warning): (.*)", program)
        self.assertTrue(becomes or rejected or remarks, "nothing is expected")
        self.assertEqual(code != 0, bool(rejected), err)
        for text in rejected:
            self.assertRegex(err, "error: .*" + re.escape(text))
        if remarks:
            printed = re.findall(r"(?:remark|warning): (.*)", err)
            self.assertEqual(len(printed), len(remarks), err)
            for text, line in zip(remarks, printed):
                self.assertIn(text, line)
        if becomes:
            code, expected, err = run(becomes)
            self.assertEqual(code, 0, err)
            self.assertEqual(out, expected)

    def test_examples(self):
        passes = list(descriptions())
        self.assertGreater(len(passes), 10)
        for name, description in passes:
            found = examples(description)
            with self.subTest(name):
                self.assertTrue(found, "the description has no example")
            for number, example in enumerate(found):
                with self.subTest(name, example=number):
                    self.check(name, *example)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
