"""A tour of the package, from texts to a fine-tuned model. Run it with the bundled models:

    SESAME_MODELS=models python3 python/recipes/tutorial.py

Every step asserts its result."""

import os
import tempfile

import sesame

# ---- Pipelines: a task, a model, texts ----

classify = sesame.pipeline("text-classification")  # the bundled model of the task
print(classify("A fine film."))
assert classify("A fine film.")[0]["label"] == "positive"
assert [x["label"] for x in classify(["A fine film.", "A waste of time."])] == ["positive", "negative"]

fill = sesame.pipeline("fill-mask", top_k=3)
for guess in fill("The capital of France is [MASK]."):
    print(f"{guess['score']:.3f} {guess['sequence']}")

find_names = sesame.pipeline("ner", aggregation_strategy="simple")
text = "Angela Merkel lives in Berlin."
names = [(x["entity_group"], text[x["start"]:x["end"]]) for x in find_names(text)]
assert names == [("PER", "Angela Merkel"), ("LOC", "Berlin")]

answer = sesame.pipeline("question-answering")
found = answer(question="In which city does Sarah live?", context="Sarah, a doctor, lives in London.")
assert found["answer"] == "London"

# An iterator of texts gives an iterator of results: memory does not depend on their number.
lines = (f"This film is number {i}." for i in range(1000))
labels = {x["label"] for x in classify(lines)}
assert labels <= {"positive", "negative"}

# ---- Sentence vectors ----

encoder = sesame.SentenceTransformer("sesame-embed")
notes = ["Rice needs 15 minutes.", "The train leaves at nine.", "Boil the pasta in salted water."]
vectors = encoder.encode(notes)  # a NumPy array, or a sesame.Array without NumPy
scores = encoder.similarity(encoder.encode(["When does the train leave?"]), vectors)
best = max(range(len(notes)), key=lambda i: scores[0, i])
print(notes[best])
assert best == 1

# ---- Tokens and hidden states ----

tokenizer = sesame.Tokenizer.from_pretrained("sesame-small")
encoding = tokenizer.encode("Unbelievable!")
print(encoding.tokens, encoding.offsets)
assert tokenizer.decode(encoding.ids) == "unbelievable!"

model = sesame.Model.from_pretrained("sesame-small")
out = model(**tokenizer(["The cat sat.", "A dog"], padding=True), output_hidden_states=True, output_attentions=True)
print(out.logits, len(out.hidden_states), out.attentions[0])
assert memoryview(out.logits).format == "f"  # NumPy, PyTorch and Arrow read it without a copy

# ---- Fine-tuning ----

examples = [("a fine film", "good"), ("a dull film", "bad"), ("warm and fine", "good"), ("cold and dull", "bad")] * 4


def report(event):
    if event["kind"] == "evaluated":
        print(f"update {event['update']} of {event['updates']}: {event['scores']}")


with tempfile.TemporaryDirectory() as folder:
    output = os.path.join(folder, "films")
    result = sesame.finetune(examples, eval=examples, model="sesame-small", task="classify", adapter="lora",
                             output=output, epochs=1, batch_size=4, lr=1e-3, callback=report)
    assert result["end"] == "complete" and result["eval_accuracy"] >= 0.5
    print(sesame.pipeline("text-classification", output)("a fine film"))

# ---- Errors ----

try:
    fill("no mask here")
except sesame.Error as error:
    print(f"{type(error).__name__}: {error}")
try:
    sesame.pipeline("fill-mask", "no-such-model")
except OSError as error:
    print(error)
print("done")
