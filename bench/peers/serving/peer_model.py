"""The encoder of bench/peers/serve: a BERT of MiniLM-L6's shape with random weights as a folder of sentence-transformers, and any
such folder as ONNX files (as ONNX Runtime's optimizer makes it, and quantized to int8). Existing files are kept.

Usage: peer_model.py FOLDER VOCAB_TXT | peer_model.py FOLDER"""
import json
import os
import sys

import torch
import transformers as tf


def make_folder(folder, vocab):
    torch.manual_seed(7)
    model = tf.BertModel(tf.BertConfig(vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
                                       intermediate_size=1536), add_pooling_layer=False).eval()
    model.save_pretrained(folder)
    tf.BertTokenizerFast(vocab_file=vocab, model_max_length=256).save_pretrained(folder)
    files = {"modules.json": [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}],
        "1_Pooling/config.json": {"word_embedding_dimension": 384, "pooling_mode_mean_tokens": True},
        "sentence_bert_config.json": {"max_seq_length": 256, "do_lower_case": False}}
    for name in ("1_Pooling", "2_Normalize"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    for name, content in files.items():
        with open(os.path.join(folder, name), "w") as f:
            json.dump(content, f, indent=1)


class Encoder(torch.nn.Module):
    """Mean of the tokens' vectors, scaled to length 1."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, token_type_ids):
        x = self.model(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)[0]
        mask = attention_mask.unsqueeze(-1).to(x.dtype)
        return torch.nn.functional.normalize((x * mask).sum(1) / mask.sum(1), dim=1)


def make_onnx(folder, out):
    model = tf.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    ids = torch.arange(32).reshape(2, 16) * 7919 % model.config.vocab_size
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    axes = {k: {0: "batch", 1: "tokens"} for k in given}
    torch.onnx.export(Encoder(model), tuple(given.values()), out, input_names=list(given), output_names=["out"],
                      dynamic_axes=dict(axes, out={0: "batch"}), dynamo=False, opset_version=17)


def make_fused(folder, source, out):
    """Attention, norms and GELU become one operator each."""
    from onnxruntime.transformers import optimizer
    c = tf.AutoConfig.from_pretrained(folder)
    fused = optimizer.optimize_model(source, "bert", num_heads=c.num_attention_heads, hidden_size=c.hidden_size,
                                     opt_level=0, use_gpu=False)
    fused.save_model_to_file(out)


def make_int8(source, out):
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(source, out, per_channel=True, weight_type=QuantType.QInt8,
                     extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})


def main():
    folder = sys.argv[1]
    file = {name: os.path.join(folder, "onnx", name + ".onnx") for name in ("model", "fused", "int8")}
    if not os.path.exists(os.path.join(folder, "modules.json")):
        make_folder(folder, sys.argv[2])
    os.makedirs(os.path.join(folder, "onnx"), exist_ok=True)
    if not os.path.exists(file["model"]):
        make_onnx(folder, file["model"])
    if not os.path.exists(file["fused"]):
        make_fused(folder, file["model"], file["fused"])
    if not os.path.exists(file["int8"]):
        make_int8(file["fused"], file["int8"])


main()
