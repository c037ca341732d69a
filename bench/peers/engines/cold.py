"""One engine answers one sentence, from nothing: what a user's shortest script does. The argument is a JSON object."""
import json
import os
import sys

sys.path.append(sys.path.pop(0))
SPEC = json.loads(sys.argv[1])
os.environ.update(OMP_NUM_THREADS=str(SPEC["threads"]), HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
folder = os.path.join(SPEC["models"], SPEC["model"])
if SPEC["peer"] == "torch":
    from transformers import pipeline
    print(json.dumps(pipeline("text-classification", folder, device="cpu")(SPEC["text"])))
else:
    import numpy
    import onnxruntime
    from tokenizers import Tokenizer
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = SPEC["threads"]
    session = onnxruntime.InferenceSession(os.path.join(folder, "fused.onnx"), options,
                                           providers=["CPUExecutionProvider"])
    e = Tokenizer.from_file(os.path.join(folder, "tokenizer.json")).encode(SPEC["text"])
    kind = numpy.int32 if session.get_inputs()[0].type == "tensor(int32)" else numpy.int64
    known = {"input_ids": e.ids, "attention_mask": e.attention_mask, "token_type_ids": e.type_ids}
    out = session.run(None, {i.name: numpy.array([known[i.name]], kind) for i in session.get_inputs()})[0]
    p = numpy.exp(out - out.max())
    print(json.dumps([{"score": float((p / p.sum()).max())}]))
