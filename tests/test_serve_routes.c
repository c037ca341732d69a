/* Every route with valid input: the exact structure of responses, formats of vectors, options. */
#define _GNU_SOURCE
#include "base/base64.h"
#include "serve/route.h"
#include "serve_fixture.h"

static const char *models[16];

static ses_server_options options(void)
{
    static char encoder[300], rewriter[300];
    snprintf(encoder, sizeof encoder, "encoder=%s", tmp_path("encoder"));
    snprintf(rewriter, sizeof rewriter, "rewriter=%s", tmp_path("rewriter"));
    size_t n = 0;
    models[n++] = encoder;
    models[n++] = "mask=tests/pipelines/bert-mask";
    models[n++] = "label=tests/pipelines/bert-label";
    models[n++] = "multi=tests/pipelines/roberta-multi";
    models[n++] = "tag=tests/pipelines/bert-tag";
    models[n++] = "qa=tests/pipelines/bert-qa";
    models[n++] = "score=tests/pipelines/bert-score";
    models[n++] = "org/choice=tests/pipelines/bert-choice";
    models[n++] = "sesame-gpt";
    models[n++] = rewriter;
    return (ses_server_options){ .models = models, .n_models = n, .token_ids = true, .admin = true };
}

/* ---- structures ---- */

#define USAGE "usage:{prompt_tokens:n,total_tokens:n}"
#define EMBEDDINGS "{object:s,data:[{object:s,index:n,embedding:[n]}],model:s," USAGE "}"
#define MODEL                                                                                        \
    "{id:s,object:s,created:n,owned_by:s,task:s,tasks:[s],architecture:s,model_type:s,parameters:n," \
    "dtype:s,n_layers:n,max_input_tokens:n,vocab_size:n"
#define META "meta:{billed_units:{input_tokens:n}}"
#define COHERE "{id:s,model:s,results:[{index:n,relevance_score:n}]," USAGE "," META "}"
#define VERSIONED "meta:{api_version:{version:s},billed_units:{input_tokens:n}}"
#define FOUR(x) "LABEL_2:" x ",LABEL_0:" x ",LABEL_3:" x ",LABEL_1:" x
#define DETAILS \
    "details:{parent_model:s,format:s,family:s,families:[s],parameter_size:s,quantization_level:s}"
#define SCORES "{object:s,model:s,data:[{index:n,object:s,score:n}]," USAGE "}"
#define COMPLETION                                                                                   \
    "{id:s,object:s,created:n,model:s,choices:[{index:n,text:s,logprobs:0,finish_reason:s}],usage:{" \
    "prompt_tokens:n,completion_tokens:n,total_tokens:n}}"

static const struct {
    const char *path, *body, *shape; /* body NULL: GET; shape NULL: not JSON */
} cases[] = {
    { "/", NULL, NULL },
    { "/ui/app.js", NULL, NULL },
    { "/docs", NULL, NULL },
    { "/", "{\"inputs\":\"plums\"}", "[[n]]" },
    { "/v1/models/encoder", NULL, MODEL ",dimensions:n,mask_token:s}" },
    { "/v1/models/label", NULL, MODEL ",labels:[s],mask_token:s}" },
    { "/v1/models/org/choice", NULL, MODEL ",mask_token:s}" },
    { "/v1/embeddings", "{\"input\":\"plums\"}", EMBEDDINGS },
    { "/v1/embeddings", "{\"input\":[\"plums\",\"a bell\"],\"model\":\"mask\",\"user\":\"u\"}", EMBEDDINGS },
    { "/embeddings", "{\"input\":[\"plums\"],\"encoding_format\":\"float\"}", EMBEDDINGS },
    { "/v1/embeddings", "{\"input\":\"plums\",\"encoding_format\":\"base64\"}",
      "{object:s,data:[{object:s,index:n,embedding:s}],model:s," USAGE "}" },
    { "/embed", "{\"inputs\":\"plums\"}", "[[n]]" },
    { "/embed", "{\"inputs\":[\"plums\",\"a bell\"]}", "[[n]]" },
    { "/v1/embed", "{\"texts\":[\"plums\"]}",
      "{id:s,response_type:s,embeddings:[[n]],texts:[s]," VERSIONED "}" },
    { "/v2/embed", "{\"texts\":[\"plums\"]}",
      "{id:s,response_type:s,embeddings:{float:[[n]]},texts:[s]," VERSIONED "}" },
    { "/v1/classify", "{\"inputs\":[\"plums\"]}",
      "{id:s,classifications:[{id:s,input:s,prediction:s,confidence:n,predictions:[s],confidences:[n],labels:"
      "{"
      "entailment:{confidence:n},contradiction:{confidence:n},neutral:{confidence:n}},classification_type:s}]"
      "," VERSIONED "}" },
    { "/v1/moderations", "{\"input\":\"plums\"}",
      "{id:s,model:s,results:[{flagged:b,categories:{" FOUR("b") "},category_scores:{" FOUR(
          "n") "},category_applied_input_types:{" FOUR("[s]") "}}"
                                                              "]}" },
    { "/embed_all", "{\"inputs\":\"plums\"}", "[[[n]]]" },
    { "/embed_sparse", "{\"inputs\":\"plums\"}", "[[{index:n,value:n}]]" },
    { "/predict", "{\"inputs\":\"plums\"}", "[{score:n,label:s}]" },
    { "/predict", "{\"inputs\":[\"plums\",\"a bell\"]}", "[{score:n,label:s}]" },
    { "/predict", "{\"inputs\":[[\"plums\"],[\"plums\",\"a bell\"]]}", "[[{score:n,label:s}]]" },
    { "/classify", "{\"input\":[\"plums\",\"a bell\"]}",
      "{object:s,model:s,data:[{index:n,label:s,probs:[n],num_classes:n}]," USAGE "}" },
    { "/rerank", "{\"query\":\"plums\",\"texts\":[\"It rains.\",\"plums\"]}", "[{index:n,score:n}]" },
    { "/rerank", "{\"query\":\"plums\",\"texts\":[\"It rains.\"],\"return_text\":true}",
      "[{index:n,text:s,score:n}]" },
    { "/rerank", "{\"query\":\"plums\",\"documents\":[\"It rains.\",{\"text\":\"plums\"}]}", COHERE },
    { "/v1/rerank", "{\"query\":\"plums\",\"documents\":[\"It rains.\",\"plums\"],\"model\":\"score\"}",
      COHERE },
    { "/v2/rerank", "{\"query\":\"plums\",\"documents\":[\"It rains.\"],\"return_documents\":true}",
      "{id:s,model:s,results:[{index:n,relevance_score:n,document:{text:s}}]," USAGE "," META "}" },
    { "/score", "{\"queries\":\"plums\",\"documents\":[\"It rains.\",\"plums\"]}", SCORES },
    { "/v1/score", "{\"text_1\":[\"plums\",\"a\"],\"text_2\":[\"It rains.\",\"plums\"]}", SCORES },
    { "/similarity", "{\"inputs\":{\"source_sentence\":\"plums\",\"sentences\":[\"a\",\"b\"]}}", "[n]" },
    { "/tokenize", "{\"inputs\":\"plums\",\"add_special_tokens\":false}",
      "[[{id:n,text:s,special:b,start:n,stop:n,token:s}]]" },
    { "/tokenize", "{\"content\":\"plums\"}", "{tokens:[n]}" },
    { "/tokenize", "{\"content\":\"plums\",\"with_pieces\":true}", "{tokens:[{id:n,piece:s}]}" },
    { "/decode", "{\"ids\":[62,124]}", "[s]" },
    { "/decode", "{\"ids\":[[62,124],[113]]}", "[s]" },
    { "/detokenize", "{\"tokens\":[62,124]}", "{content:s}" },
    { "/api/embed", "{\"input\":[\"plums\",\"a\"],\"model\":\"encoder\"}",
      "{model:s,embeddings:[[n]],total_duration:n,load_duration:n,prompt_eval_count:n}" },
    { "/api/embeddings", "{\"prompt\":\"plums\"}", "{embedding:[n]}" },
    { "/api/tags", NULL, "{models:[{name:s,model:s,modified_at:s,size:n," DETAILS "}]}" },
    { "/api/version", NULL, "{version:s}" },
    { "/models/encoder", "{\"inputs\":\"plums\"}", "[n]" },
    { "/models/encoder/pipeline/feature-extraction", "{\"inputs\":[\"plums\",\"a\"]}", "[[n]]" },
    { "/models/encoder/pipeline/sentence-similarity",
      "{\"inputs\":{\"source_sentence\":\"plums\",\"sentences\":[\"a\",\"b\"]}}", "[n]" },
    { "/models/encoder", "{\"inputs\":{\"source_sentence\":\"plums\",\"sentences\":[\"a\"]}}", "[n]" },
    { "/models/encoder", "{\"inputs\":\"a\",\"normalize\":true,\"dimensions\":4}", "[n]" },
    { "/models/label", "{\"inputs\":\"plums\",\"parameters\":{\"candidate_labels\":[\"a\",\"b\"]}}",
      "[{label:s,score:n}]" },
    { "/models/mask", "{\"inputs\":\"The [MASK] rings.\"}", "[{score:n,token:n,token_str:s,sequence:s}]" },
    { "/models/mask/pipeline/fill-mask", "{\"inputs\":[\"The [MASK] rings.\",\"a [MASK]\"]}",
      "[[{score:n,token:n,token_str:s,sequence:s}]]" },
    { "/models/label", "{\"inputs\":\"plums\"}", "[[{label:s,score:n}]]" },
    { "/models/label", "{\"inputs\":[\"plums\",\"a\"],\"parameters\":{\"top_k\":1}}",
      "[[{label:s,score:n}]]" },
    { "/models/label/pipeline/zero-shot-classification",
      "{\"inputs\":\"plums\",\"parameters\":{\"candidate_labels\":[\"a\",\"b\"],\"multi_label\":true}}",
      "[{label:s,score:n}]" },
    { "/models/tag", "{\"inputs\":\"The bell rings in the lighthouse.\"}",
      "[{entity_group:s,score:n,word:s,start:n,end:n}]" },
    { "/models/tag", "{\"inputs\":\"The bell rings.\",\"parameters\":{\"aggregation_strategy\":\"none\"}}",
      "[{entity:s,score:n,index:n,word:s,start:n,end:n}]" },
    { "/models/qa", "{\"inputs\":{\"question\":\"Who?\",\"context\":\"The keeper eats plums.\"}}",
      "{score:n,start:n,end:n,answer:s}" },
    { "/models/rewriter/pipeline/summarization", "{\"inputs\":\"w5 w6 w7\"}", "[{summary_text:s}]" },
    { "/models/rewriter/pipeline/translation", "{\"inputs\":\"w5 w6 w7\"}", "[{translation_text:s}]" },
    { "/models/sesame-gpt", "{\"inputs\":\"The\",\"parameters\":{\"max_new_tokens\":3}}",
      "[{generated_text:s}]" },
    { "/models/sesame-gpt", "{\"inputs\":\"The\",\"parameters\":{\"max_new_tokens\":3,\"details\":true}}",
      "[{generated_text:s,details:{finish_reason:s,generated_tokens:n,seed:n,prefill:[],tokens:[{id:n,text:s,"
      "logprob:n,special:b}]}}]" },
    { "/v1/completions", "{\"prompt\":\"The\",\"max_tokens\":3}", COMPLETION },
    { "/v1/completions", "{\"prompt\":[\"The\",\"A\"],\"max_tokens\":2,\"n\":2,\"seed\":1}", COMPLETION },
    { "/v1/completions", "{\"prompt\":\"The\",\"max_tokens\":2,\"logprobs\":0,\"temperature\":0}",
      "{id:s,object:s,created:n,model:s,choices:[{index:n,text:s,logprobs:{tokens:[s],token_logprobs:[n],"
      "top_logprobs:[0],text_offset:[n]},finish_reason:s}],usage:{prompt_tokens:n,completion_tokens:n,"
      "total_tokens:n}}" },
    { "/api/generate", "{\"prompt\":\"The\",\"stream\":false,\"options\":{\"num_predict\":1}}",
      "{model:s,created_at:s,response:s,done:b,done_reason:s,context:[],total_duration:n,load_duration:n,"
      "prompt_eval_count:n,prompt_eval_duration:n,eval_count:n,eval_duration:n}" },
    { "/api/show", "{\"model\":\"label\"}",
      "{modelfile:s,parameters:s,template:s," DETAILS
      ",model_info:{general.architecture:s,general.parameter_count:n,"
      "bert.block_count:n,bert.vocab_size:n,bert.context_length:n},capabilities:[s],modified_at:s}" },
    { "/api/ps", NULL, "{models:[{name:s,model:s,size:n,size_vram:n," DETAILS "}]}" },
    { "/map", "{\"vectors\":[[1,2],[2,1],[0,5],[3,3]],\"nearest\":2}",
      "{method:s,points:[[n]],nearest:[[{index:n,similarity:n}]],explained:n,perplexity:0,trustworthiness:"
      "n}" },
    { "/attention", "{\"inputs\":\"plums\",\"model\":\"mask\"}",
      "{tokens:[s],n_layers:n,n_heads:n,layer:n,attention:[s]}" },
    { "/analyze",
      "{\"analysis\":\"explain\",\"inputs\":\"plums\",\"model\":\"label\",\"parameters\":{\"method\":"
      "\"occlude\"}}",
      "{analysis:s,model:s,version:s,seed:n,settings:{layers:0,method:s},tokens:[{text:s,start:n,end:n,word:"
      "0},{text:"
      "s,"
      "start:n,end:n,word:n},{text:s,start:n,end:n,word:0}],result:{method:s,target:{kind:s,label:s,foil:0},"
      "score:n,probability:n,values:[0,n,0],words:[{word:s,part:s,start:n,end:n,value:0},{word:s,part:s,"
      "start:n,"
      "end:n,value:n},{word:s,part:s,start:n,end:n,value:0}]},figures:[{title:s,svg:s}],notes:s}" },
    { "/info", NULL,
      "{model_id:s,model_dtype:s,model_type:{embedding:{}},max_concurrent_requests:n,max_input_length:n,"
      "max_batch_tokens:n,max_client_batch_size:n,tokenization_workers:n,auto_truncate:b,version:s}" },
    { "/health", NULL, "{status:s}" },
    { "/health/ready", NULL, "{status:s}" },
    { "/ping", NULL, "{status:s}" },
    { "/metrics", NULL, NULL },
    { "/stats", NULL,
      "{uptime_seconds:n,requests_total:n,rejected_total:n,inputs_total:n,tokens_total:n,"
      "generated_tokens_total:n,truncated_tokens_total:n,lanes:{interactive:{queued:n,tokens:n,"
      "age_seconds:n},bulk:{queued:n,tokens:n,age_seconds:n}},batch:{sequences:n,tokens:n,fill:n},latency:{"
      "p50:n,p99:n},requests_per_second:n,tokens_per_second:n,memory_bytes:n,connections:n,models:[s]}" },
};

static void test_shapes(serving *s)
{
    for (size_t i = 0; i < SES_LEN(cases); i++) {
        const ses_json *v =
            cases[i].body ? post(s, cases[i].path, cases[i].body, 200) : get(s, cases[i].path, 200);
        if (!cases[i].shape) {
            CHECK_MSG(s->a.body.n > 20 && !v, "%s", cases[i].path);
            continue;
        }
        CHECK_MSG(!strcmp(shape_of(s, v), cases[i].shape), "%s %s\n    got  %s\n    want %s", cases[i].path,
                  cases[i].body ? cases[i].body : "", s->shape, cases[i].shape);
    }
}

/* The table above and test_lists visit every route. */
static void test_all_routes(void)
{
    static const char *const elsewhere[] = { "/v1/chat/completions", "/api/chat", "/v1/models",
                                             "/openapi.json", "/admin/models/*" };
    for (const ses_route *const *r = ses_routes(); *r; r++) {
        bool found = false;
        for (size_t i = 0; i < SES_LEN(cases); i++) {
            ses_string rest;
            found |= ses_route_find(ses_str(cases[i].body ? "POST" : "GET"), ses_str(cases[i].path), &rest,
                                    NULL) == *r;
        }
        for (size_t i = 0; i < SES_LEN(elsewhere); i++) found |= !strcmp((*r)->path, elsewhere[i]);
        CHECK_MSG(found, "no request to %s %s", (*r)->method, (*r)->path);
    }
}

/* ---- values ---- */

static void test_lists(serving *s)
{
    const ses_json *v = get(s, "/v1/models", 200);
    CHECK_STR(text_at(v, "object"), "list");
    CHECK(ses_json_len(member(v, "data")) == 10);
    for (size_t i = 0; i < 10; i++) {
        static const char *const tasks[] = { "embed",
                                             "fill-mask",
                                             "text-classification",
                                             "text-classification",
                                             "token-classification",
                                             "question-answering",
                                             "rerank",
                                             "multiple-choice",
                                             "text-generation",
                                             "summarization" };
        char path[32];
        snprintf(path, sizeof path, "data/%zu/task", i);
        CHECK_STR(text_at(v, path), tasks[i]);
    }
    v = get(s, "/openapi.json", 200);
    CHECK_STR(text_at(v, "openapi"), "3.1.0");
    for (const ses_route *const *r = ses_routes(); *r; r++) {
        char path[128];
        size_t n = strlen((*r)->path);
        bool star = (*r)->path[n - 1] == '*';
        snprintf(path, sizeof path, "%.*s%s", (int)(n - star), (*r)->path,
                 *r == &ses_route_models ? "label/pipeline/text-classification"
                 : star                  ? "{name}"
                                         : "");
        const ses_json *at = ses_json_get(ses_json_get(v, "paths"), path);
        const ses_json *operation = ses_json_get(at, strcmp((*r)->method, "GET") ? "post" : "get");
        if (*r == &ses_route_openai_chat || *r == &ses_route_ollama_chat) { /* no model has a chat template */
            CHECK(!at);
            continue;
        }
        CHECK_MSG(operation && member(operation, "responses/200") && member(operation, "responses/429"),
                  "openapi: %s %s", (*r)->method, (*r)->path);
        CHECK(!(*r)->request || member(operation, "requestBody/content"));
    }
}

static void test_order(serving *s)
{
    const ses_json *v =
        post(s, "/rerank", "{\"query\":\"plums\",\"texts\":[\"It rains.\",\"plums\",\"a bell\"]}", 200);
    CHECK(ses_json_len(v) == 3 && number_at(v, "0/score") >= number_at(v, "1/score") &&
          number_at(v, "1/score") >= number_at(v, "2/score"));
    double best = number_at(v, "0/index"), score = number_at(v, "0/score");
    v = post(s, "/v1/rerank",
             "{\"query\":\"plums\",\"documents\":[\"It rains.\",\"plums\",\"a bell\"],\"top_n\":1}", 200);
    CHECK(ses_json_len(member(v, "results")) == 1 && number_at(v, "results/0/index") == best &&
          number_at(v, "results/0/relevance_score") == score);
    /* scores are in [0, 1]; raw scores are not passed through the sigmoid */
    v = post(s, "/rerank",
             "{\"query\":\"plums\",\"texts\":[\"It rains.\",\"plums\",\"a bell\"],"
             "\"raw_scores\":true}",
             200);
    CHECK(number_at(v, "0/index") == best && score > 0 && score < 1);
    double raw = number_at(v, "0/score");
    CHECK_MSG(raw > score || raw < 0, "raw %g, score %g", raw, score);
    v = post(s, "/score", "{\"queries\":\"plums\",\"documents\":[\"a\",\"b\",\"c\"]}", 200);
    for (int i = 0; i < 3; i++) {
        char path[32];
        snprintf(path, sizeof path, "data/%d/index", i);
        CHECK(number_at(v, path) == i);
    }
    v = post(s, "/predict", "{\"inputs\":\"plums\"}", 200);
    CHECK(ses_json_len(v) == 3 && number_at(v, "0/score") >= number_at(v, "1/score"));
    double sum = number_at(v, "0/score") + number_at(v, "1/score") + number_at(v, "2/score");
    CHECK(sum > 0.999 && sum < 1.001);
    v = post(s, "/classify", "{\"input\":\"plums\"}", 200);
    CHECK(ses_json_len(member(v, "data/0/probs")) == 3 && number_at(v, "data/0/num_classes") == 3);
    v = post(s, "/tokenize", "{\"inputs\":\"The bell\"}", 200);
    CHECK(number_at(v, "0/1/id") == 62 && number_at(v, "0/2/start") == 4 && number_at(v, "0/2/stop") == 8);
    CHECK_STR(text_at(v, "0/1/text"), "The");
    CHECK_STR(text_at(v, "0/1/token"), "the");
    CHECK_STR(text_at(post(s, "/decode", "{\"ids\":[2,62,124,3]}", 200), "0"), "the bell");
    CHECK_STR(text_at(post(s, "/decode", "{\"ids\":[2,62,3],\"skip_special_tokens\":false}", 200), "0"),
              "[CLS] the [SEP]");
}

/* ---- vectors ---- */

enum { WIDTH = 16 };

static void vector_at(const ses_json *v, const char *path, float *x)
{
    const ses_json *list = member(v, path);
    CHECK(ses_json_len(list) == WIDTH);
    for (size_t i = 0; i < WIDTH; i++) {
        double d = 1e9;
        ses_json_real(ses_json_at(list, i), &d);
        x[i] = (float)d;
    }
}

static double length_of(const float *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sum;
}

static bool near(double x, double y) { return x - y < 1e-5 && y - x < 1e-5; }

/* Numbers, base64 and bytes are the same floats. */
static void test_formats(serving *s)
{
    float x[2][WIDTH], y[WIDTH + 2];
#define TEXTS(format) "{\"input\":[\"plums\",\"The bell rings.\"],\"encoding_format\":\"" format "\"}"
    const ses_json *v = post(s, "/v1/embeddings", TEXTS("float"), 200);
    vector_at(v, "data/0/embedding", x[0]);
    vector_at(v, "data/1/embedding", x[1]);
    CHECK(number_at(v, "usage/prompt_tokens") == 11 && number_at(v, "usage/total_tokens") == 11);
    v = post(s, "/v1/embeddings", TEXTS("base64"), 200);
    for (int i = 0; i < 2; i++) {
        char path[32];
        size_t n = 0;
        snprintf(path, sizeof path, "data/%d/embedding", i);
        const char *b64 = text_at(v, path);
        CHECK(strlen(b64) == 88 && ses_base64_decode(b64, 88, y, &n, NULL) && n == sizeof x[i]);
        CHECK(!memcmp(y, x[i], sizeof x[i]));
    }
    post(s, "/v1/embeddings", TEXTS("bytes"), 200);
    CHECK(s->a.body.n == sizeof x && !memcmp(s->a.body.p, x, sizeof x));
    ses_string shape = ses_http_response_header(&s->a, "x-embedding-shape");
    CHECK(ses_equal(shape.p, shape.n, "2,16"));
    post_with(s, "Accept: application/octet-stream\r\n", "/embed",
              "{\"inputs\":[\"plums\",\"The bell rings.\"]}", 200);
    CHECK(s->a.body.n == sizeof x && !memcmp(s->a.body.p, x, sizeof x));
    v = post(s, "/embed", "{\"inputs\":[\"plums\",\"The bell rings.\"]}", 200);
    vector_at(v, "1", y);
    CHECK(!memcmp(y, x[1], sizeof x[1]));
    v = post(s, "/api/embeddings", "{\"prompt\":\"plums\"}", 200);
    vector_at(v, "embedding", y);
    CHECK(near(length_of(y, WIDTH), 1) && near(length_of(x[0], WIDTH), 1) && !memcmp(y, x[0], sizeof x[0]));
    v = post(s, "/embed", "{\"inputs\":\"plums\",\"normalize\":false}", 200);
    vector_at(v, "0", y);
    CHECK(!near(length_of(y, WIDTH), 1));
}

static void test_embed_options(serving *s)
{
    float x[WIDTH], y[WIDTH];
    const ses_json *v = post(s, "/embed", "{\"inputs\":\"plums\"}", 200);
    vector_at(v, "0", x);
    CHECK(near(length_of(x, WIDTH), 1));
    CHECK(header_number(s, "x-compute-tokens") == 3 && header_number(s, "x-compute-characters") == 5);
    CHECK(header_number(s, "x-truncated-tokens") == -1 && header_number(s, "x-total-time") >= 0);
    v = post(s, "/embed", "{\"inputs\":\"plums\",\"dimensions\":4}", 200);
    CHECK(ses_json_len(member(v, "0")) == 4);
    double sum = 0, d = 0;
    for (size_t i = 0; i < 4; i++) ses_json_real(ses_json_at(member(v, "0"), i), &d), sum += d * d;
    CHECK(near(sum, 1));
    v = post(s, "/embed", "{\"inputs\":\"rings\",\"prompt_name\":\"query\"}", 200);
    vector_at(v, "0", x);
    vector_at(post(s, "/embed", "{\"inputs\":\"plums: rings\"}", 200), "0", y);
    CHECK(!memcmp(x, y, sizeof x));
    /* 48 positions: 46 tokens of text */
    char *right = body_of("{\"inputs\":\"he", 49, " plums", "", "\"}");
    char *left = body_of("{\"inputs\":\"he", 49, " plums", "", "\",\"truncation_direction\":\"Left\"}");
    char *kept = body_of("{\"inputs\":\"", 46, " plums", "", "\"}");
    vector_at(post(s, "/embed", right, 200), "0", x);
    CHECK(header_number(s, "x-truncated-tokens") == 4);
    vector_at(post(s, "/embed", left, 200), "0", y);
    CHECK(header_number(s, "x-truncated-tokens") == 4 && memcmp(x, y, sizeof x));
    vector_at(post(s, "/embed", kept, 200), "0", x);
    CHECK_MSG(!memcmp(x, y, sizeof x), "the beginning is left out");
    free(right);
    free(left);
    free(kept);
    v = post(s, "/embed_all", "{\"inputs\":\"plums\",\"model\":\"mask\"}", 200);
    CHECK(ses_json_len(member(v, "0")) == 3 && ses_json_len(member(v, "0/1")) == WIDTH);
}

/* A value that looks like another setting is a text. */
static void test_settings(serving *s)
{
    float x[WIDTH], y[WIDTH];
    vector_at(post(s, "/models/encoder",
                   "{\"inputs\":\"rings\",\"parameters\":{\"prompt\":\"plums\\ntruncation_side=left\"}}",
                   200),
              "", x);
    vector_at(
        post(s, "/models/encoder",
             "{\"inputs\":\"rings\",\"parameters\":{\"prompt\":\"plums\",\"truncation_side\":\"left\"}}",
             200),
        "", y);
    CHECK(memcmp(x, y, sizeof x));
    vector_at(post(s, "/models/encoder",
                   "{\"inputs\":\"rings\",\"parameters\":{\"prompt\":\"plums\",\"normalize\":true}}", 200),
              "", x);
    CHECK(near(length_of(x, WIDTH), 1));
    vector_at(post(s, "/models/encoder",
                   "{\"inputs\":\"rings\",\"parameters\":{\"prompt\":\"plums\",\"normalize\":false}}", 200),
              "", x);
    CHECK(!near(length_of(x, WIDTH), 1));
}

/* Stop strings, biases, adapters and parameters of parameters. */
static void test_generation(serving *s)
{
#define PROMPT "\"inputs\":\"The old man\",\"parameters\":{\"do_sample\":false,\"max_new_tokens\":12"
    char whole[512], part[512];
    const ses_json *v = post(s, "/models/sesame-gpt", "{" PROMPT "}}", 200);
    snprintf(whole, sizeof whole, "%s", text_at(v, "0/generated_text"));
    size_t at = strcspn(whole + 1, " ") + 1; /* the second word is the stop string */
    size_t n = strcspn(whole + at + 1, " ") + 1;
    char body[1024];
    snprintf(body, sizeof body, "{" PROMPT ",\"details\":true,\"stop\":[\"%.*s\"]}}", (int)n, whole + at);
    v = post(s, "/models/sesame-gpt", body, 200);
    snprintf(part, sizeof part, "%.*s", (int)at, whole);
    CHECK_MSG(!strcmp(text_at(v, "0/generated_text"), part), "'%s'", text_at(v, "0/generated_text"));
    CHECK(!strcmp(text_at(v, "0/details/finish_reason"), "stop_sequence"));
    snprintf(body, sizeof body,
             "{\"prompt\":\"The old man\",\"temperature\":0,\"max_tokens\":12,\"stop\":\"%.*s\"}", (int)n,
             whole + at);
    v = post(s, "/v1/completions", body, 200);
    CHECK(!strcmp(text_at(v, "choices/0/text"), part));
    CHECK(!strcmp(text_at(v, "choices/0/finish_reason"), "stop"));
    v = post(s, "/v1/completions",
             "{\"prompt\":\"The\",\"max_tokens\":3,\"logprobs\":1,\"logit_bias\":{\"12\":1000}}", 200);
    CHECK(!strcmp(text_at(v, "choices/0/text"), ",,,"));
    double before = metric(s, "sesame_generated_tokens_total");
    post(s, "/models/sesame-gpt", "{" PROMPT "}}", 200);
    post(s, "/models/sesame-gpt", "{" PROMPT "},\"stream\":true}", 200);
    double generated = metric(s, "sesame_generated_tokens_total") - before;
    CHECK_MSG(generated > 12 && generated <= 24, "%g", generated);
    v = post(s, "/models/encoder", "{\"inputs\":\"The\",\"parameters\":{\"adapter_id\":\"absent\"}}", 404);
    v = post(s, "/models/rewriter/pipeline/summarization",
             "{\"inputs\":\"w5 w6\",\"parameters\":{\"generate_parameters\":{\"max_new_tokens\":0}}}", 400);
}

static void test_token_ids(serving *s)
{
    float x[WIDTH], y[WIDTH];
    vector_at(post(s, "/v1/embeddings", "{\"input\":\"the bell\"}", 200), "data/0/embedding", x);
    vector_at(post(s, "/v1/embeddings", "{\"input\":[62,124]}", 200), "data/0/embedding", y);
    CHECK(!memcmp(x, y, sizeof x));
    vector_at(post(s, "/v1/embeddings", "{\"input\":[[113],[62,124]]}", 200), "data/1/embedding", y);
    CHECK(!memcmp(x, y, sizeof x));
    /* "h ##e" is not how the tokenizer spells "he" */
    const ses_json *v = post(s, "/v1/embeddings", "{\"input\":[20,49]}", 400);
    CHECK(strstr(text_at(v, "error/message"), "another tokenizer"));
    CHECK(strstr(text_at(v, "error/message"), "check_embedding_ctx_length=False"));
    post(s, "/v1/embeddings", "{\"input\":[100000]}", 400);
    post(s, "/v1/embeddings", "{\"input\":[-1]}", 400);
    post(s, "/v1/embeddings", "{\"input\":[62,\"a\"]}", 400);
    post(s, "/v1/embeddings", "{\"input\":[[62],\"a\"]}", 400);
    post(s, "/v1/embeddings", "{\"input\":[[62],[]]}", 400);
}

static void test_attention(serving *s)
{
    unsigned char w[27];
    size_t n = 0;
    const ses_json *v =
        post(s, "/attention", "{\"inputs\":\"plums\",\"pair\":\"a\",\"model\":\"mask\",\"layer\":0}", 200);
    CHECK(ses_json_len(member(v, "tokens")) == 5 && ses_json_len(member(v, "attention")) == 2);
    const char *b64 = text_at(v, "attention/0");
    CHECK(strlen(b64) == 36 && ses_base64_decode(b64, 36, w, &n, NULL) && n == 25);
    for (int i = 0; i < 5; i++) {
        int sum = 0;
        for (int k = 0; k < 5; k++) sum += w[5 * i + k];
        CHECK_MSG(sum > 250 && sum < 260, "row %d: %d", i, sum);
    }
    post(s, "/attention", "{\"inputs\":\"plums\",\"model\":\"mask\",\"layer\":1}", 422);
    post(s, "/attention", "{\"inputs\":[\"plums\"]}", 422);
}

/* ---- /metrics ---- */

static bool is_name(const char *p, size_t n)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    return n && strspn(p, letters) >= n;
}

/* One line "name{labels} value"; the name must belong to the last # TYPE. */
static bool check_sample(const char *line, const char *type)
{
    size_t n = strcspn(line, "{ "), family = strlen(type);
    const char *value = strrchr(line, ' ');
    char *end = NULL;
    if (!is_name(line, n) || strncmp(line, type, family) || !value) return false;
    strtod(value + 1, &end);
    if (*end) return false;
    if (line[n] == '{' && value[-1] != '}') return false;
    return n == family || !strncmp(line + family, "_bucket{le=\"", 12) ||
           !strncmp(line + family, "_sum ", 5) || !strncmp(line + family, "_count ", 7);
}

static void test_metrics(serving *s)
{
    static const char *const te[] = { "te_request_count",
                                      "te_request_success",
                                      "te_request_failure",
                                      "te_request_duration",
                                      "te_request_input_length",
                                      "te_embed_count",
                                      "te_embed_success",
                                      "te_embed_duration",
                                      "te_embed_tokenization_duration",
                                      "te_embed_queue_duration",
                                      "te_embed_inference_duration",
                                      "te_predict_count",
                                      "te_predict_success",
                                      "te_predict_duration",
                                      "te_predict_tokenization_duration",
                                      "te_predict_queue_duration",
                                      "te_predict_inference_duration",
                                      "te_queue_size",
                                      "te_batch_next_size",
                                      "te_batch_next_tokens" };
    double embeds = metric(s, "te_embed_count"), inputs = metric(s, "sesame_inputs_total"),
           tokens = metric(s, "sesame_tokens_total");
    double ok = metric(s, "sesame_requests_total{route=\"/embed\",code=\"200\"}"),
           bad = metric(s, "te_request_failure{err=\"validation\"}");
    post(s, "/embed", "{\"inputs\":[\"plums\",\"plums\"]}", 200);
    post(s, "/embed", "{\"inputs\":5}", 422);
    CHECK(metric(s, "te_embed_count") == embeds + 1 && metric(s, "sesame_inputs_total") == inputs + 2);
    CHECK(metric(s, "sesame_tokens_total") == tokens + 6);
    CHECK(metric(s, "sesame_requests_total{route=\"/embed\",code=\"200\"}") == ok + 1);
    CHECK(metric(s, "te_request_failure{err=\"validation\"}") == bad + 1);
    CHECK(metric(s, "te_embed_duration_count") == metric(s, "te_embed_duration_bucket{le=\"+Inf\"}"));
    get(s, "/metrics", 200);
    char *text = strndup(s->a.body.p, s->a.body.n), *save = NULL, type[128] = "";
    const char *seen[256];
    size_t n = 0;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (!strncmp(line, "# HELP ", 7)) continue;
        if (strncmp(line, "# TYPE ", 7)) {
            CHECK_MSG(check_sample(line, type), "after # TYPE %s: %s", type, line);
            continue;
        }
        snprintf(type, sizeof type, "%.*s", (int)strcspn(line + 7, " "), line + 7);
        for (size_t i = 0; i < n; i++)
            CHECK_MSG(strncmp(seen[i], type, strlen(type)) || seen[i][strlen(type)] != ' ', "twice: %s",
                      type);
        if (n < SES_LEN(seen)) seen[n++] = line + 7;
    }
    for (size_t i = 0; i < SES_LEN(te); i++) {
        bool found = false;
        for (size_t k = 0; k < n; k++)
            found |= !strncmp(seen[k], te[i], strlen(te[i])) && seen[k][strlen(te[i])] == ' ';
        CHECK_MSG(found, "%s", te[i]);
    }
    free(text);
}

static void test_admin(serving *s)
{
    float x[WIDTH], y[WIDTH];
    vector_at(post(s, "/embed", "{\"inputs\":\"plums\"}", 200), "0", x);
    post(s, "/admin/models/encoder/reload", "", 200);
    vector_at(post(s, "/embed", "{\"inputs\":\"plums\"}", 200), "0", y);
    CHECK(!memcmp(x, y, sizeof x));
    static const char *const foreign[] = { "Origin: http://evil.example\r\n", "Origin: null\r\n",
                                           "Origin: http://evil.example127.0.0.1\r\n" };
    for (size_t i = 0; i < SES_LEN(foreign); i++)
        post_with(s, foreign[i], "/admin/models/org/choice/unload", "", 403);
    get(s, "/v1/models/org/choice", 200);
    char own[64];
    snprintf(own, sizeof own, "Origin: http://127.0.0.1:%d\r\n", s->port);
    post_with(s, own, "/admin/models/encoder/reload", "", 200);
    post(s, "/admin/models/org/choice/unload", "", 200);
    get(s, "/v1/models/org/choice", 404);
    post(s, "/admin/models/org/choice/unload", "", 404);
    post(s, "/admin/models/encoder/delete", "", 404);
    post(s, "/admin/models//reload", "", 404);
}

int main(void)
{
    serving s;
    make_models();
    ses_server_options o = options();
    serving_start(&s, &o);
    test_shapes(&s);
    test_all_routes();
    test_lists(&s);
    test_order(&s);
    test_formats(&s);
    test_embed_options(&s);
    test_settings(&s);
    test_generation(&s);
    test_token_ids(&s);
    test_attention(&s);
    test_metrics(&s);
    test_admin(&s);
    serving_stop(&s);
    remove_models();
    return check_report();
}
