"""Models with random weights as Hugging Face folders, as ONNX and as OpenVINO files, and texts; existing files are kept.
Usage: prepare.py FOLDER VOCAB_FOLDER DATA_FOLDER MODEL/FILE..."""
import json
import os
import sys

sys.path.append(sys.path.pop(0))
import csv

import torch
import transformers as tf

CALIBRATION = 32  # sentences
BERT = {"mini": (4, 256, 4), "small": (4, 512, 8), "base": (12, 768, 12), "minilm": (6, 384, 12)}


def bert(cls, size, **more):
    layers, hidden, heads = BERT[size]
    return cls(tf.BertConfig(hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads,
                             intermediate_size=4 * hidden, **more))


MODELS = {
    "bert-base": lambda: bert(tf.BertModel, "base"),
    "bert-base-sst2": lambda: bert(tf.BertForSequenceClassification, "base",
                                   id2label={0: "NEGATIVE", 1: "POSITIVE"}, label2id={"NEGATIVE": 0, "POSITIVE": 1}),
    "bert-base-stsb": lambda: bert(tf.BertForSequenceClassification, "base", num_labels=1, problem_type="regression"),
    "minilm": lambda: bert(tf.BertModel, "minilm"),
    "distilbert": lambda: tf.DistilBertForSequenceClassification(tf.DistilBertConfig()),
    "gpt2": lambda: tf.GPT2LMHeadModel(tf.GPT2Config()),
    "bert-mini-mlm": lambda: bert(tf.BertForMaskedLM, "mini"),
    "bert-small-mlm": lambda: bert(tf.BertForMaskedLM, "small"),
    "bert-base-mlm": lambda: bert(tf.BertForMaskedLM, "base"),
}


def tokenizer(vocab, name):
    if name == "gpt2":
        return tf.GPT2TokenizerFast(vocab=os.path.join(vocab, "gpt2/vocab.json"),
                                    merges=os.path.join(vocab, "gpt2/merges.txt"))
    return tf.BertTokenizerFast(vocab=os.path.join(vocab, "bert-base-uncased/vocab.txt"), model_max_length=512)


def make_folder(out, name):
    torch.manual_seed(7)
    model = MODELS[name]().eval()
    with torch.no_grad():  # larger than at the start of training: a mistake shows
        for p in model.parameters():
            if p.dim() == 2:
                p.mul_(1.7)
    model.save_pretrained(out)
    tokenizer(sys.argv[2], name).save_pretrained(out)
    if name == "minilm":
        make_sentence(out)
    with open(os.path.join(out, "done"), "w"):
        pass


def make_sentence(out):
    """Files of sentence-transformers next to the model."""
    write = lambda name, x: (os.makedirs(os.path.dirname(os.path.join(out, name)), exist_ok=True),
                             json.dump(x, open(os.path.join(out, name), "w")))
    write("modules.json", [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])
    write("1_Pooling/config.json", {"word_embedding_dimension": 384, "pooling_mode_mean_tokens": True})
    write("sentence_bert_config.json", {"max_seq_length": 256, "do_lower_case": False})


class First(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, token_type_ids=None):
        types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        return self.model(input_ids=input_ids, attention_mask=attention_mask, **types)[0]


def make_onnx(folder, name):
    """As exported, from plain attention."""
    cls = tf.AutoModelForSequenceClassification if name not in ("bert-base", "minilm") else tf.AutoModel
    model = cls.from_pretrained(folder, attn_implementation="eager").eval()
    ids = torch.arange(32).reshape(2, 16) * 7919 % model.config.vocab_size
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if name != "distilbert":
        given["token_type_ids"] = torch.zeros_like(ids)
    axes = {k: {0: "batch", 1: "tokens"} for k in given}
    torch.onnx.export(First(model), tuple(given.values()), os.path.join(folder, "model.onnx"),
                      input_names=list(given), output_names=["out"], dynamic_axes=dict(axes, out={0: "batch"}),
                      dynamo=False, opset_version=17)


def make_fused(folder, name):
    """As ONNX Runtime's own optimizer makes it: attention, norms and GELU are one operator each."""
    from onnxruntime.transformers import optimizer
    c = tf.AutoConfig.from_pretrained(folder)
    fused = optimizer.optimize_model(os.path.join(folder, "model.onnx"), "bert", num_heads=c.num_attention_heads,
                                     hidden_size=c.hidden_size, opt_level=0, use_gpu=False)
    fused.save_model_to_file(os.path.join(folder, "fused.onnx"))


def make_int8(folder, name):
    """ONNX Runtime's dynamic quantization."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(os.path.join(folder, "fused.onnx"), os.path.join(folder, "int8.onnx"), per_channel=True,
                     weight_type=QuantType.QInt8, extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})


def calibration(folder, types, texts):
    """Sentences as the model will see them: what static quantization is calibrated with."""
    import numpy
    tok = tf.AutoTokenizer.from_pretrained(folder)
    if not texts:
        with open(os.path.join(folder, "..", "texts", "short.txt")) as f:
            texts = f.read().splitlines()[:CALIBRATION]
    for text in texts:
        x = tok(*(text if isinstance(text, tuple) else (text,)), return_tensors="np")
        yield {k: x[k].astype(numpy.int64) for k in ("input_ids", "attention_mask") + (("token_type_ids",) if types
                                                                                        else ())}


def make_openvino(folder, name):
    import openvino as ov
    model = ov.convert_model(os.path.join(folder, "model.onnx"))
    ov.save_model(model, os.path.join(folder, "openvino.xml"), compress_to_fp16=False)


def make_openvino8(folder, name, texts=()):
    """Static quantization of weights and activations; OpenVINO has no dynamic one of both."""
    import nncf
    import openvino as ov
    data = nncf.Dataset(list(calibration(folder, name != "distilbert", texts)))
    small = nncf.quantize(ov.Core().read_model(os.path.join(folder, "openvino.xml")), data,
                          model_type=nncf.ModelType.TRANSFORMER, subset_size=len(texts) or CALIBRATION)
    ov.save_model(small, os.path.join(folder, "openvino8.xml"), compress_to_fp16=False)


def make_gguf(folder, name):
    """GPT-2 as llama.cpp reads it, matrices in Q8_0."""
    import gguf
    import numpy
    model = tf.GPT2LMHeadModel.from_pretrained(folder)
    tok = tf.AutoTokenizer.from_pretrained(folder)
    c = model.config
    w = gguf.GGUFWriter(os.path.join(folder, "q8_0.gguf"), "gpt2")
    w.add_block_count(c.n_layer)
    w.add_context_length(c.n_positions)
    w.add_embedding_length(c.n_embd)
    w.add_feed_forward_length(4 * c.n_embd)
    w.add_head_count(c.n_head)
    w.add_layer_norm_eps(c.layer_norm_epsilon)
    w.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    names = [t for t, _ in sorted(tok.get_vocab().items(), key=lambda p: p[1])]
    w.add_token_list(names)
    w.add_token_types([3 if t == "<|endoftext|>" else 1 for t in names])
    with open(os.path.join(folder, "tokenizer.json")) as f:
        merges = json.load(f)["model"]["merges"]
    w.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])
    w.add_bos_token_id(50256)
    w.add_eos_token_id(50256)
    parts = {"ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm",
             "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
    for key, value in model.transformer.state_dict().items():
        x = value.numpy().astype(numpy.float32)
        stem, kind = key.rsplit(".", 1)
        where = stem.split(".", 2)
        if where[0] == "h":
            if where[2] not in parts:
                continue
            name = f"blk.{where[1]}.{parts[where[2]]}.{kind}"
            x = x.T if x.ndim == 2 else x  # Conv1D: stored [in, out]
        else:
            name = {"wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm"}[stem] + "." + kind
        x = numpy.ascontiguousarray(x)
        if x.ndim == 2 and stem != "wpe":
            q8 = gguf.quants.quantize(x, gguf.GGMLQuantizationType.Q8_0)
            w.add_tensor(name, q8, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
            if stem == "wte":
                w.add_tensor("output.weight", q8, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            w.add_tensor(name, x)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def make_ctranslate2(folder, name):
    import ctranslate2
    ctranslate2.converters.TransformersConverter(folder).convert(os.path.join(folder, "ctranslate2"), quantization="int8")


def make_texts(out, data):
    os.makedirs(out, exist_ok=True)

    def rows(path):
        with open(os.path.join(data, "glue", path), encoding="utf-8") as f:
            return list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))

    def put(name, lines):
        with open(os.path.join(out, name), "w", encoding="utf-8") as f:
            f.writelines(line + "\n" for line in lines)

    some = lambda x, n: x[:: len(x) // n][:n]
    put("sst2.jsonl", [json.dumps({"text": r["sentence"]}) for r in some(rows("SST-2/dev.tsv"), 64)])
    put("stsb.jsonl", [json.dumps({"text": r["sentence1"], "text_pair": r["sentence2"]})
                       for r in some(rows("STS-B/dev.tsv"), 64)])
    put("short.txt", [r["sentence"].strip() for r in some(rows("SST-2/train.tsv"), 256)])
    word = "film good story time very people little first best life".split()
    for n in (8, 128):
        put(f"tokens{n}.jsonl", [json.dumps({"text": " ".join(word[(i + s) % 10] for i in range(n - 2))})
                                 for s in range(8)])
    put("prompt.txt", ["The film was the first of many that people talked about for a long time, and"])


FILES = {"done": make_folder, "model.onnx": make_onnx, "fused.onnx": make_fused, "int8.onnx": make_int8,
         "openvino.xml": make_openvino, "openvino8.xml": make_openvino8, "q8_0.gguf": make_gguf, "ctranslate2": make_ctranslate2}


def main():
    """Arguments after the folders: MODEL/FILE, each after the files it is made from."""
    root, _, data = sys.argv[1:4]
    if not os.path.exists(os.path.join(root, "texts", "prompt.txt")):
        make_texts(os.path.join(root, "texts"), data)
    for path in sys.argv[4:]:
        name, file = path.split("/")
        folder = os.path.join(root, name)
        if os.path.exists(os.path.join(folder, file)):
            continue
        print(f"making {path}", file=sys.stderr, flush=True)
        try:
            FILES[file](folder, name)
        except Exception as e:  # the run reports that the peer lacks the file, and fails
            print(f"prepare: {path}: {type(e).__name__}: {str(e)[:300]}", file=sys.stderr)


if __name__ == "__main__":
    main()
