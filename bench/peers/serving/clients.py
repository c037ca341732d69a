"""Programs as the documentation of each client shows them, with only the address changed: openai, cohere, ollama, huggingface_hub,
langchain-openai and litellm against `sesame serve`, which answers to the names of other models. tools/serve-clients compares the values.

Usage: clients.py [SESAME]   (run by a Python that has the clients; exit code 1 if a client fails or is not installed)"""
import importlib.util
import os
import re
import subprocess
import sys
import threading

ALIASES = {"text-embedding-3-small": "sesame-embed", "text-embedding-ada-002": "sesame-embed", "embed-v4.0": "sesame-embed",
           "rerank-v3.5": "sesame-embed", "gpt-3.5-turbo-instruct": "sesame-gpt", "llama3.2": "sesame-gpt",
           "nomic-embed-text": "sesame-embed"}
TEXTS = ["The ferry leaves at noon.", "The boat departs at twelve.", "She baked a loaf of bread."]


def find_vocabulary():
    """The vocabulary of tiktoken that litellm brings along."""
    spec = importlib.util.find_spec("litellm")
    name = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
    path = os.path.join(os.path.dirname(spec.origin), "litellm_core_utils", "tokenizers", name) if spec else ""
    return path if os.path.exists(path) else None


def start(sesame, vocabulary):
    words = [sesame, "serve", "--port", "0"] + (["--tiktoken", vocabulary] if vocabulary else [])
    for name, model in ALIASES.items():
        words += ["--alias", f"{name}={model}"]
    server = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        found = re.search(r"ready .*(http://\S+)$", line.strip())
        if found:
            threading.Thread(target=server.stderr.read, daemon=True).start()
            return server, found.group(1)
    sys.exit(f"clients.py: the server ended with {server.wait()}")


def closest(vectors):
    """The text nearest to the first one."""
    score = [sum(a * b for a, b in zip(vectors[0], v)) for v in vectors]
    return score.index(max(score[1:]))


def use_openai(url):
    from openai import OpenAI
    client = OpenAI(base_url=url + "/v1", api_key="none")
    assert closest([d.embedding for d in client.embeddings.create(model="text-embedding-3-small", input=TEXTS).data]) == 1
    done = client.completions.create(model="gpt-3.5-turbo-instruct", prompt="The old man", max_tokens=8)
    assert done.choices[0].text
    parts = client.completions.create(model="gpt-3.5-turbo-instruct", prompt="The old man", max_tokens=8, stream=True)
    assert "".join(p.choices[0].text for p in parts)


def use_cohere(url):
    import cohere
    co = cohere.ClientV2(api_key="none", base_url=url)
    got = co.embed(texts=TEXTS, model="embed-v4.0", input_type="search_document", embedding_types=["float"])
    assert closest(got.embeddings.float_) == 1
    assert co.rerank(model="rerank-v3.5", query=TEXTS[0], documents=TEXTS[1:], top_n=1).results[0].index == 0
    old = cohere.Client(api_key="none", base_url=url)
    assert old.classify(inputs=["A warm, funny film."]).classifications[0].prediction == "positive"
    assert closest(old.embed(texts=TEXTS, model="embed-v4.0", input_type="clustering").embeddings) == 1


def use_ollama(url):
    import ollama
    client = ollama.Client(host=url)
    assert closest(client.embed(model="nomic-embed-text", input=TEXTS).embeddings) == 1
    assert client.generate(model="llama3.2", prompt="The old man", options={"num_predict": 8}).response
    assert "".join(p.response for p in client.generate(model="llama3.2", prompt="The old man", stream=True))
    assert client.show("llama3.2").details.family == "gpt2" and client.ps().models


def use_huggingface_hub(url):
    from huggingface_hub import InferenceClient
    ner = InferenceClient(model=url + "/models/sesame-ner")
    assert "paris" in [e.word.lower() for e in ner.token_classification("Anna Smith met John in Paris.")]
    assert InferenceClient(model=url + "/models/sesame-embed").feature_extraction(TEXTS).shape[0] == 3
    assert InferenceClient(model=url + "/models/sesame-gpt").text_generation("The old man", max_new_tokens=8)


def use_langchain_openai(url):
    from langchain_openai import OpenAIEmbeddings
    os.environ.update(OPENAI_API_KEY="none", OPENAI_BASE_URL=url + "/v1")
    vectors = OpenAIEmbeddings().embed_documents(TEXTS)  # sends token ids
    assert closest(vectors) == 1
    plain = OpenAIEmbeddings(check_embedding_ctx_length=False).embed_documents(TEXTS)
    assert all(abs(a - b) < 1e-6 for v, w in zip(vectors, plain) for a, b in zip(v, w))
    assert len(OpenAIEmbeddings().embed_query("word " * 9000)) == len(plain[0])


def use_litellm(url):
    import litellm
    got = litellm.embedding(model="openai/text-embedding-3-small", input=TEXTS, api_base=url + "/v1", api_key="none")
    assert closest([d["embedding"] for d in got.data]) == 1
    done = litellm.text_completion(model="text-completion-openai/gpt-3.5-turbo-instruct", prompt="The old man", max_tokens=8,
                                   api_base=url + "/v1", api_key="none")
    assert done.choices[0].text
    got = litellm.rerank(model="cohere/rerank-v3.5", query=TEXTS[0], documents=TEXTS[1:], top_n=1, api_base=url, api_key="none")
    assert got.results[0]["index"] == 0


def main():
    sesame = sys.argv[1] if len(sys.argv) > 1 else "build/sesame"
    vocabulary = find_vocabulary()
    if vocabulary:
        os.environ["TIKTOKEN_CACHE_DIR"] = os.path.dirname(vocabulary)
    server, url = start(sesame, vocabulary)
    failed = 0
    try:
        for name in ("openai", "cohere", "ollama", "huggingface_hub", "langchain_openai", "litellm"):
            state = "ok"
            try:
                if not importlib.util.find_spec(name):
                    state = "not installed"
                else:
                    globals()["use_" + name](url)
            except Exception as error:  # the next client can still run
                state = f"FAILED: {type(error).__name__}: {str(error)[:300]}"
            failed += state != "ok"
            print(f"{name:18} {state}", flush=True)
    finally:
        server.terminate()
    return 1 if failed or server.wait(60) else 0


if __name__ == "__main__":
    sys.exit(main())
