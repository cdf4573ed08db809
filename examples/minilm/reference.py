"""all-MiniLM-L6-v2 in NumPy and float64, on one process, independent of Tessera:
a BERT encoder of six layers, the mean over a sentence's tokens, unit length."""

import argparse
import math
import pathlib

import numpy as np
from safetensors.numpy import load_file, save_file

LAYERS = 6
HEADS = 12
EPSILON = 1e-12  # of the layer norms, as in the model's config.json

erf = np.vectorize(math.erf, otypes=[np.float64])


def linear(w, name, x):
    return x @ w[name + ".weight"].T + w[name + ".bias"]


def layer_norm(w, name, x):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + EPSILON) * w[name + ".weight"] + w[name + ".bias"]


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def attention(w, name, x, mask):
    batch, tokens, width = x.shape

    def heads(part):  # [batch, head, token, feature]
        y = linear(w, f"{name}.self.{part}", x)
        return y.reshape(batch, tokens, HEADS, width // HEADS).transpose(0, 2, 1, 3)

    q, k, v = heads("query"), heads("key"), heads("value")
    scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(width // HEADS)
    scores = np.where(mask[:, None, None, :] > 0, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    y = (weights @ v).transpose(0, 2, 1, 3).reshape(batch, tokens, width)
    return layer_norm(w, name + ".output.LayerNorm", x + linear(w, name + ".output.dense", y))


def embed(weights, ids, mask):
    """Unit vectors [sentence, 384] of token numbers and their mask."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    x = (
        w["embeddings.word_embeddings.weight"][ids]
        + w["embeddings.position_embeddings.weight"][: ids.shape[1]]
        + w["embeddings.token_type_embeddings.weight"][0]
    )
    x = layer_norm(w, "embeddings.LayerNorm", x)
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        x = attention(w, name + ".attention", x, mask)
        y = linear(w, name + ".output.dense", gelu(linear(w, name + ".intermediate.dense", x)))
        x = layer_norm(w, name + ".output.LayerNorm", x + y)
    mask = mask.astype(np.float64)[:, :, None]
    mean = (x * mask).sum(axis=1) / mask.sum(axis=1)
    return mean / np.linalg.norm(mean, axis=1, keepdims=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.replace("\n", " "))
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--inputs", type=pathlib.Path, required=True, help="from prepare.py")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    args = parser.parse_args()
    inputs = load_file(args.inputs)
    weights = load_file(args.model / "model.safetensors")
    embeddings = embed(weights, inputs["ids"], inputs["mask"])
    save_file({"embeddings": embeddings}, args.output)
    print(f"{args.output}: embeddings float64 {list(embeddings.shape)}")


if __name__ == "__main__":
    main()
