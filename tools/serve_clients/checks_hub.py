"""Checks of huggingface_hub."""
from client_checks import PROMPT, TEXT, OTHER, check, equal, expect, f32, need, normalized, same_numbers, same_rows


CONTEXT = "The ferry to the island leaves at noon from the east pier. Tickets cost four coins."
WORDS = "the cat sat on the red mat and the dog ran"
SAMPLE = {"do_sample": True, "seed": 4, "max_new_tokens": 8, "min_new_tokens": 5}


def hub(c, model=None, **options):
    """The client for a model, by its address."""
    url = c.server.url + (f"/models/{model}" if model else "")
    return need("huggingface_hub").InferenceClient(model=url, **options)


@check("huggingface_hub", "fill_mask")
def hub_fill_mask(c):
    text = "The [MASK] sat on a chair."
    keys = ["score", "token", "token_str", "sequence"]
    same_rows(hub(c, "sesame-small").fill_mask(text), c.cli("fill-mask", text), keys)
    same_rows(hub(c, "sesame-small").fill_mask(text, top_k=2), c.cli("fill-mask", "-k", "2", text), keys)
    same_rows(hub(c, "sesame-small").fill_mask(text, targets=["man", "dog"]), c.cli("fill-mask", "--targets", "man,dog", text), keys)


@check("huggingface_hub", "text_classification")
def hub_text_classification(c):
    text = "A warm and funny film."
    wanted = c.cli("text-classification", "--top-k", "all", text)
    same_rows(hub(c, "sesame-sentiment").text_classification(text), wanted, ["label", "score"])
    same_rows(hub(c, "sesame-sentiment").text_classification(text, top_k=1), wanted[:1], ["label", "score"])
    got = hub(c, "sesame-sentiment").text_classification(text, function_to_apply="none")
    same_rows(got, c.cli("text-classification", "--top-k", "all", "--function-to-apply", "none", text), ["label", "score"])


@check("huggingface_hub", "token_classification")
def hub_token_classification(c):
    text = "Anna Smith met John in Paris."
    keys = ["entity_group", "score", "word", "start", "end"]
    wanted = c.cli("token-classification", "--aggregation-strategy", "simple", text)
    same_rows(hub(c, "sesame-ner").token_classification(text), wanted, keys)
    got = hub(c, "sesame-ner").token_classification(text, aggregation_strategy="max")
    same_rows(got, c.cli("token-classification", "--aggregation-strategy", "max", text), keys)
    got = hub(c, "sesame-ner").token_classification(text, aggregation_strategy="none")
    same_rows(got, c.cli("token-classification", text), ["entity", "score", "word", "start", "end"])


@check("huggingface_hub", "question_answering")
def hub_question_answering(c):
    question = "When does the ferry leave?"
    keys = ["answer", "score", "start", "end"]
    got = hub(c, "sesame-qa").question_answering(question=question, context=CONTEXT)
    same_rows([got], [c.cli("question-answering", question, CONTEXT)], keys)
    got = hub(c, "sesame-qa").question_answering(question=question, context=CONTEXT, top_k=2)
    same_rows(got, c.cli("question-answering", "-k", "2", question, CONTEXT), keys)


@check("huggingface_hub", "zero_shot_classification")
def hub_zero_shot(c):
    labels = ["travel", "cooking", "sport"]
    for options, multi in (([], False), (["--multi-label"], True)):
        got = hub(c, "sesame-nli").zero_shot_classification(TEXT, labels, multi_label=multi)
        wanted = c.cli("zero-shot-classification", "--candidate-labels", ",".join(labels), *options, TEXT)
        same_rows(got, [{"label": a, "score": b} for a, b in zip(wanted["labels"], wanted["scores"])], ["label", "score"])
    got = hub(c, "sesame-nli").zero_shot_classification(TEXT, labels, hypothesis_template="This is about {}.")
    wanted = c.cli("zero-shot-classification", "--candidate-labels", ",".join(labels), "--hypothesis-template",
                   "This is about {}.", TEXT)
    same_rows(got, [{"label": a, "score": b} for a, b in zip(wanted["labels"], wanted["scores"])], ["label", "score"])


@check("huggingface_hub", "feature_extraction")
def hub_feature_extraction(c):
    got = hub(c, "sesame-embed").feature_extraction(TEXT)
    same_numbers(got, c.cli("embed", TEXT))
    got = hub(c, "sesame-embed").feature_extraction(TEXT, normalize=True, truncate=True)
    same_numbers(f32(got).reshape(-1), c.cli("embed", "--normalize", TEXT))
    got = hub(c, "sesame-embed").feature_extraction(TEXT, normalize=True, dimensions=32, truncation_direction="left")
    same_numbers(f32(got).reshape(-1), normalized(c.cli("embed", TEXT)[:32]), "dimensions", 1e-5)
    got = hub(c, "sesame-embed").feature_extraction([TEXT, OTHER])
    same_numbers(got, [c.cli("embed", TEXT), c.cli("embed", OTHER)])
    got = hub(c, "sesame-small/pipeline/feature-extraction").feature_extraction(TEXT)
    same_numbers(f32(got).reshape(-1), f32(c.cli("feature-extraction", "-m", "sesame-small", TEXT)).reshape(-1))


@check("huggingface_hub", "feature_extraction of the server's address")
def hub_feature_extraction_root(c):
    got = hub(c).feature_extraction(TEXT)  # the first model, in the shape of text-embeddings-inference
    same_numbers(f32(got).reshape(-1), c.cli("embed", "--normalize", TEXT))


@check("huggingface_hub", "sentence_similarity")
def hub_sentence_similarity(c):
    got = hub(c, "sesame-embed").sentence_similarity(TEXT, other_sentences=[OTHER, PROMPT])
    same_numbers(got, c.cli("similarity", TEXT, OTHER, PROMPT))


@check("huggingface_hub", "summarization")
def hub_summarization(c):
    got = hub(c, "t5/pipeline/summarization").summarization(WORDS, generate_parameters=SAMPLE)
    wanted = c.cli("summarization", "-m", c.seq2seq, "--do-sample", "--seed", "4", "--max-new-tokens", "8", "--min-new-tokens", "5", WORDS)
    equal(got.summary_text, wanted[0]["summary_text"])
    equal(len(got.summary_text) > 0, True)


@check("huggingface_hub", "translation")
def hub_translation(c):
    got = hub(c, "t5/pipeline/translation").translation(WORDS, generate_parameters=SAMPLE)
    wanted = c.cli("translation", "-m", c.seq2seq, "--do-sample", "--seed", "4", "--max-new-tokens", "8", "--min-new-tokens", "5", WORDS)
    equal(got.translation_text, wanted[0]["translation_text"])


@check("huggingface_hub", "text_generation")
def hub_text_generation(c):
    h = hub(c, "sesame-gpt")
    wanted = c.cli("text-generation", "--max-new-tokens", "10", PROMPT)[0]["generated_text"]
    equal(h.text_generation(PROMPT, max_new_tokens=10), wanted[len(PROMPT):])
    equal(h.text_generation(PROMPT, max_new_tokens=10, return_full_text=True), wanted)
    wanted = c.cli("text-generation", "--max-new-tokens", "10", "--do-sample", "--seed", "3", "--top-k", "20", "--temperature", "0.7",
                   PROMPT)[0]["generated_text"]
    equal(h.text_generation(PROMPT, max_new_tokens=10, do_sample=True, seed=3, top_k=20, temperature=0.7), wanted[len(PROMPT):])


@check("huggingface_hub", "text_generation, stop")
def hub_text_generation_stop(c):
    h = hub(c, "sesame-gpt")
    whole = h.text_generation(PROMPT, max_new_tokens=40)
    stop = whole.split()[3]
    got = h.text_generation(PROMPT, max_new_tokens=40, stop=[stop])
    equal(whole.startswith(got) and stop not in got, True, got)
    equal("".join(h.text_generation(PROMPT, max_new_tokens=40, stop=[stop], stream=True)), got)
    last = list(h.text_generation(PROMPT, max_new_tokens=40, stop=[stop], stream=True, details=True))[-1]
    equal(last.generated_text, got)
    equal(last.details.finish_reason, "stop_sequence")


@check("huggingface_hub", "text_generation, details")
def hub_text_generation_details(c):
    h = hub(c, "sesame-gpt")
    got = h.text_generation(PROMPT, max_new_tokens=6, details=True)
    equal(got.generated_text, h.text_generation(PROMPT, max_new_tokens=6))
    equal(got.details.finish_reason, "length")
    equal(got.details.generated_tokens, 6)
    equal("".join(t.text for t in got.details.tokens), got.generated_text)
    equal(all(t.logprob < 0 and t.id >= 0 and t.special is False for t in got.details.tokens), True)


@check("huggingface_hub", "text_generation, stream")
def hub_text_generation_stream(c):
    h = hub(c, "sesame-gpt")
    whole = h.text_generation(PROMPT, max_new_tokens=12, details=True)
    equal("".join(h.text_generation(PROMPT, max_new_tokens=12, stream=True)), whole.generated_text)
    got = list(h.text_generation(PROMPT, max_new_tokens=12, stream=True, details=True))
    equal("".join(x.token.text for x in got), whole.generated_text)
    equal([x.generated_text for x in got[:-1]], [None] * (len(got) - 1))
    equal(got[-1].generated_text, whole.generated_text)
    equal(got[-1].details.finish_reason, "length")
    equal(got[-1].details.generated_tokens, 12)
    equal([x.token.id for x in got], [t.id for t in whole.details.tokens])
    same_numbers([x.token.logprob for x in got], [t.logprob for t in whole.details.tokens])


@check("huggingface_hub", "errors")
def hub_errors(c):
    errors = need("huggingface_hub.errors")
    expect(errors.HfHubHTTPError, lambda: hub(c, "nothing").fill_mask("a [MASK]"), "404")
    expect(errors.HfHubHTTPError, lambda: hub(c, "sesame-small").fill_mask("no mask"), "mask")


@check("huggingface_hub", "AsyncInferenceClient")
def hub_async(c):
    import asyncio
    client = need("huggingface_hub").AsyncInferenceClient(model=c.server.url + "/models/sesame-gpt")

    async def run():
        stream = await client.text_generation(PROMPT, max_new_tokens=8, stream=True)
        return "".join([x async for x in stream])
    equal(asyncio.run(run()), hub(c, "sesame-gpt").text_generation(PROMPT, max_new_tokens=8))
