"""Checks the reference itself: unit vectors, neighbours in meaning closer than
others, padding without influence, and the published embedding of one sentence."""

import pathlib
import sys

import numpy as np
from prepare import read_sentences, tokenize
from reference import embed
from safetensors.numpy import load_file

# The first numbers for "This is an example sentence" on the model's own page.
PUBLISHED = [6.7657e-02, 6.3496e-02, 4.8713e-02, 7.9305e-02, 3.7448e-02, 2.6528e-03]


def main():
    here = pathlib.Path(__file__).parent
    model = pathlib.Path(sys.argv[1])
    weights = load_file(model / "model.safetensors")
    sentences = read_sentences(here / "sentences.txt")
    inputs = tokenize(model, sentences)
    vectors = embed(weights, inputs["ids"], inputs["mask"])

    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-14)

    # Sentences 2i and 2i+1 say the same in other words.
    cosines = vectors @ vectors.T - 2 * np.eye(len(sentences))
    assert (cosines.argmax(axis=1) == np.arange(len(sentences)) ^ 1).all(), cosines

    # A sentence alone, hence without padding, has the same embedding.
    for i, sentence in enumerate(sentences):
        alone = tokenize(model, [sentence])
        vector = embed(weights, alone["ids"], alone["mask"])[0]
        np.testing.assert_allclose(vector, vectors[i], atol=1e-13)

    published = tokenize(model, ["This is an example sentence"])
    vector = embed(weights, published["ids"], published["mask"])[0]
    np.testing.assert_allclose(vector[: len(PUBLISHED)], PUBLISHED, atol=1e-6)
    print("the reference has the properties of the published model")


if __name__ == "__main__":
    main()
