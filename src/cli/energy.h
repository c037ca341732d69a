/* Options of the energy report of commands that train. */
#ifndef SES_CLI_ENERGY_H
#define SES_CLI_ENERGY_H

#include "base/energy_meter.h"
#include "option_parser.h"

#define SES_OPT_ENERGY(struct_, field)                                                               \
    { .name = "core-watts",                                                                          \
      .type = SES_OPT_REAL,                                                                          \
      .offset = offsetof(struct_, field.core_watts),                                                 \
      .def = "12",                                                                                   \
      .value = "W",                                                                                  \
      .min = 0,                                                                                      \
      .max = 1000,                                                                                   \
      .help = "energy: what a working core takes, where the machine does not measure" },             \
    {                                                                                                \
        .name = "co2-per-kwh", .type = SES_OPT_REAL, .offset = offsetof(struct_, field.co2_per_kwh), \
        .def = "475", .value = "G", .min = 0, .max = 10000,                                          \
        .help = "energy: grams of CO2 that a kWh stands for; 475 is the world's mean"                \
    }

#endif
