"""Checks of the openai package."""
from client_checks import PROMPT, TEXT, TEXTS, check, equal, expect, need, normalized, same_numbers


def openai_client(c, server=None, key="none", **options):
    return need("openai").OpenAI(base_url=(server or c.server).url + "/v1", api_key=key, max_retries=0, **options)


@check("openai", "models")
def openai_models(c):
    o = openai_client(c)
    ids = [m.id for m in o.models.list()]
    equal(ids[0], "sesame-embed")
    equal("cross" in ids and "t5" in ids, True)
    equal(o.models.retrieve("sesame-gpt").id, "sesame-gpt")


@check("openai", "embeddings, default (base64)")
def openai_embeddings_base64(c):
    got = openai_client(c).embeddings.create(model="sesame-embed", input=TEXTS)
    for i, text in enumerate(TEXTS):
        same_numbers(got.data[i].embedding, c.cli("embed", "--normalize", text))
    equal([d.index for d in got.data], [0, 1, 2])
    equal(got.usage.prompt_tokens > 0 and got.usage.total_tokens == got.usage.prompt_tokens, True)


@check("openai", "embeddings, float")
def openai_embeddings_float(c):
    got = openai_client(c).embeddings.create(model="sesame-embed", input=TEXT, encoding_format="float")
    same_numbers(got.data[0].embedding, c.cli("embed", "--normalize", TEXT))
    got = openai_client(c).embeddings.create(model="sesame-embed", input=TEXT, extra_body={"normalize": False})
    same_numbers(got.data[0].embedding, c.cli("embed", TEXT))


@check("openai", "embeddings, dimensions")
def openai_embeddings_dimensions(c):
    got = openai_client(c).embeddings.create(model="sesame-embed", input=TEXT, dimensions=64)
    equal(len(got.data[0].embedding), 64)
    same_numbers([sum(x * x for x in got.data[0].embedding)], [1], "length", 1e-5)
    same_numbers(got.data[0].embedding, normalized(c.cli("embed", TEXT)[:64]), "values", 1e-5)


@check("openai", "completions")
def openai_completions(c):
    o = openai_client(c)
    got = o.completions.create(model="sesame-gpt", prompt=PROMPT, max_tokens=12, temperature=0)
    wanted = c.cli("text-generation", "--max-new-tokens", "12", "--do-sample=false", "--return-full-text=false", PROMPT)
    equal(got.choices[0].text, wanted[0]["generated_text"])
    equal(got.choices[0].finish_reason, "length")
    equal(got.usage.completion_tokens, 12)


@check("openai", "completions, stream")
def openai_completions_stream(c):
    o = openai_client(c)
    whole = o.completions.create(model="sesame-gpt", prompt=PROMPT, max_tokens=12, temperature=0)
    chunks = list(o.completions.create(model="sesame-gpt", prompt=PROMPT, max_tokens=12, temperature=0, stream=True,
                                       stream_options={"include_usage": True}))
    equal("".join(x.choices[0].text for x in chunks if x.choices), whole.choices[0].text)
    equal([x.choices[0].finish_reason for x in chunks if x.choices][-1], "length")
    equal(chunks[-1].choices, [])
    equal(chunks[-1].usage.completion_tokens, 12)


@check("openai", "completions, stream with logprobs")
def openai_completions_stream_logprobs(c):
    o = openai_client(c)
    whole = o.completions.create(model="sesame-gpt", prompt=PROMPT, max_tokens=6, temperature=0, logprobs=2)
    chunks = list(o.completions.create(model="sesame-gpt", prompt=PROMPT, max_tokens=6, temperature=0, logprobs=2, stream=True))
    lists = [x.choices[0].logprobs for x in chunks if x.choices and x.choices[0].logprobs]
    equal([t for x in lists for t in x.tokens], whole.choices[0].logprobs.tokens)
    same_numbers([t for x in lists for t in x.token_logprobs], whole.choices[0].logprobs.token_logprobs)


@check("openai", "completions, logprobs and echo")
def openai_completions_logprobs(c):
    got = openai_client(c).completions.create(model="sesame-gpt", prompt=PROMPT, max_tokens=3, temperature=0, logprobs=2, echo=True)
    p = got.choices[0].logprobs
    equal("".join(p.tokens).endswith(got.choices[0].text[len(PROMPT):]), True)
    equal(p.token_logprobs[0], None)
    equal(len(p.token_logprobs) == len(p.tokens) == len(p.top_logprobs) == len(p.text_offset), True)
    equal(all(x <= 0 for x in p.token_logprobs[1:]), True)
    equal(all(1 <= len(x) <= 3 for x in p.top_logprobs[1:]), True)


@check("openai", "completions, n, seed, stop")
def openai_completions_n(c):
    o = openai_client(c)
    a, b = (o.completions.create(model="sesame-gpt", prompt=[PROMPT, TEXT], max_tokens=8, temperature=1, n=2, seed=5) for _ in "12")
    equal([x.text for x in a.choices], [x.text for x in b.choices], "the same seed")
    equal([x.index for x in a.choices], [0, 1, 2, 3])
    got = o.completions.create(model="sesame-gpt", prompt=PROMPT, max_tokens=40, temperature=0, stop=[",", "."])
    equal(any(x in got.choices[0].text for x in ",."), False)
    equal(got.choices[0].finish_reason, "stop")


@check("openai", "NotFoundError")
def openai_not_found(c):
    openai = need("openai")
    o = openai_client(c)
    e = expect(openai.NotFoundError, lambda: o.embeddings.create(model="nothing", input=TEXT), "nothing")
    equal(e.code, "model_not_found")
    expect(openai.NotFoundError, lambda: o.chat.completions.create(model="sesame-gpt", messages=[]), "no route")


@check("openai", "BadRequestError")
def openai_bad_request(c):
    openai = need("openai")
    o = openai_client(c)
    e = expect(openai.BadRequestError, lambda: o.embeddings.create(model="sesame-embed", input=[]), "empty")
    equal(e.param, "input")
    expect(openai.BadRequestError, lambda: o.embeddings.create(model="sesame-embed", input=TEXT, dimensions=-1))
    expect(openai.BadRequestError, lambda: o.completions.create(model="sesame-gpt", prompt=TEXT, max_tokens=10**8))
    expect(openai.BadRequestError, lambda: o.completions.create(model="sesame-ner", prompt=TEXT))


@check("openai", "AuthenticationError")
def openai_authentication(c):
    openai = need("openai")
    o = openai_client(c, c.small, "wrong")
    expect(openai.AuthenticationError, lambda: o.embeddings.create(model="sesame-embed", input=TEXT), "API key")
    expect(openai.AuthenticationError, lambda: list(o.models.list()), "API key")
    got = openai_client(c, c.small, c.key).embeddings.create(model="sesame-embed", input=TEXT)
    same_numbers(got.data[0].embedding, c.cli("embed", "--normalize", TEXT))


@check("openai", "RateLimitError, and a retry")
def openai_rate_limit(c):
    openai = need("openai")
    o = openai_client(c, c.small, c.key)
    first = o.completions.create(model="sesame-gpt", prompt=PROMPT, max_tokens=120, stream=True)
    chunks = iter(first)
    next(chunks)  # the server generates now, and admits one input at a time
    rejected = 0
    for _ in range(20):
        try:
            o.completions.create(model="sesame-gpt", prompt=PROMPT, max_tokens=1)
        except openai.RateLimitError as e:
            rejected += 1
            equal(int(e.response.headers["retry-after"]) >= 1, True, "Retry-After")
    equal(rejected > 0, True, "rejected requests")
    patient = o.with_options(max_retries=20)
    equal(patient.completions.create(model="sesame-gpt", prompt=PROMPT, max_tokens=2).usage.completion_tokens, 2)
    equal(len(list(chunks)) > 0, True)


@check("openai", "disconnection ends a stream")
def openai_disconnect(c):
    o = openai_client(c)
    stream = o.completions.create(model="sesame-gpt", prompt=PROMPT, max_tokens=400, stream=True)
    next(iter(stream))
    stream.close()
    equal(len(o.embeddings.create(model="sesame-embed", input=TEXT).data), 1)
