/* Optimizers against four steps of PyTorch and transformers (bert_adam, lamb: the papers' formulas in
 * double), schedules against transformers; groups, clipping, state. */
#include "check.h"
#include "nn/store_impl.h"
#include "sesame/unstable/optim.h"
#include "sesame/unstable/schedule.h"
#include "train/optim/optim_kind.h"

#include <math.h>

enum { MATRIX = 12, VECTOR = 5, ALL = MATRIX + VECTOR };

/* The recorded runs start with w = sin(1 + i) / 2 and had gradients cos(0.7 i + t) (0.1 + 0.05 t), t = 1 ..
 * 4. */
static const struct {
    const char *name;
    ses_optim_options o;
    float after[ALL];
} cases[] = {
    { "adamw",
      { .lr = 0.01, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .group = { { 1, 0.1 } } },
      { 0.423118144f, 0.487211615f, 0.101466462f, -0.355998337f, -0.471839041f, -0.15073508f, 0.293305963f,
        0.465995193f, 0.191476479f, -0.266404808f, -0.463571608f, -0.236199364f, 0.229819328f, 0.498578668f,
        0.312027782f, -0.177161083f, -0.505234241f } },
    { "bert_adam",
      { .lr = 0.01,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .eps = 1e-6,
        .no_bias_correction = true,
        .group = { { 1, 0.1 } } },
      { 0.460164607f, 0.603083372f, 0.201070622f, -0.299596548f, -0.474056751f, -0.214208335f, 0.181277052f,
        0.38564387f, 0.16343613f, -0.227751359f, -0.347590744f, -0.137360588f, 0.284938097f, 0.494706869f,
        0.247745782f, -0.288739175f, -0.584525883f } },
    { "sgd",
      { .lr = 0.1, .group = { { 1, 0 } } },
      { 0.465312988f, 0.49623701f, 0.0895994082f, -0.390865237f, -0.517567575f, -0.185532957f, 0.296500564f,
        0.491565555f, 0.233289212f, -0.227243751f, -0.458745986f, -0.249955148f, 0.196875557f, 0.456768304f,
        0.279404968f, -0.17538248f, -0.483039021f } },
    { "sgd",
      { .lr = 0.1, .momentum = 0.9, .dampening = 0.25, .group = { { 1, 0.01 } } },
      { 0.456565797f, 0.525002182f, 0.143907562f, -0.336314112f, -0.489727437f, -0.19914192f, 0.247363895f,
        0.431137562f, 0.191686675f, -0.229747772f, -0.421906739f, -0.192813486f, 0.246524885f, 0.476295024f,
        0.261323959f, -0.221452236f, -0.535923898f } },
    { "sgd",
      { .lr = 0.1, .momentum = 0.8, .nesterov = true, .group = { { 1, 0.01 } } },
      { 0.509299576f, 0.561880469f, 0.148175597f, -0.366572171f, -0.540771484f, -0.247586995f, 0.224121109f,
        0.444454491f, 0.235941768f, -0.175101161f, -0.3829225f, -0.188475013f, 0.21382919f, 0.422214866f,
        0.211936563f, -0.242497578f, -0.518915951f } },
    { "adafactor",
      { .eps = 1e-30,
        .eps_scale = 1e-3,
        .clip_threshold = 1,
        .decay_rate = -0.8,
        .scale_parameter = true,
        .relative_step = true,
        .group = { { 1, 0 } } },
      { 0.429770052f, 0.4652372f, 0.0771970227f, -0.379750609f, -0.485280871f, -0.148117945f, 0.319948912f,
        0.492265582f, 0.20795843f, -0.266822428f, -0.490661651f, -0.262458563f, 0.209305361f, 0.489024132f,
        0.317500651f, -0.153059006f, -0.483159184f } },
    { "adafactor",
      { .eps = 1e-30,
        .eps_scale = 1e-3,
        .clip_threshold = 1,
        .decay_rate = -0.8,
        .scale_parameter = true,
        .relative_step = true,
        .warmup_init = true,
        .group = { { 1, 0 } } },
      { 0.420738727f, 0.454651117f, 0.0705601424f, -0.378403246f, -0.479465008f, -0.139710546f, 0.328492045f,
        0.494679987f, 0.206061393f, -0.272007734f, -0.499992937f, -0.268286109f, 0.210081816f, 0.495300829f,
        0.325141191f, -0.143952981f, -0.48069793f } },
    { "adafactor",
      { .lr = 0.01,
        .beta1 = 0.9,
        .eps = 1e-30,
        .eps_scale = 1e-3,
        .clip_threshold = 0.5,
        .decay_rate = -0.8,
        .group = { { 1, 0.05 } } },
      { 0.421699852f, 0.457399756f, 0.0742323101f, -0.376222193f, -0.478792697f, -0.141374886f, 0.324113488f,
        0.491266429f, 0.204388514f, -0.271481603f, -0.495856017f, -0.264646024f, 0.211144522f, 0.49383527f,
        0.322994292f, -0.147602797f, -0.482123643f } },
    { "adagrad", /* this and the following: tests/fixtures/optim.py */
      { .lr = 0.05, .eps = 1e-10, .group = { { 1, 0.1 } } },
      { 0.456950933f, 0.481631577f, 0.143293485f, -0.347017109f, -0.491238385f, -0.194885433f, 0.217093185f,
        0.433180988f, 0.208707094f, -0.202044159f, -0.36104691f, -0.187142462f, 0.213746563f, 0.42509371f,
        0.165735364f, -0.243662894f, -0.501356423f } },
    { "adagrad",
      { .lr = 0.05, .eps = 1e-6, .accumulator = 1, .group = { { 1, 0 } } },
      { 0.442059666f, 0.474899054f, 0.0801214129f, -0.383829653f, -0.497434169f, -0.161860213f, 0.312778443f,
        0.492677718f, 0.218632877f, -0.250583321f, -0.479903162f, -0.259061188f, 0.204298213f, 0.477114081f,
        0.303024232f, -0.159399554f, -0.482332706f } },
    { "asgd",
      { .lr = 0.1, .asgd_alpha = 0.75, .group = { { 1, 0.01 } } },
      { 0.463615477f, 0.494357973f, 0.0892381072f, -0.389412373f, -0.515662491f, -0.184931681f, 0.295264661f,
        0.489662975f, 0.232501984f, -0.22617574f, -0.456812948f, -0.248963013f, 0.195978954f, 0.454781502f,
        0.278150707f, -0.174731046f, -0.481046498f } },
    { "asgd",
      { .lr = 0.1, .asgd_lambda = 0.02, .asgd_alpha = 0.75, .asgd_t0 = 1, .group = { { 1, 0.01 } } },
      { 0.460073024f, 0.490537524f, 0.0885546133f, -0.386386275f, -0.511696875f, -0.183598071f, 0.292841792f,
        0.485792309f, 0.230764613f, -0.22422938f, -0.453066349f, -0.246957824f, 0.194344789f, 0.451024294f,
        0.275800347f, -0.173411891f, -0.477190644f } },
    { "lamb",
      { .lr = 0.01, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6, .group = { { 1, 0.1 } } },
      { 0.42428714f, 0.469954818f, 0.0842081457f, -0.369658917f, -0.47823292f, -0.147333771f, 0.312311143f,
        0.482560903f, 0.201353163f, -0.266913235f, -0.482846618f, -0.254094213f, 0.217812657f, 0.494198322f,
        0.315996319f, -0.159987822f, -0.491306722f } },
    { "muon", /* this and the following: tests/fixtures/muon.py */
      { .lr = 0.01,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .eps = 1e-8,
        .momentum = 0.95,
        .nesterov = true,
        .group = { { 1, 0.1 } } },
      { 0.42409724f, 0.457989335f, 0.0731237233f, -0.377693564f, -0.478228539f, -0.141659036f, 0.32402423f,
        0.490383357f, 0.201478109f, -0.271351963f, -0.494894356f, -0.262039334f, 0.229819328f, 0.498578668f,
        0.312027782f, -0.177161083f, -0.505234241f } },
    { "muon",
      { .lr = 0.01,
        .beta1 = 0.9,
        .beta2 = 0.999,
        .eps = 1e-8,
        .momentum = 0.9,
        .nesterov = true,
        .muon_original = true,
        .group = { { 1, 0.1 } } },
      { 0.431495219f, 0.465102881f, 0.076607272f, -0.379478246f, -0.479443282f, -0.145378485f, 0.319549352f,
        0.487257987f, 0.196369499f, -0.27145642f, -0.489945561f, -0.25436458f, 0.229819328f, 0.498578668f,
        0.312027782f, -0.177161083f, -0.505234241f } },
};

static ses_device *dev;

static ses_store *store_new(void)
{
    ses_err e = { 0 };
    int64_t matrix[SES_MAX_DIM] = { 3, 4 }, vector[SES_MAX_DIM] = { VECTOR };
    ses_store *s = ses_store_new(dev, &e);
    ses_store_set_dense(s, ses_store_add(s, "layer.0.ffn.up.weight", matrix, SES_INIT_NORMAL), SES_OUT_IN);
    ses_store_add(s, "classify.out.bias", vector, SES_INIT_ZERO);
    CHECK_MSG(ses_store_ok(s, &e) && ses_store_alloc_trainable(s, &e), "%s", e.msg);
    for (int i = 0; i < MATRIX; i++) ses_store_at(s, 0)->tensor->f[i] = (float)(0.5 * sin(1 + i));
    for (int i = 0; i < VECTOR; i++) ses_store_at(s, 1)->tensor->f[i] = (float)(0.5 * sin(13 + i));
    return s;
}

static void set_grads(ses_store *s, int t, double scale)
{
    for (int i = 0; i < ALL; i++) {
        float g = (float)(cos(0.7 * i + t) * (0.1 + 0.05 * t) * scale);
        if (i < MATRIX)
            ses_store_at(s, 0)->tensor->grad[i] = g;
        else
            ses_store_at(s, 1)->tensor->grad[i - MATRIX] = g;
    }
}

static float value(const ses_store *s, int i)
{
    return i < MATRIX ? ses_store_at(s, 0)->tensor->f[i] : ses_store_at(s, 1)->tensor->f[i - MATRIX];
}

static void test_steps(void)
{
    for (size_t c = 0; c < SES_LEN(cases); c++) {
        ses_err e = { 0 };
        ses_optim_options o = cases[c].o;
        o.name = cases[c].name;
        for (double scale = 1; scale < 9; scale *= 4) { /* gradients times 4, scale 1/4: no change */
            ses_store *s = store_new();
            ses_optim *opt = ses_optim_new(s, &o, &e);
            CHECK_MSG(opt, "%s", e.msg);
            for (int t = 1; t <= 4; t++) {
                set_grads(s, t, scale);
                ses_optim_step(opt, -1, 1 / scale);
            }
            CHECK(ses_optim_steps(opt) == 4);
            for (int i = 0; i < ALL; i++)
                CHECK_MSG(fabs((double)value(s, i) - (double)cases[c].after[i]) < 3e-7,
                          "%s (case %zu)[%d]: %.9g, not %.9g", cases[c].name, c, i, (double)value(s, i),
                          (double)cases[c].after[i]);
            ses_optim_free(opt);
            ses_store_free(s);
        }
    }
}

/* Adafactor treats the matrices of a tensor with three axes separately: two matrices step like two
 * parameters, if no norm over the whole tensor is used. */
static void test_matrices(void)
{
    enum { TWO = 2, ROWS = 3, COLS = 4, ONE = ROWS * COLS };
    ses_err e = { 0 };
    ses_optim_options o;
    CHECK(ses_optim_defaults("adafactor", &o, &e));
    o.lr = 0.01, o.scale_parameter = o.relative_step = false, o.clip_threshold = 1e9;
    ses_store *both = ses_store_new(dev, &e), *apart = ses_store_new(dev, &e);
    ses_store_add(both, "both.weight", (const int64_t[SES_MAX_DIM]){ TWO, ROWS, COLS }, SES_INIT_ZERO);
    ses_store_add(apart, "first.weight", (const int64_t[SES_MAX_DIM]){ ROWS, COLS }, SES_INIT_ZERO);
    ses_store_add(apart, "second.weight", (const int64_t[SES_MAX_DIM]){ ROWS, COLS }, SES_INIT_ZERO);
    CHECK_MSG(ses_store_alloc_trainable(both, &e) && ses_store_alloc_trainable(apart, &e), "%s", e.msg);
    ses_optim *a = ses_optim_new(both, &o, &e), *b = ses_optim_new(apart, &o, &e);
    for (int t = 1; a && b && t <= 3; t++) {
        for (size_t i = 0; i < TWO * ONE; i++) {
            ses_real g = (ses_real)(cos(0.7 * (double)i + t) * (double)(1 + i));
            ses_store_at(both, 0)->tensor->grad[i] = g;
            ses_store_at(apart, i / ONE)->tensor->grad[i % ONE] = g;
        }
        ses_optim_step(a, -1, 1), ses_optim_step(b, -1, 1);
    }
    for (size_t i = 0; i < TWO * ONE; i++) {
        ses_real x = ses_store_at(both, 0)->tensor->f[i];
        CHECK(x != 0 && x == ses_store_at(apart, i / ONE)->tensor->f[i % ONE]);
    }
    ses_optim_free(a);
    ses_optim_free(b);
    ses_store_free(both);
    ses_store_free(apart);
}

/* A second optimizer with the first one's state continues with the same bits. */
static void test_state(void)
{
    for (size_t c = 0; c < SES_LEN(cases); c++) {
        ses_err e = { 0 };
        ses_optim_options o = cases[c].o;
        o.name = cases[c].name;
        ses_store *s = store_new();
        ses_optim *a = ses_optim_new(s, &o, &e), *b = ses_optim_new(s, &o, &e);
        for (int t = 1; t <= 2; t++) set_grads(s, t, 1), ses_optim_step(a, -1, 1);
        CHECK(ses_optim_state_count(a) == ses_optim_state_count(b));
        for (size_t i = 0; i < ses_optim_state_count(a); i++) {
            ses_optim_state from = ses_optim_state_at(a, i), to = ses_optim_state_at(b, i);
            CHECK(from.n == to.n && from.n > 0 && !strcmp(from.kind, to.kind) &&
                  !strcmp(from.param, to.param));
            memcpy(to.data, from.data, (size_t)to.n * sizeof *to.data);
        }
        ses_optim_set_steps(b, ses_optim_steps(a));
        for (int t = 3; t <= 4; t++) set_grads(s, t, 1), ses_optim_step(b, -1, 1);
        for (int i = 0; i < ALL; i++)
            CHECK_MSG(fabs((double)value(s, i) - (double)cases[c].after[i]) < 3e-7, "%s", cases[c].name);
        ses_optim_free(a);
        ses_optim_free(b);
        ses_store_free(s);
    }
}

/* Two optimizers of slices do the steps of one, and each lists its part of the state. The slices end inside
 * the matrix, unless the kind needs whole tensors. */
static void test_slices(void)
{
    for (size_t c = 0; c < SES_LEN(cases); c++) {
        ses_err e = { 0 };
        ses_optim_options o = cases[c].o;
        o.name = cases[c].name;
        o.ema_decay = 0.5;
        ses_store *s = store_new(), *split = store_new();
        int64_t at = ses_optim_find(o.name)->whole_tensors ? ses_store_flat_offset(split, 1) : 7;
        ses_optim *all = ses_optim_new(s, &o, &e), *low = ses_optim_new_slice(split, &o, 0, at, &e),
                  *high = ses_optim_new_slice(split, &o, at, INT64_MAX, &e);
        for (int t = 1; all && low && high && t <= 4; t++) {
            set_grads(s, t, 1), set_grads(split, t, 1);
            ses_optim_step(all, -1, 1), ses_optim_step(low, -1, 1), ses_optim_step(high, -1, 1);
        }
        for (int i = 0; i < ALL; i++)
            CHECK_MSG(value(s, i) == value(split, i), "%s (case %zu)[%d]", o.name, c, i);
        CHECK(ses_optim_state_count(all) == ses_optim_state_count(low));
        for (size_t i = 0; i < ses_optim_state_count(all); i++) {
            ses_optim_state x = ses_optim_state_at(all, i), a = ses_optim_state_at(low, i),
                            b = ses_optim_state_at(high, i);
            CHECK(x.n == x.total && a.total == x.n && b.total == x.n && a.n + b.n == x.n);
            CHECK(x.offset == 0 && a.offset == 0 && (b.n == 0 || b.offset == a.n) && !strcmp(a.kind, x.kind));
            CHECK(!a.n || !memcmp(x.data, a.data, (size_t)a.n * sizeof *a.data));
            CHECK(!b.n || !memcmp(x.data + b.offset, b.data, (size_t)b.n * sizeof *b.data));
        }
        ses_optim_swap_ema(all), ses_optim_swap_ema(low), ses_optim_swap_ema(high);
        for (int i = 0; i < ALL; i++) CHECK(value(s, i) == value(split, i));
        ses_optim_free(all), ses_optim_free(low), ses_optim_free(high);
        ses_store_free(s), ses_store_free(split);
    }
}

/* EMA: lower decay at first; the weights are unchanged by it. */
static void test_average(void)
{
    ses_err e = { 0 };
    ses_optim_options o = cases[0].o;
    double want[ALL] = { 0 };
    o.name = cases[0].name;
    o.ema_decay = 0.5;
    ses_store *s = store_new();
    ses_optim *a = ses_optim_new(s, &o, &e);
    ses_optim_swap_ema(a); /* no average yet */
    for (int t = 1; t <= 4; t++) {
        set_grads(s, t, 1);
        ses_optim_step(a, -1, 1);
        double d = t == 1 ? 0 : fmin(0.5, (1.0 + t) / (10.0 + t));
        for (int i = 0; i < ALL; i++) want[i] = d * want[i] + (1 - d) * (double)value(s, i);
    }
    ses_optim_swap_ema(a);
    for (int i = 0; i < ALL; i++) CHECK(fabs((double)value(s, i) - want[i]) < 1e-6);
    ses_optim_swap_ema(a);
    for (int i = 0; i < ALL; i++) CHECK(fabs((double)value(s, i) - (double)cases[0].after[i]) < 3e-7);
    CHECK(ses_optim_state_count(a) == 6); /* m, v and ema of two parameters */
    ses_optim_free(a);
    ses_store_free(s);
}

static int frozen_bias(void *ctx, const ses_param *p)
{
    (void)ctx;
    return p->decay ? 0 : -1;
}

/* Gradual unfreezing: levels from *ctx on are trained. */
static int from_level(void *ctx, const ses_param *p)
{
    const int64_t *first = ctx;
    return ses_param_level(p, 1) >= *first ? 0 : -1;
}

/* Levels of parameters: embeddings 0, layers from 1 on, heads above. */
static void test_levels(void)
{
    static const struct {
        const char *name;
        int64_t level;
    } list[] = { { "embed.token", 0 },          { "chars.table", 0 },
                 { "layer.1.attn.query", 2 },   { "decoder.layer.0.ffn.up", 1 },
                 { "rnn.weight_ih_l0", 1 },     { "rnn.bias_hh_l1_reverse", 2 },
                 { "forward.weight_hr_l1", 2 }, { "backward.bias_ih_l0", 1 },
                 { "own.rnn.weight_ih_l0", 3 }, { "layer.7.attn.query", 2 },
                 { "predict.weight", 3 },       { "decoder.rnn.weight_hh_l1", 2 } };
    for (size_t i = 0; i < SES_LEN(list); i++) {
        int64_t level = ses_param_level(&(ses_param){ .name = list[i].name }, 2);
        CHECK_MSG(level == list[i].level, "%s: level %d", list[i].name, (int)level);
    }
}

static void test_regroup(void)
{
    ses_err e = { 0 };
    ses_optim_options o;
    int64_t first = 2;
    ses_store *s = store_new();
    CHECK(ses_optim_defaults("lamb", &o, &e));
    o.group_of = from_level, o.ctx = &first;
    ses_optim *opt = ses_optim_new(s, &o, &e);
    set_grads(s, 1, 1);
    ses_optim_step(opt, -1, 1);
    CHECK(value(s, 0) == (float)(0.5 * sin(1)) && value(s, MATRIX) != (float)(0.5 * sin(13)));
    first = 1;
    CHECK(ses_optim_regroup(opt, &e) && ses_optim_state_count(opt) == 4);
    ses_optim_step(opt, -1, 1);
    CHECK(value(s, 0) != (float)(0.5 * sin(1)) && ses_store_at(s, 0)->tensor->requires_grad);
    ses_optim_free(opt);
    ses_store_free(s);
}

static int too_many(void *ctx, const ses_param *p)
{
    (void)ctx, (void)p;
    return SES_MAX_GROUPS;
}

/* ASGD's average against PyTorch's; with a trigger it starts later, over the steps from there on. */
static void test_asgd(void)
{
    static const float average[2][ALL] = {
        { 0.442729026f, 0.487530291f, 0.0994767174f, -0.366954446f, -0.491378039f, -0.17002736f, 0.29384169f,
          0.472434849f, 0.207349792f, -0.247514829f, -0.464180976f, -0.238670766f, 0.219211042f, 0.479932934f,
          0.293170512f, -0.177052528f, -0.499552995f },
        { 0.45097211f, 0.491086662f, 0.0981934071f, -0.37223798f, -0.499441803f, -0.178681299f, 0.288200676f,
          0.47355777f, 0.216362f, -0.234163254f, -0.453678638f, -0.237628281f, 0.209406644f, 0.46459502f,
          0.281168222f, -0.178987533f, -0.490991831f }
    };
    ses_err e = { 0 };
    for (int c = 0; c < 2; c++) {
        ses_optim_options o = { .name = "asgd", .lr = 0.1, .asgd_alpha = 0.75, .group = { { 1, 0.01 } } };
        if (c) o.asgd_lambda = 0.02, o.asgd_t0 = 1;
        ses_store *s = store_new();
        ses_optim *a = ses_optim_new(s, &o, &e);
        CHECK_MSG(a, "%s", e.msg);
        for (int t = 1; t <= 4; t++) set_grads(s, t, 1), ses_optim_step(a, -1, 1);
        float raw = value(s, 0);
        ses_optim_swap_ema(a);
        for (int i = 0; i < ALL; i++)
            CHECK_MSG(fabs((double)value(s, i) - (double)average[c][i]) < 3e-7, "%d: %.9g", i,
                      (double)value(s, i));
        ses_optim_swap_ema(a);
        CHECK(value(s, 0) == raw);
        ses_optim_free(a);
        ses_store_free(s);
    }
    ses_optim_options o = { .name = "asgd", .lr = 0.1, .average_trigger = 5, .group = { { 1, 0 } } };
    ses_store *s = store_new();
    ses_optim *a = ses_optim_new(s, &o, &e);
    double sum = 0;
    for (int t = 1; t <= 5; t++) {
        set_grads(s, t, 1);
        ses_optim_step(a, -1, 1);
        float raw = value(s, 0);
        ses_optim_swap_ema(a);
        CHECK_MSG(t >= 3 || value(s, 0) == raw, "an average before the trigger");
        ses_optim_swap_ema(a);
        if (t == 2) ses_optim_average_from(a, 2);
        if (t >= 4) sum += (double)raw; /* as in PyTorch, the first value is replaced */
    }
    ses_optim_swap_ema(a);
    CHECK_MSG(fabs((double)value(s, 0) - sum / 2) < 1e-6, "%g, not %g", (double)value(s, 0), sum / 2);
    ses_optim_free(a);
    ses_store_free(s);
}

static void test_groups(void)
{
    ses_err e = { 0 };
    ses_optim_options o;
    ses_store *s = store_new();
    CHECK(ses_optim_defaults("adamw", &o, &e) && !strcmp(o.name, "adamw") && o.group[0].lr_scale == 1);
    o.group_of = frozen_bias;
    ses_optim *opt = ses_optim_new(s, &o, &e);
    set_grads(s, 1, 1);
    ses_optim_step(opt, -1, 1);
    CHECK(ses_optim_state_count(opt) == 2);
    CHECK(value(s, 0) != (float)(0.5 * sin(1)) && value(s, MATRIX) == (float)(0.5 * sin(13)));
    CHECK(ses_store_at(s, 0)->tensor->requires_grad && !ses_store_at(s, 1)->tensor->requires_grad);
    ses_optim_free(opt);

    ses_layer_groups layers = { .layers = 2, .frozen = 0 };
    CHECK(ses_optim_set_layer_groups(&o, &layers, 0.01, 0.5, &e));
    CHECK(o.group_of(o.ctx, ses_store_at(s, 0)) == 2 && o.group_of(o.ctx, ses_store_at(s, 1)) == 7);
    CHECK(o.group[2].lr_scale == 0.25 && o.group[2].weight_decay == 0.01);
    CHECK(o.group[7].lr_scale == 1 && o.group[7].weight_decay == 0);
    layers.frozen = 2;
    CHECK(o.group_of(o.ctx, ses_store_at(s, 0)) == -1 && o.group_of(o.ctx, ses_store_at(s, 1)) == 7);
    layers.layers = 31;
    CHECK(!ses_optim_set_layer_groups(&o, &layers, 0, 1, &e) && strstr(e.msg, "layers"));

    ses_err_clear(&e);
    o.group_of = too_many;
    CHECK(!ses_optim_new(s, &o, &e) && strstr(e.msg, "group 64; expected less than 64"));
    ses_err_clear(&e);
    CHECK(!ses_optim_defaults("adam2", &o, &e));
    CHECK_STR(
        e.msg,
        "unknown optimizer \"adam2\"; choose one of adamw, bert_adam, sgd, adafactor, lamb, adagrad, asgd, "
        "muon");
    ses_store_free(s);
}

static void test_clip(void)
{
    CHECK(ses_clip_scale(0.5, 1) == 1 && ses_clip_scale(7, 0) == 1);
    CHECK(fabs(ses_clip_scale(4, 1) - 1 / 4.000001) < 1e-15);
}

enum { STEPS = 10 };
static const int64_t at[STEPS] = { 0, 1, 3, 4, 5, 17, 40, 47, 48, 60 };

static const struct {
    const char *name;
    int64_t warmup;
    double factor[STEPS];
} schedules[] = {
    { "constant", 0, { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 } },
    { "constant", 4, { 0, 0.25, 0.75, 1, 1, 1, 1, 1, 1, 1 } },
    { "linear",
      0,
      { 1, 0.97916666666666663, 0.9375, 0.91666666666666663, 0.89583333333333337, 0.64583333333333337,
        0.16666666666666666, 0.020833333333333332, 0, 0 } },
    { "linear",
      4,
      { 0, 0.25, 0.75, 1, 0.97727272727272729, 0.70454545454545459, 0.18181818181818182, 0.022727272727272728,
        0, 0 } },
    { "cosine",
      4,
      { 0, 0.25, 0.75, 1, 0.99872605730512676, 0.79963883325567342, 0.079373233584409342,
        0.0012739426948732424, 0, 0.17256963302735739 } },
    { "inverse_sqrt",
      4,
      { 0, 0.25, 0.75, 1, 0.89442719099991586, 0.48507125007266594, 0.31622776601683794, 0.29172998299578912,
        0.28867513459481292, 0.2581988897471611 } },
    { "inverse_sqrt",
      0,
      { 1, 0.99995000374968768, 0.99985003374156478, 0.99980005998000709, 0.99975009371095447,
        0.99915108221696769, 0.99800598006974905, 0.99765825143817932, 0.99760860558452769,
        0.99701343285247179 } },
    { "polynomial",
      4,
      { 0, 0.25, 0.75, 1, 0.95730888429752059, 0.52156508264462809, 0.081404958677685935,
        0.050490702479338845, 0.050000000000000003, 0.050000000000000003 } },
    { "slanted",
      0,
      { 0.03125, 0.2734375, 0.7578125, 1, 0.97309027777777779, 0.65017361111111105, 0.03125, 0.03125, 0.03125,
        0.03125 } },
    { "plateau", 4, { 0, 0.25, 0.75, 1, 1, 1, 1, 1, 1, 1 } },
    { "one_cycle", /* fastai's combined_cos(0.25, 1 / 25, 1, 1e-5) */
      0,
      { 0.04, 0.05635560338124726, 0.18058874503045722, 0.28, 0.3957668583507902, 0.9531543619793896,
        0.11698660866272659, 0.0019126319276175918, 1e-5, 1e-5 } },
    { "wsd", /* get_wsd_schedule with 10 decay steps, "1-sqrt" */
      4,
      { 0, 0.25, 0.75, 1, 1, 1, 0.55278640450004213, 0.051316701949486232, 0, 0 } },
};

static void test_schedules(void)
{
    ses_err e = { 0 };
    for (size_t c = 0; c < SES_LEN(schedules); c++) {
        ses_schedule s;
        CHECK(ses_schedule_defaults(schedules[c].name, &s, &e));
        s.warmup = schedules[c].warmup;
        s.total = 48;
        if (!strcmp(s.name, "polynomial")) s.power = 2, s.end_factor = 0.05;
        for (int i = 0; i < STEPS; i++)
            CHECK_MSG(fabs(ses_schedule_at(&s, at[i]) - schedules[c].factor[i]) < 1e-14, "%s at %d", s.name,
                      (int)at[i]);
    }
    ses_schedule s;
    CHECK(!ses_schedule_defaults("quadratic", &s, &e) &&
          strstr(e.msg, "choose one of constant, linear, cosine"));
    CHECK(ses_warmup_updates(0.1, 48) == 5 && ses_warmup_updates(0, 48) == 0 &&
          ses_warmup_updates(0.06, 100) == 6);
    const char *what;
    size_t n = 0;
    while (ses_schedule_name(n, &what)) CHECK(*what), n++;
    CHECK(n == 9);
    CHECK(ses_schedule_defaults("one_cycle", &s, &e));
    s.total = 48;
    CHECK(fabs(ses_schedule_momentum_at(&s, 5) - 0.762940952255126) < 1e-14);
    CHECK(fabs(ses_schedule_momentum_at(&s, 17) - 0.7046846106481675) < 1e-14);
    CHECK(ses_schedule_rises(&s) && ses_schedule_uses_total(&s) && !ses_schedule_needs_evaluation(&s));
    CHECK(ses_schedule_defaults("plateau", &s, &e));
    s.decays = 3;
    CHECK(ses_schedule_at(&s, 9) == 0.125 && ses_schedule_momentum_at(&s, 9) < 0);
    CHECK(ses_schedule_needs_evaluation(&s) && !ses_schedule_uses_total(&s) && !ses_schedule_rises(&s));
    for (n = 0; ses_optim_name(n, &what); n++) CHECK(*what);
    CHECK(n == 8);
}

int main(void)
{
    ses_err e = { 0 };
    dev = ses_device_open("cpu", &(ses_device_options){ .threads = 2 }, &e);
    CHECK_MSG(dev, "%s", e.msg);
    test_steps();
    test_matrices();
    test_state();
    test_slices();
    test_average();
    test_asgd();
    test_groups();
    test_levels();
    test_regroup();
    test_clip();
    test_schedules();
    ses_device_free(dev);
    return check_report();
}
