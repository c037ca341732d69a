/* The options --core-watts and --co2-per-kwh. */
#include "energy_options.h"

static const ses_opt opt[] = {
    { .name = "core-watts",
      .type = SES_OPT_REAL,
      .offset = offsetof(ses_energy_args, core_watts),
      .def = "12",
      .value = "W",
      .min = 0,
      .max = 1000,
      .help = "energy estimate: power of a busy core; ignored if the machine measures energy" },
    { .name = "co2-per-kwh",
      .type = SES_OPT_REAL,
      .offset = offsetof(ses_energy_args, co2_per_kwh),
      .def = "475",
      .value = "G",
      .min = 0,
      .max = 10000,
      .help = "energy: grams of CO2 per kWh; 475 is the world average" },
};
const ses_opt_table ses_energy_options = { opt, SES_LEN(opt) };
