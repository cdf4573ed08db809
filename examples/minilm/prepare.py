"""Turns sentences into the inputs of the MiniLM program: a safetensors file with

    ids   int32   [sentences, tokens]   token numbers, 0 beyond a sentence's end
    mask  float32 [sentences, tokens]   1 for a token, 0 beyond the end
"""

import argparse
import pathlib

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer

MAX_TOKENS = 256


def tokenize(model: pathlib.Path, sentences: list[str]) -> dict[str, np.ndarray]:
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.enable_truncation(max_length=MAX_TOKENS)
    tokenizer.enable_padding()  # up to the longest of these sentences
    encodings = tokenizer.encode_batch(sentences)
    return {
        "ids": np.array([e.ids for e in encodings], np.int32),
        "mask": np.array([e.attention_mask for e in encodings], np.float32),
    }


def read_sentences(path: pathlib.Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.strip()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--sentences", type=pathlib.Path, required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    args = parser.parse_args()
    inputs = tokenize(args.model, read_sentences(args.sentences))
    save_file(inputs, args.output)
    sentences, tokens = inputs["ids"].shape
    print(f"{args.output}: {sentences} sentences, {tokens} tokens each")


if __name__ == "__main__":
    main()
