#!/usr/bin/env python3
"""Compares Sesame on TensorFlow checkpoints with Sesame on the same weights as safetensors, bit for bit.

Usage: tf_checkpoint.py [--write OUT] [--shards N] SESAME MODEL...

MODEL: a folder in the format of transformers; of ELECTRA, DISCRIMINATOR+GENERATOR (two folders) make one
checkpoint. TensorFlow (package tensorflow-cpu) writes each model as google-research publishes it: variable names,
layouts and config file. `sesame run` must then print the same hidden states and logits for both, and `sesame
convert` must give back the same tensors. --write keeps the folders: OUT/NAME (TensorFlow), OUT/NAME-hf.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.pop(0)  # tokenizers.py beside this script is not the library
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow.compat.v1 as tf
from safetensors.numpy import load_file, save_file

BERT_KEYS = """attention_probs_dropout_prob hidden_act hidden_dropout_prob hidden_size initializer_range
intermediate_size max_position_embeddings num_attention_heads num_hidden_layers type_vocab_size vocab_size""".split()
ALBERT_KEYS = BERT_KEYS + ["embedding_size", "num_hidden_groups", "inner_group_num", "classifier_dropout_prob"]
MOBILE_KEYS = BERT_KEYS + """embedding_size classifier_activation intra_bottleneck_size key_query_shared_bottleneck
normalization_type num_feedforward_networks trigram_input true_hidden_size use_bottleneck
use_bottleneck_attention""".split()
TOKENIZER = {"tokenizer.json": None, "vocab.txt": "vocab.txt", "spiece.model": "spiece.model",
             "vocab.json": "encoder.json", "merges.txt": "vocab.bpe"}


def leaf(name, norm):
    """The last part of a BERT variable: norms have gamma and beta, dense layers kernels."""
    if name == "bias":
        return "beta" if norm else "bias", False
    return ("gamma", False) if norm else ("kernel", True)


def bert_like(name, base):
    """(variable, transposed) of models that are built like BERT; `base`: the prefix of the encoder."""
    parts = name.split(".")
    if parts[-2].endswith("_embeddings"):
        return "/".join(parts[:-1]), False
    last, transposed = leaf(parts[-1], "LayerNorm" in parts[-2] or "layer_norm" in parts[-2])
    return re.sub(r"layer/(\d+)", r"layer_\1", "/".join(parts[:-1] + [last])), transposed


def bert(tensors, config):
    fixed = {"cls.predictions.bias": "cls/predictions/output_bias",
             "cls.seq_relationship.weight": "cls/seq_relationship/output_weights",
             "cls.seq_relationship.bias": "cls/seq_relationship/output_bias",
             "classifier.weight": "output_weights", "classifier.bias": "output_bias",
             "qa_outputs.weight": "cls/squad/output_weights", "qa_outputs.bias": "cls/squad/output_bias"}
    out = {}
    for name, x in tensors.items():
        if name in fixed:
            out[fixed[name]] = x
        elif not name.endswith(("decoder.weight", "decoder.bias")):
            name = name if name.startswith(("bert.", "cls.")) else "bert." + name
            variable, transposed = bert_like(name, "bert")
            out[variable] = x.T if transposed else x
    return out, "bert_model.ckpt", "bert_config.json", {k: config[k] for k in BERT_KEYS if k in config}


def mobilebert(tensors, config):
    rest = {}
    out = {}
    for name, x in tensors.items():
        if name == "cls.predictions.dense.weight":
            out["cls/predictions/extra_output_weights"] = x.T
        else:
            rest[name.replace("mobilebert.", "bert.")] = x
    for name, x in bert(rest, config)[0].items():
        name = re.sub(r"ffn/(\d+)", r"ffn_layer_\1", name)
        out[name if name.startswith("cls/") else name.replace("LayerNorm", "FakeLayerNorm")] = x
    return out, "mobilebert_variables.ckpt", "bert_config.json", {k: config[k] for k in MOBILE_KEYS if k in config}


def albert(tensors, config):
    fixed = {"predictions.bias": "cls/predictions/output_bias",
             "sop_classifier.classifier.weight": "cls/seq_relationship/output_weights",
             "sop_classifier.classifier.bias": "cls/seq_relationship/output_bias",
             "classifier.weight": "output_weights", "classifier.bias": "output_bias"}
    out = {}
    for name, x in tensors.items():
        if name in fixed:
            out[fixed[name]] = x
            continue
        if name.endswith(("decoder.weight", "decoder.bias")):
            continue
        name = name if name.startswith(("albert.", "predictions.")) else "albert." + name
        name = name.replace("albert.pooler.", "albert.pooler.dense.").replace("albert.", "bert.", 1)
        layer = re.match(r"bert\.encoder\.albert_layer_groups\.(\d+)\.albert_layers\.(\d+)\.(.*)\.(weight|bias)$", name)
        if layer:
            part = {"attention.LayerNorm": "LayerNorm", "full_layer_layer_norm": "LayerNorm_1",
                    "ffn": "ffn_1/intermediate/dense", "ffn_output": "ffn_1/intermediate/output/dense",
                    "attention.dense": "attention_1/output/dense"}.get(layer[3])
            part = part or layer[3].replace("attention.", "attention_1/self/")
            last, transposed = leaf(layer[4], "LayerNorm" in part)
            variable = f"bert/encoder/transformer/group_{layer[1]}/inner_group_{layer[2]}/{part}/{last}"
        else:
            variable, transposed = bert_like(name, "bert")
            variable = re.sub("^predictions/", "cls/predictions/transform/", variable)
        out[variable] = x.T if transposed else x
    own = {k: config[k] for k in ALBERT_KEYS if k in config}
    own["hidden_act"] = {"gelu_new": "gelu"}.get(own["hidden_act"], own["hidden_act"])
    return out, "model.ckpt-best", "albert_config.json", own


def electra(tensors, config, generator=None):
    """The discriminator's embeddings are the generator's, too."""
    out = {}
    for name, x in tensors.items():
        name = name.replace("dense_prediction", "dense_1")
        variable, transposed = bert_like(name, "electra")
        out[variable] = x.T if transposed else x
    for name, x in (generator or {}).items():
        if name.startswith("electra.embeddings.") or name == "generator_lm_head.weight":
            continue
        if name == "generator_lm_head.bias":
            out["generator_predictions/output_bias"] = x
            continue
        variable, transposed = bert_like(re.sub("^electra", "generator", name), "generator")
        out[variable] = x.T if transposed else x
    own = {"num_attention_heads": config["num_attention_heads"]}  # not 64 columns each, as published
    return out, "electra_small", "bert_config.json", own


def xlnet(tensors, config):
    out, stacked = {}, {}
    for name, x in tensors.items():
        name = name if name.startswith(("transformer.", "lm_loss")) else "transformer." + name
        layer = re.match(r"transformer\.layer\.(\d+)\.rel_attn\.(r_w_bias|r_r_bias|r_s_bias|seg_embed)$", name)
        if layer:
            stacked.setdefault(layer[2], {})[int(layer[1])] = x
        elif name == "transformer.word_embedding.weight":
            out["model/transformer/word_embedding/lookup_table"] = x
        elif name == "transformer.mask_emb":
            out["model/transformer/mask_emb/mask_emb"] = x
        elif re.search(r"rel_attn\.[qkvor]$", name):
            out["model/" + re.sub(r"layer\.(\d+)", r"layer_\1", name).replace(".", "/") + "/kernel"] = x
        elif name != "lm_loss.weight":
            variable, transposed = bert_like(name, "")
            out["model/" + variable.replace("layer_norm", "LayerNorm")] = x.T if transposed else x
    for name, parts in stacked.items():
        out["model/transformer/" + name] = np.stack([parts[i] for i in range(len(parts))])
    own = {k: config[k] for k in ("d_head", "d_inner", "d_model", "ff_activation", "n_head", "n_layer")}
    return out, "xlnet_model.ckpt", "xlnet_config.json", {**own, "n_token": config["vocab_size"], "untie_r": True}


def gpt2(tensors, config):
    out = {}
    for name, x in tensors.items():
        parts = re.sub(r"^transformer\.", "", name).replace("h.", "h", 1).split(".")
        if parts[0] in ("wte", "wpe"):
            out["model/" + parts[0]] = x
        elif parts[0] != "lm_head":
            norm = parts[-2].startswith("ln_")
            parts[-1] = ("g" if norm else "w") if parts[-1] == "weight" else "b"
            out["model/" + "/".join(parts)] = x[None] if x.ndim == 2 else x
    own = {k: config[k] for k in ("n_embd", "n_head", "n_layer")}
    return out, "model.ckpt", "hparams.json", {"n_vocab": config["vocab_size"], "n_ctx": config["n_positions"], **own}


def t5(tensors, config):
    new = config["feed_forward_proj"].startswith("gated")
    norm = "rms_norm" if new else "layer_norm"
    out = {"global_step": np.int64(999900)}
    for name, x in tensors.items():
        if name == "shared.weight":
            out["shared/embedding"] = x
            continue
        if "embed_tokens" in name or name == "lm_head.weight":
            continue
        variable = re.sub(r"\.weight$", "", name)
        variable = re.sub(r"block\.(\d+)", lambda m: f"block_{int(m[1]):03}", variable)
        variable = re.sub(r"layer\.(\d+)", lambda m: f"layer_{int(m[1]):03}", variable).replace(".", "/")
        if variable.endswith("layer_norm"):
            variable = variable.replace("final_layer_norm", norm if new else "final_layer_norm")
            variable = re.sub("/layer_norm$", "/" + norm, variable) + "/scale"
            out[variable] = x
        else:
            out[variable + ("/kernel" if "DenseReluDense" in variable else "")] = x.T
            out[variable + "_slot_vr"] = np.zeros(2, np.float32)
    if new:
        out["decoder/logits/kernel"] = tensors.get("lm_head.weight", tensors["shared.weight"]).T
    config.pop("relative_attention_max_distance", None)
    return out, "model.ckpt-999900", "operative_config.gin", None


FAMILY = {"bert": bert, "albert": albert, "electra": electra, "xlnet": xlnet, "gpt2": gpt2, "t5": t5,
          "mobilebert": mobilebert}


def save_checkpoint(path, variables, shards):
    """As tf.train.Saver writes it, with the state of an optimizer, on several devices if there are shards."""
    tf.disable_eager_execution()
    with tf.Graph().as_default():
        made = []
        for i, (name, x) in enumerate(sorted(variables.items())):
            with tf.device(f"/cpu:{i % shards}"):
                made.append(tf.Variable(np.ascontiguousarray(x), name=name))
                if i == 0:
                    made.append(tf.Variable(np.zeros_like(x), name=name + "/adam_m"))
        if "global_step" not in variables:
            made.append(tf.Variable(np.int64(7), name="global_step"))
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": shards})) as session:
            session.run(tf.global_variables_initializer())
            tf.train.Saver(made, sharded=shards > 1).save(session, path, write_meta_graph=False)


def write_pair(model, out, shards):
    """OUT/NAME with TensorFlow's files, OUT/NAME-hf with the same weights and settings as safetensors."""
    first, *second = model.split("+")
    name = os.path.basename(first.rstrip("/"))
    config = json.load(open(f"{first}/config.json"))
    tensors = load_file(f"{first}/model.safetensors")
    generator = load_file(f"{second[0]}/model.safetensors") if second else None
    extra = (generator,) if second else ()
    if "id2label" in config:  # the originals have no label names
        config["num_labels"] = len(config.pop("id2label"))
        config.pop("label2id", None)
    variables, prefix, file, own = FAMILY[config["model_type"]](tensors, config, *extra)
    tf_dir, hf_dir = f"{out}/{name}", f"{out}/{name}-hf"
    for d in (tf_dir, hf_dir):
        shutil.rmtree(d, ignore_errors=True)
        os.makedirs(d)
    save_checkpoint(f"{tf_dir}/{prefix}", variables, shards)
    with open(f"{tf_dir}/{file}", "w") as f:
        f.write("# written for a comparison\n" if own is None else json.dumps(own, indent=2) + "\n")
    json.dump(config, open(f"{hf_dir}/config.json", "w"), indent=2, sort_keys=True)
    save_file(tensors, f"{hf_dir}/model.safetensors", metadata={"format": "pt"})
    for source, target in TOKENIZER.items():
        if os.path.exists(f"{first}/{source}"):
            shutil.copy(f"{first}/{source}", f"{hf_dir}/{source}")
            shutil.copy(f"{first}/{source}", f"{tf_dir}/{target or source}")
    pairs = [(name, tf_dir, hf_dir, None)]
    if second:
        gen_dir = f"{out}/{os.path.basename(second[0])}-hf"
        os.makedirs(gen_dir, exist_ok=True)
        generator.update({k: v for k, v in tensors.items() if k.startswith("electra.embeddings.")})
        shutil.copy(f"{second[0]}/config.json", gen_dir)
        save_file(generator, f"{gen_dir}/model.safetensors", metadata={"format": "pt"})
        own = json.load(open(f"{gen_dir}/config.json"))["num_attention_heads"]
        json.dump({"num_attention_heads": own}, open(f"{tf_dir}/generator_config.json", "w"))
        pairs.append((os.path.basename(second[0]), tf_dir, gen_dir, "ElectraForMaskedLM"))
    return pairs


def compare(sesame, name, tf_dir, hf_dir, kind):
    config = json.load(open(f"{hf_dir}/config.json"))
    vocab = config["vocab_size"]
    ids = [" ".join(str((7 * i * i + 3 * i + k) % vocab) for i in range(n)) for k, n in enumerate((3, 11, 17))]
    command = [sesame, "run", None, "--json", "--hidden-states"]
    command += [x for line in ids for x in ("--ids", line)]
    command += ["--class", kind] if kind else ["--class", config["architectures"][0]]
    got = [subprocess.run([d if x is None else x for x in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
           for d in (tf_dir, hf_dir)]
    same = got[0].returncode == got[1].returncode == 0 and got[0].stdout == got[1].stdout and got[1].stdout
    print(f"{'ok    ' if same else 'FAILED'}  {name}: run, {len(got[1].stdout)} bytes of hidden states and results")
    if not same:
        print("       ", (got[0].stderr or got[1].stderr).decode().strip()[:400])
    with tempfile.TemporaryDirectory() as out:
        extra = ["--class", kind] if kind else []
        done = subprocess.run([sesame, "convert", tf_dir, out, *extra], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        equal = done.returncode == 0
        if equal:
            a, b = load_file(f"{out}/model.safetensors"), load_file(f"{hf_dir}/model.safetensors")
            b = {k: v for k, v in b.items() if k in a}
            equal = len(a) >= len(b) > 4 and all(np.array_equal(a[k], b[k]) for k in b)
        print(f"{'ok    ' if equal else 'FAILED'}  {name}: convert, {len(b) if done.returncode == 0 else 0} tensors equal")
        if not equal:
            print("       ", done.stderr.decode().strip()[:400])
    return bool(same) and equal


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--write")
    p.add_argument("--shards", type=int, default=1)
    p.add_argument("sesame")
    p.add_argument("models", nargs="+")
    a = p.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        for model in a.models:
            for pair in write_pair(model, a.write or scratch, a.shards):
                failed |= not compare(a.sesame, *pair)
    sys.exit(failed)


if __name__ == "__main__":
    main()
