"""Prints the cosines between sentences from a program's embeddings, and their
largest difference from the reference; fails if that is above the tolerance."""

import argparse
import pathlib
import sys

import numpy as np
from prepare import read_sentences
from safetensors.numpy import load_file


def main():
    parser = argparse.ArgumentParser(description=__doc__.replace("\n", " "))
    parser.add_argument("--sentences", type=pathlib.Path, required=True)
    parser.add_argument("--reference", type=pathlib.Path, required=True)
    parser.add_argument("--result", type=pathlib.Path, required=True)
    parser.add_argument("--tolerance", type=float, default=1e-5)
    args = parser.parse_args()
    sentences = read_sentences(args.sentences)
    reference = load_file(args.reference)["embeddings"]
    result = load_file(args.result)["embeddings"].astype(np.float64)
    if result.shape != reference.shape:
        sys.exit(f"compare.py: error: {args.result} has shape {result.shape}, not {reference.shape}")

    print("cosines")
    for i, row in enumerate(result @ result.T):
        cells = " ".join(f"{cosine:6.3f}" for cosine in row)
        print(f"  {i + 1} {cells}   {sentences[i]}")
    difference = np.abs(result - reference).max()
    print(f"largest difference from the float64 reference: {difference:.2e}")
    if not difference <= args.tolerance:  # NaN fails, too
        sys.exit(f"compare.py: error: that is above {args.tolerance:.0e}")


if __name__ == "__main__":
    main()
