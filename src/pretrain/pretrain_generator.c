/* The generator of replaced token detection: from a config with random weights, or from a folder. */
#include "base/file.h"
#include "pretrain_impl.h"
#include "train/model_presets.h"

ses_model *ses_pretrain_trained_generator(const ses_pretrain *p)
{
    return p->o.objective.freeze_generator ? NULL : p->generator;
}

/* The config of a new generator: its own, or the model's with smaller widths; with all weights tied, the
 * same. */
static ses_json_doc *new_config(const ses_pretrain *p, ses_err *e)
{
    const ses_objective_options *o = &p->o.objective;
    double usual = o->generator_tying == SES_TIE_ALL ? 1 : 0.25;
    double fraction = o->generator_size > 0 ? o->generator_size : usual;
    if (!p->o.generator) return ses_generator_config(ses_json_root(p->config), fraction, e);
    ses_json_doc *base = ses_preset_load(p->o.generator, e);
    ses_json_doc *config = base ? ses_preset_fit(ses_json_root(base), p->tokenizer, NULL, 0, e) : NULL;
    ses_json_free(base);
    return config;
}

bool ses_pretrain_open_generator(ses_pretrain *p, ses_err *e)
{
    const ses_pretrain_options *opt = &p->o;
    if (!(ses_objective_mix_needs(p->objectives) & SES_NEEDS_GENERATOR)) return true;
    bool from_folder = opt->generator && ses_path_is_dir(opt->generator);
    if (opt->objective.freeze_generator && !from_folder)
        return ses_fail(e, SES_EUSAGE,
                        "generator-frozen: a generator that is not trained needs weights: train one with "
                        "objective mlm and name its folder (generator)");
    if (!p->generator_config)
        p->generator_config = from_folder ? ses_model_config_open(opt->generator, NULL, e) : new_config(p, e);
    if (!p->generator_config) return false;
    const ses_json *config = ses_json_root(p->generator_config);
    ses_model_options o = { .class_name = ses_model_class_for_head(config, "masked-lm", e),
                            .train = !opt->objective.freeze_generator,
                            .random_init = !from_folder,
                            .seed = (uint64_t)opt->run.seed + 1 };
    if (!o.class_name) return ses_wrap(e, "the generator");
    p->generator =
        from_folder ? ses_model_open(opt->generator, p->dev, &o, e) : ses_model_new(config, p->dev, &o, e);
    return p->generator || ses_wrap(e, "the generator");
}
