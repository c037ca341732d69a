"""Checks of langchain, ollama and cohere."""
import base64

from checks_openai import openai_client
from client_checks import PROMPT, TEXT, TEXTS, check, equal, expect, f32, need, same_numbers, same_rows


def langchain_embeddings(c, **options):
    m = need("langchain_openai")
    return m.OpenAIEmbeddings(base_url=c.server.url + "/v1", api_key="none", model="sesame-embed", max_retries=0, **options)


@check("langchain-openai", "OpenAIEmbeddings(check_embedding_ctx_length=False)")
def langchain_openai(c):
    e = langchain_embeddings(c, check_embedding_ctx_length=False)
    for got, text in zip(e.embed_documents(TEXTS), TEXTS):
        same_numbers(got, c.cli("embed", "--normalize", text))
    same_numbers(e.embed_query(TEXT), c.cli("embed", "--normalize", TEXT))


@check("langchain-openai", "OpenAIEmbeddings with token ids of tiktoken")
def langchain_openai_ids(c):
    """The client loads tiktoken's vocabulary from the network. If that fails, the check sends such ids itself."""
    openai = need("openai")
    e = langchain_embeddings(c)
    try:
        expect(openai.BadRequestError, lambda: e.embed_query(TEXT), "check_embedding_ctx_length=False")
    except AssertionError as why:
        if "Connection" not in str(why) and "resolve" not in str(why) and "SSL" not in str(why) and "403" not in str(why):
            raise
        o = openai_client(c)
        expect(openai.BadRequestError, lambda: o.embeddings.create(model="sesame-embed", input=[[791, 64304, 11141, 520, 38245, 13]]),
               "check_embedding_ctx_length=False")


@check("langchain-openai", "OpenAI (completions)")
def langchain_openai_llm(c):
    m = need("langchain_openai")
    llm = m.OpenAI(base_url=c.server.url + "/v1", api_key="none", model="sesame-gpt", max_tokens=8, temperature=0, max_retries=0)
    wanted = c.cli("text-generation", "--do-sample=false", "--max-new-tokens", "8", PROMPT)[0]["generated_text"][len(PROMPT):]
    equal(llm.invoke(PROMPT), wanted)
    equal("".join(llm.stream(PROMPT)), wanted)


@check("langchain-huggingface", "HuggingFaceEndpoint")
def langchain_huggingface(c):
    m = need("langchain_huggingface")
    llm = m.HuggingFaceEndpoint(endpoint_url=c.server.url + "/models/sesame-gpt", huggingfacehub_api_token="none", max_new_tokens=8,
                                do_sample=True, seed=3, temperature=0.7, top_k=20, task="text-generation")
    wanted = c.cli("text-generation", "--max-new-tokens", "8", "--do-sample", "--seed", "3", "--top-k", "20", "--temperature", "0.7",
                   "--top-p", "0.95", "--typical-p", "0.95", PROMPT)[0]["generated_text"][len(PROMPT):]
    equal(llm.invoke(PROMPT), wanted)
    equal("".join(llm.stream(PROMPT)), wanted)


@check("langchain-community", "HuggingFaceInferenceAPIEmbeddings")
def langchain_inference_api(c):
    m = need("langchain_community.embeddings")
    e = m.HuggingFaceInferenceAPIEmbeddings(api_key="none", api_url=c.server.url + "/models/sesame-embed")
    for got, text in zip(e.embed_documents(TEXTS), TEXTS):
        same_numbers(got, c.cli("embed", text))


@check("langchain-community", "InfinityEmbeddings")
def langchain_infinity(c):
    m = need("langchain_community.embeddings")
    e = m.InfinityEmbeddings(model="sesame-embed", infinity_api_url=c.server.url)
    for got, text in zip(e.embed_documents(TEXTS), TEXTS):
        same_numbers(got, c.cli("embed", "--normalize", text))


@check("langchain-community", "OllamaEmbeddings")
def langchain_community(c):
    m = need("langchain_community.embeddings")
    e = m.OllamaEmbeddings(base_url=c.server.url, model="sesame-embed", embed_instruction="", query_instruction="")
    same_numbers(e.embed_documents([TEXT])[0], c.cli("embed", "--normalize", TEXT))


# ---- ollama, cohere ----


@check("ollama", "embed")
def ollama_embed(c):
    o = need("ollama").Client(host=c.server.url)
    got = o.embed(model="sesame-embed", input=TEXTS)
    for v, text in zip(got.embeddings, TEXTS):
        same_numbers(v, c.cli("embed", "--normalize", text))
    equal(got.prompt_eval_count > 0, True)
    same_numbers(o.embeddings(model="sesame-embed", prompt=TEXT).embedding, c.cli("embed", "--normalize", TEXT))


@check("ollama", "generate, at once and as a stream")
def ollama_generate(c):
    o = need("ollama").Client(host=c.server.url)
    options = {"num_predict": 12, "temperature": 0}
    wanted = c.cli("text-generation", "--max-new-tokens", "12", "--do-sample=false", "--return-full-text=false", PROMPT)
    got = o.generate(model="sesame-gpt", prompt=PROMPT, options=options)
    equal(got.response, wanted[0]["generated_text"])
    equal((got.done, got.done_reason, got.eval_count), (True, "length", 12))
    parts = list(o.generate(model="sesame-gpt", prompt=PROMPT, options=options, stream=True))
    equal("".join(p.response for p in parts), wanted[0]["generated_text"])
    equal([p.done for p in parts], [False] * (len(parts) - 1) + [True])


@check("ollama", "show, ps")
def ollama_show(c):
    o = need("ollama").Client(host=c.server.url)
    got = o.show("sesame-gpt")
    equal("completion" in got.capabilities and got.modelinfo["general.architecture"], "gpt2")
    equal(o.show("sesame-embed").capabilities, ["embedding"])
    equal("sesame-gpt" in [m.model for m in o.ps().models], True)


@check("ollama", "list, ResponseError")
def ollama_error(c):
    m = need("ollama")
    o = m.Client(host=c.server.url)
    e = expect(m.ResponseError, lambda: o.embed(model="nothing", input=TEXT), "nothing")
    equal(e.status_code, 404)
    equal("sesame-embed" in [x.model for x in o.list().models], True)


def check_rerank(c, got, top):
    wanted = c.cli("rerank", "-m", c.cross, "plums", "He sells plums.", "It rains.", "The keeper eats.")
    equal(len(got.results), top)
    same_rows([{"index": r.index, "score": r.relevance_score} for r in got.results], wanted[:top], ["index", "score"])


@check("cohere", "rerank v1")
def cohere_v1(c):
    o = need("cohere").Client(api_key="none", base_url=c.server.url)
    documents = ["He sells plums.", "It rains.", "The keeper eats."]
    check_rerank(c, o.rerank(model="cross", query="plums", documents=documents), 3)
    got = o.rerank(model="cross", query="plums", documents=[{"text": d} for d in documents], top_n=2, return_documents=True)
    check_rerank(c, got, 2)
    equal(got.results[0].document.text, documents[got.results[0].index])


@check("cohere", "rerank v2")
def cohere_v2(c):
    o = need("cohere").ClientV2(api_key="none", base_url=c.server.url)
    documents = ["He sells plums.", "It rains.", "The keeper eats."]
    check_rerank(c, o.rerank(model="cross", query="plums", documents=documents, top_n=2), 2)
    equal(len(o.rerank(model="cross", query="plums", documents=documents, max_tokens_per_doc=8).results), 3)


@check("cohere", "embed v1, in batches of 96")
def cohere_embed_v1(c):
    o = need("cohere").Client(api_key="none", base_url=c.server.url)
    texts = TEXTS * 40
    got = o.embed(texts=texts, model="sesame-embed", input_type="search_document")
    equal(len(got.embeddings), len(texts))
    for vector, text in zip(got.embeddings[:3], TEXTS):
        same_numbers(vector, c.cli("embed", "--normalize", text))
    got = o.embed(texts=texts, model="sesame-embed", input_type="clustering", embedding_types=["float", "ubinary"])
    equal((len(got.embeddings.float_), len(got.embeddings.ubinary)), (len(texts), len(texts)))


@check("cohere", "embed v2")
def cohere_embed_v2(c):
    import numpy
    o = need("cohere").ClientV2(api_key="none", base_url=c.server.url)
    types = ["float", "base64", "binary", "ubinary"]
    got = o.embed(texts=TEXTS, model="sesame-embed", input_type="search_query", embedding_types=types).embeddings
    for i, text in enumerate(TEXTS):
        wanted = f32(c.cli("embed", "--normalize", text))
        same_numbers(got.float_[i], wanted)
        same_numbers(numpy.frombuffer(base64.b64decode(got.base64[i]), dtype="<f4"), wanted)
        equal(got.ubinary[i], numpy.packbits(wanted > 0).tolist())
        equal(got.binary[i], (numpy.packbits(wanted > 0).astype(int) - 128).tolist())


@check("cohere", "classify")
def cohere_classify(c):
    m = need("cohere")
    o = m.Client(api_key="none", base_url=c.server.url)
    got = o.classify(inputs=["A warm and funny film.", "A dull film."], model="sesame-sentiment")
    wanted = c.cli("text-classification", "--top-k", "all", "A warm and funny film.")
    equal(got.classifications[0].prediction, wanted[0]["label"])
    same_numbers([got.classifications[0].confidence], [wanted[0]["score"]])
    pairs = [("cats purr", "pets"), ("dogs bark", "pets"), ("shares rose", "money"), ("the bank failed", "money")]
    examples = [m.ClassifyExample(text=t, label=x) for t, x in pairs]
    got = o.classify(inputs=["my kitten", "the stock market"], examples=examples, model="sesame-embed")
    equal([x.prediction for x in got.classifications], ["pets", "money"])
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        return
    x = [c.cli("embed", "--normalize", t) for t, _ in pairs]
    y = LogisticRegression(tol=1e-9, max_iter=1000).fit(x, [k for _, k in pairs])
    wanted = y.predict_proba([c.cli("embed", "--normalize", "my kitten")])[0]
    got = got.classifications[0].labels
    same_numbers([got[k].confidence for k in y.classes_], wanted, "probabilities", 1e-5)


@check("cohere", "NotFoundError, BadRequestError")
def cohere_errors(c):
    m = need("cohere")
    o = m.ClientV2(api_key="none", base_url=c.server.url)
    expect(m.NotFoundError, lambda: o.rerank(model="nothing", query="a", documents=["b"]))
    expect(m.BadRequestError, lambda: o.rerank(model="cross", query="a", documents=[]))
