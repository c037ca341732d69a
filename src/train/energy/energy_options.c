/* The options --core-watts, --co2-per-kwh, --price-per-hour and --price-per-kwh. */
#include "energy_options.h"

static const ses_opt opt[] = {
    SES_OPT_REAL(ses_energy_args, core_watts, "core-watts", "12", 0, 1000,
                 "energy estimate: power of a busy core; ignored if the machine measures energy",
                 .value = "W"),
    SES_OPT_REAL(ses_energy_args, co2_per_kwh, "co2-per-kwh", "475", 0, 10000,
                 "energy: grams of CO2 per kWh; 475 is the world average", .value = "G"),
    SES_OPT_REAL(ses_energy_args, price_per_hour, "price-per-hour", "0", 0, 1e9,
                 "price of an hour of training, e.g. the rent of the machine, in any currency; 0: none",
                 .value = "X"),
    SES_OPT_REAL(ses_energy_args, price_per_kwh, "price-per-kwh", "0", 0, 1e9,
                 "price of a kWh of the energy used, in the same currency; both prices are added",
                 .value = "X"),
};
const ses_opt_table ses_energy_options = { opt, SES_LEN(opt), "energy" };
